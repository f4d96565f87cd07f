// SPDX-License-Identifier: GPL-2.0
//! Strategy and driver together against the model: what an adapter in the kernel does, without the
//! kernel.

use crate::model::{Config, Namespace};
use crate::rig::{flush, Rig, UNIT};
use engine::Context;
use hal::{CmdError, Controller, Op};
use testkit::{Dice, Mix};

/// Blocks of the random test's disk.
const BLOCKS: u64 = 256;

fn configs() -> impl Iterator<Item = Config> {
    let all = (0..3).flat_map(|sgls| [false, true].map(|shadow| (sgls, shadow)));
    all.flat_map(|(sgls, doorbell_buffer)| {
        [(3u16, 9u8), (0x7ff, 12), (0x7ff, 14)].map(|(mqes, lbads)| Config {
            sgls,
            doorbell_buffer,
            mqes,
            namespaces: vec![Namespace::new(1, lbads, BLOCKS)],
            ..Config::default()
        })
    })
}

/// Where the data of a command of so many bytes lies.
fn shape(dice: &mut Dice, any: bool, bytes: usize) -> (usize, usize) {
    let (offset, piece) = match (any, dice.roll(3)) {
        (true, 0) => (
            dice.roll(1024) as usize * 4,
            4 + dice.roll(2000) as usize * 4,
        ),
        (_, 1) => (0, 4096),
        _ => (dice.roll(1024) as usize * 4, 0),
    };
    // SGLs hold 256 pieces.
    (offset, if bytes > piece * 100 { 0 } else { piece })
}

#[test]
fn random_commands_do_what_they_say_in_every_configuration() {
    for config in configs() {
        let text = format!("{config:?}");
        let shift = config.namespaces[0].lbads;
        let any_shape = config.sgls != 0;
        let rig = Rig::started(config);
        let whole = rig.whole(1);
        let (host, queue) = (&whole.host, &whole.queues[0]);
        let mix = Mix {
            unit: UNIT,
            shift,
            most: if shift == 9 { 48 } else { 6 },
            ops: &[
                (Op::Flush, 1),
                (Op::WriteZeroes, 1),
                (Op::Discard, 1),
                (Op::Write, 3),
                (Op::Read, 4),
            ],
            shape: &|dice, bytes| shape(dice, any_shape, bytes),
        };
        let blocks_alive = rig.machine.bus().blocks_alive();
        let mut disk = vec![0; (BLOCKS << shift) as usize];
        let mut dice = Dice(42);
        let mut expected = Vec::new();
        for id in 0..if cfg!(miri) { 20 } else { 300 } {
            let (job, data) = mix.job(&mut dice, id, &mut disk);
            expected.push(data);
            queue.submit(job, dice.roll(4) != 0);
            match dice.roll(8) {
                0 => {
                    queue.drain(Context::Irq);
                }
                1 => rig.model.state().hold ^= true,
                _ => {}
            }
        }
        queue.commit();
        // The device carries on by itself; from here on only doorbells wake it.
        rig.model.state().hold = false;
        rig.model.run();
        while queue.drain(Context::Irq) != 0 {}
        assert_eq!(queue.in_flight() + queue.queued(), 0, "{text}");
        let ended = host.take();
        assert_eq!(ended.len(), expected.len(), "{text}");
        for (job, outcome) in ended {
            assert_eq!(outcome, Ok(()), "{:?}, {text}", job.cmd);
            assert!(job.data == expected[job.id], "{:?}, {text}", job.cmd);
        }
        assert!(
            rig.model.state().config.namespaces[0].data == disk,
            "{text}"
        );
        assert_eq!(rig.machine.bus().blocks_alive(), blocks_alive);
        assert_eq!(queue.violations(), 0);
        rig.model.check();
    }
}

/// Two queues, drained by one thread.
fn threads(config: Config, rounds: usize) {
    let rig = Rig::started(config);
    let whole = rig.whole(2);
    whole.threads(rounds, false, || {
        let queues = whole.queues.iter();
        queues.map(|queue| queue.drain(Context::Irq)).sum()
    });
}

/// A device small enough for Miri, which looks for missing fences, to set up in reasonable time.
fn small() -> Config {
    Config {
        mqes: 7,
        mdts: 1,
        namespaces: vec![Namespace::new(1, 9, 256)],
        ..Config::default()
    }
}

/// Rounds of each thread.
const ROUNDS: usize = if cfg!(miri) { 4 } else { 1500 };

#[test]
fn threads_lose_nothing_with_registers() {
    threads(small(), ROUNDS);
    if !cfg!(miri) {
        threads(Config::default(), ROUNDS);
    }
}

#[test]
fn threads_lose_nothing_with_shadow_doorbells() {
    let config = Config {
        doorbell_buffer: true,
        ..small()
    };
    threads(config, ROUNDS);
}

#[test]
fn a_reset_fails_what_was_in_flight_and_keeps_what_waited() {
    for doorbell_buffer in [false, true] {
        let rig = Rig::started(Config {
            mqes: 8,
            doorbell_buffer,
            ..Config::default()
        });
        rig.whole(1).survives_resets(8);
    }
}

#[test]
fn a_controller_that_does_not_come_back_fails_everything_with_gone() {
    let rig = Rig::started(Config {
        mqes: 4,
        ..Config::default()
    });
    rig.whole(1).fails_all_when_gone();
}

#[test]
fn a_lying_device_ends_nothing_twice_and_is_found_out() {
    let rig = Rig::started(Config::default());
    let whole = rig.whole(1);
    let (host, queue) = (&whole.host, &whole.queues[0]);
    let mut dice = Dice(7);
    rig.model.state().liar = Some(Box::new(move |_, truth| {
        let mut lie = truth;
        lie.cid = dice.roll(0x1_0000) as u16;
        match dice.roll(4) {
            0 => vec![truth, truth],
            1 => vec![lie],
            2 => vec![lie, truth],
            _ => vec![truth],
        }
    }));
    let mut seen = vec![0; 2000];
    let total = seen.len();
    for id in 0..total {
        queue.submit(flush(id), true);
        queue.drain(Context::Irq);
        if queue.in_flight() > 200 {
            let mut quiesced = queue.quiesce(&rig.machine);
            rig.nvme.stop().unwrap();
            quiesced.reap(CmdError::Timeout.retryable());
            quiesced.rewind();
            rig.nvme.start().unwrap();
            quiesced.unquiesce();
        }
    }
    assert!(queue.violations() > 0);
    let mut quiesced = queue.quiesce(&rig.machine);
    rig.nvme.stop().unwrap();
    quiesced.reap(CmdError::Timeout.retryable());
    quiesced.kill();
    for (job, _) in host.take() {
        seen[job.id] += 1;
    }
    assert_eq!(seen, vec![1; total]);
}
