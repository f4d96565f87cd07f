// SPDX-License-Identifier: GPL-2.0
//! A command that is not answered is given up by the controller, which does not lose the others.

use crate::model::Config;
use crate::rig::{command, Rig};
use hal::{CmdError, Controller, Error, Op, Platform};

const LIMIT_US: u64 = 4_000_000;

#[test]
fn a_stuck_command_comes_back_as_aborted() {
    let rig = Rig::started(Config::default());
    let (mut other, mut line) = (rig.queue(0), rig.queue(1));
    let innocent = other.start(&command(Op::Flush, 0, 0), &[]).unwrap();
    // So that CID and tag are not the same number.
    for _ in 0..3 {
        assert_eq!(line.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
    }
    rig.model.state().stuck.next = 1;
    let stuck = line.start(&command(Op::Flush, 0, 0), &[]).unwrap();
    let well = line.start(&command(Op::Flush, 0, 0), &[]).unwrap();
    assert_eq!(line.drain(), [(well, Ok(()))]);
    let aborted = rig.nvme.abort(&line.0.queue, usize::from(stuck), LIMIT_US);
    assert_eq!(aborted, Ok(true));
    assert_eq!(line.drain(), [(stuck, Err(CmdError::Aborted))]);
    assert_eq!(other.drain(), [(innocent, Ok(()))]);
    assert_eq!(line.violations(), 0);
    assert_eq!(line.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
    rig.model.check();
}

#[test]
fn what_is_not_aborted_is_said_to_go_on() {
    let rig = Rig::started(Config::default());
    let mut line = rig.queue(0);
    let abort = |line: &crate::rig::Line, tag| rig.nvme.abort(&line.0.queue, tag, LIMIT_US);
    assert_eq!(abort(&line, 0), Ok(false), "it has no such command");
    assert_eq!(abort(&line, usize::MAX), Ok(false), "nor has the queue");
    rig.model.state().stuck.next = 1;
    rig.model.state().stuck.for_good = true;
    let stuck = line.start(&command(Op::Flush, 0, 0), &[]).unwrap();
    assert_eq!(abort(&line, usize::from(stuck)), Ok(false));
    // Abort Command Limit Exceeded, Invalid Command Opcode.
    for status in [0x4103, 0x4001] {
        let next = rig.model.state().admin_log.len();
        rig.model.state().refuse = Some((next, status));
        assert_eq!(abort(&line, usize::from(stuck)), Ok(false));
    }
    assert_eq!(line.drain(), []);
    rig.model.check();
}

#[test]
fn a_controller_that_does_not_answer_abort_is_to_be_reset_in_time() {
    let rig = Rig::started(Config::default());
    let line = rig.queue(0);
    let next = rig.model.state().admin_log.len();
    rig.model.state().ignore = Some(next);
    let begin = rig.machine.now_us();
    let abort = || rig.nvme.abort(&line.0.queue, 0, LIMIT_US);
    assert_eq!(abort(), Err(Error::Timeout));
    let took = rig.machine.now_us() - begin;
    assert!((LIMIT_US..LIMIT_US + 10_000).contains(&took), "{took} us");
    assert_eq!(rig.nvme.step(), "Abort");
    // Nothing more is sent until it is reset.
    assert_eq!(abort(), Err(Error::Timeout));
    assert_eq!(rig.model.state().admin_log.len(), next + 1);
    rig.nvme.stop().unwrap();
    rig.nvme.start().unwrap();
    assert_eq!(abort(), Ok(false));
    rig.model.vanish();
    assert_eq!(abort(), Err(Error::Gone));
}
