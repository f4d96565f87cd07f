// SPDX-License-Identifier: GPL-2.0
//! I/O commands passed through.

use crate::model::{Config, Namespace};
use crate::rig::{command, Rig};
use hal::mock::MockDma;
use hal::{Controller, DmaMem, Error, Op, Platform};

/// An I/O command of namespace 1.
fn io(opcode: u64, lba: u64, blocks: u64) -> [u64; 8] {
    // PSDT, fused bits, metadata and data pointers of the caller's are the driver's to fill in.
    let first = opcode | 0xc300 | (1 << 32);
    [first, 0, 77, 88, 99, lba, blocks - 1, 0]
}

/// Memory with bytes in it that tell where they are.
fn filled(rig: &Rig, bytes: usize, seed: u8) -> (MockDma, Vec<u8>) {
    let data: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8 ^ seed).collect();
    let memory = rig.machine.dma(bytes).unwrap();
    for (at, word) in (0..).step_by(4).zip(data.chunks_exact(4)) {
        memory.write32(at, u32::from_le_bytes(word.try_into().unwrap()));
    }
    (memory, data)
}

fn send(rig: &Rig, sqe: [u64; 8], data: Option<&MockDma>) -> Result<u16, Error> {
    let reply = rig.nvme.io(1, sqe, data, 1000, &|| false)?;
    Ok(reply.status)
}

#[test]
fn what_is_written_is_read_and_nobody_else_is_disturbed() {
    let configs = (0..8).map(|which| Config {
        doorbell_buffer: which & 1 != 0,
        sgls: which & 2,
        namespaces: vec![Namespace::new(1, if which & 4 != 0 { 12 } else { 9 }, 4096)],
        ..Config::default()
    });
    for config in configs {
        let shift = config.namespaces[0].lbads;
        let rig = Rig::started(config);
        let mut queue = rig.queue(0);
        for (round, blocks) in [1u64, 8, 17, 64, 1, 3, 1].into_iter().enumerate() {
            let bytes = (blocks << shift) as usize;
            let (memory, data) = filled(&rig, bytes, round as u8);
            assert_eq!(send(&rig, io(1, 5, blocks), Some(&memory)), Ok(0));
            assert_eq!(queue.run(&command(Op::Flush, 0, 0), &[]), Ok(()));
            let back = rig.machine.dma(bytes).unwrap();
            assert_eq!(send(&rig, io(2, 5, blocks), Some(&back)), Ok(0));
            let mut got = vec![0; bytes];
            back.read_bytes(0, &mut got);
            assert_eq!(got, data);
        }
        let state = rig.model.state();
        assert_eq!(state.cqs.len(), 3, "one pair more, made once");
        assert!(state.cqs[&1].interrupts && !state.cqs[&2].interrupts);
        drop(state);
        rig.model.check();
    }
}

#[test]
fn a_status_is_an_answer_and_comes_whole() {
    let rig = Rig::started(Config::default());
    for status in [0x0002, 0x4281, 0x7fff] {
        rig.model.state().io_status = vec![status];
        assert_eq!(send(&rig, io(0, 0, 1), None), Ok(status));
    }
    assert_eq!(send(&rig, io(0xc1, 0, 1), None), Ok(0x4001));
    assert_eq!(send(&rig, io(0, 0, 1), None), Ok(0));
}

#[test]
fn what_names_another_namespace_or_more_than_its_data_does_not_pass() {
    let rig = Rig::started(Config {
        mdts: 2,
        ..Config::default()
    });
    let page = rig.machine.dma(4096).unwrap();
    let large = rig.machine.dma(4 * 4096 + 512).unwrap();
    let other = |nsid: u64| {
        let [first, rest @ ..] = io(2, 0, 1);
        let [a, b, c, d, e, f, g] = rest;
        [(first & 0xffff_ffff) | (nsid << 32), a, b, c, d, e, f, g]
    };
    for (sqe, data) in [
        (other(0), Some(&page)),
        (other(2), Some(&page)),
        (other(0xffff_ffff), Some(&page)),
        (io(2, 0, 1), None),
        (io(2, 0, 9), Some(&page)),
        (io(1, 0, 9), Some(&page)),
        (io(5, 0, 9), Some(&page)),
        (io(2, 0, 0x1_0000), Some(&page)),
        // No room for its ranges.
        (io(9, 0, 1), None),
        // More than MDTS.
        (io(2, 0, 33), Some(&large)),
        (io(0xc1, 0, 1), Some(&large)),
    ] {
        assert_eq!(send(&rig, sqe, data), Err(Error::Invalid), "{sqe:x?}");
    }
    assert!(rig.model.state().io_log.is_empty());
    assert_eq!(rig.nvme.block_shift(1), Ok(9));
    assert!(rig.nvme.block_shift(7).is_err());
    assert_eq!(send(&rig, io(2, 0, 8), Some(&page)), Ok(0));
    rig.model.check();
}

#[test]
fn blocks_are_as_large_as_they_are_at_that_moment() {
    let rig = Rig::started(Config::default());
    let data = rig.machine.dma(512).unwrap();
    assert_eq!(send(&rig, io(2, 0, 1), Some(&data)), Ok(0));
    let format = [0x80 | (1 << 32), 0, 0, 0, 0, 1, 0, 0];
    assert_eq!(
        rig.nvme.admin(format, None, 0, &|| false).unwrap().status,
        0
    );
    assert_eq!(send(&rig, io(2, 0, 1), Some(&data)), Err(Error::Invalid));
    for metadata in [(8, 0), (0, 1)] {
        let mut state = rig.model.state();
        let namespace = &mut state.config.namespaces[0];
        (namespace.metadata, namespace.protection) = metadata;
        drop(state);
        let page = rig.machine.dma(4096).unwrap();
        assert_eq!(
            send(&rig, io(2, 0, 1), Some(&page)),
            Err(Error::Unsupported)
        );
    }
}

#[test]
fn without_a_queue_that_is_left_there_is_none() {
    let rig = Rig::started(Config {
        queues: 1,
        ..Config::default()
    });
    let queue = rig.queue(0);
    assert_eq!(send(&rig, io(0, 0, 1), None), Err(Error::Unsupported));
    drop(queue);
    let rig = Rig::started(Config {
        queues: 2,
        ..Config::default()
    });
    let _queue = rig.queue(0);
    let next = rig.model.state().admin_log.len() + 1;
    rig.model.state().refuse = Some((next, 0x4101));
    assert_eq!(send(&rig, io(0, 0, 1), None), Err(Error::Refused(0x4101)));
    // Asked for again: the controller may have one now. It is nobody else's then.
    assert_eq!(send(&rig, io(0, 0, 1), None), Ok(0));
    let taken = rig.nvme.create_queue(1, None).map(|_| ());
    assert_eq!(taken.unwrap_err(), Error::Invalid);
}

#[test]
fn memory_of_what_is_not_answered_stays_until_the_device_is_stopped() {
    let rig = Rig::started(Config::default());
    let _queue = rig.queue(0);
    let before = rig.machine.bus().blocks_alive();
    for _ in 0..2 {
        rig.model.state().hold = true;
        let data = rig.machine.dma(4096).unwrap();
        let at = data.bus_addr();
        assert_eq!(send(&rig, io(2, 0, 8), Some(&data)), Err(Error::Timeout));
        drop(data);
        assert_eq!(send(&rig, io(0, 0, 1), None), Err(Error::Timeout), "busy");
        // A handle of it is left: the device may write it late.
        rig.model.state().hold = false;
        rig.model.run();
        assert!(rig.machine.bus().write(at, &[1]).is_ok());
        rig.nvme.stop().unwrap();
        assert_eq!(rig.machine.bus().blocks_alive(), before);
        rig.nvme.start().unwrap();
        assert_eq!(send(&rig, io(0, 0, 1), None), Ok(0), "a new pair");
        rig.nvme.stop().unwrap();
        rig.nvme.start().unwrap();
    }
    rig.model.check();
}

#[test]
fn a_pair_that_is_not_answered_for_has_the_controller_reset() {
    for step in [1, 2] {
        let rig = Rig::started(Config::default());
        let _queue = rig.queue(0);
        let before = rig.machine.bus().blocks_alive();
        let next = rig.model.state().admin_log.len() + step;
        rig.model.state().ignore = Some(next);
        assert_eq!(send(&rig, io(0, 0, 1), None), Err(Error::Timeout));
        assert!(
            rig.machine.bus().blocks_alive() > before,
            "it may have the queue"
        );
        rig.nvme.stop().unwrap();
        assert_eq!(rig.machine.bus().blocks_alive(), before);
        rig.nvme.start().unwrap();
        assert_eq!(send(&rig, io(0, 0, 1), None), Ok(0));
        rig.model.check();
    }
}

#[test]
fn it_is_up_soon_where_the_control_path_is_wanted() {
    let rig = Rig::started(Config::default());
    rig.model.state().hold = true;
    let begin = rig.machine.now_us();
    let sqe = io(0, 0, 1);
    assert_eq!(
        rig.nvme.io(1, sqe, None, 600_000, &|| true),
        Err(Error::Timeout)
    );
    assert!(rig.machine.now_us() - begin < 2_000_000);
}
