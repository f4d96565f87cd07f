// SPDX-License-Identifier: GPL-2.0
//! Controllers that are known to do something wrong, each with a model that trips over it, and what
//! it is spared.

use crate::model::{Config, Frail, Namespace};
use crate::rig::{command, Rig, UNIT};
use hal::{CmdError, Controller, Error, Op, PciIds, Platform, Unit};
use lld_nvme::Quirks;

fn ids(vendor: u16, device: u16) -> PciIds {
    PciIds {
        vendor,
        device,
        ..PciIds::default()
    }
}

/// A controller that is in the table, with what it trips over.
pub(crate) fn known(vendor: u16, device: u16, frail: Frail) -> Config {
    Config {
        ids: ids(vendor, device),
        frail,
        ..Config::default()
    }
}

fn unit(config: Config) -> Unit {
    let rig = Rig::started(config);
    let unit = rig.units()[0].unwrap();
    rig.model.check();
    unit
}

fn names(rig: &Rig) -> Vec<&'static str> {
    let mut names = Vec::new();
    rig.nvme.quirks(&mut |name| names.push(name));
    names
}

/// Opcodes and dword 10 of the admin commands so far.
fn asked(rig: &Rig, opcode: u8) -> Vec<u32> {
    let state = rig.model.state();
    let log = state.admin_log.iter();
    log.filter(|(code, _)| *code == opcode)
        .map(|(_, dword10)| *dword10)
        .collect()
}

#[test]
fn what_a_controller_has_is_named() {
    let rig = Rig::started(Config {
        apsta: true,
        ..known(0x15b7, 0x5009, Frail::default())
    });
    assert_eq!(names(&rig), ["no_deepest_ps", "broken_msi"]);
    assert!(names(&Rig::started(Config::default())).is_empty());
}

#[test]
fn a_model_is_known_once_it_has_named_itself() {
    let x5 = Config {
        vid: 0x144d,
        model: "Samsung Portable SSD X5",
        frail: Frail {
            csts_us: 2_000_000,
            ..Frail::default()
        },
        ..Config::default()
    };
    let rig = Rig::new(x5).unwrap();
    assert!(names(&rig).is_empty());
    rig.nvme.start().unwrap();
    assert_eq!(
        names(&rig),
        ["delay_before_chk_rdy", "no_deepest_ps", "ignore_dev_subnqn"]
    );
    // From here on it is heeded.
    rig.nvme.stop().unwrap();
    rig.nvme.start().unwrap();
    rig.model.check();
}

#[test]
fn a_controller_that_wants_to_be_left_alone_after_a_reset_is() {
    let frail = Frail {
        csts_us: 2_000_000,
        ..Frail::default()
    };
    let rig = Rig::started(known(0x1c58, 0x0003, frail.clone()));
    rig.nvme.stop().unwrap();
    rig.nvme.start().unwrap();
    rig.model.check();
    // One that the firmware has just left.
    let machine = hal::mock::MockPlatform::new();
    let config = known(0x144d, 0xa822, frail);
    let rig = Rig::on(machine.clone(), {
        let model = crate::model::Model::new(crate::model::State::new(&machine, config));
        model.state().cleared_at = Some(0);
        model
    });
    rig.unwrap().nvme.start().unwrap();
    assert!(machine.now_us() >= 2_000_000);
}

#[test]
fn a_queue_size_of_nothing_is_believed_of_nobody_but_those_who_mean_another() {
    let silent = |ids| Config {
        mqes: 0,
        ids,
        ..Config::default()
    };
    let other = Rig::new(silent(ids(0x144d, 0xa80b)));
    assert_eq!(other.err(), Some(Error::Malformed));
    let rig = Rig::started(silent(ids(0x144d, 0xa821)));
    assert_eq!(rig.nvme.limits().tags, 63);
}

#[test]
fn identify_of_1_0_is_all_that_is_asked_of_who_knows_no_more() {
    let qemu = |vendor, version| Config {
        version,
        css: 1,
        nn: 3,
        namespaces: vec![Namespace::new(1, 9, 64), Namespace::new(3, 9, 64)],
        ..known(
            vendor,
            0x5845,
            Frail {
                one_bit_of_cns: true,
                ..Frail::default()
            },
        )
    };
    let rig = Rig::started(qemu(0x8086, 0x0001_0100));
    let found: Vec<u32> = rig.units().iter().map(|unit| unit.unwrap().id).collect();
    assert_eq!(found, [1, 3]);
    assert!(asked(&rig, 0x06).iter().all(|cns| *cns <= 1));
    // From 1.2 on it is believed, and so is one that is not known for it.
    for (vendor, version) in [(0x8086, 0x0001_0200), (0x8087, 0x0001_0100)] {
        let rig = Rig::started(qemu(vendor, version));
        let _ = rig.nvme.units(&mut |_| {});
        assert!(asked(&rig, 0x06).contains(&2));
    }
}

#[test]
fn descriptors_are_not_asked_of_who_does_not_know_them() {
    let rig = Rig::started(known(0x1c5f, 0x0555, Frail::default()));
    assert_eq!(rig.units()[0].unwrap().ids.uuid, None);
    assert!(!asked(&rig, 0x06).contains(&3));
    let rig = Rig::started(Config::default());
    assert!(rig.units()[0].unwrap().ids.uuid.is_some());
    assert!(asked(&rig, 0x06).contains(&3));
}

#[test]
fn garbage_is_nobodys_name() {
    let ids = unit(known(0x1e4b, 0x1602, Frail::default())).ids;
    assert_eq!(ids, hal::UnitIds::default());
    assert!(unit(Config::default()).ids.nguid.is_some());
}

#[test]
fn write_zeroes_that_are_broken_are_not_there() {
    assert_eq!(
        unit(known(0x144d, 0xa809, Frail::default())).max_write_zeroes,
        0
    );
    assert_ne!(unit(Config::default()).max_write_zeroes, 0);
}

#[test]
fn zeroes_are_written_by_deallocating_where_that_is_known_to_zero() {
    let rig = Rig::started(Config {
        oncs: 0x04,
        ..known(0x8086, 0x0953, Frail::default())
    });
    assert_eq!(rig.units()[0].unwrap().max_write_zeroes, u32::MAX);
    let mut queue = rig.queue(0);
    assert_eq!(queue.run(&command(Op::WriteZeroes, 8, 16), &[]), Ok(()));
    let opcode = rig.model.state().io_log[0][0] as u8;
    assert_eq!(opcode, 0x09);
    rig.model.check();
    // One without Dataset Management writes them, if it can.
    let rig = Rig::started(Config {
        oncs: 0x08,
        ..known(0x8086, 0x0953, Frail::default())
    });
    let mut queue = rig.queue(0);
    assert_eq!(queue.run(&command(Op::WriteZeroes, 8, 16), &[]), Ok(()));
    assert_eq!(rig.model.state().io_log[0][0] as u8, 0x08);
}

#[test]
fn stripes_are_what_the_namespace_says_or_the_largest_transfer() {
    // MDTS of 5: 32 pages.
    let striped = |mdts, noiob| Config {
        mdts,
        namespaces: vec![Namespace {
            noiob,
            ..Namespace::new(1, 9, 4096)
        }],
        ..known(0x8086, 0x0a55, Frail::default())
    };
    assert_eq!(unit(striped(5, 0)).topology.chunk, 256);
    assert_eq!(unit(striped(5, 64)).topology.chunk, 256);
    let plain = |noiob| Config {
        ids: PciIds::default(),
        ..striped(5, noiob)
    };
    assert_eq!(unit(plain(0)).topology.chunk, 0);
    assert_eq!(unit(plain(64)).topology.chunk, 64);
    assert_eq!(unit(plain(65)).topology.chunk, 0);
}

#[test]
fn who_does_not_wake_up_is_not_let_sleep() {
    let sleepy = |ids, apsta| {
        let rig = Rig::started(Config {
            ids,
            apsta,
            ..Config::default()
        });
        rig.nvme.stop().unwrap();
        rig.nvme.start().unwrap();
        rig.model.check();
        asked(&rig, 0x09).iter().filter(|id| **id == 0x0c).count()
    };
    // At each start: a reset forgets it.
    assert_eq!(sleepy(ids(0x2646, 0x2263), true), 2);
    assert_eq!(sleepy(ids(0x2646, 0x2263), false), 0);
    assert_eq!(sleepy(PciIds::default(), true), 0);
    let kioxia = Rig::started(Config {
        vid: 0x1e0f,
        model: "KCD6XVUL6T40",
        apsta: true,
        ..Config::default()
    });
    assert!(asked(&kioxia, 0x09).contains(&0x0c));
    // A refusal changes nothing.
    let stubborn = Rig::new(Config {
        apsta: true,
        ..known(0x2646, 0x2263, Frail::default())
    });
    let stubborn = stubborn.unwrap();
    stubborn.model.state().refuse = Some((1, 0x4002));
    assert_eq!(stubborn.nvme.start(), Ok(()));
}

#[test]
fn one_command_at_a_time_is_what_some_take() {
    let frail = Frail {
        one_at_a_time: true,
        ..Frail::default()
    };
    let rig = Rig::started(known(0x106b, 0x2001, frail));
    assert_eq!(rig.nvme.limits().tags, 1);
    let mut queue = rig.queue(0);
    queue.moves_data(&rig.machine, UNIT, &[(4096, 0, 0), (65_536, 0, 4096)]);
    let messages = rig.nvme.quirk_set().messages();
    assert!(!messages.many && messages.msi && messages.msix);
    rig.model.check();
}

#[test]
fn queues_are_of_medium_priority_where_others_starve() {
    let priorities = |ids| {
        let rig = Rig::started(Config {
            ids,
            ..Config::default()
        });
        rig.queue(0);
        let state = rig.model.state();
        state.priorities.clone()
    };
    assert_eq!(priorities(ids(0x8086, 0xf1a5)), [2]);
    assert_eq!(priorities(PciIds::default()), [0]);
}

#[test]
fn a_list_begins_where_everybody_reads_it() {
    let frail = Frail {
        lists_at: 512,
        reads_all_ranges: true,
        ..Frail::default()
    };
    // As few tags as there can be, and a transfer that needs a short list.
    for mqes in [1, 9, 0x7ff] {
        let rig = Rig::started(Config {
            mqes,
            mdts: 2,
            ..known(0x1344, 0x6004, frail.clone())
        });
        let mut queue = rig.queue(0);
        let tags = rig.nvme.limits().tags;
        rig.model.state().hold = true;
        let mut maps = Vec::new();
        for at in 0..tags {
            let (op, bytes) = match at % 2 {
                0 => (Op::Discard, 0),
                _ => (Op::Read, 16_384),
            };
            let map = rig.map(&vec![0; bytes], 0, 4096);
            let cmd = command(op, 64, 32);
            match queue.start(&cmd, &map.segments()) {
                Ok(_) => maps.push(map),
                // No page for the list of a further discard.
                Err(why) => assert_eq!((why, op), (CmdError::NotReady, Op::Discard)),
            }
        }
        rig.model.state().hold = false;
        rig.model.state().work_queues();
        let done = queue.drain();
        assert_eq!(done.len(), maps.len());
        assert!(done.iter().all(|(_, outcome)| outcome.is_ok()), "{done:?}");
        assert_eq!(rig.machine.bus().faults(), 0);
        rig.model.check();
    }
}

#[test]
fn how_far_and_how_a_function_may_be_driven_is_known_before_it_is_touched() {
    let of = |vendor, device| Quirks::of_function(&ids(vendor, device));
    assert_eq!(of(0x1d0f, 0xcd01).dma_bits(), 48);
    assert_eq!(of(0x1d0f, 0xcd03).dma_bits(), 64);
    let messages = of(0x15b7, 0x5008).messages();
    assert!(!messages.msi && messages.msix && messages.many);
    assert_eq!(of(0x8086, 0x0953).messages(), hal::Messages::ALL);
}

#[test]
fn a_quirk_without_effect_is_named_and_changes_nothing() {
    // KC3000, 760p.
    for (vendor, device, name) in [
        (0x2646, 0x5013, "no_secondary_temp_thresh"),
        (0x8086, 0xf1a6, "ignore_dev_subnqn"),
    ] {
        let config = known(vendor, device, Frail::default());
        let plain = unit(Config::default());
        let rig = Rig::started(config);
        assert_eq!(names(&rig), [name]);
        assert_eq!(rig.units()[0].unwrap(), plain);
        assert_eq!(
            rig.nvme.limits(),
            Rig::started(Config::default()).nvme.limits()
        );
    }
}
