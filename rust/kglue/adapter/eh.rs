// SPDX-License-Identifier: GPL-2.0
//! Error handling: the ladder that is climbed when a command is late, or the controller is not to
//! be trusted.
//!
//! The command's completion is looked for ([`Adapter::late`]); the device is asked to give the
//! command up; the controller is stopped, reaped and brought back ([`Adapter::restart`]); it is
//! dead. Each rung has its time, and a call for a higher one meanwhile is heard.

use core::sync::atomic::Ordering;
use engine::{Context, Overdue};
use hal::{CmdError, Controller, Error, Failure, Platform};

use crate::adapter::config::{Bus, Reason};
use crate::adapter::queue::{AdapterOps, HwQueue};
use crate::adapter::quiesce::{Down, Then};
use crate::adapter::state::{Adapter, ABORT, DEAD, LIVE, RESET, SUSPENDED, WELL};
use crate::blk::request::Late;
use crate::platform::{now_ms, NoIo, PreemptOff, TICK_MS};
use crate::text::{log_err, log_info};
use crate::work::{Recover, Run};

/// How a restart ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restarted {
    /// It serves.
    Back,
    /// All that it is part of is reset ([`Bus::reset_all`]); it is suspended until then.
    Waits,
}

/// How long the completion of a command may take that was aborted, says the device. TIMEOUT: the
/// specification has it posted by then (NVMe Base 2.0 section 5.1); QEMU's drives post it later.
const GRACE_MS: u64 = 1_000;
/// Between two looks for such a completion, in microseconds.
const LOOK_US: u64 = 1_000;
const US_PER_MS: u64 = 1_000;

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// `io` is late, says blk-mq or who waits for it. The first rung: looks for its completion. If
    /// a command is overdue still, the adapter climbs on ([`Adapter::recover_from`]).
    ///
    /// While the queues are at rest no thread can drain, so nothing can be said of what is late:
    /// this waits until they go on, and of a controller that is suspended the block layer asks
    /// again. Sleeps.
    #[cold]
    pub(crate) fn late(&self, queue: &HwQueue<C, B>, io: &dyn Late) {
        // Held on: a caller that wants them to rest waits until this has looked.
        let quiesced = self.quiesced.lock();
        if *quiesced {
            return;
        }
        // Both clocks tick alike, but the block layer's began a moment earlier.
        let limit = io.timeout_ms().saturating_sub(TICK_MS);
        let climbs = self.climbs();
        let overdue = queue.io.overdue(now_ms(), limit).is_some();
        {
            let _stay = PreemptOff::new();
            queue.io.drain(Context::Sweep);
        }
        crate::wait::take_all();
        queue.check_violations();
        if queue.io.overdue(now_ms(), limit).is_some() {
            io.count();
            self.late_ms.store(limit, Ordering::Relaxed);
            self.recover_from(Reason::Late(io.command()));
        } else if io.is_waiting() {
            self.late_in_fifo(queue, io, limit);
        } else if overdue && climbs.is_some() && climbs == self.climbs() {
            // Nobody's but the device's: what another time-out had aborted is none that was missed.
            queue.missed_one();
            // As the in-tree drivers say it; ci/splat.sh knows the words.
            crate::text::log_warn!(self, "a completion was noticed only at its deadline\n");
        }
    }

    /// `io` waits for a tag longer than a command may take. Where others are given tags meanwhile
    /// there is more to do than the device can; else it is the device that keeps them.
    fn late_in_fifo(&self, queue: &HwQueue<C, B>, io: &dyn Late, limit: u64) {
        // Meanwhile it is a reset that all wait for.
        if !self.is_live() || self.recovering.load(Ordering::Acquire) != WELL {
            return;
        }
        {
            let _stay = PreemptOff::new();
            queue.io.kick();
        }
        if !io.is_waiting() {
            return;
        }
        io.count();
        if queue.io.is_stalled(now_ms(), limit) {
            return self.recover_from(Reason::NoTag(io.command()));
        }
        if !queue.tells_to_wait() {
            return;
        }
        crate::text::log_warn!(
            self,
            "more requests than it ends within their time: some wait longer for a tag than \
             queue/io_timeout, and are counted as time-outs; fewer at once (queue/nr_requests), or \
             more time, is the way out\n"
        );
    }

    /// The rung at which `reason` begins. One that is not alive is not asked for anything.
    fn rung_for(&self, reason: &Reason) -> u8 {
        match reason {
            Reason::Late(_) if C::ABORTS && self.alive().is_ok() => ABORT,
            _ => RESET,
        }
    }

    /// How often what was late was aborted or reset, while nobody is at it; `None`: somebody is.
    /// What ends between two answers that are alike has ended by itself.
    fn climbs(&self) -> Option<u64> {
        // What it did is counted before it is well again, so the count is looked at first.
        let climbs = self.aborts.load(Ordering::Acquire);
        let climbs = climbs.wrapping_add(self.resets.load(Ordering::Acquire));
        (self.recovering.load(Ordering::Acquire) == WELL).then_some(climbs)
    }

    /// Has the device abort what is late, if it may be left at that; whether nothing is late any
    /// more, and nobody has asked for a reset. Sleeps: as long as a command may take.
    fn is_settled_by_abort(&self) -> bool {
        if self.recovering.load(Ordering::Acquire) != ABORT {
            return false;
        }
        let _control = self.control_now();
        if !self.is_live() {
            // Suspended meanwhile, or dead: it is stopped, and what it had is tried again or over.
            return true;
        }
        let limit_ms = self.late_ms.load(Ordering::Relaxed);
        let until_ms = now_ms().saturating_add(limit_ms);
        let mut queues = self.queues.iter();
        let settled = queues.all(|queue| self.abort_late(queue, limit_ms, until_ms));
        if !settled {
            log_err!(
                self,
                "it does not abort that: resetting it; what it was told is tried again\n"
            );
            return false;
        }
        log_info!(
            self,
            "nothing is late any more; what it aborted is tried again\n"
        );
        // With the control path still held, as in `restart`.
        let done =
            (self.recovering).compare_exchange(ABORT, WELL, Ordering::AcqRel, Ordering::Acquire);
        done.is_ok()
    }

    /// Aborts what is late on one queue: the oldest first, until `until_ms` by the clock of
    /// [`now_ms`].
    fn abort_late(&self, queue: &HwQueue<C, B>, limit_ms: u64, until_ms: u64) -> bool {
        while let Some(late) = queue.io.overdue(now_ms(), limit_ms) {
            let left_us = until_ms.saturating_sub(now_ms()).saturating_mul(US_PER_MS);
            if left_us == 0 {
                return false;
            }
            let hardware = queue.io.hardware();
            let grace_ms = match self.controller.abort(hardware, late.tag, left_us) {
                Ok(true) => GRACE_MS,
                // It may have finished it in the meantime.
                Ok(false) => 0,
                Err(_) => return false,
            };
            if !self.is_over(queue, late, grace_ms) {
                return false;
            }
            self.aborts.fetch_add(1, Ordering::Release);
        }
        true
    }

    /// Whether the command `late` ends within `grace_ms`. Sleeps.
    fn is_over(&self, queue: &HwQueue<C, B>, late: Overdue, grace_ms: u64) -> bool {
        let until_ms = now_ms().saturating_add(grace_ms);
        loop {
            // The clock first: a late wake-up is not the device's fault.
            let now_ms = now_ms();
            {
                let _stay = PreemptOff::new();
                queue.io.drain(Context::Sweep);
            }
            crate::wait::take_all();
            // It is still the oldest, and as old as it was.
            if queue.io.overdue(late.issued_at, 0) != Some(late) {
                return true;
            }
            if now_ms >= until_ms {
                return false;
            }
            self.platform.sleep_us(LOOK_US);
        }
    }
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
        match self.restart(CmdError::Timeout.retryable(), Then::Start) {
            Ok(Restarted::Waits) => crate::text::log_err!(
                self,
                "it can't be stopped: all that it is part of is reset, and the others go on then\n"
            ),
            Ok(Restarted::Back) => {
                crate::text::log_warn!(self, "it is back\n");
                // What it would have called for meanwhile.
                self.call();
            }
            Err(error) => {
                crate::text::log_err!(
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
            ABORT => crate::text::log_warn!(self, "{}: it is asked to abort that\n", reason),
            _ => crate::text::log_err!(
                self,
                "{}: resetting it; what it was told is tried again\n",
                reason
            ),
        }
        if before != WELL {
            // The recovery at work climbs on.
            return;
        }
        self.recovery.begin();
    }

    /// Lays the queues to rest, stops the controller, ends what it had as `why` says; then brings
    /// it back, or closes the gate for good. An error: it could not be brought back, and the gate
    /// is closed. Sleeps.
    pub(crate) fn restart(&self, why: Failure, then: Then) -> Result<Restarted, Error> {
        let _control = self.control_now();
        self.keep_out();
        let (result, suspended) = self.restart_quiesced(why, then);
        // With the control path still held: what goes wrong from here on begins
        // another.
        self.recovering.store(WELL, Ordering::Release);
        if !suspended {
            self.let_in();
        }
        result
    }

    /// Returns, too, whether this has suspended it, which the one that resumes it ends.
    fn restart_quiesced(&self, why: Failure, then: Then) -> (Result<Restarted, Error>, bool) {
        let mut quiesced = self.quiesced.lock();
        self.halt(&mut quiesced, why, then);
        let started = match then {
            Then::Start => self.start_again(),
            Then::Rest | Then::Die | Then::PowerOff => Err(Down::stopped(Error::Gone)),
        };
        if started.is_err_and(|down| down.is_stuck) && self.bus.reset_all() {
            let begun =
                (self.state).compare_exchange(LIVE, SUSPENDED, Ordering::AcqRel, Ordering::Acquire);
            // The reset has suspended it already, perhaps, and waits for this to end.
            if matches!(begun, Ok(_) | Err(SUSPENDED)) {
                return (Ok(Restarted::Waits), begun.is_ok());
            }
        }
        let started = started.map_err(|down| down.why);
        self.go_on(&mut quiesced, started);
        (started.map(|()| Restarted::Back), false)
    }

    /// The device is gone for good: what it has fails, and so does what comes, until the adapter is
    /// removed. Sleeps.
    pub(crate) fn lose(&self) {
        self.state.store(DEAD, Ordering::Release);
        self.abandon();
        // Before anybody is told: a file system that learns of it waits for what it has under way.
        let _ = self.restart(CmdError::Gone.permanent(), Then::Die);
        self.mark_dead();
    }

    /// What has put it to rest does not bring it back any more: then it is lost. One that was left
    /// to serve goes on as long as it answers. Sleeps.
    pub(crate) fn give_up(&self) {
        if self.is_live() && self.alive().is_ok() {
            crate::text::log_warn!(
                self,
                "the recovery of its bus has failed; it answers, and is served on\n"
            );
            return;
        }
        if self.is_dead() {
            return;
        }
        crate::text::log_err!(
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

impl<C: Controller, B: Bus> AdapterOps for Adapter<C, B> {
    fn can_poll(&self) -> bool {
        self.bus.can_poll()
    }

    fn set_interrupt(&self, vector: u16, on: bool) {
        self.controller.set_interrupt(vector, on);
        self.bus.set_interrupt(vector, on);
    }

    fn report_violation(&self) {
        self.recover_from(Reason::Lies);
    }

    fn late(&self, queue: *const (), io: &dyn Late) {
        let is_it = |one: &&HwQueue<C, B>| core::ptr::from_ref(*one).cast() == queue;
        if let Some(queue) = self.queues.iter().find(is_it) {
            Adapter::late(self, queue, io);
        }
    }
}
