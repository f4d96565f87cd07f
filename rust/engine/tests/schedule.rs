// SPDX-License-Identifier: GPL-2.0
//! Any schedule of everything that can happen to a queue: every request ends exactly once, in order
//! as far as order is due.
#![cfg(not(loom))]

mod common;

use common::Rig;
use engine::Context;
use hal::CmdError;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    /// Submits one request; whether it is the last of its batch.
    Submit(bool),
    SubmitMany(usize),
    Commit,
    /// The device finishes the n-th of what it has.
    Complete(usize, bool),
    /// The device says something about a tag, true or not.
    Lie(u16),
    Interrupt,
    Kick,
    /// The next bind answers this.
    Bind(CmdError),
    Reset,
    /// Submits and completes while the gate is closed.
    PauseAround(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<bool>().prop_map(Step::Submit),
        2 => (0usize..20).prop_map(Step::SubmitMany),
        1 => Just(Step::Commit),
        6 => (0usize..8, any::<bool>()).prop_map(|(at, well)| Step::Complete(at, well)),
        1 => (0u16..80).prop_map(Step::Lie),
        4 => Just(Step::Interrupt),
        1 => Just(Step::Kick),
        1 => prop_oneof![Just(CmdError::NotReady), Just(CmdError::Invalid)].prop_map(Step::Bind),
        1 => Just(Step::Reset),
        1 => (0usize..10).prop_map(Step::PauseAround),
    ]
}

struct Run {
    rig: Rig,
    depth: u32,
    next: u32,
}

impl Run {
    /// The ids of up to `n` new requests, as many as the depth has room for.
    fn new_ids(&mut self, n: usize) -> std::ops::Range<u32> {
        let outstanding = self.next - self.rig.log.ended().len() as u32;
        let first = self.next;
        self.next += (n as u32).min(self.depth - outstanding);
        first..self.next
    }

    fn take(&mut self, step: Step) {
        let rig = &self.rig;
        match step {
            Step::Submit(last) => {
                for id in self.new_ids(1) {
                    self.rig.queue.submit(self.rig.rq(id), last);
                }
            }
            Step::SubmitMany(n) => {
                let ids = self.new_ids(n);
                self.rig.submit_many(ids);
            }
            Step::Commit => rig.queue.commit(),
            Step::Complete(at, well) => {
                if let Some(issued) = rig.device.take_at(at) {
                    let outcome = if well { Ok(()) } else { Err(CmdError::Medium) };
                    rig.device.post(issued.number, outcome);
                }
            }
            Step::Lie(number) => rig.device.post(number, Err(CmdError::Io)),
            Step::Interrupt => {
                rig.queue.drain(Context::Irq);
            }
            Step::Kick => rig.queue.kick(),
            Step::Bind(why) => rig.device.answer_binds([Some(why)]),
            Step::Reset => {
                let mut quiesced = rig.queue.quiesce(&rig.platform);
                quiesced.reap(CmdError::Timeout.retryable());
                quiesced.rewind();
                quiesced.unquiesce();
            }
            Step::PauseAround(n) => {
                let ids = self.new_ids(n);
                let quiesced = self.rig.queue.quiesce(&self.rig.platform);
                self.rig.submit(ids);
                self.rig.device.complete_next(Ok(()));
                self.rig.queue.drain(Context::Irq);
                quiesced.unquiesce();
            }
        }
    }

    /// Lets everything come to its end, with no help but what the contract promises: a kick for a
    /// wish, a commit for what was staged, an interrupt for completions.
    fn settle(&mut self) {
        let rig = &self.rig;
        rig.device.bind_well();
        rig.queue.kick();
        rig.queue.commit();
        for _ in 0..=self.next {
            rig.device.complete_all(Ok(()));
            rig.queue.drain(Context::Irq);
        }
    }
}

proptest! {
    #[test]
    fn every_request_ends_once(
        tags in 1u16..70,
        depth in 1u32..100,
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut run = Run { rig: Rig::new(tags, depth as usize), depth, next: 0 };
        for step in steps {
            run.take(step);
        }
        run.settle();
        run.rig.log.assert_each_once(run.next);
        prop_assert_eq!((run.rig.queue.in_flight(), run.rig.queue.queued()), (0, 0));
        // All tags are free again: as many as there are can be issued.
        run.rig.submit_many(run.next..run.next + depth);
        prop_assert_eq!(run.rig.queue.in_flight(), usize::from(tags).min(depth as usize));
    }

    #[test]
    fn an_honest_device_that_keeps_order_gives_order(
        tags in 1u16..70,
        depth in 1u32..100,
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut run = Run { rig: Rig::new(tags, depth as usize), depth, next: 0 };
        for step in steps {
            match step {
                // Only what neither disturbs the order of ends, nor puts an end out of turn.
                Step::Complete(_, well) => run.take(Step::Complete(0, well)),
                Step::Lie(_) | Step::Reset | Step::Bind(CmdError::Invalid) => {}
                step => run.take(step),
            }
        }
        run.settle();
        prop_assert!(run.rig.log.ended_ids().into_iter().eq(0..run.next));
        prop_assert_eq!(run.rig.queue.violations(), 0);
    }
}
