// SPDX-License-Identifier: GPL-2.0
//! The device as it should be, under the engine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod common;

use common::*;
use hal::{CmdError, Controller, Error, Op, Shutdown};
use lld_ram::{Latency, MAX_SEGMENTS};

#[test]
fn what_was_written_is_read() {
    let mut rig = Rig::new(config());
    for (lba, blocks) in [(0, 1), (7, 3), (100, 64), (2047, 1), (2040, 8)] {
        let data = pattern(lba as usize, blocks);
        assert_eq!(rig.one(Op::Write, lba, data.clone()).outcome, Ok(()));
        let read = rig.one(Op::Read, lba, vec![0; data.len()]);
        assert_eq!(read.outcome, Ok(()));
        assert_eq!(read.data, data);
    }
    assert_eq!(rig.platform.bus().faults(), 0);
}

#[test]
fn zeroes_and_flush() {
    let mut rig = Rig::new(config());
    rig.one(Op::Write, 0, pattern(1, 4));
    let id = rig.submit_range(Op::WriteZeroes, 1, 1, vec![]);
    rig.run();
    assert_eq!(rig.over(id).unwrap().outcome, Ok(()));
    let id = rig.submit_range(Op::Discard, 3, 1, vec![]);
    rig.run();
    assert_eq!(rig.over(id).unwrap().outcome, Ok(()));
    assert_eq!(rig.one(Op::Flush, 0, vec![]).outcome, Ok(()));
    let mut expected = pattern(1, 4);
    expected[512..1024].fill(0);
    expected[1536..].fill(0);
    assert_eq!(rig.one(Op::Read, 0, vec![0; 2048]).data, expected);
}

#[test]
fn ranges_end_at_the_end() {
    let mut rig = Rig::new(config());
    let end = (1 << 20) / BLOCK as u64;
    assert_eq!(rig.one(Op::Read, end - 1, vec![0; 512]).outcome, Ok(()));
    for (lba, blocks) in [
        (end, 1),
        (end - 1, 2),
        (u64::MAX, 1),
        (u64::MAX >> 9, 1),
        (1 << 55, 1),
    ] {
        let over = rig.one(Op::Read, lba, vec![0; blocks * BLOCK]);
        assert_eq!(over.outcome, Err(CmdError::Range), "{lba}");
    }
    let id = rig.submit_range(Op::Discard, end, 1, vec![]);
    rig.run();
    assert_eq!(rig.over(id).unwrap().outcome, Err(CmdError::Range));
}

#[test]
fn segments_must_add_up_and_fit() {
    let mut rig = Rig::new(config());
    // One block asked for, two given; and the other way.
    for (blocks, bytes) in [(1, 1024), (2, 512), (1, 0)] {
        let id = rig.submit_range(Op::Write, 0, blocks, vec![1; bytes]);
        rig.run();
        assert_eq!(rig.over(id).unwrap().outcome, Err(CmdError::Invalid));
    }
    // The pieces have 4 KiB.
    let most = usize::from(MAX_SEGMENTS) * 4096;
    assert_eq!(rig.one(Op::Write, 0, vec![1; most]).outcome, Ok(()));
    let over = rig.one(Op::Write, 0, vec![2; most + 512]);
    assert_eq!(over.outcome, Err(CmdError::Invalid));
    assert_eq!(rig.backing.medium()[0], 1);
    // Nothing of it stayed behind.
    assert_eq!(rig.io.in_flight(), 0);
    assert_eq!(rig.one(Op::Read, 0, vec![0; 512]).data, vec![1; 512]);
}

#[test]
fn channels_work_side_by_side() {
    // 8 commands of 1 us on 4 channels: two rounds.
    let mut rig = Rig::new(config());
    (0..8).for_each(|n| {
        rig.submit(Op::Read, n, vec![0; 512]);
    });
    assert_eq!(rig.backing.now(), 0);
    rig.run();
    assert_eq!(rig.backing.now(), 2000);
    assert_eq!(rig.host.take().len(), 8);
    // One channel: one after the other.
    let mut rig = Rig::new(lld_ram::Config {
        channels: 1,
        ..config()
    });
    (0..8).for_each(|n| {
        rig.submit(Op::Read, n, vec![0; 512]);
    });
    rig.run();
    assert_eq!(rig.backing.now(), 8000);
}

#[test]
fn nothing_is_reported_early() {
    let mut rig = Rig::new(config());
    let id = rig.submit(Op::Read, 0, vec![0; 512]);
    assert_eq!(rig.io.drain(engine::Context::Irq), 0);
    assert!(rig.over(id).is_none());
    rig.run();
    assert!(rig.over(id).is_some());
}

#[test]
fn more_requests_than_tags() {
    for latency in [
        Latency::Fixed(0),
        Latency::Fixed(10),
        Latency::Between(0, 5000),
    ] {
        let mut rig = Rig::new(lld_ram::Config {
            latency,
            ..config()
        });
        let ids: Vec<usize> = (0..500)
            .map(|n| rig.submit(Op::Write, n, pattern(n as usize, 1)))
            .collect();
        assert!(rig.io.queued() > 0);
        rig.run();
        for id in ids {
            assert_eq!(rig.over(id).unwrap().outcome, Ok(()));
        }
        assert_eq!(rig.io.queued() + rig.io.in_flight(), 0);
        for n in 0..500 {
            assert_eq!(
                rig.one(Op::Read, n, vec![0; 512]).data,
                pattern(n as usize, 1)
            );
        }
        assert_eq!(rig.platform.bus().faults(), 0);
    }
}

#[test]
fn same_seed_same_times() {
    let times = |seed| {
        let mut rig = Rig::new(lld_ram::Config {
            latency: Latency::Between(100, 100_000),
            seed,
            ..config()
        });
        (0..50).for_each(|n| {
            rig.submit(Op::Read, n, vec![0; 512]);
        });
        rig.run();
        rig.backing.now()
    };
    assert_eq!(times(5), times(5));
    assert_ne!(times(5), times(6));
}

#[test]
fn one_that_is_gone_says_so() {
    let rig = Rig::new(config());
    assert_eq!(rig.ram.alive(), Ok(()));
    hal_gone(&rig, true);
    assert_eq!(rig.ram.alive(), Err(Error::Gone));
    assert_eq!(rig.ram.start(), Err(Error::Gone));
    assert_eq!(rig.ram.shutdown(Shutdown::Normal), Err(Error::Gone));
    assert_eq!(rig.ram.shutdown(Shutdown::Dead), Ok(()));
    assert_eq!(rig.ram.stop(), Ok(()));
    assert!(rig.ram.create_queue(0, Some(0)).is_err());
    hal_gone(&rig, false);
    assert_eq!(rig.ram.start(), Ok(()));
    assert_eq!(rig.ram.create_queue(1, Some(1)).err(), Some(Error::Invalid));
}

fn hal_gone(rig: &Rig, gone: bool) {
    lld_ram::Backing::device(&rig.backing).set_gone(gone);
}

#[test]
fn an_allocation_that_fails_fails_cleanly() {
    for n in 0..20 {
        let rig = Rig::new(config());
        rig.platform.fail_allocations_after(n);
        match rig.ram.create_queue(0, Some(0)) {
            Ok(_) => {
                assert!(n > 5);
                return;
            }
            Err(error) => assert_eq!(error, Error::NoMemory),
        }
    }
    panic!("it needs more than 20 tables");
}
