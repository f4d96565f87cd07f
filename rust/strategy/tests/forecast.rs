// SPDX-License-Identifier: GPL-2.0
//! The forecast, with times that are written down here.
#![cfg(not(loom))]
#![allow(
    clippy::expect_used,
    reason = "a test states what it expects by failing loudly"
)]

#[path = "simulated/chance.rs"]
mod chance;

use chance::about;
use engine::{Due, Seen};
use hal::mock::MockPlatform;
use hal::Op;
use proptest::prelude::*;
use strategy::{Class, Forecast};
use testkit::Dice;

const KIB: u64 = 1024;
const US: u64 = 1_000;
const MS: u64 = 1_000 * US;
const S: u64 = 1_000 * MS;
/// The longest that is told apart.
const MOST: u64 = i32::MAX as u64;

/// A read of so many bytes, alone.
fn alone(bytes: u64) -> Class {
    Class::of(Op::Read, bytes, 1).expect("it reads")
}

/// A forecast that knows nothing.
fn forecast() -> Forecast<MockPlatform> {
    Forecast::new(&MockPlatform::new()).expect("memory")
}

/// All that is known.
fn known(forecast: &Forecast<MockPlatform>) -> impl Iterator<Item = strategy::Known> + '_ {
    Class::all().filter_map(|class| forecast.known(class))
}

/// The forecast of reads of 4 KiB, one at a time.
struct Small(Forecast<MockPlatform>);

impl Small {
    fn of(times: impl IntoIterator<Item = u64>) -> Self {
        let small = Self(forecast());
        small.come(times);
        small
    }

    fn come(&self, times: impl IntoIterator<Item = u64>) {
        for took in times {
            self.0.saw(alone(4 * KIB), 4 * KIB, took, Seen::Came);
        }
    }

    fn found(&self, took: u64) {
        self.0.saw(alone(4 * KIB), 4 * KIB, took, Seen::Found);
    }

    fn due(&self) -> Due {
        self.0.due(alone(4 * KIB), 4 * KIB).expect("it is known")
    }

    fn is_within(&self, percent: u64, of: u64) -> bool {
        self.due().after_ns.abs_diff(of) <= of * percent / 100
    }

    /// How many commands, each taking what `times` says, until it is within 5 % of `of`.
    fn until(&self, of: u64, mut times: impl FnMut() -> u64) -> usize {
        let until = (0..1_000).find(|_| {
            self.come([times()]);
            self.is_within(5, of)
        });
        until.expect("it gets there") + 1
    }
}

/// `n` times of about `mean`.
fn times(mean: u64, most: u64, n: usize) -> Vec<u64> {
    let mut dice = Dice(7);
    (0..n).map(|_| about(&mut dice, mean, most)).collect()
}

#[test]
fn what_was_not_seen_is_not_known() {
    let forecast = forecast();
    assert!(Class::all().all(|class| forecast.due(class, 4 * KIB).is_none()));
    assert_eq!(known(&forecast).count(), 0);
    let small = Small::of([80 * US]);
    assert_eq!(small.0.due(alone(4 * KIB), 4 * KIB), None);
    small.come([80 * US]);
    assert_eq!(small.due().after_ns, 80 * US);
}

#[test]
fn what_is_always_the_same_has_no_spread() {
    let small = Small::of([352 * US; 100]);
    let Due {
        after_ns,
        spread_ns,
    } = small.due();
    assert_eq!(after_ns, 352 * US);
    assert!(spread_ns < US / 10, "{spread_ns}");
}

#[test]
fn the_spread_is_how_far_they_are_off() {
    // On average half of the most.
    let small = Small::of(times(80 * US, 4 * US, 500));
    assert!(small.is_within(2, 80 * US), "{:?}", small.due());
    let spread = small.due().spread_ns;
    assert!((US..2 * US).contains(&spread), "{spread}");
}

#[test]
fn a_jump_is_followed() {
    let steps = [2 * US, 20 * US, 80 * US, 300 * US, 10 * MS, S];
    for before in steps {
        for after in steps.into_iter().filter(|after| *after != before) {
            for wide in [0, 20, 4] {
                let most = |mean: u64| mean.checked_div(wide).unwrap_or(0);
                let small = Small::of(times(before, most(before), 300));
                let mut cycle = times(after, most(after), 100).into_iter().cycle();
                let took = small.until(after, || cycle.next().expect("it goes on"));
                assert!(took <= 50, "{before} to {after}, {wide}: {took}");
                small.come(times(after, most(after), 100 - took));
                assert!(small.is_within(10, after));
                let spread = small.due().spread_ns;
                assert!(
                    spread <= most(after) + after / 16,
                    "{before} {after} {spread}"
                );
            }
        }
    }
}

#[test]
fn one_that_takes_long_does_not_spoil_the_class() {
    for (usual, long) in [(80 * US, 10 * S), (20 * US, 20 * MS), (20 * US, u64::MAX)] {
        let small = Small::of(times(usual, usual / 40, 200));
        let spread = small.due().spread_ns;
        small.come([long]);
        assert!(small.is_within(2, usual), "{:?}", small.due());
        assert!(small.due().spread_ns <= spread * 2, "{:?}", small.due());
        // Nor one in 20.
        for _ in 0..20 {
            small.come(times(usual, usual / 40, 19));
            small.come([long]);
            assert!(small.is_within(5, usual), "{:?}", small.due());
        }
    }
}

#[test]
fn the_first_one_may_take_long() {
    for first in 0..4 {
        let small = Small::of([80 * US].repeat(first));
        small.come([10 * S]);
        small.come([80 * US; 16]);
        assert!(small.is_within(5, 80 * US), "{first}: {:?}", small.due());
    }
}

/// What was sooner than a value before does not count against the one after.
#[test]
fn a_jump_down_is_no_reason_to_come_sooner() {
    let small = Small::of([300 * US; 100]);
    small.come([80 * US; 2]);
    assert_eq!(small.due().after_ns, 80 * US);
    small.found(60 * US);
    small.found(60 * US);
    assert!(small.is_within(6, 80 * US), "{:?}", small.due());
}

/// Whatever the first ones took, and however wide the spread that they leave.
#[test]
fn it_comes_down_from_the_longest() {
    let longest = [u64::MAX; 4];
    let wide = [0, u64::MAX].repeat(20);
    let wider = [u64::MAX, u64::MAX, 0].repeat(20);
    for before in [&longest[..], &wide, &wider] {
        let small = Small::of(before.iter().copied());
        small.come([2 * US; 100]);
        assert!(small.is_within(5, 2 * US), "{:?}", small.due());
    }
}

#[test]
fn what_alternates_has_a_great_spread() {
    let small = Small(forecast());
    for n in 0..1_000 {
        small.come([20 * US, 20 * MS]);
        if n >= 8 {
            assert!(small.due().spread_ns >= 20 * US, "{n}: {:?}", small.due());
        }
        if n >= 50 {
            assert!(small.due().spread_ns >= MS, "{n}: {:?}", small.due());
        }
    }
}

#[test]
fn what_was_found_never_raises() {
    let small = Small::of(times(80 * US, 2 * US, 100));
    let before = small.due();
    for took in [before.after_ns, 100 * US, 10 * S, u64::MAX] {
        small.found(took);
        assert_eq!(small.due(), before);
    }
    small.found(before.after_ns - 2 * US);
    let after = small.due().after_ns;
    assert!(after < before.after_ns && after >= before.after_ns - 2 * US);
    // Nor does it count as a measurement.
    assert_eq!(known(&small.0).next().map(|known| known.seen), Some(100));
}

#[test]
fn what_was_only_found_is_not_known() {
    let small = Small(forecast());
    for _ in 0..100 {
        small.found(80 * US);
    }
    assert_eq!(small.0.due(alone(4 * KIB), 4 * KIB), None);
}

/// A thread that looks `lead` before the command is due, and then until it is over.
fn nap(small: &Small, took: u64, lead: u64) -> Seen {
    let looks = small.due().after_ns.saturating_sub(lead);
    match took <= looks {
        true => {
            small.found(looks);
            Seen::Found
        }
        false => {
            small.come([took]);
            Seen::Came
        }
    }
}

#[test]
fn whoever_comes_too_late_each_time_comes_sooner() {
    let small = Small::of([300 * US; 100]);
    let late = (1..=100).find(|_| nap(&small, 80 * US, 8 * US) == Seen::Came);
    assert!(late.is_some_and(|late| late <= 40), "{late:?}");
    for _ in 0..60 {
        nap(&small, 80 * US, 8 * US);
    }
    assert!(small.is_within(2, 80 * US), "{:?}", small.due());
}

/// On a regular device a look is early by little.
#[test]
fn however_little_before_it_is_expected() {
    for (before, after) in [(300, 80), (10_000, 20), (80, 79)] {
        let small = Small::of([before * US; 100]);
        let late = (1..=100).find(|_| nap(&small, after * US, 300) == Seen::Came);
        assert!(late.is_some_and(|late| late <= 32), "{before}: {late:?}");
        for _ in 0..30 {
            nap(&small, after * US, 300);
        }
        assert!(small.is_within(2, after * US), "{:?}", small.due());
    }
}

#[test]
fn one_that_is_seen_to_come_ends_being_late() {
    let small = Small::of([80 * US; 100]);
    for took in [79, 78, 77] {
        small.found(took * US);
    }
    small.come([80 * US]);
    small.found(60 * US);
    assert!(small.is_within(4, 80 * US), "{:?}", small.due());
}

#[test]
fn whoever_comes_in_time_does_not_drift() {
    let mut dice = Dice(3);
    let small = Small::of(times(80 * US, 3 * US, 100));
    for lead in [0, 2 * US, 8 * US] {
        for _ in 0..3_000 {
            nap(&small, about(&mut dice, 80 * US, 3 * US), lead);
            assert!(small.is_within(6, 80 * US), "{lead}: {:?}", small.due());
        }
    }
}

/// Any number, of any magnitude, the ends among them.
fn any_ns() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        Just(MOST),
        Just(MOST + 1),
        (0u32..64, any::<u64>()).prop_map(|(bits, ns)| ns >> bits),
        20_000u64..500_000,
    ]
}

fn any_seen() -> impl Strategy<Value = Seen> {
    prop_oneof![Just(Seen::Came), Just(Seen::Found)]
}

/// The most that is seen of one class.
const STEPS: usize = 100;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Of one size nothing is foretold that was not between two measurements, or below what was
    /// found; and what was found does not raise it.
    #[test]
    fn no_value_is_wild(steps in prop::collection::vec((any_ns(), any_seen()), 1..STEPS)) {
        let small = Small(forecast());
        let (mut least, mut most) = (MOST, 0);
        let due = || small.0.due(alone(4 * KIB), 4 * KIB);
        for (took, seen) in steps {
            let before = due();
            small.0.saw(alone(4 * KIB), 4 * KIB, took, seen);
            least = least.min(took);
            match (seen, before) {
                (Seen::Came, _) => most = most.max(took.min(MOST)),
                (Seen::Found, None) => prop_assert_eq!(due(), None),
                (Seen::Found, Some(before)) => {
                    let after = due().expect("it was known");
                    prop_assert!(after.after_ns <= before.after_ns);
                    prop_assert_eq!(after.spread_ns, before.spread_ns);
                }
            }
            if let Some(due) = due() {
                prop_assert!((least..=most).contains(&due.after_ns), "{due:?} {least} {most}");
                prop_assert!(due.spread_ns <= most, "{due:?}");
            }
        }
    }

    /// Of any size at any depth, whatever comes.
    #[test]
    fn nothing_makes_it_fail(
        steps in prop::collection::vec((any_ns(), any_ns(), any_ns(), any_seen()), 1..STEPS)
    ) {
        let forecast = forecast();
        for (bytes, outstanding, took, seen) in steps {
            let class = Class::of(Op::Read, bytes, outstanding).expect("it reads");
            forecast.saw(class, bytes, took, seen);
            if let Some(due) = forecast.due(class, bytes) {
                prop_assert!(due.after_ns <= MOST && due.spread_ns <= MOST);
            }
        }
        for known in known(&forecast) {
            prop_assert!(known.link_ns <= known.expected_ns && known.expected_ns <= MOST);
        }
    }

    /// After whatever has come, 100 commands of one kind are enough.
    #[test]
    fn it_finds_back_from_anywhere(
        steps in prop::collection::vec((any_ns(), any_seen()), 1..STEPS),
        usual in 2_000u64..100_000_000,
    ) {
        let small = Small(forecast());
        for (took, seen) in steps {
            small.0.saw(alone(4 * KIB), 4 * KIB, took, seen);
        }
        small.come([usual; 100]);
        prop_assert!(small.is_within(5, usual), "{usual}: {:?}", small.due());
    }
}
