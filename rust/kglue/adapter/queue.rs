// SPDX-License-Identifier: GPL-2.0
//! One hardware queue of an adapter, with what is counted of it as a whole.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use engine::{Context, IoQueue, Mode, Nap, Next, Switches, Thread, Waiter};
use hal::{Controller, Error, NewQueue};
use kernel::prelude::*;
use kernel::sync::SetOnce;
use strategy::Selected;

use crate::adapter::config::Bus;
use crate::blk::ioctl::ControllerCounts;
use crate::blk::request::{Late, Offer, QueueRef, Rq, WaitStart, Waited};
use crate::blk::upper::BlkUpper;
use crate::bytes::io::{BytesQueue, Io as BytesIo, Req};
use crate::platform::{stamp, stamps_to_ns, KernelPlatform, PreemptOff};
use crate::timers::{CoarseExpired, Expired, Polled};
use crate::wait;
use crate::wait::{CurrentTask, NapTask};
use crate::work::{Pinned, Target};

/// Completions that answer nothing, after which the controller is not trusted any more.
const MOST_VIOLATIONS: u64 = 16;

/// What decides for a hardware queue.
pub(crate) type Chosen = Selected<KernelPlatform>;
/// A hardware queue of controller `C` as the block layer uses it.
pub(crate) type Io<C, B> =
    IoQueue<KernelPlatform, <C as Controller>::Queue, BlkUpper<<B as Bus>::Map>, Chosen>;

/// Of this many interrupts the time is taken of one.
const TIMED: u64 = 16;

/// The adapter, as its queues know it.
pub(super) trait AdapterOps: Send + Sync {
    /// Whether an interrupt can be turned off.
    fn can_poll(&self) -> bool;
    /// Turns that of `vector` on or off, at the controller and at the bus.
    fn set_interrupt(&self, vector: u16, on: bool);
    /// The controller has contradicted itself too often. Any context.
    fn report_violation(&self);
    /// `io`, which is on the queue at that address, is late. Sleeps.
    fn late(&self, queue: *const (), io: &dyn Late);
}

/// A hardware queue with what the adapter keeps for it.
pub(crate) struct HwQueue<C: Controller, B: Bus> {
    pub(crate) io: Io<C, B>,
    /// `None`: it never interrupts, and is for polled I/O of the block layer.
    pub(crate) vector: Option<u16>,
    #[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
    pub(crate) alarm: crate::faults::Alarm,
    /// The queue as the wait hook knows it, once it does not move any more.
    pub(crate) queue_ref: SetOnce<QueueRef>,
    ops: Target<dyn AdapterOps>,
    /// In a box: queues are made on the stack.
    stats: KBox<QueueStats>,
    /// Violations from before the last reset, which count no more.
    violations_at_reset: AtomicU64,
    /// That requests wait for long was told.
    told_to_wait: AtomicBool,
}

impl<C: Controller, B: Bus> HwQueue<C, B> {
    // As `create_queues`, its caller.
    #[inline(never)]
    pub(crate) fn new(
        platform: &KernelPlatform,
        new: NewQueue<C::Queue>,
        map: B::Map,
        vector: Option<u16>,
        depth: usize,
    ) -> Result<Self, Error> {
        let upper = BlkUpper::new(map)?;
        let strategy = Selected::new(platform)?;
        let stats = KBox::new(QueueStats::default(), GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        Ok(Self {
            io: IoQueue::new(platform, new, upper, strategy, depth)?,
            vector,
            #[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
            alarm: crate::faults::Alarm::new()?,
            queue_ref: SetOnce::new(),
            ops: Target::new(),
            stats,
            violations_at_reset: AtomicU64::new(0),
            told_to_wait: AtomicBool::new(false),
        })
    }

    /// `queue` does not move any more: its timers and the wait hook call it from now on, and it
    /// calls `ops`. [`HwQueue::quiet`] silences its timers.
    pub(super) fn set_targets<K: AdapterOps + 'static>(queue: Pinned<Self>, ops: Pinned<K>) {
        let this = queue.get();
        this.ops.set(ops.map(|ops| ops));
        this.io.upper().retry.set_target(queue);
        this.io.upper().poller.set_target(queue);
        #[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
        this.alarm.set_target(queue);
        this.queue_ref.populate(QueueRef::new(queue));
    }

    /// Changes how completions are noticed, with the queue at rest for a moment. Sleeps; one caller
    /// at a time.
    pub(crate) fn set_mode(&self, platform: &KernelPlatform, mode: Mode) -> Result<(), Error> {
        let mut quiesced = self.io.quiesce(platform);
        let _stay = PreemptOff::new();
        let set = quiesced.set_mode(mode);
        quiesced.unquiesce();
        set
    }

    /// Changes the strategy, with the queue at rest for a moment. Sleeps; one caller at a time.
    pub(crate) fn choose(&self, platform: &KernelPlatform, which: usize) {
        let mut quiesced = self.io.quiesce(platform);
        let _stay = PreemptOff::new();
        quiesced.select(which);
        quiesced.unquiesce();
    }

    /// The switches that mean something on this queue. On one for polled I/O those of threads do
    /// not: one that submits there comes for the completions itself, finds more of them at once,
    /// and does not sleep.
    pub(crate) fn useful_switches(&self) -> u8 {
        let measured = Switches::LATENCY | Switches::LATENCY_BY_CLOCK;
        let threads = self.vector.map_or(0, |_| Switches::LAZY | Switches::COOP);
        measured | threads
    }

    /// The controller was reset: its earlier violations count no more.
    pub(crate) fn forget_violations(&self) {
        self.violations_at_reset
            .store(self.io.violations(), Ordering::Relaxed);
    }

    /// No timer of it runs any more, nor will.
    pub(crate) fn quiet(&self) {
        self.io.upper().retry.shutdown();
        self.io.upper().poller.quiet();
        #[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
        self.alarm.quiet();
    }

    /// Notes what an interrupt has taken so far that came at `begin`.
    #[cold]
    fn sample(&self, begin: u64) {
        let lead = stamp().saturating_sub(begin);
        self.io.note_interrupt(stamps_to_ns(lead));
    }

    /// Serves its interrupt, which came at `begin`, and has `drain` take the completions.
    #[inline(always)]
    pub(crate) fn serve(&self, begin: u64, drain: impl FnOnce(&Io<C, B>) -> usize) {
        let nth = self.stats.interrupts.load(Ordering::Relaxed);
        if nth % TIMED == 0 {
            self.sample(begin);
        }
        wait::look_from_interrupt();
        drain(&self.io);
        // One handler a vector at a time: no exchange is needed.
        count(&self.stats.interrupts);
        took(begin, &self.stats.max_irq);
        self.check_violations();
    }

    /// Has the controller reset if it has contradicted itself too often. By what comes for sure
    /// while the queue is used: the interrupt, the timer where that is off, a poll of a queue that
    /// has neither, and a time-out. All other drainers leave it to them.
    #[inline]
    pub(crate) fn check_violations(&self) {
        let violations_at_reset = self.violations_at_reset.load(Ordering::Relaxed);
        if self.io.violations().saturating_sub(violations_at_reset) > MOST_VIOLATIONS {
            self.report_violation();
        }
    }

    /// Whether this is the first time that it is asked.
    pub(super) fn tells_to_wait(&self) -> bool {
        !self.told_to_wait.swap(true, Ordering::Relaxed)
    }

    /// From now on it is foretold, or not, when commands are over.
    pub(super) fn set_predict(&self, on: bool) {
        // One for polled I/O has no thread that sleeps.
        self.io.set_predicting(on && self.vector.is_some());
    }

    /// From now on a thread looks for `us` microseconds after a nap, at most.
    pub(super) fn set_window_us(&self, us: u32) {
        self.io.strategy().coop().foresight().set_window_us(us);
    }

    /// For how many it does.
    pub(super) fn window_us(&self) -> u32 {
        self.io.strategy().coop().foresight().window_us()
    }

    /// A completion was missed.
    pub(super) fn missed_one(&self) {
        count(&self.stats.missed);
    }

    #[cold]
    fn report_violation(&self) {
        if let Some(ops) = self.ops.get() {
            ops.report_violation();
        }
    }

    pub(crate) fn add_to(&self, counts: &mut ControllerCounts) {
        self.stats.add_to(counts);
        let writes = self.io.doorbell_writes();
        counts.doorbell_writes = counts.doorbell_writes.wrapping_add(writes);
    }

    pub(crate) fn reset_counts(&self) {
        self.stats.reset();
    }
}

impl<C: Controller, B: Bus> Waited for HwQueue<C, B> {
    fn wait(&self, start: WaitStart) -> Next {
        let task = CurrentTask {
            may_yield: start.may_yield && start.yielded.is_none_or(|found| found),
            expected: start.expected,
        };
        if let Some((nap, late_ns)) = start.napped {
            self.stats.nap(nap);
            self.io.note_nap(nap, late_ns);
        }
        let ended = (start.yielded).and_then(|found| self.io.yielded(found, &task));
        self.io.wait(&task, ended)
    }

    fn look_again(
        &self,
        waiter: &Waiter<Offer, QueueRef>,
        thread: Thread,
        until_ns: u64,
        for_ns: u64,
    ) -> Nap {
        let nap = self
            .io
            .look_again(&NapTask { waiter, thread }, until_ns, for_ns);
        self.stats.nap(nap);
        nap
    }

    fn end(&self, rq: Rq, by: Context) {
        self.io.upper().end_claimed(rq, by);
    }
}

impl<C: Controller, B: Bus> BytesQueue for HwQueue<C, B> {
    fn submit(&self, io: BytesIo, switches: Switches) {
        self.io.submit(Req::Bytes(io), true);
        self.io.poll_on_submit(switches);
    }

    fn tracks(&self, switches: Switches) -> bool {
        self.io.tracks(switches)
    }

    fn drain(&self, by: Context) {
        let _stay = PreemptOff::new();
        self.io.drain(by);
    }

    #[cold]
    fn late(&self, io: &dyn Late) {
        if let Some(ops) = self.ops.get() {
            ops.late(core::ptr::from_ref(self).cast(), io);
        }
    }
}

impl<C: Controller, B: Bus> Expired for HwQueue<C, B> {
    fn expired(&self) {
        let begin = stamp();
        wait::look();
        // One tick at a time.
        count(&self.stats.ticks);
        self.io.tick();
        took(begin, &self.stats.max_tick);
        self.check_violations();
    }
}

impl<C: Controller, B: Bus> Polled for HwQueue<C, B> {
    fn can_poll(&self) -> bool {
        self.vector.is_some() && self.ops.get().is_some_and(AdapterOps::can_poll)
    }

    fn set_interrupt(&self, on: bool) {
        if let (Some(ops), Some(vector)) = (self.ops.get(), self.vector) {
            // Under the drain token.
            count(&self.stats.turns);
            ops.set_interrupt(vector, on);
        }
    }
}

impl<C: Controller, B: Bus> CoarseExpired for HwQueue<C, B> {
    fn coarse_expired(&self) {
        self.io.kick();
    }
}

#[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
impl<C: Controller, B: Bus> crate::faults::Woken for HwQueue<C, B> {
    fn wake(&self) {
        self.io.drain(Context::Irq);
    }
}

/// Counts of one queue, from its beginning or the last reset of them.
#[derive(Default)]
struct QueueStats {
    /// One writer at a time, as for all up to the turns.
    pub(super) interrupts: AtomicU64,
    /// In units of [`stamp`].
    max_irq: AtomicU64,
    /// The longest tick of the poll timer, in units of [`stamp`].
    max_tick: AtomicU64,
    pub(super) ticks: AtomicU64,
    /// How often the interrupt was turned on or off.
    pub(super) turns: AtomicU64,
    /// Completions that only a time-out found.
    pub(super) missed: AtomicU64,
    /// By [`Nap`], in its order. Anybody counts.
    naps: [AtomicU64; 4],
}

/// Counts one more, where there is one writer at a time: no exchange is needed.
#[inline]
pub(super) fn count(counter: &AtomicU64) {
    let n = counter.load(Ordering::Relaxed);
    counter.store(n.wrapping_add(1), Ordering::Relaxed);
}

/// What began at `begin` is over: `longest` is how long it ever took. One writer at a time.
#[inline]
pub(super) fn took(begin: u64, longest: &AtomicU64) {
    let took = stamp().saturating_sub(begin);
    if took > longest.load(Ordering::Relaxed) {
        longest.store(took, Ordering::Relaxed);
    }
}

impl QueueStats {
    /// A nap has ended so.
    pub(super) fn nap(&self, nap: Nap) {
        let counter = match nap {
            Nap::Hit => &self.naps[0],
            Nap::Late => &self.naps[1],
            Nap::Vain => &self.naps[2],
            Nap::Woken => &self.naps[3],
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds what was counted to `counts`.
    pub(super) fn add_to(&self, counts: &mut ControllerCounts) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        counts.interrupts = counts.interrupts.wrapping_add(get(&self.interrupts));
        counts.max_irq_ns = counts.max_irq_ns.max(stamps_to_ns(get(&self.max_irq)));
        counts.max_tick_ns = counts.max_tick_ns.max(stamps_to_ns(get(&self.max_tick)));
        counts.ticks = counts.ticks.wrapping_add(get(&self.ticks));
        counts.turns = counts.turns.wrapping_add(get(&self.turns));
        counts.missed = counts.missed.wrapping_add(get(&self.missed));
        for (sum, naps) in counts.naps.iter_mut().zip(&self.naps) {
            *sum = sum.wrapping_add(get(naps));
        }
    }

    /// Begins at zero again.
    pub(super) fn reset(&self) {
        let zero = |counter: &AtomicU64| counter.store(0, Ordering::Relaxed);
        zero(&self.interrupts);
        zero(&self.max_irq);
        zero(&self.max_tick);
        zero(&self.ticks);
        zero(&self.turns);
        zero(&self.missed);
        self.naps.iter().for_each(zero);
    }
}
