// SPDX-License-Identifier: GPL-2.0
//! A strategy that answers with dice: whatever it says, every request ends once, none waits for
//! somebody who does not come, and nothing is deferred for ever.
#![cfg(not(loom))]
#![allow(
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

#[path = "../../engine/tests/common/mod.rs"]
mod common;

use common::{Alone, Rig, COOP};
use engine::{Context, Mode, Next, View, Waiting};
use hal::mock::MockPlatform;
use std::sync::atomic::Ordering::SeqCst;
use strategy::Random;
use testkit::Dice;

/// A thread that may do anything, and is never woken.
struct Free;

impl Waiting for Free {
    fn is_awake(&self) -> bool {
        false
    }
    fn pause(&self) -> bool {
        true
    }
    fn may_yield(&self) -> bool {
        true
    }
}

const REQUESTS: u32 = 200;

/// What the machine does by itself: the interrupt of a device that has finished something, the tick
/// that was asked for, the kick that was asked for. `false`: none of them is to come.
fn machine(rig: &Rig<Random>, dice: &mut Dice, kicks: &mut usize) -> bool {
    let complete = |_: &u64| rig.device.complete_next(Ok(())).is_some();
    let finished = (0..=dice.roll(12)).take_while(complete).count() != 0;
    if finished && !rig.queue.polling().is_on() {
        rig.queue.drain(Context::Irq);
    }
    let armed = rig.log.armed_us.swap(0, SeqCst) != 0;
    if armed {
        rig.queue.tick();
    }
    let kicked = rig.log.retries() > *kicks;
    if kicked {
        *kicks = rig.log.retries();
        rig.queue.kick();
    }
    finished || armed || kicked
}

#[test]
fn whatever_a_strategy_answers_every_request_ends_and_none_is_left() {
    for seed in 0..400 {
        let batch = [1, 2, 8][seed as usize % 3];
        let rig = Rig::with(Random::new(seed), 16, 256, batch);
        let mode = [Mode::Irq, Mode::Poll, Mode::Hybrid][seed as usize / 3 % 3];
        let mut quiesced = rig.queue.quiesce(&MockPlatform::new());
        quiesced.set_mode(mode).unwrap();
        quiesced.unquiesce();
        let mut dice = Dice(seed);
        let (mut next, mut kicks) = (0, 0);
        while next < REQUESTS {
            match dice.roll(8) {
                0..=2 => {
                    rig.submit([next]);
                    rig.queue.poll_on_submit(COOP);
                    next += 1;
                }
                3 => {
                    let to = (next + 5).min(REQUESTS);
                    rig.submit_many(next..to);
                    rig.queue.poll_on_submit(COOP);
                    next = to;
                }
                4 => {
                    if rig.queue.wait(&Free, None) == Next::Yield {
                        rig.queue.yielded(false, &Free);
                    }
                }
                5 => {
                    rig.queue.wait(&Alone, None);
                }
                _ => {
                    machine(&rig, &mut dice, &mut kicks);
                }
            }
        }
        // Nobody passes by any more: what is left comes to its end by what the machine does alone.
        let mut turns = 0;
        while machine(&rig, &mut dice, &mut kicks) {
            turns += 1;
            assert!(turns < 20_000, "seed {seed}: it never comes to rest");
        }
        rig.log.assert_each_once(REQUESTS);
        assert_eq!(
            (rig.queue.in_flight(), rig.queue.queued()),
            (0, 0),
            "{seed}"
        );
    }
}

/// A thread that must not yield does not, whoever says so.
#[test]
fn who_may_not_yield_sleeps() {
    for seed in 0..100 {
        let rig = Rig::with(Random::new(seed), 4, 4, 1);
        assert_eq!(rig.queue.wait(&Alone, None), Next::Sleep);
    }
}
