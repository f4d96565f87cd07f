// SPDX-License-Identifier: GPL-2.0
//! Memory that is lent to a controller: as much as it wants and the limit allows, in the largest
//! pieces that there are, and never taken back while it may use it.

use crate::model::{Config, Model, State};
use crate::rig::{command, Rig};
use hal::mock::MockPlatform;
use hal::{Controller, DeviceEvent, Op, Queues, Shutdown};

const MIB: u64 = 1 << 20;

/// A controller that prefers `mib` MiB, on a machine whose memory is in pieces of `largest` bytes.
fn rig(mib: u32, least: u32, limit: u64, largest: usize) -> Rig {
    let config = Config {
        host_memory: (mib << 8, least << 8, 0, 0),
        ..Config::default()
    };
    of(config, limit, largest)
}

fn of(config: Config, limit: u64, largest: usize) -> Rig {
    let machine = MockPlatform::new();
    let model = Model::new(State::new(&machine, config));
    let rig = Rig::on(machine, model).unwrap();
    rig.nvme.set_hmb_limit(limit);
    rig.machine.fragment(largest);
    rig.nvme.start().unwrap();
    rig
}

fn told(rig: &Rig) -> String {
    let mut all = Vec::new();
    let mut tell = |notice: DeviceEvent<'_>| all.push(notice.text.to_string());
    rig.nvme.handle_events(Queues::Live, &mut tell).unwrap();
    all.join("|")
}

fn pieces(rig: &Rig) -> Vec<u64> {
    let pieces = rig.model.state().borrowed.pieces.clone();
    pieces.iter().map(|(_, bytes)| *bytes).collect()
}

#[test]
fn it_gets_what_it_prefers_in_large_pieces() {
    let rig = rig(9, 1, 128 * MIB, usize::MAX);
    assert_eq!(pieces(&rig), [4 * MIB, 4 * MIB, MIB]);
    assert!(told(&rig).starts_with("9216 KiB of memory are lent to it, in 3 chunks"));
    assert_eq!(told(&rig), "", "once");
    rig.model.check();
}

#[test]
fn it_gets_no_more_than_the_limit() {
    assert_eq!(pieces(&rig(9, 1, 2 * MIB, usize::MAX)), [2 * MIB]);
    assert_eq!(pieces(&rig(9, 1, 5 * MIB, usize::MAX)), [4 * MIB, MIB]);
    let none = rig(9, 3, 2 * MIB, usize::MAX);
    assert_eq!(pieces(&none), []);
    let text = told(&none);
    assert!(
        text.contains("3 MiB") && text.contains("nvme_hmb_mb"),
        "{text}"
    );
    let off = rig(9, 0, 0, usize::MAX);
    assert_eq!((pieces(&off), told(&off)), (vec![], String::new()));
    let modest = rig(0, 0, 128 * MIB, usize::MAX);
    assert_eq!((pieces(&modest), told(&modest)), (vec![], String::new()));
}

#[test]
fn on_a_fragmented_machine_the_pieces_are_smaller() {
    assert_eq!(pieces(&rig(1, 1, MIB, 300 << 10)), [256 << 10; 4]);
    assert_eq!(pieces(&rig(1, 1, MIB, 8 << 10)).len(), 128);
    // The rest of the driver has to live, too.
    let short = rig(1, 1, MIB, 4096 * 3);
    assert_eq!(pieces(&short).len(), 128);
    let config = Config {
        // Pieces of 64 KiB at least.
        host_memory: (1 << 8, 1 << 8, 16, 0),
        ..Config::default()
    };
    let short = of(config, MIB, 32 << 10);
    assert_eq!(pieces(&short), []);
    let text = told(&short);
    assert!(text.contains("does not have the 1024 KiB"), "{text}");
}

#[test]
fn no_more_pieces_than_it_can_tell_apart() {
    let config = |least: u32| Config {
        host_memory: (1 << 8, least, 0, 4),
        ..Config::default()
    };
    // Less than it prefers, in the pieces that there are, but no less than the least.
    assert_eq!(pieces(&of(config(0), MIB, 64 << 10)), [64 << 10; 4]);
    assert_eq!(pieces(&of(config(65), MIB, 64 << 10)), []);
}

#[test]
fn it_is_the_same_after_every_start() {
    let rig = rig(2, 1, 128 * MIB, usize::MAX);
    let mut queue = rig.queue(0);
    let before = rig.model.state().borrowed.pieces.clone();
    for round in 1..4 {
        assert_eq!(queue.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
        rig.nvme.stop().unwrap();
        assert!(rig.model.state().borrowed.pieces.is_empty());
        assert!(queue.reap().is_empty());
        queue.rewind();
        rig.nvme.start().unwrap();
        let borrowed = rig.model.state().borrowed.clone();
        assert_eq!(
            (borrowed.pieces, borrowed.times),
            (before.clone(), (round + 1, round))
        );
    }
    rig.nvme.shutdown(Shutdown::Normal).unwrap();
    rig.model.check();
    // It goes with the driver, and not before the controller has let go of it.
    let (machine, bus) = (rig.machine.clone(), rig.machine.bus());
    drop((queue, rig));
    assert_eq!((bus.faults(), machine.bus().blocks_alive()), (0, 0));
}

#[test]
fn a_controller_that_refuses_it_does_without() {
    let machine = MockPlatform::new();
    let config = Config {
        host_memory: (256, 0, 0, 0),
        ..Config::default()
    };
    let model = Model::new(State::new(&machine, config));
    let rig = Rig::on(machine, model).unwrap();
    rig.nvme.set_hmb_limit(MIB);
    // Behind Identify Controller.
    rig.model.state().refuse = Some((1, 0x4002));
    let before = rig.machine.bus().blocks_alive();
    rig.nvme.start().unwrap();
    assert_eq!(pieces(&rig), []);
    assert_eq!(rig.machine.bus().blocks_alive(), before);
    assert!(told(&rig).contains("status 0x4002"));
    let mut queue = rig.queue(0);
    assert_eq!(queue.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
}
