// SPDX-License-Identifier: GPL-2.0
//! Issuer and drainer at once, stopped at the very accesses between which something could be
//! mistaken or overlooked.

use crate::model::{Config, Drive, Model, State, KNOWN_GOOD};
use crate::rig::command;
use hal::mock::{MockDma, MockPlatform};
use hal::{Controller, DmaMem, Error, Mmio, NewQueue, Op, PciIds, Platform, Queue, TagBatch};
use lld_ahci::{AhciController, AhciDrain, AhciQueue, Hba, Port, Site};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Something that has happened.
#[derive(Default)]
struct Flag(Mutex<bool>, Condvar);

impl Flag {
    fn set(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }

    fn wait(&self) {
        let (guard, limit) = (self.0.lock().unwrap(), Duration::from_secs(20));
        let waited = self.1.wait_timeout_while(guard, limit, |set| !*set);
        assert!(
            !waited.unwrap().1.timed_out(),
            "the other thread never came"
        );
    }
}

/// A place at which the next thread that passes is stopped, once.
#[derive(Default)]
struct Point {
    armed: AtomicBool,
    reached: Flag,
    go_on: Flag,
}

impl Point {
    fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    fn pass(&self) {
        if self.armed.swap(false, Ordering::SeqCst) {
            self.reached.set();
            self.go_on.wait();
        }
    }
}

/// The places.
#[derive(Default)]
struct Points {
    /// After the D2H Register FIS was read.
    after_rfis: Point,
    /// Before the Set Device Bits FIS is read.
    before_sdb: Point,
    before_sact: Point,
    before_ci: Point,
    /// Before PxSACT, or PxCI, is read.
    before_look: Point,
    /// Of the port's blocks of memory, the first has the FISes.
    blocks: AtomicUsize,
}

#[derive(Clone)]
struct Machine(MockPlatform, Arc<Points>);

struct Memory {
    inner: MockDma,
    points: Option<Arc<Points>>,
}

impl Platform for Machine {
    type Table<T: Send + Sync + 'static> = Box<[T]>;
    type Dma = Memory;

    fn table<T: Send + Sync + 'static>(
        &self,
        len: usize,
        make: impl FnMut(usize) -> T,
    ) -> Result<Box<[T]>, Error> {
        self.0.table(len, make)
    }

    fn dma(&self, bytes: usize) -> Result<Memory, Error> {
        let first = self.1.blocks.fetch_add(1, Ordering::SeqCst) == 0;
        Ok(Memory {
            inner: self.0.dma(bytes)?,
            points: first.then(|| Arc::clone(&self.1)),
        })
    }

    fn now_us(&self) -> u64 {
        self.0.now_us()
    }

    fn sleep_us(&self, us: u64) {
        self.0.sleep_us(us);
    }
}

impl DmaMem for Memory {
    fn bus_addr(&self) -> u64 {
        self.inner.bus_addr()
    }

    fn len(&self) -> usize {
        self.inner.len()
    }

    fn read32(&self, offset: usize) -> u32 {
        if let (0x458, Some(points)) = (offset, &self.points) {
            points.before_sdb.pass();
        }
        let value = self.inner.read32(offset);
        if let (0x440, Some(points)) = (offset, &self.points) {
            points.after_rfis.pass();
        }
        value
    }

    fn write32(&self, offset: usize, value: u32) {
        self.inner.write32(offset, value);
    }

    fn read64(&self, offset: usize) -> u64 {
        self.inner.read64(offset)
    }

    fn write64(&self, offset: usize, value: u64) {
        self.inner.write64(offset, value);
    }
}

#[derive(Clone)]
struct Gated(Model, Arc<Points>);

impl Mmio for Gated {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn read32(&self, offset: usize) -> u32 {
        if let 0x134 | 0x138 = offset {
            self.1.before_look.pass();
        }
        self.0.read32(offset)
    }

    fn write32(&self, offset: usize, value: u32) {
        match offset {
            0x134 => self.1.before_sact.pass(),
            0x138 => self.1.before_ci.pass(),
            _ => {}
        }
        self.0.write32(offset, value);
    }
}

#[derive(Clone)]
struct Place(Arc<Port<Machine, Gated>>);

impl Site for Place {
    type Platform = Machine;
    type Mmio = Gated;

    fn port(&self) -> &Port<Machine, Gated> {
        &self.0
    }

    fn schedule_eh(&self) {}
}

type Line = AhciQueue<Place>;

struct Rig {
    model: Model,
    points: Arc<Points>,
    ahci: AhciController<Place>,
}

fn rig(depth: Option<u8>) -> (Rig, NewQueue<Line>) {
    let points = Arc::new(Points::default());
    let machine = Machine(MockPlatform::new(), Arc::clone(&points));
    let drive = Drive {
        depth,
        queued_trim: depth.is_some(),
        model: KNOWN_GOOD,
        ..Drive::new(9, 64)
    };
    let model = Model::new(State::new(&machine.0, Config::with(drive)));
    let registers = Gated(model.clone(), Arc::clone(&points));
    let mut hba = Hba::new(registers.clone(), &PciIds::default()).unwrap();
    hba.start(&machine).unwrap();
    let port = Port::new(machine, registers, hba.port(0).unwrap()).unwrap();
    let ahci = AhciController::new(Place(Arc::new(port)));
    ahci.start().unwrap();
    let queue = ahci.create_queue(0, Some(0)).unwrap();
    let rig = Rig {
        model,
        points,
        ahci,
    };
    (rig, queue)
}

/// A flush, or a TRIM where that is queued: neither has data. Returns its slot.
fn issue(queue: &Line, op: Op) -> u16 {
    let tag = queue.get_free_tags(&mut (), 1).pop().unwrap();
    let number = tag.number();
    let cmd = match op {
        Op::Discard => command(op, 0, 1),
        _ => command(op, 0, 0),
    };
    let bound = queue.bind_tag_cmd(&mut (), tag, &cmd, std::iter::empty());
    let mut batch = TagBatch::default();
    batch.push(bound.unwrap()).unwrap();
    queue.issue_tags(&mut (), &mut batch);
    number
}

fn drain(queue: &Line, side: &mut AhciDrain) -> Vec<u16> {
    let mut all = Vec::new();
    let mut tags = TagBatch::default();
    while let Some(event) = queue.fetch_event(side) {
        all.push(event.tag.number());
        tags.push(queue.detach_tag_cmd(side, event.tag)).unwrap();
    }
    queue.release_tags(side, &mut tags);
    all
}

#[test]
fn a_late_answer_does_not_end_a_command_that_is_being_told() {
    let (rig, mut new) = rig(None);
    let (points, queue) = (&rig.points, &new.queue);
    let first = issue(queue, Op::Flush);
    assert_eq!(drain(queue, &mut new.drain), [first]);
    // An answer that was covered by the look that found its command finished.
    let fis = rig.model.state().ports[0].fb + 0x40;
    let bus = rig.model.state().platform.bus();
    bus.write32(fis, 0x0050_4034).unwrap();
    std::thread::scope(|scope| {
        points.after_rfis.arm();
        let side = &mut new.drain;
        let drainer = scope.spawn(move || drain(queue, side));
        points.after_rfis.reached.wait();
        points.before_ci.arm();
        let issuer = scope.spawn(|| issue(queue, Op::Flush));
        points.before_ci.reached.wait();
        points.after_rfis.go_on.set();
        assert!(drainer.join().unwrap().is_empty(), "it was not even told");
        points.before_ci.go_on.set();
        issuer.join().unwrap();
    });
    assert!(queue.check_event(&mut new.drain));
    assert_eq!(drain(queue, &mut new.drain).len(), 1);
    rig.model.check();
}

#[test]
fn a_tag_that_is_not_in_the_register_yet_is_not_finished() {
    for (depth, op, at_ci) in [
        (Some(32), Op::Discard, false),
        (Some(32), Op::Discard, true),
        (None, Op::Flush, true),
    ] {
        let (rig, mut new) = rig(depth);
        let (points, queue) = (&rig.points, &new.queue);
        let point = if at_ci {
            &points.before_ci
        } else {
            &points.before_sact
        };
        std::thread::scope(|scope| {
            point.arm();
            let issuer = scope.spawn(|| issue(queue, op));
            point.reached.wait();
            assert!(drain(queue, &mut new.drain).is_empty(), "{op:?} {at_ci}");
            point.go_on.set();
            issuer.join().unwrap();
        });
        assert!(queue.check_event(&mut new.drain));
        assert_eq!(drain(queue, &mut new.drain).len(), 1);
        rig.model.check();
    }
}

#[test]
fn a_completion_in_the_middle_of_a_look_is_not_overlooked() {
    let (rig, mut new) = rig(Some(32));
    let (points, queue) = (&rig.points, &new.queue);
    rig.model.state().hold = true;
    let first = issue(queue, Op::Discard);
    std::thread::scope(|scope| {
        points.before_sdb.arm();
        let side = &mut new.drain;
        let drainer = scope.spawn(move || (drain(queue, side), queue.check_event(side)));
        points.before_sdb.reached.wait();
        // Told and finished between.
        rig.model.state().hold = false;
        let second = issue(queue, Op::Discard);
        points.before_sdb.go_on.set();
        let (mut ended, more) = drainer.join().unwrap();
        ended.sort_unstable();
        assert!(more || ended == [first, second], "{ended:?}");
    });
    drain(queue, &mut new.drain);
    assert!(!queue.check_event(&mut new.drain));
    rig.model.check();
}

#[test]
fn a_register_that_a_halt_has_cleared_ends_nothing() {
    for (depth, op) in [(Some(32), Op::Discard), (None, Op::Flush)] {
        let (rig, mut new) = rig(depth);
        let (points, queue) = (&rig.points, &new.queue);
        let first = issue(queue, op);
        rig.model.state().hold = true;
        let second = issue(queue, op);
        std::thread::scope(|scope| {
            points.before_look.arm();
            let side = &mut new.drain;
            let drainer = scope.spawn(move || drain(queue, side));
            points.before_look.reached.wait();
            rig.ahci.stop().unwrap();
            points.before_look.go_on.set();
            let ended = drainer.join().unwrap();
            assert!(
                !ended.contains(&second),
                "{op:?}: {first} and {second} ended"
            );
        });
        rig.model.check();
    }
}
