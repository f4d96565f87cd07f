// SPDX-License-Identifier: GPL-2.0
//! The admin queue pair (Base 2.0 section 5): one command at a time, polled with sleeps; beside it
//! an Asynchronous Event Request, which is answered when the controller has something to say.

mod completion;

use crate::command::{self, Sqe};
use crate::cqe;
use crate::event::{EventSlot, EVENT_CID};
use crate::{bringup, regs};
use cell::sync::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};
use hal::{Deadline, DmaMem, Error, Mmio, Platform};

/// Entries of each of the two queues; 2 would do.
pub(crate) const ENTRIES: u16 = 16;
/// How long a command of the driver's own may take, in microseconds; the specification gives no
/// bound.
pub(crate) const TIMEOUT_US: u64 = 60_000_000;
/// The first and the longest pause between two looks, in microseconds.
const PAUSE_US: (u64, u64) = (20, 2_000);

/// An admin command's completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminReply {
    /// Command-specific dwords 0 and 1.
    pub result: u64,
    /// Status code, type and flags, 15 bits; 0: success.
    pub status: u16,
}

/// DMA memory of at least `bytes`, whole pages of `page` bytes (a power of two) at a page's
/// boundary.
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
    /// The entry to look at next, and whether its pass is an even one: see [`completion`].
    head: AtomicU32,
    /// The head that the controller knows.
    rung: AtomicU16,
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
            event: EventSlot::new(),
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
        self.event.forget();
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
    /// [`Error::Timeout`]: the memory of the command stays the device's until it is disabled, and
    /// nothing more can be sent before.
    pub(crate) fn submit<M: Mmio>(
        &self,
        platform: &P,
        mmio: &M,
        sqe: Sqe,
        deadline: Deadline<'_>,
    ) -> Result<AdminReply, Error> {
        bringup::alive(mmio)?;
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
        self.sq.write_words(command::offset(at), sqe);
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
        mut deadline: Deadline<'_>,
    ) -> Result<AdminReply, Error> {
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
            if deadline.has_come(waited) {
                self.close();
                return Err(Error::Timeout);
            }
            platform.sleep_us(pause);
            pause = pause.saturating_mul(2).min(PAUSE_US.1);
        }
    }

    /// A command was not answered, or none can be sent.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
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
