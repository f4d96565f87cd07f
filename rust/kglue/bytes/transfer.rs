// SPDX-License-Identifier: GPL-2.0
//! Blocks go between a device and a buffer, for a thread that waits.
//!
//! # Who waits for whom
//! A freeze waits for those that have entered, so nothing in there waits for what a freeze may keep
//! up: the buffer is taken before, no page of user memory is waited for, and what is allocated
//! starts no I/O. A reset waits for nobody here: who finds the queue quiesced comes again.
//!
//! # Late
//! The block layer's timer knows nothing of these commands: the thread itself looks after its own.
//! It wakes now and then, too, to take completions for which no interrupt comes any more (all CPUs
//! of its queue went off-line).

use bytewise::{Geometry, Plan, Run};
use core::slice;
use engine::{RetryCount, Thread};
use hal::{Command, Failure, Op, Segment};
use kernel::error::code::*;
use kernel::error::Error;
use kernel::ffi::c_long;
use kernel::time::delay::fsleep;
use kernel::time::Delta;

use crate::blk::gendisk::GenDisk;
use crate::blk::hctx::{DiskStats, HctxData, Late};
use crate::bytes::io::Place;
use crate::bytes::memory::Lane;
use crate::bytes::switch::{Entered, Taken};
use crate::errno::status;
use crate::platform::{now_ms, PreemptOff, TICK_MS};
use crate::shims;
use crate::shims_safe::{hiops_bytes_errno, hiops_io_wait, hiops_this_thread};

/// At the latest after so many ticks a thread looks for its completion itself. A shorter time would
/// take a timer for each command (`wait/sleepers.rs`). TIMEOUT: so long an I/O is late whose
/// interrupt has gone with its CPU. CAST: a small constant.
const LOOK_TICKS: u32 = 5 * shims::HIOPS_HZ;
/// Between two looks whether a quiesced queue goes on.
const QUIESCED_MS: i64 = 1;

/// A buffer that this thread has, of a disk that it has entered.
///
/// # Invariants
/// Between two calls of its methods no command of the buffer is under way.
pub(crate) struct Transfer<'a> {
    entered: &'a Entered<'a>,
    hctx: &'a HctxData,
    lane: &'a Lane,
    place: &'a Place,
    geometry: Geometry,
    may_wait: bool,
}

impl<'a> Transfer<'a> {
    /// With the buffer `taken` of `disk`; `may_wait`: until its queue is not quiesced. `EIO`:
    /// nothing is known of the disk's blocks, or they are too large.
    #[inline]
    pub(crate) fn new(
        disk: GenDisk<'a>,
        taken: &'a mut Taken<'_>,
        entered: &'a Entered<'a>,
        may_wait: bool,
    ) -> Result<Self, Error> {
        let shared = disk.shared();
        let memory = shared.bytes.memory(entered).ok_or(ENODEV)?;
        let lane = memory.lanes.get(taken.lane).ok_or(ENODEV)?;
        let hctx = shared.hctxs.get(taken.lane).ok_or(ENODEV)?;
        let place = lane.place(taken.at).ok_or(ENODEV)?;
        let geometry = Geometry {
            size: disk.sectors().saturating_mul(512),
            block_shift: hctx.format.block_shift(),
            span: memory.span,
        };
        if !geometry.is_usable() {
            // It is closed.
            return Err(EIO);
        }
        // INVARIANT: the last that had the buffer waited until it was over.
        Ok(Self {
            entered,
            hctx,
            lane,
            place,
            geometry,
            may_wait,
        })
    }

    /// The disk, as plans have to know it.
    #[inline]
    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// What is counted for the disk.
    #[inline]
    pub(crate) fn stats(&self) -> &'a DiskStats {
        &self.hctx.stats
    }

    /// The bytes of the buffer that `plan` wants.
    #[inline]
    pub(crate) fn bytes(&mut self, plan: &Plan) -> Option<&mut [u8]> {
        let first = self.place.buffer.part(plan.skip, plan.len)?;
        // SAFETY: inside the buffer, which is this thread's until `taken` can be used again, and no
        // device's, by the invariant.
        Some(unsafe { slice::from_raw_parts_mut(first, plan.len) })
    }

    /// Reads (`op`) those blocks of `plan` into the buffer, each to its place there, or writes them
    /// from it; `fua`: durably. However often that takes. Sleeps.
    #[inline]
    pub(crate) fn run(&mut self, op: Op, plan: &Plan, run: Run, fua: bool) -> Result<(), Error> {
        let shift = self.geometry.block_shift;
        let bytes_of = |blocks: u32| blocks.wrapping_shl(u32::from(shift));
        let command = Command {
            op,
            unit: self.hctx.unit,
            lba: plan.lba.saturating_add(u64::from(run.first)),
            blocks: run.count,
            block_shift: shift,
            fua,
            unmap: false,
        };
        let buffer = &self.place.buffer;
        let segment = buffer
            .segment(bytes_of(run.first), bytes_of(run.count))
            .ok_or(EIO)?;
        self.carry_out(command, segment)
    }

    fn carry_out(&self, command: Command, segment: Segment) -> Result<(), Error> {
        let (stats, mut done) = (&self.hctx.stats, 0);
        let is_write = command.op == Op::Write;
        let _accounted = self.entered.account(is_write, segment.len >> 9);
        let mut is_tracked = self.submit(command, segment, self.may_wait)?;
        stats.submitted(1);
        loop {
            self.wait(command, is_tracked);
            let (outcome, by) = self.place.outcome();
            let Err(failure) = outcome else {
                stats.completed(1, by);
                stats.bytes_moved(segment.len);
                return Ok(());
            };
            let Some(retry) = self.retry(failure, done) else {
                stats.error();
                stats.completed(1, by);
                return Err(errno(failure));
            };
            done = retry.done;
            stats.retried();
            if retry.delay_ms != 0 {
                fsleep(Delta::from_millis(i64::from(retry.delay_ms)));
            }
            is_tracked = self.submit(command, segment, true)?;
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
    /// until then; `EAGAIN`, with nothing submitted, if it may not.
    fn submit(&self, command: Command, segment: Segment, may_wait: bool) -> Result<bool, Error> {
        loop {
            let stay = PreemptOff::new();
            if !self.entered.is_quiesced() {
                return Ok(self.submit_now(command, segment, &stay));
            }
            drop(stay);
            if !may_wait {
                return Err(EAGAIN);
            }
            fsleep(Delta::from_millis(QUIESCED_MS));
        }
    }

    #[inline]
    fn submit_now(&self, command: Command, segment: Segment, _stay: &PreemptOff) -> bool {
        let (queue, switches) = (self.lane.queue.get(), self.hctx.switches.get());
        let thread = Thread::at(hiops_this_thread());
        let waiter = thread
            .filter(|_| queue.tracks(switches))
            .and_then(|thread| crate::wait::track_thread(thread, self.hctx, switches.coop()));
        // SAFETY: the segment is the buffer's, which is this thread's, and that waits until its
        // I/O is over; so long it has entered, which keeps the memory.
        let io = unsafe { self.place.prepare((command, segment), thread, waiter) };
        queue.submit(io, switches);
        waiter.is_some()
    }

    /// Waits until it is over. Sleeps.
    fn wait(&self, command: Command, is_tracked: bool) {
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
                let late = LateCommand {
                    transfer: self,
                    command,
                    limit_ms,
                };
                self.lane.queue.get().late(&late);
                since = Some(now_ms());
            }
        }
    }
}

/// As the block layer tells it.
#[cold]
fn errno(failure: Failure) -> Error {
    Error::from_errno(hiops_bytes_errno(status(Err(failure))))
}

/// A command that is late.
struct LateCommand<'a> {
    transfer: &'a Transfer<'a>,
    command: Command,
    limit_ms: u64,
}

impl Late for LateCommand<'_> {
    fn timeout_ms(&self) -> u64 {
        self.limit_ms
    }

    fn is_waiting(&self) -> bool {
        self.transfer.place.is_waiting()
    }

    fn command(&self) -> Command {
        self.command
    }

    fn count(&self) {
        self.transfer.hctx.stats.timeout();
    }
}
