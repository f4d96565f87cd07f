// SPDX-License-Identifier: GPL-2.0
//! Commands of the operator's tools.

use crate::errors::{bad, MEDIUM};
use crate::model::config::Bad;
use crate::model::{Config, Drive};
use crate::rig::{command, flush, reads, Rig};
use crate::whole::run_eh;
use engine::Context;
use hal::{Controller, DmaMem, Error, Op, Platform};
use lld_ahci::{AtaCommand, AtaReply, EhOutcome, Transfer};

fn identify() -> AtaCommand {
    AtaCommand {
        command: 0xec,
        ..AtaCommand::default()
    }
}

#[test]
fn data_comes_and_goes() {
    let rig = Rig::started(Config::default());
    let memory = rig.machine.dma(4096).unwrap();
    let sector = Transfer::FromDevice(&memory, 512);
    let reply = rig.ahci[0]
        .command(&identify(), &sector, 0, &|| false)
        .unwrap();
    assert_eq!((reply.status, reply.error), (0x50, 0));
    // "SE", the first character in the upper half.
    assert_eq!(memory.read32(20) & 0xffff, 0x5345);
    memory.write32(1020, 0x0102_0304);
    let write = AtaCommand {
        command: 0x35,
        count: 2,
        lba: 7,
        device: 0x40,
        ..AtaCommand::default()
    };
    let sectors = Transfer::ToDevice(&memory, 1024);
    let reply = rig.ahci[0]
        .command(&write, &sectors, 1000, &|| false)
        .unwrap();
    assert_eq!(reply.status, 0x50);
    let state = rig.model.state();
    let data = &state.ports[0].drive.as_ref().unwrap().data;
    assert_eq!(data[9 * 512 - 4..9 * 512], [4, 3, 2, 1]);
    drop(state);
    rig.model.check();
}

#[test]
fn what_the_drive_refuses_is_a_reply() {
    let rig = Rig::started(Config::default());
    let unknown = AtaCommand {
        command: 0xf1,
        ..AtaCommand::default()
    };
    let nothing = Transfer::Nothing;
    let expected = AtaReply {
        status: 0x51,
        error: 0x04,
        ..AtaReply::default()
    };
    assert_eq!(
        rig.ahci[0].command(&unknown, &nothing, 0, &|| false),
        Ok(expected)
    );
    // And the port goes on.
    let mut line = rig.queue();
    assert_eq!(line.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
    rig.model.check();
}

#[test]
fn a_failure_is_over_with_its_answer() {
    let rig = Rig::started(Config {
        harps: true,
        ..Config::default()
    });
    let unknown = AtaCommand {
        command: 0xf1,
        ..AtaCommand::default()
    };
    let reply = rig.ahci[0].command(&unknown, &Transfer::Nothing, 0, &|| false);
    assert!(reply.unwrap().is_failure());
    let (host, queue) = rig.io();
    queue.submit_many(reads(1));
    rig.interrupts(|_| {
        queue.drain(Context::Irq);
    });
    assert_eq!(rig.places[0].calls(), 0, "the read has no error to attend");
    let ended = host.take();
    assert!(ended.len() == 1 && ended[0].1 == Ok(()));
    rig.model.check();
}

#[test]
fn what_is_the_drivers_own_is_refused() {
    let rig = Rig::started(Config::with(Drive {
        write_cache: false,
        ..Drive::new(9, 64)
    }));
    let before = rig.model.state().log.len();
    let memory = rig.machine.dma(512).unwrap();
    for opcode in [0x08, 0x60, 0x61, 0x64, 0x90, 0xe6] {
        let own = AtaCommand {
            command: opcode,
            ..AtaCommand::default()
        };
        let refused = rig.ahci[0].command(&own, &Transfer::Nothing, 0, &|| false);
        assert_eq!(refused, Err(Error::Invalid), "{opcode:#x}");
    }
    for bytes in [0, 511, 514] {
        let transfer = Transfer::FromDevice(&memory, bytes);
        let refused = rig.ahci[0].command(&identify(), &transfer, 0, &|| false);
        assert_eq!(refused, Err(Error::Invalid), "{bytes}");
    }
    assert_eq!(rig.model.state().log.len(), before);
    rig.model.check();
}

#[test]
fn what_is_under_way_finishes_first_and_goes_on_afterwards() {
    let rig = Rig::started(Config {
        slots: 4,
        ..Config::default()
    });
    let (host, queue) = rig.io();
    {
        let mut state = rig.model.state();
        state.hold = true;
        state.release_at = Some(rig.machine.now_us() + 1_000_000);
    }
    queue.submit_many(reads(3));
    // It waits for its turn, and nobody comes after it.
    queue.submit(flush(3), true);
    let quiesced = queue.quiesce(&rig.machine);
    let memory = rig.machine.dma(512).unwrap();
    let sector = Transfer::FromDevice(&memory, 512);
    assert!(rig.ahci[0]
        .command(&identify(), &sector, 0, &|| false)
        .is_ok());
    quiesced.unquiesce();
    rig.interrupts(|_| {
        queue.drain(Context::Irq);
    });
    let ended = host.take();
    assert_eq!(ended.len(), 4);
    assert!(ended.iter().all(|(_, outcome)| *outcome == Ok(())));
    rig.model.check();
}

#[test]
fn registers_of_full_slots_are_no_absent_ones() {
    let rig = Rig::started(Config::default());
    let (host, queue) = rig.io();
    {
        let mut state = rig.model.state();
        state.hold = true;
        state.release_at = Some(rig.machine.now_us() + 1_000_000);
    }
    // `PxSACT` is all ones.
    queue.submit_many(reads(32));
    let quiesced = queue.quiesce(&rig.machine);
    let memory = rig.machine.dma(512).unwrap();
    let sector = Transfer::FromDevice(&memory, 512);
    let ran = rig.ahci[0].command(&identify(), &sector, 0, &|| false);
    assert!(ran.is_ok(), "{ran:?}");
    quiesced.unquiesce();
    rig.interrupts(|_| {
        queue.drain(Context::Irq);
    });
    let ended = host.take();
    assert_eq!(ended.len(), 32);
    assert!(ended.iter().all(|(_, outcome)| *outcome == Ok(())));
    rig.model.check();
}

#[test]
fn a_command_that_is_not_answered_leaves_the_port_stopped() {
    let rig = Rig::started(Config::with(Drive {
        mute: Some(9),
        bad: vec![Bad {
            times: 1,
            ..bad(9, 0x4051)
        }],
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
    let before = rig.machine.now_us();
    let lost = rig.ahci[0].command(&mute, &sector, 2000, &|| false);
    assert_eq!(lost, Err(Error::Timeout));
    assert!(rig.machine.now_us() - before < 2_100_000);
    assert_eq!(rig.ahci[0].step(), "a command passed through");
    // The log has what the registers said before the port was stopped.
    let mut line = String::new();
    rig.ahci[0].timeout_report(&mut line).unwrap();
    assert!(
        line.starts_with(
            "the drive has taken it, and is late (a command passed through): \
             waited for 0x00000001, PxCI 0x00000001"
        ),
        "{line}"
    );
    assert_eq!(rig.model.state().ports[0].cmd & 1, 0);
    assert_eq!(rig.ahci[0].stop(), Ok(()));
    assert_eq!(rig.ahci[0].start(), Ok(()));
    let mut line = rig.queue();
    assert_eq!(line.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
    rig.model.check();
}

#[test]
fn a_command_is_given_up_for_a_reset() {
    let rig = Rig::started(Config::with(Drive {
        mute: Some(9),
        ..Drive::new(9, 64)
    }));
    let memory = rig.machine.dma(512).unwrap();
    let read = |lba| AtaCommand {
        command: 0x25,
        count: 1,
        lba,
        device: 0x40,
        ..AtaCommand::default()
    };
    let sector = Transfer::FromDevice(&memory, 512);
    // What is answered soon is not lost to a reset.
    assert!(rig.ahci[0]
        .command(&read(1), &sector, 600_000, &|| true)
        .is_ok());
    let begin = rig.machine.now_us();
    let wanted = || rig.machine.now_us() >= begin + 3_000_000;
    let lost = rig.ahci[0].command(&read(9), &sector, 600_000, &wanted);
    assert_eq!(lost, Err(Error::Timeout));
    let waited = rig.machine.now_us() - begin;
    assert!((3_500_000..4_500_000).contains(&waited), "{waited} us");
    assert_eq!(rig.ahci[0].stop(), Ok(()));
    assert_eq!(rig.ahci[0].start(), Ok(()));
    let mut line = rig.queue();
    assert_eq!(line.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
    rig.model.check();
}

#[test]
fn errors_of_what_was_under_way_are_not_the_tools() {
    for names_errors in [true, false] {
        let rig = Rig::started(Config::with(Drive {
            bad: vec![bad(2, MEDIUM)],
            names_errors,
            ..Drive::new(9, 64)
        }));
        let (host, queue) = rig.io();
        queue.submit_many(reads(6));
        let quiesced = queue.quiesce(&rig.machine);
        let memory = rig.machine.dma(512).unwrap();
        let sector = Transfer::FromDevice(&memory, 512);
        let before = rig.machine.now_us();
        let reply = rig.ahci[0]
            .command(&identify(), &sector, 0, &|| false)
            .unwrap();
        assert_eq!(reply.status & 1, 0);
        assert!(rig.machine.now_us() - before < 1_000_000);
        quiesced.unquiesce();
        queue.drain(Context::Coop);
        let ended = host.take();
        assert_eq!(ended.len(), 6);
        for (job, outcome) in ended {
            let expected = match job.id {
                2 => Err(hal::CmdError::Medium),
                _ => Ok(()),
            };
            assert_eq!(outcome, expected, "block {}", job.id);
        }
        rig.model.check();
    }
}

#[test]
fn a_cache_that_is_turned_off_and_on_is_told_of() {
    let rig = Rig::started(Config::default());
    let cache = |features| AtaCommand {
        command: 0xef,
        features,
        ..AtaCommand::default()
    };
    let told = |features| {
        let reply = rig.ahci[0].command(&cache(features), &Transfer::Nothing, 0, &|| false);
        assert!(!reply.unwrap().is_failure());
        let unit = rig.units(0)[0].unwrap();
        (unit.write_cache, unit.fua)
    };
    assert!(cache(0x82).sets_cache() && cache(0x02).sets_cache());
    assert!(!cache(0x90).sets_cache() && !identify().sets_cache());
    assert_eq!(told(0x82), (false, false));
    // What it is then is what has to be there after a reset.
    rig.ahci[0].stop().unwrap();
    rig.ahci[0].start().unwrap();
    assert_eq!(told(0x02), (true, true));
    // A drive whose cache comes back by itself has it turned off again.
    assert_eq!(told(0x82), (false, false));
    let drive = |change: fn(&mut Drive)| {
        let mut state = rig.model.state();
        change(state.ports[0].drive.as_mut().unwrap());
    };
    let (host, queue) = rig.io();
    drive(|drive| drive.write_cache = true);
    let mut quiesced = queue.quiesce(&rig.machine);
    rig.ahci[0].stop().unwrap();
    quiesced.rewind();
    assert_eq!(rig.ahci[0].start(), Ok(()));
    quiesced.unquiesce();
    drive(|drive| assert!(!drive.write_cache));
    // Likewise by a reset of the link.
    drive(|drive| drive.write_cache = true);
    rig.model.state().config.breaks = Some((0, 1));
    queue.submit_many(reads(3));
    rig.interrupts(|_| {
        queue.drain(Context::Irq);
    });
    assert_eq!(run_eh(&rig, &queue), Ok(EhOutcome::Recovered));
    rig.interrupts(|_| {
        queue.drain(Context::Irq);
    });
    assert_eq!(host.take().len(), 3);
    drive(|drive| assert!(!drive.write_cache));
    // One that keeps it is not what was promised.
    drive(|drive| (drive.write_cache, drive.keeps_cache) = (true, true));
    let _paused = queue.quiesce(&rig.machine);
    rig.ahci[0].stop().unwrap();
    assert_eq!(rig.ahci[0].start(), Err(Error::Malformed));
    rig.model.check();
}

#[test]
fn a_cache_is_turned_by_the_operator_as_by_a_tool() {
    let rig = Rig::started(Config::default());
    let cache = || rig.units(0)[0].unwrap().write_cache;
    for on in [false, false, true, false, true] {
        assert_eq!(rig.ahci[0].set_write_cache(on), Ok(Ok(())));
        assert_eq!(cache(), on);
    }
    rig.model.state().ports[0]
        .drive
        .as_mut()
        .unwrap()
        .keeps_cache = true;
    let said = rig.ahci[0].set_write_cache(false).unwrap();
    assert!(said.is_err_and(|why| why.contains("refuses")));
    assert!(cache());
    rig.queue().moves_data(&rig.machine, 0, &[(512, 0, 0)]);
    rig.model.check();
}

#[test]
fn a_drive_is_spared_the_same_when_its_cache_was_turned() {
    // notrim, and no FUA without ahci_fua.
    let rig = Rig::started(Config {
        fua: false,
        ..Config::with(Drive {
            model: "SuperSSpeed S238 128GB",
            ..Drive::new(9, 64)
        })
    });
    let before = rig.units(0)[0].unwrap();
    assert!(before.discard.is_none() && before.write_cache && !before.fua);
    for on in [false, true] {
        assert_eq!(rig.ahci[0].set_write_cache(on), Ok(Ok(())));
        let write_cache = on;
        let wanted = hal::Unit {
            write_cache,
            ..before
        };
        assert_eq!(rig.units(0)[0].unwrap(), wanted);
    }
    rig.model.check();
}
