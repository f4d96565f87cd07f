// SPDX-License-Identifier: GPL-2.0
//! Queues at rest, and a controller that is stopped: the steps that recoveries, suspensions and the
//! end are made of.

use crate::adapter::config::Bus;
use crate::adapter::queue::HwQueue;
use crate::adapter::state::{Adapter, PausedQueue, DEAD};
use crate::context::PreemptOff;
use crate::text::Text;
use core::fmt;
use core::sync::atomic::Ordering;
use engine::{Context, View};
use hal::{Controller, Error, Failure, Shutdown};
use kernel::prelude::*;
use kernel::sync::lock::{mutex::MutexBackend, Guard};

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
    /// Likewise, and it is told first that power may go away.
    PowerOff,
}

/// How a controller is left that could not be started.
#[derive(Clone, Copy)]
pub(crate) struct Down {
    pub(crate) why: Error,
    /// Nor could it be stopped, or one that it shares its way to memory with: it is cut off.
    pub(crate) is_stuck: bool,
}

impl Down {
    pub(crate) fn stopped(why: Error) -> Self {
        let is_stuck = false;
        Self { why, is_stuck }
    }
}

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// Lays the queues to rest, in `paused`, stops the controller, and ends what it had as `why`
    /// says. Under `control`, which `paused` is locked under; [`Adapter::go_on`] follows. Sleeps.
    pub(crate) fn halt(&self, paused: &mut KVec<PausedQueue<C, B>>, why: Failure, then: Then) {
        // Those of a controller that waits for a reset are at rest.
        let run = paused.is_empty();
        if run {
            self.pause_all(paused);
        }
        if self.misses.swap(false, Ordering::Relaxed) && then == Then::Start {
            self.tell_silence(paused);
        }
        for vector in self.queues.iter().filter_map(|queue| queue.vector) {
            self.controller.set_interrupt(vector, false);
        }
        if then == Then::PowerOff && self.controller.shutdown(Shutdown::Normal).is_err() {
            crate::log::log_warn!(self, "it did not confirm the shutdown\n");
        }
        let _ = self.stop_or_cut_off();
        self.bus.synchronize();
        // A reset does not wait for the owners of what came before it.
        crate::wait::take_all();
        for queue in paused {
            let _stay = PreemptOff::new();
            queue.reap(why);
            queue.rewind();
        }
    }

    /// Lays all queues to rest, in `paused`, which is the adapter's own. Sleeps.
    fn pause_all(&self, paused: &mut KVec<PausedQueue<C, B>>) {
        for queue in &self.queues {
            // SAFETY: the queue neither moves nor goes before `paused` is empty, by the adapter's
            // invariants. Who has called this empties it within the same call, or it is emptied at
            // the end of the suspension (`end_suspension`), which the adapter's drop brings about
            // before anything else.
            let queue: &'static HwQueue<C, B> = unsafe { &*core::ptr::from_ref(queue) };
            // Room for all was reserved when they were made.
            let _ = paused.push_within_capacity(queue.io.pause(&self.platform));
        }
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
    pub(crate) fn go_on(&self, paused: &mut KVec<PausedQueue<C, B>>, started: Result<(), Error>) {
        if started.is_ok() {
            for queue in &self.queues {
                queue.trust_again();
                if let Some(vector) = queue.vector.filter(|_| !queue.io.is_polled()) {
                    self.controller.set_interrupt(vector, true);
                }
            }
        } else {
            self.state.store(DEAD, Ordering::Release);
        }
        while let Some(queue) = paused.pop() {
            let _stay = PreemptOff::new();
            match started {
                Ok(()) => queue.resume(),
                Err(_) => queue.kill(),
            }
        }
        if started.is_err() {
            // What waits to be tried again learns now that it is in vain.
            self.disks.lock().iter().for_each(|disk| disk.hurry());
        }
    }

    /// Tells the operator what the device was doing, before anything is done about it.
    fn tell_silence(&self, paused: &KVec<PausedQueue<C, B>>) {
        let tell = |say: &dyn Fn(&mut dyn fmt::Write) -> fmt::Result| {
            let mut line = [0u8; LINE];
            let mut text = Text::new(&mut line);
            // What does not fit is cut.
            let _ = say(&mut text);
            let len = text.len();
            match line.get(..len).map(core::str::from_utf8) {
                Some(Ok(text)) if !text.is_empty() => crate::log::log_err!(self, "{}\n", text),
                _ => {}
            }
        };
        tell(&|to| self.controller.silence(to));
        // Those without commands say nothing.
        paused
            .iter()
            .for_each(|queue| tell(&|to| queue.silence(to)));
    }

    /// Has `work` done by the controller while its queues are at rest; afterwards they go on, and
    /// what it has ended is ended. Sleeps.
    pub(crate) fn at_rest<R>(&self, work: impl FnOnce(&C) -> R) -> R {
        self.at_rest_under(self.control(), work)
    }

    /// Likewise, unless the controller is suspended: whoever suspends it waits for the caller.
    pub(crate) fn at_rest_if_awake<R>(&self, work: impl FnOnce(&C) -> R) -> Option<R> {
        let control = self.control_if_awake()?;
        Some(self.at_rest_under(control, work))
    }

    fn at_rest_under<R>(
        &self,
        _control: Guard<'_, (), MutexBackend>,
        work: impl FnOnce(&C) -> R,
    ) -> R {
        let mut paused = self.paused.lock();
        self.pause_all(&mut paused);
        let done = work(&self.controller);
        while let Some(queue) = paused.pop() {
            let _stay = PreemptOff::new();
            queue.resume();
        }
        for queue in &self.queues {
            let _stay = PreemptOff::new();
            queue.io.drain(Context::Sweep);
        }
        done
    }
}
