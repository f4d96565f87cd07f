// SPDX-License-Identifier: GPL-2.0
//! The ladder that is climbed when a command is late: its completion is looked for
//! ([`Adapter::late`]); the device is asked to give it up; the controller is reset
//! ([`Adapter::restart`]); it is dead. Each rung has its time, and who asks for a higher one
//! meanwhile gets it.

use crate::adapter::config::Bus;
use crate::adapter::queue::{HwQueue, Keeper};
use crate::adapter::reason::Reason;
use crate::adapter::state::{Adapter, ABORT, RESET, WELL};
use crate::blk::request::RqRef;
use crate::context::{now_ms, PreemptOff, TICK_MS};
use crate::log::{log_err, log_info};
use core::sync::atomic::Ordering;
use engine::{Context, Overdue};
use hal::{Controller, Platform};

/// How long the completion of a command may take that was aborted, says the device. TIMEOUT: the
/// specification has it posted by then (NVMe Base 2.0 section 5.1); QEMU's drives post it later.
const GRACE_MS: u64 = 1_000;
/// Between two looks for it, in microseconds.
const LOOK_US: u64 = 1_000;
const US_PER_MS: u64 = 1_000;

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// `rq` is late, says blk-mq. The first rung: looks for its completion. If a command is overdue
    /// still, the adapter climbs on ([`Adapter::recover_from`]).
    ///
    /// While the queues are at rest nobody can drain, so nothing can be said of what is late: this
    /// waits until they go on, and of a controller that is suspended the block layer asks again.
    /// Sleeps.
    #[cold]
    pub(crate) fn late(&self, queue: &HwQueue<C, B>, rq: RqRef<'_>) {
        // Held on: whoever wants them to rest waits until this has looked.
        let paused = self.paused.lock();
        if !paused.is_empty() {
            return;
        }
        // Both clocks tick alike, but the block layer's began a moment earlier.
        let limit = rq.timeout_ms().saturating_sub(TICK_MS);
        let climbs = self.climbs();
        let overdue = queue.io.overdue(now_ms(), limit).is_some();
        {
            let _stay = PreemptOff::new();
            queue.io.drain(Context::Sweep);
        }
        crate::wait::take_all();
        queue.judge();
        if queue.io.overdue(now_ms(), limit).is_some() {
            rq.lane().stats.timeout();
            self.late_ms.store(limit, Ordering::Relaxed);
            self.recover_from(Reason::Late(rq.command()));
        } else if rq.is_waiting() {
            self.late_in_fifo(queue, rq, limit);
        } else if overdue && climbs.is_some() && climbs == self.climbs() {
            // Nobody's but the device's: what another time-out had aborted is none that was missed.
            queue.missed_one();
            // As the in-tree drivers say it; ci/splat.sh knows the words.
            crate::log::log_warn!(self, "a completion was noticed only at its deadline\n");
        }
    }

    /// `rq` waits for a tag longer than a command may take. Where others are given tags meanwhile
    /// there is more to do than the device can; else it is the device that keeps them.
    fn late_in_fifo(&self, queue: &HwQueue<C, B>, rq: RqRef<'_>, limit: u64) {
        // Meanwhile it is a reset that all wait for.
        if !self.is_live() || self.recovering.load(Ordering::Acquire) != WELL {
            return;
        }
        {
            let _stay = PreemptOff::new();
            queue.io.kick();
        }
        if !rq.is_waiting() {
            return;
        }
        rq.lane().stats.timeout();
        if queue.io.is_stalled(now_ms(), limit) {
            return self.recover_from(Reason::NoTag(rq.command()));
        }
        if !queue.tells_to_wait() {
            return;
        }
        crate::log::log_warn!(
            self,
            "more requests than it ends within their time: some wait longer for a tag than \
             queue/io_timeout, and are counted as time-outs; fewer at once (queue/nr_requests), or \
             more time, is the way out\n"
        );
    }

    /// The rung at which `reason` begins. One that is not alive is not asked for anything.
    pub(crate) fn rung_for(&self, reason: &Reason) -> u8 {
        match reason {
            Reason::Late(_) if C::ABORTS && self.alive().is_ok() => ABORT,
            _ => RESET,
        }
    }

    /// How often what was late was aborted or reset, while nobody is at it; `None`: somebody is.
    /// What ends between two answers that are alike has ended by itself.
    pub(crate) fn climbs(&self) -> Option<u64> {
        // What it did is counted before it is well again, so the count is looked at first.
        let climbs = self.aborts.load(Ordering::Acquire);
        let climbs = climbs.wrapping_add(self.resets.load(Ordering::Acquire));
        (self.recovering.load(Ordering::Acquire) == WELL).then_some(climbs)
    }

    /// Has the device abort what is late, if it may be left at that; whether nothing is late any
    /// more, and nobody has asked for a reset. Sleeps: as long as a command may take.
    pub(crate) fn is_settled_by_abort(&self) -> bool {
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

    /// Likewise of one queue: the oldest first, until `until_ms` by the clock of [`now_ms`].
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

impl<C: Controller, B: Bus> Keeper for Adapter<C, B> {
    fn can_poll(&self) -> bool {
        self.bus.can_poll()
    }

    fn set_interrupt(&self, vector: u16, on: bool) {
        self.controller.set_interrupt(vector, on);
        self.bus.set_interrupt(vector, on);
    }

    fn distrust(&self) {
        self.recover_from(Reason::Lies);
    }
}
