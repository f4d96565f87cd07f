// SPDX-License-Identifier: GPL-2.0
//! One hardware queue: all that the engine keeps for it, in one view, and the layer above it
//! ([`Upper`]).
//!
//! Two tokens guard it. Who holds the issue token has [`IssueSide`] and takes from the FIFO; who
//! holds the drain token has [`DrainSide`]. What is neither's is atomic, and says who writes it.
//! What is done with it is in `submit` (requests to commands), `complete` (completions to ended
//! requests), `timer` (when a queue without its interrupt is looked at), `predict` (when a command
//! will be over) and `quiesce` (the queue at rest).

use cell::sync::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, AtomicU8, AtomicUsize, Ordering};
use cell::{Handover, Putter, Slot, Taker, TryLock};
use hal::{
    Bound, CmdError, Command, Detached, Error, FreeTags, NewQueue, Outcome, Platform, Queue,
    Segment, TagBatch,
};

use crate::policy::{
    Batching, Context, Costs, Cpu, Expected, Interrupted, Measured, Polling, Predictor, Strategy,
    Switches, View,
};

/// The layer above. In the kernel `kglue` implements it over blk-mq, in tests a recorder of what
/// happened.
///
/// Unless said otherwise its functions are called from any context, interrupts included, with a
/// token held: they neither sleep nor call the queue back.
pub trait Upper: Cpu + Send + Sync + 'static {
    /// The owned handle of one request.
    type Request: Send + 'static;
    /// A batch of ended requests.
    type Ended: Default;

    /// What `rq` asks for.
    fn command(&self, rq: &Self::Request) -> Command;

    /// Maps the data of `rq` for the device: all of it, or piece by piece as the pieces are taken.
    /// After an `Err`, or when not all pieces are taken, [`Upper::unmap`] follows.
    fn data<'a>(
        &'a self,
        rq: &'a mut Self::Request,
    ) -> Data<impl Iterator<Item = Result<Segment, CmdError>> + 'a>;

    /// `rq` is bound and about to be issued: its time starts here.
    fn begin_cmd(&self, rq: &mut Self::Request);

    /// `rq` is about to be issued, and is over then, as far as is known. Whether a thread is about
    /// to wait for it that asks the queue what it does meanwhile ([`IoQueue::wait`]). Any context.
    fn predict(&self, rq: &Self::Request, over: Option<Expected>) -> bool {
        let _ = (rq, over);
        false
    }

    /// `rq` could not be bound: undo what [`Upper::data`] has mapped so far. The request stays
    /// valid.
    fn unmap(&self, rq: &mut Self::Request);

    /// `rq` has to wait in the FIFO. May be called without a token.
    fn deferred(&self, rq: &Self::Request);

    /// `rq` is about to fail, the first of maybe many: memory to map its data could not be had,
    /// though nothing in flight holds any.
    fn starved(&self, rq: &Self::Request) {
        let _ = rq;
    }

    /// `rq` is over: parted from its command, which the device no longer knows. It is collected in
    /// `ended`. A request that never began (see [`Upper::begin_cmd`]) may come here too, with an
    /// `Err`. An `Err` says whether another try is worth while ([`crate::RetryCount`]): then the
    /// layer above may submit the request anew, once it is finished.
    fn end_cmd(&self, ended: &mut Self::Ended, rq: Self::Request, outcome: Outcome);

    /// Ends a batch of at least one request towards its submitters; the batch is not used any more.
    /// No token is held by the caller, save by a [`crate::Quiesced`]; new requests may be submitted
    /// from here.
    fn finish(&self, ended: &mut Self::Ended, by: Context);

    /// [`IoQueue::kick`] is to be called in a few milliseconds. Repeated wishes may be
    /// merged, a wish that comes after `kick` has begun may not. No token is held by the caller.
    fn retry_later(&self);

    /// Whether [`Upper::set_interrupt`] can turn the interrupt off.
    fn can_poll(&self) -> bool {
        false
    }

    /// Whether a thread that is asleep waits for one of `ended`.
    fn wakes(&self, ended: &Self::Ended) -> bool {
        let _ = ended;
        false
    }

    /// Lets the controller interrupt for this queue's completions, or not. An interrupt that it
    /// wanted to raise meanwhile need not come afterwards. `false`: it can't be turned off, and was
    /// not. The drain token is held.
    fn set_interrupt(&self, on: bool) -> bool {
        on
    }

    /// [`IoQueue::tick`] is to be called in `us` microseconds; an earlier wish is replaced.
    /// Never called where [`Upper::can_poll`] is `false`.
    fn arm_poll(&self, us: u32) {
        let _ = us;
    }
}

/// The data of a request, mapped for the device.
pub enum Data<I> {
    /// All of it is this segment.
    One(Segment),
    /// It yields none, or several.
    Many(I),
    /// It can't be mapped.
    Not(CmdError),
}

/// One hardware queue: requests go in by [`IoQueue::submit`] and come out through
/// [`Upper::end_cmd`].
///
/// Data path, from any context, with preemption off, never waiting: `submit`, `submit_many`,
/// `commit`, `drain`, `check`, `kick`. Control path: [`IoQueue::quiesce`].
pub struct IoQueue<P: Platform, Q: Queue, U: Upper, S: Strategy> {
    pub(crate) hw: Q,
    pub(crate) upper: U,
    pub(crate) strategy: S,
    pub(crate) issue: TryLock<IssueSide<Q>>,
    pub(crate) drain: TryLock<DrainSide<Q, S>>,
    pub(crate) fifo: Fifo<P, U::Request>,
    /// By tag: the request that it is bound to, put by the issuer. The drainer takes and ends it.
    pub(crate) slots: P::Table<Handover<U::Request>>,
    /// By tag: when the command that it is bound to was issued, by the clock of [`Cpu::now_ms`].
    pub(crate) issued_at: P::Table<AtomicU64>,
    /// When commands are over; nothing of it is read where nothing predicts.
    pub(crate) predict: Predict<P>,
    /// No command that is with the device was issued before this.
    none_before: AtomicU64,
    pub(crate) batching: Batching,
    pub(crate) polling: Polling,
    pub(crate) leftover: Leftover,
    pub(crate) costs: Measured,
    /// Commands that the device was told of. Counted before it is.
    pub(crate) issued: Counter,
    /// Commands that it has answered, or that were taken back.
    pub(crate) done: Counter,
    pub(crate) issue_doorbells: Counter,
    pub(crate) drain_doorbells: Counter,
    /// Tags given out while they were in use.
    pub(crate) spurious_tags: Counter,
    /// Completions that answered nothing, as of the last drain.
    pub(crate) spurious_completions: AtomicU32,
}

/// What the issue token gives access to.
pub(crate) struct IssueSide<Q: Queue> {
    pub(crate) hw: Q::Issue,
    /// Taken from the pool and not used yet; only the token's holder takes any, so they may stay
    /// here.
    pub(crate) free: FreeTags,
    /// Bound, and staged for the next doorbell.
    pub(crate) bound: TagBatch<Bound>,
    /// The last of these.
    pub(crate) last: u32,
    /// Puts into [`IoQueue::slots`].
    pub(crate) requests: Putter,
    /// The gate is closed for ever.
    pub(crate) dead: bool,
    /// Data that can't be mapped.
    pub(crate) map_retries: MapRetryLimit,
    /// The next block, where the device takes blocks.
    pub(crate) gathering: Gathering,
}

/// What the drain token gives access to.
pub(crate) struct DrainSide<Q: Queue, S: Strategy> {
    pub(crate) hw: Q::Drain,
    /// Detached and not released yet; empty whenever the token is free.
    pub(crate) detached: TagBatch<Detached>,
    /// Takes out of [`IoQueue::slots`].
    pub(crate) requests: Taker,
    /// Completions of tags to which no request was bound.
    pub(crate) spurious: u32,
    /// What the strategy keeps from drain to drain.
    pub(crate) notes: S::Notes,
    /// It is told of several together.
    pub(crate) interrupts: UnreportedInterrupts,
}

/// Drains by interrupts that the strategy was not told of yet, together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnreportedInterrupts {
    pub(crate) drains: u32,
    /// Commands that they have ended.
    pub(crate) ended: u32,
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> IoQueue<P, Q, U, S> {
    /// Takes over a queue fresh from its controller. `depth` is the most requests that are ever
    /// outstanding at once. Control path; may sleep.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a depth of 0, [`Error::NoMemory`].
    pub fn new(
        platform: &P,
        hw: NewQueue<Q>,
        upper: U,
        strategy: S,
        depth: usize,
    ) -> Result<Self, Error> {
        if depth == 0 {
            return Err(Error::Invalid);
        }
        let tags = hw.queue.capacity();
        let (putter, taker) = Putter::pair();
        let slots = platform.table(tags, |_| Handover::new(&putter))?;
        Ok(Self {
            issue: TryLock::new(IssueSide {
                hw: hw.issue,
                free: FreeTags::default(),
                bound: TagBatch::default(),
                requests: putter,
                last: 0,
                dead: false,
                map_retries: MapRetryLimit::default(),
                gathering: Gathering::default(),
            }),
            drain: TryLock::new(DrainSide {
                hw: hw.drain,
                detached: TagBatch::default(),
                requests: taker,
                spurious: 0,
                notes: S::Notes::default(),
                interrupts: UnreportedInterrupts::default(),
            }),
            fifo: Fifo::new(platform, depth)?,
            slots,
            issued_at: platform.table(tags, |_| AtomicU64::new(0))?,
            predict: Predict::new(platform, tags)?,
            none_before: AtomicU64::new(0),
            batching: Batching::new(hw.queue.batch(), tags),
            polling: Polling::new(),
            leftover: Leftover::new(),
            costs: Measured::new(),
            strategy,
            issued: Counter::new(),
            done: Counter::new(),
            issue_doorbells: Counter::new(),
            drain_doorbells: Counter::new(),
            spurious_tags: Counter::new(),
            spurious_completions: AtomicU32::new(0),
            hw: hw.queue,
            upper,
        })
    }

    /// The layer above, as given to [`IoQueue::new`].
    pub fn upper(&self) -> &U {
        &self.upper
    }

    /// What decides for it.
    pub fn strategy(&self) -> &S {
        &self.strategy
    }

    /// What things take on this machine, as measured anew.
    pub fn set_costs(&self, costs: Costs) {
        self.costs.set(costs);
    }

    /// What they take, as far as is known.
    pub fn costs(&self) -> Costs {
        self.costs.get()
    }

    /// The interrupt's handler took `ns` before it came to drain this queue. One caller at a time.
    #[inline]
    pub fn note_interrupt(&self, ns: u64) {
        self.costs.note_lead(ns);
    }

    /// Whether it is of use to know which thread waits for a request that is submitted now
    /// ([`Strategy::tracks`]). Any context.
    #[inline]
    pub fn tracks(&self, switches: Switches) -> bool {
        self.strategy.tracks(self, switches)
    }

    /// The controller's queue.
    pub fn hardware(&self) -> &Q {
        &self.hw
    }

    /// Looks at both sides again: takes completions that are there, issues from the FIFO what can
    /// be issued. What [`Upper::retry_later`] asks for. Under [`Context::Sweep`].
    pub fn kick(&self) {
        // It looks at the FIFO, too.
        self.drain_for(Context::Sweep, true);
        if self.leftover.take_requests() {
            self.issue_again(&mut IssueBudget::in_charge());
        }
    }

    /// Requests that hold a tag at this moment. Looks at every tag: not for the data path.
    pub fn in_flight(&self) -> usize {
        self.slots.iter().filter(|slot| slot.is_full()).count()
    }

    /// Requests that wait in the FIFO at this moment.
    pub fn queued(&self) -> usize {
        self.fifo.len()
    }

    /// The command that is with the device longest, if that is `limit_ms` or longer, at `now_ms`.
    /// For a timer or a time-out handler, after a [`IoQueue::drain`]. The tags are looked at only
    /// when the oldest command known may be that old.
    pub fn overdue(&self, now_ms: u64, limit_ms: u64) -> Option<Overdue> {
        let late = |at: u64| at.saturating_add(limit_ms) <= now_ms;
        if !late(self.none_before.load(Ordering::Relaxed)) {
            return None;
        }
        let places = self.slots.iter().zip(self.issued_at.iter()).enumerate();
        let outstanding = places.filter(|(_, (slot, _))| slot.is_full());
        let oldest = outstanding
            .map(|(tag, (_, at))| Overdue {
                issued_at: at.load(Ordering::Relaxed),
                tag,
            })
            .min();
        // Who is issuing at this moment has read the clock already.
        let issuing = now_ms.saturating_sub(ISSUE_MS);
        let before = oldest.map_or(issuing, |oldest| oldest.issued_at.min(issuing));
        self.none_before.store(before, Ordering::Relaxed);
        oldest.filter(|oldest| late(oldest.issued_at))
    }

    /// Whether requests wait for a tag, and none was given out for `limit_ms`, at `now_ms`. As
    /// [`IoQueue::overdue`].
    pub fn is_stalled(&self, now_ms: u64, limit_ms: u64) -> bool {
        let long_ago =
            |at: &AtomicU64| at.load(Ordering::Relaxed).saturating_add(limit_ms) <= now_ms;
        !self.fifo.is_empty() && self.issued_at.iter().all(long_ago)
    }

    /// Register writes that announced commands or taken completions.
    pub fn doorbell_writes(&self) -> u64 {
        let issued = self.issue_doorbells.get();
        issued.wrapping_add(self.drain_doorbells.get())
    }

    /// How often the controller contradicted what it was told, as of the last drain: completions
    /// that answer nothing, tags given out twice. More than a few are a reason to reset.
    pub fn violations(&self) -> u64 {
        let drained = u64::from(self.spurious_completions.load(Ordering::Relaxed));
        self.spurious_tags.get().wrapping_add(drained)
    }

    /// Whether a queue with this strategy may have prediction on: else what asks is no code.
    #[inline(always)]
    pub(crate) fn may_predict(&self) -> bool {
        S::Predictor::ENABLED && self.upper.may_predict()
    }
}

/// From the look at the clock until the command is in its slot, in milliseconds, with preemption
/// off. TIMEOUT: a virtual machine's CPU may be stopped in between; what is noticed later for it is
/// noticed at its next time-out.
const ISSUE_MS: u64 = 1_000;

/// A command that was not answered in time: the oldest comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Overdue {
    /// When it was issued, by the clock of [`Cpu::now_ms`].
    pub issued_at: u64,
    /// Its tag.
    pub tag: usize,
}

impl<P: Platform, Q: Queue, U: Upper, S: Strategy> View for IoQueue<P, Q, U, S> {
    #[inline(always)]
    fn outstanding(&self) -> u64 {
        // The older of the two first: it does not go below 0 by what happens between.
        let done = self.done.get();
        self.issued.get().saturating_sub(done)
    }

    #[inline(always)]
    fn batching(&self) -> &Batching {
        &self.batching
    }

    #[inline(always)]
    fn polling(&self) -> &Polling {
        &self.polling
    }

    #[inline(always)]
    fn is_predicting(&self) -> bool {
        self.may_predict() && self.predict.is_on()
    }

    #[inline]
    fn costs(&self) -> Costs {
        self.costs.get()
    }

    #[inline(always)]
    fn is_crowded(&self) -> bool {
        self.upper.is_crowded()
    }

    #[inline(always)]
    fn interrupted(&self) -> Interrupted {
        self.upper.interrupted()
    }

    #[inline(always)]
    fn now_ms(&self) -> u64 {
        self.upper.now_ms()
    }

    #[inline(always)]
    fn now_ns(&self) -> u64 {
        self.upper.now_ns()
    }
}

/// What the issuer knows of mappings that fail.
#[derive(Debug, Default)]
pub(crate) struct MapRetryLimit {
    /// Attempts in vain, since when nothing was in flight that could give memory back.
    pub(crate) tries: u32,
    /// When the first of them was, by the clock of [`Cpu::now_ms`].
    pub(crate) since_ms: u64,
    /// That requests are given up was told.
    pub(crate) told: bool,
}

/// What the issuer knows of a block that gathers.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    /// Of how many commands the last one was.
    pub(crate) last: usize,
    /// How many were staged while that was out.
    pub(crate) beside: usize,
    /// Since when the device takes this one.
    pub(crate) since_ns: Option<u64>,
}

/// What is kept of a command by its tag.
pub(crate) struct TagPrediction {
    /// [`crate::Predicted::mark`]; 0: nothing was predicted.
    pub(crate) mark: AtomicU64,
    /// When it was issued.
    pub(crate) at_ns: AtomicU64,
    /// After how many nanoseconds it is over, and its spread, from 4 s on all alike; 0: nobody
    /// knows yet.
    pub(crate) after_ns: AtomicU32,
    pub(crate) spread_ns: AtomicU32,
}

/// What the engine keeps of predictions. Relaxed, all of it: it moves a timer within its interval,
/// and what is measured is a guess.
pub(crate) struct Predict<P: Platform> {
    /// [`Predict::OFF`], [`Predict::PAUSED`] or [`Predict::ON`].
    pub(crate) state: AtomicU8,
    /// How many more commands are issued before prediction resumes, while it is paused.
    /// Written by the issue token's holder.
    pub(crate) paused_for: AtomicU16,
    /// By tag: what was predicted of the command that it is bound to.
    pub(crate) told: P::Table<TagPrediction>,
    /// The tag of the command that was issued last, if anything is predicted of it; else
    /// [`Predict::NO_TAG`]. Written by the issue token's holder.
    pub(crate) last: AtomicU16,
    /// The timer goes by it: no thread naps that polls for it.
    pub(crate) is_timed: AtomicBool,
    /// When the last poll began that found nothing. Written by the drain token's holder.
    pub(crate) empty_ns: AtomicU64,
}

impl<P: Platform> Predict<P> {
    pub(crate) const OFF: u8 = 0;
    pub(crate) const PAUSED: u8 = 1;
    pub(crate) const ON: u8 = 2;
    pub(crate) const NO_TAG: u16 = u16::MAX;

    fn new(platform: &P, tags: usize) -> Result<Self, Error> {
        let told = |_| TagPrediction {
            mark: AtomicU64::new(0),
            at_ns: AtomicU64::new(0),
            after_ns: AtomicU32::new(0),
            spread_ns: AtomicU32::new(0),
        };
        Ok(Self {
            state: AtomicU8::new(Self::OFF),
            paused_for: AtomicU16::new(0),
            told: platform.table(tags, told)?,
            last: AtomicU16::new(Self::NO_TAG),
            is_timed: AtomicBool::new(false),
            empty_ns: AtomicU64::new(0),
        })
    }

    #[inline(always)]
    fn is_on(&self) -> bool {
        self.state.load(Ordering::Relaxed) == Self::ON
    }
}

/// What is left at this moment.
pub(crate) struct Leftover {
    /// Completions, or a drain that somebody has knocked for.
    pub(crate) completions: AtomicBool,
    /// Requests that a tag is free for, or a doorbell that somebody has knocked for.
    pub(crate) requests: AtomicBool,
}

impl Leftover {
    pub(crate) fn new() -> Self {
        Self {
            completions: AtomicBool::new(false),
            requests: AtomicBool::new(false),
        }
    }
}

/// A bounded ring. Anybody pushes; the holder of the issue token alone takes.
///
/// A place is reserved first (`tail`) and filled then. Between the two the ring counts as not
/// empty, but has nothing to take: its taker leaves, and whoever is filling the place comes for the
/// token afterwards.
///
/// # Invariants
/// `head <= tail <= head + capacity` in wrapping arithmetic; a place is reserved only once its last
/// request has left it.
pub(crate) struct Fifo<P: Platform, T: Send + 'static> {
    places: P::Table<Slot<T>>,
    head: AtomicUsize,
    tail: AtomicUsize,
}

/// Whether a ring of `len` places is full, by a `tail` and a `head` that was read after it. Where
/// others have pushed and were taken meanwhile, `head` is beyond that `tail`: the ring is not full,
/// and who tries to reserve that place finds that it has gone on.
#[inline]
fn is_full(tail: usize, head: usize, len: usize) -> bool {
    tail.wrapping_sub(head) == len
}

impl<P: Platform, T: Send + 'static> Fifo<P, T> {
    /// A ring for at least `depth` requests.
    pub(crate) fn new(platform: &P, depth: usize) -> Result<Self, Error> {
        // A power of two, so that the free-running indices may wrap.
        let len = depth.checked_next_power_of_two().ok_or(Error::Invalid)?;
        Ok(Self {
            places: platform.table(len, |_| Slot::default())?,
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
        })
    }

    #[inline]
    fn place(&self, at: usize) -> Option<&Slot<T>> {
        self.places.get(at & self.places.len().wrapping_sub(1))
    }

    /// How many requests are in it, or about to be.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        // Acquire: not an older `tail` than what `head` has passed.
        let head = self.head.load(Ordering::Acquire);
        self.tail.load(Ordering::Relaxed).wrapping_sub(head)
    }

    /// Whether no request is in it, or about to be.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds `rq` at the end; gives it back when more requests are there than the ring was made for.
    /// Any context.
    pub(crate) fn push(&self, rq: T) -> Result<(), T> {
        // Acquire on `tail`, and release: `head` is no older. Acquire on `head`: a place that has
        // been left is seen as left.
        let reserve = |tail: usize| {
            let head = self.head.load(Ordering::Acquire);
            (!is_full(tail, head, self.places.len())).then(|| tail.wrapping_add(1))
        };
        match (self.tail).fetch_update(Ordering::AcqRel, Ordering::Acquire, reserve) {
            Ok(at) => match self.place(at) {
                Some(place) => place.put(rq),
                None => Err(rq),
            },
            Err(_) => Err(rq),
        }
    }

    /// Lets `f` have the first request; it leaves the FIFO unless `f` gives it back. `None`: there
    /// is none to be had at this moment. By the holder of the issue token.
    pub(crate) fn with_first<E>(
        &self,
        f: impl FnOnce(T) -> Result<(), (T, E)>,
    ) -> Option<Result<(), E>> {
        let head = self.head.load(Ordering::Relaxed);
        let place = self.place(head)?;
        match f(place.take()?) {
            Ok(()) => {
                // Release: the place is empty for whoever reserves it next.
                self.head.store(head.wrapping_add(1), Ordering::Release);
                Some(Ok(()))
            }
            Err((rq, why)) => {
                // It is empty: nobody reserves a place before `head` has passed it.
                let _ = place.put(rq);
                Some(Err(why))
            }
        }
    }
}

/// A counter with one writer at a time, the holder of its side's token: no atomic exchange is
/// needed.
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(crate) fn add(&self, n: usize) {
        if n != 0 {
            // CAST: usize is at most 64 bits wide.
            let sum = self.0.load(Ordering::Relaxed).wrapping_add(n as u64);
            self.0.store(sum, Ordering::Relaxed);
        }
    }

    /// Makes it equal to `other`, whose writer the caller is too.
    pub(crate) fn equal(&self, other: &Counter) {
        self.0.store(other.get(), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A batch of ended requests that knows whether there is anything in it.
pub(crate) struct CompletionBatch<U: Upper> {
    batch: U::Ended,
    count: usize,
}

impl<U: Upper> CompletionBatch<U> {
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            batch: U::Ended::default(),
            count: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn end(&mut self, upper: &U, rq: U::Request, outcome: Outcome) {
        upper.end_cmd(&mut self.batch, rq, outcome);
        self.count = self.count.wrapping_add(1);
    }

    /// How many requests are in it.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether a thread that is asleep waits for one of them.
    #[inline]
    pub(crate) fn wakes(&self, upper: &U) -> bool {
        upper.wakes(&self.batch)
    }

    /// Finishes the batch, if it is one; returns how many requests were in it. Nothing is added to
    /// it afterwards.
    #[inline(always)]
    pub(crate) fn finish(&mut self, upper: &U, by: Context) -> usize {
        if self.count != 0 {
            upper.finish(&mut self.batch, by);
        }
        self.count
    }
}

/// What one context does for others, until it leaves the rest.
pub(crate) struct IssueBudget<U: Upper> {
    /// What it ends.
    pub(crate) ended: CompletionBatch<U>,
    /// How many requests it may issue from the FIFO beside a budget: those that it has left there
    /// itself, and one for each tag that it has freed.
    pub(crate) own: usize,
    /// How many requests it has issued.
    pub(crate) issued: usize,
}

impl<U: Upper> IssueBudget<U> {
    /// Somebody passes by.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self::of(0, 0)
    }

    /// Somebody has freed `own` tags, and issued `issued` from the FIFO.
    #[inline(always)]
    pub(crate) fn of(own: usize, issued: usize) -> Self {
        Self {
            ended: CompletionBatch::new(),
            own,
            issued,
        }
    }

    /// Somebody who is here for just that.
    pub(crate) fn in_charge() -> Self {
        Self::of(usize::MAX, 0)
    }

    /// How many requests it has issued from the FIFO.
    pub(crate) fn issued(&self) -> usize {
        self.issued
    }

    /// How many more it may.
    pub(crate) fn may_issue(&self, budget: usize) -> usize {
        let most = self.own.saturating_add(budget);
        most.saturating_sub(self.issued)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::is_full;

    #[test]
    fn a_ring_is_full_when_all_places_are_taken() {
        assert!(!is_full(9, 9, 4) && !is_full(12, 9, 4));
        assert!(is_full(13, 9, 4));
        assert!(is_full(1, usize::MAX - 2, 4));
    }

    /// Seen with four CPUs: one that was kept from going on between its looks at tail and head
    /// found an empty ring full, and its read failed.
    #[test]
    fn whoever_was_overtaken_finds_it_not_full() {
        assert!(!is_full(9, 12, 4));
        assert!(!is_full(usize::MAX, 3, 4));
    }
}
