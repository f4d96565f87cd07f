// SPDX-License-Identifier: GPL-2.0
//! The device as it should not be: nothing is lost, nothing ends twice, no wrong data, whatever it
//! reports.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod common;

use common::*;
use hal::{CmdError, Controller, Op, RetryHint};
use lld_ram::{Backing, Faults};
use std::sync::atomic::Ordering;

fn faults(rig: &Rig) -> &Faults {
    &rig.backing.device().faults
}

/// Writes and reads back many blocks; every one of them must come out right.
fn all_is_well(rig: &mut Rig) {
    let ids: Vec<usize> = (0..300)
        .map(|n| rig.submit(Op::Write, n, pattern(n as usize, 1)))
        .collect();
    rig.run();
    for id in ids {
        assert_eq!(rig.over(id).expect("it ended").outcome, Ok(()));
    }
    for n in 0..300 {
        let over = rig.one(Op::Read, n, vec![0; 512]);
        assert_eq!((over.outcome, over.data), (Ok(()), pattern(n as usize, 1)));
    }
    assert_eq!(rig.platform.bus().faults(), 0);
}

#[test]
fn reordered_and_delayed() {
    let mut rig = Rig::new(config());
    faults(&rig).reorder.one_in(2);
    faults(&rig).delay.one_in(5);
    faults(&rig).delay_ns.store(50_000, Ordering::Relaxed);
    all_is_well(&mut rig);
    assert_eq!(rig.io.violations(), 0);
}

#[test]
fn overtaken() {
    let mut rig = Rig::new(config());
    let slow = {
        faults(&rig).delay_ns.store(5000, Ordering::Relaxed);
        faults(&rig).delay.one_in(1);
        let id = rig.submit(Op::Read, 0, vec![0; 512]);
        faults(&rig).delay.one_in(0);
        id
    };
    let fast = rig.submit(Op::Read, 1, vec![0; 512]);
    let fired = rig.backing.to_next_timer();
    rig.ram.interrupt(fired[0]);
    rig.io.drain(engine::Context::Irq);
    assert!(rig.over(fast).is_some());
    assert!(rig.over(slow).is_none());
    rig.run();
    assert!(rig.over(slow).is_some());
}

#[test]
fn reported_twice() {
    let mut rig = Rig::new(config());
    faults(&rig).duplicate.one_in(3);
    all_is_well(&mut rig);
    // 600 commands, one in three of them twice.
    assert_eq!(rig.io.violations(), 200);
}

#[test]
fn all_of_it_over_a_link() {
    let mut rig = Rig::new(lld_ram::Config {
        write_latency: Some(lld_ram::Latency::Between(0, 9000)),
        link_mb_s: 300,
        ..config()
    });
    faults(&rig).reorder.one_in(2);
    faults(&rig).delay.one_in(5);
    faults(&rig).delay_ns.store(50_000, Ordering::Relaxed);
    faults(&rig).duplicate.one_in(3);
    faults(&rig).lie.one_in(7);
    all_is_well(&mut rig);
    assert!(rig.io.violations() > 200);
}

#[test]
fn lied_about() {
    let mut rig = Rig::new(config());
    faults(&rig).lie.one_in(1);
    all_is_well(&mut rig);
    assert_eq!(rig.io.violations(), 600);
}

#[test]
fn failed_for_now() {
    let mut rig = Rig::new(config());
    faults(&rig).fail.one_in(4);
    let ids: Vec<usize> = (0..100)
        .map(|n| rig.submit(Op::Write, n, pattern(n as usize, 1)))
        .collect();
    rig.run();
    let failed = (ids.into_iter())
        .map(|id| rig.over(id).expect("it ended").outcome)
        .filter(|outcome| *outcome == Err(CmdError::Io));
    assert_eq!(failed.count(), 25);
    let agains = rig.host.agains();
    assert_eq!(agains.len(), 25);
    assert!(agains.iter().all(|(_, again)| *again == RetryHint::Now));
    faults(&rig).fail.one_in(0);
    all_is_well(&mut rig);
}

#[test]
fn lost_and_recovered() {
    let mut rig = Rig::new(config());
    faults(&rig).drop.one_in(4);
    let ids: Vec<usize> = (0..100)
        .map(|n| rig.submit(Op::Write, n, pattern(n as usize, 1)))
        .collect();
    let (mut lost, mut resets) = (0, 0);
    while rig.io.in_flight() + rig.io.queued() != 0 {
        rig.run();
        // All tags are lost, or nothing is left to come: what a time-out finds.
        let mut quiesced = rig.io.quiesce(&rig.platform);
        rig.ram.stop().unwrap();
        quiesced.reap(CmdError::Timeout.retryable());
        quiesced.rewind();
        rig.ram.start().unwrap();
        quiesced.unquiesce();
        resets += 1;
        assert!(resets < 1000, "it does not come to an end");
    }
    for id in ids {
        match rig.over(id).expect("it ended").outcome {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error, CmdError::Timeout);
                lost += 1;
            }
        }
    }
    assert_eq!(lost, 25);
    faults(&rig).drop.one_in(0);
    all_is_well(&mut rig);
}

#[test]
fn stuck_until_aborted() {
    let mut rig = Rig::new(config());
    faults(&rig).hang.one_in(4);
    let ids: Vec<usize> = (0..100)
        .map(|n| rig.submit(Op::Write, n, pattern(n as usize, 1)))
        .collect();
    let mut aborts = 0;
    rig.run();
    while let Some(late) = rig.io.overdue(0, 0) {
        let queue = rig.io.hardware();
        assert_eq!(rig.ram.abort(queue, late.tag, 1), Ok(true));
        assert_eq!(rig.ram.abort(queue, late.tag, 1), Ok(false), "only once");
        rig.run();
        aborts += 1;
        assert!(aborts <= 100, "it does not come to an end");
    }
    assert_eq!(rig.io.in_flight() + rig.io.queued(), 0);
    let ended = ids.into_iter().map(|id| rig.over(id).expect("it ended"));
    let aborted = ended.filter(|over| match over.outcome {
        Ok(()) => false,
        Err(why) => why == CmdError::Aborted,
    });
    assert_eq!((aborted.count(), aborts), (25, 25));
    assert_eq!(rig.io.violations(), 0);
    faults(&rig).hang.one_in(0);
    assert_eq!(rig.ram.abort(rig.io.hardware(), 0, 1), Ok(false));
    all_is_well(&mut rig);
}

#[test]
fn pulled_in_the_middle() {
    let mut rig = Rig::new(config());
    let ids: Vec<usize> = (0..100)
        .map(|n| rig.submit(Op::Write, n, pattern(n as usize, 1)))
        .collect();
    rig.backing.device().set_gone(true);
    rig.run();
    let mut quiesced = rig.io.quiesce(&rig.platform);
    rig.ram.stop().unwrap();
    quiesced.reap(CmdError::Gone.permanent());
    quiesced.kill();
    for id in ids {
        assert_eq!(rig.over(id).expect("it ended").outcome, Err(CmdError::Gone));
    }
    let id = rig.submit(Op::Read, 0, vec![0; 512]);
    assert_eq!(rig.over(id).expect("at once").outcome, Err(CmdError::Gone));
    assert_eq!(rig.platform.bus().faults(), 0);
    // Nothing stays mapped.
    assert_eq!(rig.platform.bus().blocks_alive(), 0);
}

#[test]
fn a_lie_ends_nobody_early() {
    let mut rig = Rig::new(config());
    faults(&rig)
        .delay_ns
        .store(u64::MAX >> 1, Ordering::Relaxed);
    faults(&rig).delay.one_in(1);
    let slow = rig.submit(Op::Read, 0, vec![0; 512]);
    faults(&rig).delay.one_in(0);
    faults(&rig).lie.one_in(1);
    for n in 0..200 {
        let id = rig.submit(Op::Read, n, vec![0; 512]);
        while rig.over(id).is_none() {
            let fired = rig.backing.to_next_timer();
            fired.iter().for_each(|queue| {
                rig.ram.interrupt(*queue);
                rig.io.drain(engine::Context::Irq);
            });
        }
    }
    assert!(rig.over(slow).is_none());
    assert_eq!(rig.io.violations(), 200);
}
