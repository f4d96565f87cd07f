// SPDX-License-Identifier: GPL-2.0
//! A controller that does not answer, or not sensibly, is stopped, reaped and brought back.

use crate::adapter::config::Bus;
use crate::adapter::reason::Reason;
use crate::adapter::rest::{Down, Then};
use crate::adapter::state::{Adapter, ABORT, DEAD, LIVE, SUSPENDED, WELL};
use crate::context::NoIo;
use crate::work::{Recover, Run};
use core::sync::atomic::Ordering;
use hal::{CmdError, Controller, Error, Failure};

/// How a restart ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It serves.
    Back,
    /// All that it is part of is reset ([`Bus::reset_all`]); it is suspended until then.
    Waits,
}

impl<C: Controller, B: Bus> Run<Recover> for Adapter<C, B> {
    fn run(&self) {
        let _no_io = NoIo::new();
        if self.state.load(Ordering::Acquire) != LIVE {
            return;
        }
        if self.is_settled_by_abort() {
            // As below.
            return self.call();
        }
        self.resets.fetch_add(1, Ordering::Release);
        match self.restart(CmdError::Timeout.again(), Then::Start) {
            Ok(Ended::Waits) => crate::log::log_err!(
                self,
                "it can't be stopped: all that it is part of is reset, and the others go on then\n"
            ),
            Ok(Ended::Back) => {
                crate::log::log_warn!(self, "it is back\n");
                // What it would have called for meanwhile.
                self.call();
            }
            Err(error) => {
                crate::log::log_err!(
                    self,
                    "it can't be brought back: its disks are dead ({})\n",
                    crate::errno::advice(error)
                );
                self.mark_dead();
            }
        }
    }
}

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// Has the controller recovered, soon. Any context.
    pub(crate) fn recover_from(&self, reason: Reason) {
        if self.state.load(Ordering::Acquire) != LIVE {
            return;
        }
        let rung = self.rung_for(&reason);
        if !matches!(reason, Reason::Asked) {
            self.misses.store(true, Ordering::Relaxed);
        }
        // One at a time: all that are late at once say so one after the other, and the first has
        // begun to work by then.
        let before = self.recovering.fetch_max(rung, Ordering::AcqRel);
        if before >= rung {
            return;
        }
        match rung {
            ABORT => crate::log::log_warn!(self, "{}: it is asked to abort that\n", reason),
            _ => crate::log::log_err!(
                self,
                "{}: resetting it; what it was told is tried again\n",
                reason
            ),
        }
        if before != WELL {
            // Whoever works on it climbs on.
            return;
        }
        self.recovery.begin();
    }

    /// Lays the queues to rest, stops the controller, ends what it had as `why` says; then brings
    /// it back, or closes the gate for good. An error: it could not be brought back, and the gate
    /// is closed. Sleeps.
    pub(crate) fn restart(&self, why: Failure, then: Then) -> Result<Ended, Error> {
        let _control = self.control_now();
        self.keep_out();
        let (result, suspended) = self.restart_quiesced(why, then);
        // With the control path still held: whoever finds something wrong from here on begins
        // another.
        self.recovering.store(WELL, Ordering::Release);
        if !suspended {
            self.let_in();
        }
        result
    }

    /// Returns, too, whether this has suspended it, which whoever resumes it ends.
    fn restart_quiesced(&self, why: Failure, then: Then) -> (Result<Ended, Error>, bool) {
        let mut paused = self.paused.lock();
        self.halt(&mut paused, why, then);
        let started = match then {
            Then::Start => self.start_again(),
            Then::Rest | Then::Die | Then::PowerOff => Err(Down::stopped(Error::Gone)),
        };
        if started.is_err_and(|down| down.is_stuck) && self.bus.reset_all() {
            let begun =
                (self.state).compare_exchange(LIVE, SUSPENDED, Ordering::AcqRel, Ordering::Acquire);
            // Whoever resets has suspended it already, perhaps, and waits for this to end.
            if matches!(begun, Ok(_) | Err(SUSPENDED)) {
                return (Ok(Ended::Waits), begun.is_ok());
            }
        }
        let started = started.map_err(|down| down.why);
        self.go_on(&mut paused, started);
        (started.map(|()| Ended::Back), false)
    }

    /// The device is gone for good: what it has fails, and so does what comes, until the adapter is
    /// removed. Sleeps.
    pub(crate) fn lose(&self) {
        self.state.store(DEAD, Ordering::Release);
        self.abandon();
        // Before anybody is told: a file system that learns of it waits for what it has under way.
        let _ = self.restart(CmdError::Gone.finally(), Then::Die);
        self.mark_dead();
    }

    /// Nobody brings it back any more who has put it to rest: then it is lost. One that was left to
    /// serve goes on as long as it answers. Sleeps.
    pub(crate) fn give_up(&self) {
        if self.is_live() && self.alive().is_ok() {
            crate::log::log_warn!(
                self,
                "the recovery of its bus has failed; it answers, and is served on\n"
            );
            return;
        }
        if self.is_dead() {
            return;
        }
        crate::log::log_err!(
            self,
            "the recovery of its bus has failed: its disks are dead ({})\n",
            crate::errno::advice(Error::Gone)
        );
        self.lose();
    }

    /// User space and file systems learn that the disks are gone.
    pub(crate) fn mark_dead(&self) {
        self.disks.lock().iter().for_each(|disk| disk.mark_dead());
    }
}
