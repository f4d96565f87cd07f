// SPDX-License-Identifier: GPL-2.0
//! From the firmware's hands to drives that take commands, and everything that can be wrong on the
//! way.

use crate::model::config::Bios;
use crate::model::{Config, Drive, Model, State, KNOWN_GOOD};
use crate::rig::{command, Rig};
use hal::mock::MockPlatform;
use hal::{Controller, Error, Op, PciIds, Platform};
use lld_ahci::Hba;
use testkit::{stays_gone, tries_until_well};

#[test]
fn a_drive_is_named_by_what_it_says() {
    let rig = Rig::started(Config::with(Drive {
        queued_trim: true,
        model: KNOWN_GOOD,
        ..Drive::new(9, 4096)
    }));
    let unit = rig.units(0)[0].unwrap();
    assert_eq!(unit.id, 0);
    assert_eq!(&unit.serial, b"SERIAL-0            ");
    assert_eq!(&unit.model[..17], KNOWN_GOOD.as_bytes());
    assert_eq!(&unit.firmware, b"FW 1.0  ");
    assert_eq!(unit.ids.wwn, Some(0x5000_5001_5002_5003));
    assert_eq!((unit.blocks, unit.block_shift), (4096, 9));
    assert!(unit.write_cache && unit.fua && unit.discard.is_some());
    assert!(!unit.rotational && !unit.read_only && unit.max_write_zeroes == 0);
    assert_eq!(rig.ahci[0].limits().tags, 32);
    assert_eq!(rig.ahci[0].limits().queues, 1);
    assert_eq!(rig.ahci[0].alive(), Ok(()));
    rig.model.check();
}

#[test]
fn what_is_not_served_is_named_and_left_alone() {
    let plain = || Drive::new(9, 64);
    let cases = [
        (Drive::other(0xeb14_0101), "ATAPI"),
        (Drive::other(0x9669_0101), "port multiplier"),
        (Drive::other(0xc33c_0101), "enclosure"),
        (Drive::other(0x1234_5678), "signature"),
        (
            Drive {
                lba48: false,
                ..plain()
            },
            "28-bit",
        ),
        (
            Drive {
                locked: true,
                ..plain()
            },
            "locked",
        ),
        (Drive::new(10, 64), "512 nor 4096"),
    ];
    let drives: Vec<_> = cases.iter().map(|(drive, _)| Some(drive.clone())).collect();
    let last = drives.len();
    let config = Config {
        ports: 0x1ff,
        drives: drives.into_iter().chain([None, Some(plain())]).collect(),
        ..Config::default()
    };
    let rig = Rig::started(config);
    for (at, (_, why)) in cases.iter().enumerate() {
        match rig.units(at).as_slice() {
            [Err(refused)] => {
                assert!(refused.why.contains(why), "{}, {why}", refused.why);
                assert_eq!(refused.id, at as u32);
            }
            other => panic!("{other:?}"),
        }
        let queue = rig.ahci[at].create_queue(0, Some(0));
        assert!(matches!(queue, Err(Error::Unsupported)));
        // At rest: it touches no memory.
        assert_eq!(rig.model.state().ports[at].cmd & 0xc011, 0);
    }
    assert!(rig.units(last).is_empty(), "nobody there");
    // The one between them works.
    let unit = rig.units(last + 1)[0].unwrap();
    assert_eq!(unit.id, last as u32 + 1);
    rig.model.check();
}

#[test]
fn the_firmware_is_asked_to_let_go_and_not_for_ever() {
    for (busy, lets_go_us, limit) in [
        (false, Some(10_000), 20_000),
        (true, Some(1_500_000), 1_510_000),
        (false, None, 30_000),
        (true, None, 2_010_000),
    ] {
        let machine = MockPlatform::new();
        let config = Config {
            bios: Some(Bios { busy, lets_go_us }),
            ..Config::default()
        };
        let model = Model::new(State::new(&machine, config));
        let mut hba = Hba::new(model.clone(), &PciIds::default()).unwrap();
        assert_eq!(hba.start(&machine), Ok(()));
        let took = machine.now_us();
        assert!(took < limit + 2_000, "{took} of {limit}");
        assert!(took >= lets_go_us.unwrap_or(limit * 4 / 5), "{took}");
        model.check();
    }
}

#[test]
fn a_reset_that_never_ends_ends_the_attempt() {
    let config = Config {
        reset_us: None,
        ..Config::default()
    };
    let machine = MockPlatform::new();
    let model = Model::new(State::new(&machine, config));
    let mut hba = Hba::new(model.clone(), &PciIds::default()).unwrap();
    assert_eq!(hba.start(&machine), Err(Error::Timeout));
    assert!((1_000_000..1_100_000).contains(&machine.now_us()));
    model.check();
}

#[test]
fn implemented_ports_survive_a_reset_that_forgets_them() {
    let rig = Rig::started(Config {
        ports: 0b101,
        forgets_ports: true,
        drives: vec![Some(Drive::new(9, 8)), None, Some(Drive::new(9, 8))],
        ..Config::default()
    });
    assert_eq!(rig.model.state().pi, 0b101);
    assert_eq!(rig.places.len(), 2);
    assert_eq!(rig.units(1)[0].unwrap().id, 2, "the port's number");
    rig.model.check();
}

#[test]
fn an_hba_that_lost_its_registers_is_brought_back_and_its_drive_serves() {
    let rig = Rig::started(Config {
        forgets_ports: true,
        ..Config::with(Drive::new(9, 64))
    });
    rig.ahci[0].stop().unwrap();
    {
        let mut state = rig.model.state();
        state.reset_beneath();
        // As a power-on leaves it: not in AHCI mode, and nothing of it on.
        (state.ghc, state.pi) = (0, 0);
    }
    assert_eq!(rig.hba.restart(&rig.machine), Ok(()));
    assert_eq!(rig.model.state().pi, rig.hba.ports());
    assert_eq!(
        rig.model.state().ghc,
        0x8000_0000,
        "AHCI mode, no interrupts"
    );
    rig.ahci[0].start().unwrap();
    rig.queue().moves_data(&rig.machine, 0, &[(512, 0, 0)]);
    rig.model.check();
}

#[test]
fn windows_and_ports_that_make_no_sense_are_refused() {
    let ports = |ports, bar| Config {
        ports,
        bar,
        ..Config::default()
    };
    for (config, why) in [
        (ports(0, 0x1100), Error::Malformed),
        (ports(0b10, 0x180), Error::Malformed),
        (ports(1 << 31, 0x10ff), Error::Malformed),
        (ports(1, 0), Error::Gone),
    ] {
        let machine = MockPlatform::new();
        let model = Model::new(State::new(&machine, config));
        assert_eq!(Hba::new(model.clone(), &PciIds::default()).err(), Some(why));
    }
}

#[test]
fn memory_beyond_an_hba_of_32_bits_is_refused() {
    // The machine's memory lies above 4 GiB; in the kernel the DMA mask sees to it.
    let config = Config {
        s64a: false,
        ..Config::default()
    };
    let rig = Rig::new(config.clone());
    assert_eq!(rig.err(), Some(Error::Unsupported));
    let machine = MockPlatform::new();
    let hba = Hba::new(Model::new(State::new(&machine, config)), &PciIds::default()).unwrap();
    assert_eq!(hba.dma_bits(), 32);
}

#[test]
fn what_the_firmware_set_of_link_power_management_survives_the_reset() {
    let machine = MockPlatform::new();
    let model = Model::new(State::new(&machine, Config::default()));
    {
        let mut state = model.state();
        // ALPE, not ASP; IPM 3, SPD 1.
        state.ports[0].cmd = 1 << 26;
        state.ports[0].sctl = 0x310;
    }
    let rig = Rig::on(machine, model).unwrap();
    rig.ahci[0].start().unwrap();
    let state = rig.model.state();
    assert_eq!(state.ports[0].cmd & 0x0c00_0000, 1 << 26);
    assert_eq!(state.ports[0].sctl, 0x310);
    drop(state);
    rig.model.check();
}

#[test]
fn device_initiated_power_management_is_turned_off() {
    for (dipm, times) in [(false, 0), (true, 1)] {
        let rig = Rig::started(Config::with(Drive {
            dipm,
            keeps_dipm: true,
            ..Drive::new(9, 8)
        }));
        let state = rig.model.state();
        let set = state.log.iter().filter(|taken| taken.command == 0xef);
        assert_eq!(set.count(), times);
    }
}

#[test]
fn a_drive_that_is_slow_is_waited_for_and_one_that_hangs_is_reset() {
    let slow = Drive {
        link_us: 90_000,
        ready_us: Some(9_000_000),
        ..Drive::new(9, 8)
    };
    let rig = Rig::started(Config::with(slow));
    assert!(rig.units(0)[0].is_ok());
    assert_eq!(rig.model.state().ports[0].resets, 0);
    rig.model.check();
    // Needs two resets.
    let rig = Rig::started(Config::with(Drive {
        resets_needed: 2,
        ..Drive::new(9, 8)
    }));
    assert!(rig.units(0)[0].is_ok());
    assert_eq!(rig.model.state().ports[0].resets, 2);
    rig.model.check();
    // Never gets ready: BSY and DRQ stay, and the other port works.
    let rig = Rig::new(Config {
        ports: 3,
        drives: vec![
            Some(Drive {
                ready_us: None,
                ..Drive::new(9, 8)
            }),
            Some(Drive::new(9, 8)),
        ],
        ..Config::default()
    })
    .unwrap();
    assert_eq!(rig.ahci[0].start(), Err(Error::Timeout));
    assert_eq!(rig.ahci[0].step(), "waiting for the drive (PxTFD.BSY, DRQ)");
    assert!(
        rig.machine.now_us() < 32_000_000,
        "{}",
        rig.machine.now_us()
    );
    assert_eq!(rig.ahci[1].start(), Ok(()));
    assert!(rig.units(1)[0].is_ok());
    rig.model.check();
}

#[test]
fn a_command_list_that_does_not_stop_is_named() {
    for (stuck, clo, expected) in [
        (1, true, Ok(())),
        (1, false, Ok(())),
        (2, true, Ok(())),
        (2, false, Ok(())),
        (3, true, Err(Error::Timeout)),
        (3, false, Err(Error::Timeout)),
    ] {
        let rig = Rig::started(Config {
            stuck,
            clo,
            ..Config::default()
        });
        let before = rig.machine.now_us();
        assert_eq!(rig.ahci[0].stop(), expected, "{stuck} {clo}");
        assert!(rig.machine.now_us() < before + 2_100_000);
        if expected.is_err() {
            assert_eq!(rig.ahci[0].start(), expected);
            assert_eq!(rig.ahci[0].step(), "stopping the port (PxCMD.ST, FRE = 0)");
        }
        rig.model.check();
    }
}

/// All of it: the ports, a queue, a command.
fn whole_way(rig: &Rig) -> Result<(), Error> {
    rig.ahci[0].start()?;
    rig.hba.set_interrupt(true);
    let _queue = rig.ahci[0].create_queue(0, Some(0))?;
    rig.ahci[0].set_interrupt(0, true);
    rig.ahci[0].alive()
}

#[test]
fn gone_at_every_register_access() {
    let total = tries_until_well(Error::Gone, |n| {
        let rig = Rig::new(Config {
            vanish_at: Some(n as u64),
            ..Config::with(Drive::new(9, 8))
        })?;
        let went = whole_way(&rig);
        if went.is_err() {
            let at = rig.machine.now_us();
            stays_gone(&rig.machine, &rig.ahci[0]);
            assert_eq!(rig.ahci[0].run_eh(), Err(Error::Gone));
            assert_eq!(rig.machine.now_us(), at, "access {n}");
        }
        rig.model.check();
        went
    });
    assert!(total > 50, "only {total} accesses");
}

#[test]
fn no_memory_at_every_allocation() {
    let total = tries_until_well(Error::NoMemory, |n| {
        let machine = MockPlatform::new();
        let model = Model::new(State::new(&machine, Config::with(Drive::new(9, 8))));
        machine.fail_allocations_after(n);
        let went = Rig::on(machine.clone(), model.clone()).and_then(|rig| whole_way(&rig));
        model.check();
        assert_eq!(machine.bus().blocks_alive(), 0, "allocation {n} leaks");
        went
    });
    assert!(total > 5, "only {total} allocations");
}

#[test]
fn a_port_that_goes_is_at_rest() {
    let rig = Rig::started(Config::default());
    let mut queue = rig.queue();
    assert_eq!(queue.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
    let (model, machine) = (rig.model.clone(), rig.machine.clone());
    drop(queue);
    drop(rig);
    assert_eq!(model.state().ports[0].cmd & 0xc011, 0);
    assert_eq!(machine.bus().blocks_alive(), 0);
    model.check();
}

#[test]
fn interrupts_are_off_until_they_are_wanted() {
    let rig = Rig::new(Config::default()).unwrap();
    rig.ahci[0].start().unwrap();
    assert_eq!(rig.model.state().ports[0].ie, 0);
    assert_eq!(rig.model.state().ghc, 0x8000_0000);
    rig.ahci[0].set_interrupt(0, true);
    assert_eq!(rig.model.state().ports[0].ie, 0x7940_0049);
    rig.ahci[0].set_interrupt(0, false);
    assert_eq!(rig.model.state().ports[0].ie, 0, "polled");
    rig.hba.set_interrupt(true);
    assert_eq!(rig.model.state().ghc, 0x8000_0002);
}

#[test]
fn a_start_that_fails_leaves_the_port_at_rest() {
    let rig = Rig::new(Config::with(Drive::new(9, 8))).unwrap();
    rig.model.state().config.deaf = true;
    assert_eq!(rig.ahci[0].start(), Err(Error::Timeout));
    assert_eq!(rig.ahci[0].step(), "IDENTIFY DEVICE");
    assert_eq!(rig.model.state().ports[0].cmd & 0xc011, 0);
    assert!(rig.model.state().ports[0].ghosts.is_empty());
    rig.model.state().config.deaf = false;
    assert_eq!(rig.ahci[0].start(), Ok(()));
    rig.model.check();
}
