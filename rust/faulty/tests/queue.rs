// SPDX-License-Identifier: GPL-2.0
//! What becomes of a device's completions on their way up.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "it fails the test")]

use faulty::{Alarm, Drain, Faults, Queue};
use hal::mock::{MockDevice, MockDrain, MockIssue, MockPlatform, MockQueue};
use hal::{
    CmdError, Command, Event, NewQueue, Op, Outcome, Platform, Queue as _, RetryHint, TagBatch,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// For when the drain was asked last, by the clock of the machine that the test moves.
#[derive(Clone)]
struct Hand {
    platform: MockPlatform,
    asked: Arc<AtomicU64>,
}

impl Alarm for Hand {
    fn wake_in(&self, us: u64) {
        let at = self.platform.now_us() + us;
        self.asked.store(at, Ordering::Relaxed);
    }
}

struct Rig {
    faults: Arc<Faults>,
    hand: Hand,
    device: Arc<MockDevice>,
    queue: Queue<MockQueue<MockPlatform>, MockPlatform, Arc<Faults>, Hand>,
    issue: MockIssue,
    drain: Drain<MockDrain>,
}

impl Rig {
    fn new() -> Self {
        let platform = MockPlatform::new();
        let (new, device) = MockQueue::new(&platform, 64).unwrap();
        let faults = Arc::new(Faults::default());
        let hand = Hand {
            platform: platform.clone(),
            asked: Arc::default(),
        };
        let NewQueue {
            queue,
            issue,
            drain,
        } = Queue::around(new, platform, faults.clone(), hand.clone()).unwrap();
        Self {
            faults,
            hand,
            device,
            queue,
            issue,
            drain,
        }
    }

    /// Has the device carry out `count` commands, all of them well.
    fn carry_out(&mut self, count: usize) {
        let mut free = self.queue.get_free_tags(&mut self.issue, count);
        assert_eq!(free.len(), count);
        let command = Command {
            op: Op::Flush,
            unit: 1,
            lba: 0,
            blocks: 0,
            block_shift: 9,
            fua: false,
            unmap: false,
        };
        let mut bound = TagBatch::default();
        let mut tags: Vec<_> = std::iter::from_fn(|| free.pop()).collect();
        // Lowest first.
        tags.reverse();
        for tag in tags {
            let tag = (self.queue)
                .bind_tag_cmd(&mut self.issue, tag, &command, std::iter::empty())
                .unwrap();
            bound.push(tag).unwrap();
        }
        self.queue.issue_tags(&mut self.issue, &mut bound);
        assert_eq!(self.device.complete_all(Ok(())), count);
    }

    /// What a drain finds.
    fn fetch(&mut self) -> Vec<(u16, Outcome)> {
        let mut found = Vec::new();
        let mut tags = TagBatch::default();
        while let Some(Event { tag, outcome }) = self.queue.fetch_event(&mut self.drain) {
            found.push((tag.number(), outcome));
            let tag = self.queue.detach_tag_cmd(&mut self.drain, tag);
            tags.push(tag).unwrap();
        }
        self.queue.release_tags(&mut self.drain, &mut tags);
        found
    }

    fn check(&mut self) -> bool {
        self.queue.check_event(&mut self.drain)
    }

    fn pass(&self, us: u64) {
        self.hand.platform.advance(us);
    }
}

#[test]
fn without_a_fault_all_goes_through() {
    let mut rig = Rig::new();
    rig.carry_out(3);
    assert!(rig.check());
    assert_eq!(rig.fetch(), [(0, Ok(())), (1, Ok(())), (2, Ok(()))]);
    assert!(!rig.check());
    assert_eq!(rig.queue.violations(&rig.drain), 0);
    assert_eq!(rig.hand.asked.load(Ordering::Relaxed), 0);
    assert_eq!((rig.queue.capacity(), rig.queue.batch()), (64, 1));
}

#[test]
fn what_is_lost_is_found_by_a_reset_alone() {
    let mut rig = Rig::new();
    rig.faults.drop.set("2").unwrap();
    rig.carry_out(3);
    assert_eq!(rig.fetch(), [(2, Ok(()))]);
    assert_eq!(rig.faults.drop.get(), 0);
    rig.pass(u64::MAX / 2);
    assert!(!rig.check() && rig.fetch().is_empty());
    // Its slot is nobody else's.
    rig.carry_out(62);
    assert_eq!(rig.fetch().len(), 62);
    let mut reaped = Vec::new();
    while let Some(event) = rig.queue.reap_tag(&mut rig.drain) {
        reaped.push((event.tag.number(), event.outcome));
    }
    let again = Err(CmdError::Aborted.retryable());
    assert_eq!(reaped, [(0, again), (1, again)]);
}

#[test]
fn what_is_late_comes_when_it_is_due_and_is_asked_for() {
    let mut rig = Rig::new();
    rig.faults.delay_us.set("100").unwrap();
    rig.carry_out(1);
    assert!(rig.fetch().is_empty());
    assert_eq!(rig.hand.asked.load(Ordering::Relaxed), 100);
    rig.pass(40);
    rig.carry_out(1);
    assert!(rig.fetch().is_empty());
    assert_eq!(rig.hand.asked.load(Ordering::Relaxed), 100, "the first");
    rig.pass(59);
    assert!(!rig.check());
    rig.pass(1);
    assert!(rig.check());
    assert_eq!(rig.fetch(), [(0, Ok(()))]);
    assert_eq!(rig.hand.asked.load(Ordering::Relaxed), 140, "the second");
    rig.pass(40);
    assert_eq!(rig.fetch(), [(1, Ok(()))]);
    // One that was asked for and not answered is asked for again.
    rig.carry_out(1);
    assert!(rig.fetch().is_empty());
    rig.pass(99);
    assert!(rig.fetch().is_empty());
    rig.faults.delay_us.set("0").unwrap();
    rig.pass(1);
    assert_eq!(rig.fetch().len(), 1);
}

#[test]
fn what_is_delayed_when_the_device_is_reset_has_ended() {
    let mut rig = Rig::new();
    rig.faults.delay_us.set("100").unwrap();
    rig.carry_out(2);
    assert!(rig.fetch().is_empty());
    assert!(rig.queue.reap_tag(&mut rig.drain).is_some());
    assert!(rig.queue.reap_tag(&mut rig.drain).is_some());
    assert!(rig.queue.reap_tag(&mut rig.drain).is_none());
    rig.queue.rewind(&mut rig.issue, &mut rig.drain);
    rig.pass(1000);
    assert!(!rig.check() && rig.fetch().is_empty());
}

#[test]
fn no_more_is_delayed_than_there_is_room_for() {
    let mut rig = Rig::new();
    rig.faults.drop.set("60").unwrap();
    rig.carry_out(60);
    assert_eq!(rig.fetch().len(), 28);
    assert_eq!(rig.faults.drop.get(), 0);
}

#[test]
fn the_nth_fails_as_it_is_told() {
    let kinds = [
        ("medium", CmdError::Medium, RetryHint::Never),
        ("link", CmdError::Path, RetryHint::Now),
        ("aborted", CmdError::Aborted, RetryHint::Now),
        ("busy", CmdError::NotReady, RetryHint::After(1)),
    ];
    let mut rig = Rig::new();
    for (name, error, again) in kinds {
        rig.faults.fail_as.set(name).unwrap();
        rig.faults.fail_nth.set("2").unwrap();
        rig.carry_out(4);
        let failed: Vec<_> = rig.fetch().into_iter().map(|(_, is)| is.err()).collect();
        let failure = hal::Failure {
            error,
            retry: again,
        };
        assert_eq!(failed, [None, Some(failure), None, None], "{name}");
    }
}

#[test]
fn what_comes_twice_is_counted_and_ends_nothing() {
    let mut rig = Rig::new();
    rig.faults.duplicate.set("2").unwrap();
    rig.carry_out(3);
    assert_eq!(rig.fetch().len(), 3);
    assert_eq!(rig.queue.violations(&rig.drain), 2);
    rig.queue.rewind(&mut rig.issue, &mut rig.drain);
    assert_eq!(rig.queue.violations(&rig.drain), 0);
}
