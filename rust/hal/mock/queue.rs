// SPDX-License-Identifier: GPL-2.0
//! A queue whose device is the test: the driver's half of it, honest, and checking as a real one
//! must.

use crate::mock::device::{Issued, MockDevice};
use crate::{
    Bound, CmdError, Command, Completed, Detached, Error, Event, Free, FreeTags, NewQueue,
    Platform, Queue, Segment, Tag, TagBatch, TagTable, Unbound,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

/// A queue over a [`MockDevice`].
pub struct MockQueue<P: Platform> {
    tags: TagTable<P>,
    device: Arc<MockDevice>,
    /// [`Queue::batch`].
    batch: usize,
    /// By tag: what is written where the device will look for it.
    bound: P::Table<Mutex<Option<Issued>>>,
}

/// What only the issuer of a [`MockQueue`] touches.
#[derive(Debug, Default)]
pub struct MockIssue {
    /// Batches issued.
    pub batches: usize,
}

/// What only the drainer of a [`MockQueue`] touches.
#[derive(Debug, Default)]
pub struct MockDrain {
    /// Completions fetched and not yet acknowledged.
    fetched: usize,
    violations: u32,
}

impl<P: Platform> MockQueue<P> {
    /// A queue of `tags` slots, with its device's end.
    pub fn new(platform: &P, tags: u16) -> Result<(NewQueue<Self>, Arc<MockDevice>), Error> {
        Self::gathering(platform, tags, 1)
    }

    /// The same with a device whose doorbell is expensive, so that a batch is `batch` commands.
    pub fn gathering(
        platform: &P,
        tags: u16,
        batch: usize,
    ) -> Result<(NewQueue<Self>, Arc<MockDevice>), Error> {
        let device = Arc::new(MockDevice::default());
        let queue = Self {
            batch,
            tags: TagTable::new(platform, tags)?,
            device: Arc::clone(&device),
            bound: platform.table(usize::from(tags), |_| Mutex::new(None))?,
        };
        let new = NewQueue {
            queue,
            issue: MockIssue::default(),
            drain: MockDrain::default(),
        };
        Ok((new, device))
    }

    fn bound(&self, number: usize) -> Option<MutexGuard<'_, Option<Issued>>> {
        let place = self.bound.get(number)?;
        Some(place.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<P: Platform> Queue for MockQueue<P> {
    type Issue = MockIssue;
    type Drain = MockDrain;

    fn capacity(&self) -> usize {
        self.tags.capacity()
    }

    fn batch(&self) -> usize {
        self.batch
    }

    fn get_free_tags(&self, _: &mut MockIssue, want: usize) -> FreeTags {
        self.tags.take(want)
    }

    fn bind_tag_cmd(
        &self,
        _: &mut MockIssue,
        tag: Tag<Free>,
        cmd: &Command,
        data: impl Iterator<Item = Result<Segment, CmdError>>,
    ) -> Result<Tag<Bound>, Unbound> {
        if let Some(why) = self.device.state().bind_answers.pop_front().flatten() {
            return Err(Unbound { tag, why });
        }
        let data = match data.collect() {
            Ok(data) => data,
            Err(why) => return Err(Unbound { tag, why }),
        };
        if let Some(mut place) = self.bound(tag.index()) {
            *place = Some(Issued {
                number: tag.number(),
                command: *cmd,
                data,
            });
        }
        Ok(tag.bind())
    }

    fn issue_tags(&self, side: &mut MockIssue, tags: &mut TagBatch<Bound>) -> usize {
        if tags.is_empty() {
            return 0;
        }
        side.batches += 1;
        let mut told = Vec::new();
        for tag in tags.drain() {
            told.extend(self.bound(tag.index()).and_then(|mut place| place.take()));
            self.tags.issue(tag);
        }
        let mut state = self.device.state();
        state.issued.extend(told);
        state.doorbells += 1;
        1
    }

    fn unget_tags(&self, _: &mut MockIssue, tags: &mut TagBatch<Free>) {
        self.tags.put_back(tags);
    }

    fn check_event(&self, _: &mut MockDrain) -> bool {
        if let Some(what) = self.device.is_time() {
            what();
            return false;
        }
        !self.device.state().posted.is_empty()
    }

    fn fetch_event(&self, side: &mut MockDrain) -> Option<Event> {
        let mut state = self.device.state();
        while let Some((number, outcome)) = state.posted.pop_front() {
            side.fetched += 1;
            match self.tags.complete(number) {
                Some(tag) => return Some(Event { tag, outcome }),
                None => side.violations += 1,
            }
        }
        None
    }

    fn detach_tag_cmd(&self, _: &mut MockDrain, tag: Tag<Completed>) -> Tag<Detached> {
        tag.detach()
    }

    fn release_tags(&self, side: &mut MockDrain, tags: &mut TagBatch<Detached>) -> usize {
        self.tags.release(tags);
        self.device.state().releases += 1;
        usize::from(core::mem::take(&mut side.fetched) != 0)
    }

    fn violations(&self, side: &MockDrain) -> u32 {
        side.violations
    }

    fn reap_tag(&self, _: &mut MockDrain) -> Option<Event> {
        if self.device.state().keeps_tags {
            return None;
        }
        let tag = self.tags.complete(self.tags.first_issued()?)?;
        Some(Event {
            tag,
            outcome: Err(CmdError::Aborted.retryable()),
        })
    }

    fn rewind(&self, issue: &mut MockIssue, drain: &mut MockDrain) {
        self.tags.rewind();
        *issue = MockIssue::default();
        *drain = MockDrain::default();
        let mut state = self.device.state();
        state.issued.clear();
        state.posted.clear();
    }
}
