// SPDX-License-Identifier: GPL-2.0
//! Which drains a strategy is told of, by which a hybrid queue is judged.
#![cfg(not(loom))]
#![allow(
    clippy::unwrap_used,
    reason = "a test states what it expects by failing loudly"
)]

mod common;

use common::Rig;
use engine::{Context, Drained, Mode, Strategy, View};
use std::sync::{Arc, Mutex};

/// A strategy that notes what it is told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Drained>>>);

impl Told {
    /// The drains, as how many they stand for and what these have ended.
    fn all(&self) -> Vec<(u32, usize)> {
        let told = self.0.lock().unwrap();
        assert!(told.iter().all(|drained| drained.by == Context::Irq));
        let counts = told.iter().map(|drained| (drained.drains, drained.ended));
        counts.collect()
    }
}

impl Strategy for Told {
    type Notes = ();
    type Predictor = ();

    fn predictor(&self) -> &() {
        &()
    }
    fn polls(&self, (): &mut (), view: &impl View, drained: Option<Drained>) -> bool {
        self.0.lock().unwrap().extend(drained);
        view.polling().is_on()
    }
}

/// A queue in `mode`, and what it tells.
fn rig(mode: Mode) -> (Rig<Told>, Told) {
    let told = Told::default();
    let rig = Rig::with(told.clone(), 32, 32, 1);
    let mut quiesced = rig.queue.quiesce(&rig.platform);
    quiesced.set_mode(mode).unwrap();
    quiesced.unquiesce();
    (rig, told)
}

/// What a queue in `mode` tells of so many `interrupts` for `each` commands.
fn told(mode: Mode, interrupts: u32, each: u32) -> Vec<(u32, usize)> {
    let (rig, told) = rig(mode);
    for interrupt in 0..interrupts {
        rig.submit_many(interrupt * each..(interrupt + 1) * each);
        rig.device.complete_all(Ok(()));
        rig.queue.drain(Context::Irq);
    }
    rig.log.assert_each_once(interrupts * each);
    told.all()
}

/// Telling is shared by eight interrupts at least, and by sixteen where each ended one command.
#[test]
fn interrupts_are_told_of_together() {
    for (each, drains, ended) in [(1, 16, 16), (2, 8, 16), (5, 8, 40)] {
        let all = told(Mode::Hybrid, 3 * drains, each);
        assert_eq!(all, [(drains, ended); 3], "{each} for each");
        assert_eq!(told(Mode::Hybrid, drains - 1, each), []);
    }
}

/// Those of a vector that other queues share are told of without commands, and stand for none of
/// those that end later.
#[test]
fn interrupts_for_nothing_are_told_of_too() {
    let (rig, told) = rig(Mode::Hybrid);
    for _ in 0..32 {
        rig.queue.drain(Context::Irq);
    }
    rig.submit_many(0..16);
    rig.complete_all();
    assert_eq!(told.all(), [(16, 0), (16, 0), (16, 16)]);
}

/// A queue that is not hybrid has nothing to decide.
#[test]
fn others_are_told_nothing() {
    assert_eq!(told(Mode::Irq, 48, 1), []);
}
