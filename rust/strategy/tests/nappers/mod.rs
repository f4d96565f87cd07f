// SPDX-License-Identifier: GPL-2.0
//! A thread that reads, without naps and with them.

use crate::machine::{play, Load, Played, SWITCH_NS};
use engine::{Mode, Nap, DEFAULT_POLL_INTERVAL_US};
use hal::mock::MockPlatform;
use strategy::Coop;

/// One thread on an NVMe drive of 80 us.
pub const ALONE: Load = Load {
    seed: 1,
    mode: Mode::Irq,
    neighbours: 0,
    readers: 1,
    tags: 64,
    batch: 1,
    latency_ns: (80_000, 2_000),
    second_ns: None,
    later: None,
    large_ns: None,
    switch_ns: SWITCH_NS,
    slow_switches: None,
    burst_ns: 1,
    reads: 2_000,
    several: false,
    predict: false,
    interval_us: DEFAULT_POLL_INTERVAL_US,
    hooked: true,
};

/// Without and with foretelling.
pub fn both(name: &str, load: Load) -> [Played; 2] {
    [false, true].map(|predict| {
        let played = play(
            Coop::new(&MockPlatform::new()).expect("memory"),
            Load { predict, ..load },
        );
        println!("{name}, predict {predict}: {played:?}");
        played
    })
}

/// How many naps ended so.
pub fn count(played: &Played, nap: Nap) -> u32 {
    played.naps[nap as usize]
}
