// SPDX-License-Identifier: GPL-2.0
//! The way to an adapter for those who may outlive it: a program that has the disk open.
//!
//! Who is inside holds no lock, so any number are. Nobody touches user memory inside: a page of it
//! may never come, and [`Gate::close`] waits for all who are.

use super::owner::{Owner, OwnerPtr};
use hal::Error;
use kernel::prelude::*;
use kernel::sync::{new_condvar, new_mutex, Arc, CondVar, Mutex};

/// The gate of one adapter.
#[pin_data]
pub(crate) struct Gate {
    #[pin]
    state: Mutex<State>,
    /// Told when the last one leaves.
    #[pin]
    empty: CondVar,
}

struct State {
    /// `None`: the gate is closed.
    owner: Option<OwnerPtr>,
    /// How many are inside.
    inside: usize,
}

impl Gate {
    /// A closed gate.
    pub(crate) fn new() -> Result<Arc<Self>, Error> {
        let closed = State {
            owner: None,
            inside: 0,
        };
        let init = pin_init!(Self {
            state <- new_mutex!(closed, "hiops_gate"),
            empty <- new_condvar!("hiops_gate"),
        });
        Arc::pin_init(init, GFP_KERNEL).map_err(|_| Error::NoMemory)
    }

    /// Opens it.
    ///
    /// # Safety
    /// It is closed before the owner goes, and nobody else opens it.
    pub(crate) unsafe fn open(&self, owner: OwnerPtr) {
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
    pub(crate) fn with<R>(&self, f: impl FnOnce(&dyn Owner) -> R) -> Option<R> {
        let visit = Visit::new(self)?;
        Some(f(visit.owner.get()))
    }
}

/// Somebody inside.
struct Visit<'a> {
    gate: &'a Gate,
    owner: OwnerPtr,
}

impl<'a> Visit<'a> {
    fn new(gate: &'a Gate) -> Option<Self> {
        let mut state = gate.state.lock();
        let owner = state.owner?;
        state.inside = state.inside.saturating_add(1);
        Some(Self { gate, owner })
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state.lock();
        state.inside = state.inside.saturating_sub(1);
        if state.inside == 0 {
            self.gate.empty.notify_all();
        }
    }
}
