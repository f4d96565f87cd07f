// SPDX-License-Identifier: GPL-2.0
//! Completions that the device has posted and the driver does not see yet, or never.
//!
//! They are in a table of their own, as the drainer's side, which is handed around by value, has to
//! stay small. Only the drainer comes here, so no place is ever found locked.

use cell::TryLock;
use hal::{Error, Event, Platform};

/// A completion that is lost.
pub(crate) const NEVER: u64 = u64::MAX;
/// How many there is room for.
const ROOM: usize = 32;

struct Entry {
    event: Event,
    due_us: u64,
}

/// A few completions, each with the time at which it is due.
pub(crate) struct Delayed<P: Platform> {
    places: P::Table<TryLock<Option<Entry>>>,
}

impl<P: Platform> Delayed<P> {
    pub(crate) fn none(platform: &P) -> Result<Self, Error> {
        let places = platform.table(ROOM, |_| TryLock::new(None))?;
        Ok(Self { places })
    }

    /// Keeps `event` until `due_us`, if there is room.
    pub(crate) fn keep(&self, event: Event, due_us: u64) -> Result<(), Event> {
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
    pub(crate) fn next_us(&self) -> u64 {
        let places = self.places.iter().filter_map(TryLock::try_lock);
        let due = places.filter_map(|place| place.as_ref().map(|late| late.due_us));
        due.min().unwrap_or(NEVER)
    }

    /// Takes one that is due at `until_us` or before.
    pub(crate) fn take(&self, until_us: u64) -> Option<Event> {
        let is_due = |place: &Option<Entry>| place.as_ref().is_some_and(|l| l.due_us <= until_us);
        let mut places = self.places.iter().filter_map(TryLock::try_lock);
        let late = places.find(|place| is_due(place))?.take()?;
        Some(late.event)
    }

    /// Forgets all of them.
    pub(crate) fn clear(&self) {
        while self.take(NEVER).is_some() {}
    }
}
