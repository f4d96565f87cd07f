// SPDX-License-Identifier: GPL-2.0
//! Threads that wait: one that waits for hiops I/O of its own drains before it sleeps, and ends
//! after it was woken what came for it meanwhile. Here is what the data path says of them.
//! [`hook`]: what such a thread does (`c_shims/wait.c` has the hook itself). [`table`]: where all
//! are known.
//!
//! # Who keeps what alive
//! * The table of waiters: the module ([`Threads`]), which outlives all disks and waits until
//!   nobody sleeps in the hook any more.
//! * The queue that a waiter drains ([`Way`]): its adapter, which waits for an RCU grace period
//!   after its disks are gone. The hook looks at it with preemption off, while something enlisted
//!   there is outstanding.
//! * The thread that is woken: it was asleep in the hook when the waker, with preemption off,
//!   looked.

mod hook;
mod table;

pub(crate) use self::hook::{is_hooked, Hook};
pub use self::table::Threads;
use self::table::{end, table};
use crate::blk::request::Rq;
use crate::context::PreemptOff;
use crate::shims;
use crate::way::{Offer, Way};
use core::ptr::{null, null_mut};
use core::sync::atomic::Ordering;
use engine::{Context, Thread, Waiter};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../../kunit/wait.rs"]
mod kunit;

/// The waiter of `rq`, enlisted with it, if it is certain who waits for it. From `queue_rq`, with
/// preemption off. `drains`: the waiter drains the request's queue before it sleeps.
#[inline]
pub(crate) fn enlist(rq: &Rq, drains: bool) -> *const Waiter<Offer, Way> {
    // SAFETY: the request was just given to hiops.
    let this = unsafe { shims::hiops_waiter_of(rq.as_raw()) };
    if this == 0 {
        return null();
    }
    let (Some(table), Some(thread)) = (table(), Thread::at(this)) else {
        return null();
    };
    let Some(waiter) = table.waiters.place(thread) else {
        return null();
    };
    let way = match drains {
        true => rq.lane().way.cast_mut(),
        false => null_mut(),
    };
    if !waiter.enlist(thread, way) {
        return null();
    }
    waiter
}

/// Offers `offer` to `waiter`, and wakes it. Gives it back if it is the caller's to end. With
/// preemption off.
#[inline]
pub(crate) fn offer(waiter: &'static Waiter<Offer, Way>, offer: Offer) -> Option<Offer> {
    let Some(table) = table() else {
        return Some(offer);
    };
    match table.waiters.offer(waiter, offer) {
        Ok(owner) => {
            table.watch();
            // SAFETY: it was asleep in the hook a moment ago, and preemption is off: its task
            // structure is still there.
            unsafe { shims::hiops_wake(owner.address()) };
            None
        }
        Err(back) => back,
    }
}

/// Takes over everything that was offered and not claimed: a reset or a removal does not wait for
/// owners. Sleeps not; any thread.
pub(crate) fn take_all() {
    if let Some(table) = table() {
        let _stay = PreemptOff::new();
        table
            .waiters
            .sweep(true, |offer| end(offer, Context::Sweep));
    }
}

/// A request that was enlisted with `waiter` is over: the thread may be about to be woken.
#[inline]
pub(crate) fn ended(waiter: &Waiter<Offer, Way>) {
    if !waiter.ended() {
        return;
    }
    if let Some(table) = table() {
        if let Some(place) = table.places.get(waiter.index()) {
            let cpu = place.cpu.load(Ordering::Relaxed);
            table.shares.set_ready(&place.ready, Some(cpu));
        }
    }
}

/// Whether threads that wait for I/O like this are ready on this CPU, and come by soon. Any
/// context, with preemption off.
#[inline]
pub(crate) fn is_crowded() -> bool {
    table().is_some_and(|table| table.shares.is_crowded())
}
