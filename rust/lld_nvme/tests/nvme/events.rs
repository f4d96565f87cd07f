// SPDX-License-Identifier: GPL-2.0
//! What the controller reports by itself: it is noticed, told, cleared, and asked for again.

use crate::model::queues::Completion;
use crate::model::Config;
use crate::rig::{command, Rig};
use hal::{Cause, Controller, Error, EventAction, Op, Platform, Queues, Severity};

const NAMESPACES: u32 = 0x0004_0002;
const FIRMWARE: u32 = 0x0003_0102;
const HEALTH: u32 = 0x0002_0101;
const ERROR: u32 = 0x0001_0200;
const PERSISTENT: u32 = 0x0001_0300;

/// What was told: its severity, its text, its uevent.
type Told = Vec<(Severity, String, Option<u32>)>;

fn handle_events(rig: &Rig, queues: Queues) -> (Result<EventAction, Error>, Told) {
    let mut told = Told::new();
    let wish = rig.nvme.handle_events(queues, &mut |notice| {
        assert!(notice.uevent.is_none_or(|(name, _)| name == "NVME_AEN"));
        let uevent = notice.uevent.map(|(_, value)| value);
        told.push((notice.severity, notice.text.to_string(), uevent));
    });
    (wish, told)
}

fn live(rig: &Rig) -> (Result<EventAction, Error>, Told) {
    handle_events(rig, Queues::Live)
}

fn quiet() -> (Result<EventAction, Error>, Told) {
    (Ok(EventAction::None), Told::new())
}

/// Log pages that were read.
fn pages(rig: &Rig) -> Vec<u8> {
    let state = rig.model.state();
    let log = state.admin_log.iter();
    log.filter(|(opcode, _)| *opcode == 0x02)
        .map(|(_, dword10)| *dword10 as u8)
        .collect()
}

#[test]
fn what_the_controller_offers_is_asked_for_at_every_start() {
    for (oaes, config) in [(0, 0x1f), (0x100, 0x11f), (u32::MAX, 0x31f)] {
        let rig = Rig::started(Config {
            oaes,
            ..Config::default()
        });
        for _ in 0..2 {
            assert_eq!(rig.model.state().reporter.config, config);
            assert_eq!(rig.model.state().reporter.requests.len(), 1);
            rig.nvme.stop().unwrap();
            rig.nvme.start().unwrap();
        }
        rig.model.check();
    }
}

#[test]
fn changed_namespaces_are_a_reason_to_look_anew() {
    let rig = Rig::started(Config::default());
    assert_eq!(rig.nvme.interrupt(0), Cause::Queues);
    for _ in 0..20 {
        rig.model.state().raise(NAMESPACES);
        assert_eq!(rig.nvme.interrupt(0), Cause::AsyncEvent);
        assert_eq!(rig.nvme.interrupt(0), Cause::AsyncEvent, "nobody came yet");
        assert_eq!(live(&rig), (Ok(EventAction::Rescan), Told::new()));
        assert_eq!(rig.nvme.interrupt(0), Cause::Queues);
        assert_eq!(live(&rig), quiet());
    }
    assert_eq!(pages(&rig), [4; 20], "which clears the event");
    rig.model.check();
}

#[test]
fn the_queues_interrupts_call_for_nothing() {
    let rig = Rig::started(Config::default());
    let mut queue = rig.queue(0);
    rig.model.state().raise(HEALTH);
    assert_eq!(rig.nvme.interrupt(1), Cause::Queues);
    assert_eq!(queue.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
    rig.model.check();
}

#[test]
fn an_event_beside_commands_is_not_lost() {
    let rig = Rig::started(Config::default());
    rig.model.state().raise(NAMESPACES);
    // The threads that wait for these take it.
    assert_eq!(rig.units().len(), 1);
    assert_eq!(rig.units().len(), 1);
    assert_eq!(rig.nvme.interrupt(0), Cause::AsyncEvent);
    assert_eq!(live(&rig).0, Ok(EventAction::Rescan));
    rig.model.check();
}

#[test]
fn a_pin_comes_down_and_calls() {
    let rig = Rig::new(Config {
        pin: true,
        queues: 1,
        ..Config::default()
    })
    .unwrap();
    rig.nvme.use_pin(true);
    rig.nvme.start().unwrap();
    rig.nvme.set_interrupt(0, true);
    for _ in 0..40 {
        rig.machine.advance(100_000_000);
        rig.model.state().raise(HEALTH);
        assert!(rig.model.line());
        assert_eq!(rig.nvme.interrupt(0), Cause::AsyncEvent);
        assert_eq!(live(&rig).0, Ok(EventAction::None));
        rig.nvme.set_interrupt(0, true);
        assert!(!rig.model.line());
    }
    rig.model.check();
}

#[test]
fn critical_warnings_are_told_by_name_when_they_change() {
    let rig = Rig::started(Config {
        warnings: 0x0a,
        ..Config::default()
    });
    rig.model.state().raise(HEALTH);
    let (wish, told) = live(&rig);
    assert_eq!(wish, Ok(EventAction::None));
    let [(Severity::Warning, text, Some(HEALTH))] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(
        text,
        "critical warning: its temperature is beyond a threshold, its media are read-only \
         (0x0a; nvme smart-log)"
    );
    rig.model.state().raise(HEALTH);
    assert_eq!(live(&rig), quiet(), "known");
    rig.model.state().config.warnings = 0;
    rig.model.state().raise(HEALTH);
    assert_eq!(live(&rig).1.len(), 1);
    assert_eq!(pages(&rig), [2; 3]);
    rig.model.check();
}

#[test]
fn an_error_is_told_with_the_newest_entry_of_its_log() {
    let rig = Rig::started(Config::default());
    rig.model.state().raise(ERROR);
    let (wish, told) = live(&rig);
    assert_eq!((wish, told.len()), (Ok(EventAction::None), 1));
    // The log is a counting pattern.
    let text = "its diagnosis found an error; the newest of its log, number 506097522914230528: \
        queue 2312, CID 0xb0a, status 0x686, LBA 1663540288323457296, namespace 454695192 \
        (nvme error-log)";
    assert_eq!(told[0], (Severity::Warning, text.into(), Some(ERROR)));
    assert_eq!(pages(&rig), [1]);
    assert_eq!(rig.model.state().reporter.requests.len(), 1);
    rig.model.check();
}

#[test]
fn what_only_a_reset_helps_against_is_a_reason_for_one() {
    for dword in [PERSISTENT, 0x0001_0000, 0x0001_0100] {
        let rig = Rig::started(Config::default());
        rig.model.state().raise(dword);
        let (wish, told) = live(&rig);
        assert_eq!((wish, told.len()), (Ok(EventAction::Recover), 1));
        assert_eq!(rig.model.state().reporter.requests.len(), 0);
        rig.nvme.stop().unwrap();
        rig.nvme.start().unwrap();
        assert_eq!(rig.model.state().reporter.requests.len(), 1);
        // What it would have reported meanwhile.
        assert_eq!(live(&rig).0, Ok(EventAction::Rescan));
        assert_eq!(live(&rig), quiet());
        rig.model.check();
    }
}

#[test]
fn what_nothing_is_done_about_goes_to_programs() {
    let rig = Rig::started(Config::default());
    for dword in [0x0007_0202, 0x00c0_0107, 0x0010_0006] {
        rig.model.state().raise(dword);
        let (wish, told) = live(&rig);
        assert_eq!(wish, Ok(EventAction::None));
        assert_eq!(told[0].2, Some(dword));
        assert_eq!(rig.model.state().reporter.requests.len(), 1);
    }
    assert_eq!(pages(&rig), [0; 0]);
    rig.model.check();
}

#[test]
fn new_firmware_is_waited_for_with_the_queues_at_rest() {
    let rig = Rig::started(Config::default());
    rig.model.state().paused_until = u64::MAX;
    rig.model.state().raise(FIRMWARE);
    assert_eq!(live(&rig).0, Ok(EventAction::Quiesce));
    assert_eq!(live(&rig).0, Ok(EventAction::Quiesce), "until they are");
    let now = rig.machine.now_us();
    rig.model.state().paused_until = now + 900_000;
    let (wish, told) = handle_events(&rig, Queues::Quiesced);
    assert_eq!((wish, told.len()), (Ok(EventAction::Rescan), 1));
    assert!(rig.machine.now_us() >= now + 900_000);
    assert_eq!(pages(&rig), [3]);
    assert_eq!(rig.model.state().reporter.requests.len(), 1);
    assert_eq!(live(&rig), quiet());
    rig.model.check();
}

#[test]
fn firmware_that_does_not_run_in_its_time_is_a_reason_for_a_reset() {
    let rig = Rig::started(Config::default());
    rig.model.state().paused_until = u64::MAX;
    rig.model.state().raise(FIRMWARE);
    assert_eq!(live(&rig).0, Ok(EventAction::Quiesce));
    let start = rig.machine.now_us();
    let (wish, told) = handle_events(&rig, Queues::Quiesced);
    assert_eq!((wish, told.len()), (Ok(EventAction::Recover), 1));
    let waited = rig.machine.now_us() - start;
    assert!((1_000_000..1_500_000).contains(&waited), "MTFA: {waited}");
    rig.model.state().paused_until = 0;
    rig.nvme.stop().unwrap();
    rig.nvme.start().unwrap();
    assert_eq!(live(&rig).0, Ok(EventAction::Rescan));
    assert_eq!(live(&rig), quiet());
    rig.model.check();
}

#[test]
fn a_controller_that_takes_no_request_is_asked_once() {
    let rig = Rig::new(Config::default()).unwrap();
    rig.model.state().reporter.requests = vec![7];
    rig.nvme.start().unwrap();
    assert_eq!(rig.nvme.interrupt(0), Cause::AsyncEvent);
    let (wish, told) = live(&rig);
    assert_eq!((wish, told.len()), (Ok(EventAction::None), 1));
    assert!(told[0].1.contains("rescan_controller"), "{}", told[0].1);
    assert_eq!(live(&rig), quiet());
    let log = rig.model.state().admin_log.clone();
    assert_eq!(log.iter().filter(|(opcode, _)| *opcode == 0x0c).count(), 1);
}

#[test]
fn a_log_page_that_is_refused_or_never_comes() {
    let rig = Rig::started(Config::default());
    for dword in [HEALTH, ERROR, NAMESPACES] {
        let next = rig.model.state().admin_log.len();
        rig.model.state().refuse = Some((next, 0x4109));
        rig.model.state().raise(dword);
        assert!(live(&rig).0.is_ok());
        assert_eq!(rig.model.state().reporter.requests.len(), 1);
    }
    let next = rig.model.state().admin_log.len();
    rig.model.state().ignore = Some(next);
    rig.model.state().reporter.masked.clear();
    rig.model.state().raise(NAMESPACES);
    assert_eq!(live(&rig).0, Err(Error::Timeout));
    rig.nvme.stop().unwrap();
    rig.nvme.start().unwrap();
    assert_eq!(live(&rig).0, Ok(EventAction::Rescan), "not lost");
    rig.model.check();
}

/// However often the device calls, it is seen to a few times, and then ever more rarely.
#[test]
fn events_without_end_make_bounded_work() {
    for dword in [NAMESPACES, HEALTH, ERROR, 0x0007_0202, 0x00c0_0007] {
        let rig = Rig::started(Config::default());
        rig.machine.advance(100_000_000);
        rig.model.state().reporter.forever = Some(dword);
        rig.model.state().raise(dword);
        let start = rig.machine.now_us();
        let mut told = 0;
        while rig.machine.now_us() < start + 3_600_000_000 {
            let (wish, lines) = live(&rig);
            told += lines.len();
            match wish.unwrap() {
                EventAction::None if rig.nvme.interrupt(0) != Cause::AsyncEvent => {
                    // Types are masked until their page is read; those without one for good.
                    rig.model.state().reporter.masked.clear();
                    rig.model.state().raise(dword);
                }
                EventAction::None | EventAction::Rescan => {}
                EventAction::Defer(us) => {
                    assert!(us <= 64_000_000);
                    rig.machine.advance(u64::from(us));
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(told <= 100, "{dword:#x}: {told} lines in an hour");
        assert!(rig.model.state().reporter.told <= 102, "{dword:#x}");
    }
}

#[test]
fn an_event_told_twice_is_one_and_nonsense_is_none() {
    let rig = Rig::started(Config::default());
    rig.model.state().admin_liar = Some(Box::new(|_, truth| {
        let lies = [
            Completion { sq_id: 1, ..truth },
            Completion {
                sq_head: 16,
                ..truth
            },
        ];
        lies.into_iter().chain([truth, truth]).collect()
    }));
    for _ in 0..10 {
        rig.model.state().raise(HEALTH);
        assert_eq!(rig.nvme.interrupt(0), Cause::AsyncEvent);
        assert_eq!(live(&rig).0, Ok(EventAction::None));
        assert_eq!(rig.model.state().reporter.requests.len(), 1);
        assert_eq!(rig.units().len(), 1);
    }
    rig.model.check();
}

#[test]
fn many_commands_never_take_the_requests_number() {
    let rig = Rig::started(Config::default());
    for _ in 0..70_000 / 4 {
        assert_eq!(rig.nvme.units(&mut |_| ()), Ok(()));
    }
    assert_eq!(rig.nvme.interrupt(0), Cause::Queues);
    assert_eq!(live(&rig), quiet());
    assert_eq!(rig.model.state().reporter.requests.len(), 1);
    rig.model.state().raise(NAMESPACES);
    assert_eq!(live(&rig).0, Ok(EventAction::Rescan));
    rig.model.check();
}

#[test]
fn a_stopped_controller_is_not_attended() {
    let rig = Rig::started(Config::default());
    rig.model.state().raise(NAMESPACES);
    rig.nvme.stop().unwrap();
    let _ = live(&rig);
    rig.nvme.start().unwrap();
    assert_eq!(rig.model.state().reporter.requests.len(), 1);
    assert_eq!(live(&rig).0, Ok(EventAction::Rescan));
    assert_eq!(live(&rig), quiet());
    rig.model.check();
}
