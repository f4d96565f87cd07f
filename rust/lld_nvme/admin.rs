// SPDX-License-Identifier: GPL-2.0
//! The admin queue pair (Base 2.0 section 5): one command at a time, polled with sleeps.
//!
//! Whoever sees a completion takes it: normally the thread that waits; with a pin also the interrupt handler, because an entry that nobody
//! takes keeps the line up. The two agree by one atomic exchange of the head, so the handler never depends on the thread that it interrupted.

use crate::command::{self, Sqe};
use crate::cqe::{self, Cqe};
use crate::silence::{self, Silence};
use crate::{bringup, regs};
use cell::sync::{fence, AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};
use hal::{DmaMem, Error, Mmio, Platform};

/// Entries of each of the two queues; 2 would do.
pub(crate) const ENTRIES: u16 = 16;
/// How long a command of the driver's own may take, in microseconds; the specification gives no bound.
pub(crate) const TIMEOUT_US: u64 = 60_000_000;
/// The first and the longest pause between two looks, in microseconds.
const PAUSE_US: (u64, u64) = (20, 2_000);
/// Set in `head` on the passes whose entries have phase 0.
const SECOND_PASS: u32 = 1 << 16;

/// An admin command's completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminReply {
    /// Command-specific dwords 0 and 1.
    pub result: u64,
    /// Status code, type and flags, 15 bits; 0: success.
    pub status: u16,
}

/// DMA memory of at least `bytes`, whole pages of `page` bytes (a power of two) at a page's boundary.
pub(crate) fn paged<P: Platform>(platform: &P, bytes: usize, page: usize) -> Result<P::Dma, Error> {
    let mask = page.wrapping_sub(1);
    let memory = platform.dma(bytes.saturating_add(mask) & !mask)?;
    if memory.bus_addr() & mask as u64 != 0 {
        // This machine's pages are smaller than the controller's smallest.
        return Err(Error::Unsupported);
    }
    Ok(memory)
}

/// The queue pair, shared by the control path and the interrupt.
pub(crate) struct Admin<P: Platform> {
    sq: P::Dma,
    cq: P::Dma,
    stride: usize,
    /// The largest CID: all bits below its highest are set.
    cid_mask: u16,
    /// The control path's: where the next command goes, and its CID.
    tail: AtomicU16,
    /// The entry to look at next, and [`SECOND_PASS`].
    head: AtomicU32,
    /// The head that the controller knows.
    rung: AtomicU16,
    /// The CID that is waited for.
    cid: AtomicU16,
    /// The reply: written before `answered`.
    result: AtomicU64,
    status: AtomicU16,
    answered: AtomicBool,
    /// A command was not answered in time, so its memory and the queue are the device's until it is disabled.
    lost: AtomicBool,
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
            sq: paged(platform, bytes(command::BYTES), page)?,
            cq: paged(platform, bytes(cqe::BYTES), page)?,
            stride,
            cid_mask: match small_cids {
                true => ENTRIES.wrapping_sub(1),
                false => u16::MAX,
            },
            tail: AtomicU16::new(0),
            head: AtomicU32::new(0),
            rung: AtomicU16::new(0),
            cid: AtomicU16::new(0),
            result: AtomicU64::new(0),
            status: AtomicU16::new(0),
            answered: AtomicBool::new(false),
            lost: AtomicBool::new(true),
        })
    }

    /// Makes the queues as a disabled controller expects them. Returns where they are.
    pub(crate) fn rewind(&self) -> bringup::AdminBase {
        self.cq.zero(0, self.cq.len());
        self.tail.store(0, Ordering::Relaxed);
        self.rung.store(0, Ordering::Relaxed);
        self.head.store(0, Ordering::Relaxed);
        self.answered.store(false, Ordering::Relaxed);
        self.lost.store(false, Ordering::Release);
        bringup::AdminBase {
            sq: self.sq.bus_addr(),
            cq: self.cq.bus_addr(),
            entries: ENTRIES,
        }
    }

    /// A command can't be sent any more: the controller is disabled, or an answer is missing.
    pub(crate) fn close(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    /// Sends `sqe` (its CID is filled in) and sleeps until it is answered. One caller at a time.
    ///
    /// [`Error::Timeout`]: the memory of the command stays the device's until it is disabled, and nothing more can be sent before.
    pub(crate) fn submit<M: Mmio>(
        &self,
        platform: &P,
        mmio: &M,
        mut sqe: Sqe,
        timeout_us: u64,
    ) -> Result<AdminReply, Error> {
        bringup::alive(mmio)?;
        if self.lost.load(Ordering::Acquire) {
            return Err(Error::Timeout);
        }
        let at = self.tail.load(Ordering::Relaxed);
        let tail = after(at);
        let cid = self.cid.load(Ordering::Relaxed).wrapping_add(1) & self.cid_mask;
        if let Some(first) = sqe.first_mut() {
            *first = (*first & !(0xffff << 16)) | (u64::from(cid) << 16);
        }
        self.answered.store(false, Ordering::Relaxed);
        self.cid.store(cid, Ordering::Release);
        self.sq.write_words(command::offset(at), sqe);
        self.tail.store(tail, Ordering::Relaxed);
        mmio.write32(
            regs::DOORBELLS.wrapping_add(regs::sq_doorbell(0, self.stride)),
            u32::from(tail),
        );
        self.wait(platform, mmio, timeout_us)
    }

    fn wait<M: Mmio>(&self, platform: &P, mmio: &M, timeout_us: u64) -> Result<AdminReply, Error> {
        let start = platform.now_us();
        let mut pause = PAUSE_US.0;
        loop {
            // The clock first: a late wake-up is not the device's fault.
            let waited = platform.now_us().saturating_sub(start);
            self.collect(mmio);
            if self.answered.swap(false, Ordering::Acquire) {
                return Ok(AdminReply {
                    result: self.result.load(Ordering::Relaxed),
                    status: self.status.load(Ordering::Relaxed),
                });
            }
            if let Err(why) = bringup::alive(mmio) {
                self.close();
                return Err(why);
            }
            if waited >= timeout_us {
                self.close();
                return Err(Error::Timeout);
            }
            platform.sleep_us(pause);
            pause = pause.saturating_mul(2).min(PAUSE_US.1);
        }
    }

    /// Takes what the controller has completed, at most once around. Any context; several may at once.
    pub(crate) fn collect<M: Mmio>(&self, mmio: &M) {
        for _ in 0..ENTRIES {
            let state = self.head.load(Ordering::Acquire);
            // CAST: the low half is the index.
            let at = state as u16;
            let offset = cqe::offset(at);
            let entry = Cqe(self.cq.read64(offset | cqe::SECOND_HALF));
            if entry.phase() == (state & SECOND_PASS != 0) {
                break;
            }
            fence(Ordering::Acquire);
            let result = self.cq.read64(offset);
            let head = after(at);
            let wrapped = if head == 0 { SECOND_PASS } else { 0 };
            let next = (state & SECOND_PASS ^ wrapped) | u32::from(head);
            let won = self
                .head
                .compare_exchange(state, next, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
            // One that nobody waits for is dropped.
            if won && entry.is_from(0, ENTRIES) && entry.cid() == self.cid.load(Ordering::Acquire) {
                self.result.store(result, Ordering::Relaxed);
                self.status.store(entry.status(), Ordering::Relaxed);
                self.answered.store(true, Ordering::Release);
            }
        }
        self.ring_head(mmio);
    }

    /// The queue as it is, for the log.
    pub(crate) fn silence(&self) -> Silence {
        let state = self.head.load(Ordering::Acquire);
        // CAST: the low half is the index.
        let head = state as u16;
        let phase = state & SECOND_PASS == 0;
        let second_half = |at: u16| Cqe(self.cq.read64(cqe::offset(at) | cqe::SECOND_HALF));
        let last = second_half(head.checked_sub(1).unwrap_or(ENTRIES - 1));
        Silence {
            qid: 0,
            tail: self.tail.load(Ordering::Relaxed),
            fetched: silence::fetched(last, head, phase),
            head,
            phase,
            entry: second_half(head),
        }
    }

    /// A command was not answered, or none can be sent.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Tells the controller of the head, if that has not been done. Where a handler interrupts a thread that was about to, both do it:
    /// harmless, whereas leaving it to the thread would leave a pin up.
    fn ring_head<M: Mmio>(&self, mmio: &M) {
        // CAST: the low half is the index.
        let head = self.head.load(Ordering::Acquire) as u16;
        if self.rung.load(Ordering::Acquire) != head {
            mmio.write32(
                regs::DOORBELLS.wrapping_add(regs::cq_doorbell(0, self.stride)),
                u32::from(head),
            );
            // Afterwards, so that a handler that comes between does it again rather than not at all.
            self.rung.store(head, Ordering::Release);
        }
    }
}

fn after(at: u16) -> u16 {
    match at.wrapping_add(1) {
        ENTRIES => 0,
        next => next,
    }
}

// Small CIDs are those of a mask, and none of an I/O queue's.
const _: () = assert!(ENTRIES.is_power_of_two() && ENTRIES <= crate::quirks::ADMIN_CIDS);
