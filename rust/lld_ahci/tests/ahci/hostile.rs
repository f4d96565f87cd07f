// SPDX-License-Identifier: GPL-2.0
//! HBAs and drives that lie: nothing ends that was not told, nothing ends twice, nothing hangs for
//! ever, nothing panics.

use crate::errors::{bad, MEDIUM};
use crate::model::config::Bad;
use crate::model::{Config, Drive, Model, State};
use crate::rig::{command, read, reads, Rig};
use crate::whole::run_eh;
use engine::Context;
use hal::mock::{MockMapping, MockPlatform};
use hal::{CmdError, Controller, Error, Mmio, NewQueue, Op, PciIds, Platform, Queue};
use lld_ahci::{AhciController, EhOutcome, Hba, Port, Site};
use std::collections::BTreeSet;
use std::sync::Arc;
use testkit::Dice;

#[test]
fn bits_that_nobody_issued_are_nobodys() {
    for (depth, phantoms) in [(Some(32), 0xf000_0000), (None, 0xf000_0000)] {
        let rig = Rig::started(Config {
            phantoms,
            ..Config::with(Drive {
                depth,
                ..Drive::new(9, 64)
            })
        });
        let mut line = rig.queue();
        // The upper four are phantoms', so these are not among them.
        let tags: Vec<_> = std::iter::from_fn(|| line.free_tag()).take(4).collect();
        let data = rig.map(&[0; 512], 0, 0);
        let number = line.start(&command(Op::Read, 0, 1), &data.segments());
        assert_eq!(line.drain(), [(number.unwrap(), Ok(()))]);
        assert!(line.drain().is_empty());
        drop(tags);
        data.unmap();
        rig.model.check();
    }
}

#[test]
fn a_set_device_bits_fis_about_tags_that_were_not_told_ends_nothing() {
    let rig = Rig::started(Config::default());
    let mut line = rig.queue();
    let data = rig.map(&[0; 512], 0, 0);
    rig.model.state().hold = true;
    let number = line
        .start(&command(Op::Read, 0, 1), &data.segments())
        .unwrap();
    let fis = rig.model.state().ports[0].fb + 0x58;
    let bus = rig.machine.bus();
    for active in [u32::MAX, 1 << 31, 0] {
        bus.write32(fis + 4, active).unwrap();
        bus.write32(fis, 0x0040_40a1).unwrap();
        assert!(line.check(), "a reason to look");
        assert!(line.drain().is_empty(), "and no proof");
    }
    rig.model.run();
    assert_eq!(line.drain(), [(number, Ok(()))]);
    assert!(!line.check());
    data.unmap();
    rig.model.check();
}

#[test]
fn fises_that_are_none_are_counted() {
    for garbage in [0xffff_ffff, 0x0000_00ff, 0x0050_4039, 0x0001_0000] {
        let rig = Rig::started(Config::default());
        let mut line = rig.queue();
        rig.model.state().config.garbage = Some(garbage);
        let data = rig.map(&[0; 512], 0, 0);
        for _ in 0..20 {
            let told = line.start(&command(Op::Read, 0, 1), &data.segments());
            let number = told.unwrap();
            assert_eq!(line.drain(), [(number, Ok(()))], "by the register");
            // What looks like an error is to be seen to before anything more is told.
            if rig.ahci[0].is_eh_pending() {
                assert_eq!(rig.ahci[0].run_eh(), Ok(EhOutcome::Nothing));
            }
        }
        assert!(line.violations() >= 20, "{}", line.violations());
        data.unmap();
    }
}

#[test]
fn the_byte_count_of_a_header_is_nobodys_business() {
    for prdbc in [0, 1, 0xffff_ffff] {
        let rig = Rig::started(Config {
            prdbc: Some(prdbc),
            ..Config::with(Drive {
                depth: None,
                ..Drive::new(9, 64)
            })
        });
        let mut line = rig.queue();
        let data = rig.map(&[0; 512], 0, 0);
        let cmd = command(Op::Read, 0, 1);
        assert_eq!(line.run(&cmd, &data.segments()), Ok(()));
        data.unmap();
        rig.model.check();
    }
}

#[test]
fn a_device_that_hears_nothing_is_recovered_by_the_layer_above() {
    for depth in [Some(32), None] {
        let rig = Rig::started(Config::with(Drive {
            depth,
            ..Drive::new(9, 64)
        }));
        let (host, queue) = rig.io();
        rig.model.state().config.deaf = true;
        queue.submit_many((0..40).map(|id| read(id, 0)));
        rig.machine.advance(31_000_000);
        assert!(queue.overdue(rig.machine.now_us() / 1000, 30_000).is_some());
        let mut quiesced = queue.quiesce(&rig.machine);
        assert_eq!(rig.ahci[0].stop(), Ok(()));
        quiesced.reap(CmdError::Timeout.retryable());
        quiesced.rewind();
        rig.model.state().config.deaf = false;
        assert_eq!(rig.ahci[0].start(), Ok(()));
        quiesced.unquiesce();
        while queue.drain(Context::Irq) != 0 {}
        let ended = host.take();
        assert_eq!(ended.len(), 40);
        let late = ended
            .iter()
            .filter(|(_, out)| *out == Err(CmdError::Timeout));
        assert_eq!(late.count(), 32);
        rig.model.check();
    }
}

#[test]
fn a_device_that_falls_silent_in_a_recovery_is_given_up_in_bounded_time() {
    for names_errors in [true, false] {
        let rig = Rig::started(Config::with(Drive {
            names_errors,
            bad: vec![Bad {
                times: 1,
                ..bad(0, MEDIUM)
            }],
            ..Drive::new(9, 64)
        }));
        let (host, queue) = rig.io();
        queue.submit_many((0..8).map(|id| read(id, 7 - id as u64)));
        rig.model.state().config.deaf = true;
        let before = rig.machine.now_us();
        assert!(run_eh(&rig, &queue).is_err());
        let took = rig.machine.now_us() - before;
        assert!(took < 60_000_000, "{took}");
        // The layer above: everything from scratch, and in the end nothing is lost.
        let mut quiesced = queue.quiesce(&rig.machine);
        let _ = rig.ahci[0].stop();
        quiesced.reap(CmdError::Timeout.retryable());
        quiesced.rewind();
        rig.model.state().config.deaf = false;
        assert_eq!(rig.ahci[0].start(), Ok(()));
        quiesced.unquiesce();
        while queue.drain(Context::Irq) != 0 {}
        let mut ids: Vec<_> = host.take().iter().map(|(job, _)| job.id).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..8).collect::<Vec<_>>());
        rig.model.check();
    }
}

#[test]
fn a_link_that_breaks_for_ever_ends_in_bounded_time() {
    let rig = Rig::started(Config {
        breaks: Some((0, usize::MAX)),
        ..Config::with(Drive::new(9, 64))
    });
    let (host, queue) = rig.io();
    queue.submit_many(reads(20));
    let before = rig.machine.now_us();
    let gave_up = (0..10).find_map(|_| {
        rig.interrupts(|_| {
            queue.drain(Context::Irq);
        });
        run_eh(&rig, &queue).err()
    });
    assert_eq!(gave_up, Some(Error::Fatal));
    assert!(rig.machine.now_us() - before < 1_000_000);
    let mut quiesced = queue.quiesce(&rig.machine);
    assert_eq!(rig.ahci[0].stop(), Ok(()));
    quiesced.reap(CmdError::Timeout.retryable());
    quiesced.kill();
    let ended = host.take();
    assert_eq!(ended.len(), 20);
    assert!(ended.iter().all(|(_, outcome)| outcome.is_err()));
    rig.model.check();
}

#[test]
fn a_log_that_names_what_was_not_told_is_not_believed() {
    // 0x9f: NQ, with a tag that was told.
    for tag in [0, 28, 0x9f] {
        let rig = Rig::started(Config::with(Drive {
            bad: vec![bad(0, MEDIUM)],
            ..Drive::new(9, 64)
        }));
        let (host, queue) = rig.io();
        queue.submit_many(reads(3));
        if let Some((at, _)) = &mut rig.model.state().ports[0].failed {
            *at = tag;
        }
        assert!(run_eh(&rig, &queue).is_ok());
        let ended = host.take();
        assert_eq!(ended.len(), 3, "tag {tag}");
        for (job, outcome) in ended {
            let expected = match job.id {
                0 => Err(CmdError::Medium),
                _ => Ok(()),
            };
            assert_eq!(outcome, expected, "block {}", job.id);
        }
        assert_eq!(queue.violations(), 0);
        rig.model.check();
    }
}

/// Registers and memory of which nothing can be believed.
#[derive(Clone)]
struct Chaos {
    registers: Model,
    dice: Arc<std::sync::Mutex<Dice>>,
    one_in: u64,
}

impl Mmio for Chaos {
    fn len(&self) -> usize {
        self.registers.len()
    }

    fn read32(&self, offset: usize) -> u32 {
        let truth = self.registers.read32(offset);
        let mut dice = self.dice.lock().unwrap();
        match dice.roll(self.one_in) {
            0 => dice.roll(1 << 31) as u32 * 2 + dice.roll(2) as u32,
            1 => truth ^ (1 << dice.roll(32)),
            _ => truth,
        }
    }

    fn write32(&self, offset: usize, value: u32) {
        self.registers.write32(offset, value);
    }
}

#[derive(Clone)]
struct ChaosPlace(Arc<Port<MockPlatform, Chaos>>);

impl Site for ChaosPlace {
    type Platform = MockPlatform;
    type Mmio = Chaos;

    fn port(&self) -> &Port<MockPlatform, Chaos> {
        &self.0
    }

    fn schedule_eh(&self) {}
}

type ChaosAhci = AhciController<ChaosPlace>;

/// A queue of such a port, and the tags that are bound.
struct ChaosQueue {
    new: NewQueue<<ChaosAhci as Controller>::Queue>,
    outstanding: BTreeSet<u16>,
}

impl ChaosQueue {
    /// As many commands as there are free tags, three at most, about one block each.
    fn submit(&mut self, dice: &mut Dice, data: &MockMapping) {
        let new = &mut self.new;
        let mut free = new.queue.get_free_tags(&mut new.issue, 3);
        let mut bound = hal::TagBatch::default();
        while let Some(tag) = free.pop() {
            let op = if dice.roll(8) == 0 {
                Op::Flush
            } else {
                Op::Read
            };
            let cmd = command(op, dice.roll(64), u32::from(op == Op::Read));
            let segments = data.segments();
            let segments = segments.iter().map(|segment| Ok(*segment));
            let tag = new
                .queue
                .bind_tag_cmd(&mut new.issue, tag, &cmd, segments)
                .unwrap();
            let fresh = self.outstanding.insert(tag.number());
            assert!(fresh, "given out twice");
            bound.push(tag).unwrap();
        }
        new.queue.issue_tags(&mut new.issue, &mut bound);
    }

    /// Takes what has ended, and gives the tags back.
    fn drain(&mut self) {
        let new = &mut self.new;
        let mut done = hal::TagBatch::default();
        while let Some(event) = new.queue.fetch_event(&mut new.drain) {
            let ended = self.outstanding.remove(&event.tag.number());
            assert!(ended, "ended what was not told, or twice");
            done.push(new.queue.detach_tag_cmd(&mut new.drain, event.tag))
                .unwrap();
        }
        new.queue.release_tags(&mut new.drain, &mut done);
    }

    /// All that is left ends, once: the port has stopped.
    fn reap(&mut self) {
        let new = &mut self.new;
        while let Some(event) = new.queue.fetch_event(&mut new.drain) {
            assert!(self.outstanding.remove(&event.tag.number()));
        }
        while let Some(event) = new.queue.reap_tag(&mut new.drain) {
            assert!(self.outstanding.remove(&event.tag.number()));
        }
        assert!(self.outstanding.is_empty(), "lost");
    }
}

/// One life of a port of which every so many register reads lie. Returns whether it got as far as a
/// queue.
fn chaos(seed: u64, one_in: u64) -> Result<bool, Error> {
    let machine = MockPlatform::new();
    let model = Model::new(State::new(&machine, Config::with(Drive::new(9, 64))));
    let registers = Chaos {
        registers: model.clone(),
        dice: Arc::new(std::sync::Mutex::new(Dice(seed))),
        one_in,
    };
    let mut hba = Hba::new(registers.clone(), &PciIds::default())?;
    hba.start(&machine)?;
    let plan = hba.port(0).ok_or(Error::Malformed)?;
    let port = Arc::new(Port::new(machine.clone(), registers, plan)?);
    let ahci = AhciController::new(ChaosPlace(port));
    ahci.start()?;
    ahci.set_interrupt(0, true);
    let Ok(new) = ahci.create_queue(0, Some(0)) else {
        return Ok(false);
    };
    let mut queue = ChaosQueue {
        new,
        outstanding: BTreeSet::new(),
    };
    let data = machine.map(&[0; 512], 0, 0);
    let fis = model.state().ports[0].fb;
    let mut dice = Dice(seed ^ 77);
    for _ in 0..60 {
        queue.submit(&mut dice, &data);
        if dice.roll(4) == 0 {
            let word = dice.roll(1 << 32) as u32;
            let _ = machine.bus().write32(fis + dice.roll(64) * 4, word);
        }
        let _ = ahci.interrupt(0);
        queue.drain();
        if dice.roll(6) == 0 && ahci.run_eh().is_err() {
            break;
        }
    }
    let _ = ahci.stop();
    queue.reap();
    let _ = ahci.shutdown(hal::Shutdown::Normal);
    Ok(true)
}

#[test]
fn registers_of_which_nothing_can_be_believed_lose_and_double_nothing() {
    let lives = if cfg!(miri) { 4 } else { 120 };
    let mut served = 0;
    for seed in 0..lives {
        for one_in in [3, 20, 200] {
            served += usize::from(chaos(seed, one_in) == Ok(true));
        }
    }
    assert!(served > lives as usize / 4, "only {served} got to a queue");
}

#[test]
fn a_command_table_that_the_hba_overwrote_is_told_again_as_it_is() {
    // Nothing in it is an index: what comes of it is between the HBA and its drive.
    let rig = Rig::started(Config::with(Drive {
        names_errors: false,
        bad: vec![Bad {
            times: 1,
            ..bad(0, MEDIUM)
        }],
        ..Drive::new(9, 64)
    }));
    let (host, queue) = rig.io();
    queue.submit(read(0, 0), true);
    let memory = {
        let state = rig.model.state();
        let header = state.ports[0].clb + 31 * 32;
        rig.machine.bus().read64(header + 8).unwrap()
    };
    for word in 0..5 {
        let _ = rig.machine.bus().write32(memory + word * 4, u32::MAX);
    }
    assert!(run_eh(&rig, &queue).is_ok());
    assert_eq!(host.take().len(), 1);
}
