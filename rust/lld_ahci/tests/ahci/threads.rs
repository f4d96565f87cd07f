// SPDX-License-Identifier: GPL-2.0
//! Strategy and driver together, from several threads at once.

use crate::model::{Config, Drive};
use crate::rig::Rig;
use engine::Context;
use hal::Controller;

/// An interrupt handler or a poll timer drains, which loses nothing.
fn threads(config: Config, polls: bool, rounds: usize) {
    let rig = Rig::started(config);
    let whole = rig.whole();
    let queue = &whole.queues[0];
    rig.ahci[0].set_interrupt(0, !polls);
    whole.threads(rounds, polls, || match polls {
        true => queue.drain(Context::Poll),
        false => rig.interrupts(|_| {
            queue.drain(Context::Irq);
        }),
    });
}

/// A drive of which a read that overtakes a write finds what the write will leave.
fn small() -> Config {
    let mut drive = Drive::new(9, 256);
    for (thread, part) in drive.data.chunks_mut(64 * 512).enumerate() {
        part.fill(thread as u8);
    }
    Config {
        slots: 8,
        ..Config::with(drive)
    }
}

const ROUNDS: usize = if cfg!(miri) { 8 } else { 1000 };

#[test]
fn threads_lose_nothing_with_interrupts() {
    threads(small(), false, ROUNDS);
}

#[test]
fn threads_lose_nothing_when_polled() {
    threads(small(), true, ROUNDS);
}

#[test]
fn threads_lose_nothing_when_polled_with_registers_that_lag() {
    let config = Config {
        lag: 2,
        batches: false,
        ..small()
    };
    threads(config, true, ROUNDS);
}

#[test]
fn threads_lose_nothing_without_queues() {
    let mut config = small();
    config.ncq = false;
    threads(config.clone(), false, ROUNDS);
    threads(config, true, ROUNDS);
}
