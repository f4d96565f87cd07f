// SPDX-License-Identifier: GPL-2.0
//! A controller that does what an input says, and what has to hold whatever that is: what `ci/fuzz`
//! looks for inputs for. Those that it has found to do something new are in `corpus/nvme`.

use crate::model::queues::Completion;
use crate::model::{Config, Model, Namespace, State};
use crate::rig::{Nvme, Rig, UNIT};
use hal::mock::{MockDma, MockPlatform};
use hal::{Access, Cause, Controller, Error, EventAction, Platform, Queues, Reserve};
use std::sync::Mutex;
use testkit::{Fuzz, Input, Target};

/// Of a page of registers those that have a meaning, and the doorbells of three queues.
const REGISTERS: [usize; 6] = [0x00, 0x04, 0x08, 0x14, 0x1c, 0x24];
const FORMAT: u8 = 0x80;
/// Queue pairs for I/O.
const QUEUES: u16 = 2;

struct Fuzzed {
    rig: Rig,
    /// Memory of tools whose commands were not answered: the device may still have it.
    kept: Mutex<Vec<MockDma>>,
}

impl Target for Fuzzed {
    type Controller = Nvme;
    type Device = State;

    fn machine(&self) -> &MockPlatform {
        &self.rig.machine
    }

    fn model(&self) -> &Model {
        &self.rig.model
    }

    fn controller(&self) -> &Nvme {
        &self.rig.nvme
    }

    fn registers(&self) -> &'static [usize] {
        &REGISTERS
    }

    fn handle_events(&self, queues: Queues) -> Result<EventAction, Error> {
        self.rig.nvme.handle_events(queues, &mut |_| {})
    }

    fn interrupt(&self) -> bool {
        let vectors = 0..=QUEUES;
        let calls = vectors.filter(|vector| self.rig.nvme.interrupt(*vector) == Cause::AsyncEvent);
        calls.count() != 0
    }

    fn cut_off(&self) {
        self.rig.model.state().power_cycle();
    }

    fn recover(&self) {
        let mut state = self.rig.model.state();
        if !state.gone() {
            state.vanish_at = None;
        }
        state.lies.end();
        state.liar = None;
        state.admin_liar = None;
        state.hold = false;
        state.out_of_reach = false;
        state.reporter.forever = None;
        (state.refuse, state.ignore) = (None, None);
        state.io_status.clear();
        state.stuck.next = 0;
        state.work_queues();
    }

    fn act(&self, input: &Input) -> Result<EventAction, Error> {
        let mut state = self.rig.model.state();
        let now = state.admin_log.len();
        match input.byte() & 15 {
            // It does not come back.
            0 if state.gone() => {}
            0 => state.vanish_at = Some(state.accesses + u64::from(input.byte())),
            1 => state.out_of_reach = input.coin(),
            2 => state.fatal = input.coin(),
            3 => {
                // No success: nothing is transferred.
                let status = input.word() as u16 | 1;
                state.io_status.push(status);
            }
            4 => {
                let status = input.word() as u16 | 1;
                state.refuse = Some((now + usize::from(input.byte() & 7), status));
            }
            5 => state.ignore = Some(now + usize::from(input.byte() & 7)),
            6 => state.stuck.next = usize::from(input.byte() & 3),
            7 => state.stuck.for_good = input.coin(),
            8 => state.raise(input.word()),
            9 => state.reporter.forever = input.coin().then(|| input.word()),
            10 => {
                state.lies.is_liar = true;
                state.liar = Some(lie_by(input));
            }
            11 => {
                state.lies.is_liar = true;
                state.admin_liar = Some(lie_by(input));
            }
            12 => scribble(&mut state, input),
            13 => state.config.warnings = input.byte(),
            14 => {
                let ns = &mut state.config.namespaces[0];
                ns.blocks = 1 << input.below(11);
                ns.data.resize((ns.blocks << ns.lbads) as usize, 0);
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
    /// A command of a tool's.
    fn pass(&self, input: &Input) -> Result<EventAction, Error> {
        let bytes = input.below(3 * 4096) as usize & !3;
        let data = (bytes != 0).then(|| self.rig.machine.dma(bytes));
        let Ok(data) = data.transpose() else {
            // Without memory the layer above sends nothing.
            return Ok(EventAction::None);
        };
        let first = u64::from(input.byte()) | (u64::from(input.byte() & 1) << 32);
        let [a, b, c] = [0; 3].map(|_: u64| u64::from(input.word()));
        let sqe = [first, 0, 0, 0, 0, a | (b << 32), c, 0];
        let timeout_ms = u32::from(input.byte());
        let nvme = &self.rig.nvme;
        // With less room its data would go where nobody has said: the layer above refuses that.
        let needed = lld_nvme::admin_bytes(&sqe).unwrap_or(0);
        // Nothing is under way when a disk is formatted.
        if sqe[0] as u8 == FORMAT {
            return Ok(EventAction::None);
        }
        let through = input.coin();
        if !through && matches!(sqe[0] as u8, 0x0d | 0x0e | 0x11 | 0x15) {
            return self.reserve(&sqe).map(|()| EventAction::Rescan);
        }
        let answer = match through {
            false => nvme.io(UNIT, sqe, data.as_ref(), timeout_ms, &|| false),
            true if needed > bytes as u64 => return Ok(EventAction::None),
            true => nvme.admin(sqe, data.as_ref(), timeout_ms, &|| false),
        };
        match answer {
            Err(error @ (Error::Timeout | Error::Fatal | Error::Gone)) => {
                self.kept.lock().unwrap().extend(data);
                Err(error)
            }
            _ => Ok(EventAction::Rescan),
        }
    }
}

impl Fuzzed {
    /// The block layer asks for a reservation, and who has which.
    fn reserve(&self, sqe: &[u64; 8]) -> Result<(), Error> {
        let of = self.rig.nvme.reservations().unwrap();
        let (key, flag) = (sqe[6], sqe[5] & 1 != 0);
        let access = Some(Access::WriteExclusive);
        let what = match sqe[0] as u8 {
            0x0d => Reserve::Register {
                old: key,
                new: key >> 1,
                ignore: flag,
            },
            0x11 => Reserve::Acquire {
                key,
                access,
                ignore: flag,
            },
            0x15 => Reserve::Release { key, access },
            _ if flag => {
                let mut keys = vec![0; key as usize % 4096];
                return of.registered(UNIT, &mut keys, &|| false).map(|_| ());
            }
            _ => return of.holder(UNIT, &|| false).map(|_| ()),
        };
        of.reserve(UNIT, &what, &|| false).map(|_| ())
    }
}

/// Lies about completions for as long as the input goes on.
fn lie_by(input: &Input) -> crate::model::Liar {
    let input = input.clone();
    Box::new(move |_, truth| {
        let wild = |input: &Input| Completion {
            result: u64::from(input.word()),
            sq_head: input.byte().into(),
            sq_id: (input.byte() & 3).into(),
            cid: input.word() as u16,
            status: input.word() as u16,
        };
        match input.byte() & 15 {
            0..=7 => vec![truth],
            8 => vec![truth, truth],
            9 => vec![],
            10 => vec![Completion {
                cid: truth.cid ^ u16::from(input.byte()),
                ..truth
            }],
            11 => vec![
                Completion {
                    cid: truth.cid ^ 0x1000,
                    ..truth
                },
                truth,
            ],
            12 => vec![Completion {
                sq_head: input.word() as u16,
                ..truth
            }],
            13 => vec![Completion {
                status: input.word() as u16,
                ..truth
            }],
            14 => vec![wild(&input), truth],
            _ => vec![wild(&input)],
        }
    })
}

/// Words into a completion queue, without a message.
fn scribble(state: &mut State, input: &Input) {
    state.lies.is_liar = true;
    let number = u16::from(input.byte()) % (QUEUES + 1);
    let Some((base, entries)) = state.cqs.get(&number).map(|cq| (cq.base, cq.entries)) else {
        return;
    };
    for _ in 0..=input.byte() & 7 {
        let at = base + input.below(u64::from(entries) * 4) * 4;
        let _ = state.platform.bus().write32(at, input.word());
    }
}

fn config(input: &Input) -> Config {
    let how = input.byte();
    Config {
        mqes: [1, 3, 7, 31][usize::from(how & 3)],
        sgls: u32::from((how >> 2) & 1),
        doorbell_buffer: how & 8 != 0,
        mdts: u8::from(how & 0x10 != 0) * 3,
        vwc: (how >> 5) & 1,
        to: 1,
        host_memory: [(0, 0, 0, 0), (8, 4, 1, 4)][usize::from((how >> 6) & 1)],
        namespaces: vec![Namespace::new(1, if how & 0x80 == 0 { 9 } else { 12 }, 256)],
        effects: Some(Vec::new()),
        oncs: 0x2c,
        rescap: 0xff,
        ..Config::default()
    }
}

/// One input.
pub fn run(bytes: &[u8]) {
    let input = Input::new(bytes);
    let machine = {
        let Ok(rig) = Rig::new(config(&input)) else {
            return;
        };
        if rig.nvme.start().is_err() {
            return;
        }
        let fuzzed = Fuzzed {
            rig,
            kept: Mutex::default(),
        };
        let lines = (0..QUEUES).map(|index| fuzzed.rig.queue(index));
        Fuzz::run(&fuzzed, &input, lines);
        let mut state = fuzzed.rig.model.state();
        // A tool that has more room than its command takes.
        let excused = "PRP 2 without use";
        state.complaints.retain(|told| told != excused);
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
