// SPDX-License-Identifier: GPL-2.0
//! An adapter while it serves: its interrupts, its disks' files, and how tools' commands get to
//! the controller's control path, which they have for a while.

use core::any::Any;
use core::fmt;
use core::fmt::Write;
use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use engine::{Costs, Cpu, Learned, Mode, Selectable, View};
use hal::{
    Answer, Controller, Error, Holder, LinkPower, Registered, Reservations, Reserve, Temperature,
    Unit,
};
use kernel::error::code::ENODEV;
use kernel::prelude::*;
use kernel::sync::Arc;
use strategy::Class;

use crate::adapter::config::{Bus, Reason};
use crate::adapter::queue;
use crate::adapter::queue::{HwQueue, Io};
use crate::adapter::state::Adapter;
use crate::blk::ioctl::{
    AdminPath, ControlPath, ControllerAccess, ControllerCounts, Gate, Ioctl, Owner,
};
use crate::blk::request::DiskStats;
use crate::bytes::memory::DiskMemory;
use crate::bytes::switch::Parts;
use crate::caller::TakeOff;
use crate::platform::NoIo;
use crate::text::log_warn;

/// How ioctls reach the adapter behind a gate, which is an `A`: one only opens it, and has given
/// the function that comes by it.
struct GateAccess<'a, A> {
    gate: &'a Gate,
    adapter: PhantomData<A>,
}

impl<'a, A> GateAccess<'a, A> {
    pub(super) fn new(gate: &'a Gate) -> Self {
        Self {
            gate,
            adapter: PhantomData,
        }
    }
}

impl<C: AdminPath, B: Bus> ControllerAccess<C> for GateAccess<'_, Adapter<C, B>> {
    type Control = Adapter<C, B>;

    fn with<R>(
        &self,
        f: impl FnOnce(&C, &Adapter<C, B>) -> kernel::error::Result<R>,
    ) -> kernel::error::Result<R> {
        let visited = self.gate.with(|owner| {
            let adapter = owner.as_any().downcast_ref::<Adapter<C, B>>();
            adapter.map(|adapter| f(&adapter.controller, adapter))
        });
        visited.flatten().unwrap_or(Err(ENODEV))
    }
}

impl<C: AdminPath, B: Bus> ControlPath for Adapter<C, B> {
    fn change<R>(&self, work: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
        self.change_disks(work)
    }

    fn reset(&self) -> Result<(), Error> {
        self.reset_now()
    }

    fn is_wanted(&self) -> bool {
        self.urgent.load(Ordering::Acquire) != 0 || self.gate.is_closing()
    }

    fn hold<R>(&self, work: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
        self.still_served()?;
        let done = {
            // A recovery wants the control path: what `work` allocates must not wait for one.
            let _no_io = NoIo::new();
            let _control = self.control();
            work()
        };
        if matches!(done, Err(Error::Timeout)) {
            self.recover_from(Reason::Unanswered);
        }
        done
    }

    fn hold_at_rest<R>(&self, work: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
        self.still_served()?;
        let _no_io = NoIo::new();
        let is_lost = |done: &Result<R, Error>| !matches!(done, Ok(_) | Err(Error::Invalid));
        let done = self.at_rest(|_| {
            let done = work();
            if is_lost(&done) {
                let _ = self.stop_or_cut_off();
            }
            done
        });
        if is_lost(&done) {
            self.recover_from(Reason::Unanswered);
        }
        done
    }
}

impl<C: AdminPath, B: Bus> Adapter<C, B> {
    /// Asks the controller's reservations, as a tool would: with the control path, and no longer
    /// than until that is needed urgently.
    fn of_reservations<R>(
        &self,
        ask: impl FnOnce(&dyn Reservations, &dyn Fn() -> bool) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let of = self.controller.reservations().ok_or(Error::Unsupported)?;
        self.hold(|| ask(of, &|| self.is_wanted()))
    }
}

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// [`Error::Gone`]: it is going away, and waits for callers that are inside.
    fn still_served(&self) -> Result<(), Error> {
        match self.gate.is_closing() {
            true => Err(Error::Gone),
            false => Ok(()),
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
        (self.queues.first()).map_or(Mode::Irq, |queue| queue.io.polling().mode())
    }

    fn set_mode(&self, mode: Mode) -> Result<(), Error> {
        // A recovery holds it, too: the queues are at rest for one of the two at a time.
        let _control = self.control();
        let mut interrupting = self.queues.iter().take(self.interrupting());
        interrupting.try_for_each(|queue| queue.set_mode(&self.platform, mode))
    }

    fn strategy(&self) -> usize {
        (self.queues.first()).map_or(0, |queue| queue.io.strategy().selected())
    }

    fn choose(&self, which: usize) {
        // As for the mode.
        let _control = self.control();
        for queue in self.queues.iter().take(self.interrupting()) {
            queue.choose(&self.platform, which);
        }
    }

    fn learned(&self, to: &mut dyn Write) -> fmt::Result {
        write_learned(to, self.queues.iter())
    }

    fn poll_interval_us(&self) -> u32 {
        (self.queues.first()).map_or(0, |queue| queue.io.poll_interval_us())
    }

    fn set_poll_interval_us(&self, us: u32) {
        (self.queues.iter()).for_each(|queue| queue.io.set_poll_interval_us(us));
    }

    fn bytes_memory(
        &self,
        unit: &Unit,
        stats: &Arc<DiskStats>,
        parts: Parts<'_>,
    ) -> Result<KBox<DiskMemory>, Error> {
        self.make_bytes(unit, stats, parts)
    }

    fn predicts(&self) -> bool {
        (self.queues.first()).is_some_and(|queue| queue.io.is_predicting_wanted())
    }

    fn set_predict(&self, on: bool) {
        if let Some(hook) = &mut *self.hook.lock() {
            hook.set_may_predict(on);
            self.queues.iter().for_each(|queue| queue.set_predict(on));
        }
    }

    fn window_us(&self) -> u32 {
        (self.queues.first()).map_or(0, |queue| queue.window_us())
    }

    fn set_window_us(&self, us: u32) {
        (self.queues.iter()).for_each(|queue| queue.set_window_us(us));
    }

    fn forecast(&self, to: &mut dyn Write) -> fmt::Result {
        write_forecast(to, self.queues.iter().map(|queue| queue.io.strategy()))
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

    fn temperature(&self) -> Result<Option<Temperature>, Error> {
        self.still_served()?;
        let temperature = {
            let _control = self.control();
            self.controller.temperature()
        };
        if matches!(temperature, Err(Error::Timeout)) {
            self.recover_from(Reason::Unanswered);
        }
        temperature
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
        C::SETS_WRITE_CACHE
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
            let access = if on { "on" } else { "off" };
            log_warn!(self, "its write cache is not turned {}: {}\n", access, why);
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
            let access = GateAccess::<Self>::new(gate);
            C::ioctl(disk, cmd, arg, &access)
        }
    }
}

/// This many queues are told of: a file of sysfs has a page.
const MOST_TOLD: usize = 16;

/// Writes a line for what things take, and for each of the first `queues` that interrupt what its
/// strategy has learnt: by name a `-` for what does not pay, and else for how many nanoseconds more
/// it is done in vain.
fn write_learned<'a, C: Controller + 'a, B: Bus + 'a>(
    to: &mut dyn Write,
    queues: impl Iterator<Item = &'a HwQueue<C, B>>,
) -> fmt::Result {
    let queues = queues.filter(|queue| queue.vector.is_some());
    for (at, queue) in queues.take(MOST_TOLD).enumerate() {
        if at == 0 {
            let Costs {
                sleep_ns,
                yield_ns,
                tick_ns,
                ..
            } = queue.io.costs();
            writeln!(
                to,
                "sleep_ns {sleep_ns} yield_ns {yield_ns} tick_ns {tick_ns}"
            )?;
        }
        write_queue::<C, B>(to, at, &queue.io)?;
    }
    Ok(())
}

fn write_queue<C: Controller, B: Bus>(to: &mut dyn Write, at: usize, io: &Io<C, B>) -> fmt::Result {
    let interrupt_ns = io.costs().interrupt_ns;
    let polled = u8::from(io.polling().is_on());
    write!(to, "queue {at} interrupt_ns {interrupt_ns} polled {polled}")?;
    let mut told = Ok(());
    let now_ms = io.upper().now_ms();
    io.strategy()
        .learned(now_ms, &mut |name, Learned { open, credit_ns }| {
            told = told.and_then(|()| match open {
                true => write!(to, " {name} {credit_ns}"),
                false => write!(to, " {name} -"),
            });
        });
    told?;
    writeln!(to)
}

/// Writes a line for each class of which a command was measured: what it is expected to take, how
/// far commands are from that on average, and how many were measured. What several queues'
/// strategies know goes in as often as each has measured.
fn write_forecast<'a>(
    to: &mut dyn Write,
    strategies: impl Iterator<Item = &'a queue::Chosen> + Clone,
) -> fmt::Result {
    // In loops: the names of iterators that do all of it are longer than objtool takes.
    for class in Class::all() {
        let (mut seen, mut expected, mut spread) = (0u64, 0u64, 0u64);
        for strategy in strategies.clone() {
            if let Some(known) = strategy.coop().foresight().known(class) {
                let often = u64::from(known.seen);
                seen = seen.saturating_add(often);
                expected = expected.saturating_add(known.expected_ns.saturating_mul(often));
                spread = spread.saturating_add(known.spread_ns.saturating_mul(often));
            }
        }
        if let (Some(expected), Some(spread)) =
            (expected.checked_div(seen), spread.checked_div(seen))
        {
            writeln!(
                to,
                "{class} expected_ns {expected} spread_ns {spread} seen {seen}"
            )?;
        }
    }
    Ok(())
}
