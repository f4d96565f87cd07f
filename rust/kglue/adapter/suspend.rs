// SPDX-License-Identifier: GPL-2.0
//! A controller that is put to rest for a while, with its disks staying: the machine sleeps, or the
//! function is about to be reset by somebody else.
//!
//! Between [`Adapter::suspend`] and [`Adapter::resume`] the queues are at rest, and blk-mq gives
//! them nothing. No thread holds a lock meanwhile, as another one may resume: who wants the control
//! path waits in [`Adapter::control`].
//!
//! # Sleep
//! A machine that sleeps takes its CPUs down, and blk-mq waits for the requests of each
//! (`blk_mq_hctx_notify_offline`, Linux 7.3), without end. Not all threads are frozen by then:
//! writeback, md and swap go on. So the disks are frozen first ([`Adapter::freeze`]): what is under
//! way ends, and what comes waits without a request. Where it does not end, the machine stays
//! awake.

use crate::adapter::config::Bus;
use crate::adapter::queue::HwQueue;
use crate::adapter::reason::Suspend;
use crate::adapter::rest::{Down, Then};
use crate::adapter::state::{Adapter, DEAD, LIVE, LOOK_AGAIN_US, SUSPENDED, WELL};
use crate::context::NoIo;
use core::sync::atomic::Ordering;
use hal::{CmdError, Controller, Error, Platform};
use kernel::prelude::*;
use kernel::sync::lock::{mutex::MutexBackend, Guard};

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
        crate::log::log_err!(
            self,
            "the machine can't sleep: {} I/Os with the device and {} that wait for it don't end; \
             try again, or unbind it\n",
            count(|queue| queue.io.in_flight()),
            count(|queue| queue.io.queued())
        );
    }

    /// The control path, for the caller alone, with a controller that is neither suspended nor
    /// about to be recovered. Sleeps: for as long as the function is being reset. (While the
    /// machine sleeps, nobody is awake to call.)
    pub(crate) fn control(&self) -> Guard<'_, (), MutexBackend> {
        loop {
            if let Some(control) = self.control_if_awake() {
                return control;
            }
            self.platform.sleep_us(LOOK_AGAIN_US);
        }
    }

    /// Likewise, unless the controller is suspended, or is so while this waits. Sleeps.
    pub(crate) fn control_if_awake(&self) -> Option<Guard<'_, (), MutexBackend>> {
        loop {
            let control = self.control.lock();
            // Whatever its state is by now: with their tokens kept, the queues can't be paused.
            if !self.paused.lock().is_empty() {
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
        let mut paused = self.paused.lock();
        self.halt(&mut paused, CmdError::Aborted.again(), then);
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
            crate::log::log_err!(
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
        let mut paused = self.paused.lock();
        // Not by the state: who has given it up meanwhile has left it at rest.
        if paused.is_empty() {
            drop(paused);
            self.thaw();
            return Ok(());
        }
        let started = start().map_err(|down| down.why);
        let state = if started.is_ok() { LIVE } else { DEAD };
        self.state.store(state, Ordering::Release);
        self.go_on(&mut paused, started);
        drop(paused);
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
