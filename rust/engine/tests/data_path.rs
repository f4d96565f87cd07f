// SPDX-License-Identifier: GPL-2.0
//! One thread: direct issue, the FIFO, errors, doorbells, and what is refused.
#![cfg(not(loom))]

mod common;

use common::Rig;
use engine::{Context, IoQueue};
use hal::mock::{MockPlatform, MockQueue};
use hal::{CmdError, Error, Segment, TagBatch};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;
use strategy::Plain;

#[test]
fn one_request_goes_and_comes_back() {
    let rig = Rig::new(4, 4);
    rig.submit([7]);
    let [issued] = &rig.device.issued()[..] else {
        panic!("one command: {:?}", rig.device.issued());
    };
    assert_eq!((issued.command.lba, issued.command.blocks), (7, 1));
    let addr = 0x1_0000_0000 + 7 * 512;
    let halves = [
        Segment { addr, len: 256 },
        Segment {
            addr: addr + 256,
            len: 256,
        },
    ];
    assert_eq!(issued.data, halves);
    assert_eq!((rig.queue.in_flight(), rig.queue.queued()), (1, 0));
    assert_eq!(rig.log.ended(), [], "nothing ended yet");

    rig.device.complete_next(Err(CmdError::Medium));
    assert!(rig.queue.check());
    assert_eq!(rig.queue.drain(Context::Poll), 1);
    assert!(!rig.queue.check());
    assert_eq!(rig.log.ended(), [(7, Err(CmdError::Medium))]);
    assert_eq!(*rig.log.finished.lock().unwrap(), [(Context::Poll, 1)]);
    assert_eq!((rig.queue.in_flight(), rig.queue.violations()), (0, 0));
    assert_eq!(rig.log.deferred.load(SeqCst), 0, "it did not wait");
}

#[test]
fn a_drain_with_nothing_to_take_does_nothing() {
    let rig = Rig::new(4, 4);
    rig.submit([0]);
    let doorbells = rig.queue.doorbell_writes();
    for by in [Context::Coop, Context::Lazy, Context::Poll] {
        assert_eq!(rig.queue.drain(by), 0);
    }
    assert_eq!(
        (rig.queue.doorbell_writes(), rig.device.releases()),
        (doorbells, 0)
    );
    assert_eq!(*rig.log.finished.lock().unwrap(), []);
}

#[test]
fn every_interrupt_leads_to_a_release() {
    // On a level-triggered line that is what lets the device interrupt again, though nothing came
    // for this queue.
    let rig = Rig::new(4, 4);
    assert_eq!(rig.queue.drain(Context::Irq), 0);
    assert_eq!(rig.device.releases(), 1);
    let quiesced = rig.queue.quiesce(&rig.platform);
    assert_eq!(rig.queue.drain(Context::Irq), 0);
    assert_eq!(rig.device.releases(), 1);
    quiesced.unquiesce();
    assert_eq!(
        rig.device.releases(),
        2,
        "the holder does it for who knocked"
    );
}

#[test]
fn order_is_kept_when_the_layer_above_is_deeper_than_the_tags() {
    for (tags, depth) in [(1, 1), (1, 2), (3, 20), (1, 100), (32, 65), (65, 300)] {
        if cfg!(miri) && depth > 20 {
            break;
        }
        let rig = Rig::new(tags, depth);
        let count = depth as u32;
        rig.submit(0..count);
        assert_eq!(rig.queue.in_flight(), usize::from(tags).min(depth));
        assert_eq!(rig.queue.queued(), depth.saturating_sub(usize::from(tags)));
        assert!(
            rig.complete_all().into_iter().eq(0..count),
            "{tags} tags, {depth} deep"
        );
        rig.log.assert_each_once(count);
        assert_eq!(rig.log.retries(), 0);
    }
}

#[test]
fn a_newcomer_waits_behind_the_fifo() {
    let rig = Rig::new(1, 8);
    // 1 can't be mapped now, though a tag is free.
    rig.device
        .answer_binds([Some(CmdError::NotReady), Some(CmdError::NotReady)]);
    rig.submit([0, 1]);
    assert_eq!((rig.at_device(), rig.queue.queued()), (vec![], 2));
    rig.submit([2]);
    assert_eq!((rig.at_device(), rig.queue.queued()), (vec![0], 2));
    assert_eq!(rig.complete_all(), [0, 1, 2]);
    rig.log.assert_each_once(3);
}

#[test]
fn all_tags_freed_by_one_interrupt_are_used_by_it() {
    let rig = Rig::new(8, 64);
    rig.submit(0..24);
    assert_eq!(rig.device.complete_all(Ok(())), 8);
    let doorbells = rig.device.doorbells();
    assert_eq!(rig.queue.drain(Context::Irq), 8);
    assert!(rig.at_device().into_iter().eq(8..16));
    assert_eq!(
        rig.device.doorbells(),
        doorbells + 1,
        "one doorbell for the batch"
    );
    assert_eq!(
        *rig.log.finished.lock().unwrap(),
        [(Context::Irq, 8)],
        "one finish for the batch"
    );
}

#[test]
fn a_drain_takes_more_than_a_batch() {
    let batch = TagBatch::<hal::Free>::MAX as u32;
    for count in [batch + 1, batch, batch - 1, 3 * batch + 1] {
        if cfg!(miri) && count != batch + 1 {
            break;
        }
        let rig = Rig::new(count as u16, count as usize);
        rig.submit_many(0..count);
        rig.device.complete_all(Ok(()));
        assert_eq!(rig.queue.drain(Context::Irq), count as usize);
        rig.log.assert_each_once(count);
    }
}

#[test]
fn a_batch_has_one_doorbell() {
    let rig = Rig::new(64, 256);
    rig.submit_many(0..32);
    assert_eq!(
        (rig.device.doorbells(), rig.queue.doorbell_writes()),
        (1, 1)
    );
    assert!(rig.at_device().into_iter().eq(0..32));
    rig.submit_many(32..32);
    assert_eq!(rig.device.doorbells(), 1, "none for nothing");
    rig.submit_many(32..96);
    assert_eq!((rig.device.doorbells(), rig.queue.queued()), (2, 32));
    assert!(rig.complete_all().into_iter().eq(0..96));
    rig.log.assert_each_once(96);
}

#[test]
fn a_batch_larger_than_a_tag_batch_is_issued_in_order() {
    let rig = Rig::new(200, 200);
    rig.submit_many(0..200);
    assert_eq!(rig.device.doorbells(), 4, "200 in batches of 64");
    assert!(rig.at_device().into_iter().eq(0..200));
}

#[test]
fn what_is_not_last_waits_for_the_commit() {
    let rig = Rig::new(128, 128);
    for id in 0..5 {
        rig.queue.submit(rig.rq(id), false);
    }
    assert_eq!((rig.device.doorbells(), rig.queue.in_flight()), (0, 5));
    rig.queue.commit();
    assert_eq!(
        (rig.device.doorbells(), rig.at_device()),
        (1, vec![0, 1, 2, 3, 4])
    );
    rig.queue.commit();
    assert_eq!(rig.device.doorbells(), 1, "nothing was staged");
    // A last one takes the staged ones along; more than a batch does not wait.
    rig.queue.submit(rig.rq(5), false);
    rig.submit([6]);
    assert_eq!(rig.device.doorbells(), 2);
    for id in 7..7 + 65 {
        rig.queue.submit(rig.rq(id), false);
    }
    assert_eq!(
        (rig.device.doorbells(), rig.device.issued().len()),
        (3, 7 + 64)
    );
    rig.queue.commit();
    assert!(rig.complete_all().into_iter().eq(0..7 + 65));
}

#[test]
fn not_ready_is_retried_in_order() {
    let rig = Rig::new(4, 16);
    rig.log
        .map_errors
        .lock()
        .unwrap()
        .insert(1, CmdError::NotReady);
    rig.submit_many(0..4);
    assert_eq!(
        (rig.at_device(), rig.queue.queued(), rig.log.retries()),
        (vec![0], 3, 1)
    );
    assert_eq!(
        rig.log.unmapped.load(SeqCst),
        1,
        "the half mapping is undone"
    );
    rig.queue.kick();
    assert_eq!((rig.at_device(), rig.log.retries()), (vec![0, 1, 2, 3], 1));
    // Also from the FIFO's head, on a completion.
    rig.log
        .map_errors
        .lock()
        .unwrap()
        .insert(4, CmdError::NotReady);
    rig.submit(4..8);
    assert_eq!(rig.complete_one(), Some(0));
    assert_eq!((rig.at_device(), rig.log.retries()), (vec![1, 2, 3], 2));
    assert_eq!(rig.complete_one(), Some(1), "a completion retries as well");
    assert_eq!(rig.at_device(), [2, 3, 4, 5]);
    assert!(rig.complete_all().into_iter().eq(2..8));
    rig.log.assert_each_once(8);
}

#[test]
fn not_ready_for_good_asks_again_each_time_and_never_spins() {
    let rig = Rig::new(4, 16);
    rig.device.answer_binds([Some(CmdError::NotReady); 10]);
    rig.submit([0]);
    for tries in 2..=10 {
        rig.queue.kick();
        assert_eq!(rig.log.retries(), tries);
    }
    rig.queue.kick();
    assert_eq!((rig.at_device(), rig.log.retries()), (vec![0], 10));
}

#[test]
fn a_request_that_can_t_be_bound_ends_and_its_tag_is_free() {
    for from_fifo in [false, true] {
        let rig = Rig::new(1, 8);
        if from_fifo {
            rig.submit([0, 1, 2]);
            rig.log
                .map_errors
                .lock()
                .unwrap()
                .insert(1, CmdError::Invalid);
            rig.complete_one();
        } else {
            rig.log
                .map_errors
                .lock()
                .unwrap()
                .insert(1, CmdError::Invalid);
            rig.submit([0]);
            rig.complete_one();
            rig.submit([1, 2]);
        }
        assert_eq!(rig.log.ended(), [(0, Ok(())), (1, Err(CmdError::Invalid))]);
        assert_eq!(rig.at_device(), [2], "the one tag went on");
        let by = rig.log.finished.lock().unwrap().clone();
        assert!(by.contains(&(Context::Sweep, 1)), "{by:?}");
        rig.complete_all();
        rig.log.assert_each_once(3);
    }
}

#[test]
fn more_than_the_depth_is_an_error_not_a_loss() {
    let rig = Rig::new(1, 2);
    rig.submit(0..4);
    assert_eq!(
        rig.log.ended(),
        [(3, Err(CmdError::Io))],
        "one issued, two waiting, one too many"
    );
    assert_eq!(rig.complete_all(), [0, 1, 2]);
    rig.log.assert_each_once(4);
}

#[test]
fn the_fifo_s_indices_go_round() {
    let rig = Rig::new(1, 3);
    rig.submit(0..3);
    let rounds = if cfg!(miri) { 20 } else { 1000 };
    for id in 3..rounds {
        assert_eq!(rig.complete_one(), Some(id - 3));
        rig.submit([id]);
    }
    rig.complete_all();
    rig.log.assert_each_once(rounds);
}

#[test]
fn what_may_not_wait_is_given_back_until_a_tag_is_free() {
    let rig = Rig::new(2, 8);
    let offer = |id| match rig.queue.try_submit(rig.rq(id), true) {
        Ok(()) => None,
        Err(rq) => Some(rq),
    };
    assert!(offer(0).is_none() && offer(1).is_none());
    let back = offer(2).unwrap();
    assert!(!back.begun && !back.mapped);
    assert_eq!(rig.queue.queued(), 0);
    assert_eq!(rig.complete_one(), Some(0));
    assert!(rig.queue.try_submit(back, true).is_ok());
    assert_eq!(rig.complete_all(), [1, 2]);
    rig.log.assert_each_once(3);
}

#[test]
fn what_new_refuses() {
    let platform = MockPlatform::new();
    let make = |depth| {
        let (hw, _) = MockQueue::new(&platform, 2)?;
        let upper = common::Recorder(Arc::default());
        IoQueue::<MockPlatform, _, _, _>::new(&platform, hw, upper, Plain, depth).map(|_| ())
    };
    assert_eq!(make(0), Err(Error::Invalid));
    assert_eq!(make(usize::MAX), Err(Error::Invalid));
    assert_eq!(make(1), Ok(()));
    // Every allocation that can fail.
    for left in 0.. {
        platform.fail_allocations_after(left);
        match make(1) {
            Ok(()) => {
                assert!(left > 4, "{left} allocations");
                break;
            }
            Err(why) => assert_eq!(why, Error::NoMemory),
        }
    }
}
