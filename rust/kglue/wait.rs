// SPDX-License-Identifier: GPL-2.0
//! Threads that wait: one that waits for hiops I/O of its own drains before it sleeps, and ends
//! after it was woken what came for it meanwhile. Here is the table of them, and what the data path
//! says of them; [`hook`] is what such a thread does itself.
//!
//! # Who keeps what alive
//! * The table of waiters: the module ([`Threads`]), which outlives all disks and waits until
//!   nobody sleeps in the hook any more.
//! * The queue that a waiter drains ([`Way`]): its adapter, which waits for an RCU grace period
//!   after its disks are gone. The hook looks at it with preemption off, while something enlisted
//!   there is outstanding.
//! * The thread that is woken: it was asleep in the hook when the waker, with preemption off,
//!   looked.

pub(crate) mod hook;
mod nap;
mod place;
mod timeouts;

use self::place::Place;
use self::timeouts::{Sleepers, Timeouts};
use crate::aim::Stays;
use crate::blk::request::Rq;
use crate::blk::retry::{Kicked, Retry};
use crate::context::PreemptOff;
use crate::platform::KernelPlatform;
use crate::share::Shares;
use crate::shims;
use crate::shims_safe::{hiops_this_pid, hiops_this_thread};
use crate::way::{Offer, Way};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use engine::{Context, Expected, Thread, Turn, Waiter, Waiters};
use hal::{Error, Platform};
use kernel::prelude::*;
use kernel::time::{delay::fsleep, Delta};

#[cfg(CONFIG_KUNIT = "y")]
#[path = "../../kunit/wait.rs"]
mod kunit;

/// As a power of two, the places in the table: several times as many as threads wait at once.
const PLACES: u32 = 10;

/// What there is once for the whole module.
struct Table {
    waiters: Waiters<KernelPlatform, Offer, Way>,
    places: <KernelPlatform as Platform>::Table<Place>,
    shares: Shares,
    /// An offer that nobody claimed is taken over by the second sweep that finds it. A coarse
    /// timer: who is offered something comes, as a rule.
    sweeper: KBox<Retry>,
    sweeping: AtomicBool,
    timeouts: Timeouts,
}

/// The one table; null before the module has begun and after it has ended.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(null_mut());
#[inline]
fn table() -> Option<&'static Table> {
    // SAFETY: null, or a table that lives until nobody can come here any more: no disk, no hook,
    // nobody asleep in it.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }
}

impl Table {
    fn new() -> Result<KBox<Self>, Error> {
        let platform = KernelPlatform::without_device();
        let places = 1usize << PLACES;
        let table = Self {
            waiters: Waiters::new(&platform, PLACES)?,
            places: platform.table(places, |_| Place::new())?,
            shares: Shares::new(&platform)?,
            sweeper: Retry::new().map_err(|_| Error::NoMemory)?,
            sweeping: AtomicBool::new(false),
            timeouts: Timeouts::new()?,
        };
        let table = KBox::new(table, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        // SAFETY: the table stays in its box, and cancels the timer before it goes.
        table.sweeper.aim(unsafe { Stays::new(&*table) });
        // SAFETY: as above.
        Timeouts::aim(unsafe { Stays::new(&*table) }, |table| &table.timeouts);
        Ok(table)
    }

    /// What came of it that `thread` has yielded, at `since`.
    #[inline]
    fn turn_of(&self, waiter: &Waiter<Offer, Way>, thread: Thread, since: u64) -> Turn {
        let _stay = PreemptOff::new();
        self.shares.take_turn(since);
        match waiter.waits(thread) {
            true => Turn::Vain,
            false => Turn::Paid,
        }
    }

    /// Something was offered: it is looked after.
    #[inline]
    fn watch(&self) {
        if !self.sweeping.load(Ordering::Relaxed) && !self.sweeping.swap(true, Ordering::AcqRel) {
            self.sweeper.arm();
        }
    }
}

impl Kicked for Table {
    fn kicked(&self) {
        let left = self
            .waiters
            .sweep(false, |offer| end(offer, Context::Sweep));
        if left.unwrap_or(true) {
            return self.sweeper.arm();
        }
        self.sweeping.store(false, Ordering::Relaxed);
        core::sync::atomic::fence(Ordering::SeqCst);
        // Who offered meanwhile saw the sweeper at work.
        if self.waiters.is_marked() {
            self.watch();
        }
    }
}

impl Sleepers for Table {
    fn wake_due(&self) -> bool {
        let mut any = false;
        for (waiter, place) in self.waiters.iter().zip(self.places.iter()) {
            any |= place.timeout.is_set();
            if place.timeout.is_over() {
                wake(waiter);
            }
        }
        any
    }
}

/// Wakes who sleeps in the place of `waiter`, if anybody does. With preemption off.
fn wake(waiter: &Waiter<Offer, Way>) {
    if let Some(sleeper) = waiter.sleeper() {
        // SAFETY: asleep in the hook when last looked at, with preemption off.
        unsafe { shims::hiops_wake(sleeper.address()) };
    }
}

/// Ends an offer that this context has claimed. With preemption off.
fn end(offer: Offer, by: Context) {
    let Offer(rq) = offer;
    // SAFETY: the request is not over, so its disk and its queue are there.
    let way = unsafe { &*rq.lane().way };
    way.queue().end(rq, by);
}

/// The waiter of `rq`, enlisted with it, if it is certain who waits for it. From `queue_rq`, with
/// preemption off. `drains`: the waiter drains the request's queue before it sleeps.
#[inline]
pub(crate) fn enlist(rq: &Rq, drains: bool) -> Option<&'static Waiter<Offer, Way>> {
    // SAFETY: the request was just given to hiops.
    let this = unsafe { shims::hiops_waiter_of(rq.as_raw()) };
    if this == 0 {
        return None;
    }
    let thread = Thread::at(this)?;
    let waiter = table()?.waiters.place(thread)?;
    let way = match drains {
        true => rq.lane().way.cast_mut(),
        false => null_mut(),
    };
    waiter.enlist(thread, way).then_some(waiter)
}

/// It is foretold when one that is enlisted with `waiter` is over. Any context.
#[inline]
pub(crate) fn expect(waiter: &Waiter<Offer, Way>, what: Expected) {
    if let Some(place) = table().and_then(|table| table.places.get(waiter.index())) {
        place.naps.expect(what, waiter.outstanding() <= 1);
    }
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
/// owners. Sleeps not; any thread, with preemption on.
pub(crate) fn take_all() {
    let Some(table) = table() else {
        return;
    };
    loop {
        let _stay = PreemptOff::new();
        let take = |offer| end(offer, Context::Sweep);
        if table.waiters.sweep(true, take).is_some() {
            return;
        }
        // The sweeper's, on another CPU, which ends soon: it is not preempted either.
        core::hint::spin_loop();
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

/// The running thread's place.
fn own_place() -> Option<&'static Place> {
    let (table, thread) = (table()?, Thread::at(hiops_this_thread())?);
    table.places.get(table.waiters.place(thread)?.index())
}

/// Whether the running thread was the last that waited in its place. Any context, with preemption
/// off.
pub(crate) fn interrupts_waiter() -> bool {
    own_place().is_some_and(|place| place.was_last(hiops_this_pid()))
}

/// An interrupt or a tick, before it ends anything, looks whom it interrupts. With preemption off.
pub(crate) fn look() {
    if let Some(table) = table() {
        table.shares.look();
    }
}

/// The table of waiters; the module has it for as long as it is there. Dropped after all disks, it
/// waits until no thread is in the hook any more.
pub struct Threads(());

impl Threads {
    /// Makes the table. Before the first disk; sleeps.
    pub fn new() -> Result<Self, Error> {
        let table = KBox::into_raw(Table::new()?);
        TABLE.store(table, Ordering::Release);
        Ok(Self(()))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(table) = table() {
            // TIMEOUT: none: who sleeps is woken, and looks for itself; all callers of
            // io_schedule() do.
            while (table.places.iter()).any(|place| place.inside.load(Ordering::Acquire) != 0) {
                for waiter in table.waiters.iter().filter(|waiter| waiter.is_asleep()) {
                    let _stay = PreemptOff::new();
                    wake(waiter);
                }
                fsleep(Delta::from_millis(1));
            }
            table.sweeper.shutdown();
            table.timeouts.shutdown();
        }
        // SAFETY: may sleep. Nobody enters the hook any more; who has just left it is waited for.
        unsafe { shims::hiops_hook_left() };
        let table = TABLE.swap(null_mut(), Ordering::AcqRel);
        if !table.is_null() {
            // SAFETY: from `into_raw` in `new`; nobody uses it any more.
            drop(unsafe { KBox::from_raw(table) });
        }
    }
}
