// SPDX-License-Identifier: GPL-2.0
//! Drives and HBAs that are known to do something wrong, and what they are spared.

use crate::model::{Config, Drive, Model, State, KNOWN_GOOD};
use crate::rig::{command, Rig, UNIT};
use hal::mock::MockPlatform;
use hal::{Controller, Error, Messages, Op, PciIds, Unit};
use lld_ahci::Hba;

const TRIM_128M: u32 = (128 << 20) / 512;
/// All that the 64 ranges of a sector say.
const TRIM_MOST: u32 = 64 * 0xffff;

fn ids(vendor: u16, device: u16) -> PciIds {
    PciIds {
        vendor,
        device,
        ..PciIds::default()
    }
}

/// A drive of this name that says that it can do everything.
fn named(model: &'static str, firmware: &'static str) -> Drive {
    Drive {
        model,
        firmware,
        queued_trim: true,
        ..Drive::new(9, 4096)
    }
}

fn rig(drive: Drive) -> Rig {
    Rig::started(Config::with(drive))
}

fn unit(drive: Drive) -> Unit {
    let rig = rig(drive);
    let unit = rig.units(0)[0].unwrap();
    rig.model.check();
    unit
}

fn discards(drive: Drive) -> Option<u32> {
    unit(drive).discard.map(|discard| discard.max_blocks)
}

fn names(rig: &Rig) -> Vec<&'static str> {
    let mut names = Vec::new();
    rig.ahci[0].quirks(&mut |name| names.push(name));
    names
}

/// The commands that some I/O of each kind becomes.
fn opcodes(rig: &Rig) -> Vec<u8> {
    let mut queue = rig.queue();
    queue.moves_data(&rig.machine, UNIT, &[(4096, 0, 0)]);
    let discard = command(Op::Discard, 16, 8);
    let _ = queue.run(&discard, &[]);
    rig.model.check();
    let log = rig.model.state().data_log();
    log.iter().map(|taken| taken.command).collect()
}

#[test]
fn what_drive_and_hba_have_is_named() {
    let rig = Rig::started(Config {
        ids: ids(0x8086, 0x2922),
        ..Config::with(named("Samsung SSD 850 PRO 512GB", "EXM04B6Q"))
    });
    assert_eq!(names(&rig), ["pcs", "noncqtrim", "zeroaftertrim"]);
    assert!(names(&self::rig(Drive::new(9, 64))).is_empty());
}

#[test]
fn an_unlisted_drive_gets_what_is_safe() {
    let stranger = || named("A model drive", "FW 1.0");
    let rig = Rig::started(Config {
        fua: false,
        ..Config::with(stranger())
    });
    let unit = rig.units(0)[0].unwrap();
    assert!(!unit.fua && unit.write_cache);
    assert_eq!(
        unit.discard.map(|discard| discard.max_blocks),
        Some(TRIM_128M)
    );
    assert_eq!(opcodes(&rig), [0x61, 0x60, 0x06], "TRIM is not queued");
    // Of blocks of 4096 bytes, an eighth.
    let large = Drive {
        trim: true,
        ..Drive::new(12, 64)
    };
    assert_eq!(discards(large), Some(TRIM_128M / 8));
}

#[test]
fn fua_is_the_operators_wish_and_the_drives_gift() {
    let fua = |wish, model: &'static str, drive: Drive| {
        let rig = Rig::started(Config {
            fua: wish,
            ..Config::with(Drive { model, ..drive })
        });
        rig.units(0)[0].unwrap().fua
    };
    let plain = || Drive::new(9, 64);
    assert!(fua(true, KNOWN_GOOD, plain()));
    assert!(!fua(false, KNOWN_GOOD, plain()), "not without ahci_fua");
    assert!(!fua(true, "OCZ-VERTEX2 3.5", plain()), "nofua");
    assert!(!fua(true, "INTEL SSDSC2CT120A3", plain()), "nofua");
    let unqueued = Drive {
        depth: None,
        ..plain()
    };
    assert!(!fua(true, KNOWN_GOOD, unqueued), "without queues");
    let without = Drive {
        fua: false,
        ..plain()
    };
    assert!(!fua(true, KNOWN_GOOD, without));
}

#[test]
fn trim_is_queued_where_it_is_known_to_work() {
    assert_eq!(opcodes(&rig(named(KNOWN_GOOD, "MU02"))), [0x61, 0x60, 0x64]);
    assert_eq!(opcodes(&rig(named(KNOWN_GOOD, "MU01"))), [0x61, 0x60, 0x06]);
    let evo = named("Samsung SSD 860 EVO 1TB", "RVT04B6Q");
    assert_eq!(opcodes(&rig(evo)), [0x61, 0x60, 0x06]);
    // A drive that does not say that it can is not told either.
    let shy = Drive {
        queued_trim: false,
        ..named(KNOWN_GOOD, "MU02")
    };
    assert_eq!(opcodes(&rig(shy)), [0x61, 0x60, 0x06]);
}

#[test]
fn a_trim_is_as_long_as_the_drive_survives() {
    assert_eq!(
        discards(named("SuperSSpeed S238 128GB", "1")),
        None,
        "notrim"
    );
    let sandisk = named("SanDisk SD7SB3Q256G1002", "X2180");
    assert_eq!(discards(sandisk), Some(TRIM_128M));
    let intel = named("INTEL SSDSC2BB480G4", "D2010355");
    assert_eq!(discards(intel), Some(TRIM_MOST));
    let intel_510 = named("INTEL SSDSC2MH120A2", "PPG4");
    assert_eq!(discards(intel_510), Some(TRIM_128M));
}

#[test]
fn queues_are_left_out_where_they_are_broken() {
    let broken = named("OCZ CORE_SSD", "02.10104");
    assert_eq!(opcodes(&rig(broken)), [0x35, 0x25, 0x06]);
    let newer = named("OCZ CORE_SSD", "02.10105");
    assert_eq!(opcodes(&rig(newer)), [0x61, 0x60, 0x06]);
    // Behind an HBA of ATI's only.
    let evo = || named("Samsung SSD 870 EVO 1TB", "SVT02B6Q");
    for (vendor, opcode) in [(0x1002, 0x35), (0x1022, 0x61), (0x8086, 0x61)] {
        let rig = Rig::started(Config {
            ids: ids(vendor, 0x4391),
            ..Config::with(evo())
        });
        assert_eq!(opcodes(&rig)[0], opcode, "vendor {vendor:#x}");
    }
}

#[test]
fn commands_are_as_long_as_drive_and_hba_get_them_right() {
    let most = |ids, model, firmware| {
        let rig = Rig::started(Config {
            ids,
            s64a: true,
            ..Config::with(named(model, firmware))
        });
        rig.ahci[0].limits().max_transfer
    };
    let plain = PciIds::default();
    assert_eq!(most(plain, "ST380013AS", "3.20"), 512 << 10);
    assert_eq!(most(plain, "ST380013AS", "3.21"), 65_535 * 512);
    assert_eq!(most(plain, "LITEON EP1-KB480", "1"), 512 << 10);
    assert_eq!(most(plain, "DELLBOSS VD", "MV.R00-0"), 8191 * 512);
}

#[test]
fn a_link_stays_awake_where_the_drive_is_lost_by_its_sleep() {
    let sleeps = |ids, drive: Drive| {
        let machine = MockPlatform::new();
        let config = Config {
            ids,
            ..Config::with(Drive {
                sleepless: true,
                ..drive
            })
        };
        let model = Model::new(State::new(&machine, config));
        {
            // ALPE and ASP; no IPM is forbidden.
            let mut state = model.state();
            (state.ports[0].cmd, state.ports[0].sctl) = (3 << 26, 0);
        }
        let rig = Rig::on(machine, model).unwrap();
        rig.ahci[0].start().unwrap();
        rig.queue().moves_data(&rig.machine, UNIT, &[(512, 0, 0)]);
        // After a reset, too.
        rig.ahci[0].stop().unwrap();
        rig.ahci[0].start().unwrap();
        let awake = rig.model.state().ports[0].sctl & 0xf00 == 0x300;
        let complains = !std::mem::take(&mut rig.model.state().complaints).is_empty();
        assert_ne!(awake, complains);
        !awake
    };
    let none = PciIds::default();
    assert!(!sleeps(none, named("ADATA SU680", "1")));
    assert!(sleeps(none, named("ADATA SU650", "1")));
    let samsung = || named("Samsung SSD 860 PRO 1TB", "1");
    assert!(!sleeps(ids(0x1022, 0x7901), samsung()));
    assert!(!sleeps(ids(0x1002, 0x4391), samsung()));
    assert!(sleeps(ids(0x8086, 0xa282), samsung()));
    let wd = |speeds| Drive {
        speeds,
        ..named("WDC WD800JD-00LSA0", "1")
    };
    assert!(!sleeps(none, wd(0x2)));
    assert!(sleeps(none, wd(0x6)));
}

#[test]
fn a_link_is_as_fast_as_the_drive_survives() {
    let slow = |model| Drive {
        slow: true,
        ..named(model, "1")
    };
    let rig = self::rig(slow("WD My Book"));
    opcodes(&rig);
    assert_eq!(rig.model.state().ports[0].speed, 1);
    rig.ahci[0].stop().unwrap();
    rig.ahci[0].start().unwrap();
    assert_eq!(rig.model.state().ports[0].speed, 1);
    rig.model.check();
    // One reset is enough for it, and none for others.
    let resets = |drive| self::rig(drive).model.state().ports[0].resets;
    let fast = resets(named("WD My Passport", "1"));
    assert_eq!(resets(slow("WD My Book")), fast + 1);
}

#[test]
fn the_front_of_a_box_is_no_disk() {
    let rig = rig(named("ASMT109x- Config", "1"));
    match rig.units(0).as_slice() {
        [Err(refused)] => assert!(refused.why.contains("no disk")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_hba_is_told_as_much_as_it_gets_right() {
    // Queues, whatever CAP says.
    let nvidia = Rig::started(Config {
        ids: ids(0x10de, 0x0550),
        ncq: false,
        ..Config::default()
    });
    assert_eq!(opcodes(&nvidia)[0], 0x61);
    assert_eq!(nvidia.hba.messages(), Messages::ALL);
    let plain = Rig::started(Config {
        ncq: false,
        ..Config::default()
    });
    assert_eq!(opcodes(&plain)[0], 0x35);
    // Marvell's: none, two ports of three, and its pin.
    let drives = || vec![Some(Drive::new(9, 64)), None, Some(Drive::new(9, 64))];
    let marvell = Rig::started(Config {
        ids: ids(0x11ab, 0x6121),
        ports: 7,
        drives: drives(),
        ..Config::default()
    });
    assert_eq!(marvell.ports(), 3);
    assert_eq!(marvell.hba.messages(), Messages::NONE);
    assert_eq!(opcodes(&marvell)[0], 0x35);
    assert_eq!(marvell.hba.pcs_ports(), None);
    let intel = Rig::started(Config {
        ids: ids(0x8086, 0x2922),
        ports: 7,
        drives: drives(),
        ..Config::default()
    });
    assert_eq!(intel.hba.pcs_ports(), Some(7));
}

#[test]
fn addresses_end_where_the_hba_gets_them_wrong() {
    let hba = |vendor, device, s64a| {
        let config = Config {
            s64a,
            ..Config::default()
        };
        let model = Model::new(State::new(&MockPlatform::new(), config));
        Hba::new(model, &ids(vendor, device)).map(|hba| hba.dma_bits())
    };
    assert_eq!(hba(0x197b, 0x0585, true), Ok(32));
    assert_eq!(hba(0x1b21, 0x0612, true), Ok(43));
    assert_eq!(hba(0x1b21, 0x0612, false), Ok(32));
    assert_eq!(hba(0x8086, 0x2922, true), Ok(64));
    // The machine's memory lies above 4 GiB, and below 2^43.
    let rig = |vendor, device| {
        let config = Config {
            ids: ids(vendor, device),
            ..Config::default()
        };
        Rig::new(config).map(|_| ())
    };
    assert_eq!(rig(0x197b, 0x0585), Err(Error::Unsupported));
    assert_eq!(rig(0x1002, 0x4380), Err(Error::Unsupported));
    assert_eq!(rig(0x1b21, 0x0612), Ok(()));
}

#[test]
fn an_hba_that_needs_a_software_reset_is_not_touched() {
    let machine = MockPlatform::new();
    let config = Config {
        vanish_at: Some(0),
        ..Config::default()
    };
    let model = Model::new(State::new(&machine, config));
    let hba = Hba::new(model, &ids(0x1106, 0x3349));
    assert_eq!(hba.err(), Some(Error::Unsupported));
}

#[test]
fn an_error_of_the_interface_that_means_nothing_is_not_heeded() {
    const IFS: u32 = 1 << 27;
    for (vendor, heeded) in [(0x197b, false), (0x8086, true)] {
        let rig = Rig::started(Config {
            ids: ids(vendor, 0x2363),
            ..Config::default()
        });
        let queue = rig.queue();
        rig.model.state().ports[0].is |= IFS;
        rig.interrupts(|_| {});
        assert_eq!(rig.places[0].calls() != 0, heeded);
        drop(queue);
        rig.model.check();
    }
}

#[test]
fn an_hba_for_which_is_is_an_edge_is_acknowledged_first() {
    for (vendor, device, first) in [(0x11ab, 0x6145, true), (0x8086, 0x2922, false)] {
        let rig = Rig::started(Config {
            ids: ids(vendor, device),
            ..Config::default()
        });
        let mut queue = rig.queue();
        queue.start(&command(Op::Flush, 0, 0), &[]).unwrap();
        let mut pending = None;
        assert_eq!(rig.model.state().pending(), 1);
        // Not shared, and one port served: for that, others need not ask `IS`.
        assert!(rig.hba.interrupt(false, 1, |_| {
            pending = Some(rig.model.state().latched);
            true
        }));
        assert_eq!(pending == Some(0), first, "{pending:?}");
    }
}
