// SPDX-License-Identifier: GPL-2.0
//! What the log says of an answer that was missed: a drive that is late, a completion that was
//! lost.

use crate::errors::reading;
use crate::model::{Config, Drive};
use crate::rig::{flush, read, Rig};
use hal::{Controller, Error, Platform};
use lld_ahci::{AtaCommand, Transfer};

fn says(rig: &Rig) -> String {
    let mut line = String::new();
    rig.ahci[0].timeout_report(&mut line).unwrap();
    line
}

#[test]
fn a_drive_that_is_late() {
    let rig = Rig::started(Config::default());
    let (_host, queue) = rig.io();
    rig.model.state().hold = true;
    queue.submit(read(0, 0), true);
    let quiesced = queue.quiesce(&rig.machine);
    let line = says(&rig);
    assert!(
        line.starts_with("the drive has taken it, and is late (I/O): waited for 0x80000000"),
        "{line}"
    );
    assert!(
        line.contains("PxCI 0x00000000, PxSACT 0x80000000, PxTFD 0x0050"),
        "{line}"
    );
    quiesced.unquiesce();
}

#[test]
fn completions_that_were_lost() {
    // The drive has finished them all, the interrupt did not come, and nobody has looked.
    let (rig, _host, queue) = reading(Config::default(), 4);
    let quiesced = queue.quiesce(&rig.machine);
    let line = says(&rig);
    assert!(
        line.starts_with("the drive has finished something: its completion was lost"),
        "{line}"
    );
    assert!(line.contains("PxSACT 0x00000000"), "{line}");
    quiesced.unquiesce();
}

#[test]
fn a_flush_that_is_late() {
    let rig = Rig::started(Config::default());
    let (_host, queue) = rig.io();
    rig.model.state().hold = true;
    queue.submit(flush(0), true);
    let line = says(&rig);
    assert!(
        line.contains("late") && line.contains("PxCI 0x80000000, PxSACT 0x00000000"),
        "{line}"
    );
}

#[test]
fn what_does_not_finish_before_a_tools_command() {
    let rig = Rig::started(Config::default());
    let (_host, queue) = rig.io();
    rig.model.state().hold = true;
    queue.submit(read(0, 0), true);
    let quiesced = queue.quiesce(&rig.machine);
    let memory = rig.machine.dma(512).unwrap();
    let identify = AtaCommand {
        command: 0xec,
        ..AtaCommand::default()
    };
    let sector = Transfer::FromDevice(&memory, 512);
    let lost = rig.ahci[0].command(&identify, &sector, 0, &|| false);
    assert_eq!(lost, Err(Error::Timeout));
    let line = says(&rig);
    assert!(
        line.contains("(letting the drive finish before a command is passed through)"),
        "{line}"
    );
    assert!(line.contains("PxSACT 0x80000000"), "{line}");
    drop(quiesced);
}

#[test]
fn an_hba_that_is_gone() {
    let rig = Rig::started(Config::default());
    rig.model.vanish();
    assert!(says(&rig).starts_with("the HBA is gone"));
}

#[test]
fn what_was_mastered_is_not_told_later() {
    let rig = Rig::started(Config::with(Drive {
        mute: Some(9),
        ..Drive::new(9, 64)
    }));
    let memory = rig.machine.dma(512).unwrap();
    let mute = AtaCommand {
        command: 0x25,
        count: 1,
        lba: 9,
        device: 0x40,
        ..AtaCommand::default()
    };
    let sector = Transfer::FromDevice(&memory, 512);
    assert!(rig.ahci[0]
        .command(&mute, &sector, 2000, &|| false)
        .is_err());
    rig.ahci[0].stop().unwrap();
    rig.ahci[0].start().unwrap();
    assert!(says(&rig).starts_with("the drive has nothing to do"));
}
