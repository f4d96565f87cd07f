// SPDX-License-Identifier: GPL-2.0
//! A queue whose completions get lost, come late, come twice or say that the command has failed.

use crate::faults::Faults;
use cell::TryLock;
use core::fmt;
use core::ops::Deref;
use hal::{
    Bound, CmdError, Command, Completed, Detached, Error, Event, Free, FreeTags, NewQueue,
    Platform, Segment, Tag, TagBatch, Unbound,
};

/// A completion that is lost.
const NEVER: u64 = u64::MAX;
/// Completions that may be delayed at once.
const ROOM: usize = 32;

/// What makes up for the interrupt of a completion that comes late.
pub trait Alarm: Send + Sync + 'static {
    /// Has the queue drained in `us` microseconds, rather than when it was asked for before. Called
    /// by the drainer.
    fn wake_in(&self, us: u64);
}

/// The driver's queue `Q`, with the faults of `F`.
pub struct Queue<Q, P: Platform, F, A> {
    inner: Q,
    platform: P,
    faults: F,
    alarm: A,
    delayed: Delayed<P>,
}

/// The drainer's side of a queue whose own is `D`.
pub struct Drain<D> {
    inner: D,
    /// Some completion is delayed.
    delays: bool,
    /// For when the drain was asked.
    woken_us: u64,
    /// Completions that came twice.
    doubled: u32,
}

impl<Q: hal::Queue, P: Platform, F, A> Queue<Q, P, F, A> {
    /// `new`, with `faults`. Sleeps.
    pub fn around(
        new: NewQueue<Q>,
        platform: P,
        faults: F,
        alarm: A,
    ) -> Result<NewQueue<Self>, Error>
    where
        Self: hal::Queue<Issue = Q::Issue, Drain = Drain<Q::Drain>>,
    {
        Ok(NewQueue {
            queue: Self {
                inner: new.queue,
                delayed: Delayed::none(&platform)?,
                platform,
                faults,
                alarm,
            },
            issue: new.issue,
            drain: Drain {
                inner: new.drain,
                delays: false,
                woken_us: NEVER,
                doubled: 0,
            },
        })
    }

    /// The driver's.
    pub fn inner(&self) -> &Q {
        &self.inner
    }

    /// What it is woken by.
    pub fn alarm(&self) -> &A {
        &self.alarm
    }
}

impl<Q, P, F, A> Queue<Q, P, F, A>
where
    Q: hal::Queue,
    P: Platform,
    F: Deref<Target = Faults> + Send + Sync + 'static,
    A: Alarm,
{
    /// Whether a delayed completion is due.
    fn is_due(&self, side: &Drain<Q::Drain>) -> bool {
        side.delays && self.delayed.next_us() <= self.platform.now_us()
    }

    fn take_due(&self, side: &Drain<Q::Drain>) -> Option<Event> {
        match side.delays {
            true => self.delayed.take(self.platform.now_us()),
            false => None,
        }
    }

    /// Until when a completion is delayed; `None`: it is reported at once.
    fn kept_until(&self) -> Option<u64> {
        if self.faults.drop.count_off() != 0 {
            return Some(NEVER);
        }
        match self.faults.delay_us.get() {
            0 => None,
            late => Some(self.platform.now_us().saturating_add(u64::from(late))),
        }
    }

    /// No interrupt announces what is delayed: the alarm stands in for it.
    fn wake(&self, side: &mut Drain<Q::Drain>) {
        if !side.delays {
            return;
        }
        let (next_us, now_us) = (self.delayed.next_us(), self.platform.now_us());
        if next_us == side.woken_us && now_us < side.woken_us {
            return;
        }
        side.woken_us = next_us;
        if next_us != NEVER {
            self.alarm.wake_in(next_us.saturating_sub(now_us).max(1));
        }
    }

    fn fetch(&self, side: &mut Drain<Q::Drain>) -> Option<Event> {
        if let Some(event) = self.take_due(side) {
            return Some(event);
        }
        // As often as there is room, and once more.
        while let Some(mut event) = self.inner.fetch_event(&mut side.inner) {
            if self.faults.duplicate.count_off() != 0 {
                side.doubled = side.doubled.saturating_add(1);
            }
            if self.faults.fail_nth.count_off() == 1 {
                event.outcome = Err(self.faults.failure());
            }
            let Some(until_us) = self.kept_until() else {
                return Some(event);
            };
            if let Err(event) = self.delayed.keep(event, until_us) {
                return Some(event);
            }
            side.delays = true;
        }
        None
    }
}

impl<Q, P, F, A> hal::Queue for Queue<Q, P, F, A>
where
    Q: hal::Queue,
    P: Platform,
    F: Deref<Target = Faults> + Send + Sync + 'static,
    A: Alarm,
{
    type Issue = Q::Issue;
    type Drain = Drain<Q::Drain>;

    fn capacity(&self) -> usize {
        self.inner.capacity()
    }

    fn batch(&self) -> usize {
        self.inner.batch()
    }

    fn get_free_tags(&self, side: &mut Q::Issue, want: usize) -> FreeTags {
        self.inner.get_free_tags(side, want)
    }

    fn bind_tag_cmd(
        &self,
        side: &mut Q::Issue,
        tag: Tag<Free>,
        cmd: &Command,
        data: impl Iterator<Item = Result<Segment, CmdError>>,
    ) -> Result<Tag<Bound>, Unbound> {
        self.inner.bind_tag_cmd(side, tag, cmd, data)
    }

    const BLOCKS: bool = Q::BLOCKS;

    fn takes_blocks(&self) -> bool {
        self.inner.takes_blocks()
    }

    fn takes(&self, side: &Q::Issue, staged: usize) -> usize {
        self.inner.takes(side, staged)
    }

    fn hold(&self, side: &mut Q::Issue, staged: usize) {
        self.inner.hold(side, staged);
    }

    fn issue_tags(&self, side: &mut Q::Issue, tags: &mut TagBatch<Bound>) -> usize {
        self.inner.issue_tags(side, tags)
    }

    fn unget_tags(&self, side: &mut Q::Issue, tags: &mut TagBatch<Free>) {
        self.inner.unget_tags(side, tags);
    }

    fn check_event(&self, side: &mut Self::Drain) -> bool {
        self.inner.check_event(&mut side.inner) || self.is_due(side)
    }

    fn fetch_event(&self, side: &mut Self::Drain) -> Option<Event> {
        let event = self.fetch(side);
        self.wake(side);
        event
    }

    fn detach_tag_cmd(&self, side: &mut Self::Drain, tag: Tag<Completed>) -> Tag<Detached> {
        self.inner.detach_tag_cmd(&mut side.inner, tag)
    }

    fn release_tags(&self, side: &mut Self::Drain, tags: &mut TagBatch<Detached>) -> usize {
        self.inner.release_tags(&mut side.inner, tags)
    }

    fn violations(&self, side: &Self::Drain) -> u32 {
        let own = self.inner.violations(&side.inner);
        own.saturating_add(side.doubled)
    }

    fn timeout_report(
        &self,
        issue: &Q::Issue,
        drain: &Self::Drain,
        to: &mut dyn fmt::Write,
    ) -> fmt::Result {
        self.inner.timeout_report(issue, &drain.inner, to)
    }

    /// First what got lost on its way: for all that is known above, the device never finished it.
    fn reap_tag(&self, side: &mut Self::Drain) -> Option<Event> {
        match self.delayed.take(NEVER) {
            Some(event) => Some(Event {
                outcome: Err(CmdError::Aborted.retryable()),
                ..event
            }),
            None => self.inner.reap_tag(&mut side.inner),
        }
    }

    fn rewind(&self, issue: &mut Q::Issue, drain: &mut Self::Drain) {
        self.inner.rewind(issue, &mut drain.inner);
        self.delayed.clear();
        drain.delays = false;
        drain.woken_us = NEVER;
        drain.doubled = 0;
    }
}

struct Entry {
    event: Event,
    due_us: u64,
}

/// A few completions, each with the time at which it is due.
///
/// They are in a table of their own, as the drainer's side, which is handed around by value, has to
/// stay small. Only the drainer comes here, so no place is ever found locked.
struct Delayed<P: Platform> {
    places: P::Table<TryLock<Option<Entry>>>,
}

impl<P: Platform> Delayed<P> {
    fn none(platform: &P) -> Result<Self, Error> {
        let places = platform.table(ROOM, |_| TryLock::new(None))?;
        Ok(Self { places })
    }

    /// Keeps `event` until `due_us`, if there is room.
    fn keep(&self, event: Event, due_us: u64) -> Result<(), Event> {
        let mut places = self.places.iter().filter_map(TryLock::try_lock);
        match places.find(|place| place.is_none()) {
            Some(mut place) => {
                *place = Some(Entry { event, due_us });
                Ok(())
            }
            None => Err(event),
        }
    }

    /// When the next is due; [`NEVER`].
    fn next_us(&self) -> u64 {
        let places = self.places.iter().filter_map(TryLock::try_lock);
        let due = places.filter_map(|place| place.as_ref().map(|late| late.due_us));
        due.min().unwrap_or(NEVER)
    }

    /// Takes one that is due at `until_us` or before.
    fn take(&self, until_us: u64) -> Option<Event> {
        let is_due = |place: &Option<Entry>| place.as_ref().is_some_and(|l| l.due_us <= until_us);
        let mut places = self.places.iter().filter_map(TryLock::try_lock);
        let late = places.find(|place| is_due(place))?.take()?;
        Some(late.event)
    }

    /// Forgets all of them.
    fn clear(&self) {
        while self.take(NEVER).is_some() {}
    }
}
