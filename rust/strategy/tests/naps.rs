// SPDX-License-Identifier: GPL-2.0
//! Threads that nap until shortly before their I/O is over, by a clock: what of a wake-up that
//! hides, when it is given up, and what it then costs.
//!
//! `cargo test -p strategy --test naps -- --nocapture` prints what came of each.
#![cfg(not(any(loom, miri)))]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test states what it expects by failing loudly"
)]

#[allow(dead_code, reason = "others ask for more")]
mod machine;
mod nappers;

use engine::{Mode, Nap, DEFAULT_POLL_INTERVAL_US};
use machine::Load;
use nappers::{both, count, ALONE};

#[test]
fn most_of_a_wake_up_is_hidden() {
    for latency_ns in [(40_000, 1_000), (80_000, 2_000), (352_000, 4_000)] {
        let [without, with] = both(
            "alone",
            Load {
                latency_ns,
                ..ALONE
            },
        );
        assert_eq!(without.naps, [0; 4]);
        // One in four comes too late.
        assert!(count(&with, Nap::Hit) > 1_400, "{with:?}");
        assert!(
            count(&with, Nap::Hit) + count(&with, Nap::Late) > 1_950,
            "{with:?}"
        );
        assert!(2 * with.delay_ns < without.delay_ns, "{with:?}");
        // Two interrupts a read, and the looks.
        assert!(4 * with.busy_ns < 5 * without.busy_ns, "{with:?}");
    }
}

/// A drive that becomes another one, at once, in the middle: how many hits are fewer than if it had
/// been the one or the other all the time.
fn missed_for_a_jump(mode: Mode, before: u64, after: u64) -> u32 {
    let hits = |first: u64, then: u64| {
        let load = Load {
            mode,
            interval_us: 1_000,
            latency_ns: (first, 100),
            later: Some((1_000, (then, 100))),
            ..ALONE
        };
        count(&both("a jump", load)[1], Nap::Hit)
    };
    hits(before, before)
        .min(hits(after, after))
        .saturating_sub(hits(before, after))
}

#[test]
fn naps_hit_again_within_a_hundred_reads() {
    for mode in [Mode::Irq, Mode::Hybrid, Mode::Poll] {
        assert!(missed_for_a_jump(mode, 80_000, 300_000) < 100);
        assert!(missed_for_a_jump(mode, 300_000, 80_000) < 100);
    }
}

/// Four threads in a row that are kept waiting make the lead so long that no nap is long enough: it
/// is measured again nonetheless.
#[test]
fn a_lead_that_was_too_long_for_naps_is_found_out() {
    for mode in [Mode::Irq, Mode::Poll] {
        let [undisturbed, disturbed] = [None, Some((1_000, 7_900))].map(|slow_switches| {
            let load = Load {
                mode,
                latency_ns: (10_000, 200),
                interval_us: 1_000,
                slow_switches,
                ..ALONE
            };
            count(&both("kept waiting", load)[1], Nap::Hit)
        });
        assert!(undisturbed > 1_400, "{undisturbed}");
        assert!(undisturbed.saturating_sub(disturbed) < 200, "{disturbed}");
    }
}

/// Small reads that are over sooner than a sleep takes, large ones that are not, in one thread: who
/// does not tell them apart spins for both or for neither.
#[test]
fn the_small_are_spun_for_and_the_large_are_not() {
    let [without, with] = both(
        "two classes",
        Load {
            switch_ns: 20_000,
            latency_ns: (10_000, 200),
            large_ns: Some((80_000, 1_000)),
            reads: 4_000,
            ..ALONE
        },
    );
    // Some 2,000 of each.
    assert!(without.sleeps.iter().all(|sleeps| *sleeps > 1_900));
    assert!(with.sleeps[0] < 100, "{with:?}");
    assert!(count(&with, Nap::Vain) < 20, "{with:?}");
}

/// Nor are naps gone on with that hit, but are looked for longer than a wake-up takes.
#[test]
fn what_can_t_be_foretold_is_slept_through() {
    for latency_ns in [(20_000, 480_000), (6_000, 12_000)] {
        let load = Load {
            latency_ns,
            reads: 20_000,
            ..ALONE
        };
        let [without, with] = both("evenly", load);
        let vain = count(&with, Nap::Vain) + count(&with, Nap::Late);
        assert!(vain < 100, "{with:?}");
        assert!(100 * with.busy_ns < 101 * without.busy_ns, "{with:?}");
    }
}

#[test]
fn beside_a_thread_that_computes_naps_cost_nothing() {
    let load = Load {
        neighbours: 1,
        ..ALONE
    };
    let [without, with] = both("a neighbour", load);
    // Each slice is longer than what is waited for.
    assert_eq!(count(&with, Nap::Hit), 0, "{with:?}");
    assert!(100 * with.delay_ns < 101 * without.delay_ns, "{with:?}");
    assert!(100 * with.busy_ns < 101 * without.busy_ns, "{with:?}");
}

/// Where no nap pays, or no forecast, foretelling is not gone on with, but tried again.
#[test]
fn what_is_of_no_use_is_hardly_foretold() {
    let alone = Load {
        reads: 20_000,
        ..ALONE
    };
    let loads = [
        (
            "four readers",
            Load {
                readers: 4,
                ..alone
            },
        ),
        (
            "evenly 20 to 500 us",
            Load {
                latency_ns: (20_000, 480_000),
                ..alone
            },
        ),
    ];
    for (name, load) in loads {
        let [_, with] = both(name, load);
        assert!(with.foretold < 4_000, "{with:?}");
    }
    let polled = Load {
        mode: Mode::Poll,
        hooked: false,
        ..alone
    };
    // Its ticks go by it.
    let [_, with] = both("polled, nobody naps", polled);
    assert!(with.foretold > 19_000, "{with:?}");
}

/// Who uses more of the CPU is kept waiting more often: that is lost by napping, too, but where
/// nobody is woken by an interrupt.
#[test]
fn after_a_thread_was_kept_waiting_for_a_slice_nobody_naps_for_a_while() {
    let more_sleeps = |mode: Mode| {
        let [undisturbed, disturbed] = [None, Some((1_000, 700_000))].map(|slow_switches| {
            let load = Load {
                mode,
                interval_us: 1_000,
                slow_switches,
                ..ALONE
            };
            both("kept waiting for a slice", load)[1].sleeps[0]
        });
        disturbed - undisturbed
    };
    assert!((90..400).contains(&more_sleeps(Mode::Irq)));
    assert!(more_sleeps(Mode::Poll) < 50);
}

#[test]
fn beside_others_that_read_nobody_naps() {
    let [_, with] = both(
        "four readers",
        Load {
            readers: 4,
            ..ALONE
        },
    );
    assert!(with.naps.iter().sum::<u32>() < 100, "{with:?}");
}

#[test]
fn of_a_polled_queue_as_well() {
    for interval_us in [32, 100, 500] {
        let [without, with] = both(
            &format!("polled, {interval_us} us"),
            Load {
                mode: Mode::Poll,
                interval_us,
                ..ALONE
            },
        );
        assert!(count(&with, Nap::Hit) > 1_400, "{with:?}");
        assert!(4 * with.delay_ns < without.delay_ns, "{with:?}");
    }
}

#[test]
fn a_hybrid_queue_does_without_its_interrupt_while_naps_carry_it() {
    let load = Load {
        mode: Mode::Hybrid,
        interval_us: 500,
        ..ALONE
    };
    let [without, with] = both("hybrid", load);
    assert_eq!(without.ticks, 0, "{without:?}");
    assert!(with.interrupts < 100 && with.ticks < 100, "{with:?}");
    assert!(3 * with.delay_ns < without.delay_ns, "{with:?}");
    // A tick would come in the middle.
    let [_, short] = both(
        "hybrid",
        Load {
            interval_us: 50,
            ..load
        },
    );
    assert!(short.interrupts > 1_900 && short.ticks < 100, "{short:?}");
}

/// Most reads are due too soon for a nap: those that nap all the same carry no queue.
#[test]
fn naps_that_are_tried_leave_a_hybrid_queue_its_interrupt() {
    let [_, with] = both(
        "hybrid, too short for most naps",
        Load {
            mode: Mode::Hybrid,
            interval_us: 500,
            latency_ns: (3_500, 5_000),
            reads: 20_000,
            ..ALONE
        },
    );
    assert!(with.naps.iter().sum::<u32>() > 32, "{with:?}");
    assert!(with.ticks < 100, "{with:?}");
}

/// Now and then eight reads come at once, while the interrupt is off for the sake of naps.
#[test]
fn what_is_not_foretold_does_not_wait_for_a_long_interval() {
    let [without, with] = both(
        "hybrid, now and then several",
        Load {
            mode: Mode::Hybrid,
            interval_us: 500,
            several: true,
            reads: 40_000,
            ..ALONE
        },
    );
    assert_eq!(without.ticks, 0, "nothing else has it polled: {without:?}");
    assert!(with.ticks > 0, "{with:?}");
    assert!(with.longest.unnoticed < 40_000, "{with:?}");
}

/// One thread that nobody asks what it does while it waits, as one of io_uring, on a polled queue.
const UNHOOKED: Load = Load {
    mode: Mode::Poll,
    interval_us: 500,
    hooked: false,
    ..ALONE
};

/// Ticks per hundred reads, and nanoseconds that a read is noticed late.
fn ticks(load: Load) -> (u32, u64) {
    let [without, with] = both("nobody in the hook", load);
    assert!(2 * with.delay_ns < without.delay_ns, "{with:?}");
    (
        100 * with.ticks / load.reads,
        with.delay_ns / u64::from(load.reads),
    )
}

#[test]
fn a_tick_comes_when_a_command_is_over() {
    for latency_ns in [(20_000, 1_000), (80_000, 0), (80_000, 4_000), (352_000, 0)] {
        let (ticks, late_ns) = ticks(Load {
            latency_ns,
            ..UNHOOKED
        });
        assert!(ticks <= 120 && late_ns <= 12_000, "{latency_ns:?}");
    }
}

#[test]
fn where_nobody_knows_when_ticks_come_in_steps_of_the_spread() {
    let (ticks, late_ns) = ticks(Load {
        latency_ns: (64_000, 32_000),
        ..UNHOOKED
    });
    assert!(ticks <= 300 && late_ns <= 16_000);
}

#[test]
fn no_tick_comes_later_than_without() {
    // The last of three is when the command is over.
    let (ticks, _) = ticks(Load {
        interval_us: DEFAULT_POLL_INTERVAL_US,
        ..UNHOOKED
    });
    assert!((300..330).contains(&ticks));
}
