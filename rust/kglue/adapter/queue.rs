// SPDX-License-Identifier: GPL-2.0
//! One hardware queue of an adapter.

use crate::adapter::config::Bus;
use crate::adapter::reason::Reason;
use crate::adapter::state::Adapter;
use crate::adapter::state::WELL;
use crate::blk::disk::ControllerCounts;
use crate::blk::poller::{Calls, Poller};
use crate::blk::request::Rq;
use crate::blk::retry::Retry;
use crate::blk::upper::BlkUpper;
use crate::context::{now_ms, stamp, stamps_to_ns, PreemptOff, TICK_MS};
use crate::here::Here;
use crate::platform::KernelPlatform;
use crate::wait::Way;
use core::ptr::null;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use engine::{Context, IoQueue, Mode, Next, Switches, Turn};
use hal::{Controller, Error, NewQueue};
use kernel::ffi::c_void;
use kernel::prelude::*;
use strategy::Chosen;

/// Completions that answer nothing, after which the controller is not trusted any more.
const MOST_VIOLATIONS: u64 = 16;

/// A hardware queue of controller `C` as the block layer uses it.
pub(crate) type Io<C, B> =
    IoQueue<KernelPlatform, <C as Controller>::Queue, BlkUpper<<B as Bus>::Map>, Chosen>;

/// Counts one more, where there is one writer at a time: no exchange is needed.
#[inline]
fn count(counter: &AtomicU64) {
    let n = counter.load(Ordering::Relaxed);
    counter.store(n.wrapping_add(1), Ordering::Relaxed);
}

/// A hardware queue with what the adapter keeps for it.
///
/// # Invariants
/// After [`HwQueue::settle`], `adapter` is the adapter that it is a part of.
pub(crate) struct HwQueue<C: Controller, B: Bus> {
    pub(crate) io: Io<C, B>,
    /// `None`: it never interrupts, and is for polled I/O of the block layer.
    pub(crate) vector: Option<u16>,
    /// After `io`, which points to them.
    retry: KBox<Retry>,
    poller: KBox<Poller>,
    #[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
    pub(crate) alarm: crate::alarm::Alarm,
    /// The queue as the wait hook knows it.
    pub(crate) way: Way,
    adapter: *const Adapter<C, B>,
    interrupts: AtomicU64,
    /// In units of [`stamp`].
    max_irq: AtomicU64,
    /// The longest tick of the poll timer, likewise.
    max_tick: AtomicU64,
    ticks: AtomicU64,
    /// How often the interrupt was turned on or off.
    turns: AtomicU64,
    /// Completions that only a time-out found.
    missed: AtomicU64,
    /// Violations that a reset has settled.
    settled: AtomicU64,
    /// That requests wait for long was told.
    told_to_wait: AtomicBool,
}

// SAFETY: the pointer is to what is shared anyway; the rest is `Send`.
unsafe impl<C: Controller, B: Bus> Send for HwQueue<C, B> {}
// SAFETY: as above.
unsafe impl<C: Controller, B: Bus> Sync for HwQueue<C, B> {}

impl<C: Controller, B: Bus> HwQueue<C, B> {
    pub(crate) fn new(
        platform: &KernelPlatform,
        new: NewQueue<C::Queue>,
        map: B::Map,
        vector: Option<u16>,
        depth: usize,
    ) -> Result<Self, Error> {
        let retry = Retry::new(Self::kick).map_err(|_| Error::NoMemory)?;
        let calls = Calls {
            tick: Self::tick,
            can_poll: Self::can_poll,
            set_interrupt: Self::set_interrupt,
        };
        let poller = Poller::new(calls).map_err(|_| Error::NoMemory)?;
        // SAFETY: both live in allocations of their own, which go after `io`.
        let upper = unsafe { BlkUpper::new(map, &retry, &poller) };
        Ok(Self {
            io: IoQueue::new(platform, new, upper, Chosen::default(), depth)?,
            vector,
            retry,
            poller,
            #[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
            alarm: crate::alarm::Alarm::new(Self::wake)?,
            way: Way {
                queue: null(),
                wait: Self::wait,
                end: Self::end,
            },
            adapter: null(),
            interrupts: AtomicU64::new(0),
            max_irq: AtomicU64::new(0),
            max_tick: AtomicU64::new(0),
            ticks: AtomicU64::new(0),
            turns: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            told_to_wait: AtomicBool::new(false),
        })
    }

    /// It has found its place.
    ///
    /// # Safety
    /// Neither it nor `adapter`, of which it is a part, moves any more; its timer is shut down before it goes.
    pub(crate) unsafe fn settle(&mut self, adapter: *const Adapter<C, B>) {
        self.adapter = adapter;
        let queue: *const Self = self;
        // SAFETY: by the caller's promise.
        unsafe {
            self.retry.aim(queue.cast());
            self.poller.aim(queue.cast());
            #[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
            self.alarm.aim(queue.cast());
        }
        self.way.queue = queue.cast();
    }

    /// Changes how completions are noticed, with the queue at rest for a moment. Sleeps; one caller at a time.
    pub(crate) fn set_mode(&self, platform: &KernelPlatform, mode: Mode) -> Result<(), Error> {
        let mut paused = self.io.pause(platform);
        let _stay = PreemptOff::new();
        let set = paused.set_mode(mode);
        paused.resume();
        set
    }

    /// Changes the strategy, likewise.
    pub(crate) fn choose(&self, platform: &KernelPlatform, which: usize) {
        let mut paused = self.io.pause(platform);
        let _stay = PreemptOff::new();
        paused.choose(which);
        paused.resume();
    }

    /// The switches that mean something on this queue. On one for polled I/O none does: whoever submits there comes for the completions himself, finds more of
    /// them at once, and does not sleep.
    pub(crate) fn useful_switches(&self) -> u8 {
        self.vector.map_or(0, |_| Switches::LAZY | Switches::COOP)
    }

    /// # Safety
    /// `queue` is a settled `HwQueue<C, B>`; with preemption off, in a thread that waits for I/O of its own on it.
    unsafe fn wait(queue: *const c_void, turn: Option<Turn>, calm: bool) -> Next {
        // SAFETY: by the caller's promise.
        let io = unsafe { &(*queue.cast::<Self>()).io };
        let here = Here {
            may_yield: calm && turn.is_none_or(|turn| turn == Turn::Paid),
        };
        let ended = turn.and_then(|turn| io.yielded(turn, &here));
        io.wait(&here, ended)
    }

    /// # Safety
    /// As [`HwQueue::wait`]; `rq` is of this queue and over.
    unsafe fn end(queue: *const c_void, rq: Rq, by: Context) {
        // SAFETY: by the caller's promise.
        let queue = unsafe { &*queue.cast::<Self>() };
        queue.io.upper().end_claimed(rq, by);
    }

    /// # Safety
    /// As [`HwQueue::wait`].
    unsafe fn tick(queue: *const c_void) {
        // SAFETY: by the caller's promise.
        let queue = unsafe { &*queue.cast::<Self>() };
        let begin = stamp();
        // One tick at a time.
        count(&queue.ticks);
        queue.io.tick();
        queue.took(begin, &queue.max_tick);
        queue.judge();
    }

    /// # Safety
    /// `queue` is a settled `HwQueue<C, B>`; in hard interrupt context.
    #[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
    unsafe fn wake(queue: *const c_void) {
        // SAFETY: by the caller's promise.
        unsafe { &*queue.cast::<Self>() }.io.drain(Context::Irq);
    }

    /// # Safety
    /// `queue` is a settled `HwQueue<C, B>`.
    unsafe fn can_poll(queue: *const c_void) -> bool {
        // SAFETY: by the caller's promise.
        let queue = unsafe { &*queue.cast::<Self>() };
        // SAFETY: by the invariant.
        let adapter = unsafe { queue.adapter.as_ref() };
        queue.vector.is_some() && adapter.is_some_and(|adapter| adapter.bus().can_poll())
    }

    /// # Safety
    /// As [`HwQueue::can_poll`].
    unsafe fn set_interrupt(queue: *const c_void, on: bool) {
        // SAFETY: by the caller's promise.
        let queue = unsafe { &*queue.cast::<Self>() };
        // SAFETY: by the invariant.
        let adapter = unsafe { queue.adapter.as_ref() };
        if let (Some(adapter), Some(vector)) = (adapter, queue.vector) {
            // Under the drain token.
            count(&queue.turns);
            adapter.controller().set_interrupt(vector, on);
            adapter.bus().set_interrupt(vector, on);
        }
    }

    /// # Safety
    /// `queue` is a settled `HwQueue<C, B>`.
    unsafe fn kick(queue: *const c_void) {
        // SAFETY: by the caller's promise.
        unsafe { &*queue.cast::<Self>() }.io.kick();
    }

    /// The controller was reset: its earlier violations count no more.
    pub(crate) fn trust_again(&self) {
        self.settled.store(self.io.violations(), Ordering::Relaxed);
    }

    /// No timer of it runs any more, nor will.
    pub(crate) fn quiet(&self) {
        self.retry.shutdown();
        self.poller.quiet();
        #[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
        self.alarm.quiet();
    }

    /// Its interrupt was served; it came at `begin`.
    #[inline]
    pub(crate) fn interrupted(&self, begin: u64) {
        // One handler a vector at a time: no exchange is needed.
        count(&self.interrupts);
        self.took(begin, &self.max_irq);
        self.judge();
    }

    /// Has the controller reset if it has contradicted itself too often. Whoever else drains leaves
    /// that to the interrupt, or where it is off to the timer.
    #[inline]
    fn judge(&self) {
        let settled = self.settled.load(Ordering::Relaxed);
        if self.io.violations().saturating_sub(settled) > MOST_VIOLATIONS {
            self.distrust();
        }
    }

    /// What began at `begin` is over: `longest` is how long it ever took. One writer at a time.
    #[inline]
    fn took(&self, begin: u64, longest: &AtomicU64) {
        let took = stamp().saturating_sub(begin);
        if took > longest.load(Ordering::Relaxed) {
            longest.store(took, Ordering::Relaxed);
        }
    }

    /// `rq` is late, says blk-mq. The first rung: looks for its completion. If a command is overdue
    /// still, the adapter climbs on ([`Adapter::recover_from`]).
    #[cold]
    pub(crate) fn late(&self, rq: &Rq) {
        // SAFETY: by the invariant; requests end before the adapter goes.
        let Some(adapter) = (unsafe { self.adapter.as_ref() }) else {
            return;
        };
        // Both clocks tick alike, but the block layer's began a moment earlier.
        let limit = rq.timeout_ms().saturating_sub(TICK_MS);
        let climbs = adapter.climbs();
        let overdue = self.io.overdue(now_ms(), limit).is_some();
        {
            let _stay = PreemptOff::new();
            self.io.drain(Context::Coop);
        }
        crate::wait::take_all();
        if self.io.overdue(now_ms(), limit).is_some() {
            rq.lane().stats.timeout();
            adapter.late_ms.store(limit, Ordering::Relaxed);
            adapter.recover_from(Reason::Late(rq.command()));
        } else if rq.is_waiting() {
            self.late_in_fifo(rq, adapter, limit);
        } else if overdue && climbs.is_some() && climbs == adapter.climbs() {
            // Nobody's but the device's: what another time-out had aborted is none that was missed.
            count(&self.missed);
            // As the in-tree drivers say it; ci/splat.sh knows the words.
            crate::log::log_warn!(adapter, "a completion was noticed only at its deadline\n");
        }
    }

    /// `rq` waits for a tag longer than a command may take. Where others are given tags meanwhile
    /// there is more to do than the device can; else it is the device that keeps them.
    fn late_in_fifo(&self, rq: &Rq, adapter: &Adapter<C, B>, limit: u64) {
        // Meanwhile it is a reset that all wait for.
        if !adapter.is_live() || adapter.recovering.load(Ordering::Acquire) != WELL {
            return;
        }
        {
            let _stay = PreemptOff::new();
            self.io.kick();
        }
        if !rq.is_waiting() {
            return;
        }
        rq.lane().stats.timeout();
        if self.io.is_stalled(now_ms(), limit) {
            return adapter.recover_from(Reason::NoTag(rq.command()));
        }
        if self.told_to_wait.swap(true, Ordering::Relaxed) {
            return;
        }
        crate::log::log_warn!(
            adapter,
            "more requests than it ends within their time: some wait longer for a tag than \
             queue/io_timeout, and are counted as time-outs; fewer at once (queue/nr_requests), or \
             more time, is the way out\n"
        );
    }

    #[cold]
    fn distrust(&self) {
        // SAFETY: as in `late`.
        if let Some(adapter) = unsafe { self.adapter.as_ref() } {
            adapter.recover_from(Reason::Lies);
        }
    }

    pub(crate) fn add_to(&self, counts: &mut ControllerCounts) {
        let interrupts = self.interrupts.load(Ordering::Relaxed);
        counts.interrupts = counts.interrupts.wrapping_add(interrupts);
        let writes = self.io.doorbell_writes();
        counts.doorbell_writes = counts.doorbell_writes.wrapping_add(writes);
        let max_irq = stamps_to_ns(self.max_irq.load(Ordering::Relaxed));
        counts.max_irq_ns = counts.max_irq_ns.max(max_irq);
        let max_tick = stamps_to_ns(self.max_tick.load(Ordering::Relaxed));
        counts.max_tick_ns = counts.max_tick_ns.max(max_tick);
        let ticks = self.ticks.load(Ordering::Relaxed);
        counts.ticks = counts.ticks.wrapping_add(ticks);
        let turns = self.turns.load(Ordering::Relaxed);
        counts.turns = counts.turns.wrapping_add(turns);
        let missed = self.missed.load(Ordering::Relaxed);
        counts.missed = counts.missed.wrapping_add(missed);
    }

    pub(crate) fn reset_counts(&self) {
        self.interrupts.store(0, Ordering::Relaxed);
        self.max_irq.store(0, Ordering::Relaxed);
        self.max_tick.store(0, Ordering::Relaxed);
        self.ticks.store(0, Ordering::Relaxed);
        self.turns.store(0, Ordering::Relaxed);
        self.missed.store(0, Ordering::Relaxed);
    }
}
