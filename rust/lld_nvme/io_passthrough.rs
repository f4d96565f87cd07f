// SPDX-License-Identifier: GPL-2.0
//! I/O commands of the operator's tools (Read, Write, Compare, Verify, ...), with data in memory of
//! the caller's (NVM Command Set 1.0 section 3.2).

use crate::admin::AdminReply;
use crate::command::Sqe;
use crate::controller::NvmeController;
use crate::identify::Cns;
use crate::namespace::NamespaceId;
use crate::passthrough::DRIVERS_BITS;
use crate::reservation::{self, KEYS_BYTES, KEY_BYTES};
use crate::step::Step;
use hal::{Deadline, DmaMem, Error, Mmio, Platform};

const FLUSH: u8 = 0x00;
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const WRITE_UNCORRECTABLE: u8 = 0x04;
const COMPARE: u8 = 0x05;
const WRITE_ZEROES: u8 = 0x08;
const DATASET_MANAGEMENT: u8 = 0x09;
const VERIFY: u8 = 0x0c;

/// Bytes of a range of Dataset Management.
const RANGE_BYTES: u64 = 16;
/// How long a command may take, in microseconds, as any I/O (`io_timeout`).
const TIMEOUT_US: u64 = 30_000_000;

/// Whether an I/O command of `opcode` may change what is on the disk, or who may write it. Of one
/// that is not known nothing good is assumed.
pub const fn may_change(opcode: u8) -> bool {
    !matches!(
        opcode,
        FLUSH | READ | COMPARE | VERIFY | reservation::REPORT
    )
}

/// Bytes that the device transfers for `sqe`, in blocks of `1 << shift` bytes; `None`: not known.
fn bytes(sqe: &Sqe, shift: u8) -> Option<u64> {
    let [first, _, _, _, _, dword10, dword12, _] = *sqe;
    // CAST: bits 7:0 are the opcode.
    match first as u8 {
        READ | WRITE | COMPARE => {
            let blocks = (dword12 & 0xffff).wrapping_add(1);
            Some(blocks.wrapping_shl(u32::from(shift)))
        }
        DATASET_MANAGEMENT => {
            let ranges = (dword10 & 0xff).wrapping_add(1);
            Some(ranges.wrapping_mul(RANGE_BYTES))
        }
        reservation::REGISTER | reservation::ACQUIRE => Some(KEYS_BYTES as u64),
        reservation::RELEASE => Some(KEY_BYTES as u64),
        reservation::REPORT => {
            let dwords = (dword10 & 0xffff_ffff).wrapping_add(1);
            Some(dwords.wrapping_mul(4))
        }
        FLUSH | WRITE_UNCORRECTABLE | WRITE_ZEROES | VERIFY => Some(0),
        _ => None,
    }
}

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// Log2 of the bytes of namespace `nsid`'s blocks, as the device says now. Sleeps; under the
    /// same mutex as the control path.
    ///
    /// [`Error::Unsupported`]: its blocks have metadata or protection information.
    /// [`Error::Invalid`]: it is not there.
    pub fn block_shift(&self, nsid: u32) -> Result<u8, Error> {
        let _state = self.state()?;
        self.shift_of(nsid)
    }

    fn shift_of(&self, nsid: u32) -> Result<u8, Error> {
        let view = self.identify(Step::IdentifyNamespace, Cns::Namespace, nsid)?;
        let id = NamespaceId::decode(&view);
        match id {
            _ if id.blocks == 0 => Err(Error::Invalid),
            _ if id.metadata != 0 || id.protected => Err(Error::Unsupported),
            _ => Ok(id.lbads),
        }
    }

    /// Sends the I/O command `sqe` to namespace `nsid`, which it names; the device may read or
    /// write all of `data` (a multiple of 4 bytes). CID, data pointer and metadata pointer are
    /// filled in. `timeout_ms` of 0 is the driver's own, 30 s; it is up soon where `wanted` says
    /// that the control path is ([`Deadline::unless`]). Sleeps; under the same mutex as the control
    /// path, while the namespace's format does not change.
    ///
    /// A status other than success is in the reply. [`Error::Invalid`]: it names another namespace,
    /// transfers more than `data`, or that is more than a command may have. [`Error::Unsupported`]:
    /// there is no queue for it, or the namespace's format is not served. [`Error::Timeout`]: as of
    /// [`NvmeController::admin`].
    pub fn io(
        &self,
        nsid: u32,
        mut sqe: Sqe,
        data: Option<&P::Dma>,
        timeout_ms: u32,
        wanted: &dyn Fn() -> bool,
    ) -> Result<AdminReply, Error> {
        let mut state = self.state()?;
        let about = state.about.ok_or(Error::Invalid)?;
        if sqe[0] >> 32 != u64::from(nsid) {
            return Err(Error::Invalid);
        }
        let room = data.map_or(0, |data| data.len() as u64);
        // Blocks are as large as they are now: asked for under the same mutex.
        let needed = bytes(&sqe, self.shift_of(nsid)?).unwrap_or(0);
        if needed > room || room > u64::from(about.limits.max_transfer) {
            return Err(Error::Invalid);
        }
        let queue = self.tool_queue(&mut state)?;
        self.progress.at(Step::IoPassThrough);
        let [first, _, metadata, prp1, prp2, ..] = &mut sqe;
        *first &= !DRIVERS_BITS;
        *metadata = 0;
        [*prp1, *prp2] = match data {
            Some(data) => self.point_at(data)?,
            None => [0, 0],
        };
        let timeout_us = match timeout_ms {
            0 => TIMEOUT_US,
            ms => u64::from(ms).saturating_mul(1000),
        };
        let deadline = Deadline::unless(timeout_us, wanted);
        queue.submit(&self.platform, &self.mmio, sqe, data, deadline)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_transferred_is_what_the_command_says() {
        let sqe = |opcode: u8, dword10, dword12| {
            let first = u64::from(opcode) | (1 << 32);
            [first, 0, 0, 0, 0, dword10, dword12, 0]
        };
        for opcode in [READ, WRITE, COMPARE] {
            assert_eq!(bytes(&sqe(opcode, 0, 0), 9), Some(512));
            assert_eq!(bytes(&sqe(opcode, 7, 0xffff_0007), 12), Some(32_768));
            assert_eq!(bytes(&sqe(opcode, 0, 0xffff), 12), Some(1 << 28));
        }
        assert_eq!(bytes(&sqe(DATASET_MANAGEMENT, 0, 0), 9), Some(16));
        assert_eq!(bytes(&sqe(DATASET_MANAGEMENT, 0x1ff, 0), 9), Some(4096));
        assert_eq!(bytes(&sqe(WRITE_ZEROES, 0, 0xffff), 9), Some(0));
        for (opcode, expected) in [(0x0d, 16), (0x11, 16), (0x15, 8)] {
            assert_eq!(bytes(&sqe(opcode, 0xffff_ffff, 7), 9), Some(expected));
        }
        // Dword 11 is no part of the report's length.
        assert_eq!(bytes(&sqe(0x0e, 1 << 32, 0), 9), Some(4));
        assert_eq!(bytes(&sqe(0x0e, 0xffff_ffff, 0), 9), Some(1 << 34));
        assert_eq!(bytes(&sqe(0xc1, 0, 0), 9), None);
    }

    #[test]
    fn what_is_not_known_may_change_the_disk() {
        for opcode in 0..=u8::MAX {
            let reads = matches!(opcode, 0x00 | 0x02 | 0x05 | 0x0c | 0x0e);
            assert_eq!(may_change(opcode), !reads, "{opcode:#04x}");
        }
    }
}
