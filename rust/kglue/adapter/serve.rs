// SPDX-License-Identifier: GPL-2.0
//! What an adapter does while it serves: interrupts, and its disks' files.

use crate::adapter::config::Bus;
use crate::adapter::control::GateWay;
use crate::adapter::forecast;
use crate::adapter::learned;
use crate::adapter::queue::HwQueue;
use crate::adapter::reason::Reason;
use crate::adapter::state::Adapter;
use crate::blk::ioctl::{AdminPath, ControlPath};
use crate::blk::owner::{ControllerCounts, Ioctl, Owner};
use crate::context::stamp;
use crate::log::log_warn;
use crate::taken_off::TakeOff;
use core::any::Any;
use core::fmt::{self, Write};
use core::sync::atomic::Ordering;
use engine::{Context, Mode, Strategy, View};
use hal::{Answer, Cause, Controller, Error, Heat, Holder, LinkPower, Registered, Reserve};

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// The handler of `vector`, in hard interrupt context: `true` if the interrupt was the
    /// controller's.
    #[inline]
    pub fn interrupt(&self, vector: u16) -> bool {
        let begin = stamp();
        match self.controller.interrupt(vector) {
            Cause::None => return false,
            Cause::Queues => {}
            Cause::Attention => self.call(),
        }
        if let Some(queue) = self.queue_of(vector) {
            queue.serve(begin);
        } else {
            self.interrupt_all(vector, begin);
        }
        true
    }

    /// The queue of `vector`, where each has its own.
    #[inline]
    fn queue_of(&self, vector: u16) -> Option<&HwQueue<C, B>> {
        let at = vector.wrapping_sub(self.own_vectors?);
        let queue = self.queues.get(usize::from(at))?;
        queue.vector.is_some().then_some(queue)
    }

    /// Several queues share `vector`.
    #[cold]
    fn interrupt_all(&self, vector: u16, begin: u64) {
        let mut queues = self
            .queues
            .iter()
            .filter(|queue| queue.vector == Some(vector));
        let first = queues.next();
        queues.for_each(|queue| {
            queue.io.drain(Context::Irq);
        });
        if let Some(queue) = first {
            queue.serve(begin);
        }
    }
}

impl<C: AdminPath, B: Bus> Owner for Adapter<C, B> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn counts(&self) -> ControllerCounts {
        let mut counts = ControllerCounts {
            resets: self.resets.load(Ordering::Relaxed),
            asked: self.asked.load(Ordering::Relaxed),
            aborts: self.aborts.load(Ordering::Relaxed),
            ..Default::default()
        };
        for queue in &self.queues {
            queue.add_to(&mut counts);
        }
        let before = self.doorbells_before.load(Ordering::Relaxed);
        counts.doorbell_writes = counts.doorbell_writes.wrapping_sub(before);
        counts
    }

    fn reset_counts(&self) {
        self.resets.store(0, Ordering::Relaxed);
        self.asked.store(0, Ordering::Relaxed);
        self.aborts.store(0, Ordering::Relaxed);
        let writes = self.queues.iter().map(|queue| queue.io.doorbell_writes());
        self.doorbells_before
            .store(writes.fold(0, u64::wrapping_add), Ordering::Relaxed);
        self.queues.iter().for_each(|queue| queue.reset_counts());
    }

    fn mode(&self) -> Mode {
        (self.queues.first()).map_or(Mode::Irq, |queue| queue.io.mode())
    }

    fn set_mode(&self, mode: Mode) -> Result<(), Error> {
        // A recovery holds it, too: the queues are at rest for one of the two at a time.
        let _control = self.control();
        let mut interrupting = self.queues.iter().take(self.interrupting());
        interrupting.try_for_each(|queue| queue.set_mode(&self.platform, mode))
    }

    fn strategy(&self) -> usize {
        (self.queues.first()).map_or(0, |queue| queue.io.strategy().chosen())
    }

    fn choose(&self, which: usize) {
        // As for the mode.
        let _control = self.control();
        for queue in self.queues.iter().take(self.interrupting()) {
            queue.choose(&self.platform, which);
        }
    }

    fn learned(&self, to: &mut dyn Write) -> fmt::Result {
        learned::write(to, self.queues.iter())
    }

    fn poll_interval_us(&self) -> u32 {
        (self.queues.first()).map_or(0, |queue| queue.io.poll_interval_us())
    }

    fn set_poll_interval_us(&self, us: u32) {
        (self.queues.iter()).for_each(|queue| queue.io.set_poll_interval_us(us));
    }

    fn predicts(&self) -> bool {
        (self.queues.first()).is_some_and(|queue| queue.io.is_foretelling_wanted())
    }

    fn set_predict(&self, on: bool) {
        self.queues.iter().for_each(|queue| queue.set_predict(on));
    }

    fn window_us(&self) -> u32 {
        (self.queues.first()).map_or(0, |queue| queue.window_us())
    }

    fn set_window_us(&self, us: u32) {
        (self.queues.iter()).for_each(|queue| queue.set_window_us(us));
    }

    fn forecast(&self, to: &mut dyn Write) -> fmt::Result {
        forecast::write(to, self.queues.iter().map(|queue| queue.io.strategy()))
    }

    fn rescan(&self) {
        self.begin_rescan();
        if let Some(take_off) = self.bus.take_off() {
            take_off.scan();
        }
    }

    fn take_off(&self) -> Option<&TakeOff> {
        self.bus.take_off()
    }

    fn reset(&self) -> Result<(), Error> {
        self.reset_now()
    }

    fn heat(&self) -> Result<Option<Heat>, Error> {
        self.still_served()?;
        let heat = {
            let _control = self.control();
            self.controller.heat()
        };
        if matches!(heat, Err(Error::Timeout)) {
            self.recover_from(Reason::Unanswered);
        }
        heat
    }

    fn link_power(&self) -> Option<LinkPower> {
        self.controller.link_power()
    }

    fn set_link_power(&self, policy: LinkPower) -> Result<(), Error> {
        let set = self.hold_at_rest(|| self.controller.set_link_power(policy))?;
        set.map_err(|why| {
            log_warn!(
                self,
                "its link does not become {}: {}\n",
                policy.name(),
                why
            );
            Error::Unsupported
        })
    }

    fn depth(&self) -> Option<u16> {
        self.controller.depth()
    }

    fn set_depth(&self, depth: u16) -> Result<(), Error> {
        self.hold_at_rest(|| self.controller.set_depth(depth))
    }

    fn turns_cache(&self) -> bool {
        C::TURNS_CACHE
    }

    fn has_cache(&self, unit: u32) -> Result<bool, Error> {
        let mut has = Err(Error::Gone);
        let _control = self.control();
        self.controller.units(&mut |found| match found {
            Ok(found) if found.id == unit => has = Ok(found.write_cache),
            _ => {}
        })?;
        has
    }

    fn set_write_cache(&self, on: bool) -> Result<(), Error> {
        let turn = || self.hold_at_rest(|| self.controller.set_write_cache(on));
        self.change_disks_by_file(turn)?.map_err(|why| {
            let way = if on { "on" } else { "off" };
            log_warn!(self, "its write cache is not turned {}: {}\n", way, why);
            Error::Unsupported
        })
    }

    fn quirks(&self, named: &mut dyn FnMut(&'static str)) {
        self.controller.quirks(named);
    }

    fn reserve(&self, unit: u32, what: &Reserve) -> Result<Answer<()>, Error> {
        self.of_reservations(|of, wanted| of.reserve(unit, what, wanted))
    }

    fn registered(&self, unit: u32, keys: &mut [u64]) -> Result<Answer<Registered>, Error> {
        self.of_reservations(|of, wanted| of.registered(unit, keys, wanted))
    }

    fn holder(&self, unit: u32) -> Result<Answer<Holder>, Error> {
        self.of_reservations(|of, wanted| of.holder(unit, wanted))
    }

    fn ioctls(&self) -> Ioctl {
        |gate, disk, cmd, arg| {
            let way = GateWay::<Self>::new(gate);
            C::ioctl(disk, cmd, arg, &way)
        }
    }
}
