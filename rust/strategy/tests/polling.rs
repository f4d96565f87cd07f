// SPDX-License-Identifier: GPL-2.0
//! One thread: a queue goes from polling to interrupts.
#![cfg(not(loom))]
#![allow(
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

#[path = "../../engine/tests/common/mod.rs"]
mod common;

use common::{Rig, COOP};
use engine::{Mode, View, DEFAULT_POLL_INTERVAL_US};
use hal::mock::MockPlatform;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;

/// A hybrid queue that is polled, with one command at the device.
fn polled() -> Rig {
    let rig = Rig::new(4, 4);
    let mut quiesced = rig.queue.quiesce(&MockPlatform::new());
    quiesced.set_mode(Mode::Poll).unwrap();
    quiesced.set_mode(Mode::Hybrid).unwrap();
    quiesced.unquiesce();
    rig.submit([0]);
    assert!(rig.queue.polling().is_on());
    rig
}

/// Whoever gives polling up looks once more: what comes before the interrupt is on is announced by
/// nobody.
#[test]
fn empty_ticks_give_up_and_lose_nothing() {
    let rig = polled();
    *rig.log.just_before.lock().unwrap() = Some(Arc::clone(&rig.device));
    for _ in 0..10_000 {
        if !rig.queue.polling().is_on() {
            break;
        }
        assert_eq!(rig.log.ended_count(), 0);
        rig.queue.tick();
    }
    assert!(
        !rig.queue.polling().is_on(),
        "so many empty ticks are too dear"
    );
    rig.log.assert_each_once(1);
}

/// The same when it is the operator who turns the interrupt on.
#[test]
fn a_change_of_mode_loses_nothing() {
    let rig = polled();
    *rig.log.just_before.lock().unwrap() = Some(Arc::clone(&rig.device));
    let mut quiesced = rig.queue.quiesce(&MockPlatform::new());
    quiesced.set_mode(Mode::Irq).unwrap();
    quiesced.unquiesce();
    rig.log.assert_each_once(1);
}

/// However often a tick has found nothing, or others have taken what there was: the next completion
/// is noticed within the interval.
#[test]
fn ticks_keep_their_interval_while_anything_is_outstanding() {
    let rig = Rig::new(8, 8);
    let mut quiesced = rig.queue.quiesce(&MockPlatform::new());
    quiesced.set_mode(Mode::Poll).unwrap();
    quiesced.unquiesce();
    rig.submit(0..4);
    let next = |rig: &Rig| {
        rig.log.armed_us.store(0, SeqCst);
        rig.queue.tick();
        rig.log.armed_us.load(SeqCst)
    };
    for _ in 0..100 {
        assert_eq!(next(&rig), DEFAULT_POLL_INTERVAL_US, "nothing came");
    }
    for _ in 0..3 {
        assert!(rig.device.complete_next(Ok(())).is_some());
        rig.queue.poll_on_submit(COOP);
        assert_eq!(next(&rig), DEFAULT_POLL_INTERVAL_US, "others took it");
    }
    assert!(rig.device.complete_next(Ok(())).is_some());
    assert_eq!(next(&rig), 0, "nothing is outstanding");
}
