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
use engine::{Context, Drained, Mode, Next, Spun, Staged, Strategy, Switches, Turn, View, Waiting};
use hal::mock::MockPlatform;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Answers that nobody can foresee.
struct Dice(AtomicU64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed.wrapping_mul(2).wrapping_add(1)))
    }

    /// A number below `n`: xorshift64 (Marsaglia, "Xorshift RNGs", 2003).
    fn below(&self, n: u64) -> u64 {
        let mut x = self.0.load(SeqCst);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.store(x, SeqCst);
        x % n
    }

    fn flip(&self) -> bool {
        self.below(2) == 0
    }
}

impl Strategy for Dice {
    type Notes = ();
    const NAMES: &'static [&'static str] = &["dice"];

    fn defers(&self, _: &impl View, _: Staged) -> u64 {
        match self.below(8) {
            0 => 0,
            n => u64::MAX >> (8 * n),
        }
    }
    fn notes_owner(&self, _: &impl View, _: Switches) -> bool {
        self.flip()
    }
    fn looks(&self, _: &impl View, _: Switches) -> bool {
        self.flip()
    }
    fn budget(&self, _: &impl View) -> usize {
        // None is no answer that could hold up anybody.
        self.below(5) as usize
    }
    fn leaves_rest(&self, _: &impl View) -> bool {
        self.flip()
    }
    fn begin(&self, (): &mut (), _: &impl View) {}
    fn polls(&self, (): &mut (), _: &impl View, _: Drained) -> bool {
        self.flip()
    }
    fn yields_first(&self, _: &impl View) -> bool {
        self.flip()
    }
    fn yields(&self, _: &impl View) -> bool {
        self.flip()
    }
    fn spins(&self, _: &impl View) -> Option<u64> {
        match self.below(3) {
            0 => None,
            1 => Some(0),
            _ => Some(u64::MAX),
        }
    }
    fn spun(&self, _: &impl View, _: Spun, _: u64) {}
    fn slept(&self, _: &impl View, _: u64) {}
    fn yielded(&self, _: &impl View, _: Turn) {}
}

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
fn machine(rig: &Rig<Dice>, dice: &Dice, kicks: &mut usize) -> bool {
    let complete = |_: &u64| rig.device.complete_next(Ok(())).is_some();
    let finished = (0..=dice.below(12)).take_while(complete).count() != 0;
    if finished && !rig.queue.is_polled() {
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
        let rig = Rig::with(Dice::new(seed), 16, 256, batch);
        let mode = [Mode::Irq, Mode::Poll, Mode::Hybrid][seed as usize / 3 % 3];
        let mut paused = rig.queue.pause(&MockPlatform::new());
        paused.set_mode(mode).unwrap();
        paused.resume();
        let dice = Dice::new(seed ^ 0xd1ce);
        let (mut next, mut kicks) = (0, 0);
        while next < REQUESTS {
            match dice.below(8) {
                0..=2 => {
                    rig.submit([next]);
                    rig.queue.pass_by(COOP);
                    next += 1;
                }
                3 => {
                    let to = (next + 5).min(REQUESTS);
                    rig.submit_many(next..to);
                    rig.queue.pass_by(COOP);
                    next = to;
                }
                4 => {
                    if rig.queue.wait(&Free, None) == Next::Yield {
                        rig.queue.yielded(Turn::Vain, &Free);
                    }
                }
                5 => {
                    rig.queue.wait(&Alone, None);
                }
                _ => {
                    machine(&rig, &dice, &mut kicks);
                }
            }
        }
        // Nobody passes by any more: what is left comes to its end by what the machine does alone.
        let mut turns = 0;
        while machine(&rig, &dice, &mut kicks) {
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
        let rig = Rig::with(Dice::new(seed), 4, 4, 1);
        assert_eq!(rig.queue.wait(&Alone, None), Next::Sleep);
    }
}
