// SPDX-License-Identifier: GPL-2.0
//! A driver under a device that does what an input says: what has to hold whatever that is.
//!
//! Above the driver is what the layer above it does in the kernel: submitting, draining, attending,
//! aborting what has timed out, resetting, removing. Every input ends, and at its end every request
//! has. The data of a request tells whether it was right to succeed.

use crate::host::{Host, Io};
use crate::input::Input;
use crate::job::{command, Job};
use crate::line::Line;
use crate::model::{Device, Model};
use engine::Context;
use hal::mock::MockPlatform;
use hal::{
    CmdError, Command, Controller, Error, EventAction, Failure, Limits, Op, Platform, Queues, Unit,
};
use std::sync::Arc;

/// Most requests of an input.
const REQUESTS: usize = 600;
/// Most register accesses of a call of the data path, and of one of the control path.
const ACCESSES: (u64, u64) = (4_096, 1_000_000);
/// Longest call of the control path: twice the longest time that the specifications allow for one
/// step of it.
const CALL_US: u64 = 600_000_000;

/// After so long a command has timed out, as `nvme_timeout_ms` and libata's are.
const LATE_MS: u64 = 30_000;
/// How long a completion may take of what was given up.
const GRACE_US: u64 = 1_000_000;
/// How often what asks to be attended again is.
const ROUNDS: usize = 8;

/// A device with its driver, and what else an input can have it do.
pub trait Target {
    /// The driver.
    type Controller: Controller;
    /// What is behind the registers.
    type Device: Device;

    /// The machine that it is part of.
    fn machine(&self) -> &MockPlatform;
    /// The device.
    fn model(&self) -> &Model<Self::Device>;
    /// Its driver, which was started.
    fn controller(&self) -> &Self::Controller;
    /// Its registers that can be lied about.
    fn registers(&self) -> &'static [usize];
    /// [`Controller::handle_events`], or what stands for it.
    fn handle_events(&self, queues: Queues) -> Result<EventAction, Error>;
    /// Raises an interrupt of every vector; whether one was [`Cause::AsyncEvent`](hal::Cause).
    fn interrupt(&self) -> bool;
    /// Bus mastering is turned off, and on again: what it was doing it has forgotten.
    fn cut_off(&self);
    /// Something of its own, as the input says, and what is to be done about it:
    /// [`EventAction::Rescan`] or nothing. An error: it has to be reset.
    fn act(&self, input: &Input) -> Result<EventAction, Error>;
    /// It is well from now on, as far as it can be.
    fn recover(&self);
}

/// A driver under fuzzing.
pub struct Fuzz<'a, F: Target> {
    target: &'a F,
    input: &'a Input,
    host: Arc<Host>,
    queues: Vec<Io<<F::Controller as Controller>::Queue>>,
    /// The disk that is used, as it was found last.
    unit: Option<Unit>,
    /// By request: how often it has ended.
    ended: Vec<usize>,
    /// The gate is closed for good.
    dead: bool,
}

impl<'a, F: Target> Fuzz<'a, F> {
    /// Does to `target`, whose queues these are, what `input` says; then the device is well, and
    /// then the driver goes.
    #[track_caller]
    pub fn run(
        target: &'a F,
        input: &'a Input,
        lines: impl IntoIterator<Item = Line<<F::Controller as Controller>::Queue>>,
    ) {
        let host = Host::new(target.machine());
        let mut fuzz = Self {
            target,
            input,
            queues: lines.into_iter().map(|line| host.io(line.0)).collect(),
            host,
            unit: None,
            ended: Vec::new(),
            dead: false,
        };
        fuzz.controlled(|fuzz| fuzz.look());
        while !input.is_empty() {
            fuzz.step();
            fuzz.count();
        }
        fuzz.controlled(|fuzz| fuzz.come_right());
        fuzz.count();
        fuzz.controlled(|fuzz| fuzz.go());
        fuzz.count();
        let lost: Vec<_> = (0..).zip(&fuzz.ended).filter(|(_, n)| **n != 1).collect();
        assert!(
            lost.is_empty(),
            "requests, and how often they ended: {lost:?}"
        );
    }

    /// What the next byte of the input says.
    fn step(&mut self) {
        match self.input.byte() & 0x1f {
            0..=5 => self.at_once(|fuzz| fuzz.submit()),
            6..=8 => self.at_once(|fuzz| {
                for queue in &fuzz.queues {
                    queue.drain(Context::Coop);
                }
            }),
            9 => self.at_once(|fuzz| {
                for queue in &fuzz.queues {
                    queue.drain(Context::Poll);
                }
            }),
            10 => self.at_once(|fuzz| fuzz.queues.iter().for_each(|queue| queue.commit())),
            11..=13 => self.interrupt(),
            14 => self.controlled(|fuzz| fuzz.handle_events()),
            15 => {
                let hold = self.input.coin();
                self.target.model().state().hold = hold;
            }
            16 => self.target.model().run(),
            17 => {
                let us = 1 << self.input.below(26);
                self.target.machine().advance(us);
            }
            18 => self.controlled(|fuzz| fuzz.climb()),
            19 => self.controlled(|fuzz| fuzz.reset()),
            20 => self.controlled(|fuzz| fuzz.look()),
            21 | 22 => {
                let mut state = self.target.model().state();
                state
                    .lies
                    .about_register(self.target.registers(), self.input);
            }
            23 => self.target.model().state().lies.about_pages(self.input),
            24 => self.target.model().state().lies.end(),
            25 => {
                let left = self.input.byte();
                let left = if left & 0x80 != 0 {
                    usize::MAX
                } else {
                    left.into()
                };
                self.target.machine().fail_allocations_after(left);
            }
            _ => self.controlled(|fuzz| match fuzz.target.act(fuzz.input) {
                Ok(EventAction::Rescan) => fuzz.look(),
                Ok(_) => {}
                Err(_) => fuzz.reset(),
            }),
        }
    }

    /// An interrupt, and what the device calls for by it.
    fn interrupt(&mut self) {
        let mut calls = false;
        self.at_once(|fuzz| {
            calls = fuzz.target.interrupt();
            for queue in &fuzz.queues {
                queue.drain(Context::Irq);
            }
        });
        if calls {
            self.controlled(|fuzz| fuzz.handle_events());
        }
    }

    /// A call of the data path: it does not wait, and does not go on for ever.
    #[track_caller]
    fn at_once(&mut self, call: impl FnOnce(&mut Self)) {
        let (before, at) = (self.accesses(), self.target.machine().now_us());
        call(self);
        let accesses = self.accesses() - before;
        assert!(accesses <= ACCESSES.0, "{accesses} accesses to registers");
        assert_eq!(self.target.machine().now_us(), at, "it has waited");
    }

    /// A call of the control path: its time is bounded.
    #[track_caller]
    fn controlled(&mut self, call: impl FnOnce(&mut Self)) {
        let (before, at) = (self.accesses(), self.target.machine().now_us());
        call(self);
        let accesses = self.accesses() - before;
        assert!(accesses <= ACCESSES.1, "{accesses} accesses to registers");
        let took = self.target.machine().now_us() - at;
        assert!(took <= CALL_US, "it took {took} us");
    }

    fn accesses(&self) -> u64 {
        self.target.model().state().accesses
    }

    /// One or more requests.
    fn submit(&mut self) {
        let how = self.input.byte();
        let (Some(queue), Some(unit)) = (
            self.queues.get(usize::from(how) % self.queues.len().max(1)),
            &self.unit,
        ) else {
            return;
        };
        let limits = self.target.controller().limits();
        for n in (0..1 + (how >> 5)).rev() {
            let id = self.ended.len();
            let Some(job) = next_job(self.input, unit, &limits, id) else {
                return;
            };
            if id == REQUESTS {
                return;
            }
            self.ended.push(0);
            queue.submit(job, n == 0);
        }
    }

    /// Takes note of what has ended, and that it was right to.
    #[track_caller]
    fn count(&mut self) {
        let honest = !self.target.model().state().lies.is_liar;
        for (job, outcome) in self.host.take() {
            self.ended[job.id] += 1;
            if honest && outcome == Ok(()) && job.cmd.op == Op::Read {
                check_read(&job);
            }
        }
        self.host.agains();
    }

    /// Which disk there is now.
    fn look(&mut self) {
        let mut all = Vec::new();
        let looked = self.target.controller().units(&mut |unit| all.push(unit));
        match looked {
            Ok(()) => self.unit = all.into_iter().flatten().next(),
            // They stay as they are.
            Err(Error::Timeout | Error::Fatal) => self.reset(),
            Err(_) => {}
        }
    }

    /// The device is well now: what was submitted ends.
    #[track_caller]
    fn come_right(&mut self) {
        self.target.machine().fail_allocations_after(usize::MAX);
        self.target.recover();
        self.reset();
        if self.dead {
            return;
        }
        self.look();
        for _ in 0..8 {
            self.submit();
        }
        let busy = |fuzz: &Self| {
            let mut queues = fuzz.queues.iter();
            !fuzz.dead && queues.any(|queue| queue.in_flight() + queue.queued() != 0)
        };
        for _ in 0..REQUESTS {
            if !busy(self) {
                break;
            }
            for queue in &self.queues {
                queue.commit();
                queue.drain(Context::Poll);
            }
            self.target.interrupt();
            self.handle_events();
        }
        let left: Vec<_> = (self.queues.iter())
            .map(|queue| (queue.in_flight(), queue.queued()))
            .collect();
        let ended = self.dead || left.iter().all(|left| *left == (0, 0));
        assert!(
            ended,
            "a device that is well leaves {left:?} with it, and waiting"
        );
    }

    /// The driver goes, and takes what is left with it.
    fn go(&mut self) {
        if !self.dead {
            self.restart(CmdError::Aborted.permanent(), false);
        }
        // It is refused by a gate that is closed.
        self.submit();
    }
}

impl<F: Target> Fuzz<'_, F> {
    /// Does what the device calls for.
    fn handle_events(&mut self) {
        for _ in 0..ROUNDS {
            if self.dead {
                return;
            }
            let live = self.target.handle_events(Queues::Live);
            let action = match live {
                Ok(EventAction::Quiesce) => {
                    let machine = self.target.machine();
                    let quiesced: Vec<_> = self.queues.iter().map(|q| q.quiesce(machine)).collect();
                    let action = self.target.handle_events(Queues::Quiesced);
                    quiesced
                        .into_iter()
                        .for_each(|quiesced| quiesced.unquiesce());
                    for queue in &self.queues {
                        queue.drain(Context::Coop);
                    }
                    action
                }
                other => other,
            };
            match action {
                Ok(EventAction::Rescan) => self.look(),
                Ok(EventAction::Recover) | Err(_) => return self.reset(),
                Ok(_) => return,
            }
        }
    }

    /// The ladder: what is late is looked for, given up, and if that does not help all is reset.
    fn climb(&mut self) {
        self.target.machine().advance(LATE_MS * 1_000);
        if self.dead {
            return;
        }
        for at in 0..self.queues.len() {
            let queue = &self.queues[at];
            queue.drain(Context::Coop);
            let now_ms = || self.target.machine().now_us() / 1_000;
            while let Some(late) = queue.overdue(now_ms(), LATE_MS) {
                let controller = self.target.controller();
                let aborted = F::Controller::ABORTS
                    && controller.alive().is_ok()
                    && controller
                        .abort(queue.hardware(), late.tag, LATE_MS * 1_000)
                        .is_ok();
                if aborted {
                    self.target.machine().sleep_us(GRACE_US);
                    queue.drain(Context::Coop);
                }
                if !aborted || queue.overdue(late.issued_at, 0) == Some(late) {
                    return self.reset();
                }
            }
        }
    }

    /// What the layer above does about a controller that it does not trust any more.
    fn reset(&mut self) {
        if self.dead {
            return;
        }
        self.restart(CmdError::Timeout.retryable(), true);
    }

    /// Lays the queues to rest, stops the controller, ends what it had; then brings it back, if it
    /// is `wanted`, or closes the gate for good.
    fn restart(&mut self, why: Failure, wanted: bool) {
        let (machine, controller) = (self.target.machine(), self.target.controller());
        let mut quiesced: Vec<_> = self.queues.iter().map(|q| q.quiesce(machine)).collect();
        if controller.stop().is_err() {
            self.target.cut_off();
        }
        for queue in &mut quiesced {
            queue.reap(why);
            queue.rewind();
        }
        let started = wanted && controller.start().is_ok();
        if wanted && !started && controller.stop().is_err() {
            self.target.cut_off();
        }
        self.dead = !started;
        for queue in quiesced {
            match started {
                true => queue.unquiesce(),
                false => queue.kill(),
            }
        }
    }
}

/// Most bytes of a request.
const BYTES: u64 = 32 << 10;
/// What a request's data is before it is read.
const UNREAD: u8 = 0xee;

/// The next request of `input`, with the name `id`, that `unit` and `limits` allow; `None`: that is
/// none.
fn next_job(input: &Input, unit: &Unit, limits: &Limits, id: usize) -> Option<Box<Job>> {
    let what = input.byte();
    let cmd = next_command(input, what, unit, limits)?;
    let data = match cmd.op {
        Op::Write => content(&cmd),
        Op::Read => vec![UNREAD; (cmd.blocks as usize) << cmd.block_shift],
        _ => Vec::new(),
    };
    let piece = if what & 0x10 == 0 { 0 } else { 4096 };
    Some(Job::shaped(id, cmd, data, (0, piece)))
}

fn next_command(input: &Input, what: u8, unit: &Unit, limits: &Limits) -> Option<Command> {
    let shift = unit.block_shift;
    let most = u64::from(limits.max_transfer).min(BYTES);
    let most = most.checked_shr(shift.into()).unwrap_or(0);
    let discards = unit.discard.map_or(0, |may| may.max_blocks);
    let (op, most) = match what & 7 {
        0 => return Some(command(unit.id, Op::Flush, 0, 0)),
        1 => (Op::Discard, u64::from(discards)),
        2 => (Op::WriteZeroes, u64::from(unit.max_write_zeroes)),
        3..=4 => (Op::Write, most),
        _ => (Op::Read, most),
    };
    let lba = input.below(unit.blocks);
    let left = unit.blocks.saturating_sub(lba);
    let most = most.min(left).min(1 << (what >> 5));
    // Too large a block, or nothing that it does.
    (most != 0).then(|| Command {
        block_shift: shift,
        fua: what & 8 != 0 && unit.fua && op == Op::Write,
        ..command(unit.id, op, lba, most as u32)
    })
}

/// What a block of a disk says, if it was written here: where it is.
fn block(lba: u64, bytes: usize) -> Vec<u8> {
    let word = lba.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    word.to_le_bytes().repeat(bytes / 8)
}

fn content(cmd: &Command) -> Vec<u8> {
    let blocks = (cmd.lba..).take(cmd.blocks as usize);
    let blocks = blocks.map(|lba| block(lba, 1 << cmd.block_shift));
    blocks.collect::<Vec<_>>().concat()
}

/// A block that was read is what was written to it, or nothing was, or it was discarded.
#[track_caller]
fn check_read(job: &Job) {
    let size = 1 << job.cmd.block_shift;
    for (lba, found) in (job.cmd.lba..).zip(job.data.chunks(size)) {
        let rights = [block(lba, size), vec![0; size], vec![0xdd; size]];
        let right = rights.iter().any(|right| right == found);
        assert!(right, "block {lba} of {:?} is {:x?}", job.cmd, &found[..16]);
    }
}
