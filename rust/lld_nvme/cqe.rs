// SPDX-License-Identifier: GPL-2.0
//! Completion queue entries (Base 2.0 section 3.3.3.2). The second half of one is a 64-bit word
//! that says everything an I/O command needs:
//!
//! ```text
//!  63      49   48   47   32 31    16 15      0
//! +----------+-------+-------+--------+---------+
//! |  status  | phase |  CID  |  SQID  |  SQHD   |
//! +----------+-------+-------+--------+---------+
//! ```
//!
//! The CID is the tag and a generation ([`Cids`]). What the status means (NVM Command Set 1.0
//! section 3.1) is told in the terms of the layer above ([`outcome`]). The kinds of failures are
//! those that the in-tree driver makes of them (`nvme_error_status` in Linux 7.3's
//! drivers/nvme/host/core.c): what file systems know is which `blk_status_t` follows from a failure
//! of a drive.

use hal::{CmdError, Failure, Outcome, RetryHint};

/// Bits of the CID that are the tag; those above are its generation.
const TAG_BITS: u32 = 12;
/// The most tags a queue can have with such CIDs.
pub(crate) const TAGS_MAX: u16 = 1 << TAG_BITS;
/// Bytes of an entry.
pub(crate) const BYTES: usize = 16;
/// Where the second half is.
pub(crate) const SECOND_HALF: usize = 8;

/// Where entry `index` is.
#[inline]
pub(crate) const fn offset(index: u16) -> usize {
    (index as usize) << 4
}

/// The second half, read once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cqe(pub(crate) u64);

impl Cqe {
    /// Toggles with each pass over the queue; an entry whose phase is the expected one is new.
    #[inline]
    pub(crate) const fn phase(self) -> bool {
        self.0 & (1 << 48) != 0
    }

    /// Which command.
    #[inline]
    pub(crate) const fn cid(self) -> u16 {
        // CAST: bits 47:32.
        (self.0 >> 32) as u16
    }

    /// Status code, type and flags, 15 bits, without the phase.
    #[inline]
    pub(crate) const fn status(self) -> u16 {
        // CAST: bits 63:49.
        (self.0 >> 49) as u16
    }

    /// The submission queue that the command came from.
    #[inline]
    const fn sq_id(self) -> u16 {
        // CAST: bits 31:16.
        (self.0 >> 16) as u16
    }

    /// Where the controller's head in that queue is.
    #[inline]
    pub(crate) const fn sq_head(self) -> u16 {
        // CAST: bits 15:0.
        self.0 as u16
    }

    /// Whether it can be an answer to a command of queue `qid` with `entries` entries; the CID is
    /// still to be compared.
    #[inline]
    pub(crate) const fn is_from(self, qid: u16, entries: u16) -> bool {
        self.sq_id() == qid && self.sq_head() < entries
    }
}

/// An admin command's completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminReply {
    /// Command-specific dwords 0 and 1.
    pub result: u64,
    /// Status code, type and flags, 15 bits; 0: success.
    pub status: u16,
}

/// How the CIDs of a queue's commands are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cids {
    /// The CID of the first tag: those below it are others'.
    first: u16,
    /// What a slot's CID grows by from one command to the next.
    generation: u16,
}

impl Cids {
    /// From `first` on; with `generations`, unless the device takes small ones only.
    pub(crate) const fn new(first: u16, generations: bool) -> Self {
        let generation = if generations { TAGS_MAX } else { 0 };
        Self { first, generation }
    }

    /// The first CID of slot `tag`.
    pub(crate) const fn of(self, tag: u16) -> u16 {
        tag.wrapping_add(self.first)
    }

    /// The slot of `cid`; of one that is nobody's here, no slot's number.
    #[inline]
    pub(crate) const fn tag_of(self, cid: u16) -> u16 {
        (cid & (TAGS_MAX - 1)).wrapping_sub(self.first)
    }

    /// The CID of the next command in the slot of `cid`.
    #[inline]
    pub(crate) const fn next(self, cid: u16) -> u16 {
        cid.wrapping_add(self.generation)
    }
}

/// `DNR`, Do Not Retry: the same command would fail again.
const DO_NOT_RETRY: u16 = 1 << 14;
/// `CRD`, bits 12:11: which Command Retry Delay Time is to pass before the command is tried again;
/// 0: none.
const RETRY_DELAY_SHIFT: u32 = 11;

/// Status code types, in bits 10:8.
const GENERIC: u16 = 0;
const COMMAND_SPECIFIC: u16 = 1;
const MEDIA: u16 = 2;
const PATH: u16 = 3;

/// `CRDT1` to `CRDT3` of Identify Controller, in units of 100 ms.
pub(crate) type RetryDelays = [u16; 3];

/// What the 15 bits above the phase mean for a command of the data path of a controller with these
/// `delays`.
#[inline]
pub(crate) fn outcome(status: u16, delays: &RetryDelays) -> Outcome {
    // Success is code 0 of type 0, whatever the bits above say.
    if status & 0x7ff == 0 {
        return Ok(());
    }
    Err(failure(status, delays))
}

#[cold]
fn failure(status: u16, delays: &RetryDelays) -> Failure {
    let error = match ((status >> 8) & 7, status & 0xff) {
        (GENERIC, code) => generic(code),
        // Conflicting Attributes.
        (COMMAND_SPECIFIC, 0x80) => CmdError::Unsupported,
        // Invalid Protection Information.
        (COMMAND_SPECIFIC, 0x81) => CmdError::Protection,
        // Attempted Write to Read Only Range.
        (COMMAND_SPECIFIC, 0x82) => CmdError::Medium,
        // Write Fault, Unrecovered Read Error, Compare Failure, Access Denied, Deallocated or
        // Unwritten Logical Block.
        (MEDIA, 0x80 | 0x81 | 0x85..=0x87) => CmdError::Medium,
        // End-to-end Guard, Application Tag, Reference Tag Check Error.
        (MEDIA, 0x82..=0x84) => CmdError::Protection,
        // Host Pathing Error.
        (PATH, 0x70) => CmdError::Path,
        // Command Aborted By Host.
        (PATH, 0x71) => CmdError::Aborted,
        _ => CmdError::Io,
    };
    Failure {
        error,
        // Another host has decided so: another try is as vain, whatever the device says. (In tree
        // five more follow where it does not say Do Not Retry.)
        retry: match error {
            CmdError::Reserved => RetryHint::Never,
            _ => retry_hint(status, delays),
        },
    }
}

fn retry_hint(status: u16, delays: &RetryDelays) -> RetryHint {
    if status & DO_NOT_RETRY != 0 {
        return RetryHint::Never;
    }
    let which = usize::from((status >> RETRY_DELAY_SHIFT) & 3).checked_sub(1);
    match which.and_then(|which| delays.get(which)) {
        None | Some(0) => RetryHint::Now,
        Some(tenths) => RetryHint::After(*tenths),
    }
}

fn generic(code: u16) -> CmdError {
    match code {
        // Invalid Command Opcode, Invalid Field, Invalid Namespace (detached meanwhile).
        0x01 | 0x02 | 0x0b => CmdError::Unsupported,
        // Aborted: Power Loss Notification, Requested, SQ Deletion, Failed or Missing Fused,
        // Preempt.
        0x05 | 0x07..=0x0a => CmdError::Aborted,
        // LBA Out of Range.
        0x80 => CmdError::Range,
        // Command Interrupted, Namespace Not Ready.
        0x21 | 0x82 => CmdError::NotReady,
        // Capacity Exceeded.
        0x81 => CmdError::NoSpace,
        // Reservation Conflict.
        0x83 => CmdError::Reserved,
        _ => CmdError::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_specification_has_them() {
        let cqe = Cqe((0x8281 << 49) | (1 << 48) | (0x7123 << 32) | (5 << 16) | 0x00fe);
        assert!(cqe.phase());
        assert_eq!((cqe.cid(), cqe.status()), (0x7123, 0x0281));
        assert_eq!((cqe.sq_id(), cqe.sq_head()), (5, 0xfe));
        assert!(cqe.is_from(5, 0xff) && !cqe.is_from(5, 0xfe) && !cqe.is_from(4, 0xff));
    }

    #[test]
    fn generations_wrap_within_the_slot() {
        let cids = Cids::new(0, true);
        let mut cid = cids.of(0xfff);
        for at in 0..16 {
            assert_eq!(cids.tag_of(cid), 0xfff);
            assert_eq!(cid, (at << 12) | 0xfff);
            cid = cids.next(cid);
        }
        assert_eq!(cid, 0xfff);
    }

    #[test]
    fn small_cids_begin_where_they_are_told_and_stay() {
        let cids = Cids::new(32, false);
        assert_eq!((cids.of(0), cids.of(254)), (32, 286));
        assert_eq!((cids.tag_of(32), cids.tag_of(286)), (0, 254));
        assert_eq!(cids.next(286), 286);
        // An admin command's.
        assert!(cids.tag_of(31) >= TAGS_MAX);
    }

    const DELAYS: RetryDelays = [3, 0, 600];

    #[test]
    fn statuses_become_kinds() {
        let cases = [
            (0x0000, Ok(())),
            (0x7800, Ok(())),
            (0x0001, Err(CmdError::Unsupported)),
            (0x4002, Err(CmdError::Unsupported)),
            (0x0004, Err(CmdError::Io)),
            (0x0006, Err(CmdError::Io)),
            (0x0007, Err(CmdError::Aborted)),
            (0x400b, Err(CmdError::Unsupported)),
            (0x0013, Err(CmdError::Io)),
            (0x001d, Err(CmdError::Io)),
            (0x0020, Err(CmdError::Io)),
            (0x0021, Err(CmdError::NotReady)),
            (0x4080, Err(CmdError::Range)),
            (0x0081, Err(CmdError::NoSpace)),
            (0x0082, Err(CmdError::NotReady)),
            (0x4082, Err(CmdError::NotReady)),
            (0x0083, Err(CmdError::Reserved)),
            (0x0084, Err(CmdError::Io)),
            (0x0180, Err(CmdError::Unsupported)),
            (0x0181, Err(CmdError::Protection)),
            (0x0182, Err(CmdError::Medium)),
            (0x0183, Err(CmdError::Io)),
            (0x0280, Err(CmdError::Medium)),
            (0x0281, Err(CmdError::Medium)),
            (0x4281, Err(CmdError::Medium)),
            (0x0282, Err(CmdError::Protection)),
            (0x0285, Err(CmdError::Medium)),
            (0x0286, Err(CmdError::Medium)),
            (0x0287, Err(CmdError::Medium)),
            (0x0288, Err(CmdError::Io)),
            (0x0370, Err(CmdError::Path)),
            (0x0371, Err(CmdError::Aborted)),
            (0x07ff, Err(CmdError::Io)),
        ];
        for (status, expected) in cases {
            let kind = outcome(status, &DELAYS).map_err(|failure| failure.error);
            assert_eq!(kind, expected, "status {status:#06x}");
        }
    }

    #[test]
    fn the_device_says_whether_and_when_again() {
        let cases = [
            (0x0281, RetryHint::Now),
            (0x4281, RetryHint::Never),
            (0x0881, RetryHint::After(3)),
            (0x1081, RetryHint::Now),
            (0x1881, RetryHint::After(600)),
            // Do Not Retry comes first; More says nothing of it.
            (0x5881, RetryHint::Never),
            (0x2281, RetryHint::Now),
            // A reservation conflict is for good.
            (0x0083, RetryHint::Never),
            (0x0883, RetryHint::Never),
        ];
        for (status, again) in cases {
            let failure = outcome(status, &DELAYS).map_err(|failure| failure.retry);
            assert_eq!(failure, Err(again), "status {status:#06x}");
        }
    }
}
