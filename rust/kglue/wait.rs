// SPDX-License-Identifier: GPL-2.0
//! Threads that wait: one that waits for hiops I/O of its own drains before it sleeps, and ends
//! after it was woken what came for it meanwhile. Here is the table of them, and what the data path
//! says of them; [`hook`] is what such a thread does itself; `cpu_share` what they know of the CPU
//! that they share; `sleepers` how they sleep without a timer each.
//!
//! # What keeps what alive
//! * The table of waiters: the module ([`Threads`]), which outlives all disks and waits until
//!   no thread sleeps in the hook any more.
//! * The queue that a waiter drains ([`QueueRef`]): its adapter, which waits for an RCU grace
//!   period after its disks are gone. The hook looks at it with preemption off, while something
//!   tracked there is outstanding.
//! * The thread that is woken: it was asleep in the hook when the waker, with preemption off,
//!   looked.
//!
//! # Naps
//! Of each slot is kept when what its thread waits for is over, as far as that was foretold, and
//! how its last nap ended ([`Naps`]). The queue can be told of that only while something is
//! outstanding on it, as it is there for no longer. So of a nap after which nothing is, it is told
//! when the thread next waits for it.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicU8, Ordering};
use engine::{Context, Expected, Nap, OnDemand, Thread, Waiter, Waiters, Waiting};
use hal::{Error, Platform};
use kernel::bindings;
use kernel::prelude::*;
use kernel::time::delay::fsleep;
use kernel::time::Delta;

use crate::blk::request::{HctxData, Lent, Offer, QueueRef, Rq};
use crate::platform::{may_predict, now_ns, KernelPlatform, PreemptOff};
use crate::shims;
use crate::shims_safe::{
    hiops_hook_left, hiops_is_awake, hiops_may_yield, hiops_on_idle_cpu, hiops_pause,
    hiops_pause_awake, hiops_this_pid, hiops_this_thread,
};
use crate::timers::{CoarseExpired, CoarseTimer};
use crate::wait::cpu_share::{CpuWaiters, Ready};
pub(crate) use crate::wait::sleepers::wake_thread;
use crate::wait::sleepers::Sleepers;
use crate::work::Pinned;

mod cpu_share;
pub(crate) mod hook;
#[cfg(CONFIG_KUNIT = "y")]
#[path = "../../kunit/wait.rs"]
mod kunit;
mod sleepers;

#[allow(clashing_extern_declarations, reason = "bindgen's are unsafe to call")]
#[allow(
    improper_ctypes,
    reason = "of the kernel's structures only the address goes"
)]
// Safe to call: it asks for a request that is not over, which the type says. It is as its header
// says it: see the constant below.
unsafe extern "C" {
    /// The thread that waits for the request, if it is certain that it is the running one, as its
    /// address; else 0. As it is submitted.
    safe fn hiops_waiter_of(rq: Lent<'_>) -> u64;
}

const _: [unsafe extern "C" fn(*mut bindings::request) -> u64; 1] = [shims::hiops_waiter_of];

/// As a power of two, the slots in the table: several times as many as threads wait at once.
const SLOTS: u32 = 10;

/// What there is once for the whole module.
struct Table {
    waiters: Waiters<KernelPlatform, Offer, QueueRef>,
    slots: <KernelPlatform as Platform>::Table<WaitSlot>,
    cpu_waiters: CpuWaiters,
    /// An offer that was not claimed is taken over by the second sweep that finds it. A coarse
    /// timer: a thread that is offered something comes, as a rule.
    sweeper: KBox<CoarseTimer>,
    sweeping: OnDemand,
    sleepers: Sleepers,
}

/// The one table; null before the module has begun and after it has ended.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(null_mut());
#[inline]
fn table() -> Option<&'static Table> {
    // SAFETY: null, or a table that lives until no thread can come here any more: no disk, no hook,
    // no sleeper in it.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }
}

impl Table {
    fn new() -> Result<KBox<Self>, Error> {
        let platform = KernelPlatform::without_device();
        let slots = 1usize << SLOTS;
        let table = Self {
            waiters: Waiters::new(&platform, SLOTS)?,
            slots: platform.table(slots, |_| WaitSlot::new())?,
            cpu_waiters: CpuWaiters::new(&platform)?,
            sweeper: CoarseTimer::new().map_err(|_| Error::NoMemory)?,
            sweeping: OnDemand::default(),
            sleepers: Sleepers::new(&platform)?,
        };
        let table = KBox::new(table, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        // SAFETY: the table stays in its box, and shuts both timers down before it goes.
        let pinned = unsafe { Pinned::new(&*table) };
        table.sweeper.set_target(pinned);
        table.sleepers.begin(pinned.map(|table| &table.sleepers));
        Ok(table)
    }

    /// Whether what `thread` waits for was over when its turn came, after it had yielded at
    /// `since`.
    #[inline]
    fn is_over(&self, waiter: &Waiter<Offer, QueueRef>, thread: Thread, since: u64) -> bool {
        let _stay = PreemptOff::new();
        self.cpu_waiters.take_turn(since);
        !waiter.waits(thread)
    }

    /// Wakes all that sleep in the hook. Whether anybody is there still.
    fn wake_all(&self) -> bool {
        for waiter in self.waiters.iter().filter(|waiter| waiter.is_asleep()) {
            let _stay = PreemptOff::new();
            wake(waiter);
        }
        let is_inside = |slot: &WaitSlot| slot.inside.load(Ordering::Acquire) != 0;
        let _stay = PreemptOff::new();
        self.sleepers.wake_all() | self.slots.iter().any(is_inside)
    }

    /// Something was offered: it is looked after.
    #[inline]
    fn watch(&self) {
        if self.sweeping.start() {
            self.sweeper.arm();
        }
    }
}

impl CoarseExpired for Table {
    fn coarse_expired(&self) {
        let left = self
            .waiters
            .sweep(false, |offer| end(offer, Context::Sweep));
        if left.unwrap_or(true) || self.sweeping.stop(|| self.waiters.is_marked()) {
            self.sweeper.arm();
        }
    }
}

/// Wakes the thread that sleeps in the slot of `waiter`, if one does. With preemption off.
fn wake(waiter: &Waiter<Offer, QueueRef>) {
    if let Some(sleeper) = waiter.sleeper() {
        wake_thread(sleeper.address());
    }
}

/// What leads to the queue on which `thread`, the caller, has something outstanding that is tracked
/// with `waiter`, and takes completions. With preemption off, for as long as the result is used.
fn queue_of(waiter: &Waiter<Offer, QueueRef>, thread: Thread) -> Option<&QueueRef> {
    // SAFETY: null, or the thread's own: what is tracked here is outstanding on it. So its adapter
    // is there, and stays for as long as preemption is off.
    unsafe { waiter.queue_ref(thread).as_ref() }
}

/// Ends an offer that this context has claimed. With preemption off.
fn end(offer: Offer, by: Context) {
    let Offer(rq) = offer;
    // SAFETY: the request is not over, so its disk and its queue are there.
    let queue_ref = unsafe { &*rq.hctx().queue_ref };
    queue_ref.queue().end(rq, by);
}

/// The waiter of `rq`, which is tracked with it, if it is certain which thread waits for it. From
/// `queue_rq`, with preemption off. `drains`: the waiter drains the request's queue before it
/// sleeps.
#[inline]
pub(crate) fn track(rq: &Rq, drains: bool) -> Option<&'static Waiter<Offer, QueueRef>> {
    let this = hiops_waiter_of(rq.lend());
    if this == 0 {
        return None;
    }
    track_thread(Thread::at(this)?, rq.hctx(), drains)
}

/// The waiter of `thread`, the caller, with which something is tracked that it submits to the queue
/// of `hctx`, and waits for. With preemption off. `drains`: as for [`track`].
#[inline]
pub(crate) fn track_thread(
    thread: Thread,
    hctx: &HctxData,
    drains: bool,
) -> Option<&'static Waiter<Offer, QueueRef>> {
    let waiter = table()?.waiters.slot(thread)?;
    let queue_ref = match drains {
        true => hctx.queue_ref.cast_mut(),
        false => null_mut(),
    };
    waiter.track(thread, queue_ref).then_some(waiter)
}

/// It is foretold when one that is tracked with `waiter` is over. Any context.
#[inline]
pub(crate) fn expect(waiter: &Waiter<Offer, QueueRef>, what: Expected) {
    if let Some(slot) = table().and_then(|table| table.slots.get(waiter.index())) {
        slot.naps.expect(what, waiter.outstanding() <= 1);
    }
}

/// Whether the thread that is tracked with `waiter` has napped, and looks for its I/O now. Any
/// context; costs next to nothing where nothing is foretold.
#[inline(always)]
pub(crate) fn looks_after_nap(waiter: &Waiter<Offer, QueueRef>) -> bool {
    let slot = || table()?.slots.get(waiter.index());
    may_predict() && slot().is_some_and(|slot| slot.naps.looks.load(Ordering::Relaxed))
}

/// Offers `offer` to `waiter`, and wakes it. Gives it back if it is the caller's to end. With
/// preemption off.
#[inline]
pub(crate) fn offer(waiter: &'static Waiter<Offer, QueueRef>, offer: Offer) -> Option<Offer> {
    let Some(table) = table() else {
        return Some(offer);
    };
    match table.waiters.offer(waiter, offer) {
        Ok(owner) => {
            table.watch();
            wake_thread(owner.address());
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

/// A request that was tracked with `waiter` is over: the thread may be about to be woken.
#[inline]
pub(crate) fn ended(waiter: &Waiter<Offer, QueueRef>) {
    if !waiter.ended() {
        return;
    }
    if let Some(table) = table() {
        if let Some(slot) = table.slots.get(waiter.index()) {
            let cpu = slot.cpu.load(Ordering::Relaxed);
            table.cpu_waiters.set_ready(&slot.ready, Some(cpu));
        }
    }
}

/// Whether threads that wait for I/O like this are ready on this CPU, and arrive soon. Any
/// context, with preemption off.
#[inline]
pub(crate) fn is_crowded() -> bool {
    table().is_some_and(|table| table.cpu_waiters.is_crowded())
}

/// The running thread's slot.
fn own_slot() -> Option<&'static WaitSlot> {
    let (table, thread) = (table()?, Thread::at(hiops_this_thread())?);
    table.slots.get(table.waiters.slot(thread)?.index())
}

/// Whether the running thread was the last that waited in its slot. Any context, with preemption
/// off.
pub(crate) fn interrupts_waiter() -> bool {
    own_slot().is_some_and(|slot| slot.was_last(hiops_this_pid()))
}

/// A tick, before it ends anything, looks which thread it interrupts. With preemption off.
pub(crate) fn look() {
    if let Some(table) = table() {
        table.cpu_waiters.look();
    }
}

/// An interrupt, before it ends anything, looks which thread it interrupts, and counts whether that
/// is a waiter. With preemption off.
#[inline]
pub(crate) fn look_from_interrupt() {
    if let Some(table) = table().filter(|table| table.cpu_waiters.look()) {
        meet_interrupted(table);
    }
}

/// See [`look_from_interrupt`].
#[inline(never)]
fn meet_interrupted(table: &Table) {
    match interrupts_waiter() {
        true => table.cpu_waiters.meet(true),
        false if hiops_on_idle_cpu() => {}
        false => table.cpu_waiters.meet(false),
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
            // TIMEOUT: none: a thread that sleeps is woken, and looks for itself; all callers of
            // io_schedule() do.
            while table.wake_all() {
                fsleep(Delta::from_millis(1));
            }
            table.sweeper.shutdown();
            table.sleepers.shutdown();
        }
        // No thread enters the hook any more; threads that are just leaving it are waited for.
        hiops_hook_left();
        let table = TABLE.swap(null_mut(), Ordering::AcqRel);
        if !table.is_null() {
            // SAFETY: from `into_raw` in `new`; it is not used any more.
            drop(unsafe { KBox::from_raw(table) });
        }
    }
}

/// A waiter's slot, as the hook knows it.
struct WaitSlot {
    /// Threads between the hook's entry and its end.
    inside: AtomicU32,
    /// Whether what a thread here waited for was over after it had yielded: 0 or 1;
    /// [`NOT_YIELDED`]: it has not, or the engine knows.
    yielded: AtomicU8,
    /// When a thread here last yielded, as a [`stamp`](crate::platform::stamp).
    yielded_at: AtomicU64,
    /// The thread that last waited here, by its number: the address by which it falls on this slot
    /// may be another's that has begun since. [`NOBODY`]: none has.
    last: AtomicU32,
    /// The CPU that the thread here came to sleep on.
    cpu: AtomicU32,
    /// Where the thread here is counted as ready.
    ready: Ready,
    /// What the thread here expects, and its naps.
    naps: Naps,
}

const NOT_YIELDED: u8 = u8::MAX;
/// No thread's number; 0 is the idle threads'.
const NOBODY: u32 = u32::MAX;

impl WaitSlot {
    /// A slot where no thread has waited yet.
    fn new() -> Self {
        Self {
            inside: AtomicU32::new(0),
            yielded: AtomicU8::new(NOT_YIELDED),
            yielded_at: AtomicU64::new(0),
            last: AtomicU32::new(NOBODY),
            cpu: AtomicU32::new(0),
            ready: Ready::default(),
            naps: Naps::default(),
        }
    }

    /// Whether that thread was the last to wait here.
    fn was_last(&self, pid: u32) -> bool {
        self.last.load(Ordering::Relaxed) == pid
    }

    /// What there is to tell of the last time that a thread yielded here.
    #[inline]
    fn take_yielded(&self) -> Option<bool> {
        let yielded = self.yielded.load(Ordering::Relaxed);
        if yielded == NOT_YIELDED {
            return None;
        }
        self.yielded.store(NOT_YIELDED, Ordering::Relaxed);
        Some(yielded != 0)
    }
}

/// The naps of a slot's thread. The owner of the slot writes all but what is expected.
#[derive(Default)]
struct Naps {
    /// The latest of what was foretold; 0: nothing was.
    due_ns: AtomicU64,
    spread_ns: AtomicU64,
    /// Of how many something was foretold.
    foretold: AtomicU64,
    /// The nap's end, and for how long the thread then looks.
    until_ns: AtomicU64,
    for_ns: AtomicU64,
    /// The thread has napped, and looks for its I/O.
    looks: AtomicBool,
    /// The last nap was in vain: a sleep follows.
    vain: AtomicBool,
    /// How the last nap ended: a [`Nap`]; [`TOLD`]: that was told.
    ended: AtomicU8,
    /// How late that was, and on which queue.
    late_ns: AtomicU64,
    queue_ref: AtomicPtr<QueueRef>,
}

/// A nap that was told of.
const TOLD: u8 = 0;
/// The others, as numbers from 1 on.
const NAPS: [Nap; 4] = [Nap::Hit, Nap::Late, Nap::Vain, Nap::Woken];

impl Naps {
    /// Something is foretold of one that is tracked here, the only one or one of several. Any
    /// context.
    #[inline]
    fn expect(&self, what: Expected, only: bool) {
        if only {
            self.due_ns.store(what.at_ns, Ordering::Relaxed);
            self.foretold.store(1, Ordering::Relaxed);
            // Of a wait that went on elsewhere.
            self.vain.store(false, Ordering::Relaxed);
        } else {
            self.due_ns.fetch_max(what.at_ns, Ordering::Relaxed);
            self.foretold.fetch_add(1, Ordering::Relaxed);
        }
        self.spread_ns.store(what.spread_ns, Ordering::Relaxed);
    }

    /// When all of `outstanding` are over; `None`: of some nothing is foretold.
    #[inline]
    fn expected(&self, outstanding: u64) -> Option<Expected> {
        let at_ns = self.due_ns.load(Ordering::Relaxed);
        if at_ns == 0 || self.foretold.load(Ordering::Relaxed) < outstanding {
            return None;
        }
        let spread_ns = self.spread_ns.load(Ordering::Relaxed);
        Some(Expected { at_ns, spread_ns })
    }

    /// The wait is over.
    #[inline]
    fn forget(&self) {
        if self.due_ns.load(Ordering::Relaxed) != 0 {
            self.due_ns.store(0, Ordering::Relaxed);
        }
    }

    /// A nap begins.
    #[inline]
    fn begin(&self, until_ns: u64, for_ns: u64, queue_ref: *mut QueueRef) {
        self.until_ns.store(until_ns, Ordering::Relaxed);
        self.for_ns.store(for_ns, Ordering::Relaxed);
        self.queue_ref.store(queue_ref, Ordering::Relaxed);
    }

    /// Whether a nap was in vain, and a sleep follows; once.
    #[inline]
    fn take_vain(&self) -> bool {
        self.vain.load(Ordering::Relaxed) && self.vain.swap(false, Ordering::Relaxed)
    }

    /// How the last nap ended, and how late, if it was one on `queue_ref` that was not told of.
    #[inline]
    fn take_ended(&self, queue_ref: *mut QueueRef) -> Option<(Nap, u64)> {
        let ended = self.ended.load(Ordering::Relaxed);
        if ended == TOLD {
            return None;
        }
        self.ended.store(TOLD, Ordering::Relaxed);
        let at = usize::from(ended).checked_sub(1)?;
        let late_ns = self.late_ns.load(Ordering::Relaxed);
        let same = self.queue_ref.load(Ordering::Relaxed) == queue_ref;
        (NAPS.get(at).copied())
            .filter(|_| same)
            .map(|nap| (nap, late_ns))
    }

    /// `thread`'s nap here, in the slot of `waiter`, is over: it was `woken` before its time, or
    /// looks now, if there is anything to look for still, and may. With preemption off.
    fn end(&self, waiter: &Waiter<Offer, QueueRef>, thread: Thread, woken: bool, may_drain: bool) {
        let until_ns = self.until_ns.load(Ordering::Relaxed);
        let queue_ref = match may_drain && !woken {
            true => queue_of(waiter, thread),
            false => None,
        };
        if let Some(queue_ref) = queue_ref {
            let for_ns = self.for_ns.load(Ordering::Relaxed);
            self.looks.store(true, Ordering::Relaxed);
            let nap = queue_ref
                .queue()
                .look_again(waiter, thread, until_ns, for_ns);
            self.looks.store(false, Ordering::Relaxed);
            self.vain.store(nap == Nap::Vain, Ordering::Relaxed);
            return;
        }
        let nap = if woken { Nap::Woken } else { Nap::Late };
        self.late_ns
            .store(now_ns().saturating_sub(until_ns), Ordering::Relaxed);
        let at = NAPS.iter().position(|known| *known == nap);
        // CAST: one of four.
        self.ended
            .store(at.map_or(TOLD, |at| at as u8 + 1), Ordering::Relaxed);
    }
}

/// A thread that came to sleep, and its CPU.
pub(crate) struct CurrentTask {
    /// It has not yielded for this wait, and its CPU is shared by threads like it.
    pub(crate) may_yield: bool,
    /// When what it waits for is over.
    pub(crate) expected: Option<Expected>,
}

impl Waiting for CurrentTask {
    #[inline]
    fn is_awake(&self) -> bool {
        hiops_is_awake()
    }

    #[inline]
    fn pause(&self) -> bool {
        hiops_pause()
    }

    #[inline]
    fn expects(&self) -> Option<Expected> {
        self.expected
    }

    #[inline]
    fn may_yield(&self) -> bool {
        self.may_yield && hiops_may_yield()
    }
}

/// A thread that has napped, and is not about to sleep.
pub(crate) struct NapTask<'a> {
    /// Where its I/O is tracked.
    pub(crate) waiter: &'a Waiter<Offer, QueueRef>,
    /// Itself.
    pub(crate) thread: Thread,
}

impl Waiting for NapTask<'_> {
    #[inline]
    fn is_awake(&self) -> bool {
        !self.waiter.waits(self.thread)
    }

    #[inline]
    fn pause(&self) -> bool {
        hiops_pause_awake() && !self.is_awake()
    }

    #[inline]
    fn may_yield(&self) -> bool {
        false
    }
}
