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
//! of its queue went off-line); more often than every [`LOOK_TICKS`] would take a timer for each
//! command (`wait/sleepers.rs`).

use bytewise::{Geometry, Plan, Regions, Run, Sparse};
use core::slice;
use core::sync::atomic::Ordering;
use engine::{Context, Retry, RetryCount, Thread};
use hal::{Command, Failure, Op, Outcome, Segment};
use kernel::error::code::*;
use kernel::error::Error;
use kernel::ffi::c_long;
use kernel::time::delay::fsleep;
use kernel::time::Delta;

use crate::blk::gendisk::GenDisk;
use crate::blk::request::{DiskStats, HctxData, Late};
use crate::bytes::async_io::{AsyncIo, Kiocb};
use crate::bytes::buffer::Part;
use crate::bytes::entered::Entered;
use crate::bytes::holes::Holes;
use crate::bytes::io::{errno, Place};
use crate::bytes::memory::Lane;
use crate::bytes::room::Taken;
use crate::bytes::watchdog::LOOK_TICKS;
use crate::platform::{now_ms, PreemptOff, TICK_MS};
use crate::shims;
use crate::shims_safe::{hiops_io_wait, hiops_pause_awake, hiops_this_thread};

/// Between two looks whether a quiesced queue goes on.
const QUIESCED_MS: i64 = 1;

/// How a caller has its bytes moved.
#[derive(Clone, Copy)]
pub(crate) struct How {
    /// It waits for what others have. For the device it does in any case.
    pub(crate) may_wait: bool,
    /// It looks for the completion itself, and sleeps only where others want the CPU.
    pub(crate) polls: bool,
}

impl How {
    /// As `flags` of C say.
    #[inline]
    pub(crate) fn of(flags: u32) -> Self {
        Self {
            may_wait: flags & shims::HIOPS_BYTES_NOWAIT == 0,
            polls: flags & shims::HIOPS_BYTES_POLL != 0,
        }
    }
}

/// A buffer that this thread has, of a disk that it has entered.
///
/// # Invariants
/// Between two calls of its methods no command of the buffer is under way.
pub(crate) struct Transfer<'a> {
    entered: &'a Entered,
    hctx: &'a HctxData,
    /// The lane's number.
    at: usize,
    lane: &'a Lane,
    place: &'a Place,
    holes: &'a Holes,
    geometry: Geometry,
    how: How,
}

impl<'a> Transfer<'a> {
    /// With the buffer `taken` of `disk`. `EIO`: nothing is known of the disk's blocks, or they are
    /// too large.
    #[inline]
    pub(crate) fn new(
        disk: GenDisk<'a>,
        taken: &'a mut Taken<'_>,
        entered: &'a Entered,
        how: How,
    ) -> Result<Self, Error> {
        Self::with(disk, entered, (taken.lane, taken.at), how)
    }

    /// With the buffer of that queue, and that number, which the caller has.
    #[inline]
    pub(crate) fn with(
        disk: GenDisk<'a>,
        entered: &'a Entered,
        (at, number): (usize, usize),
        how: How,
    ) -> Result<Self, Error> {
        let shared = disk.shared();
        let memory = shared.bytes.memory(entered).ok_or(ENODEV)?;
        let lane = memory.lanes.get(at).ok_or(ENODEV)?;
        let hctx = shared.hctxs.get(at).ok_or(ENODEV)?;
        let place = lane.places.get(number).ok_or(ENODEV)?;
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
            at,
            lane,
            place,
            holes: &memory.holes,
            geometry,
            how,
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
        let (command, all) = self.describe(op, plan, run, fua)?;
        self.carry_out(command, Part { all, sparse: None })
    }

    /// Reads all of `plan` into the buffer, each block to its place there, but for what need not
    /// come. However often that takes. Sleeps.
    #[inline]
    pub(crate) fn read(&mut self, plan: &Plan) -> Result<(), Error> {
        self.read_sparse(plan, self.sparse(plan))
    }

    /// The same, but for the holes of `sparse`.
    #[inline]
    pub(crate) fn read_sparse(&mut self, plan: &Plan, sparse: Option<Sparse>) -> Result<(), Error> {
        let (command, all) = self.describe(Op::Read, plan, plan.all(), false)?;
        self.carry_out(command, Part { all, sparse })
    }

    /// What of a read of all of `plan` is wanted, if the others need not come.
    #[inline]
    fn sparse(&self, plan: &Plan) -> Option<Sparse> {
        let align = self.holes.align()?;
        plan.sparse(self.geometry.block_shift, align)
    }

    /// The command that moves those blocks, and the buffer's part for them.
    #[inline]
    fn describe(
        &self,
        op: Op,
        plan: &Plan,
        run: Run,
        fua: bool,
    ) -> Result<(Command, Segment), Error> {
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
        Ok((command, segment))
    }

    /// Begins to read all of `plan` for `kiocb`, or to write it, to regions that are busy
    /// (`writes`). That is ended when the command is over, and the buffer given back, and they are
    /// busy no more; the caller has none of them any more. Sleeps while the queue is quiesced, if
    /// it may; else `EAGAIN`, with nothing begun.
    #[inline]
    pub(crate) fn begin(
        &self,
        plan: Plan,
        kiocb: Kiocb,
        writes: Option<Regions>,
        fua: bool,
    ) -> Result<(), Error> {
        let op = match writes {
            Some(_) => Op::Write,
            None => Op::Read,
        };
        let (command, all) = self.describe(op, &plan, plan.all(), fua)?;
        let sparse = match op {
            Op::Read => self.sparse(&plan),
            _ => None,
        };
        let entered = Entered::beside(self.entered.disk()).ok_or(ENODEV)?;
        let stay = self.until_unquiesced(self.how.may_wait)?;
        if self.how.polls {
            kiocb.set_lane(self.at);
        }
        self.hctx.stats.submitted(1);
        self.place.leave(AsyncIo {
            accounted: entered.account(op == Op::Write, all.len >> 9),
            entered,
            kiocb,
            plan,
            writes,
            max_retries: self.hctx.max_retries,
        });
        self.submit_for(None, command, Part { all, sparse }, &stay);
        Ok(())
    }

    /// Has a command carried out, for this thread, that has failed, and is tried again as `retry`
    /// says, and as often as that is worth it. Sleeps.
    #[cold]
    pub(crate) fn again(
        &self,
        command: Command,
        part: Part,
        mut retry: Retry,
    ) -> Result<(), Error> {
        loop {
            self.pause(retry);
            let is_tracked = self.submit(command, part, true)?;
            let (outcome, by) = self.wait(command, is_tracked);
            let Err(failure) = outcome else {
                self.count(part, by);
                return Ok(());
            };
            retry = self.retry(failure, by, retry.done)?;
        }
    }

    #[inline]
    fn carry_out(&self, command: Command, part: Part) -> Result<(), Error> {
        let sectors = part.all.len >> 9;
        let accounted = (self.entered).account(command.op == Op::Write, sectors);
        let moved = (self.submit(command, part, self.how.may_wait)).and_then(|is_tracked| {
            self.hctx.stats.submitted(1);
            match self.wait(command, is_tracked) {
                (Ok(()), by) => {
                    self.count(part, by);
                    Ok(())
                }
                (Err(failure), by) => self.again(command, part, self.retry(failure, by, 0)?),
            }
        });
        self.entered.account_end(accounted);
        moved
    }

    /// A command has moved `part`, as found in the context `by`.
    #[inline]
    fn count(&self, part: Part, by: Context) {
        self.hctx.stats.completed(1, by);
        self.hctx.stats.bytes_moved(part.moved());
    }

    /// A command is tried again: not before its time.
    #[cold]
    fn pause(&self, retry: Retry) {
        self.hctx.stats.retried();
        if retry.delay_ms != 0 {
            fsleep(Delta::from_millis(i64::from(retry.delay_ms)));
        }
    }

    /// A command has failed for good, as found in the context `by`.
    #[cold]
    pub(crate) fn give_up(&self, failure: Failure, by: Context) -> Error {
        self.hctx.stats.error();
        self.hctx.stats.completed(1, by);
        errno(failure)
    }

    /// How a command is tried again that has failed, as found in the context `by`, and was tried
    /// again `done` times before; else it has failed for good.
    #[cold]
    fn retry(&self, failure: Failure, by: Context, done: u8) -> Result<Retry, Error> {
        let tries = RetryCount {
            done,
            most: self.hctx.max_retries,
            fail_fast: false,
            dying: self.entered.is_dead(),
        };
        tries
            .after(failure)
            .ok_or_else(|| self.give_up(failure, by))
    }

    /// Submits it, when the queue is not quiesced; whether this thread is tracked with it. Sleeps
    /// until then; `EAGAIN`, with nothing submitted, if it may not.
    #[inline(always)]
    fn submit(&self, command: Command, part: Part, may_wait: bool) -> Result<bool, Error> {
        let stay = self.until_unquiesced(may_wait)?;
        let thread = Thread::at(hiops_this_thread());
        Ok(self.submit_for(thread, command, part, &stay))
    }

    /// Returns when the queue is not quiesced, nor can be while preemption stays off. Sleeps until
    /// then; `EAGAIN`, if it may not.
    #[inline]
    fn until_unquiesced(&self, may_wait: bool) -> Result<PreemptOff, Error> {
        loop {
            let stay = PreemptOff::new();
            if !self.entered.is_quiesced() {
                return Ok(stay);
            }
            drop(stay);
            if !may_wait {
                return Err(EAGAIN);
            }
            fsleep(Delta::from_millis(QUIESCED_MS));
        }
    }

    /// Submits it for `thread`, the caller, or for nobody that waits; whether that is tracked with
    /// it.
    #[inline]
    fn submit_for(
        &self,
        thread: Option<Thread>,
        command: Command,
        part: Part,
        _stay: &PreemptOff,
    ) -> bool {
        let (queue, switches) = (self.lane.queue.get(), self.hctx.switches.get());
        let waiter = thread
            .filter(|_| queue.tracks(switches))
            .and_then(|thread| crate::wait::track_thread(thread, self.hctx, switches.coop()));
        // SAFETY: the part is the buffer's, which is this thread's, and that waits until its
        // I/O is over, or has left it to an `AsyncIo`, with which it is given back; so long one
        // of them has entered, which keeps the memory.
        let io = unsafe { self.place.prepare((command, part), thread, waiter) };
        queue.submit(io, switches);
        waiter.is_some()
    }

    /// Looks for the completion until it is there, or others want the CPU.
    fn poll(&self) {
        let over = self.place.is_over();
        while !over.load(Ordering::Acquire) {
            self.lane.queue.get().drain(Context::Poll);
            if !hiops_pause_awake() {
                break;
            }
        }
    }

    /// Waits until it is over, and how it has ended, as found in which context. Sleeps.
    #[inline(always)]
    fn wait(&self, command: Command, is_tracked: bool) -> (Outcome, Context) {
        let limit = self.entered.timeout();
        // CAST: a small number.
        let ticks = limit.clamp(1, LOOK_TICKS) as c_long;
        let limit_ms = u64::from(limit).saturating_mul(TICK_MS);
        let over = self.place.is_over();
        if self.how.polls {
            self.poll();
        }
        let mut since = None;
        while !hiops_io_wait(over, ticks, is_tracked) {
            // It has waited for as long already.
            let begun = *since.get_or_insert_with(|| {
                now_ms().saturating_sub(ticks.unsigned_abs() as u64 * TICK_MS)
            });
            self.lane.queue.get().drain(Context::Sweep);
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
        self.place.outcome()
    }
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
