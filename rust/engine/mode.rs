// SPDX-License-Identifier: GPL-2.0
//! The modes, and the switch between interrupts and polling.
//!
//! Whether a queue is polled is written by the drain token's holder alone: by who sets the mode,
//! with the queue at rest, and of a hybrid queue by whoever has drained it.

use crate::gate::Paused;
use crate::queue::{DrainSide, IoQueue};
use crate::strategy::{Drained, Strategy, View};
use crate::{Context, Upper};
use cell::sync::{fence, Ordering};
use hal::{Error, Platform, Queue};

/// How completions are noticed when nobody passes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By the controller's interrupt.
    Irq,
    /// By a timer.
    Poll,
    /// By whichever of the two serves the present load better.
    Hybrid,
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> Paused<'_, P, Q, U, S> {
    /// Changes the mode; [`Paused::resume`] then looks for completions that nobody announces any
    /// more. With preemption off.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: this queue's interrupt can't be turned off.
    pub fn set_mode(&mut self, mode: Mode) -> Result<(), Error> {
        let queue = self.queue();
        let polled = match mode {
            Mode::Irq => false,
            Mode::Poll => true,
            Mode::Hybrid => queue.is_polled(),
        };
        let able = mode == Mode::Irq || queue.upper.can_poll();
        if !able || (polled != queue.is_polled() && !queue.switch(polled)) {
            return Err(Error::Unsupported);
        }
        queue.poll.set_mode(mode);
        self.begin();
        Ok(())
    }

    /// The strategy is to be the one of that number ([`Strategy::NAMES`]). A hybrid queue begins by
    /// its interrupt again, and what was deferred goes to the device with [`Paused::resume`],
    /// unless the new one defers it, too. With preemption off.
    pub fn choose(&mut self, which: usize) {
        let queue = self.queue();
        queue.strategy.choose(which);
        if queue.poll.mode() == Mode::Hybrid && queue.is_polled() {
            queue.switch(false);
        }
        self.begin();
    }

    fn begin(&mut self) {
        let queue = self.queue();
        if let Some(side) = self.drain_side() {
            queue.strategy.begin(&mut side.notes, queue);
        }
    }
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// After a drain a hybrid queue goes over to what the strategy thinks serves the load better.
    /// `true`: the caller has to look for completions again.
    #[inline(always)]
    pub(crate) fn adapt(&self, side: &mut DrainSide<Q, S>, drained: Drained) -> bool {
        let passes = matches!(drained.by, Context::Coop | Context::Sweep);
        let nothing = drained.ended == 0 && passes;
        if nothing || self.poll.mode() != Mode::Hybrid {
            return false;
        }
        let wanted = self.strategy.polls(&mut side.notes, self, drained);
        wanted != self.poll.is_on() && self.switch(wanted) && !wanted
    }

    /// Turns the interrupt off or on again; `false`: it can't be. With the drain token held.
    #[cold]
    fn switch(&self, polled: bool) -> bool {
        if !self.upper.set_interrupt(!polled) {
            return false;
        }
        self.poll.turn(polled);
        if polled {
            fence(Ordering::SeqCst);
            if self.is_watched() && self.claim_timer() {
                self.come_again();
            }
        }
        true
    }
}
