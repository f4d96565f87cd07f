// SPDX-License-Identifier: GPL-2.0
//! The device that takes blocks of descriptors, under the engine: one block is with it at a time,
//! of whatever has gathered, and nothing is lost, whatever it does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod common;

use common::*;
use engine::Context;
use hal::mock::MockPlatform;
use hal::{Controller, Op};
use lld_ram::{Answers, Backing, Blocks, Config, Fill, Interface, PATIENCE_NS};
use std::sync::atomic::Ordering;

/// Blocks of up to four, whose data takes a microsecond for each block of the medium.
const FOUR: Blocks = Blocks {
    most: 4,
    fill: Fill::Any,
    answers: Answers::Block,
    fetch_ns: 10_000,
    fetch_each_ns: 0,
    process_ns: 100,
    dma_mb_s: [512, 256],
    answer_ns: 1_000,
    answer_each_ns: 0,
    link_ns: 0,
};
/// From the doorbell to the answer of `n` reads of a block of the medium.
const fn over_ns(n: u64) -> u64 {
    10_000 + 100 + n * 1_000 + 1_000
}

fn rig(blocks: Blocks) -> Rig {
    Rig::new(Config {
        interface: Interface::Blocks(blocks),
        tags: 128,
        ..config()
    })
}

fn reads(rig: &mut Rig, count: u64) -> Vec<usize> {
    (0..count)
        .map(|lba| rig.submit(Op::Read, lba, vec![0; BLOCK]))
        .collect()
}

/// The interrupt that comes next: when, and how many requests it ends.
fn interrupt(rig: &Rig) -> (u64, usize) {
    for queue in rig.backing.to_next_timer() {
        rig.ram.interrupt(queue);
        rig.io.drain(Context::Irq);
    }
    (rig.backing.now(), rig.host.take().len())
}

#[test]
fn what_has_gathered_is_the_next_block() {
    let mut rig = rig(FOUR);
    reads(&mut rig, 7);
    // The first found the device idle; four of the others are a block, and then the rest.
    assert_eq!(rig.io.in_flight(), 7);
    assert_eq!(interrupt(&rig), (over_ns(1), 1));
    assert_eq!(interrupt(&rig), (over_ns(1) + over_ns(4), 4));
    assert_eq!(interrupt(&rig), (over_ns(1) + over_ns(4) + over_ns(2), 2));
    assert_eq!(rig.backing.next_timer(), None);
    assert_eq!(rig.io.doorbell_writes(), 3);
}

#[test]
fn a_batch_finds_an_idle_device() {
    let mut rig = rig(FOUR);
    let command = |id| testkit::command(1, Op::Read, id, 1);
    let jobs = (0..6u64)
        .map(|id| testkit::Job::shaped(id as usize, command(id), vec![0; BLOCK], (0, 4096)));
    rig.io.submit_many(jobs);
    assert_eq!(interrupt(&rig), (over_ns(4), 4));
    assert_eq!(interrupt(&rig), (over_ns(4) + over_ns(2), 2));
    assert_eq!(rig.host.take().len(), 0);
    reads(&mut rig, 1);
    assert_eq!(interrupt(&rig).1, 1);
}

#[test]
fn single_answers_come_one_by_one_and_the_block_ends_with_the_last() {
    let mut rig = rig(Blocks {
        answers: Answers::Each,
        ..FOUR
    });
    reads(&mut rig, 3);
    assert_eq!(interrupt(&rig), (over_ns(1), 1));
    // Two more: 1,000 of data, 1,000 for the answer.
    let begun = over_ns(1) + 10_000 + 100;
    assert_eq!(interrupt(&rig), (begun + 2_000, 1));
    // The block is still out.
    reads(&mut rig, 1);
    assert_eq!(interrupt(&rig), (begun + 4_000, 1));
    assert_eq!(interrupt(&rig), (begun + 4_000 + over_ns(1), 1));
}

#[test]
fn more_than_can_be_staged_waits_in_the_fifo() {
    let mut rig = rig(Blocks { most: 64, ..FOUR });
    let ids = reads(&mut rig, 300);
    assert!(rig.io.queued() > 0 && rig.io.in_flight() <= 65);
    rig.run();
    assert!(ids.iter().all(|&id| rig.over(id).is_some()));
    assert_eq!(rig.io.queued(), 0);
    // One, and then five times as many as can be staged.
    assert!(
        rig.io.doorbell_writes() <= 7,
        "{}",
        rig.io.doorbell_writes()
    );
}

#[test]
fn a_static_driver_s_device_waits_for_full_blocks_but_not_for_ever() {
    let mut rig = rig(Blocks {
        fill: Fill::Full,
        ..FOUR
    });
    reads(&mut rig, 3);
    assert_eq!(rig.io.doorbell_writes(), 0);
    assert_eq!(rig.backing.next_timer(), Some(PATIENCE_NS));
    reads(&mut rig, 4);
    assert_eq!(rig.io.doorbell_writes(), 1);
    assert_eq!(interrupt(&rig), (over_ns(4), 4));
    // Those that are left have waited since then.
    assert_eq!(interrupt(&rig), (over_ns(4) + PATIENCE_NS, 0));
    assert_eq!(interrupt(&rig), (over_ns(4) + PATIENCE_NS + over_ns(3), 3));
}

#[test]
fn what_is_written_is_read_in_whatever_blocks() {
    for answers in [Answers::Block, Answers::Each, Answers::EachByItsOwn] {
        for fill in [Fill::Any, Fill::Full] {
            let mut rig = rig(Blocks {
                answers,
                fill,
                ..FOUR
            });
            let write = |rig: &mut Rig, n: u64| rig.submit(Op::Write, n, pattern(n as usize, 1));
            let ids: Vec<usize> = (0..300).map(|n| write(&mut rig, n)).collect();
            rig.run();
            assert!(ids
                .iter()
                .all(|&id| rig.over(id).unwrap().outcome == Ok(())));
            for n in 0..300 {
                let over = rig.one(Op::Read, n, vec![0; BLOCK]);
                assert_eq!((over.outcome, over.data), (Ok(()), pattern(n as usize, 1)));
            }
            assert_eq!(rig.platform.bus().faults(), 0);
        }
    }
}

#[test]
fn a_hostile_device_ends_nothing_twice_and_nothing_wrongly() {
    let mut rig = rig(FOUR);
    let device = rig.backing.clone();
    let faults = &device.device().faults;
    faults.duplicate.one_in(3);
    faults.lie.one_in(5);
    faults.reorder.one_in(2);
    faults.delay.one_in(7);
    faults.delay_ns.store(100_000, Ordering::Relaxed);
    let ids = reads(&mut rig, 600);
    rig.run();
    assert!(ids
        .iter()
        .all(|&id| rig.over(id).unwrap().outcome == Ok(())));
    assert!(rig.io.violations() >= 600 / 3, "{}", rig.io.violations());
}

#[test]
fn a_block_that_never_comes_back_is_reset_and_tried_again() {
    let mut rig = rig(FOUR);
    let device = rig.backing.clone();
    let faults = &device.device().faults;
    faults.drop.one_in(1);
    reads(&mut rig, 70);
    rig.run();
    // Those behind it wait.
    assert_eq!((rig.host.take().len(), rig.io.doorbell_writes()), (0, 1));
    let limit = 30_000;
    assert!(rig.io.overdue(limit, limit).is_some());
    faults.drop.one_in(0);
    let mut quiesced = rig.io.quiesce(&MockPlatform::new());
    rig.ram.stop().unwrap();
    quiesced.reap(hal::CmdError::Aborted.retryable());
    quiesced.rewind();
    rig.ram.start().unwrap();
    quiesced.unquiesce();
    rig.run();
    // What had a tag was given back, what had none is over.
    let over = rig.host.take();
    assert_eq!(over.len(), 70);
    reads(&mut rig, 9);
    rig.run();
    assert_eq!(rig.host.take().len(), 9);
}
