// SPDX-License-Identifier: GPL-2.0
//! The admin queue pair and the commands that go by it (Base 2.0 section 5).
//!
//! One command is sent at a time and polled for with sleeps. Beside it an Asynchronous Event
//! Request is outstanding, which the controller answers when it has something to say.
//!
//! # Who takes a completion
//! Whoever sees it: normally the thread that waits; with a pin also the interrupt handler, because
//! an entry that nobody takes keeps the line up. The two agree by one atomic exchange of the head,
//! so the handler never depends on the thread that it interrupted.
//!
//! # Commands
//! Each is a function that makes a submission queue entry; what data it has is at the bus address
//! that it is given. [`AdminStep`] names them, and what else the control path may be at, so that a
//! failure can be told by name.

use cell::sync::{fence, AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};
use hal::{poll_until, Backoff, Deadline, DmaMem, Error, Mmio, Platform, Steps};

use crate::cqe::{AdminReply, Cqe};
use crate::queue::paged;
use crate::sqe::Sqe;
use crate::timeout_report::QueueReport;
use crate::{cqe, regs, sqe, timeout_report};

/// Entries of each of the two queues; 2 would do.
const ENTRIES: u16 = 16;
/// How long a command of the driver's own may take, in microseconds; the specification gives no
/// bound.
pub(crate) const TIMEOUT_US: u64 = 60_000_000;
/// Between two polls for an answer.
const PAUSES: Backoff = Backoff::new(20, 2_000);

/// The CID of the Asynchronous Event Request; no other admin command has it.
const EVENT_CID: u16 = 0;
/// Set in `head` on the passes whose entries have phase 0.
const SECOND_PASS: u32 = 1 << 16;

// Small CIDs are those of a mask, and none of an I/O queue's.
const _: () = assert!(ENTRIES.is_power_of_two() && ENTRIES <= crate::quirks::ADMIN_CIDS);

/// The queue pair, shared by the control path and the interrupt.
pub(crate) struct Admin<P: Platform> {
    sq: P::Dma,
    cq: P::Dma,
    stride: usize,
    /// The largest CID: all bits below its highest are set.
    cid_mask: u16,
    /// The control path's: where the next command goes, and its CID.
    tail: AtomicU16,
    /// The entry to look at next, and whether its pass is an even one: see [`SECOND_PASS`].
    head: AtomicU32,
    /// The head that the controller knows.
    acked_head: AtomicU16,
    /// The CID that is waited for.
    cid: AtomicU16,
    /// The reply: written before `answered`.
    result: AtomicU64,
    status: AtomicU16,
    answered: AtomicBool,
    /// The Asynchronous Event Request and its answer.
    pub(crate) event: EventSlot,
    /// A command was not answered in time, so its memory and the queue are the device's until it is
    /// disabled.
    lost: AtomicBool,
}

/// The admin queues, as registers want them.
pub(crate) struct AdminBase {
    pub(crate) sq: u64,
    pub(crate) cq: u64,
    /// Entries of each.
    pub(crate) entries: u16,
}

/// The one request that is outstanding, and the answer to it. Every controller takes one (AERL).
pub(crate) struct EventSlot {
    /// The request is with the controller.
    armed: AtomicBool,
    /// An event has been reported and was not taken yet.
    pending: AtomicBool,
    /// Dword 0 of the answer, and above it the status; written before `pending`.
    answer: AtomicU64,
}

impl<P: Platform> Admin<P> {
    /// `small_cids`: as many as there are entries.
    pub(crate) fn new(
        platform: &P,
        stride: usize,
        page: usize,
        small_cids: bool,
    ) -> Result<Self, Error> {
        let bytes = |entry: usize| usize::from(ENTRIES).saturating_mul(entry);
        Ok(Self {
            sq: paged(platform, bytes(sqe::SQE_BYTES), page)?,
            cq: paged(platform, bytes(cqe::BYTES), page)?,
            stride,
            cid_mask: match small_cids {
                true => ENTRIES.wrapping_sub(1),
                false => u16::MAX,
            },
            tail: AtomicU16::new(0),
            head: AtomicU32::new(0),
            acked_head: AtomicU16::new(0),
            cid: AtomicU16::new(0),
            result: AtomicU64::new(0),
            status: AtomicU16::new(0),
            answered: AtomicBool::new(false),
            event: EventSlot::new(),
            lost: AtomicBool::new(true),
        })
    }

    /// Makes the queues as a disabled controller expects them. Returns where they are.
    pub(crate) fn rewind(&self) -> AdminBase {
        self.cq.zero(0, self.cq.len());
        self.tail.store(0, Ordering::Relaxed);
        self.acked_head.store(0, Ordering::Relaxed);
        self.head.store(0, Ordering::Relaxed);
        self.answered.store(false, Ordering::Relaxed);
        self.event.forget();
        self.lost.store(false, Ordering::Release);
        AdminBase {
            sq: self.sq.bus_addr(),
            cq: self.cq.bus_addr(),
            entries: ENTRIES,
        }
    }

    /// A command can't be sent any more: the controller is disabled, or an answer is missing.
    pub(crate) fn close(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    /// A command was not answered, or none can be sent.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Sends `sqe` (its CID is filled in) and sleeps until it is answered. One caller at a time.
    ///
    /// [`Error::Timeout`]: the memory of the command stays the device's until it is disabled, and
    /// nothing more can be sent before.
    pub(crate) fn submit<M: Mmio>(
        &self,
        platform: &P,
        mmio: &M,
        sqe: Sqe,
        deadline: Deadline<'_>,
    ) -> Result<AdminReply, Error> {
        regs::alive(mmio)?;
        if self.lost.load(Ordering::Acquire) {
            return Err(Error::Timeout);
        }
        let cid = match self.cid.load(Ordering::Relaxed).wrapping_add(1) & self.cid_mask {
            EVENT_CID => EVENT_CID.wrapping_add(1),
            cid => cid,
        };
        self.answered.store(false, Ordering::Relaxed);
        self.cid.store(cid, Ordering::Release);
        self.put(mmio, sqe, cid);
        self.wait(platform, mmio, deadline)
    }

    /// Sends the Asynchronous Event Request `sqe`, unless one is with the controller. One caller at
    /// a time, which is that of [`Admin::submit`].
    pub(crate) fn arm<M: Mmio>(&self, mmio: &M, sqe: Sqe) {
        if !self.is_lost() && self.event.arm() {
            self.put(mmio, sqe, EVENT_CID);
        }
    }

    /// Tells the controller of `sqe`, as command `cid`. There is room: two are outstanding at most.
    fn put<M: Mmio>(&self, mmio: &M, mut sqe: Sqe, cid: u16) {
        let at = self.tail.load(Ordering::Relaxed);
        let tail = after(at);
        if let Some(first) = sqe.first_mut() {
            *first = (*first & !(0xffff << 16)) | (u64::from(cid) << 16);
        }
        self.sq.write_words(sqe::offset(at), sqe);
        self.tail.store(tail, Ordering::Relaxed);
        mmio.write32(
            regs::DOORBELLS.wrapping_add(regs::sq_doorbell(0, self.stride)),
            u32::from(tail),
        );
    }

    fn wait<M: Mmio>(
        &self,
        platform: &P,
        mmio: &M,
        deadline: Deadline<'_>,
    ) -> Result<AdminReply, Error> {
        let reply = poll_until(platform, deadline, PAUSES, || {
            self.collect(mmio);
            if !self.answered.swap(false, Ordering::Acquire) {
                return regs::alive(mmio).map(|()| None);
            }
            Ok(Some(AdminReply {
                result: self.result.load(Ordering::Relaxed),
                status: self.status.load(Ordering::Relaxed),
            }))
        });
        if reply.is_err() {
            self.close();
        }
        reply
    }
}

impl<P: Platform> Admin<P> {
    /// Takes what the controller has completed, at most once around; whether an event was among
    /// it. Any context; several may at once.
    pub(crate) fn collect<M: Mmio>(&self, mmio: &M) -> bool {
        let mut any = false;
        for _ in 0..ENTRIES {
            let state = self.head.load(Ordering::Acquire);
            let Some(entry) = self.next(state) else {
                break;
            };
            fence(Ordering::Acquire);
            // CAST: the low half is the index.
            let at = state as u16;
            let result = self.cq.read64(cqe::offset(at));
            let ours = entry.is_from(0, ENTRIES);
            if ours && entry.cid() == EVENT_CID {
                any = true;
                // Before the head moves: who finds it moved finds the event.
                self.event.answer(result, entry.status());
            }
            let head = after(at);
            let wrapped = if head == 0 { SECOND_PASS } else { 0 };
            let next = (state & SECOND_PASS ^ wrapped) | u32::from(head);
            let won = self
                .head
                .compare_exchange(state, next, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
            // Before the next entry is looked at: see `has_event`.
            fence(Ordering::SeqCst);
            // One that nobody waits for is dropped.
            let cid = self.cid.load(Ordering::Acquire);
            if won && ours && entry.cid() == cid && cid != EVENT_CID {
                self.result.store(result, Ordering::Relaxed);
                self.status.store(entry.status(), Ordering::Relaxed);
                self.answered.store(true, Ordering::Release);
            }
        }
        self.ring_head(mmio);
        any
    }

    /// The entry at the head `state`, if it is new.
    fn next(&self, state: u32) -> Option<Cqe> {
        // CAST: the low half is the index.
        let entry = Cqe(self.cq.read64(cqe::offset(state as u16) | cqe::SECOND_HALF));
        (entry.phase() != (state & SECOND_PASS != 0)).then_some(entry)
    }

    /// Whether an event is pending that was not handled yet. For a handler of messages, which takes
    /// nothing: an entry that it does not see here is behind one that a thread is about to take,
    /// and that thread looks at it afterwards.
    pub(crate) fn has_event(&self) -> bool {
        if self.event.is_pending() {
            return true;
        }
        let next = || self.next(self.head.load(Ordering::SeqCst));
        self.event.is_armed()
            && next().is_some_and(|entry| entry.cid() != self.cid.load(Ordering::Acquire))
    }

    /// The queue as it is, for the log.
    pub(crate) fn timeout_report(&self) -> QueueReport {
        let state = self.head.load(Ordering::Acquire);
        // CAST: the low half is the index.
        let head = state as u16;
        let phase = state & SECOND_PASS == 0;
        let second_half = |at: u16| Cqe(self.cq.read64(cqe::offset(at) | cqe::SECOND_HALF));
        let last = second_half(head.checked_sub(1).unwrap_or(ENTRIES - 1));
        QueueReport {
            qid: 0,
            tail: self.tail.load(Ordering::Relaxed),
            fetched: timeout_report::fetched(last, head, phase),
            head,
            phase,
            entry: second_half(head),
        }
    }

    /// Tells the controller of the head, if that has not been done. Where a handler interrupts a
    /// thread that was about to, both do it: harmless, whereas leaving it to the thread would leave
    /// a pin up.
    fn ring_head<M: Mmio>(&self, mmio: &M) {
        // CAST: the low half is the index.
        let head = self.head.load(Ordering::Acquire) as u16;
        if self.acked_head.load(Ordering::Acquire) != head {
            mmio.write32(
                regs::DOORBELLS.wrapping_add(regs::cq_doorbell(0, self.stride)),
                u32::from(head),
            );
            // Afterwards, so that a handler that comes between does it again rather than not at
            // all.
            self.acked_head.store(head, Ordering::Release);
        }
    }
}

fn after(at: u16) -> u16 {
    match at.wrapping_add(1) {
        ENTRIES => 0,
        next => next,
    }
}

impl EventSlot {
    fn new() -> Self {
        Self {
            armed: AtomicBool::new(false),
            pending: AtomicBool::new(false),
            answer: AtomicU64::new(0),
        }
    }

    /// The request is about to be sent: `false` if it was already. The control path's.
    fn arm(&self) -> bool {
        !self.armed.swap(true, Ordering::AcqRel)
    }

    fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Acquire)
    }

    /// The controller has answered; what it says without having been asked is dropped. Any context.
    fn answer(&self, result: u64, status: u16) {
        if self.armed.swap(false, Ordering::AcqRel) {
            let said = (result & u64::from(u32::MAX)) | (u64::from(status) << 32);
            self.answer.store(said, Ordering::Relaxed);
            self.pending.store(true, Ordering::Release);
        }
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }

    /// The answer, once: dword 0 and the status.
    pub(crate) fn take(&self) -> Option<(u32, u16)> {
        let pending = self.pending.swap(false, Ordering::AcqRel);
        let said = self.answer.load(Ordering::Relaxed);
        // CAST: the halves as they were put there.
        pending.then_some((said as u32, (said >> 32) as u16))
    }

    /// The controller was disabled: it has no request any more.
    fn forget(&self) {
        self.armed.store(false, Ordering::Relaxed);
        self.pending.store(false, Ordering::Release);
    }
}

/// Opcodes (figure 138).
const DELETE_SQ: u64 = 0x00;
const CREATE_SQ: u64 = 0x01;
const GET_LOG_PAGE: u64 = 0x02;
const DELETE_CQ: u64 = 0x04;
const CREATE_CQ: u64 = 0x05;
const IDENTIFY: u64 = 0x06;
const ABORT: u64 = 0x08;
const SET_FEATURES: u64 = 0x09;
const ASYNC_EVENT: u64 = 0x0c;
const DOORBELL_BUFFER_CONFIG: u64 = 0x7c;

/// Feature Number of Queues (5.27.1.5).
const NUMBER_OF_QUEUES: u64 = 0x07;
/// Feature Asynchronous Event Configuration (5.27.1.8).
const EVENTS: u64 = 0x0b;
/// Feature Autonomous Power State Transition (5.27.1.9).
const POWER_STATES: u64 = 0x0c;
/// Feature Host Behavior Support (5.27.1.18).
const HOST_BEHAVIOR: u64 = 0x16;
/// Feature Host Memory Buffer (5.27.1.10).
const HOST_MEMORY_BUFFER: u64 = 0x0d;

/// EHM, and MR: the buffer is there; it is the one that was there before a reset.
const ENABLE_MEMORY: u64 = 1;
const MEMORY_RETURN: u64 = 1 << 1;

/// The queue is physically contiguous.
const CONTIGUOUS: u64 = 1;
/// The completion queue interrupts.
const INTERRUPTS: u64 = 1 << 1;
/// QPRIO of a submission queue: medium.
const MEDIUM: u64 = 2 << 1;

/// Bytes of every Identify data structure.
pub(crate) const IDENTIFY_BYTES: usize = 4096;
// They fit the smallest page.
const _: () = assert!(IDENTIFY_BYTES <= 4096);

/// Controller or Namespace Structure: which structure is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Cns {
    Namespace = 0x00,
    Controller = 0x01,
    ActiveNamespaces = 0x02,
    NamespaceDescriptors = 0x03,
    CommandSetController = 0x06,
}

/// Identify (5.17) into the page at `to`.
pub(crate) fn identify(cns: Cns, nsid: u32, to: u64) -> Sqe {
    // CAST: the enum is a byte.
    let cns = u64::from(cns as u8);
    [IDENTIFY | (u64::from(nsid) << 32), 0, 0, to, 0, cns, 0, 0]
}

/// Abort (5.1) of command `cid` of submission queue `qid`.
pub(crate) fn abort(qid: u16, cid: u16) -> Sqe {
    let dword10 = u64::from(qid) | (u64::from(cid) << 16);
    [ABORT, 0, 0, 0, 0, dword10, 0, 0]
}

/// Asynchronous Event Request (5.2).
pub(crate) fn async_event() -> Sqe {
    [ASYNC_EVENT, 0, 0, 0, 0, 0, 0, 0]
}

/// Asynchronous Event Configuration: the controller reports what `events` says.
pub(crate) fn configure_events(events: u32) -> Sqe {
    let dword10 = EVENTS | (u64::from(events) << 32);
    [SET_FEATURES, 0, 0, 0, 0, dword10, 0, 0]
}

/// Get Log Page `id` of the whole controller, its first `bytes` (a multiple of 4, up to a page),
/// into the page at `to`. Its events are reported again afterwards.
pub(crate) fn log_page(id: u8, bytes: usize, to: u64) -> Sqe {
    let dwords = (bytes / 4).saturating_sub(1) as u64;
    let every = u64::from(u32::MAX) << 32;
    let dword10 = u64::from(id) | (dwords << 16);
    [GET_LOG_PAGE | every, 0, 0, to, 0, dword10, 0, 0]
}

/// RAE, Retain Asynchronous Event.
const RETAIN_EVENT: u64 = 1 << 15;

/// [`log_page`] with RAE: the read does not clear the log's events.
pub(crate) fn log_page_retaining_event(id: u8, bytes: usize, to: u64) -> Sqe {
    let mut sqe = log_page(id, bytes, to);
    sqe[5] |= RETAIN_EVENT;
    sqe
}

/// Asks for `pairs` I/O queue pairs.
pub(crate) fn number_of_queues(pairs: u16) -> Sqe {
    let wanted = u64::from(pairs.saturating_sub(1));
    let dword11 = (wanted << 16) | wanted;
    let dword10 = NUMBER_OF_QUEUES | (dword11 << 32);
    [SET_FEATURES, 0, 0, 0, 0, dword10, 0, 0]
}

/// Pairs that the answer to [`number_of_queues`] grants: the lesser of submission and completion
/// queues, both less one.
pub(crate) fn granted(result: u64) -> u16 {
    // CAST: bits 15:0 and 31:16.
    let (sq, cq) = (result as u16, (result >> 16) as u16);
    sq.min(cq).saturating_add(1)
}

/// Autonomous Power State Transition off; at `table` are 256 bytes of zeroes.
pub(crate) fn disable_apst(table: u64) -> Sqe {
    [SET_FEATURES, 0, 0, table, 0, POWER_STATES, 0, 0]
}

/// Bytes of the data structure of [`host_behavior`].
pub(crate) const HOST_BEHAVIOR_BYTES: usize = 512;

/// Its first dword: `ACRE` (byte 0), Command Retry Delays are made use of.
pub(crate) const RETRY_DELAYS: u32 = 1;

/// Host Behavior Support: what the host makes use of, as the data structure at `from` says.
pub(crate) fn host_behavior(from: u64) -> Sqe {
    [SET_FEATURES, 0, 0, from, 0, HOST_BEHAVIOR, 0, 0]
}

/// Host Memory Buffer (5.27.1.10): enables a buffer of `pages`, in the `count` chunks of the
/// descriptor list at `list`; `again`: the contents are those of before the reset.
pub(crate) fn enable_hmb(pages: u32, list: u64, count: u32, again: bool) -> Sqe {
    let dword11 = ENABLE_MEMORY | if again { MEMORY_RETURN } else { 0 };
    let dword10 = HOST_MEMORY_BUFFER | (dword11 << 32);
    let low = u64::from(pages) | (list << 32);
    let high = (list >> 32) | (u64::from(count) << 32);
    [SET_FEATURES, 0, 0, 0, 0, dword10, low, high]
}

/// Doorbell Buffer Config (5.8).
pub(crate) fn doorbell_buffer(shadow: u64, events: u64) -> Sqe {
    [DOORBELL_BUFFER_CONFIG, 0, 0, shadow, events, 0, 0, 0]
}

/// Create I/O Completion Queue (5.5), interrupting on `vector` or never.
pub(crate) fn create_cq(qid: u16, entries: u16, at: u64, vector: Option<u16>) -> Sqe {
    let interrupts = vector.map_or(0, |vector| INTERRUPTS | (u64::from(vector) << 16));
    let dword11 = CONTIGUOUS | interrupts;
    let dword10 = sized(qid, entries) | (dword11 << 32);
    [CREATE_CQ, 0, 0, at, 0, dword10, 0, 0]
}

/// Create I/O Submission Queue (5.6), answered in the completion queue of the same number, and of
/// `medium` priority where the controller goes by that.
pub(crate) fn create_sq(qid: u16, entries: u16, at: u64, medium: bool) -> Sqe {
    let priority = if medium { MEDIUM } else { 0 };
    let dword11 = CONTIGUOUS | priority | (u64::from(qid) << 16);
    let dword10 = sized(qid, entries) | (dword11 << 32);
    [CREATE_SQ, 0, 0, at, 0, dword10, 0, 0]
}

/// Delete I/O Completion Queue (5.7).
pub(crate) fn delete_cq(qid: u16) -> Sqe {
    [DELETE_CQ, 0, 0, 0, 0, u64::from(qid), 0, 0]
}

fn sized(qid: u16, entries: u16) -> u64 {
    u64::from(qid) | (u64::from(entries.saturating_sub(1)) << 16)
}

/// Whether a tool's admin command may be passed through. Not allowed are commands that give the
/// device memory to keep, that change the driver's queues, or that wait for an event.
pub(crate) fn is_passthru_allowed(sqe: &Sqe) -> bool {
    let (first, dword10) = (sqe[0] & 0xff, sqe[5] & 0xff);
    !match first {
        DELETE_SQ | CREATE_SQ | DELETE_CQ | CREATE_CQ | ASYNC_EVENT | DOORBELL_BUFFER_CONFIG => {
            true
        }
        SET_FEATURES => matches!(dword10, NUMBER_OF_QUEUES | HOST_MEMORY_BUFFER),
        _ => false,
    }
}

/// What the control path may be at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum AdminStep {
    Probe,
    Disable,
    Enable,
    IdentifyController,
    PowerStates,
    HostBehavior,
    HostMemoryBuffer,
    NumberOfQueues,
    DoorbellBuffer,
    CreateCompletionQueue,
    CreateSubmissionQueue,
    DeleteCompletionQueue,
    ActiveNamespaces,
    IdentifyNamespace,
    NamespaceDescriptors,
    NvmLimits,
    EffectsLog,
    EventConfiguration,
    EventLog,
    HealthLog,
    Activation,
    Abort,
    PassThrough,
    IoPassThrough,
    Shutdown,
}

impl Steps for AdminStep {
    const NAMES: &'static [&'static str] = &[
        "reading the capabilities (CAP)",
        "disabling the controller (CC.EN = 0)",
        "enabling the controller (CC.EN = 1)",
        "Identify Controller",
        "Set Features, Autonomous Power State Transition",
        "Set Features, Host Behavior Support",
        "Set Features, Host Memory Buffer",
        "Set Features, Number of Queues",
        "Doorbell Buffer Config",
        "Create I/O Completion Queue",
        "Create I/O Submission Queue",
        "Delete I/O Completion Queue",
        "Identify, active namespaces",
        "Identify Namespace",
        "Identify, namespace descriptors",
        "Identify, NVM command set limits",
        "Get Log Page, commands supported and effects",
        "Set Features, Asynchronous Event Configuration",
        "Get Log Page, for an asynchronous event",
        "Get Log Page, health",
        "waiting for new firmware to be active (CSTS.PP)",
        "Abort",
        "an admin command passed through",
        "an I/O command passed through",
        "shutting down (CC.SHN)",
    ];

    fn number(self) -> u8 {
        // CAST: the enum is a byte.
        self as u8
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn queue_numbers_are_zero_based() {
        assert_eq!(number_of_queues(1)[5], 7);
        assert_eq!(number_of_queues(3)[5], 0x0002_0002_0000_0007);
        assert_eq!(granted(0x0003_0007), 4);
        assert_eq!(granted(0xffff_ffff), u16::MAX);
        assert_eq!(create_cq(3, 256, 0x1000, Some(9))[5], 0x0009_0003_00ff_0003);
        assert_eq!(create_cq(3, 256, 0x1000, None)[5], 0x0000_0001_00ff_0003);
        assert_eq!(create_sq(3, 256, 0x1000, false)[5], 0x0003_0001_00ff_0003);
        assert_eq!(create_sq(3, 256, 0x1000, true)[5], 0x0003_0005_00ff_0003);
    }

    #[test]
    fn what_would_take_memory_or_queues_away_does_not_pass() {
        let sqe = |opcode, dword10| [opcode, 0, 0, 0, 0, dword10, 0, 0];
        for opcode in [0x00, 0x01, 0x04, 0x05, 0x0c, 0x7c] {
            assert!(!is_passthru_allowed(&sqe(opcode, 0)));
        }
        assert!(!is_passthru_allowed(&sqe(0x09, 0x07)) && !is_passthru_allowed(&sqe(0x09, 0x0d)));
        assert!(
            is_passthru_allowed(&sqe(0x09, 0x06))
                && is_passthru_allowed(&sqe(0x06, 1))
                && is_passthru_allowed(&sqe(0x02, 2))
        );
    }

    #[test]
    fn an_answer_is_taken_once_and_only_when_it_was_asked_for() {
        let slot = EventSlot::new();
        slot.answer(1, 0);
        assert_eq!((slot.is_pending(), slot.take()), (false, None));
        assert!(slot.arm() && !slot.arm(), "one at a time");
        slot.answer(0xffff_ffff_0004_0002, 0x7fff);
        slot.answer(9, 9);
        assert!(slot.is_pending() && !slot.is_armed());
        assert_eq!(slot.take(), Some((0x0004_0002, 0x7fff)));
        assert_eq!(slot.take(), None);
        assert!(slot.arm());
        slot.answer(1, 0);
        slot.forget();
        assert_eq!((slot.take(), slot.is_armed()), (None, false));
    }

    #[test]
    fn every_step_has_its_own_name() {
        assert_eq!(AdminStep::Shutdown as usize + 1, AdminStep::NAMES.len());
        let progress = hal::Progress::new(AdminStep::Probe);
        progress.at(AdminStep::Shutdown);
        assert_eq!(progress.name(), "shutting down (CC.SHN)");
        progress.at(AdminStep::PassThrough);
        assert_eq!(progress.name(), "an admin command passed through");
    }
}
