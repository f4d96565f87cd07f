// SPDX-License-Identifier: GPL-2.0
//! What the layer above does about a device that calls for attention, is late, or has to be reset.

use super::{Fuzz, Target};
use engine::Context;
use hal::{CmdError, Controller, Failure, Platform, Queues, Wish};

/// After so long a command has timed out, as `nvme_timeout_ms` and libata's are.
const LATE_MS: u64 = 30_000;
/// How long a completion may take of what was given up.
const GRACE_US: u64 = 1_000_000;
/// How often what asks to be attended again is.
const ROUNDS: usize = 8;

impl<F: Target> Fuzz<'_, F> {
    /// Does what the device calls for.
    pub(super) fn attend(&mut self) {
        for _ in 0..ROUNDS {
            if self.dead {
                return;
            }
            let live = self.target.attend(Queues::Live);
            let wish = match live {
                Ok(Wish::Rest) => {
                    let machine = self.target.machine();
                    let paused: Vec<_> = self.queues.iter().map(|q| q.pause(machine)).collect();
                    let wish = self.target.attend(Queues::AtRest);
                    paused.into_iter().for_each(|paused| paused.resume());
                    for queue in &self.queues {
                        queue.drain(Context::Coop);
                    }
                    wish
                }
                other => other,
            };
            match wish {
                Ok(Wish::LookAnew) => self.look(),
                Ok(Wish::Recover) | Err(_) => return self.reset(),
                Ok(_) => return,
            }
        }
    }

    /// The ladder: what is late is looked for, given up, and if that does not help all is reset.
    pub(super) fn climb(&mut self) {
        self.target.machine().advance(LATE_MS * 1_000);
        if self.dead {
            return;
        }
        for at in 0..self.queues.len() {
            let queue = &self.queues[at];
            queue.drain(Context::Coop);
            let now_ms = || self.target.machine().now_us() / 1_000;
            while let Some(late) = queue.overdue(now_ms(), LATE_MS) {
                let controller = self.target.controller();
                let aborted = F::Controller::ABORTS
                    && controller.alive().is_ok()
                    && controller
                        .abort(queue.hardware(), late.tag, LATE_MS * 1_000)
                        .is_ok();
                if aborted {
                    self.target.machine().sleep_us(GRACE_US);
                    queue.drain(Context::Coop);
                }
                if !aborted || queue.overdue(late.issued_at, 0) == Some(late) {
                    return self.reset();
                }
            }
        }
    }

    /// What the layer above does about a controller that it does not trust any more.
    pub(super) fn reset(&mut self) {
        if self.dead {
            return;
        }
        self.restart(CmdError::Timeout.again(), true);
    }

    /// Lays the queues to rest, stops the controller, ends what it had; then brings it back, if it
    /// is `wanted`, or closes the gate for good.
    pub(super) fn restart(&mut self, why: Failure, wanted: bool) {
        let (machine, controller) = (self.target.machine(), self.target.controller());
        let mut paused: Vec<_> = self.queues.iter().map(|q| q.pause(machine)).collect();
        if controller.stop().is_err() {
            self.target.cut_off();
        }
        for queue in &mut paused {
            queue.reap(why);
            queue.rewind();
        }
        let started = wanted && controller.start().is_ok();
        if wanted && !started && controller.stop().is_err() {
            self.target.cut_off();
        }
        self.dead = !started;
        for queue in paused {
            match started {
                true => queue.resume(),
                false => queue.kill(),
            }
        }
    }
}
