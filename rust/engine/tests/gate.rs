// SPDX-License-Identifier: GPL-2.0
//! Pause, reap, rewind, resume, kill.
#![cfg(not(loom))]

mod common;

use common::Rig;
use engine::Context;
use hal::{CmdError, Failure, RetryHint};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use testkit::together;

#[test]
fn nothing_passes_a_paused_gate() {
    let rig = Rig::new(4, 16);
    rig.submit([0]);
    let quiesced = rig.queue.quiesce(&rig.platform);
    rig.submit([1]);
    rig.submit_many(2..4);
    rig.queue.commit();
    rig.queue.kick();
    rig.device.complete_next(Ok(()));
    assert_eq!(rig.queue.drain(Context::Irq), 0);
    assert!(!rig.queue.check());
    assert_eq!(
        (rig.at_device(), rig.queue.queued(), rig.log.ended()),
        (vec![], 3, vec![])
    );
    quiesced.unquiesce();
    assert_eq!(
        rig.log.ended(),
        [(0, Ok(()))],
        "the completion was not lost"
    );
    assert_eq!((rig.at_device(), rig.queue.queued()), (vec![1, 2, 3], 0));
    rig.complete_all();
    rig.log.assert_each_once(4);
}

#[test]
fn a_commit_at_a_paused_gate_is_made_good() {
    let rig = Rig::new(4, 16);
    rig.queue.submit(rig.rq(0), false);
    let quiesced = rig.queue.quiesce(&rig.platform);
    rig.queue.commit();
    assert_eq!(rig.device.doorbells(), 0);
    quiesced.unquiesce();
    assert_eq!((rig.at_device(), rig.device.doorbells()), (vec![0], 1));
}

#[test]
fn dropping_a_pause_resumes() {
    let rig = Rig::new(4, 16);
    let quiesced = rig.queue.quiesce(&rig.platform);
    rig.submit([0]);
    drop(quiesced);
    assert_eq!(rig.at_device(), [0]);
}

#[test]
fn a_gate_that_is_kept_closed_is_taken_over_once() {
    let rig = Rig::new(4, 16);
    assert!(rig.queue.kept_closed().is_none(), "it is open");
    let quiesced = rig.queue.quiesce(&rig.platform);
    assert!(rig.queue.kept_closed().is_none(), "it is another's");
    quiesced.keep_closed();
    rig.submit([0]);
    rig.queue.kick();
    assert_eq!((rig.at_device(), rig.queue.queued()), (vec![], 1));
    let kept = rig.queue.kept_closed().expect("it was kept closed");
    assert!(rig.queue.kept_closed().is_none(), "two have it");
    kept.unquiesce();
    assert_eq!(rig.at_device(), [0]);
}

#[test]
fn a_reset_fails_what_was_issued_and_issues_what_waited() {
    let rig = Rig::new(4, 16);
    rig.submit(0..6);
    let mut quiesced = rig.queue.quiesce(&rig.platform);
    rig.submit([6]);
    quiesced.reap(CmdError::Timeout.retryable());
    let mut failed = rig.log.ended();
    failed.sort_unstable_by_key(|ended| ended.0);
    let timeout = Err(CmdError::Timeout);
    assert_eq!(
        failed,
        [(0, timeout), (1, timeout), (2, timeout), (3, timeout)]
    );
    assert_eq!(*rig.log.finished.lock().unwrap(), [(Context::Sweep, 4)]);
    quiesced.rewind();
    assert_eq!((rig.at_device(), rig.queue.queued()), (vec![], 3));
    quiesced.unquiesce();
    assert_eq!(rig.at_device(), [4, 5, 6]);
    rig.complete_all();
    rig.log.assert_each_once(7);
    assert_eq!(rig.queue.violations(), 0);
}

#[test]
fn what_a_reset_or_a_removal_ends_is_not_cooperation() {
    let rig = Rig::new(4, 16);
    // Finished and not taken, with the device, staged, and in the FIFO.
    rig.submit(0..3);
    rig.device.complete_next(Ok(()));
    rig.queue.submit(rig.rq(3), false);
    rig.submit([4]);
    let mut quiesced = rig.queue.quiesce(&rig.platform);
    quiesced.reap(CmdError::Timeout.retryable());
    quiesced.rewind();
    quiesced.unquiesce();
    let mut expected = vec![(Context::Sweep, 4)];
    // What nobody came for; and what a thread takes in passing, to compare with.
    rig.device.complete_next(Ok(()));
    rig.queue.kick();
    rig.submit([5]);
    rig.device.complete_next(Ok(()));
    rig.queue.drain(Context::Coop);
    expected.extend([(Context::Sweep, 1), (Context::Coop, 1)]);
    // The end, of what has a tag and of what waits; and what comes after it.
    rig.submit(6..12);
    let mut quiesced = rig.queue.quiesce(&rig.platform);
    quiesced.reap(CmdError::Gone.permanent());
    quiesced.kill();
    rig.submit([12]);
    expected.extend([4, 2, 1].map(|ended| (Context::Sweep, ended)));
    assert_eq!(*rig.log.finished.lock().unwrap(), expected);
    rig.log.assert_each_once(13);
}

#[test]
fn a_reap_keeps_the_outcome_of_what_the_device_finished() {
    let rig = Rig::new(4, 16);
    rig.submit(0..3);
    rig.device.complete_next(Ok(()));
    rig.device.complete_next(Err(CmdError::Medium));
    let mut quiesced = rig.queue.quiesce(&rig.platform);
    quiesced.reap(CmdError::Timeout.retryable());
    let outcomes = [
        (0, Ok(())),
        (1, Err(CmdError::Medium)),
        (2, Err(CmdError::Timeout)),
    ];
    assert_eq!(rig.log.ended(), outcomes);
}

#[test]
fn a_reap_takes_what_was_staged_and_never_told() {
    let rig = Rig::new(4, 16);
    rig.queue.submit(rig.rq(0), false);
    rig.queue.submit(rig.rq(1), false);
    let mut quiesced = rig.queue.quiesce(&rig.platform);
    quiesced.reap(CmdError::Aborted.retryable());
    let agains = rig.log.agains.lock().unwrap().clone();
    assert_eq!(
        agains,
        [(0, RetryHint::NotIssued), (1, RetryHint::NotIssued)]
    );
    quiesced.rewind();
    quiesced.unquiesce();
    rig.queue.commit();
    assert_eq!((rig.at_device(), rig.device.doorbells()), (vec![], 0));
    rig.log.assert_each_once(2);
    rig.submit(2..6);
    assert_eq!(rig.queue.in_flight(), 4, "all tags are back");
}

#[test]
fn a_reap_says_of_each_whether_it_was_tried() {
    // Request 2 is staged, 3 waits in the FIFO.
    for (why, told, staged) in [
        (
            CmdError::Timeout.retryable(),
            RetryHint::Now,
            RetryHint::NotIssued,
        ),
        (
            CmdError::Gone.permanent(),
            RetryHint::Never,
            RetryHint::Never,
        ),
    ] {
        let rig = Rig::new(3, 16);
        rig.submit(0..2);
        rig.queue.submit(rig.rq(2), false);
        rig.queue.submit(rig.rq(3), false);
        let mut quiesced = rig.queue.quiesce(&rig.platform);
        quiesced.reap(why);
        let mut agains = rig.log.agains.lock().unwrap().clone();
        agains.sort_unstable_by_key(|again| again.0);
        assert_eq!(agains, [(0, told), (1, told), (2, staged)]);
        assert_eq!(rig.queue.queued(), 1, "nothing became of what waits");
    }
}

#[test]
fn what_a_device_asks_for_comes_up() {
    let rig = Rig::new(3, 16);
    let agains = [RetryHint::Never, RetryHint::Now, RetryHint::After(7)];
    rig.submit(0..3);
    for again in agains {
        let error = CmdError::NotReady;
        rig.device.end_next(Err(Failure {
            error,
            retry: again,
        }));
    }
    rig.queue.drain(Context::Irq);
    let expected: Vec<_> = (0..).zip(agains).collect();
    assert_eq!(*rig.log.agains.lock().unwrap(), expected);
}

#[test]
fn a_reap_of_more_than_a_batch() {
    for count in [65, 64, 63, 200] {
        if cfg!(miri) && count != 65 {
            break;
        }
        let rig = Rig::new(count as u16, count as usize);
        rig.submit_many(0..count);
        rig.queue
            .quiesce(&rig.platform)
            .reap(CmdError::Timeout.retryable());
        rig.log.assert_each_once(count);
        rig.submit_many(count..2 * count);
        assert_eq!(
            rig.queue.in_flight(),
            count as usize,
            "all tags are back without a rewind"
        );
    }
}

#[test]
fn a_dead_queue_fails_the_fifo_and_all_that_come() {
    let rig = Rig::new(2, 300);
    rig.submit(0..250);
    let mut quiesced = rig.queue.quiesce(&rig.platform);
    quiesced.reap(CmdError::Gone.permanent());
    quiesced.kill();
    rig.log.assert_each_once(250);
    rig.submit(250..252);
    rig.submit_many(252..255);
    rig.queue.submit(rig.rq(255), false);
    rig.queue.commit();
    rig.log.assert_each_once(256);
    assert!(rig
        .log
        .ended()
        .iter()
        .all(|ended| ended.1 == Err(CmdError::Gone)));
    assert_eq!((rig.queue.in_flight(), rig.queue.queued()), (0, 0));
    assert_eq!(
        rig.device.doorbells(),
        1 + 1,
        "nothing was told after the first two"
    );
}

#[test]
fn completions_after_a_rewind_answer_nothing() {
    let rig = Rig::new(2, 8);
    rig.submit(0..2);
    let stale = rig.device.issued();
    let mut quiesced = rig.queue.quiesce(&rig.platform);
    quiesced.reap(CmdError::Timeout.retryable());
    quiesced.rewind();
    quiesced.unquiesce();
    for issued in stale {
        rig.device.post(issued.number, Ok(()));
    }
    assert_eq!(rig.queue.drain(Context::Irq), 0);
    assert_eq!(rig.queue.violations(), 2);
    rig.log.assert_each_once(2);
}

#[test]
fn a_rewind_starts_the_count_of_lies_anew() {
    let rig = Rig::new(2, 8);
    (0..5).for_each(|_| rig.device.post(1, Ok(())));
    rig.queue.drain(Context::Irq);
    assert_eq!(rig.queue.violations(), 5);
    let mut quiesced = rig.queue.quiesce(&rig.platform);
    quiesced.reap(CmdError::Timeout.retryable());
    quiesced.rewind();
    assert_eq!(
        rig.queue.violations(),
        0,
        "seen at once, not after the next drain"
    );
    quiesced.unquiesce();
    rig.device.post(1, Ok(()));
    rig.queue.drain(Context::Irq);
    assert_eq!(rig.queue.violations(), 1);
}

#[test]
fn a_pause_waits_for_the_holders_and_ends_under_load() {
    let rig = Rig::new(4, 64);
    let stop = AtomicBool::new(false);
    together(|threads| {
        let (over, stop, rig) = (threads.over(), &stop, &rig);
        let busy = threads.spawn(move || {
            let stopped = || stop.load(SeqCst) || over.is_set();
            let mut next = 0;
            while !stopped() {
                rig.submit([next]);
                next += 1;
                while rig.queue.queued() > 8 && !stopped() {
                    rig.complete_one();
                    thread::yield_now();
                }
            }
            next
        });
        for _ in 0..if cfg!(miri) { 2 } else { 50 } {
            let mut quiesced = rig.queue.quiesce(&rig.platform);
            quiesced.reap(CmdError::Aborted.retryable());
            quiesced.rewind();
            assert_eq!(rig.queue.in_flight(), 0);
            quiesced.unquiesce();
        }
        stop.store(true, SeqCst);
        let count = busy.join().unwrap();
        rig.complete_all();
        rig.log.assert_each_once(count);
    });
}
