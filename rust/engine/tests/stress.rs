// SPDX-License-Identifier: GPL-2.0
//! Real threads: submitters, devices, interrupts and a timer at once. Nothing stops that a wish for
//! a retry, or for the timer, does not start again.
#![cfg(not(loom))]

mod common;

use common::Rig;
use engine::Context;
use hal::CmdError;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use testkit::together;

const REQUESTS: u32 = if cfg!(miri) { 60 } else { 60_000 };
/// Of requests that are out at once.
const DEPTH: u32 = 48;

/// Runs `submitters` and two devices that interrupt against a queue of `tags`; `disturb` runs on a
/// thread of its own until all is over.
fn stress(tags: u16, submitters: u32, batch: u32, disturb: impl Fn(&Rig) + Sync) {
    let rig = Rig::new(tags, DEPTH as usize);
    let next = AtomicU32::new(0);
    // A thread may have slept since it read `submitted`; its exchange then fails.
    let outstanding = |submitted: u32| submitted.saturating_sub(rig.log.ended_count());
    together(|threads| {
        let over = threads.over();
        for _ in 0..submitters {
            let (over, next, rig) = (over.clone(), &next, &rig);
            threads.spawn(move || loop {
                // Together they never have more than DEPTH outstanding.
                let taken = next.fetch_update(SeqCst, SeqCst, |n| {
                    (n < REQUESTS && outstanding(n) + batch <= DEPTH).then_some(n + batch)
                });
                match taken {
                    Ok(first) if batch == 1 => {
                        rig.queue.submit(rig.rq(first), first % 3 == 0);
                        rig.queue.commit();
                    }
                    Ok(first) => rig.submit_many(first..first + batch),
                    Err(n) if n >= REQUESTS => return,
                    Err(_) if over.is_set() => return,
                    Err(_) => thread::yield_now(),
                }
            });
        }
        for _ in 0..2 {
            // An interrupt comes for a completion, and never without one.
            threads.keep(|| {
                let came = rig.device.complete_next(Ok(())).is_some();
                if came {
                    rig.queue.drain(Context::Irq);
                }
                came
            });
        }
        threads.keep(|| {
            if rig.log.retries.swap(0, SeqCst) != 0 {
                rig.queue.kick();
            }
            // The timer: what a context leaves behind for it, nobody else may come for.
            if rig.log.armed_us.swap(0, SeqCst) != 0 {
                rig.queue.tick();
            }
            disturb(&rig);
            false
        });
        threads.wait_for(REQUESTS as usize, || rig.log.ended_count() as usize);
    });
    rig.log.assert_each_once(REQUESTS);
    assert_eq!((rig.queue.in_flight(), rig.queue.queued()), (0, 0));
    assert_eq!(rig.queue.violations(), 0);
}

#[test]
fn one_tag() {
    stress(1, 2, 1, |_| {});
}

#[test]
fn fewer_tags_than_requests() {
    stress(7, 3, 1, |_| {});
}

#[test]
fn enough_tags() {
    stress(64, 2, 1, |_| {});
}

#[test]
fn batches() {
    stress(16, 2, 6, |_| {});
}

#[test]
fn mappings_that_fail_now_and_then() {
    stress(8, 2, 2, |rig| {
        rig.device
            .answer_binds([None, None, Some(CmdError::NotReady)])
    });
}

#[test]
fn resets_in_between() {
    stress(8, 2, 2, |rig| {
        if rig.log.ended_count() % 16 == 0 {
            let mut quiesced = rig.queue.quiesce(&rig.platform);
            quiesced.reap(CmdError::Timeout.retryable());
            quiesced.rewind();
            quiesced.unquiesce();
        }
    });
}
