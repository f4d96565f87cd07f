// SPDX-License-Identifier: GPL-2.0
//! What figures 5 to 8 of the paper that blocks.rs names say, and what became of it here, by
//! discrete events (examples/blocks): no wall clock has a part in it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unreachable
)]

#[path = "../examples/blocks/machine.rs"]
mod machine;

use hal::Op;
use lld_ram::{Answers, Blocks, Fill};
use machine::{play, Load, Played, Says};

const BASE: Load = Load {
    blocks: Blocks::CHOSEN,
    says: Says::Plain,
    host_ns: 5_000,
    threads: 1,
    think_ns: 1_000,
    cpus: None,
    op: Op::Read,
    bytes: 4096,
    requests: 4_000,
};

fn full(most: u16) -> Blocks {
    Blocks {
        most,
        fill: Fill::Full,
        ..Blocks::CHOSEN
    }
}

/// The best that a static driver has with so many threads.
fn best_static(threads: usize) -> Played {
    let sizes = (0..6).map(|n| 1u16 << n);
    let possible = sizes.filter(|&size| usize::from(size) <= threads);
    let played = possible.map(|size| {
        play(Load {
            blocks: full(size),
            threads,
            ..BASE
        })
    });
    played
        .max_by(|one, other| one.rate.total_cmp(&other.rate))
        .expect("blocks of one are possible")
}

/// Figure 5: the interface alone, where blocks are always pending.
#[test]
fn a_block_at_once_is_best_then_two_engines_and_reads_are_faster() {
    for most in [4u16, 8, 16, 32] {
        let rate = |answers, op| {
            let blocks = Blocks {
                answers,
                ..full(most)
            };
            let threads = usize::from(most) * 4;
            let load = Load {
                blocks,
                host_ns: 0,
                threads,
                op,
                ..BASE
            };
            let rate = play(load).rate;
            let took = blocks.closed_ns(most.into(), op == Op::Write, 4096, 0);
            let closed = f64::from(most) * 1e9 / took as f64;
            assert!((rate / closed - 1.0).abs() < 0.03, "{rate} and {closed}");
            rate
        };
        for op in [Op::Read, Op::Write] {
            let [block, each, own] =
                [Answers::Block, Answers::Each, Answers::EachByItsOwn].map(|one| rate(one, op));
            assert!(block > own && own > each, "{most}: {block}, {own}, {each}");
        }
        assert!(rate(Answers::Block, Op::Read) > rate(Answers::Block, Op::Write));
    }
}

/// Figure 6: the static driver.
#[test]
fn full_blocks_need_as_many_threads_and_gain_nothing_by_more() {
    for most in [2u16, 8, 32] {
        let rate = |threads| {
            let load = Load {
                blocks: full(most),
                threads,
                requests: 2_000,
                ..BASE
            };
            play(load).rate
        };
        let threads = usize::from(most);
        // A block in ten milliseconds.
        assert!(rate(threads - 1) < 100.0 * threads as f64);
        let closed = 1e9 * f64::from(most)
            / Blocks::CHOSEN.closed_ns(most.into(), false, 4096, 5_000) as f64;
        for threads in [threads * 2, threads * 4] {
            assert!((rate(threads) / closed - 1.0).abs() < 0.03);
        }
    }
}

/// Figure 7: as the paper has it, the block is whatever is pending, and two blocks take turns.
#[test]
fn blocks_of_whatever_is_pending_lose_to_full_ones_until_all_are_full() {
    for (threads, most) in [(2, 0.70), (8, 0.85)] {
        let rate = play(Load { threads, ..BASE }).rate;
        assert!(rate < most * best_static(threads).rate, "{threads}");
    }
    let rate = play(Load {
        threads: 64,
        ..BASE
    })
    .rate;
    assert!(rate > 0.98 * best_static(64).rate);
}

/// Who waits a moment for those that were just answered has what the best static size has.
#[test]
fn a_block_that_waits_a_moment_is_as_good_as_the_best_static_size() {
    let says = Says::Coop;
    for threads in [1, 2, 4, 8, 16, 32, 48, 64] {
        let load = Load {
            says,
            threads,
            ..BASE
        };
        let (rate, best) = (play(load).rate, best_static(threads).rate);
        assert!(rate > 0.98 * best, "{threads}: {rate} and {best}");
    }
    let alone = play(Load { says, ..BASE });
    assert!(alone.mean_ns < 1.02 * best_static(1).mean_ns);
}

/// Figure 8: larger requests move more, and take longer.
#[test]
fn throughput_and_latency_grow_with_the_size_of_requests() {
    for says in [Says::Plain, Says::Coop] {
        let played = [1u64, 2, 4, 8, 16].map(|pages| {
            let bytes = pages * 4096;
            let load = Load {
                says,
                bytes,
                requests: 1_000,
                ..BASE
            };
            let Played { rate, mean_ns } = play(load);
            (rate * bytes as f64, mean_ns)
        });
        for pair in played.windows(2) {
            assert!(pair[1].0 > pair[0].0 && pair[1].1 > pair[0].1);
        }
    }
}

/// HIOPS' pipelined completion.
#[test]
fn single_answers_gain_where_blocks_take_turns() {
    let rate = |answers, says| {
        let load = Load {
            blocks: Blocks {
                answers,
                ..Blocks::CHOSEN
            },
            says,
            threads: 16,
            bytes: 512,
            ..BASE
        };
        play(load).rate
    };
    let plain = [Answers::Block, Answers::Each].map(|answers| rate(answers, Says::Plain));
    assert!(plain[1] > 1.10 * plain[0]);
    // Less where they don't.
    let coop = [Answers::Block, Answers::Each].map(|answers| rate(answers, Says::Coop));
    assert!(coop[1] > coop[0] && coop[0] > plain[0]);
}
