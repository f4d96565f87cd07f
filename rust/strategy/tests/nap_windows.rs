// SPDX-License-Identifier: GPL-2.0
//! The window in which a thread looks that has napped, by a clock: what it makes a wait longer by,
//! and what it is good for where it is too short.
#![cfg(not(any(loom, miri)))]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test states what it expects by failing loudly"
)]

#[allow(dead_code, reason = "others ask for more")]
mod machine;
mod nappers;

use engine::{Mode, Nap};
use hal::mock::MockPlatform;
use machine::{play, Load};
use nappers::{both, count, ALONE};
use strategy::Coop;

/// For so long a napper looks, as a rule.
const WINDOW_NS: u64 = 16_000;

/// Devices that no forecast fits: nobody waits longer for a read than without, but for the window
/// in which a napper looks.
#[test]
fn no_wait_is_longer_than_without_by_more_than_the_window() {
    let drive = |latency_ns: u64| Load {
        latency_ns: (latency_ns, 0),
        ..ALONE
    };
    let jump = |from: u64, to: u64| Load {
        later: Some((1_000, (to, 0))),
        ..drive(from)
    };
    let devices = [
        ("at once", drive(0)),
        (
            "after 10 s",
            Load {
                reads: 20,
                interval_us: 1_000,
                ..drive(10_000_000_000)
            },
        ),
        (
            "after 20 us, after 20 ms",
            Load {
                second_ns: Some((20_000_000, 0)),
                ..drive(20_000)
            },
        ),
        ("100 times slower", jump(80_000, 8_000_000)),
        ("100 times faster", jump(8_000_000, 80_000)),
    ];
    for (name, load) in devices {
        for mode in [Mode::Irq, Mode::Hybrid, Mode::Poll] {
            let [without, with] = both(name, Load { mode, ..load });
            // Between two ticks a completion comes when it will.
            let tick = match mode {
                Mode::Irq => 0,
                _ => 1_000 * u64::from(load.interval_us),
            };
            let most = without.longest.delay.max(tick) + WINDOW_NS;
            assert!(with.longest.delay <= most, "{name}, {mode:?}: {with:?}");
        }
    }
}

/// A window that is too short for the spread has what is expected in its middle.
#[test]
fn where_the_window_is_short_naps_hit_nonetheless() {
    let coop = Coop::new(&MockPlatform::new()).expect("memory");
    coop.foresight().set_window_us(2);
    let load = Load {
        predict: true,
        latency_ns: (80_000, 4_000),
        ..ALONE
    };
    let with = play(coop, load);
    println!("a short window: {with:?}");
    assert!(count(&with, Nap::Hit) > 900, "{with:?}");
}
