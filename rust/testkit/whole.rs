// SPDX-License-Identifier: GPL-2.0
//! A driver with its model below and the engine above: what has to hold whatever the device is.

use crate::host::{Host, Io};
use crate::job::{command, Job};
use crate::line::Line;
use crate::mix::Dice;
use crate::model::{Device, Model};
use crate::together::together;
use engine::Context;
use hal::mock::MockPlatform;
use hal::{CmdError, Controller, Op, RetryHint};
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// Blocks of each thread in [`Whole::threads`].
const PART: u64 = 64;

/// A controller and some of its queues, with a disk of 512-byte blocks.
pub struct Whole<'a, C: Controller, D: Device> {
    machine: &'a MockPlatform,
    model: &'a Model<D>,
    controller: &'a C,
    unit: u32,
    /// What ended.
    pub host: Arc<Host>,
    /// The queues.
    pub queues: Vec<Io<C::Queue>>,
}

impl<'a, C: Controller, D: Device> Whole<'a, C, D> {
    /// The device `model` with its driver, which was started and made the queues, and disk `unit`.
    pub fn new(
        machine: &'a MockPlatform,
        model: &'a Model<D>,
        controller: &'a C,
        unit: u32,
        queues: impl IntoIterator<Item = Line<C::Queue>>,
    ) -> Self {
        let host = Host::new(machine);
        Self {
            machine,
            model,
            controller,
            unit,
            queues: queues.into_iter().map(|line| host.io(line.0)).collect(),
            host,
        }
    }

    fn read(&self, id: usize) -> Box<Job> {
        Job::new(id, command(self.unit, Op::Read, id as u64, 1), vec![0; 512])
    }

    /// Of 20 reads `tags` are with the device when it is reset: those time out, and may be tried
    /// again; the others find it well again.
    #[track_caller]
    pub fn survives_resets(&self, tags: usize) {
        let queue = &self.queues[0];
        for reset in 0..5 {
            self.model.state().hold = true;
            for id in 0..20 {
                queue.submit(self.read(id), true);
            }
            assert_eq!((queue.in_flight(), queue.queued()), (tags, 20 - tags));
            let mut quiesced = queue.quiesce(self.machine);
            self.controller.stop().unwrap();
            quiesced.reap(CmdError::Timeout.retryable());
            quiesced.rewind();
            self.model.state().hold = false;
            self.controller.start().unwrap();
            quiesced.unquiesce();
            while queue.drain(Context::Irq) != 0 {}
            let ended = self.host.outcomes();
            assert_eq!(ended.len(), 20, "reset {reset}");
            // Tags are given out in the order of the requests.
            for (id, outcome) in ended {
                let expected = match id < tags {
                    true => Err(CmdError::Timeout),
                    false => Ok(()),
                };
                assert_eq!(outcome, expected, "{id} of reset {reset}");
            }
            // The first was told; those that were held back behind it may not have been.
            let agains = self.host.agains();
            assert_eq!((agains.len(), agains[0].1), (tags, RetryHint::Now));
            assert!(agains.iter().all(|(_, again)| *again != RetryHint::Never));
        }
        self.model.check();
    }

    /// A device that vanishes while some are with it and some are not: all fail, and so do those
    /// that come later.
    #[track_caller]
    pub fn fails_all_when_gone(&self) {
        let queue = &self.queues[0];
        self.model.state().hold = true;
        for id in 0..10 {
            queue.submit(self.read(id), true);
        }
        self.model.vanish();
        let mut quiesced = queue.quiesce(self.machine);
        assert!(self.controller.stop().is_err());
        quiesced.reap(CmdError::Gone.permanent());
        quiesced.rewind();
        assert!(self.controller.start().is_err());
        quiesced.kill();
        queue.submit(self.read(10), true);
        let gone: Vec<_> = (0..11).map(|id| (id, Err(CmdError::Gone))).collect();
        assert_eq!(self.host.outcomes(), gone);
        let never: Vec<_> = (0..11).map(|id| (id, RetryHint::Never)).collect();
        assert_eq!(self.host.agains(), never);
    }

    /// Four threads that submit, on all queues in turn, one that drains as `drain` says, and a
    /// device that only registers wake. `coop`: who submits drains as well.
    #[track_caller]
    pub fn threads(&self, rounds: usize, coop: bool, drain: impl Fn() -> usize + Sync) {
        self.model.state().detached = true;
        together(|threads| {
            threads.keep(|| self.model.serve());
            threads.keep(|| drain() != 0);
            let workers: Vec<_> = (0..4)
                .map(|thread| threads.spawn(move || self.submit_all(thread, rounds, coop)))
                .collect();
            let jobs: usize = workers
                .into_iter()
                .map(|worker| worker.join().unwrap())
                .sum();
            // What was submitted ends; else a completion was overlooked, or telling the device of
            // a command.
            threads.wait_for(jobs, || self.host.count.load(Ordering::Acquire));
        });
        for (job, outcome) in self.host.take() {
            assert_eq!(outcome, Ok(()));
            // A block is written and read by the same thread only; a flush has no data.
            let thread = (job.cmd.lba / PART) as u8;
            let right = job.data.iter().all(|byte| *byte == thread);
            assert!(right, "{:?}", job.cmd);
        }
        self.model.check();
    }

    /// What one thread submits: blocks of its own, written and read, and flushes. Returns how much
    /// that was.
    fn submit_all(&self, thread: u64, rounds: usize, coop: bool) -> usize {
        let queue = &self.queues[thread as usize % self.queues.len()];
        let mut dice = Dice(thread);
        let mut jobs = 0;
        let mut submit = |op, lba, blocks, byte: u8| {
            let cmd = command(self.unit, op, lba, blocks);
            queue.submit(Job::new(jobs, cmd, vec![byte; blocks as usize * 512]), true);
            jobs += 1;
        };
        for round in 0..rounds {
            let block = thread * PART + dice.roll(PART);
            submit(Op::Write, block, 1, thread as u8);
            submit(Op::Read, block, 1, !thread as u8);
            if round % 8 == 7 {
                submit(Op::Flush, 0, 0, 0);
            }
            if coop {
                queue.drain(Context::Coop);
            }
        }
        jobs
    }
}
