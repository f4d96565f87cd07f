// SPDX-License-Identifier: GPL-2.0
//! Slots in which nobody comes or goes for a while.

use crate::slot::{Home, Slot, Tenant};
use crate::work::{Exchange, KeptOff, Work};
use kernel::sync::lock::{mutex::MutexBackend, Guard};

/// Why nobody does: of the slots' own.
pub(crate) enum Reason<'a> {
    /// The doors are held.
    Doors { _held: Guard<'a, (), MutexBackend> },
    /// There is no exchange.
    Rest { _kept: KeptOff<'a, Exchange> },
}

/// Nobody leaves a slot while it lives, save by who has it for himself alone (`Slots::vacate`).
///
/// # Invariants
/// `_why` is of the slots that `exchange` is of.
pub(crate) struct Still<'a> {
    exchange: &'a Work<Exchange>,
    _why: Reason<'a>,
}

impl<'a> Still<'a> {
    /// By the slots themselves, with their exchange and a reason that is theirs.
    pub(crate) fn new(exchange: &'a Work<Exchange>, why: Reason<'a>) -> Self {
        // INVARIANT: by who calls this.
        let _why = why;
        Self { exchange, _why }
    }

    /// Who is in `slot`, which is one of them.
    pub(crate) fn tenant<'s, H: Home>(&'s self, slot: &'s Slot<H>) -> Option<&'s Tenant<H>> {
        let exchange = slot.exchange.get()?;
        // SAFETY: only an exchange takes what is there, which holds the doors, and borrows what it
        // holds them by for itself.
        core::ptr::eq(exchange, self.exchange).then(|| unsafe { slot.tenant().as_ref() })?
    }
}
