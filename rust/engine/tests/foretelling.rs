// SPDX-License-Identifier: GPL-2.0
//! Which commands a strategy is asked about, and told of.
#![cfg(not(loom))]
#![allow(
    clippy::expect_used,
    reason = "a test states what it expects by failing loudly"
)]

mod common;

use common::Rig;
use engine::{Alone, Context, Predicted, Prediction, Predictor, Seen, Strategy, Switches, View};
use hal::Op;
use std::sync::Mutex;

/// A strategy that foretells every command, until it wants to be left alone.
#[derive(Default)]
struct Teller {
    /// It says so to the next question.
    pause: Mutex<Option<u16>>,
    asked: Mutex<u64>,
    /// The marks that were answered.
    answered: Mutex<Vec<u64>>,
}

impl Teller {
    fn pauses_for(&self, commands: u16) {
        self.pause.lock().expect("a lock").replace(commands);
    }
    fn asked(&self) -> u64 {
        *self.asked.lock().expect("a lock")
    }
    fn answered_marks(&self) -> Vec<u64> {
        core::mem::take(&mut self.answered.lock().expect("a lock"))
    }
}

impl Strategy for Teller {
    type Notes = ();
    type Predictor = Self;

    fn predictor(&self) -> &Self {
        self
    }
    fn tracks(&self, view: &impl View, _: Switches) -> bool {
        view.is_predicting()
    }
}

impl Predictor for Teller {
    fn issued(&self, _: &impl View, _: Op, _: u64, _: u64) -> Prediction {
        let mut asked = self.asked.lock().expect("a lock");
        *asked += 1;
        match self.pause.lock().expect("a lock").take() {
            Some(commands) => Prediction::NothingFor(commands),
            None => Prediction::This(Predicted {
                mark: *asked,
                due: None,
            }),
        }
    }

    fn completed(&self, _: &impl View, mark: u64, _: u64, _: Seen) {
        self.answered.lock().expect("a lock").push(mark);
    }

    fn next_poll(&self, _: &impl View, _: Option<Alone>) -> Option<u64> {
        None
    }
}

fn rig(tags: u16) -> Rig<Teller> {
    let rig = Rig::with(Teller::default(), tags, 64, 1);
    rig.queue.set_predicting(true);
    rig
}

/// One command after the other, from issue to answer.
fn go_through(rig: &Rig<Teller>, ids: core::ops::Range<u32>) {
    for id in ids {
        rig.submit([id]);
        rig.complete_all();
        rig.queue.drain(Context::Irq);
    }
}

#[test]
fn a_strategy_that_wants_to_be_left_alone_is_for_so_many_commands() {
    let rig = rig(1);
    let strategy = rig.queue.strategy();
    go_through(&rig, 0..3);
    assert_eq!(strategy.answered_marks(), [1, 2, 3]);
    strategy.pauses_for(5);
    go_through(&rig, 3..8);
    assert_eq!(
        strategy.asked(),
        4,
        "the one that quiesced it, and none of four"
    );
    assert!(strategy.answered_marks().is_empty());
    assert!(!rig.queue.tracks(Switches(0)), "it is still alone");
    assert!(rig.queue.is_predicting_wanted(), "what was set is read");
    go_through(&rig, 8..9);
    assert_eq!(strategy.asked(), 4);
    go_through(&rig, 9..11);
    assert_eq!(strategy.asked(), 6);
    assert_eq!(strategy.answered_marks(), [5, 6]);
    rig.log.assert_each_once(11);
}

/// What was issued before a pause and answered in it, or issued in it and answered afterwards, is
/// taken for nobody else's.
#[test]
fn nothing_is_mixed_up_over_a_pause() {
    let rig = rig(4);
    let strategy = rig.queue.strategy();
    rig.submit([0, 1]);
    strategy.pauses_for(2);
    rig.submit([2]);
    rig.complete_all();
    rig.queue.drain(Context::Irq);
    assert!(strategy.answered_marks().is_empty());
    // On tags that were foretold before.
    rig.submit([3, 4]);
    assert_eq!(strategy.asked(), 3);
    rig.submit([5]);
    assert_eq!(strategy.asked(), 4);
    rig.complete_all();
    rig.queue.drain(Context::Irq);
    assert_eq!(strategy.answered_marks(), [4]);
    rig.log.assert_each_once(6);
}

#[test]
fn what_is_turned_off_in_a_pause_stays_off() {
    let rig = rig(1);
    let strategy = rig.queue.strategy();
    strategy.pauses_for(2);
    go_through(&rig, 0..2);
    rig.queue.set_predicting(false);
    assert!(!rig.queue.is_predicting_wanted());
    go_through(&rig, 2..8);
    assert_eq!(strategy.asked(), 1);
    rig.queue.set_predicting(true);
    go_through(&rig, 8..9);
    assert_eq!(strategy.asked(), 2);
    assert_eq!(strategy.answered_marks(), [2]);
}
