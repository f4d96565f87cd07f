// SPDX-License-Identifier: GPL-2.0
//! Namespaces as disks: which are served, which are refused and why.

use crate::model::{Config, Namespace};
use crate::rig::Rig;
use hal::{Controller, Discard, Error, Refused};

#[test]
fn what_a_namespace_says_is_what_the_disk_is() {
    let rig = Rig::started(Config {
        dmrsl: 1000,
        wzsl: 2,
        namespaces: vec![Namespace {
            write_protected: true,
            ..Namespace::new(7, 12, 100)
        }],
        ..Config::default()
    });
    let unit = rig.units()[0].unwrap();
    assert_eq!((unit.id, unit.block_shift, unit.blocks), (7, 12, 100));
    assert_eq!(unit.physical_shift, 12);
    assert!(unit.write_cache && unit.fua && unit.read_only && !unit.rotational);
    let discard = Discard {
        max_blocks: 1000,
        max_ranges: 64,
        granularity: 1,
    };
    assert_eq!(unit.discard, Some(discard));
    assert_eq!(unit.max_write_zeroes, 4, "16 KiB of 4 KiB blocks");
    assert_eq!(unit.ids.uuid, Some([7; 16]));
    assert_eq!(unit.ids.nguid, Some([0xa5; 16]));
    assert_eq!(unit.ids.eui64, None);
    assert_eq!(&unit.serial, b"SERIAL-0123456789   ");
    assert_eq!(&unit.model[..16], b"Model controller");
    assert_eq!(&unit.firmware, b"1.0     ");
    rig.model.check();
}

#[test]
fn what_the_device_does_not_have_the_disk_has_not() {
    let rig = Rig::started(Config {
        oncs: 0,
        vwc: 0,
        ..Config::default()
    });
    let unit = rig.units()[0].unwrap();
    assert_eq!((unit.discard, unit.max_write_zeroes), (None, 0));
    assert!(!unit.write_cache && !unit.fua && !unit.read_only);
}

#[test]
fn write_zeroes_keeps_to_a_limit_of_its_own_or_to_that_of_a_transfer() {
    for (wzsl, mdts, lbads, blocks) in [
        (0, 7, 9, 1024),
        (0, 0, 9, 4096),
        (0, 7, 14, 32),
        (0, 7, 12, 128),
        (1, 7, 9, 16),
        (20, 7, 9, 65_536),
        (255, 7, 12, 65_536),
    ] {
        let rig = Rig::started(Config {
            wzsl,
            mdts,
            namespaces: vec![Namespace::new(1, lbads, 8)],
            ..Config::default()
        });
        let unit = rig.units()[0].unwrap();
        assert_eq!(unit.max_write_zeroes, blocks, "wzsl {wzsl}, mdts {mdts}");
        assert_eq!(unit.discard.unwrap().max_blocks, u32::MAX);
    }
}

#[test]
fn unsupported_namespaces_are_refused_by_name_and_the_others_come() {
    let rig = Rig::started(Config {
        namespaces: vec![
            Namespace::new(1, 9, 8),
            Namespace {
                metadata: 8,
                ..Namespace::new(2, 9, 8)
            },
            Namespace::new(3, 11, 8),
            Namespace {
                protection: 1,
                ..Namespace::new(4, 12, 8)
            },
            Namespace::new(5, 17, 8),
            Namespace {
                data: Vec::new(),
                ..Namespace::new(6, 0, 0)
            },
            Namespace::new(7, 14, 8),
            Namespace::new(8, 16, 8),
            Namespace {
                command_set: 2,
                ..Namespace::new(9, 12, 8)
            },
            Namespace {
                blocks: 1 << 55,
                ..Namespace::new(10, 9, 8)
            },
            Namespace::new(200, 12, 8),
        ],
        ..Config::default()
    });
    let found = rig.units();
    let served: Vec<u32> = found
        .iter()
        .filter_map(|unit| Some(unit.ok()?.id))
        .collect();
    assert_eq!(served, [1, 3, 7, 8, 200]);
    let refused: Vec<Refused> = found.iter().filter_map(|unit| unit.err()).collect();
    let why = |id, why| Refused { id, why };
    assert_eq!(
        refused,
        [
            why(2, "its format has metadata"),
            why(4, "its format has protection information"),
            why(
                5,
                "its logical blocks are smaller than 512 bytes or larger than 64 KiB"
            ),
            why(9, "its command set is not NVM (zoned or key value)"),
            why(10, "its capacity is impossible"),
        ]
    );
    rig.model.check();
}

#[test]
fn what_others_may_write_is_refused_unless_it_is_wanted() {
    // CMIC: ports, controllers, virtual functions, ANA; NMIC: shared, and what else may be there.
    for (cmic, nmic, shared) in [
        (0b0000, 0b00, false),
        (0b0000, 0b01, false),
        (0b1100, 0b01, false),
        (0b0011, 0b00, false),
        (0b0011, 0b10, false),
        (0b0001, 0b01, true),
        (0b0010, 0b01, true),
        (0b1111, 0b11, true),
    ] {
        let rig = Rig::started(Config {
            cmic,
            namespaces: vec![
                Namespace {
                    nmic,
                    ..Namespace::new(1, 9, 8)
                },
                Namespace::new(2, 9, 8),
            ],
            ..Config::default()
        });
        let served = |rig: &Rig| rig.units().iter().map(Result::is_ok).collect::<Vec<_>>();
        assert_eq!(served(&rig), [!shared, true], "CMIC {cmic}, NMIC {nmic}");
        if let Err(Refused { id, why }) = rig.units()[0] {
            assert_eq!(id, 1);
            assert!(why.contains("nvme_shared=1"), "{why}");
        }
        rig.nvme.serve_shared(true);
        assert_eq!(served(&rig), [true, true]);
        rig.nvme.serve_shared(false);
    }
}

#[test]
fn shifts_that_no_block_has_are_refused() {
    for lbads in [0, 8, 17, 63, 64, 255] {
        let rig = Rig::started(Config {
            namespaces: vec![Namespace {
                lbads,
                ..Namespace::new(1, 9, 8)
            }],
            ..Config::default()
        });
        assert!(rig.units()[0].is_err(), "lbads {lbads}");
    }
}

#[test]
fn one_namespace_whose_identify_fails_is_refused_alone() {
    let rig = Rig::started(Config {
        namespaces: (1..=4).map(|nsid| Namespace::new(nsid, 9, 8)).collect(),
        ..Config::default()
    });
    // Limits, list, then per namespace: Identify, descriptors.
    let first = rig.model.state().admin_log.len() + 2;
    rig.model.state().refuse = Some((first + 2, 0x4002));
    let found = rig.units();
    let why = "Identify Namespace failed";
    assert_eq!(found[1], Err(Refused { id: 2, why }));
    assert_eq!(found.iter().filter(|unit| unit.is_ok()).count(), 3);
}

#[test]
fn more_namespaces_than_one_list_holds_are_all_named() {
    let mut config = Config {
        nn: 5000,
        namespaces: (1..=1500).map(|n| Namespace::new(n * 3, 9, 1)).collect(),
        ..Config::default()
    };
    let rig = Rig::started(config.clone());
    // Not more than the driver believes in.
    assert_eq!(rig.units().len(), 1024);
    config.namespaces.truncate(1024);
    assert_eq!(Rig::started(config).units().len(), 1024);
}

#[test]
fn a_list_that_lies_ends_the_walk() {
    for (active, named) in [
        (vec![1, 1], 1),
        (vec![2, 1], 1),
        (vec![1, 300], 1),
        (vec![u32::MAX], 0),
        (vec![1; 1024], 1),
    ] {
        let rig = Rig::started(Config {
            active: Some(active.clone()),
            namespaces: vec![Namespace::new(1, 9, 8), Namespace::new(2, 9, 8)],
            ..Config::default()
        });
        let mut found = 0;
        let walked = rig.nvme.units(&mut |_| found += 1);
        assert_eq!(
            (walked, found),
            (Err(Error::Malformed), named),
            "{active:?}"
        );
    }
    // The same list for ever, whatever is asked: it does not ascend.
    let rig = Rig::started(Config {
        nn: 2000,
        active: Some((1..=1024).collect()),
        ..Config::default()
    });
    assert_eq!(rig.nvme.units(&mut |_| ()), Ok(()));
    let rig = Rig::started(Config {
        active: Some(Vec::new()),
        ..Config::default()
    });
    assert_eq!(rig.units(), []);
}
