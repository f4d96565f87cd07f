// SPDX-License-Identifier: GPL-2.0
//! Figures 5 to 8 of "Prototyping and Performance Evaluation of a Dynamically Adaptable Block
//! Device Driver for PCIe-based SSDs" on hiops' engine and strategy, by discrete events, and the
//! pipelined completion of HIOPS; as JSON: `cargo run -p lld_ram --example blocks`. `bench/run
//! blocks` makes tables and pictures of it.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a program of the host's, which may end"
)]

mod machine;

use hal::Op;
use lld_ram::{Answers, Blocks, Fill};
use machine::{play, Load, Played};

const SIZES: [u16; 6] = [1, 2, 4, 8, 16, 32];
const THREADS: [usize; 10] = [1, 2, 3, 4, 8, 16, 32, 48, 64, 128];
const REQUESTS: usize = 20_000;
/// What an interrupt takes of the host, with the driver.
const HOST_NS: u64 = 5_000;
const ANSWERS: [(&str, Answers); 3] = [
    ("block", Answers::Block),
    ("each", Answers::Each),
    ("each, two engines", Answers::EachByItsOwn),
];
const OPS: [(&str, Op); 2] = [("read", Op::Read), ("write", Op::Write)];

/// A line of the JSON: of a figure, what was asked, and what came of it.
fn tell(figure: &str, asked: &[(&str, String)], load: Load) {
    let Played { rate, mean_ns } = play(load);
    print!("{{\"figure\": \"{figure}\", ");
    for (name, value) in asked {
        print!("\"{name}\": {value}, ");
    }
    println!(
        "\"iops\": {rate:.0}, \"mean_us\": {:.2}}}",
        mean_ns / 1000.0
    );
}

fn text(word: &str) -> String {
    format!("\"{word}\"")
}

/// Blocks of each size, which are always pending: what the interface can do, without a host that
/// takes time.
fn figure_5() {
    for (name, answers) in ANSWERS {
        for (way, op) in OPS {
            for most in SIZES {
                let blocks = Blocks {
                    most,
                    answers,
                    fill: Fill::Full,
                    ..Blocks::CHOSEN
                };
                let threads = usize::from(most) * 4;
                let size = u64::from(most);
                let took = blocks.closed_ns(size, op == Op::Write, 4096, 0);
                let closed = size as f64 * 1e9 / took as f64;
                let asked = [
                    ("answers", text(name)),
                    ("op", text(way)),
                    ("size", most.to_string()),
                    ("closed", format!("{closed:.0}")),
                ];
                let load = Load {
                    host_ns: 0,
                    ..load(blocks, threads, op, 4096)
                };
                tell("5", &asked, load);
            }
        }
    }
}

/// The static driver: full blocks of each size, by the number of threads.
fn figure_6() {
    for (way, op) in OPS {
        for most in SIZES {
            for threads in THREADS {
                let blocks = Blocks {
                    most,
                    fill: Fill::Full,
                    ..Blocks::CHOSEN
                };
                let size = u64::from(most);
                let took = blocks.closed_ns(size, op == Op::Write, 4096, HOST_NS);
                let closed = size as f64 * 1e9 / took as f64;
                let asked = [
                    ("op", text(way)),
                    ("size", most.to_string()),
                    ("threads", threads.to_string()),
                    ("closed", format!("{closed:.0}")),
                ];
                // What waits for the patience of the device takes its time.
                let few = threads < usize::from(most);
                let requests = if few { threads * 100 } else { REQUESTS };
                let load = Load {
                    requests,
                    ..load(blocks, threads, op, 4096)
                };
                tell("6", &asked, load);
            }
        }
    }
}

/// The dynamic driver, by the number of threads.
fn figure_7() {
    for (way, op) in OPS {
        for threads in THREADS {
            let asked = [("op", text(way)), ("threads", threads.to_string())];
            tell("7", &asked, load(dynamic(), threads, op, 4096));
        }
    }
}

/// Requests of several pages.
fn figure_8() {
    for (way, op) in OPS {
        for threads in [1, 2, 4, 8, 16] {
            for pages in [1, 2, 4, 8, 16] {
                let asked = [
                    ("op", text(way)),
                    ("threads", threads.to_string()),
                    ("bytes", (pages * 4096).to_string()),
                ];
                tell("8", &asked, load(dynamic(), threads, op, pages * 4096));
            }
        }
    }
}

/// HIOPS' pipelined completion: 16 threads that each read 512 bytes.
fn pipelined() {
    for (name, answers) in ANSWERS {
        let blocks = Blocks {
            answers,
            ..dynamic()
        };
        let asked = [("answers", text(name))];
        tell("pipelined", &asked, load(blocks, 16, Op::Read, 512));
    }
}

/// Blocks of whatever has gathered.
fn dynamic() -> Blocks {
    Blocks::CHOSEN
}

fn load(blocks: Blocks, threads: usize, op: Op, bytes: u64) -> Load {
    Load {
        blocks,
        host_ns: HOST_NS,
        threads,
        op,
        bytes,
        requests: REQUESTS,
    }
}

fn main() {
    figure_5();
    figure_6();
    figure_7();
    figure_8();
    pipelined();
}
