// SPDX-License-Identifier: GPL-2.0
//! One hardware queue with all that the strategy keeps for it.

use crate::costs::Measured;
use crate::defer::Deferring;
use crate::fifo::Fifo;
use crate::foretell::{Foretelling, Told};
use crate::lookout::Lookout;
use crate::poll::Polling;
use crate::queued::Passage;
use crate::rest::Rest;
use crate::starving::Starving;
use crate::stats::Counter;
use crate::strategy::Strategy;
use crate::Switches;
use crate::{Context, Costs, Upper};
use cell::sync::{AtomicU32, AtomicU64, Ordering};
use cell::{Slot, TryLock};
use hal::{Bound, Detached, Error, Free, NewQueue, Platform, Queue, TagBatch};

/// From the look at the clock until the command is in its slot, in milliseconds, with preemption
/// off. TIMEOUT: a virtual machine's CPU may be stopped in between; what is noticed later for it is
/// noticed at its next time-out.
const ISSUE_MS: u64 = 1_000;

/// A command that was not answered in time: the oldest comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Overdue {
    /// When it was issued, by the clock of [`Upper::now_ms`].
    pub issued_at: u64,
    /// Its tag.
    pub tag: usize,
}

/// What the issue token gives access to.
pub(crate) struct IssueSide<Q: Queue> {
    pub(crate) hw: Q::Issue,
    /// Taken from the pool and not used yet; only the token's holder takes any, so they may stay
    /// here.
    pub(crate) free: TagBatch<Free>,
    /// Bound, and staged for the next doorbell.
    pub(crate) bound: TagBatch<Bound>,
    /// The last of these.
    pub(crate) last: u32,
    /// So many commands more are issued of which nothing is foretold ([`Foretells::NothingFor`]).
    ///
    /// [`Foretells::NothingFor`]: crate::Foretells::NothingFor
    pub(crate) untold: u16,
    /// The gate is closed for ever.
    pub(crate) dead: bool,
    /// Data that can't be mapped.
    pub(crate) starving: Starving,
}

/// What the drain token gives access to.
pub(crate) struct DrainSide<Q: Queue, S: Strategy> {
    pub(crate) hw: Q::Drain,
    /// Detached and not released yet; empty whenever the token is free.
    pub(crate) detached: TagBatch<Detached>,
    /// Completions of tags to which no request was bound.
    pub(crate) strays: u32,
    /// What the strategy keeps from drain to drain.
    pub(crate) notes: S::Notes,
    /// When the last look began that found nothing; while it is foretold when commands are over.
    pub(crate) empty_ns: u64,
}

/// One hardware queue: requests go in by [`IoQueue::submit`] and come out through
/// [`Upper::end_cmd`].
///
/// Data path, from any context, with preemption off, never waiting: `submit`, `submit_many`,
/// `commit` (`issue.rs`), `drain`, `check` (`drain.rs`), `kick`. Control path: [`IoQueue::pause`]
/// (`gate.rs`).
pub struct IoQueue<P: Platform, Q: Queue, U: Upper, S: Strategy> {
    pub(crate) hw: Q,
    pub(crate) upper: U,
    pub(crate) strategy: S,
    pub(crate) issue: TryLock<IssueSide<Q>>,
    pub(crate) drain: TryLock<DrainSide<Q, S>>,
    pub(crate) fifo: Fifo<P, U::Request>,
    /// By tag: the request that it is bound to. Who takes it ends it.
    pub(crate) slots: P::Table<Slot<U::Request>>,
    /// By tag: when the command that it is bound to was issued, by the clock of [`Upper::now_ms`].
    pub(crate) issued_at: P::Table<AtomicU64>,
    /// By tag: what was foretold of the command that it is bound to.
    pub(crate) told: P::Table<Told>,
    pub(crate) foretelling: Foretelling,
    pub(crate) lookout: Lookout,
    /// No command that is with the device was issued before this.
    none_before: AtomicU64,
    pub(crate) deferring: Deferring,
    pub(crate) poll: Polling,
    pub(crate) rest: Rest,
    pub(crate) costs: Measured,
    /// Commands that the device was told of. Counted before it is.
    pub(crate) issued: Counter,
    /// Commands that it has answered, or that were taken back.
    pub(crate) done: Counter,
    pub(crate) issue_doorbells: Counter,
    pub(crate) drain_doorbells: Counter,
    /// Tags given out while they were in use.
    pub(crate) issue_strays: Counter,
    /// Completions that answered nothing, as of the last drain.
    pub(crate) drain_strays: AtomicU32,
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
        Ok(Self {
            issue: TryLock::new(IssueSide {
                hw: hw.issue,
                free: TagBatch::default(),
                bound: TagBatch::default(),
                last: 0,
                untold: 0,
                dead: false,
                starving: Starving::default(),
            }),
            drain: TryLock::new(DrainSide {
                hw: hw.drain,
                detached: TagBatch::default(),
                strays: 0,
                notes: S::Notes::default(),
                empty_ns: 0,
            }),
            fifo: Fifo::new(platform, depth)?,
            slots: platform.table(tags, |_| Slot::default())?,
            issued_at: platform.table(tags, |_| AtomicU64::new(0))?,
            told: platform.table(tags, Told::new)?,
            foretelling: Foretelling::new(),
            lookout: Lookout::new(),
            none_before: AtomicU64::new(0),
            deferring: Deferring::new(hw.queue.batch()),
            poll: Polling::new(),
            rest: Rest::new(),
            costs: Measured::new(),
            strategy,
            issued: Counter::new(),
            done: Counter::new(),
            issue_doorbells: Counter::new(),
            drain_doorbells: Counter::new(),
            issue_strays: Counter::new(),
            drain_strays: AtomicU32::new(0),
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
    /// ([`Strategy::notes_owner`]). Any context.
    #[inline]
    pub fn notes_owner(&self, switches: Switches) -> bool {
        self.strategy.notes_owner(self, switches)
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
        if self.rest.take_requests() {
            self.issue_again(&mut Passage::in_charge());
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
        let drained = u64::from(self.drain_strays.load(Ordering::Relaxed));
        self.issue_strays.get().wrapping_add(drained)
    }
}
