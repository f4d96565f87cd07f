// SPDX-License-Identifier: GPL-2.0
//! Figures 5 to 8 of "Prototyping and Performance Evaluation of a Dynamically Adaptable Block
//! Device Driver for PCIe-based SSDs" on hiops' engine and strategy, by discrete events, and the
//! pipelined completion of HIOPS: `cargo run -p lld_ram --example blocks`. A line of JSON for each
//! point; `bench/run blocks` makes tables and pictures of it, and holds some points, of a device
//! that is slower than the CPU of a guest, against the kernel's module.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a program of the host's, which may end"
)]

mod machine;

use hal::Op;
use lld_ram::{Answers, Blocks, Fill};
use machine::{play, Load, Played, Says};

const SIZES: [u16; 6] = [1, 2, 4, 8, 16, 32];
const THREADS: [usize; 10] = [1, 2, 3, 4, 8, 16, 32, 48, 64, 128];
/// In the order of the module's parameter `ram_blocks_answers`.
const ANSWERS: [Answers; 3] = [Answers::Block, Answers::Each, Answers::EachByItsOwn];
const SAYS: [(&str, Says); 2] = [("plain", Says::Plain), ("coop", Says::Coop)];
const OPS: [Op; 2] = [Op::Read, Op::Write];
const REQUESTS: usize = 20_000;
/// What an interrupt takes of the host, with the driver.
const HOST_NS: u64 = 5_000;
/// What a thread takes from the end of its request until the next is submitted.
const THINK_NS: u64 = 1_000;
/// The two in the guest, which has one CPU: chosen beside its first results, and in sum about what
/// a direct read of one of few threads takes there (docs/results-tables.md, psync-1 and psync-16).
const GUEST_HOST_NS: u64 = 2_000;
const GUEST_THINK_NS: u64 = 3_500;
/// How many times as slow the device is whose points are held against the module's.
const SLOW: u32 = 25;

/// Blocks of whatever has gathered, with page-sized reads of one thread.
const DYNAMIC: Load = Load {
    blocks: Blocks::CHOSEN,
    says: Says::Plain,
    host_ns: HOST_NS,
    threads: 1,
    think_ns: THINK_NS,
    cpus: None,
    op: Op::Read,
    bytes: 4096,
    requests: REQUESTS,
};

/// Full blocks of `most`.
fn full(most: u16) -> Blocks {
    Blocks {
        most,
        fill: Fill::Full,
        ..Blocks::CHOSEN
    }
}

/// Plays the load of a figure, and tells what was asked, and what came of it.
fn tell(figure: &str, slow: u32, load: Load) {
    let (blocks, host_ns) = (load.blocks, load.host_ns);
    let is_write = load.op == Op::Write;
    let took = blocks.closed_ns(blocks.most.into(), is_write, load.bytes, host_ns);
    let closed = f64::from(blocks.most) * 1e9 / took as f64;
    let Played { rate, mean_ns } = play(load);
    let answers = ANSWERS.iter().position(|one| *one == blocks.answers);
    let says = SAYS.iter().find(|(_, says)| *says == load.says);
    println!(
        "{{\"figure\": \"{figure}\", \"slow\": {slow}, \"strategy\": \"{}\", \
         \"answers\": {}, \"full\": {}, \
         \"size\": {}, \"op\": \"{}\", \"threads\": {}, \"bytes\": {}, \"closed\": {closed:.0}, \
         \"iops\": {rate:.0}, \"mean_us\": {:.2}}}",
        says.expect("one of them").0,
        answers.expect("one of them"),
        u8::from(blocks.fill == Fill::Full),
        blocks.most,
        if is_write { "write" } else { "read" },
        load.threads,
        load.bytes,
        mean_ns / 1000.0
    );
}

/// Blocks of each size, which are always pending: what the interface can do, without a host that
/// takes time.
fn figure_5() {
    for answers in ANSWERS {
        for op in OPS {
            for most in SIZES {
                let load = Load {
                    blocks: Blocks {
                        answers,
                        ..full(most)
                    },
                    host_ns: 0,
                    threads: usize::from(most) * 4,
                    op,
                    ..DYNAMIC
                };
                tell("5", 1, load);
            }
        }
    }
}

/// The static driver: full blocks of each size, by the number of threads.
fn figure_6() {
    for op in OPS {
        for most in SIZES {
            for threads in THREADS {
                // What waits for the patience of the device takes its time.
                let few = threads < usize::from(most);
                let load = Load {
                    blocks: full(most),
                    threads,
                    op,
                    requests: if few { threads * 100 } else { REQUESTS },
                    ..DYNAMIC
                };
                tell("6", 1, load);
            }
        }
    }
}

/// The dynamic driver, by the number of threads.
fn figure_7() {
    for (_, says) in SAYS {
        for op in OPS {
            for threads in THREADS {
                let load = Load {
                    says,
                    threads,
                    op,
                    ..DYNAMIC
                };
                tell("7", 1, load);
            }
        }
    }
}

/// Requests of several pages.
fn figure_8() {
    for op in OPS {
        for threads in [1, 2, 4, 8, 16] {
            for bytes in [1, 2, 4, 8, 16].map(|pages| pages * 4096) {
                let load = Load {
                    says: Says::Coop,
                    threads,
                    op,
                    bytes,
                    ..DYNAMIC
                };
                tell("8", 1, load);
            }
        }
    }
}

/// HIOPS' pipelined completion: 16 threads that each read 512 bytes.
fn pipelined(slow: u32, what: impl Fn(Load) -> Load) {
    for (_, says) in SAYS {
        for answers in ANSWERS {
            let load = Load {
                blocks: Blocks {
                    answers,
                    ..DYNAMIC.blocks
                },
                says,
                threads: 16,
                bytes: 512,
                ..DYNAMIC
            };
            tell("pipelined", slow, what(load));
        }
    }
}

/// The same on a device that takes [`SLOW`] times as long, in a guest with one CPU.
fn in_guest(load: Load) -> Load {
    let Blocks {
        most,
        fill,
        answers,
        fetch_ns,
        fetch_each_ns,
        process_ns,
        dma_mb_s,
        answer_ns,
        answer_each_ns,
        link_ns,
    } = load.blocks;
    let blocks = Blocks {
        most,
        fill,
        answers,
        fetch_ns: fetch_ns * SLOW,
        fetch_each_ns: fetch_each_ns * SLOW,
        process_ns: process_ns * SLOW,
        dma_mb_s: dma_mb_s.map(|mb_s| mb_s / SLOW),
        answer_ns: answer_ns * SLOW,
        answer_each_ns: answer_each_ns * SLOW,
        link_ns: link_ns * SLOW,
    };
    Load {
        blocks,
        host_ns: GUEST_HOST_NS,
        think_ns: GUEST_THINK_NS,
        cpus: Some(1),
        requests: load.requests / 4,
        ..load
    }
}

/// Some points of each figure, of a slow device.
fn points() {
    let point = |figure, load| tell(figure, SLOW, in_guest(load));
    for (answers, op) in [(0, Op::Read), (1, Op::Read), (2, Op::Write)] {
        let blocks = Blocks {
            answers: ANSWERS[answers],
            ..full(8)
        };
        let threads = 32;
        point(
            "5",
            Load {
                blocks,
                threads,
                op,
                ..DYNAMIC
            },
        );
    }
    for (most, threads, op) in [(4, 16, Op::Read), (16, 48, Op::Write), (8, 64, Op::Read)] {
        let blocks = full(most);
        point(
            "6",
            Load {
                blocks,
                threads,
                op,
                ..DYNAMIC
            },
        );
    }
    for (_, says) in SAYS {
        for threads in [1, 8, 64] {
            point(
                "7",
                Load {
                    says,
                    threads,
                    ..DYNAMIC
                },
            );
        }
    }
    let says = Says::Coop;
    for (threads, bytes) in [(1, 65536), (4, 16384), (16, 4096)] {
        point(
            "8",
            Load {
                says,
                threads,
                bytes,
                ..DYNAMIC
            },
        );
    }
    pipelined(SLOW, in_guest);
}

fn main() {
    figure_5();
    figure_6();
    figure_7();
    figure_8();
    pipelined(1, |load| load);
    points();
}
