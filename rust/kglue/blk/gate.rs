// SPDX-License-Identifier: GPL-2.0
//! The way to an adapter for those who may outlive it: a program that has the disk open.
//!
//! Who is inside holds no lock, so any number are. Nobody touches user memory inside: a page of it
//! may never come, and [`Gate::close`] waits for all who are.

use crate::aim::Stays;
use hal::Error;
use kernel::prelude::*;
use kernel::static_lock_class;
use kernel::str::CStr;
use kernel::sync::{Arc, CondVar, Mutex};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../../../kunit/gate.rs"]
mod kunit;

/// lockdep wants all locks of a class to have the same name, by its address; a literal in a generic
/// function has one for each type.
static NAME: &CStr = c"hiops_gate";

/// The gate of one adapter, which is an `O` to those who come.
#[pin_data]
pub(crate) struct Gate<O: ?Sized> {
    #[pin]
    state: Mutex<State<O>>,
    /// Told when the last one leaves.
    #[pin]
    empty: CondVar,
}

struct State<O: ?Sized> {
    /// `None`: the gate is closed.
    owner: Option<Stays<O>>,
    /// How many are inside.
    inside: usize,
}

impl<O: ?Sized> Gate<O> {
    /// A closed gate.
    pub(crate) fn new() -> Result<Arc<Self>, Error> {
        let closed = State {
            owner: None,
            inside: 0,
        };
        let init = pin_init!(Self {
            state <- Mutex::new(closed, NAME, static_lock_class!()),
            empty <- CondVar::new(NAME, static_lock_class!()),
        });
        Arc::pin_init(init, GFP_KERNEL).map_err(|_| Error::NoMemory)
    }

    /// Opens it. [`Gate::close`] silences who comes.
    pub(crate) fn open(&self, owner: Stays<O>) {
        self.state.lock().owner = Some(owner);
    }

    /// Closes it; returns when nobody is inside any more. Sleeps.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.owner = None;
        while state.inside != 0 {
            self.empty.wait(&mut state);
        }
    }

    /// It is closed, or about to be: who is inside is waited for. Sleeps.
    pub(crate) fn is_closing(&self) -> bool {
        self.state.lock().owner.is_none()
    }

    /// Lets `f` have the owner, without a lock; `None` when the gate is closed. Sleeps.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&O) -> R) -> Option<R> {
        let visit = Visit::new(self)?;
        Some(f(visit.owner.get()))
    }
}

/// Somebody inside.
struct Visit<'a, O: ?Sized> {
    gate: &'a Gate<O>,
    owner: Stays<O>,
}

impl<'a, O: ?Sized> Visit<'a, O> {
    fn new(gate: &'a Gate<O>) -> Option<Self> {
        let mut state = gate.state.lock();
        let owner = state.owner?;
        state.inside = state.inside.saturating_add(1);
        Some(Self { gate, owner })
    }
}

impl<O: ?Sized> Drop for Visit<'_, O> {
    fn drop(&mut self) {
        let mut state = self.gate.state.lock();
        state.inside = state.inside.saturating_sub(1);
        if state.inside == 0 {
            self.gate.empty.notify_all();
        }
    }
}
