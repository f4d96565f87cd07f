// SPDX-License-Identifier: GPL-2.0
//! A thread reads bytes: it takes a buffer, enters the disk's queue, has whole blocks read into the
//! buffer, waits, and copies what is wanted.
//!
//! # Who waits for whom
//! A freeze waits for those that have entered, so nothing in there waits for what a freeze may keep
//! up: the buffer is taken before, no page of user memory is waited for, and what is allocated
//! starts no I/O. A reset waits for no reader: one that finds the queue quiesced comes again.
//!
//! # Late
//! The block layer's timer knows nothing of these reads: the reader itself looks after its own. It
//! wakes now and then, too, to take completions for which no interrupt comes any more (all CPUs of
//! its queue went off-line).

use bytewise::{Geometry, Plan};
use core::slice;
use engine::{RetryCount, Thread};
use hal::{Command, Failure};
use kernel::bindings;
use kernel::error::code::*;
use kernel::error::Error;
use kernel::ffi::c_long;
use kernel::iov::IovIterDest;
use kernel::prelude::*;
use kernel::time::delay::fsleep;
use kernel::time::Delta;

use crate::blk::gendisk::GenDisk;
use crate::blk::hctx::{HctxData, Late};
use crate::bytes::io::{command, Blocks, Place};
use crate::bytes::memory::Lane;
use crate::bytes::switch::Entered;
use crate::errno::status;
use crate::platform::{cpu, now_ms, NoIo, PreemptOff, TICK_MS};
use crate::shims;
use crate::shims_safe::{
    hiops_account_read, hiops_bytes_errno, hiops_io_wait, hiops_pagefault_disable,
    hiops_pagefault_enable, hiops_this_thread,
};

/// At the latest after so many ticks a reader looks for its completion itself. A shorter time would
/// take a timer for each read (`wait/sleepers.rs`). TIMEOUT: so long an I/O is late whose interrupt
/// has gone with its CPU. CAST: a small constant.
const LOOK_TICKS: u32 = 5 * shims::HIOPS_HZ;
/// Between two looks whether a quiesced queue goes on.
const QUIESCED_MS: i64 = 1;

/// # Safety
/// Called in a thread that has a disk of ours open, and reads to `to`.
#[no_mangle]
unsafe extern "C" fn hiops_bytes_read(
    disk: *mut bindings::gendisk,
    pos: bindings::loff_t,
    to: *mut bindings::iov_iter,
) -> isize {
    let Ok(pos) = u64::try_from(pos) else {
        // CAST: an errno.
        return EINVAL.to_errno() as isize;
    };
    // SAFETY: the disk is open, hence there; `to` is where this call of `read` has its data go, and
    // nothing else uses it meanwhile.
    let (disk, to) = unsafe { (GenDisk::from_raw(disk), IovIterDest::from_raw(to)) };
    match read(disk, pos, to) {
        // CAST: at most some thousand.
        Ok(count) => count as isize,
        // CAST: an errno.
        Err(error) => error.to_errno() as isize,
    }
}

/// Reads from `pos` on, as far as one command goes: how many bytes that were; 0 at the end.
fn read(disk: GenDisk<'_>, pos: u64, to: &mut IovIterDest<'_>) -> Result<usize, Error> {
    let wanted = to.len();
    if wanted == 0 {
        return Ok(0);
    }
    let shared = disk.shared();
    let taken = shared.bytes.take(this_cpu()).ok_or(ENODEV)?;
    let entered = Entered::new(disk.alive()).ok_or(ENODEV)?;
    let memory = shared.bytes.memory(&entered).ok_or(ENODEV)?;
    let lane = memory.lanes.get(taken.lane).ok_or(ENODEV)?;
    let hctx = shared.hctxs.get(taken.lane).ok_or(ENODEV)?;
    let place = lane.place(taken.at).ok_or(ENODEV)?;
    let geometry = Geometry {
        size: disk.sectors().saturating_mul(512),
        block_shift: hctx.format.block_shift(),
        span: memory.span,
    };
    if !geometry.is_usable() {
        // Nothing is known of its blocks: it is closed.
        return Err(EIO);
    }
    let Some(plan) = geometry.plan(pos, wanted) else {
        return Ok(0);
    };
    let reader = Reader {
        entered: &entered,
        hctx,
        lane,
        place,
        blocks: blocks_of(&plan, hctx, geometry.block_shift),
    };
    reader.run().map_err(errno)?;
    let first = place.buffer.part(plan.skip, plan.len).ok_or(EIO)?;
    // SAFETY: inside the buffer, which is this thread's, and no device's any more.
    let found = unsafe { slice::from_raw_parts(first, plan.len) };
    let copied = copy_now(found, to);
    let rest = match found.get(copied..) {
        None | Some([]) => return Ok(copied),
        Some(rest) => own_copy(rest)?,
    };
    // The page that is missing may be one of this very disk's, or come never.
    drop(entered);
    drop(taken);
    let late = to.copy_to_iter(&rest);
    hiops_account_read(late);
    match copied.saturating_add(late) {
        0 => Err(EFAULT),
        count => Ok(count),
    }
}

/// Copies `from`, as far as that is possible without waiting; how much that was.
fn copy_now(from: &[u8], to: &mut IovIterDest<'_>) -> usize {
    hiops_pagefault_disable();
    let copied = to.copy_to_iter(from);
    hiops_pagefault_enable();
    hiops_account_read(copied);
    copied
}

/// A copy of `bytes`, for which no I/O is started: a freeze waits for the caller.
#[cold]
fn own_copy(bytes: &[u8]) -> Result<KVec<u8>, Error> {
    let _no_io = NoIo::new();
    let mut copy = KVec::with_capacity(bytes.len(), GFP_KERNEL)?;
    copy.extend_from_slice(bytes, GFP_KERNEL)?;
    Ok(copy)
}

fn this_cpu() -> usize {
    let _stay = PreemptOff::new();
    cpu()
}

fn blocks_of(plan: &Plan, hctx: &HctxData, shift: u8) -> Blocks {
    Blocks {
        unit: hctx.unit,
        lba: plan.lba,
        count: plan.blocks,
        shift,
    }
}

/// As the block layer tells it.
#[cold]
fn errno(failure: Failure) -> Error {
    Error::from_errno(hiops_bytes_errno(status(Err(failure))))
}

/// One read of blocks.
struct Reader<'a> {
    entered: &'a Entered<'a>,
    hctx: &'a HctxData,
    lane: &'a Lane,
    place: &'a Place,
    blocks: Blocks,
}

impl Reader<'_> {
    /// Reads them, however often that takes. Sleeps.
    fn run(&self) -> Result<(), Failure> {
        let (stats, mut done) = (&self.hctx.stats, 0);
        let sectors = (self.blocks.count).wrapping_shl(u32::from(self.blocks.shift)) >> 9;
        let _accounted = self.entered.account(sectors);
        stats.submitted(1);
        loop {
            let is_tracked = self.submit();
            self.wait(is_tracked);
            let (outcome, by) = self.place.outcome();
            let Err(failure) = outcome else {
                stats.completed(1, by);
                return Ok(());
            };
            let Some(retry) = self.retry(failure, done) else {
                stats.error();
                stats.completed(1, by);
                return Err(failure);
            };
            done = retry.done;
            stats.retried();
            if retry.delay_ms != 0 {
                fsleep(Delta::from_millis(i64::from(retry.delay_ms)));
            }
        }
    }

    #[cold]
    fn retry(&self, failure: Failure, done: u8) -> Option<engine::Retry> {
        let tries = RetryCount {
            done,
            most: self.hctx.max_retries,
            fail_fast: false,
            dying: self.entered.is_dead(),
        };
        tries.after(failure)
    }

    /// Submits it, when the queue is not quiesced; whether this thread is tracked with it. Sleeps
    /// until then.
    fn submit(&self) -> bool {
        loop {
            let stay = PreemptOff::new();
            if !self.entered.is_quiesced() {
                return self.submit_now(&stay);
            }
            drop(stay);
            fsleep(Delta::from_millis(QUIESCED_MS));
        }
    }

    #[inline]
    fn submit_now(&self, _stay: &PreemptOff) -> bool {
        let (queue, switches) = (self.lane.queue.get(), self.hctx.switches.get());
        let thread = Thread::at(hiops_this_thread());
        let waiter = thread
            .filter(|_| queue.tracks(switches))
            .and_then(|thread| crate::wait::track_thread(thread, self.hctx, switches.coop()));
        // SAFETY: the buffer is this thread's, which waits until its I/O is over; so long it has
        // entered, which keeps the memory.
        let io = unsafe { self.place.prepare(self.blocks, thread, waiter) };
        queue.submit(io, switches);
        waiter.is_some()
    }

    /// Waits until it is over. Sleeps.
    fn wait(&self, is_tracked: bool) {
        let limit = self.entered.timeout();
        // CAST: a small number.
        let ticks = limit.clamp(1, LOOK_TICKS) as c_long;
        let limit_ms = u64::from(limit).saturating_mul(TICK_MS);
        let over = self.place.is_over();
        let mut since = None;
        while !hiops_io_wait(over, ticks, is_tracked) {
            // It has waited for as long already.
            let begun = *since.get_or_insert_with(|| {
                now_ms().saturating_sub(ticks.unsigned_abs() as u64 * TICK_MS)
            });
            self.lane.queue.get().sweep();
            if now_ms().saturating_sub(begun) >= limit_ms {
                self.lane.queue.get().late(&self.late(limit_ms));
                since = Some(now_ms());
            }
        }
    }

    fn late(&self, limit_ms: u64) -> LateRead<'_> {
        LateRead {
            reader: self,
            limit_ms,
        }
    }
}

/// A read that is late.
struct LateRead<'a> {
    reader: &'a Reader<'a>,
    limit_ms: u64,
}

impl Late for LateRead<'_> {
    fn timeout_ms(&self) -> u64 {
        self.limit_ms
    }

    fn is_waiting(&self) -> bool {
        self.reader.place.is_waiting()
    }

    fn command(&self) -> Command {
        command(&self.reader.blocks)
    }

    fn count(&self) {
        self.reader.hctx.stats.timeout();
    }
}
