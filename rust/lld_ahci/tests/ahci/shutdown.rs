// SPDX-License-Identifier: GPL-2.0
//! Power goes away.

use crate::model::{Config, Drive};
use crate::rig::{command, Rig};
use hal::{Controller, Error, Op, Platform};

#[test]
fn a_shutdown_flushes_and_parks() {
    for (write_cache, expected) in [(true, vec![0xea, 0xe0]), (false, vec![0xe0])] {
        let rig = Rig::started(Config::with(Drive {
            write_cache,
            ..Drive::new(9, 8)
        }));
        let mut queue = rig.queue();
        let data = rig.map(&[1; 512], 0, 0);
        queue
            .start(&command(Op::Write, 0, 1), &data.segments())
            .unwrap();
        let before = rig.model.state().log.len();
        assert_eq!(rig.ahci[0].shutdown(hal::Shutdown::Normal), Ok(()));
        let log = rig.model.state().log[before..].to_vec();
        let opcodes: Vec<u8> = log.iter().map(|taken| taken.command).collect();
        assert_eq!(opcodes, expected);
        assert_eq!(rig.ahci[0].stop(), Ok(()));
        // What was finished before is none the worse for it.
        assert_eq!(queue.drain(), [(0, Ok(()))]);
        data.unmap();
        rig.model.check();
    }
}

#[test]
fn a_shutdown_of_a_drive_that_does_not_answer_is_bounded() {
    let rig = Rig::started(Config::default());
    rig.model.state().config.deaf = true;
    let mut queue = rig.queue();
    queue.start(&command(Op::Flush, 0, 0), &[]).unwrap();
    let before = rig.machine.now_us();
    let told = rig.ahci[0].shutdown(hal::Shutdown::Normal);
    assert_eq!(told, Err(Error::Timeout));
    assert_eq!(rig.ahci[0].step(), "IDENTIFY DEVICE");
    assert!(rig.machine.now_us() - before < 37_000_000);
    assert_eq!(rig.ahci[0].stop(), Ok(()));
    assert!(queue.drain().is_empty());
    assert_eq!(queue.reap().len(), 1);
    assert_eq!(rig.ahci[0].shutdown(hal::Shutdown::Dead), Ok(()));
    rig.model.check();
}

#[test]
fn a_shutdown_lets_finish_what_is_under_way() {
    let rig = Rig::started(Config::default());
    let mut line = rig.queue();
    let data = rig.map(&[7; 512], 0, 0);
    {
        let mut state = rig.model.state();
        state.hold = true;
        state.release_at = Some(rig.machine.now_us() + 1_000_000);
    }
    let write = command(Op::Write, 3, 1);
    let number = line.start(&write, &data.segments()).unwrap();
    assert_eq!(rig.ahci[0].shutdown(hal::Shutdown::Normal), Ok(()));
    assert_eq!(rig.ahci[0].stop(), Ok(()));
    assert_eq!(line.drain(), [(number, Ok(()))]);
    let state = rig.model.state();
    let opcodes: Vec<u8> = state.log.iter().map(|taken| taken.command).collect();
    assert_eq!(opcodes, [0xec, 0x61, 0xea, 0xe0]);
    assert_eq!(state.ports[0].resets, 0);
    drop(state);
    data.unmap();
    rig.model.check();
}
