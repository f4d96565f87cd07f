// SPDX-License-Identifier: GPL-2.0
//! One queue of a driver, verb by verb.

use crate::job::{command, kind, pattern, Ended};
use hal::mock::MockPlatform;
use hal::{
    Bound, CmdError, Command, Controller, Detached, Event, Failure, Free, NewQueue, Op, Outcome,
    Queue, Segment, Tag, TagBatch,
};

/// One queue, used from one thread.
pub struct Line<Q: Queue>(pub NewQueue<Q>);

impl<Q: Queue> Line<Q> {
    /// Queue `index` of `controller`, made now.
    #[track_caller]
    pub fn of(controller: &impl Controller<Queue = Q>, index: u16, vector: u16) -> Self {
        Self(controller.create_queue(index, Some(vector)).unwrap())
    }

    /// A free slot.
    pub fn free_tag(&mut self) -> Option<Tag<Free>> {
        self.0.queue.get_free_tags(&mut self.0.issue, 1).pop()
    }

    /// Binds a free slot, and gives it back if that is refused.
    #[track_caller]
    pub fn bind(&mut self, cmd: &Command, data: &[Segment]) -> Result<Tag<Bound>, CmdError> {
        self.bind_each(cmd, data.iter().copied().map(Ok))
    }

    /// The same, with segments whose mapping may fail.
    #[track_caller]
    pub fn bind_each(
        &mut self,
        cmd: &Command,
        data: impl Iterator<Item = Result<Segment, CmdError>>,
    ) -> Result<Tag<Bound>, CmdError> {
        let tag = self.free_tag().expect("a free tag");
        let bound = self.0.queue.bind_tag_cmd(&mut self.0.issue, tag, cmd, data);
        bound.map_err(|back| {
            let mut tags = TagBatch::default();
            tags.push(back.tag).unwrap();
            self.0.queue.unget_tags(&mut self.0.issue, &mut tags);
            back.why
        })
    }

    /// Tells the device. Returns how many register writes it took.
    pub fn issue(&mut self, bound: impl IntoIterator<Item = Tag<Bound>>) -> usize {
        let mut tags = TagBatch::default();
        for tag in bound {
            tags.push(tag).unwrap();
        }
        let written = self.0.queue.issue_tags(&mut self.0.issue, &mut tags);
        assert!(tags.is_empty());
        written
    }

    /// Binds and issues one command. Returns its tag's number.
    #[track_caller]
    pub fn start(&mut self, cmd: &Command, data: &[Segment]) -> Result<u16, CmdError> {
        let bound = self.bind(cmd, data)?;
        let number = bound.number();
        self.issue([bound]);
        Ok(number)
    }

    /// Whether a completion may be there.
    pub fn check(&mut self) -> bool {
        self.0.queue.check_event(&mut self.0.drain)
    }

    /// All completions that are there: drains until one finds nothing.
    pub fn drain(&mut self) -> Vec<(u16, Ended)> {
        let mut all = Vec::new();
        loop {
            let now = self.drain_once();
            if now.is_empty() {
                return all;
            }
            all.extend(now);
        }
    }

    /// What one drain finds: as much as a batch holds.
    pub fn drain_once(&mut self) -> Vec<(u16, Ended)> {
        let events = self.take(|new| new.queue.fetch_event(&mut new.drain));
        let kinds = events
            .into_iter()
            .map(|(tag, outcome)| (tag, kind(outcome)));
        kinds.collect()
    }

    /// Takes back what the device still has.
    pub fn reap(&mut self) -> Vec<(u16, Failure)> {
        let mut all = Vec::new();
        loop {
            let now = self.take(|new| new.queue.reap_tag(&mut new.drain));
            if now.is_empty() {
                return all;
            }
            all.extend(
                now.into_iter()
                    .map(|(tag, outcome)| (tag, outcome.unwrap_err())),
            );
        }
    }

    fn take(
        &mut self,
        mut next: impl FnMut(&mut NewQueue<Q>) -> Option<Event>,
    ) -> Vec<(u16, Outcome)> {
        let mut all = Vec::new();
        let mut tags: TagBatch<Detached> = TagBatch::default();
        while !tags.is_full() {
            let Some(event) = next(&mut self.0) else {
                break;
            };
            all.push((event.tag.number(), event.outcome));
            let tag = self.0.queue.detach_tag_cmd(&mut self.0.drain, event.tag);
            tags.push(tag).unwrap();
        }
        self.0.queue.release_tags(&mut self.0.drain, &mut tags);
        all
    }

    /// One command from start to end.
    #[track_caller]
    pub fn run(&mut self, cmd: &Command, data: &[Segment]) -> Ended {
        let number = self.start(cmd, data)?;
        match self.drain().as_slice() {
            [(tag, outcome)] if *tag == number => *outcome,
            other => panic!("instead of tag {number}: {other:?}"),
        }
    }

    /// How one command fails that is expected to.
    #[track_caller]
    pub fn failure(&mut self, cmd: &Command, data: &[Segment]) -> Failure {
        let number = self.start(cmd, data).unwrap();
        let events = self.take(|new| new.queue.fetch_event(&mut new.drain));
        match events.as_slice() {
            [(tag, Err(failure))] if *tag == number => *failure,
            other => panic!("instead of a failure of tag {number}: {other:?}"),
        }
    }

    /// Writes and reads back data of these lengths, that begin so far in a page and come in such
    /// pieces (0: one).
    #[track_caller]
    pub fn moves_data(
        &mut self,
        machine: &MockPlatform,
        unit: u32,
        cases: &[(usize, usize, usize)],
    ) {
        for (n, &(bytes, offset, piece)) in cases.iter().enumerate() {
            let (lba, blocks) = (n as u64 * 7, (bytes / 512) as u32);
            let data = pattern(bytes, n as u8);
            let from = machine.map(&data, offset, piece);
            let written = self.run(&command(unit, Op::Write, lba, blocks), &from.segments());
            assert_eq!((written, from.unmap()), (Ok(()), data.clone()), "case {n}");
            let to = machine.map(&vec![0; bytes], offset, piece);
            let read = self.run(&command(unit, Op::Read, lba, blocks), &to.segments());
            assert_eq!(read, Ok(()), "case {n}");
            assert_eq!(to.unmap(), data, "case {n}");
        }
        assert_eq!(self.violations(), 0);
    }

    /// Completions that answered nothing.
    pub fn violations(&self) -> u32 {
        self.0.queue.violations(&self.0.drain)
    }

    /// Both sides as new, of a device that was stopped and reaped.
    pub fn rewind(&mut self) {
        self.0.queue.rewind(&mut self.0.issue, &mut self.0.drain);
    }
}
