// SPDX-License-Identifier: GPL-2.0
//! The forecast's classes, and what it tells from sizes.
#![cfg(not(loom))]
#![allow(
    clippy::expect_used,
    reason = "a test states what it expects by failing loudly"
)]

#[path = "simulated/chance.rs"]
mod chance;

use chance::about;
use engine::Seen;
use hal::mock::MockPlatform;
use hal::Op;
use strategy::{Class, Forecast};
use testkit::Dice;

const KIB: u64 = 1024;
const US: u64 = 1_000;

/// A read of so many bytes, alone.
fn alone(bytes: u64) -> Class {
    Class::of(Op::Read, bytes, 1).expect("it reads")
}

#[test]
fn flushes_discards_and_zeroes_are_of_no_class() {
    for op in [Op::Flush, Op::Discard, Op::WriteZeroes] {
        assert_eq!(Class::of(op, 4 * KIB, 1), None);
    }
}

#[test]
fn sizes_and_depths_are_bands() {
    let of = |bytes, outstanding| {
        let class = Class::of(Op::Write, bytes, outstanding);
        class.expect("it writes").to_string()
    };
    let sizes = [0, 1, 512, 4096, 4097, 16384, 16385, 65536, 65537, u64::MAX];
    let names = [
        "4k", "4k", "4k", "4k", "16k", "16k", "64k", "64k", "more", "more",
    ];
    assert_eq!(
        sizes.map(|bytes| of(bytes, 1)),
        names.map(|size| format!("write {size} 1"))
    );
    let depths = [0, 1, 2, 3, 4, 5, 8, 9, 16, 17, u64::MAX];
    let names = [
        "1", "1", "2", "3-4", "3-4", "5-8", "5-8", "9-16", "9-16", "more", "more",
    ];
    assert_eq!(
        depths.map(|outstanding| of(1, outstanding)),
        names.map(|depth| format!("write 4k {depth}"))
    );
}

#[test]
fn each_class_learns_by_itself() {
    let forecast = forecast();
    let all: Vec<Class> = Class::all().collect();
    assert_eq!(all.len(), 2 * 4 * 6);
    for (n, class) in (1..).zip(&all) {
        for _ in 0..10 {
            forecast.saw(*class, 4 * KIB, n * 10 * US, Seen::Came);
        }
    }
    for (n, (class, known)) in (1..).zip(all.iter().zip(known(&forecast))) {
        assert_eq!(known.class, *class);
        assert_eq!((known.expected_ns, known.seen), (n * 10 * US, 10));
        let due = forecast.due(*class, 4 * KIB).expect("it is known");
        assert_eq!(due.after_ns, n * 10 * US);
    }
}

/// What the device takes for a read alone: 60 us of the medium's, and 5 ns a byte.
fn of_size(bytes: u64) -> u64 {
    60 * US + 5 * bytes
}

/// A forecast that knows nothing.
fn forecast() -> Forecast<MockPlatform> {
    Forecast::new(&MockPlatform::new()).expect("memory")
}

/// All that is known.
fn known(forecast: &Forecast<MockPlatform>) -> impl Iterator<Item = strategy::Known> + '_ {
    Class::all().filter_map(|class| forecast.known(class))
}

fn read(forecast: &Forecast<MockPlatform>, bytes: u64) {
    forecast.saw(alone(bytes), bytes, of_size(bytes), Seen::Came);
}

fn assert_foretold(forecast: &Forecast<MockPlatform>, bytes: u64, percent: u64) {
    let due = forecast.due(alone(bytes), bytes).expect("it is known");
    let truth = of_size(bytes);
    let off = due.after_ns.abs_diff(truth);
    assert!(
        off <= truth * percent / 100,
        "{bytes}: {due:?}, not {truth}"
    );
}

#[test]
fn a_size_that_was_not_seen_lies_on_the_line() {
    let forecast = forecast();
    for _ in 0..32 {
        read(&forecast, 4 * KIB);
        read(&forecast, 64 * KIB);
    }
    assert_foretold(&forecast, 16 * KIB, 3);
    // Not what is much larger than all that was seen, nor where nothing was.
    assert_eq!(forecast.due(alone(16 << 20), 16 << 20), None);
    let write = Class::of(Op::Write, 16 * KIB, 1).expect("it writes");
    assert_eq!(forecast.due(write, 16 * KIB), None);
    let two = Class::of(Op::Read, 16 * KIB, 2).expect("it reads");
    assert_eq!(forecast.due(two, 16 * KIB), None);
}

#[test]
fn a_size_within_a_class_is_told_from_others() {
    let forecast = forecast();
    for _ in 0..32 {
        read(&forecast, 4 * KIB);
        read(&forecast, 64 * KIB);
    }
    for bytes in [20, 24, 32, 48, 60].map(|kib| kib * KIB) {
        assert_foretold(&forecast, bytes, 3);
    }
}

#[test]
fn medium_and_link_are_told_apart() {
    let forecast = forecast();
    for _ in 0..40 {
        for kib in [4, 16, 64] {
            read(&forecast, kib * KIB);
        }
    }
    let known: Vec<_> = known(&forecast).collect();
    assert_eq!(known.len(), 3);
    for (known, kib) in known.iter().zip([4, 16, 64]) {
        let link = 5 * kib * KIB;
        assert!(known.link_ns.abs_diff(link) <= link / 20, "{known:?}");
        let medium = known.expected_ns - known.link_ns;
        assert!(medium.abs_diff(60 * US) <= 20 * US, "{known:?}");
    }
}

#[test]
fn of_one_size_the_link_is_not_told() {
    let forecast = forecast();
    let mut dice = Dice(9);
    for _ in 0..1_000 {
        let took = about(&mut dice, 80 * US, 20 * US);
        forecast.saw(alone(4 * KIB), 4 * KIB, took, Seen::Came);
    }
    let known = known(&forecast).next().expect("it was seen");
    assert_eq!(known.link_ns, 0);
}

#[test]
fn no_command_has_more_than_32_mib() {
    let forecast = forecast();
    let large = alone(u64::MAX);
    for _ in 0..50 {
        forecast.saw(large, 1 << 20, 6_000 * US, Seen::Came);
        forecast.saw(large, u64::MAX, 170_000 * US, Seen::Came);
    }
    let due = |bytes| forecast.due(large, bytes).expect("it is known").after_ns;
    assert_eq!(due(u64::MAX), due(32 << 20));
    assert!(due(u64::MAX) > due(1 << 20) + 100_000 * US);
}

/// What a medium takes varies by more than the link does between two of these.
#[test]
fn sizes_near_each_other_say_nothing_of_the_link() {
    let forecast = forecast();
    let mut dice = Dice(4);
    for _ in 0..500 {
        let bytes = KIB * (1 + dice.roll(4));
        let took = about(&mut dice, 80 * US, 20 * US);
        forecast.saw(alone(bytes), bytes, took, Seen::Came);
        assert!(known(&forecast).all(|known| known.link_ns == 0));
    }
}

/// Something else than the link makes the longer take so much longer.
#[test]
fn the_link_takes_no_more_than_all_of_it() {
    let forecast = forecast();
    for _ in 0..100 {
        forecast.saw(alone(56 * KIB), 56 * KIB, 20 * US, Seen::Came);
        forecast.saw(alone(64 * KIB), 64 * KIB, 200 * US, Seen::Came);
    }
    let due = forecast.due(alone(72 * KIB), 72 * KIB);
    let after_ns = due.expect("it lies on the line").after_ns;
    // The last ones count more: a fifth more bytes than the mean, which take 122 us or so, and half
    // as much again is the link's at most.
    assert!(after_ns <= 122 * US * 13 / 10, "{after_ns}");
}

#[test]
fn a_link_takes_no_time_off() {
    let forecast = forecast();
    for _ in 0..100 {
        forecast.saw(alone(4 * KIB), 4 * KIB, 200 * US, Seen::Came);
        forecast.saw(alone(64 * KIB), 64 * KIB, 100 * US, Seen::Came);
    }
    assert!(known(&forecast).all(|known| known.link_ns == 0));
}

#[test]
fn several_may_write_at_once() {
    let forecast = forecast();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let forecast = &forecast;
            scope.spawn(move || {
                let mut dice = Dice(seed);
                for _ in 0..20_000 {
                    let kib = [4, 16, 64][dice.roll(3) as usize];
                    read(forecast, kib * KIB);
                    if let Some(due) = forecast.due(alone(kib * KIB), kib * KIB) {
                        assert!(due.after_ns <= 4 * of_size(64 * KIB), "{due:?}");
                    }
                }
            });
        }
    });
    for kib in [4, 16, 64] {
        for _ in 0..100 {
            read(&forecast, kib * KIB);
        }
        assert_foretold(&forecast, kib * KIB, 5);
    }
}
