// SPDX-License-Identifier: GPL-2.0
//! Commands of the operator's tools: admin commands (Identify, Get Log Page, ...), and I/O commands
//! (Read, Write, Compare, Verify, ...; NVM Command Set 1.0 section 3.2), with data in memory of the
//! caller's.
//!
//! The device may touch that memory until it has answered. Where it does not answer in time, a
//! handle of the memory is kept until the controller is disabled.
//!
//! # The tools' queue pair
//! I/O commands go by a queue pair that the controller grants and the layers above have no use for,
//! so their data path knows nothing of it: one command at a time, polled with sleeps. It is made
//! when the first such command comes, and is gone with the next reset.
//!
//! # Effects
//! What an admin command changes, of the namespaces and for I/O in flight, is said by the log page
//! Commands Supported and Effects (Base 2.0 section 5.16.1.6). It is read once after each start of
//! the controller, when a command is first passed through: other firmware may say other things.

use hal::{poll_until, Backoff, Deadline, DmaMem, Error, Mmio, Platform, Queue, TagBatch};

use crate::admin::{AdminStep, Cns, IDENTIFY_BYTES, TIMEOUT_US};
use crate::cqe::AdminReply;
use crate::ctrl::{Log, NvmeController, PassthruQueue, State, Structure};
use crate::ns::NamespaceId;
use crate::queue::{NvmeDrain, NvmeIssue};
use crate::sqe::Sqe;
use crate::{admin, regs};

/// Bits 15:14 (PSDT) and 9:8 (FUSE) of the first dword, which are the driver's to say.
const DRIVERS_BITS: u64 = 0xc300;

/// Opcodes of admin commands (figure 138).
const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
const NAMESPACE_MANAGEMENT: u8 = 0x0d;
const FIRMWARE_DOWNLOAD: u8 = 0x11;
const NAMESPACE_ATTACHMENT: u8 = 0x15;
const FORMAT_NVM: u8 = 0x80;
const SECURITY_SEND: u8 = 0x81;
const SECURITY_RECEIVE: u8 = 0x82;
const SANITIZE: u8 = 0x84;

/// Opcodes of I/O commands.
const FLUSH: u8 = 0x00;
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const WRITE_UNCORRECTABLE: u8 = 0x04;
const COMPARE: u8 = 0x05;
const WRITE_ZEROES: u8 = 0x08;
const DATASET_MANAGEMENT: u8 = 0x09;
const VERIFY: u8 = 0x0c;
/// Opcodes of reservations: Register, Report, Acquire, Release.
pub(crate) const REGISTER: u8 = 0x0d;
pub(crate) const REPORT: u8 = 0x0e;
pub(crate) const ACQUIRE: u8 = 0x11;
pub(crate) const RELEASE: u8 = 0x15;

/// Bytes of a range of Dataset Management.
const RANGE_BYTES: u64 = 16;
/// Bytes of the data structures of reservations: two keys of Register and Acquire, one of Release.
pub(crate) const KEYS_BYTES: usize = 16;
pub(crate) const KEY_BYTES: usize = 8;
/// How long a command may take, in microseconds, as any I/O (`io_timeout`).
const IO_TIMEOUT_US: u64 = 30_000_000;
/// The first and the longest pause between two looks at the tools' queue, in microseconds.
const PAUSES: Backoff = Backoff::new(20, 2_000);

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// Sends the admin command `sqe`, all of whose `data` (a multiple of 4 bytes, up to 2 MiB) the
    /// device may read or write. CID, data pointer and metadata pointer are filled in. `timeout_ms`
    /// of 0 is the driver's own, a minute; it is up soon where `wanted` says that the control path
    /// is ([`Deadline::preemptible`]). Sleeps; under the same mutex as the control path.
    ///
    /// A status other than success is in the reply. [`Error::Invalid`]: a command that would take
    /// queues or memory from under the driver, or too much data. [`Error::Timeout`]: the controller
    /// has to be stopped and started again; until then it keeps a handle of `data`, which the
    /// device may still touch.
    pub fn admin(
        &self,
        mut sqe: Sqe,
        data: Option<&P::Dma>,
        timeout_ms: u32,
        wanted: &dyn Fn() -> bool,
    ) -> Result<AdminReply, Error> {
        let mut state = self.state()?;
        if !admin::is_passthru_allowed(&sqe) {
            return Err(Error::Invalid);
        }
        self.progress.at(AdminStep::PassThrough);
        self.fill_in(&mut sqe, data)?;
        let deadline = deadline(timeout_ms, TIMEOUT_US, wanted);
        let reply = self.admin.submit(&self.platform, &self.mmio, sqe, deadline);
        if reply.is_err() && state.deferred.data.is_none() {
            state.deferred.data = data.cloned();
        }
        reply
    }

    /// Fills in what is the driver's to say of a tool's command: where `data` is, and no metadata.
    fn fill_in(&self, sqe: &mut Sqe, data: Option<&P::Dma>) -> Result<(), Error> {
        let [first, _, metadata, prp1, prp2, ..] = sqe;
        *first &= !DRIVERS_BITS;
        *metadata = 0;
        [*prp1, *prp2] = match data {
            Some(data) => self.point_at(data)?,
            None => [0, 0],
        };
        Ok(())
    }

    /// PRP 1 and 2 of contiguous `data`, with the list in the third page.
    fn point_at(&self, data: &P::Dma) -> Result<[u64; 2], Error> {
        let page = self.page();
        let (bus, bytes) = (data.bus_addr(), data.len());
        let mask = page.wrapping_sub(1) as u64;
        if bus & mask != 0 || bytes % 4 != 0 {
            return Err(Error::Invalid);
        }
        // How many pages beyond the first.
        let shift = u32::from(self.cap.page_shift_min());
        let further = bytes.saturating_sub(1).wrapping_shr(shift);
        let address = |n: usize| bus.wrapping_add(n.saturating_mul(page) as u64);
        if further <= 1 {
            return Ok([bus, if further == 1 { address(1) } else { 0 }]);
        }
        if further > page / 8 {
            return Err(Error::Invalid);
        }
        let list = page.saturating_mul(2);
        for n in 0..further {
            let place = list.wrapping_add(n.wrapping_mul(8));
            self.pages.write64(place, address(n.wrapping_add(1)));
        }
        // The rest is the data's last page, and not what an earlier command has left there: a
        // device that transfers more than the tool has room for reaches nobody else's memory by it.
        for n in further..page / 8 {
            self.pages
                .write64(list.wrapping_add(n.wrapping_mul(8)), address(further));
        }
        Ok([bus, self.pages.bus_addr().wrapping_add(list as u64)])
    }
}

/// Bytes that the device transfers for the admin command `sqe`, where that follows from the command
/// alone: with less room its data would go where nobody has said.
pub fn admin_bytes(sqe: &Sqe) -> Option<u64> {
    let [first, _, _, _, _, dwords, _, _] = *sqe;
    let (dword10, dword11) = (dwords & 0xffff_ffff, dwords >> 32);
    // CAST: bits 7:0 are the opcode.
    match first as u8 {
        IDENTIFY => Some(IDENTIFY_BYTES as u64),
        GET_LOG_PAGE => {
            let dwords = (dword10 >> 16) | ((dword11 & 0xffff) << 16);
            Some(dwords.wrapping_add(1).wrapping_mul(4))
        }
        FIRMWARE_DOWNLOAD => Some(dword10.wrapping_add(1).wrapping_mul(4)),
        SECURITY_SEND | SECURITY_RECEIVE => Some(dword11),
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
        let view = self.identify(AdminStep::IdentifyNamespace, Cns::Namespace, nsid)?;
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
    /// that the control path is ([`Deadline::preemptible`]). Sleeps; under the same mutex as the
    /// control path, while the namespace's format does not change.
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
        let queue = self.passthru_queue(&mut state)?;
        self.progress.at(AdminStep::IoPassThrough);
        self.fill_in(&mut sqe, data)?;
        let deadline = deadline(timeout_ms, IO_TIMEOUT_US, wanted);
        queue.submit(&self.platform, &self.mmio, sqe, data, deadline)
    }
}

/// When a tool's command is given up: after `timeout_ms`, or `usual_us` where that is 0.
fn deadline(timeout_ms: u32, usual_us: u64, wanted: &dyn Fn() -> bool) -> Deadline<'_> {
    let timeout_us = match timeout_ms {
        0 => usual_us,
        ms => u64::from(ms).saturating_mul(1000),
    };
    Deadline::preemptible(timeout_us, wanted)
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
        REGISTER | ACQUIRE => Some(KEYS_BYTES as u64),
        RELEASE => Some(KEY_BYTES as u64),
        REPORT => {
            let dwords = (dword10 & 0xffff_ffff).wrapping_add(1);
            Some(dwords.wrapping_mul(4))
        }
        FLUSH | WRITE_UNCORRECTABLE | WRITE_ZEROES | VERIFY => Some(0),
        _ => None,
    }
}

/// Whether an I/O command of `opcode` may change what is on the disk, or who may write it. Of one
/// that is not known nothing good is assumed.
pub const fn may_change(opcode: u8) -> bool {
    !matches!(opcode, FLUSH | READ | COMPARE | VERIFY | REPORT)
}

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// The tools' queue pair, made if there is none yet.
    ///
    /// [`Error::Unsupported`]: the controller grants no pair that the layers above leave.
    /// [`Error::Timeout`]: it is not known what the controller has; it has to be stopped.
    fn passthru_queue<'a>(
        &self,
        state: &'a mut State<P, M>,
    ) -> Result<&'a mut PassthruQueue<P, M>, Error> {
        if state.deferred.passthru.is_none() {
            self.create_passthru_queue(state)?;
        }
        state.deferred.passthru.as_mut().ok_or(Error::Unsupported)
    }

    fn create_passthru_queue(&self, state: &mut State<P, M>) -> Result<(), Error> {
        let about = state.about.ok_or(Error::Invalid)?;
        if state.queues >= about.limits.queues {
            return Err(Error::Unsupported);
        }
        let pair = self.create_queue_pair(state, state.queues.saturating_add(1), 1, None);
        if state.deferred.queue.is_some() {
            // The device may have the queue: it is to be disabled.
            return Err(Error::Timeout);
        }
        let (queue, _) = pair?;
        state.deferred.passthru = Some(PassthruQueue {
            queue,
            issue: NvmeIssue::default(),
            drain: NvmeDrain::new(),
            busy: false,
            data: None,
        });
        Ok(())
    }
}

impl<P: Platform, M: Mmio> PassthruQueue<P, M>
where
    P::Dma: Clone,
{
    /// Sends `sqe` (its CID is filled in), which points to `data`, and sleeps until it is answered.
    /// One caller at a time.
    ///
    /// [`Error::Timeout`]: the data stays the device's until it is disabled, and nothing more can
    /// be sent before.
    fn submit(
        &mut self,
        platform: &P,
        mmio: &M,
        sqe: Sqe,
        data: Option<&P::Dma>,
        deadline: Deadline<'_>,
    ) -> Result<AdminReply, Error> {
        regs::alive(mmio)?;
        if self.busy {
            return Err(Error::Timeout);
        }
        let mut free = self.queue.get_free_tags(&mut self.issue, 1);
        let mut bound = TagBatch::default();
        (free.pop())
            .and_then(|tag| self.queue.bind_sqe(&mut self.issue, tag, sqe))
            .and_then(|tag| bound.push(tag).ok())
            .ok_or(Error::Fatal)?;
        (self.busy, self.data) = (true, data.cloned());
        self.queue.issue_tags(&mut self.issue, &mut bound);
        let reply = self.wait(platform, mmio, deadline)?;
        (self.busy, self.data) = (false, None);
        Ok(reply)
    }

    fn wait(
        &mut self,
        platform: &P,
        mmio: &M,
        deadline: Deadline<'_>,
    ) -> Result<AdminReply, Error> {
        poll_until(platform, deadline, PAUSES, || {
            let Some((tag, reply)) = self.queue.fetch_reply(&mut self.drain) else {
                return regs::alive(mmio).map(|()| None);
            };
            let mut done = TagBatch::default();
            // There is room: the batch is empty.
            let _ = done.push(self.queue.detach_tag_cmd(&mut self.drain, tag));
            self.queue.release_tags(&mut self.drain, &mut done);
            Ok(Some(reply))
        })
    }
}

/// What a command changes for the layers above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// No I/O may be under way beside it.
    pub exclusive: bool,
    /// Which namespaces there are, or what they are.
    pub namespaces: bool,
    /// What the controller is able to, which is asked for at a start only.
    pub capabilities: bool,
}

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// The side effects of the admin command `sqe`. Sleeps; under the same mutex as the control
    /// path.
    pub fn effects(&self, sqe: &Sqe) -> Result<Effects, Error> {
        // CAST: bits 7:0 are the opcode.
        let opcode = sqe[0] as u8;
        let mut state = self.state()?;
        let log = match state.effects {
            Some(log) => log,
            None => self.read_effects(&mut state)?,
        };
        let said = log.get(usize::from(opcode)).copied().unwrap_or(0);
        Ok(Effects::of(opcode, unpack(said)))
    }

    fn read_effects(&self, state: &mut State<P, M>) -> Result<Log, Error> {
        let mut log = [0; 256];
        let about = state.about.ok_or(Error::Invalid)?;
        if about.id.has_effects_log {
            let base = self.page();
            let to = self.pages.bus_addr().wrapping_add(base as u64);
            match self.command(AdminStep::EffectsLog, admin::log_page(LOG, LOG_BYTES, to)) {
                Ok(_) => {
                    let view = Structure {
                        memory: &self.pages,
                        base,
                    };
                    for (place, at) in log.iter_mut().zip((0usize..).step_by(4)) {
                        *place = pack(view.u32(at));
                    }
                }
                // Then nothing is said.
                Err(Error::Refused(_)) => {}
                Err(why) => return Err(why),
            }
        }
        state.effects = Some(log);
        Ok(log)
    }
}

/// Namespace capability change, namespace inventory change.
const NCC_NIC: u32 = (1 << 2) | (1 << 3);
/// Controller capability change.
const CCC: u32 = 1 << 4;
/// Command submission and execution relaxations (2.0): where one is said, CSE is for hosts that
/// don't know them.
const CSER: u32 = 3 << 14;
/// Command submission and execution: beside what it may not run.
const CSE: u32 = 7 << 16;
/// The log page, and its bytes.
const LOG: u8 = 0x05;
const LOG_BYTES: usize = 4096;

impl Effects {
    /// Those that the log's entry says.
    fn decode(entry: u32) -> Self {
        Self {
            exclusive: entry & CSE != 0 && entry & CSER == 0,
            namespaces: entry & NCC_NIC != 0,
            capabilities: entry & CCC != 0,
        }
    }

    /// What the log says of `opcode`, if there is one, and what is known whatever it says. Format,
    /// Sanitize and Security Receive are as in tree (`nvme_init_known_nvm_effects`, Linux 7.3); the
    /// namespaces' own commands are here because their asynchronous event is not waited for.
    fn of(opcode: u8, entry: u32) -> Self {
        let said = Self::decode(entry);
        match opcode {
            FORMAT_NVM => Self {
                exclusive: true,
                namespaces: true,
                ..said
            },
            SANITIZE => Self {
                exclusive: true,
                ..said
            },
            // Exclusive beside other security commands, and not beside I/O.
            SECURITY_RECEIVE => Self {
                exclusive: false,
                ..said
            },
            NAMESPACE_MANAGEMENT | NAMESPACE_ATTACHMENT => Self {
                namespaces: true,
                ..said
            },
            _ => said,
        }
    }

    /// Whether the disks have to be frozen for it, and looked at anew.
    pub fn change_disks(&self) -> bool {
        self.exclusive || self.namespaces
    }
}

/// Bits of an entry of [`Log`]: the fields of [`Effects`].
const EXCLUSIVE: u8 = 1;
const NAMESPACES: u8 = 2;
const CAPABILITIES: u8 = 4;

fn pack(entry: u32) -> u8 {
    let said = Effects::decode(entry);
    let bit = |on: bool, bit: u8| if on { bit } else { 0 };
    bit(said.exclusive, EXCLUSIVE)
        | bit(said.namespaces, NAMESPACES)
        | bit(said.capabilities, CAPABILITIES)
}

fn unpack(said: u8) -> u32 {
    let bits = |bit: u8, bits: u32| if said & bit != 0 { bits } else { 0 };
    bits(EXCLUSIVE, CSE) | bits(NAMESPACES, NCC_NIC) | bits(CAPABILITIES, CCC)
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

    #[test]
    fn what_is_known_holds_whatever_the_log_says() {
        let exclusive = |opcode, entry| Effects::of(opcode, entry).exclusive;
        let namespaces = |opcode, entry| Effects::of(opcode, entry).namespaces;
        assert!(exclusive(FORMAT_NVM, 0) && namespaces(FORMAT_NVM, 0));
        assert!(exclusive(FORMAT_NVM, CSER | CSE));
        assert!(exclusive(SANITIZE, 0) && !namespaces(SANITIZE, 0));
        assert!(!exclusive(SECURITY_RECEIVE, CSE));
        assert!(namespaces(NAMESPACE_MANAGEMENT, 0) && namespaces(NAMESPACE_ATTACHMENT, 0));
        assert_eq!(Effects::of(0x06, 0), Effects::default());
    }

    #[test]
    fn entries_are_what_the_specification_has() {
        let said = |entry| {
            let said = Effects::of(0xc0, unpack(pack(entry)));
            (said.exclusive, said.namespaces, said.capabilities)
        };
        assert_eq!(said(0x0000_0003), (false, false, false), "CSUPP, LBCC");
        assert_eq!(said(1 << 2), (false, true, false));
        assert_eq!(said(1 << 3), (false, true, false));
        assert_eq!(said(1 << 4), (false, false, true));
        for cse in 1..8 {
            assert_eq!(said(cse << 16), (true, false, false));
            assert_eq!(said((cse << 16) | (1 << 14)), (false, false, false));
            assert_eq!(said((cse << 16) | (1 << 15)), (false, false, false));
        }
        assert_eq!(said(u32::MAX), (false, true, true));
        assert_eq!(said(0xfff8_0000), (false, false, false));
    }
}
