// SPDX-License-Identifier: GPL-2.0
//! What no answer changes (docs/architecture.md), by a clock: how long a finished command
//! lies unnoticed, how long a doorbell is deferred, how long a request waits beside a free tag.
//! With dice, with `coop` and with `plain`, in each mode, beside neighbours that compute.
//!
//! `cargo test -p strategy --test unnoticed -- --nocapture` prints the longest of each.
#![cfg(not(any(loom, miri)))]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test states what it expects by failing loudly"
)]

mod machine;

use engine::{Mode, Strategy, DEFAULT_POLL_INTERVAL_US};
use hal::mock::MockPlatform;
use machine::{play, Load, Played, SWITCH_NS};
use strategy::{Coop, Plain, Random};
use testkit::Dice;

const INTERVAL_NS: u64 = DEFAULT_POLL_INTERVAL_US as u64 * 1000;
const RUNS: u64 = 16;

/// A load that nobody has thought of.
fn load(seed: u64, mode: Mode, neighbours: usize) -> Load {
    let mut dice = Dice(seed);
    dice.roll(1);
    let tags = [1, 8, 32, 64][dice.roll(4) as usize];
    Load {
        seed,
        mode,
        neighbours,
        readers: [1, 3, 16, 64][dice.roll(4) as usize],
        tags,
        batch: [1, usize::from(tags).div_ceil(4)][dice.roll(2) as usize],
        latency_ns: [(10_000, 5_000), (80_000, 40_000), (400_000, 2_000_000)]
            [dice.roll(3) as usize],
        second_ns: None,
        later: None,
        large_ns: None,
        switch_ns: SWITCH_NS,
        slow_switches: None,
        burst_ns: [1, 100_000, 1_000_000][dice.roll(3) as usize],
        reads: 300,
        several: true,
        predict: dice.roll(2) == 0,
        interval_us: DEFAULT_POLL_INTERVAL_US,
        hooked: dice.roll(4) != 0,
    }
}

fn longest<S: Strategy>(name: &str, strategy: impl Fn(u64) -> S) {
    for mode in [Mode::Irq, Mode::Poll, Mode::Hybrid] {
        for neighbours in 0..3 {
            let mut longest = Played::default().longest;
            for seed in 0..RUNS {
                let load = load(seed, mode, neighbours);
                let seen = play(strategy(seed), load).longest;
                let ring = load.ring_ns();
                assert!(
                    seen.unnoticed <= INTERVAL_NS + ring,
                    "{name}: {seen:?}, {load:?}"
                );
                assert!(seen.deferred_too_long <= ring, "{name}: {seen:?}, {load:?}");
                assert!(seen.waited <= ring, "{name}: {seen:?}, {load:?}");
                longest = longest.or(seen);
            }
            println!("{name}, {mode:?}, {neighbours} neighbours, in ns: {longest:?}");
        }
    }
}

#[test]
fn dice() {
    longest("dice", Random::new);
}

#[test]
fn coop() {
    longest("coop", |_| Coop::new(&MockPlatform::new()).expect("memory"));
}

#[test]
fn plain() {
    longest("plain", |_| Plain);
}
