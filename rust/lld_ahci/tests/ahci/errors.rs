// SPDX-License-Identifier: GPL-2.0
//! Errors that drives and links report: exactly what failed fails, everything else goes on.

use crate::model::config::Bad;
use crate::model::{Config, Drive};
use crate::rig::{read, reads, Queue, Rig};
use crate::whole::run_eh;
use engine::Context;
use hal::{CmdError, Controller, RetryHint};
use lld_ahci::EhOutcome;
use std::sync::Arc;
use testkit::{Ended, Host, Job};

pub const MEDIUM: u16 = 0x4041;

pub fn bad(lba: u64, tfd: u16) -> Bad {
    Bad {
        lba,
        tfd,
        times: usize::MAX,
    }
}

pub fn with_bad(bad: Vec<Bad>) -> Drive {
    Drive {
        bad,
        ..Drive::new(9, 256)
    }
}

/// A rig with `count` reads told at once, of blocks 0 and up.
pub fn reading(config: Config, count: usize) -> (Rig, Arc<Host>, Queue) {
    let rig = Rig::started(config);
    let (host, queue) = rig.io();
    rig.model.state().hold = true;
    queue.submit_many(reads(count));
    rig.model.state().hold = false;
    rig.model.run();
    (rig, host, queue)
}

/// What an interrupt and the work that it calls for come to. Returns how often the port called.
#[track_caller]
pub fn serve(rig: &Rig, queue: &Queue) -> usize {
    for calls in 0..100 {
        rig.interrupts(|_| {
            queue.drain(Context::Irq);
        });
        if rig.places[0].calls() == 0 {
            return calls;
        }
        assert!(rig.ahci[0].is_eh_pending());
        assert_eq!(run_eh(rig, queue), Ok(EhOutcome::Recovered));
    }
    panic!("it never gets well");
}

#[track_caller]
pub fn only(ended: Vec<(usize, Ended)>, count: usize, failed: &[(usize, CmdError)]) {
    let expected: Vec<(usize, Ended)> = (0..count)
        .map(|id| {
            let failed = failed.iter().find(|(at, _)| *at == id);
            (id, failed.map_or(Ok(()), |(_, why)| Err(*why)))
        })
        .collect();
    assert_eq!(ended, expected);
}

#[test]
fn the_log_names_the_one_that_failed() {
    for (tfd, why, again) in [
        (MEDIUM, CmdError::Medium, RetryHint::Never),
        (0x1041, CmdError::Range, RetryHint::Now),
        (0x8441, CmdError::Io, RetryHint::Now),
        (0x0061, CmdError::Fault, RetryHint::Now),
    ] {
        for (batches, reverses) in [(true, false), (false, true)] {
            let (rig, host, queue) = reading(
                Config {
                    batches,
                    reverses,
                    ..Config::with(with_bad(vec![bad(7, tfd)]))
                },
                20,
            );
            assert_eq!(serve(&rig, &queue), 1);
            only(host.outcomes(), 20, &[(7, why)]);
            assert_eq!(host.agains(), [(7, again)], "{tfd:#x}");
            // Read once, and nothing that was done is done again.
            let log = rig.model.state().log.clone();
            let logs = log.iter().filter(|taken| taken.command == 0x2f);
            assert_eq!(logs.count(), 1);
            let resets = rig.model.state().ports[0].resets;
            assert_eq!(resets, 0, "no reset of the link");
            rig.model.check();
        }
    }
}

#[test]
fn an_error_that_a_later_answer_covers_is_seen_by_its_code() {
    let (rig, host, queue) = reading(Config::with(with_bad(vec![bad(0, MEDIUM)])), 1);
    // Polled: no interrupt tells of it.
    rig.ahci[0].set_interrupt(0, false);
    let fis = rig.model.state().ports[0].fb + 0x58;
    let bus = rig.machine.bus();
    bus.write32(fis, 0x0040_40a1).unwrap();
    queue.drain(Context::Poll);
    assert!(!rig.ahci[0].is_eh_pending(), "it says nothing of an error");
    bus.write32(fis, 0x0440_40a1).unwrap();
    queue.drain(Context::Poll);
    assert!(rig.ahci[0].is_eh_pending());
    assert_eq!(run_eh(&rig, &queue), Ok(EhOutcome::Recovered));
    queue.drain(Context::Poll);
    only(host.outcomes(), 1, &[(0, CmdError::Medium)]);
}

#[test]
fn several_bad_blocks_fail_one_after_the_other() {
    // From either end: slot 0, which log 10h is read through, is among those that are told again.
    for reverses in [false, true] {
        let bad = (0..8).map(|at| bad(at * 3, MEDIUM)).collect();
        let config = Config {
            reverses,
            ..Config::with(with_bad(bad))
        };
        let (rig, host, queue) = reading(config, 32);
        serve(&rig, &queue);
        let failed: Vec<_> = (0..8).map(|at| (at * 3, CmdError::Medium)).collect();
        only(host.outcomes(), 32, &failed);
        rig.model.check();
    }
}

#[test]
fn an_unqueued_command_that_fails_fails_alone() {
    for clears_failed in [false, true] {
        for count in [1, 8] {
            let drive = Drive {
                depth: None,
                ..with_bad(vec![bad(0, MEDIUM)])
            };
            let config = Config {
                clears_failed,
                ..Config::with(drive)
            };
            let (rig, host, queue) = reading(config, count);
            serve(&rig, &queue);
            only(host.outcomes(), count, &[(0, CmdError::Medium)]);
            rig.model.check();
        }
    }
}

#[test]
fn unqueued_commands_finished_before_the_one_that_failed_stay_finished_or_are_done_again() {
    for clears_failed in [false, true] {
        let drive = Drive {
            depth: None,
            ..with_bad(vec![bad(4, MEDIUM), bad(6, 0x1041)])
        };
        let config = Config {
            clears_failed,
            ..Config::with(drive)
        };
        let (rig, host, queue) = reading(config, 8);
        serve(&rig, &queue);
        let failed = [(4, CmdError::Medium), (6, CmdError::Range)];
        only(host.outcomes(), 8, &failed);
        rig.model.check();
    }
}

#[test]
fn an_error_that_passes_fails_nobody_but_the_one() {
    // The one that is named has failed, once; the retry is its owner's.
    let drive = with_bad(vec![Bad {
        times: 1,
        ..bad(5, MEDIUM)
    }]);
    let (rig, host, queue) = reading(Config::with(drive), 10);
    serve(&rig, &queue);
    only(host.outcomes(), 10, &[(5, CmdError::Medium)]);
    queue.submit(read(0, 5), true);
    serve(&rig, &queue);
    only(host.outcomes(), 1, &[]);
    rig.model.check();
}

#[test]
fn a_drive_that_harps_on_its_error_is_recovered_once() {
    // Its last command failed when all were told one by one, or failed as the only one there.
    for depth in [Some(32), None] {
        let drive = Drive {
            depth,
            names_errors: false,
            ..with_bad(vec![bad(0, MEDIUM)])
        };
        let config = Config {
            harps: true,
            ..Config::with(drive)
        };
        let (rig, host, queue) = reading(config, 1);
        assert_eq!(serve(&rig, &queue), 1);
        only(host.outcomes(), 1, &[(0, CmdError::Medium)]);
        queue.submit(read(0, 1), true);
        assert_eq!(serve(&rig, &queue), 0, "nothing left to attend");
        only(host.outcomes(), 1, &[]);
        rig.model.check();
    }
}

#[test]
fn a_link_that_breaks_costs_nobody_anything_three_times() {
    for times in [1, 2, 3, 5] {
        let config = Config {
            breaks: Some((0, times)),
            ..Config::with(with_bad(Vec::new()))
        };
        let (rig, host, queue) = reading(config, 12);
        serve(&rig, &queue);
        // Those that break it when they are told alone fail with it: the drive takes the lowest
        // slot, the last read, first.
        let failed = [(11, CmdError::Io), (10, CmdError::Io)];
        let alone = times.saturating_sub(3);
        only(host.outcomes(), 12, &failed[..alone]);
        let state = rig.model.state();
        assert!(state.ports[0].resets >= times.min(3) as u32);
        let alone = state.log.iter().any(|taken| taken.command == 0x25);
        assert_eq!(alone, times >= 3, "one by one from the third time on");
        drop(state);
        rig.model.check();
    }
}

#[test]
fn a_link_that_breaks_with_unqueued_commands_costs_nobody_anything() {
    let drive = Drive {
        depth: None,
        ..with_bad(Vec::new())
    };
    let config = Config {
        breaks: Some((2, 1)),
        ..Config::with(drive)
    };
    let (rig, host, queue) = reading(config, 6);
    serve(&rig, &queue);
    only(host.outcomes(), 6, &[]);
    assert_eq!(rig.model.state().ports[0].resets, 1);
    rig.model.check();
}

#[test]
fn errors_are_found_without_interrupts() {
    for drive in [
        with_bad(vec![bad(2, MEDIUM)]),
        Drive {
            depth: None,
            ..with_bad(vec![bad(2, MEDIUM)])
        },
    ] {
        let rig = Rig::started(Config::with(drive));
        let (host, queue) = rig.io();
        rig.ahci[0].set_interrupt(0, false);
        queue.submit_many(reads(6));
        for _ in 0..5 {
            queue.drain(Context::Poll);
            if rig.places[0].calls() != 0 {
                assert_eq!(run_eh(&rig, &queue), Ok(EhOutcome::Recovered));
            }
        }
        assert!(!rig.model.line());
        assert_eq!(rig.model.state().ports[0].ie, 0, "polled still");
        only(host.outcomes(), 6, &[(2, CmdError::Medium)]);
        rig.model.check();
    }
}

#[test]
fn a_broken_link_is_found_without_interrupts() {
    let config = Config {
        breaks: Some((0, 1)),
        ..Config::with(with_bad(Vec::new()))
    };
    let rig = Rig::started(config);
    let (host, queue) = rig.io();
    rig.ahci[0].set_interrupt(0, false);
    queue.submit_many(reads(6));
    let before = rig.model.state().accesses;
    let ticks = (0..3000).find(|_| {
        queue.drain(Context::Poll);
        rig.places[0].calls() != 0
    });
    assert!(ticks.is_some(), "not noticed");
    let spent = rig.model.state().accesses - before;
    assert!(spent < 8, "{spent} accesses of registers");
    assert_eq!(run_eh(&rig, &queue), Ok(EhOutcome::Recovered));
    only(host.outcomes(), 6, &[]);
    rig.model.check();
}

#[test]
fn a_recovery_does_not_touch_the_other_ports() {
    let rig = Rig::started(Config {
        ports: 3,
        drives: vec![
            Some(Drive {
                names_errors: false,
                ..with_bad(vec![bad(0, MEDIUM)])
            }),
            Some(Drive::new(9, 64)),
        ],
        ..Config::default()
    });
    let (host, bad) = rig.io();
    let good = host.io(rig.ahci[1].create_queue(0, Some(0)).unwrap());
    rig.model.state().hold = true;
    for id in 0..4 {
        let mut job = read(id, id as u64);
        job.cmd.unit = 1;
        good.submit(job, true);
    }
    let told = rig.model.state().ports[1].sact;
    rig.model.state().hold = false;
    {
        let mut state = rig.model.state();
        let held = std::mem::take(&mut state.ports[1].queue);
        drop(state);
        bad.submit(read(0, 0), true);
        assert_eq!(rig.ahci[0].interrupt(0), hal::Cause::Queues);
        bad.drain(Context::Irq);
        assert_eq!(run_eh(&rig, &bad), Ok(EhOutcome::Recovered));
        rig.model.state().ports[1].queue = held;
    }
    let port = &rig.model.state().ports[1];
    assert_eq!((port.sact, port.resets), (told, 0));
    assert_ne!(told, 0);
}

#[test]
fn an_alarm_without_a_cause_changes_nothing() {
    let (rig, host, queue) = reading(Config::with(with_bad(Vec::new())), 4);
    let before = rig.model.state().log.len();
    assert_eq!(run_eh(&rig, &queue), Ok(EhOutcome::Nothing));
    assert_eq!(rig.model.state().log.len(), before);
    serve(&rig, &queue);
    only(host.outcomes(), 4, &[]);
    rig.model.check();
}

#[test]
fn an_hba_that_was_reset_by_somebody_else_has_finished_nothing() {
    for depth in [Some(32), None] {
        let rig = Rig::started(Config::with(Drive {
            depth,
            ..with_bad(Vec::new())
        }));
        let (host, queue) = rig.io();
        rig.model.state().hold = true;
        queue.submit_many(reads(6));
        rig.model.state().reset_beneath();
        queue.drain(Context::Irq);
        assert!(
            host.take().is_empty(),
            "the registers say so, and nobody else"
        );
        assert_eq!(run_eh(&rig, &queue), Err(hal::Error::Fatal));
        assert_eq!(rig.model.state().ports[0].ie, 0x0040_0040, "it is at rest");
        let mut quiesced = queue.quiesce(&rig.machine);
        assert_eq!(rig.ahci[0].stop(), Ok(()));
        quiesced.reap(CmdError::Timeout.retryable());
        quiesced.rewind();
        let ended = host.take();
        assert_eq!(ended.len(), 6);
        let late = |(_, outcome): &(Job, _)| *outcome == Err(CmdError::Timeout);
        assert!(ended.iter().all(late));
        rig.model.state().hold = false;
        assert_eq!(rig.ahci[0].start(), Ok(()));
        quiesced.unquiesce();
        queue.submit(read(0, 0), true);
        queue.drain(Context::Irq);
        only(host.outcomes(), 1, &[]);
        rig.model.check();
    }
}
