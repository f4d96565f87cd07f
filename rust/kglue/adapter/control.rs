// SPDX-License-Identifier: GPL-2.0
//! The way of tools' commands to a controller's control path, which they have for a while.

use crate::adapter::config::Bus;
use crate::adapter::reason::Reason;
use crate::adapter::state::Adapter;
use crate::blk::ioctl::{AdminPath, ControlPath, Way};
use crate::blk::owner::Gate;
use crate::context::NoIo;
use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use hal::{Controller, Error, Reservations};
use kernel::error::code::ENODEV;

/// The way of ioctls to the adapter behind a gate, which is an `A`: one only opens it, and has
/// given the function that comes this way.
pub(super) struct GateWay<'a, A> {
    gate: &'a Gate,
    adapter: PhantomData<A>,
}

impl<'a, A> GateWay<'a, A> {
    pub(super) fn new(gate: &'a Gate) -> Self {
        Self {
            gate,
            adapter: PhantomData,
        }
    }
}

impl<C: AdminPath, B: Bus> Way<C> for GateWay<'_, Adapter<C, B>> {
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
    /// than until somebody needs that urgently.
    pub(super) fn of_reservations<R>(
        &self,
        ask: impl FnOnce(&dyn Reservations, &dyn Fn() -> bool) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let of = self.controller.reservations().ok_or(Error::Unsupported)?;
        self.hold(|| ask(of, &|| self.is_wanted()))
    }
}

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// [`Error::Gone`]: it is going away, and waits for who is inside.
    pub(super) fn still_served(&self) -> Result<(), Error> {
        match self.gate.is_closing() {
            true => Err(Error::Gone),
            false => Ok(()),
        }
    }
}
