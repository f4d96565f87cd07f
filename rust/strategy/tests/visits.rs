// SPDX-License-Identifier: GPL-2.0
//! What one visit to a polled queue ends, and who comes for the rest.
#![cfg(not(loom))]
#![allow(
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

#[path = "../../engine/tests/common/mod.rs"]
mod common;

use common::{Alone, Rig, COOP};
use engine::{Mode, Next, Turn, DEFAULT_POLL_INTERVAL_US};
use hal::mock::MockPlatform;
use std::sync::atomic::Ordering::SeqCst;

/// More than two visits end, and fewer than three.
const READS: u32 = 20;
const VISIT: u32 = 8;

type Visit = fn(&Rig);

/// A queue whose device has finished all that it was told of, and nobody has looked.
fn finished(mode: Mode, reads: u32, batch: usize) -> Rig {
    let rig = Rig::gathering(128, 128, batch);
    let mut paused = rig.queue.pause(&MockPlatform::new());
    paused.set_mode(mode).unwrap();
    paused.resume();
    rig.submit(0..reads);
    while rig.device.complete_next(Ok(())).is_some() {}
    rig
}

/// Nobody looks for so many quarters of an interval.
fn wait_quarters(rig: &Rig, quarters: u64) {
    let quarter = u64::from(DEFAULT_POLL_INTERVAL_US) * 1000 / 4;
    rig.log.now_ns.fetch_add(quarters * quarter, SeqCst);
}

#[test]
fn whoever_visits_ends_eight_and_whoever_comes_next_goes_on() {
    let visits: [(&str, Visit); 4] = [
        ("a waiter", |rig| {
            assert_eq!(rig.queue.wait(&Alone, None), Next::Sleep);
        }),
        ("a waiter whose turn came again", |rig| {
            let ended = rig.queue.yielded(Turn::Vain, &Alone);
            assert_eq!(rig.queue.wait(&Alone, ended), Next::Sleep);
        }),
        ("a passer-by", |rig| {
            wait_quarters(rig, 3);
            rig.queue.pass_by(COOP);
        }),
        ("the timer", |rig| rig.queue.tick()),
    ];
    for (who, visit) in visits {
        let rig = finished(Mode::Poll, READS, 1);
        visit(&rig);
        assert_eq!(rig.log.ended_count(), VISIT, "{who}");
        visit(&rig);
        assert_eq!(rig.log.ended_count(), 2 * VISIT, "{who}");
        visit(&rig);
        rig.log.assert_each_once(READS);
    }
}

/// Those who wait for the CPU come by, and if they do not, it is asked for later.
#[test]
fn what_an_interrupt_announced_is_left_to_those_in_line() {
    let rig = finished(Mode::Irq, READS, 8);
    rig.log.crowded.store(true, SeqCst);
    assert_eq!(rig.queue.wait(&Alone, None), Next::Sleep);
    assert_eq!(rig.log.ended_count(), VISIT);
    assert_eq!(rig.log.retries(), 1);
    rig.queue.kick();
    rig.log.assert_each_once(READS);
}

/// Its interrupt does not come again for what it has announced, and nobody else does.
#[test]
fn a_queue_that_interrupts_is_drained_whole() {
    // More than a batch holds.
    let rig = finished(Mode::Irq, 100, 1);
    rig.queue.pass_by(COOP);
    assert_eq!(rig.log.ended_count(), 0, "it is announced");
    rig.queue.wait(&Alone, None);
    rig.log.assert_each_once(100);
}

/// Nobody is kept from the CPU for long, and nothing lies for another interval.
#[test]
fn the_tick_comes_again_at_once_for_what_a_visit_has_left() {
    let rig = finished(Mode::Poll, READS, 1);
    let mut ticks = 0;
    while rig.log.ended_count() < READS {
        rig.log.armed_us.store(0, SeqCst);
        rig.queue.tick();
        ticks += 1;
        let soon = u32::from(rig.log.ended_count() < READS);
        assert_eq!(rig.log.armed_us.load(SeqCst), soon, "after {ticks}");
    }
    assert_eq!(ticks, READS.div_ceil(VISIT));
}

/// Who passes by looks where nobody has for most of an interval, and puts the next tick off.
#[test]
fn while_threads_pass_by_there_are_no_ticks() {
    let rig = finished(Mode::Poll, 3, 1);
    rig.log.armed_us.store(0, SeqCst);
    wait_quarters(&rig, 2);
    rig.queue.pass_by(COOP);
    assert_eq!(
        (rig.log.ended_count(), rig.log.armed_us.load(SeqCst)),
        (0, 0)
    );
    wait_quarters(&rig, 1);
    rig.queue.pass_by(COOP);
    assert_eq!(rig.log.ended_count(), 3);
    assert_eq!(rig.log.armed_us.load(SeqCst), DEFAULT_POLL_INTERVAL_US);
}
