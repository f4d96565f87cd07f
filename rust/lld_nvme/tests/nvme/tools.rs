// SPDX-License-Identifier: GPL-2.0
//! Admin commands passed through.

use crate::model::Config;
use crate::rig::Rig;
use hal::mock::MockDma;
use hal::{Controller, DmaMem, Error, Platform};

/// Get Log Page of `bytes`, a vendor's.
fn log_page(bytes: u64) -> [u64; 8] {
    let dwords = bytes / 4 - 1;
    let dword10 = 0xc0 | ((dwords & 0xffff) << 16);
    // PSDT, fused bits, metadata and data pointers of the caller's are the driver's to fill in.
    let dword11 = dwords >> 16;
    [0xc302, 0, 77, 88, 99, dword10 | (dword11 << 32), 0, 0]
}

#[test]
fn data_of_any_length_comes_back() {
    let rig = Rig::started(Config::default());
    for bytes in [4, 512, 4096, 4100, 8192, 12_288, 65_536, 2 << 20] {
        let data = rig.machine.dma(bytes).unwrap();
        let reply = rig
            .nvme
            .admin(log_page(bytes as u64), Some(&data), 1000, &|| false)
            .unwrap();
        assert_eq!((reply.status, reply.result), (0, 0x1234));
        let mut got = vec![0; bytes];
        data.read_bytes(0, &mut got);
        let expected: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        assert_eq!(got, expected);
    }
    rig.model.check();
}

#[test]
fn what_transfers_more_than_its_room_reaches_no_memory_of_others() {
    let rig = Rig::started(Config::default());
    let large = rig.machine.dma(64 << 10).unwrap();
    let send = |bytes, data: &MockDma| rig.nvme.admin(log_page(bytes), Some(data), 1000, &|| false);
    assert_eq!(send(64 << 10, &large).unwrap().status, 0);
    // Its list is left behind; its memory is somebody else's now.
    drop(large);
    let small = rig.machine.dma(3 * 4096).unwrap();
    assert_eq!(send(64 << 10, &small).unwrap().status, 0);
    assert_eq!(rig.machine.bus().faults(), 0);
    rig.model.check();
}

#[test]
fn how_much_a_command_transfers_is_known_of_those_that_say_it() {
    let sqe = |opcode, dword10: u64, dword11: u64| {
        let dwords = dword10 | (dword11 << 32);
        [opcode, 0, 0, 0, 0, dwords, 0, 0]
    };
    let bytes = |opcode, dword10, dword11| lld_nvme::admin_bytes(&sqe(opcode, dword10, dword11));
    assert_eq!(bytes(0x06, 1, 0), Some(4096));
    assert_eq!(bytes(0x02, 0x007f_0002, 0), Some(512));
    assert_eq!(bytes(0x02, 0xffff_00ff, 0xffff_ffff), Some(1 << 34));
    assert_eq!(bytes(0x11, 0x3ff, 7), Some(4096));
    assert_eq!(bytes(0x82, 0, 512), Some(512));
    assert_eq!(bytes(0x09, 0x0c, 1), None);
}

#[test]
fn a_status_is_an_answer_and_not_an_error() {
    let rig = Rig::started(Config::default());
    let reply = rig
        .nvme
        .admin([0xc1, 0, 0, 0, 0, 0, 0, 0], None, 0, &|| false);
    assert_eq!(reply.unwrap().status, 0x4001);
}

#[test]
fn what_would_hurt_the_driver_does_not_pass() {
    let rig = Rig::started(Config::default());
    let before = rig.model.state().admin_log.len();
    for opcode in [0x00, 0x01, 0x04, 0x05, 0x0c, 0x7c] {
        let sqe = [opcode, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(rig.nvme.admin(sqe, None, 0, &|| false), Err(Error::Invalid));
    }
    for feature in [0x07, 0x0d] {
        let sqe = [0x09, 0, 0, 0, 0, feature, 0, 0];
        assert_eq!(rig.nvme.admin(sqe, None, 0, &|| false), Err(Error::Invalid));
    }
    let odd = rig.machine.dma(6).unwrap();
    assert_eq!(odd.len() % 4, 0, "the machine rounds up");
    let large = rig.machine.dma((2 << 20) + 8192).unwrap();
    assert_eq!(
        rig.nvme.admin(log_page(4), Some(&large), 0, &|| false),
        Err(Error::Invalid)
    );
    assert_eq!(rig.model.state().admin_log.len(), before);
}

#[test]
fn before_the_start_there_is_nobody_to_ask() {
    let rig = Rig::new(Config::default()).unwrap();
    assert!(rig.nvme.admin(log_page(4), None, 0, &|| false).is_err());
}

/// An admin command of namespace 1.
fn admin(opcode: u64, dword10: u64) -> [u64; 8] {
    [opcode | (1 << 32), 0, 0, 0, 0, dword10, 0, 0]
}

#[test]
fn what_a_command_changes_is_asked_for_once_a_start() {
    let rig = Rig::started(Config {
        // Vendor specific: exclusive, changes namespaces, changes the controller.
        effects: Some(vec![(0xc0, 1 << 16), (0xc1, 1 << 3), (0xff, 1 << 4)]),
        ..Config::default()
    });
    let effects = |opcode| rig.nvme.effects(&admin(opcode, 0)).unwrap();
    let logs = || {
        let state = rig.model.state();
        let log = state.admin_log.iter();
        log.filter(|(opcode, dword10)| (*opcode, *dword10) == (0x02, 0x03ff_0005))
            .count()
    };
    assert_eq!(logs(), 0, "only for who needs it");
    assert!(effects(0xc0).exclusive && effects(0xc1).namespaces && effects(0xff).capabilities);
    assert!(!effects(0xc2).change_disks() && effects(0xc0).change_disks());
    assert!(effects(0x80).exclusive && effects(0x80).namespaces, "known");
    assert_eq!(logs(), 1);
    rig.model.state().config.effects = Some(Vec::new());
    rig.nvme.stop().unwrap();
    rig.nvme.start().unwrap();
    assert!(!rig.nvme.effects(&admin(0xc0, 0)).unwrap().exclusive);
    rig.model.check();
}

#[test]
fn without_the_log_or_when_it_is_refused_what_is_known_holds() {
    for effects in [None, Some(Vec::new())] {
        let rig = Rig::started(Config {
            effects,
            ..Config::default()
        });
        let next = rig.model.state().admin_log.len();
        rig.model.state().refuse = Some((next, 0x4009));
        assert!(rig.nvme.effects(&admin(0x84, 0)).unwrap().exclusive);
        assert!(!rig.nvme.effects(&admin(0x06, 0)).unwrap().change_disks());
    }
}

#[test]
fn after_a_format_the_namespace_is_what_it_says() {
    let rig = Rig::started(Config::default());
    let shape = || {
        let unit = rig.units()[0].unwrap();
        (unit.block_shift, unit.blocks)
    };
    assert_eq!(shape(), (9, 4096));
    assert_eq!(
        rig.nvme
            .admin(admin(0x80, 1), None, 0, &|| false)
            .unwrap()
            .status,
        0
    );
    assert_eq!(shape(), (12, 512));
    rig.model.check();
}
