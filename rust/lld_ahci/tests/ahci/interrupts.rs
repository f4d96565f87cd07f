// SPDX-License-Identifier: GPL-2.0
//! Interrupts: shared, spurious, without end, and none at all.

use crate::model::{Config, Drive};
use crate::rig::{command, reads, Line, Rig};
use hal::{Cause, Command, Controller, Op};

fn two() -> Config {
    Config {
        ports: 3,
        drives: vec![Some(Drive::new(9, 64)), Some(Drive::new(9, 64))],
        ..Config::default()
    }
}

#[test]
fn on_a_shared_line_others_interrupts_are_theirs() {
    let rig = Rig::started(two());
    let mut line = rig.queue();
    let ours = rig.hba.interrupt(true, 3, |_| panic!("nobody is pending"));
    assert!(!ours);
    assert_eq!(rig.ahci[0].interrupt(0), Cause::None);
    let data = rig.map(&[0; 512], 0, 0);
    line.start(&command(Op::Read, 0, 1), &data.segments())
        .unwrap();
    let mut served = Vec::new();
    let ours = rig.hba.interrupt(true, 3, |port| {
        served.push(port);
        rig.ahci[usize::from(port)].interrupt(0) == Cause::Queues
    });
    assert!(ours);
    assert_eq!(served, [0], "not the port that has nothing");
    assert!(!rig.model.line());
    assert_eq!(line.drain().len(), 1);
    data.unmap();
    rig.model.check();
}

#[test]
fn the_only_port_of_a_message_is_not_looked_for() {
    let rig = Rig::started(Config::default());
    let mut line = rig.queue();
    let data = rig.map(&[0; 512], 0, 0);
    line.start(&command(Op::Read, 0, 1), &data.segments())
        .unwrap();
    let reads = rig.model.state().reads;
    let serve = |_| rig.ahci[0].interrupt(0) == Cause::Queues;
    assert!(rig.hba.interrupt(false, 1, serve));
    assert_eq!(rig.model.state().reads, reads, "two writes, no read");
    assert_eq!(line.drain_once().len(), 1);
    assert_eq!(rig.model.state().reads, reads + 1);
    assert!(!rig.model.line());
    // A message that comes late finds that somebody else has taken everything.
    assert!(!rig.hba.interrupt(false, 1, serve));
    data.unmap();
    rig.model.check();
}

#[test]
fn an_hba_that_reverts_to_a_single_message_says_so() {
    for reverts in [false, true] {
        let rig = Rig::started(Config {
            reverts,
            ..Config::default()
        });
        assert_eq!(rig.hba.shares_message(), reverts);
    }
}

#[test]
fn a_port_with_a_message_of_its_own_leaves_the_other_ports_interrupts_to_them() {
    let rig = Rig::started(two());
    let mut lines = [0, 1].map(|port| Line::of(&rig.ahci[port], 0, 0));
    let data = [0; 2].map(|_| rig.map(&[0; 512], 0, 0));
    for (unit, (line, data)) in (0u32..).zip(lines.iter_mut().zip(&data)) {
        let read = Command {
            unit,
            ..command(Op::Read, 0, 1)
        };
        line.start(&read, &data.segments()).unwrap();
    }
    // As the messages come: each port by itself, the HBA's own registers left alone.
    for port in [1, 0] {
        let pending = rig.model.state().pending();
        assert_eq!(rig.ahci[port].interrupt(0), Cause::Queues);
        assert_eq!(lines[port].drain_once().len(), 1);
        assert_eq!(rig.ahci[port].interrupt(0), Cause::None, "it is quiet");
        assert_eq!(rig.model.state().pending(), pending, "`IS` is no matter");
    }
    data.map(|data| data.unmap());
    rig.model.check();
}

#[test]
fn a_drive_that_comes_beside_the_only_one_that_is_served_is_seen_by_the_next_interrupt() {
    let rig = Rig::started(Config {
        ports: 3,
        drives: vec![Some(Drive::new(9, 64)), None],
        ..Config::default()
    });
    let mut line = rig.queue();
    let data = rig.map(&[0; 512], 0, 0);
    line.start(&command(Op::Read, 0, 1), &data.segments())
        .unwrap();
    rig.model.state().plug(1, Drive::new(9, 64));
    let reads = rig.model.state().reads;
    let serve = |port| rig.ahci[usize::from(port)].interrupt(0) == Cause::Queues;
    assert!(rig.hba.interrupt(false, 1, serve));
    assert_eq!(rig.model.state().reads, reads, "of the served port only");
    assert_eq!(line.drain_once().len(), 1);
    assert!(rig.model.line(), "the other has not been heard");
    assert_eq!(rig.places[1].calls(), 0);
    assert!(rig.hba.interrupt(false, 1, serve));
    assert_eq!(rig.places[1].calls(), 1);
    assert!(!rig.model.line());
    data.unmap();
    rig.model.check();
}

#[test]
fn an_interrupt_whose_completion_was_taken_already_is_still_acknowledged() {
    let rig = Rig::started(Config::default());
    let mut line = rig.queue();
    let data = rig.map(&[0; 512], 0, 0);
    line.start(&command(Op::Read, 0, 1), &data.segments())
        .unwrap();
    assert_eq!(line.drain().len(), 1);
    assert!(rig.model.line());
    assert_eq!(
        rig.interrupts(|_| {
            assert!(line.drain_once().is_empty());
        }),
        1
    );
    data.unmap();
    rig.model.check();
}

#[test]
fn a_completion_between_the_acknowledgement_and_the_look_is_not_lost() {
    let rig = Rig::started(Config::default());
    let mut line = rig.queue();
    let data = rig.map(&[0; 512], 0, 0);
    let read = command(Op::Read, 0, 1);
    line.start(&read, &data.segments()).unwrap();
    assert_eq!(rig.ahci[0].interrupt(0), Cause::Queues);
    line.start(&read, &data.segments()).unwrap();
    assert_eq!(line.drain_once().len(), 2);
    assert!(rig.model.line(), "it interrupts again, in vain");
    assert_eq!(rig.interrupts(|_| ()), 1);
    data.unmap();
    rig.model.check();
}

#[test]
fn a_polled_port_does_not_interrupt_and_loses_nothing_on_the_way_back() {
    let rig = Rig::started(Config::default());
    let mut line = rig.queue();
    let data = rig.map(&[0; 512], 0, 0);
    rig.ahci[0].set_interrupt(0, false);
    line.start(&command(Op::Read, 0, 1), &data.segments())
        .unwrap();
    assert!(!rig.model.line());
    assert!(line.check());
    rig.ahci[0].set_interrupt(0, true);
    assert!(rig.model.line());
    let mut ended = Vec::new();
    rig.interrupts(|_| ended.extend(line.drain()));
    assert_eq!(ended.len(), 1);
    data.unmap();
    rig.model.check();
}

#[test]
fn errors_silence_the_port_until_they_are_attended() {
    let rig = Rig::started(two());
    let mut line = rig.queue();
    rig.model.state().unplug(0);
    assert_eq!(rig.interrupts(|_| assert!(line.drain().is_empty())), 1);
    assert!(!rig.model.line());
    assert_eq!(rig.places[0].calls(), 1);
    assert_eq!(rig.places[1].calls(), 0);
    // Turning its interrupt on does not open it.
    rig.ahci[0].set_interrupt(0, true);
    assert_eq!(rig.model.state().ports[0].ie, 0);
    rig.ahci[0].run_eh().unwrap();
    assert_eq!(rig.model.state().ports[0].ie, 0x0040_0040, "hot-plug");
    rig.model.check();
}

/// The drain belongs to a thread that this very interrupt keeps from going on.
#[test]
fn an_error_behind_a_good_answer_silences_the_port_whoever_takes_the_answer() {
    let rig = Rig::started(two());
    let (_host, queue) = rig.io();
    rig.model.state().hold = true;
    queue.submit_many(reads(1));
    let fis = rig.model.state().ports[0].fb + 0x58;
    rig.machine.bus().write32(fis, 0x0040_40a1).unwrap();
    rig.model.state().unplug(0);
    assert_eq!(rig.interrupts(|_| ()), 2, "the second looks closer");
    assert_eq!(rig.model.state().ports[0].ie, 0);
    assert_eq!(rig.places[0].calls(), 1);
}

#[test]
fn an_hba_that_is_gone_is_not_the_one_that_interrupts() {
    let rig = Rig::started(Config::default());
    rig.model.vanish();
    assert!(!rig.hba.interrupt(true, 1, |_| true));
    assert_eq!(rig.ahci[0].interrupt(0), Cause::None);
    assert_eq!(rig.places[0].calls(), 1, "it is to be looked after");
    assert_eq!(rig.ahci[0].interrupt(0), Cause::None);
    assert_eq!(rig.places[0].calls(), 0, "once");
}

#[test]
fn a_stale_answer_does_not_hide_what_else_came() {
    let rig = Rig::started(two());
    let mut line = rig.queue();
    // As one that was covered by the look that found its command finished, or by nobody's.
    let fis = rig.model.state().ports[0].fb;
    let bus = rig.machine.bus();
    for (offset, word) in [(0x40, 0x0050_4034), (0x58, 0x0040_40a1)] {
        bus.write32(fis + offset, word).unwrap();
    }
    rig.model.state().unplug(0);
    rig.interrupts(|_| assert!(line.drain().is_empty()));
    assert_eq!(rig.places[0].calls(), 1);
    rig.model.check();
}
