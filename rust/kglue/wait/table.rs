// SPDX-License-Identifier: GPL-2.0
//! The table of waiters: a place for each thread, and who looks after what was offered there.

use crate::aim::Stays;
use crate::blk::retry::{Kicked, Retry};
use crate::context::PreemptOff;
use crate::platform::KernelPlatform;
use crate::share::{Ready, Shares};
use crate::shims;
use crate::way::{Offer, Way};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicU8, Ordering};
use engine::{Context, Thread, Turn, Waiter, Waiters};
use hal::{Error, Platform};
use kernel::prelude::*;
use kernel::time::{delay::fsleep, Delta};

/// As a power of two, the places in the table: several times as many as threads wait at once.
const PLACES: u32 = 10;

/// What a place is to the hook.
#[derive(Default)]
pub(super) struct Place {
    /// Threads between the hook's entry and its end.
    pub(super) inside: AtomicU32,
    /// What came of it when a thread here last yielded: a [`Turn`]; [`NO_TURN`]: told already.
    pub(super) turn: AtomicU8,
    /// When a thread here last yielded, as a [`stamp`].
    pub(super) yielded_at: AtomicU64,
    /// The CPU that the thread here came to sleep on.
    pub(super) cpu: AtomicU32,
    /// Where the thread here is counted as ready.
    pub(super) ready: Ready,
}

const NO_TURN: u8 = u8::MAX;

impl Place {
    /// What there is to tell of the last time that a thread yielded here.
    #[inline]
    pub(super) fn take_turn(&self) -> Option<Turn> {
        let turn = self.turn.load(Ordering::Relaxed);
        if turn == NO_TURN {
            return None;
        }
        self.turn.store(NO_TURN, Ordering::Relaxed);
        [Turn::Paid, Turn::Vain]
            .into_iter()
            .find(|known| *known as u8 == turn)
    }
}

/// What there is once for the whole module.
pub(super) struct Table {
    pub(super) waiters: Waiters<KernelPlatform, Offer, Way>,
    pub(super) places: <KernelPlatform as Platform>::Table<Place>,
    pub(super) shares: Shares,
    /// An offer that nobody claimed is taken over by the second sweep that finds it. A coarse
    /// timer: who is offered something comes, as a rule.
    sweeper: KBox<Retry>,
    sweeping: AtomicBool,
}

/// The one table; null before the module has begun and after it has ended.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(null_mut());
#[inline]
pub(super) fn table() -> Option<&'static Table> {
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
            places: platform.table(places, |_| Place {
                turn: AtomicU8::new(NO_TURN),
                ..Place::default()
            })?,
            shares: Shares::new(&platform)?,
            sweeper: Retry::new().map_err(|_| Error::NoMemory)?,
            sweeping: AtomicBool::new(false),
        };
        let table = KBox::new(table, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        // SAFETY: the table stays in its box, and cancels the timer before it goes.
        table.sweeper.aim(unsafe { Stays::new(&*table) });
        Ok(table)
    }

    /// What came of it that `thread` has yielded, at `since`.
    #[inline]
    pub(super) fn turn_of(&self, waiter: &Waiter<Offer, Way>, thread: Thread, since: u64) -> Turn {
        let _stay = PreemptOff::new();
        self.shares.take_turn(since);
        match waiter.waits(thread) {
            true => Turn::Vain,
            false => Turn::Paid,
        }
    }

    /// Something was offered: it is looked after.
    #[inline]
    pub(super) fn watch(&self) {
        if !self.sweeping.load(Ordering::Relaxed) && !self.sweeping.swap(true, Ordering::AcqRel) {
            self.sweeper.arm();
        }
    }
}

impl Kicked for Table {
    fn kicked(&self) {
        if self
            .waiters
            .sweep(false, |offer| end(offer, Context::Sweep))
        {
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

/// Ends an offer that this context has claimed. With preemption off.
pub(super) fn end(offer: Offer, by: Context) {
    let Offer(rq) = offer;
    // SAFETY: the request is not over, so its disk and its queue are there.
    let way = unsafe { &*rq.lane().way };
    way.queue().end(rq, by);
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
                    if let Some(sleeper) = waiter.sleeper() {
                        // SAFETY: asleep in the hook when last looked at, with preemption off.
                        unsafe { shims::hiops_wake(sleeper.address()) };
                    }
                }
                fsleep(Delta::from_millis(1));
            }
            table.sweeper.shutdown();
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
