// SPDX-License-Identifier: GPL-2.0
//! An adapter comes to rest: for a moment, for a sleep or a reset by others, and for good.
//!
//! First stand the steps that all of these and recoveries are made of: queues at rest, and a
//! controller that is stopped. Then what puts it to rest for a while, with its disks staying:
//! between [`Adapter::suspend`] and [`Adapter::resume`] the queues are at rest, and blk-mq gives
//! them nothing. No thread holds a lock meanwhile, as another one may resume: a caller that wants
//! the control path waits in [`Adapter::control`]. Last the way out: unbind, surprise removal,
//! reboot.
//!
//! # Sleep
//! A machine that sleeps takes its CPUs down, and blk-mq waits for the requests of each
//! (`blk_mq_hctx_notify_offline`, Linux 7.3), without end. Not all threads are frozen by then:
//! writeback, md and swap go on. So the disks are frozen first ([`Adapter::freeze`]): what is under
//! way ends, and what comes waits without a request. Where it does not end, the machine stays
//! awake.

use core::fmt;
use core::sync::atomic::Ordering;
use engine::{Context, Quiesced, View};
use hal::{CmdError, Controller, Error, Failure, Platform, Shutdown};
use kernel::prelude::*;
use kernel::sync::lock::mutex::MutexBackend;
use kernel::sync::lock::Guard;

use crate::adapter::config::{Bus, Suspend};
use crate::adapter::queue::{Chosen, HwQueue};
use crate::adapter::state::{Adapter, DEAD, LIVE, LOOK_AGAIN_US, SUSPENDED, WELL};
use crate::blk::upper::BlkUpper;
use crate::compat::synchronize_rcu;
use crate::platform::{KernelPlatform, NoIo, PreemptOff};
use crate::text::Text;

/// Bytes of a line of the log.
const LINE: usize = 512;

/// What becomes of an adapter whose queues are at rest and whose controller is stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// The controller is started again.
    Start,
    /// It rests until it is resumed.
    Rest,
    /// Nothing gets through to it any more.
    Die,
    /// It rests, and is told first that power may go away.
    PowerOff,
}

/// How a controller is left that could not be started.
#[derive(Clone, Copy)]
pub(crate) struct Down {
    pub(crate) why: Error,
    /// Nor could it be stopped, or one that it shares its path to memory with: it is cut off.
    pub(crate) is_stuck: bool,
}

impl Down {
    pub(crate) fn stopped(why: Error) -> Self {
        let is_stuck = false;
        Self { why, is_stuck }
    }
}

/// A hardware queue at rest.
type ClosedQueue<'a, C, B> =
    Quiesced<'a, KernelPlatform, <C as Controller>::Queue, BlkUpper<<B as Bus>::Map>, Chosen>;

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// Lays the queues to rest, which `quiesced` says then, stops the controller, and ends what it
    /// had as `why` says. Under `control`, which `quiesced` is locked under; [`Adapter::go_on`]
    /// follows. Sleeps.
    pub(crate) fn halt(&self, quiesced: &mut bool, why: Failure, then: Then) {
        // Those of a controller that waits for a reset are at rest.
        if !*quiesced {
            self.quiesce_all(quiesced);
        }
        if self.misses.swap(false, Ordering::Relaxed) && then == Then::Start {
            self.tell_silence();
        }
        for vector in self.queues.iter().filter_map(|queue| queue.vector) {
            self.controller.set_interrupt(vector, false);
        }
        if then == Then::PowerOff && self.controller.shutdown(Shutdown::Normal).is_err() {
            crate::text::log_warn!(self, "it did not confirm the shutdown\n");
        }
        let _ = self.stop_or_cut_off();
        self.bus.synchronize();
        // A reset does not wait for the owners of what came before it.
        crate::wait::take_all();
        for queue in &self.queues {
            let _stay = PreemptOff::new();
            if let Some(mut closed) = queue.io.kept_closed() {
                closed.reap(why);
                closed.rewind();
                closed.keep_closed();
            }
        }
    }

    /// Lays all queues to rest, which `quiesced`, the adapter's own, says then. Sleeps.
    fn quiesce_all(&self, quiesced: &mut bool) {
        for queue in &self.queues {
            queue.io.quiesce(&self.platform).keep_closed();
        }
        *quiesced = true;
    }

    /// Has `end` done with each queue, after [`Adapter::quiesce_all`].
    fn end_quiesce(&self, quiesced: &mut bool, end: impl Fn(ClosedQueue<'_, C, B>)) {
        for queue in &self.queues {
            let _stay = PreemptOff::new();
            queue.io.kept_closed().into_iter().for_each(&end);
        }
        *quiesced = false;
    }

    /// Starts the controller, after [`Adapter::halt`]; one that fails is stopped. Sleeps.
    ///
    /// One that could not be stopped stays cut off until that is made up for, as it still has the
    /// addresses of what was reaped: by itself, or by whatever has reset it in the meantime.
    pub(crate) fn start_again(&self) -> Result<(), Down> {
        if self.is_loose() && !self.stop_or_cut_off() {
            return Err(Down {
                why: Error::Timeout,
                is_stuck: true,
            });
        }
        match self.bus.restore() {
            Ok(()) => {}
            // Others are cut off, and it with them.
            Err(why) => {
                return Err(Down {
                    why,
                    is_stuck: why != Error::Gone,
                })
            }
        }
        self.controller.start().map_err(|why| Down {
            why,
            is_stuck: !self.stop_or_cut_off(),
        })
    }

    /// After it nothing is written to memory; `false`: because the controller is cut off. Sleeps.
    pub(crate) fn stop_or_cut_off(&self) -> bool {
        let stopped = self.controller.stop().is_ok();
        self.loose.store(!stopped, Ordering::Release);
        if !stopped {
            self.bus.cut_off();
        }
        stopped
    }

    /// Lets the queues of a controller that was `started` go on, or closes the gate for good, after
    /// [`Adapter::halt`]. Sleeps.
    pub(crate) fn go_on(&self, quiesced: &mut bool, started: Result<(), Error>) {
        if started.is_ok() {
            for queue in &self.queues {
                queue.forget_violations();
                if let Some(vector) = queue.vector.filter(|_| !queue.io.polling().is_on()) {
                    self.controller.set_interrupt(vector, true);
                }
            }
        } else {
            self.state.store(DEAD, Ordering::Release);
        }
        self.end_quiesce(quiesced, |closed| match started {
            Ok(()) => closed.unquiesce(),
            Err(_) => closed.kill(),
        });
        if started.is_err() {
            // What waits to be tried again learns now that it is in vain.
            self.disks.lock().iter().for_each(|disk| disk.hurry());
        }
    }

    /// Tells the operator what the device was doing, before anything is done about it.
    fn tell_silence(&self) {
        let tell = |say: &dyn Fn(&mut dyn fmt::Write) -> fmt::Result| {
            let mut line = [0u8; LINE];
            let mut text = Text::new(&mut line);
            // What does not fit is cut.
            let _ = say(&mut text);
            let len = text.len();
            match line.get(..len).map(core::str::from_utf8) {
                Some(Ok(text)) if !text.is_empty() => crate::text::log_err!(self, "{}\n", text),
                _ => {}
            }
        };
        tell(&|to| self.controller.timeout_report(to));
        // Those without commands say nothing.
        for queue in &self.queues {
            if let Some(closed) = queue.io.kept_closed() {
                tell(&|to| closed.timeout_report(to));
                closed.keep_closed();
            }
        }
    }

    /// Has `work` done by the controller while its queues are at rest; afterwards they go on, and
    /// what it has ended is ended. Sleeps.
    pub(crate) fn at_rest<R>(&self, work: impl FnOnce(&C) -> R) -> R {
        self.at_rest_under(self.control(), work)
    }

    /// The same, unless the controller is suspended: what suspends it waits for the caller.
    pub(crate) fn at_rest_if_awake<R>(&self, work: impl FnOnce(&C) -> R) -> Option<R> {
        let control = self.control_if_awake()?;
        Some(self.at_rest_under(control, work))
    }

    fn at_rest_under<R>(
        &self,
        _control: Guard<'_, (), MutexBackend>,
        work: impl FnOnce(&C) -> R,
    ) -> R {
        let mut quiesced = self.quiesced.lock();
        self.quiesce_all(&mut quiesced);
        let done = work(&self.controller);
        self.end_quiesce(&mut quiesced, |closed| closed.unquiesce());
        for queue in &self.queues {
            let _stay = PreemptOff::new();
            queue.io.drain(Context::Sweep);
        }
        done
    }
}

/// How long a sleep waits for I/O that is under way. TIMEOUT: what a command may take by default
/// (30 s, as `nvme_wait_freeze_timeout` waits in Linux 7.3), and then a reset with as much again;
/// the PM core's watchdog is for 120 s.
const FREEZE_US: u64 = 60_000_000;

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// Freezes the disks, which [`Adapter::resume`] or [`Adapter::thaw`] thaws. `false`: what is
    /// under way does not end, which is told, and they are not frozen. Sleeps.
    pub(crate) fn freeze(&self) -> bool {
        let _no_io = NoIo::new();
        self.disks.lock().freeze();
        let mut left = FREEZE_US;
        while !self.disks.lock().is_frozen() {
            if left == 0 {
                self.tell_busy();
                self.thaw();
                return false;
            }
            // What threads poll for, or are to end, that are frozen by now.
            crate::wait::take_all();
            self.drain_all();
            self.platform.sleep_us(LOOK_AGAIN_US);
            left = left.saturating_sub(LOOK_AGAIN_US);
        }
        true
    }

    /// Undoes [`Adapter::freeze`]; without that, does nothing. Sleeps.
    pub(crate) fn thaw(&self) {
        self.disks.lock().thaw();
    }

    #[cold]
    fn tell_busy(&self) {
        let count = |of: fn(&HwQueue<C, B>) -> usize| self.queues.iter().map(of).sum::<usize>();
        crate::text::log_err!(
            self,
            "the machine can't sleep: {} I/Os with the device and {} that wait for it don't end; \
             try again, or unbind it\n",
            count(|queue| queue.io.in_flight()),
            count(|queue| queue.io.queued())
        );
    }

    /// The control path, for the caller alone, with a controller that is neither suspended nor
    /// about to be recovered. Sleeps: for as long as the function is being reset. (While the
    /// machine sleeps, no thread is awake to call.)
    pub(crate) fn control(&self) -> Guard<'_, (), MutexBackend> {
        loop {
            if let Some(control) = self.control_if_awake() {
                return control;
            }
            self.platform.sleep_us(LOOK_AGAIN_US);
        }
    }

    /// The control path, unless the controller is suspended, or is so while this waits. Sleeps.
    fn control_if_awake(&self) -> Option<Guard<'_, (), MutexBackend>> {
        loop {
            let control = self.control.lock();
            // Whatever its state is by now: with their tokens kept, the queues can't be quiesced.
            if *self.quiesced.lock() {
                return None;
            }
            let others_turn = match self.state.load(Ordering::Acquire) {
                SUSPENDED => return None,
                LIVE => {
                    self.recovering.load(Ordering::Acquire) != WELL
                        || self.urgent.load(Ordering::Acquire) != 0
                }
                _ => false,
            };
            if !others_turn {
                return Some(control);
            }
            drop(control);
            self.platform.sleep_us(LOOK_AGAIN_US);
        }
    }

    /// The control path for a reset or for the end, whatever the controller's state: a tool's
    /// command that takes long is given up for it ([`ControlPath::is_wanted`]). Sleeps.
    ///
    /// [`ControlPath::is_wanted`]: crate::blk::ioctl::ControlPath::is_wanted
    pub(crate) fn control_now(&self) -> Guard<'_, (), MutexBackend> {
        self.urgent.fetch_add(1, Ordering::AcqRel);
        let control = self.control.lock();
        self.urgent.fetch_sub(1, Ordering::AcqRel);
        control
    }

    /// Lays the queues to rest and stops the controller; what comes waits in the block layer until
    /// [`Adapter::resume`]. What is under way ends first, where the device still answers. After
    /// [`Adapter::freeze`], if the machine sleeps. Sleeps.
    pub fn suspend(&self, why: Suspend) {
        let _no_io = NoIo::new();
        self.keep_out();
        if why != Suspend::Frozen {
            self.wait_for_last_io();
        }
        let begun =
            (self.state).compare_exchange(LIVE, SUSPENDED, Ordering::AcqRel, Ordering::Acquire);
        // One that runs goes to its end, which may be that the controller is dead.
        self.recovery.cancel();
        let control = self.control_now();
        if begun.is_err() || self.state.load(Ordering::Acquire) != SUSPENDED {
            drop(control);
            // It is dead, and what comes fails at once, also while the machine sleeps.
            self.thaw();
            return self.let_in();
        }
        let then = match why {
            Suspend::Sleep => Then::PowerOff,
            Suspend::Reset | Suspend::Frozen => Then::Rest,
        };
        let mut quiesced = self.quiesced.lock();
        self.halt(&mut quiesced, CmdError::Aborted.retryable(), then);
    }

    /// Brings back what [`Adapter::suspend`] has put to rest; without that, does nothing. An error:
    /// it could not be brought back, and its disks are dead. Sleeps.
    pub fn resume(&self) -> Result<(), Error> {
        let _no_io = NoIo::new();
        let start = || match self.state.load(Ordering::Acquire) {
            SUSPENDED => self.start_again(),
            _ => Err(Down::stopped(Error::Gone)),
        };
        self.end_suspension(start).inspect_err(|error| {
            crate::text::log_err!(
                self,
                "it did not come back from sleep or reset: its disks are dead ({})\n",
                crate::errno::advice(*error)
            );
            self.mark_dead();
        })
    }

    /// A controller that is suspended stays so for good: what waits fails. Sleeps.
    pub(crate) fn abandon(&self) {
        let _ = self.end_suspension(|| Err(Down::stopped(Error::Gone)));
    }

    fn end_suspension(&self, start: impl FnOnce() -> Result<(), Down>) -> Result<(), Error> {
        let _control = self.control_now();
        let mut quiesced = self.quiesced.lock();
        // Not by the state: one that was given up meanwhile was left at rest.
        if !*quiesced {
            drop(quiesced);
            self.thaw();
            return Ok(());
        }
        let started = start().map_err(|down| down.why);
        let state = if started.is_ok() { LIVE } else { DEAD };
        self.state.store(state, Ordering::Release);
        self.go_on(&mut quiesced, started);
        drop(quiesced);
        // One that was begun before has come to nothing.
        self.recovering.store(WELL, Ordering::Release);
        self.let_in();
        self.thaw();
        if started.is_ok() {
            // What it would have called for meanwhile.
            self.call();
        }
        started
    }

    /// blk-mq gives no requests to the queues until [`Adapter::let_in`]. What is in dispatch gets
    /// to the FIFO at most. Sleeps.
    pub(crate) fn keep_out(&self) {
        self.disks.lock().keep_out();
        if let Some(set) = &self.set {
            set.wait_for_dispatch();
        }
    }

    /// Undoes one [`Adapter::keep_out`].
    pub(crate) fn let_in(&self) {
        self.disks.lock().let_in();
    }
}

/// How long a reboot or a suspension waits for I/O that is under way. TIMEOUT: user space is gone
/// or frozen by then; what is left is a file system's last writes, and a controller that has not
/// answered in this time is not worth holding the machine up for.
const LAST_IO_US: u64 = 5_000_000;

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// Takes the disks away, ends all I/O, and puts the controller to rest. Interrupt handlers must
    /// still be there; after it they may go, then the adapter. Sleeps.
    pub fn remove(&self) {
        self.abandon();
        let gone = self.alive() == Err(Error::Gone);
        if gone {
            // What is under way ends first: a file system that learns that the disk is gone waits
            // for it.
            let _ = self.restart(CmdError::Gone.permanent(), Then::Die);
            self.mark_dead();
        }
        crate::wait::take_all();
        self.take_disks();
        self.retire(if gone {
            Shutdown::Dead
        } else {
            Shutdown::Normal
        });
    }

    /// The machine goes down: what is under way ends, then the controller is told. Sleeps.
    pub fn shutdown(&self) {
        self.abandon();
        self.wait_for_last_io();
        self.state.store(DEAD, Ordering::Release);
        self.recovery.cancel();
        let _ = self.restart(CmdError::Aborted.permanent(), Then::PowerOff);
        self.stopped.store(1, Ordering::Release);
    }

    /// Until nothing is under way, or the device is gone or takes too long. Sleeps.
    fn wait_for_last_io(&self) {
        let mut left = LAST_IO_US;
        let busy = || {
            self.queues
                .iter()
                .any(|queue| queue.io.in_flight() != 0 || queue.io.queued() != 0)
        };
        while left != 0 && self.alive().is_ok() && busy() {
            self.drain_all();
            self.platform.sleep_us(LOOK_AGAIN_US);
            left = left.saturating_sub(LOOK_AGAIN_US);
        }
    }

    /// Takes the completions that are there, also those that only threads look for which are frozen
    /// by now.
    fn drain_all(&self) {
        self.queues.iter().for_each(|queue| {
            let _stay = PreemptOff::new();
            queue.io.drain(Context::Sweep);
        });
    }

    fn take_disks(&self) {
        // A tool's command that takes long would keep what it holds.
        self.gate.close();
        // None comes any more.
        let mut closed = self.change.lock();
        *closed = true;
        // One by one and without the lock: a recovery that fails meanwhile takes it.
        loop {
            let disk = self.disks.lock().last().cloned();
            let Some(disk) = disk else { return };
            disk.remove();
            self.disks.lock().pop();
        }
    }

    fn retire(&self, how: Shutdown) {
        self.attention.disable();
        self.state.store(DEAD, Ordering::Release);
        self.recovery.cancel();
        if self.stopped.swap(1, Ordering::AcqRel) != 0 {
            return;
        }
        let _control = self.control_now();
        if self.controller.shutdown(how).is_err() && how == Shutdown::Normal {
            crate::text::log_warn!(self, "it did not confirm the shutdown\n");
        }
        let _ = self.stop_or_cut_off();
    }

    /// What a drop does before the fields go: from any state.
    fn put_away(&mut self) {
        self.abandon();
        self.take_disks();
        *self.hook.lock() = None;
        self.retire(Shutdown::Dead);
        // Threads that were in the hook, or polled in passing, have left the queues.
        synchronize_rcu();
        // No disk uses it any more.
        self.set = None;
        self.queues.iter().for_each(|queue| queue.quiet());
    }
}

impl<C: Controller, B: Bus> Drop for Adapter<C, B> {
    fn drop(&mut self) {
        self.put_away();
    }
}
