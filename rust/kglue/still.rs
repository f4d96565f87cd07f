// SPDX-License-Identifier: GPL-2.0
//! Slots in which nobody comes or goes for a while.

use crate::slot::{Home, Slot, Tenant};
use crate::slots::Slots;
use crate::work::{Exchange, KeptOff};
use kernel::sync::lock::{mutex::MutexBackend, Guard};

/// Why nobody does: of the slots' own.
pub(crate) enum Reason<'a> {
    /// The doors are held.
    Doors { _held: Guard<'a, (), MutexBackend> },
    /// There is no exchange.
    Rest { _kept: KeptOff<'a, Exchange> },
}

/// Nobody leaves a slot while it lives, save by who has it for himself alone ([`Slots::vacate`]).
///
/// # Invariants
/// `_why` is of `all`.
pub(crate) struct Still<'a, H: Home> {
    all: &'a Slots<H>,
    _why: Reason<'a>,
}

impl<'a, H: Home> Still<'a, H> {
    /// By the slots themselves, with a reason that is theirs.
    pub(crate) fn new(all: &'a Slots<H>, why: Reason<'a>) -> Self {
        // INVARIANT: by who calls this.
        Self { all, _why: why }
    }

    /// Who is in `slot`, which is one of them.
    pub(crate) fn tenant<'s>(&'s self, slot: &'s Slot<H>) -> Option<&'s Tenant<H>> {
        let all = slot.all.get()?;
        // SAFETY: only an exchange takes what is there, which holds the doors, and borrows what it
        // holds them by for itself.
        core::ptr::eq(all, self.all).then(|| unsafe { slot.tenant().as_ref() })?
    }
}
