// SPDX-License-Identifier: GPL-2.0
//! Many threads that read and wait on one CPU, by a clock: all of them begin at once, as a server's
//! do, and sleep at first. Soon they let each other run instead, and find what is over themselves.
//!
//! `cargo test -p strategy --test crowds -- --nocapture` prints what came of each.
#![cfg(not(any(loom, miri)))]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test states what it expects by failing loudly"
)]

#[allow(dead_code, reason = "others ask for more")]
mod machine;
#[allow(dead_code, reason = "others ask for more")]
mod nappers;

use engine::Mode;
use hal::mock::MockPlatform;
use machine::{play, Load, Played};
use nappers::ALONE;
use strategy::Coop;

const READS: u32 = 40_000;

/// What comes of so many threads on a drive that takes so long.
fn crowd(readers: usize, latency_ns: (u64, u64)) -> Played {
    let load = Load {
        mode: Mode::Hybrid,
        readers,
        tags: 1023,
        latency_ns,
        reads: READS,
        ..ALONE
    };
    let played = play(Coop::new(&MockPlatform::new()).expect("memory"), load);
    println!("{readers} readers, {latency_ns:?} ns: {played:?}");
    played
}

#[test]
fn who_begins_at_once_does_not_sleep_for_ever() {
    for latency_ns in [(320_000, 64_000), (80_000, 16_000)] {
        for readers in [64, 128, 256] {
            let played = crowd(readers, latency_ns);
            let sleeps = played.sleeps[0];
            assert!(4 * sleeps < READS, "{sleeps} sleeps of {readers} readers");
            assert!(10 * played.interrupts < READS, "{played:?}");
        }
    }
}
