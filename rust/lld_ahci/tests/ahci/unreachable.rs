// SPDX-License-Identifier: GPL-2.0
//! An HBA whose registers read as zero, because its memory space was turned off, and which goes on
//! with what it has.

use crate::errors::with_bad;
use crate::model::{Config, Drive};
use crate::rig::{reads, Rig};
use crate::whole::run_eh;
use engine::Context;
use hal::{CmdError, Controller, Error};
use lld_ahci::{AtaCommand, Transfer};

#[test]
fn an_hba_whose_registers_read_as_zero_has_finished_nothing_that_it_did_not_say() {
    for depth in [Some(32), None] {
        let rig = Rig::started(Config::with(Drive {
            depth,
            ..with_bad(Vec::new())
        }));
        let (host, queue) = rig.io();
        rig.model.state().hold = true;
        queue.submit_many(reads(6));
        // It finishes one of them, and says so in memory; then its memory space is turned off.
        let fis = rig.model.state().ports[0].fb;
        let bus = rig.machine.bus();
        match depth {
            Some(_) => {
                bus.write32(fis + 0x58, 0x0040_40a1).unwrap();
                bus.write32(fis + 0x5c, 1).unwrap();
            }
            None => bus.write32(fis + 0x40, 0x0050_4034).unwrap(),
        }
        rig.model.state().out_of_reach = true;
        queue.drain(Context::Irq);
        assert!(host.take().is_empty(), "it may not have: {depth:?}");
        assert_eq!(run_eh(&rig, &queue), Err(Error::Fatal));
        assert_eq!(rig.ahci[0].stop(), Err(Error::Gone), "it is cut off");
        rig.model.state().out_of_reach = false;
        assert_eq!(rig.ahci[0].stop(), Ok(()));
    }
}

#[test]
fn no_command_of_a_tool_s_has_worked_because_registers_read_as_zero() {
    let rig = Rig::started(Config::default());
    rig.model.state().hold = true;
    let transfer = Transfer::Nothing;
    let flush = AtaCommand {
        command: 0xea,
        ..AtaCommand::default()
    };
    rig.model.state().out_of_reach = true;
    let ended = rig.ahci[0].command(&flush, &transfer, 1000, &|| false);
    assert!(ended.is_err(), "{ended:?}");
}

#[test]
fn what_was_told_in_vain_is_not_finished_because_a_register_knows_nothing_of_it() {
    for depth in [Some(32), None] {
        let rig = Rig::started(Config::with(Drive {
            depth,
            ..Drive::new(9, 64)
        }));
        let (host, queue) = rig.io();
        rig.model.state().out_of_reach = true;
        queue.submit_many(reads(2));
        rig.model.state().out_of_reach = false;
        let mut quiesced = queue.quiesce(&rig.machine);
        assert_eq!(rig.ahci[0].stop(), Ok(()));
        quiesced.reap(CmdError::Timeout.retryable());
        quiesced.kill();
        let late = Err(CmdError::Timeout);
        assert_eq!(host.outcomes(), [(0, late), (1, late)], "{depth:?}");
    }
}
