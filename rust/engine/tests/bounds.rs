// SPDX-License-Identifier: GPL-2.0
//! What one context does for others before it leaves the rest, and who comes for that.
#![cfg(not(loom))]
#![allow(
    clippy::expect_used,
    reason = "a test states what it expects by failing loudly"
)]

mod common;

use common::Rig;
use engine::{Context, Mode, Next, Strategy, Switches, View};
use hal::TagBatch;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;

/// A strategy that looks wherever it may, and says how many to end.
struct Budget(usize);

impl Strategy for Budget {
    type Notes = ();
    type Predictor = ();

    fn predictor(&self) -> &() {
        &()
    }
    fn tracks(&self, _: &impl View, _: Switches) -> bool {
        true
    }
    fn polls_on_submit(&self, _: &impl View, _: Switches) -> bool {
        true
    }
    fn budget(&self, _: &impl View) -> usize {
        self.0
    }
}

const BATCH: u32 = TagBatch::<hal::Free>::MAX as u32;
/// Fewer would cost more to leave than to end.
const LEAST: u32 = 8;
const TAGS: u32 = 200;

/// What a strategy says, and what the engine makes of it.
const BUDGETS: [(usize, u32); 5] = [
    (0, LEAST),
    (LEAST as usize, LEAST),
    (LEAST as usize + 1, LEAST + 1),
    (BATCH as usize, BATCH),
    (usize::MAX, BATCH),
];

fn rig(budget: usize, mode: Mode) -> Arc<Rig<Budget>> {
    let rig = Rig::with(Budget(budget), TAGS as u16, 1024, 1);
    let mut quiesced = rig.queue.quiesce(&rig.platform);
    quiesced.set_mode(mode).expect("it can be polled");
    quiesced.unquiesce();
    rig.log.armed_us.store(0, SeqCst);
    Arc::new(rig)
}

/// So many have ended, and the device has so many.
fn counts(rig: &Rig<Budget>) -> (u32, u32) {
    (rig.log.ended_count(), rig.device.issued().len() as u32)
}

/// The tick that was armed comes; whether there was one, at once.
fn tick_at_once(rig: &Rig<Budget>) -> bool {
    let at_once = rig.log.armed_us.swap(0, SeqCst) == 1;
    if at_once {
        rig.queue.tick();
    }
    at_once
}

/// Others leave `others` requests in the FIFO while a request is issued, and go.
fn leave_behind(rig: &Arc<Rig<Budget>>, first: u32, others: u32) {
    let of_others = Arc::clone(rig);
    let come = move || of_others.submit_many(first..first + others);
    rig.log
        .meanwhile
        .lock()
        .expect("a lock")
        .replace(Box::new(come));
}

/// A submitter that others have left their requests to issues its own and a budget; each tick that
/// follows at once, a budget.
#[test]
fn a_submitter_issues_a_budget_for_others() {
    for mode in [Mode::Irq, Mode::Poll] {
        for (said, budget) in BUDGETS {
            let rig = rig(said, mode);
            leave_behind(&rig, 1, 150);
            rig.submit([0]);
            assert_eq!(counts(&rig), (0, 1 + budget.min(150)), "{mode:?}, {said}");
            let mut told = 1 + budget.min(150);
            while rig.queue.queued() != 0 {
                assert!(tick_at_once(&rig), "{mode:?}, {said}: nobody comes");
                told = (told + budget).min(151);
                assert_eq!(counts(&rig), (0, told), "{mode:?}, {said}");
            }
            assert!(!tick_at_once(&rig), "nothing is left");
            rig.complete_all();
            rig.log.assert_each_once(151);
        }
    }
}

/// Likewise a commit, and who submits several: those are its own.
#[test]
fn a_commit_and_a_batch_issue_a_budget_for_others() {
    let (said, budget) = BUDGETS[2];
    let rig = rig(said, Mode::Poll);
    rig.queue.submit(rig.rq(0), false);
    leave_behind(&rig, 1, 50);
    rig.queue.submit(rig.rq(51), false);
    rig.queue.commit();
    assert_eq!(counts(&rig).1, 2 + budget);
    while tick_at_once(&rig) {}
    assert_eq!(counts(&rig).1, 52);

    leave_behind(&rig, 52, 50);
    rig.submit_many(102..122);
    assert_eq!(counts(&rig).1, 52 + 20 + budget);
    while tick_at_once(&rig) {}
    assert_eq!(counts(&rig).1, 122);
    rig.complete_all();
    rig.log.assert_each_once(122);
}

/// Who ends some issues as many in their place: the device is kept as busy as the load is deep.
#[test]
fn whoever_frees_tags_fills_them() {
    type Visit = fn(&Rig<Budget>);
    let visits: [(&str, Visit); 3] = [
        ("a waiter", |rig| {
            assert_eq!(rig.queue.wait(&common::Alone, None), Next::Sleep);
        }),
        ("a passer-by", |rig| {
            // A look is due.
            let interval = u64::from(rig.queue.poll_interval_us()) * 1000;
            rig.log.now_ns.fetch_add(interval, SeqCst);
            rig.queue.poll_on_submit(common::COOP);
        }),
        ("a tick", |rig| rig.queue.tick()),
    ];
    for mode in [Mode::Irq, Mode::Poll] {
        for (who, visit) in visits {
            for (said, budget) in BUDGETS {
                let rig = rig(said, mode);
                rig.submit_many(0..4 * TAGS);
                rig.device.complete_all(Ok(()));
                rig.log.armed_us.store(0, SeqCst);
                visit(&rig);
                assert_eq!(counts(&rig), (budget, budget), "{mode:?}, {who}, {said}");
                let mut ended = budget;
                while ended < TAGS {
                    assert!(tick_at_once(&rig), "{mode:?}, {who}, {said}: nobody comes");
                    ended = (ended + budget).min(TAGS);
                    assert_eq!(counts(&rig), (ended, ended), "{mode:?}, {who}, {said}");
                }
                while rig.device.complete_all(Ok(())) != 0 {
                    rig.queue.drain(Context::Irq);
                }
                rig.log.assert_each_once(4 * TAGS);
            }
        }
    }
}

/// An interrupt ends what is there, and fills what it has freed.
#[test]
fn an_interrupt_ends_and_fills_a_ring() {
    let rig = rig(1, Mode::Irq);
    rig.submit_many(0..4 * TAGS);
    rig.device.complete_all(Ok(()));
    assert_eq!(rig.queue.drain(Context::Irq), TAGS as usize);
    assert_eq!(counts(&rig), (TAGS, TAGS));
    assert!(!tick_at_once(&rig), "nothing is left");
}

/// Whoever is there for that alone leaves nothing: what a closed gate has kept goes at once.
#[test]
fn a_kick_and_an_open_gate_issue_all() {
    let rig = rig(1, Mode::Irq);
    let quiesced = rig.queue.quiesce(&rig.platform);
    rig.submit(0..150);
    quiesced.unquiesce();
    assert_eq!((counts(&rig), rig.queue.queued()), ((0, 150), 0));
    assert!(!tick_at_once(&rig), "nothing is left");
}

/// Where no timer comes, and nobody else is certain to, the context goes on.
#[test]
fn without_a_timer_nothing_is_left() {
    let rig = rig(1, Mode::Irq);
    rig.log.no_timer.store(true, SeqCst);
    leave_behind(&rig, 1, 150);
    rig.submit([0]);
    assert_eq!((counts(&rig), rig.queue.queued()), ((0, 151), 0));
    rig.device.complete_all(Ok(()));
    rig.queue.wait(&common::Alone, None);
    rig.log.assert_each_once(151);
    assert_eq!(rig.log.armed_us.load(SeqCst), 0, "there is none");
}

/// An interrupt that came while a visit spent its budget is answered by the tick, whether anything
/// came or not: that may be what lets the device interrupt again.
#[test]
fn a_tick_answers_the_interrupt_that_a_visit_has_left() {
    let rig = rig(8, Mode::Irq);
    rig.submit(0..LEAST);
    rig.device.complete_all(Ok(()));
    let interrupted = Arc::clone(&rig);
    let interrupt = move || {
        interrupted.queue.drain(Context::Irq);
    };
    let mut ending = rig.log.ending.lock().expect("a lock");
    ending.replace(Box::new(interrupt));
    drop(ending);
    rig.queue.wait(&common::Alone, None);
    assert_eq!(counts(&rig), (LEAST, 0));
    let releases = rig.device.releases();
    assert!(tick_at_once(&rig), "nobody answers");
    assert_eq!(rig.device.releases(), releases + 1);
    assert!(!tick_at_once(&rig), "nothing is left");
}

/// Others knock all the time: in the end a tick is asked for, or a kick where there is none.
// Not under Miri, which would take minutes for so many.
#[cfg(not(miri))]
#[test]
fn a_drain_is_bounded_and_asks_for_the_rest() {
    for no_timer in [false, true] {
        let rig = Rig::with(Budget(8), 1200, 1200, 1);
        rig.log.no_timer.store(no_timer, SeqCst);
        rig.submit_many(0..1200);
        rig.device.complete_all(Ok(()));
        let ended = rig.queue.drain(Context::Irq);
        assert!((1024..1200).contains(&ended), "{ended} in one go");
        let asked = (rig.log.armed_us.load(SeqCst), rig.log.retries());
        assert_eq!(asked, if no_timer { (0, 1) } else { (1, 0) });
        while rig.log.armed_us.swap(0, SeqCst) != 0 {
            rig.queue.tick();
        }
        while rig.log.retries.swap(0, SeqCst) > 0 {
            rig.queue.kick();
        }
        rig.log.assert_each_once(1200);
    }
}

/// Who passes by and finds nothing does not put off the tick that requests are left to.
#[test]
fn the_tick_for_requests_is_put_off_by_nobody() {
    let rig = rig(8, Mode::Poll);
    leave_behind(&rig, 1, 50);
    rig.submit([0]);
    assert_eq!(rig.log.armed_us.load(SeqCst), 1);
    rig.queue.wait(&common::Alone, None);
    assert_eq!(rig.log.armed_us.load(SeqCst), 1);
}

/// Nor the one that completions are left to.
#[test]
fn what_is_left_is_put_off_by_nobody() {
    let rig = rig(8, Mode::Poll);
    rig.submit_many(0..100);
    rig.device.complete_all(Ok(()));
    rig.log.armed_us.store(0, SeqCst);
    let mut at_once = 0;
    for visit in 1..=6 {
        // Half an interval passes from one to the next.
        rig.log.now_ns.fetch_add(16_000, SeqCst);
        rig.queue.wait(&common::Alone, None);
        assert_eq!(rig.log.ended_count(), 8 * visit);
        at_once += u32::from(rig.log.armed_us.swap(0, SeqCst) == 1);
    }
    assert_eq!(at_once, 6, "each has left some");
    // Whoever takes the last of it puts the next tick off again.
    while rig.log.ended_count() < 96 {
        rig.queue.wait(&common::Alone, None);
    }
    assert_eq!(rig.log.armed_us.swap(0, SeqCst), 1);
    rig.submit([100]);
    rig.queue.wait(&common::Alone, None);
    assert_eq!(rig.log.ended_count(), 100);
    assert_eq!(
        rig.log.armed_us.load(SeqCst),
        engine::DEFAULT_POLL_INTERVAL_US
    );
}
