// SPDX-License-Identifier: GPL-2.0
//! Commands that wait for a batch, and who tells the device of them.
#![cfg(not(loom))]
#![allow(
    clippy::expect_used,
    reason = "a test states what it expects by failing loudly"
)]

#[path = "../../engine/tests/common/mod.rs"]
mod common;

use common::{Rig, COOP};
use engine::{Context, Mode, Next, View, Waiting};
use hal::CmdError;
use std::sync::atomic::Ordering::SeqCst;

const TAGS: u16 = 32;
const BATCH: u32 = 8;
/// The device has work enough where nobody waits for the CPU.
const FILLED: u32 = TAGS as u32 - BATCH;

/// No request of a test's.
const FIRST: u32 = u32::MAX;
/// What the device takes for a command: more than ten intervals of the timer.
const DEVICE_NS: u64 = 400_000;

/// A queue that is polled and dear to tell anything, and whose device took so long for the first
/// command.
fn rig_of(device_ns: u64) -> Rig {
    let rig = Rig::gathering(TAGS, 256, BATCH as usize);
    let mut quiesced = rig.queue.quiesce(&rig.platform);
    quiesced.set_mode(Mode::Poll).expect("it can be polled");
    quiesced.unquiesce();
    rig.submit([FIRST]);
    rig.log.now_ns.fetch_add(device_ns, SeqCst);
    rig.complete_one();
    // Nothing is outstanding: the timer rests.
    rig.queue.tick();
    rig.log.ended.lock().expect("nobody has failed").clear();
    rig.log.finished.lock().expect("nobody has failed").clear();
    rig
}

fn rig() -> Rig {
    rig_of(DEVICE_NS)
}

/// A queue whose device has work enough, and `held` commands that it was not told of.
fn holding(held: u32) -> Rig {
    holding_of(DEVICE_NS, held)
}

fn holding_of(device_ns: u64, held: u32) -> Rig {
    let rig = rig_of(device_ns);
    rig.submit(0..FILLED + held);
    assert_eq!(rig.at_device().len(), FILLED as usize);
    rig
}

/// A thread that waits.
struct Thread {
    may_yield: bool,
    may_poll: bool,
}

const POLITE: Thread = Thread {
    may_yield: true,
    may_poll: false,
};
const HURRIED: Thread = Thread {
    may_yield: false,
    may_poll: false,
};

impl Waiting for Thread {
    fn is_awake(&self) -> bool {
        false
    }

    fn pause(&self) -> bool {
        self.may_poll
    }

    fn may_yield(&self) -> bool {
        self.may_yield
    }
}

#[test]
fn nothing_is_held_that_is_cheap_to_tell() {
    let rig = Rig::new(TAGS, 256);
    rig.log.crowded.store(true, SeqCst);
    for id in 0..u32::from(TAGS) {
        rig.submit([id]);
        assert_eq!(rig.at_device().last(), Some(&id));
    }
}

#[test]
fn the_device_is_told_at_once_until_it_has_enough() {
    let rig = rig();
    for id in 0..FILLED {
        rig.submit([id]);
        assert_eq!(rig.at_device().last(), Some(&id));
    }
}

#[test]
fn a_batch_is_told_together() {
    let rig = holding(BATCH - 1);
    let doorbells = rig.device.doorbells();
    rig.submit([u32::from(TAGS) - 1]);
    assert!(rig.at_device().into_iter().eq(0..u32::from(TAGS)));
    assert_eq!(rig.device.doorbells(), doorbells + 1);
}

#[test]
fn who_drains_tells_a_device_that_has_no_longer_enough() {
    let rig = holding(3);
    rig.complete_one();
    assert!(rig.at_device().into_iter().eq(1..FILLED + 3));
}

#[test]
fn a_deep_load_keeps_the_device_filled() {
    let rig = rig();
    rig.submit(0..200);
    let mut least = u32::from(TAGS);
    let before = rig.device.doorbells();
    let mut ended = 0;
    // Until no more than a batch waits.
    while rig.queue.queued() > BATCH as usize {
        let step = DEVICE_NS / u64::from(FILLED);
        rig.log.now_ns.fetch_add(step, SeqCst);
        rig.complete_one().expect("it has enough");
        ended += 1;
        least = least.min(rig.at_device().len() as u32);
    }
    assert!(least >= FILLED, "{least}");
    let doorbells = rig.device.doorbells() - before;
    assert!(
        doorbells <= ended / BATCH as usize + 1,
        "{doorbells} for {ended}"
    );
    rig.complete_all();
    rig.log.assert_each_once(200);
}

#[test]
fn where_others_wait_for_the_cpu_a_batch_is_enough() {
    let rig = rig();
    rig.log.crowded.store(true, SeqCst);
    rig.submit(0..2 * BATCH - 1);
    assert_eq!(rig.at_device().len(), BATCH as usize);
    rig.submit([2 * BATCH - 1]);
    assert_eq!(rig.at_device().len(), 2 * BATCH as usize);
}

/// Such a queue on a CPU that others wait for.
fn polled() -> Rig {
    let rig = rig();
    rig.log.crowded.store(true, SeqCst);
    rig
}

#[test]
fn there_a_polled_queue_waits_for_a_batch_even_if_the_device_has_nothing() {
    let rig = polled();
    rig.submit(0..BATCH - 1);
    rig.queue.drain(Context::Coop);
    assert_eq!(rig.at_device(), []);
    rig.submit([BATCH - 1]);
    assert!(rig.at_device().into_iter().eq(0..BATCH));
}

#[test]
fn who_polls_tells_before() {
    let rig = polled();
    rig.submit(0..BATCH + 3);
    assert_eq!(rig.queue.wait(&POLITE, None), Next::Yield);
    assert_eq!(rig.at_device().len(), BATCH as usize);
    let patient = Thread {
        may_yield: false,
        may_poll: true,
    };
    rig.queue.wait(&patient, None);
    assert!(rig.at_device().into_iter().eq(0..BATCH + 3));
}

#[test]
fn a_tick_tells_what_nobody_has_added_to() {
    let rig = polled();
    rig.submit(0..3);
    rig.queue.tick();
    assert!(rig.at_device().into_iter().eq(0..3));
}

#[test]
fn who_sleeps_tells_even_where_others_wait() {
    let rig = polled();
    rig.submit(0..3);
    assert_eq!(rig.queue.wait(&HURRIED, None), Next::Sleep);
    assert!(rig.at_device().into_iter().eq(0..3));
}

#[test]
fn who_turns_polling_off_tells_what_was_held() {
    let rig = polled();
    rig.submit(0..3);
    let mut quiesced = rig.queue.quiesce(&rig.platform);
    quiesced.set_mode(Mode::Irq).expect("it can interrupt");
    quiesced.unquiesce();
    assert!(rig.at_device().into_iter().eq(0..3));
}

#[test]
fn ticks_that_give_polling_up_tell_what_was_held() {
    let rig = polled();
    let mut quiesced = rig.queue.quiesce(&rig.platform);
    quiesced.set_mode(Mode::Hybrid).expect("it can be either");
    quiesced.unquiesce();
    rig.submit(0..3);
    for _ in 0..10_000 {
        rig.queue.tick();
    }
    assert!(
        !rig.queue.polling().is_on(),
        "so many empty ticks are too dear"
    );
    rig.submit(3..5);
    assert!(rig.at_device().into_iter().eq(0..5));
}

#[test]
fn who_leaves_its_cpu_idle_tells_what_others_held() {
    let rig = rig();
    rig.log.crowded.store(true, SeqCst);
    rig.submit(0..BATCH + 1);
    assert_eq!(rig.queue.wait(&POLITE, None), Next::Yield);
    assert_eq!(rig.at_device().len(), BATCH as usize);
    rig.log.crowded.store(false, SeqCst);
    assert_eq!(rig.queue.wait(&HURRIED, None), Next::Sleep);
    assert_eq!(rig.at_device().len(), BATCH as usize + 1);
}

/// Nothing is late by more than a tenth of what the device takes, and no tick comes for it.
#[test]
fn a_device_that_answers_soon_is_told_at_once() {
    let rig = rig_of(DEVICE_NS / 2);
    rig.submit(0..u32::from(TAGS));
    assert_eq!(rig.at_device().len(), usize::from(TAGS));
}

#[test]
fn a_device_that_was_never_asked_is_told_at_once() {
    let rig = Rig::gathering(TAGS, 256, BATCH as usize);
    rig.submit(0..FILLED + 3);
    assert_eq!(rig.at_device().len(), FILLED as usize + 3);
}

/// Nor where the queue interrupts: no timer is certain to come.
#[test]
fn a_queue_that_interrupts_tells_at_once() {
    let rig = rig();
    let mut quiesced = rig.queue.quiesce(&rig.platform);
    quiesced.set_mode(Mode::Irq).expect("it can interrupt");
    quiesced.unquiesce();
    rig.submit(0..FILLED + 3);
    assert_eq!(rig.at_device().len(), FILLED as usize + 3);
}

/// The tick that comes for what is deferred is put off no further than to the end of its time, and
/// who looks shortly before tells the device.
#[test]
fn what_is_deferred_goes_in_time_whoever_passes_by() {
    let rig = holding_of(560_000, 3);
    rig.log.armed_us.store(0, SeqCst);
    let pass_by_after = |ns| {
        rig.log.now_ns.fetch_add(ns, SeqCst);
        rig.queue.poll_on_submit(COOP);
        rig.at_device().len() - FILLED as usize
    };
    assert_eq!(pass_by_after(30_000), 0);
    // A tenth of 560 us, from the first.
    let left_us = rig.log.armed_us.swap(0, SeqCst);
    assert!((25..=26).contains(&left_us), "{left_us}");
    assert_eq!(pass_by_after(17_000), 3, "the next look may be too late");
}

/// Between two looks that are due nobody looks, nor tells.
#[test]
fn who_passes_by_soon_after_leaves_what_is_deferred() {
    let rig = holding(3);
    rig.log.now_ns.fetch_add(20_000, SeqCst);
    rig.queue.poll_on_submit(COOP);
    assert_eq!(rig.at_device().len(), FILLED as usize);
}

/// Nobody passes by: the tick does it.
#[test]
fn the_tick_comes_in_time_for_what_is_deferred() {
    let rig = holding(3);
    assert!(rig.log.armed_us.load(SeqCst) <= 40);
    rig.queue.tick();
    assert_eq!(rig.at_device().len(), FILLED as usize + 3);
}

#[test]
fn a_reset_ends_what_was_held() {
    let rig = holding(3);
    let mut quiesced = rig.queue.quiesce(&rig.platform);
    quiesced.reap(CmdError::Aborted.retryable());
    quiesced.rewind();
    quiesced.unquiesce();
    rig.log.assert_each_once(FILLED + 3);
    rig.submit([FILLED + 3]);
    assert_eq!(rig.at_device(), [FILLED + 3], "nothing of before");
}

/// What the device was asked before a reset says nothing of how long it takes.
#[test]
fn a_reset_forgets_whose_time_was_taken() {
    let rig = rig();
    rig.submit([0]);
    let mut quiesced = rig.queue.quiesce(&rig.platform);
    quiesced.reap(CmdError::Aborted.retryable());
    quiesced.rewind();
    quiesced.unquiesce();
    rig.log.now_ns.fetch_add(30_000_000_000, SeqCst);
    let before = rig.queue.batching().most_ns();
    for id in 1..=u32::from(TAGS) {
        rig.submit([id]);
        rig.complete_one();
        assert!(rig.queue.batching().most_ns() <= before);
    }
}

#[test]
fn a_gate_that_opens_tells_what_was_held() {
    let rig = holding(3);
    let quiesced = rig.queue.quiesce(&rig.platform);
    rig.device.complete_all(Ok(()));
    quiesced.unquiesce();
    assert!(rig.at_device().into_iter().eq(FILLED..FILLED + 3));
}

#[test]
fn every_request_ends_once() {
    for (rig, crowded) in [(rig(), false), (rig(), true), (polled(), true)] {
        rig.log.crowded.store(crowded, SeqCst);
        for at in 0..64 {
            rig.submit_many(4 * at..4 * at + 3);
            rig.queue.submit(rig.rq(4 * at + 3), false);
            rig.queue.commit();
            if at % 3 == 0 {
                rig.complete_one();
                rig.queue.tick();
            }
        }
        rig.complete_all();
        rig.queue.tick();
        rig.complete_all();
        rig.log.assert_each_once(256);
    }
}
