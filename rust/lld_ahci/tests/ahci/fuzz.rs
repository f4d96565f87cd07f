// SPDX-License-Identifier: GPL-2.0
//! An HBA and a drive that do what an input says, and what has to hold whatever that is: what
//! `ci/fuzz` looks for inputs for. Those that it has found to do something new are in `corpus`.

use crate::model::config::Bad;
use crate::model::{Config, Drive, Model, State, KNOWN_GOOD};
use crate::rig::{Ahci, Rig};
use hal::mock::{MockDma, MockPlatform};
use hal::{Cause, Controller, Error, EventAction, LinkPower, Platform, Queues};
use lld_ahci::{AtaCommand, EhOutcome, Transfer};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;
use testkit::{Fuzz, Input, Target};

/// Those of the HBA and of its first port.
const REGISTERS: [usize; 16] = [
    0x00, 0x04, 0x08, 0x0c, 0x24, 0x28, 0x110, 0x114, 0x118, 0x120, 0x124, 0x128, 0x12c, 0x130,
    0x134, 0x138,
];
/// Blocks of the drive.
const BLOCKS: u64 = 256;

struct Fuzzed {
    rig: Rig,
    /// Memory of tools whose commands were not answered: the device may still have it.
    kept: Mutex<Vec<MockDma>>,
    /// It was reset, and the driver can't have known.
    beneath: AtomicBool,
}

impl Target for Fuzzed {
    type Controller = Ahci;
    type Device = State;

    fn machine(&self) -> &MockPlatform {
        &self.rig.machine
    }

    fn model(&self) -> &Model {
        &self.rig.model
    }

    fn controller(&self) -> &Ahci {
        &self.rig.ahci[0]
    }

    fn registers(&self) -> &'static [usize] {
        &REGISTERS
    }

    fn handle_events(&self, queues: Queues) -> Result<EventAction, Error> {
        if queues == Queues::Live {
            return Ok(EventAction::Quiesce);
        }
        match self.rig.ahci[0].run_eh()? {
            EhOutcome::Nothing | EhOutcome::Recovered | EhOutcome::Attached => {
                Ok(EventAction::None)
            }
            EhOutcome::Detached | EhOutcome::Replaced => Err(Error::Gone),
        }
    }

    fn interrupt(&self) -> bool {
        let mut calls = false;
        self.rig.hba.interrupt(true, self.rig.ports(), |port| {
            let cause = self.rig.ahci[usize::from(port)].interrupt(0);
            calls |= cause == Cause::AsyncEvent;
            cause != Cause::None
        });
        calls | (self.rig.places[0].calls() != 0)
    }

    fn cut_off(&self) {
        self.rig.model.state().reset_beneath();
        // One that can't be brought back is found out when the port is started.
        let _ = self.rig.hba.restart(&self.rig.machine);
        self.rig.hba.set_interrupt(true);
    }

    fn recover(&self) {
        let mut state = self.rig.model.state();
        if !state.gone() {
            state.vanish_at = None;
        }
        state.lies.end();
        state.out_of_reach = false;
        state.hold = false;
        let config = &mut state.config;
        (config.garbage, config.prdbc, config.breaks) = (None, None, None);
        (config.phantoms, config.lag, config.stuck) = (0, 0, 0);
        (config.deaf, config.harps) = (false, false);
        config.reset_us = Some(1_000);
        if let Some(drive) = &mut state.ports[0].drive {
            drive.bad.clear();
            drive.mute = None;
            drive.ready_us = Some(3_000);
            drive.resets_needed = 0;
        }
        drop(state);
        self.cut_off();
        self.rig.model.run();
    }

    fn act(&self, input: &Input) -> Result<EventAction, Error> {
        let mut state = self.rig.model.state();
        match input.byte() % 20 {
            what @ (0..=12 | 18) => hba_acts(&mut state, what, input),
            what @ 13..=16 => drive_acts(&mut state, what, input),
            17 => {
                state.reset_beneath();
                self.beneath.store(true, Ordering::Relaxed);
            }
            _ => {
                drop(state);
                return self.pass(input);
            }
        }
        Ok(EventAction::None)
    }
}

impl Fuzzed {
    /// A command of a tool's, with as much room as it takes.
    fn pass(&self, input: &Input) -> Result<EventAction, Error> {
        let how = input.byte();
        if how & 7 == 6 {
            let policy = LinkPower::ALL[usize::from(input.byte()) % LinkPower::ALL.len()];
            return match self.rig.ahci[0].set_link_power(policy) {
                Err(error) if error != Error::Invalid => Err(error),
                _ => Ok(EventAction::None),
            };
        }
        let bytes = 4096 * (1 + u32::from(how >> 6));
        let Ok(data) = self.rig.machine.dma(bytes as usize) else {
            return Ok(EventAction::None);
        };
        let (opcode, transfer) = match how & 7 {
            0 => (0xec, Transfer::FromDevice(&data, 512)),
            1 => (0x2f, Transfer::FromDevice(&data, 512)),
            2 => (0x25, Transfer::FromDevice(&data, bytes)),
            3 => (0x35, Transfer::ToDevice(&data, bytes)),
            4 => (0xea, Transfer::Nothing),
            5 => (0xef, Transfer::Nothing),
            // Nothing that this drive knows.
            _ => (0xf0 | input.byte(), Transfer::FromDevice(&data, bytes)),
        };
        let shift = self.rig.units(0).into_iter().flatten().next();
        let shift = shift.map_or(9, |unit| unit.block_shift.min(12));
        let command = AtaCommand {
            command: opcode,
            features: input.byte().into(),
            count: match how & 7 {
                2 | 3 => (bytes >> shift) as u16,
                _ => input.byte().into(),
            },
            lba: input.below(BLOCKS + 1),
            device: input.byte(),
        };
        let timeout_ms = u32::from(input.byte());
        let answer = self.rig.ahci[0].command(&command, &transfer, timeout_ms, &|| false);
        match answer {
            Err(error @ (Error::Timeout | Error::Fatal | Error::Gone)) => {
                self.kept.lock().unwrap().push(data);
                Err(error)
            }
            _ => Ok(EventAction::Rescan),
        }
    }
}

/// What an HBA can do, and keep to itself.
fn hba_acts(state: &mut State, what: u8, input: &Input) {
    match what {
        // It does not come back.
        0 if state.gone() => {}
        0 => state.vanish_at = Some(state.accesses + u64::from(input.byte())),
        1 => {
            // What was written meanwhile got lost, and nobody can know.
            state.lies.is_liar |= state.out_of_reach;
            state.out_of_reach = input.coin();
        }
        2 => state.config.deaf = input.coin(),
        3 => state.config.harps = input.coin(),
        4 => state.config.lag = usize::from(input.byte() & 7),
        5 => state.config.stuck = input.byte() % 3,
        6 => state.config.clears_failed = input.coin(),
        7 => state.config.breaks = Some((usize::from(input.byte()), usize::from(input.byte() & 7))),
        8 => state.config.prdbc = input.coin().then(|| input.word()),
        9 => {
            state.lies.is_liar = true;
            state.config.garbage = input.coin().then(|| input.word());
        }
        10 => {
            state.lies.is_liar = true;
            state.config.phantoms = input.word();
        }
        11 => scribble(state, input),
        12 => {
            // Trouble that it tells of, and that nobody sees.
            state.lies.is_liar = true;
            state.ports[0].is |= input.word();
        }
        _ => state.config.reverses = input.coin(),
    }
}

/// What the drive can do: blocks that it can't serve, or never answers, one that is slow, another
/// one.
fn drive_acts(state: &mut State, what: u8, input: &Input) {
    match what {
        13 => {
            let bad = Bad {
                lba: input.below(BLOCKS),
                tfd: [0x4051, 0x1051, 0x0451, 0x8451, 0x0061][usize::from(input.byte() % 5)],
                times: usize::from(input.byte() & 7),
            };
            if let Some(drive) = &mut state.ports[0].drive {
                drive.bad.push(bad);
            }
        }
        14 => {
            let lba = input.coin().then(|| input.below(BLOCKS));
            if let Some(drive) = &mut state.ports[0].drive {
                drive.mute = lba;
            }
        }
        15 => {
            let us = [None, Some(3_000), Some(11_000_000)][usize::from(input.byte() % 3)];
            if let Some(drive) = &mut state.ports[0].drive {
                drive.ready_us = us;
            }
        }
        _ => {
            if let Some(mut drive) = state.unplug(0) {
                drive.serial = [drive.serial, "SERIAL-1"][usize::from(input.byte() & 1)];
                state.plug(0, drive);
            }
        }
    }
}

/// A word into the memory in which FISes are received.
fn scribble(state: &mut State, input: &Input) {
    state.lies.is_liar = true;
    let base = state.ports[0].fb;
    for _ in 0..=input.byte() & 3 {
        // Most often where those are that are looked at.
        let at = match input.byte() & 3 {
            0 => 0x40,
            1 => 0x58,
            2 => 0x5c,
            _ => input.below(64) * 4,
        };
        let _ = state.platform.bus().write32(base + at, input.word());
    }
}

fn config(input: &Input) -> Config {
    let (how, drive) = (input.byte(), input.byte());
    Config {
        slots: [1, 2, 5, 32][usize::from(how & 3)],
        ncq: how & 4 == 0,
        clo: how & 8 == 0,
        sss: how & 0x10 != 0,
        batches: how & 0x20 == 0,
        reverses: how & 0x40 != 0,
        reverts: how & 0x80 != 0,
        ..Config::with(Drive {
            depth: [Some(32), Some(4), Some(1), None][usize::from(drive & 3)],
            queued_trim: drive & 4 != 0,
            model: KNOWN_GOOD,
            names_errors: drive & 8 == 0,
            write_cache: drive & 0x10 == 0,
            has_dipm: drive & 0x20 != 0,
            dipm: drive & 0x20 != 0,
            keeps_dipm: how & 0x40 != 0,
            lba48: drive & 0x40 == 0,
            ..Drive::new(if drive & 0x80 == 0 { 9 } else { 12 }, BLOCKS)
        })
    }
}

/// One input.
pub fn run(bytes: &[u8]) {
    let input = Input::new(bytes);
    let machine = {
        let Ok(rig) = Rig::new(config(&input)) else {
            return;
        };
        if rig.ahci[0].start().is_err() || rig.units(0).iter().all(Result::is_err) {
            return;
        }
        rig.hba.set_interrupt(true);
        rig.ahci[0].set_interrupt(0, true);
        let line = rig.queue();
        let fuzzed = Fuzzed {
            rig,
            kept: Mutex::default(),
            beneath: AtomicBool::new(false),
        };
        Fuzz::run(&fuzzed, &input, [line]);
        let mut state = fuzzed.rig.model.state();
        if fuzzed.beneath.load(Ordering::Relaxed) {
            let excused = ["PxCI written to a stopped port", "PxSACT: stopped true"];
            let is_excused = |told: &String| excused.iter().any(|why| told.starts_with(why));
            state.complaints.retain(|told| !is_excused(told));
        }
        if !state.lies.is_liar {
            assert_eq!(state.complaints, Vec::<String>::new());
            assert_eq!(state.platform.bus().faults(), 0, "accesses to no memory");
        }
        state.complaints.clear();
        drop(state);
        fuzzed.rig.machine.clone()
    };
    assert_eq!(
        machine.bus().blocks_alive(),
        0,
        "memory that nobody gave back"
    );
}

#[test]
fn nothing_that_was_found_breaks_anything() {
    testkit::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus"), run);
}
