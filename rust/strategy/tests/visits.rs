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
use engine::{Mode, Next, DEFAULT_POLL_INTERVAL_US};
use hal::mock::MockPlatform;
use std::sync::atomic::Ordering::SeqCst;

/// More than two visits end, and fewer than three.
const READS: u32 = 20;
const VISIT: u32 = 8;

type Visit = fn(&Rig);

/// A queue whose device has finished all that it was told of, and nobody has looked.
fn finished(mode: Mode, reads: u32, batch: usize) -> Rig {
    let rig = Rig::gathering(128, 128, batch);
    let mut quiesced = rig.queue.quiesce(&MockPlatform::new());
    quiesced.set_mode(mode).unwrap();
    quiesced.unquiesce();
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
            let ended = rig.queue.yielded(false, &Alone);
            assert_eq!(rig.queue.wait(&Alone, ended), Next::Sleep);
        }),
        ("a passer-by", |rig| {
            wait_quarters(rig, 3);
            rig.queue.poll_on_submit(COOP);
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

/// Those who wait for the CPU come by, and if they do not, a tick does.
#[test]
fn what_an_interrupt_announced_is_left_to_those_in_line() {
    let rig = finished(Mode::Irq, READS, 8);
    rig.log.crowded.store(true, SeqCst);
    assert_eq!(rig.queue.wait(&Alone, None), Next::Sleep);
    assert_eq!(rig.log.ended_count(), VISIT);
    let soon = rig.log.armed_us.swap(0, SeqCst);
    assert!((2..=DEFAULT_POLL_INTERVAL_US).contains(&soon), "{soon}");
    // Who comes by again and leaves some does not put it off.
    assert_eq!(rig.queue.wait(&Alone, None), Next::Sleep);
    assert_eq!(rig.log.ended_count(), 2 * VISIT);
    assert_eq!(rig.log.armed_us.load(SeqCst), 0);
    rig.queue.tick();
    rig.log.assert_each_once(READS);
}

/// Those in line are given until the tick that would have come, and not an interval more.
#[test]
fn what_is_left_to_those_in_line_is_not_left_for_longer() {
    let rig = finished(Mode::Poll, READS, 8);
    rig.log.crowded.store(true, SeqCst);
    for ended in [VISIT, 2 * VISIT] {
        wait_quarters(&rig, 3);
        rig.log.armed_us.store(DEFAULT_POLL_INTERVAL_US / 4, SeqCst);
        rig.queue.wait(&Alone, None);
        assert_eq!(rig.log.ended_count(), ended);
        let soon = rig.log.armed_us.load(SeqCst);
        assert!(soon <= DEFAULT_POLL_INTERVAL_US / 4, "{soon}");
    }
}

/// Its interrupt does not come again for what it has announced: a tick is armed for it.
#[test]
fn a_visit_leaves_what_an_interrupt_announced_to_a_tick() {
    // More than a batch holds.
    let rig = finished(Mode::Irq, 100, 1);
    rig.queue.poll_on_submit(COOP);
    assert_eq!(rig.log.ended_count(), 0, "it is announced");
    rig.queue.wait(&Alone, None);
    let mut ticks = 0;
    while rig.log.armed_us.swap(0, SeqCst) == 1 {
        ticks += 1;
        assert_eq!(rig.log.ended_count(), ticks * VISIT);
        rig.queue.tick();
    }
    rig.log.assert_each_once(100);
}

/// Where there is no timer, nobody else comes.
#[test]
fn a_queue_without_a_timer_is_drained_whole() {
    let rig = finished(Mode::Irq, 100, 1);
    rig.log.no_timer.store(true, SeqCst);
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
    rig.queue.poll_on_submit(COOP);
    assert_eq!(
        (rig.log.ended_count(), rig.log.armed_us.load(SeqCst)),
        (0, 0)
    );
    wait_quarters(&rig, 1);
    rig.queue.poll_on_submit(COOP);
    assert_eq!(rig.log.ended_count(), 3);
    assert_eq!(rig.log.armed_us.load(SeqCst), DEFAULT_POLL_INTERVAL_US);
}
