// SPDX-License-Identifier: GPL-2.0
//! Reads with holes: what of them goes over the link, and where it comes from.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod common;

use common::{config, HostBacking, BLOCK};
use hal::mock::MockPlatform;
use hal::{CmdError, Controller, Op, Segment};
use lld_ram::{Config, Holes, Ram, RamQueue};
use testkit::{command, pattern, Line};

/// Two blocks with holes take as many nanoseconds on the link as they have wanted bytes.
const MB_S: u32 = 1000;

type Queue = RamQueue<MockPlatform, HostBacking>;

/// A device that makes so much of holes, its queue, and what is on it.
fn device(
    holes: Holes,
) -> (
    MockPlatform,
    HostBacking,
    Ram<MockPlatform, HostBacking>,
    Line<Queue>,
) {
    let platform = MockPlatform::new();
    let config = Config {
        link_mb_s: MB_S,
        holes,
        ..config()
    };
    let backing = HostBacking::new(platform.bus(), config);
    let ram = Ram::new(platform.clone(), backing.clone(), 0);
    ram.start().unwrap();
    let offered = (holes != Holes::No).then_some(0);
    assert_eq!(ram.limits().hole_align, offered);
    let mut queue = Line::of(&ram, 0, 0);
    let data = platform.map(&pattern(2 * BLOCK, 3), 0, 0);
    queue
        .start(&command(1, Op::Write, 0, 2), &data.segments())
        .unwrap();
    backing.move_to(1_000_000);
    assert_eq!(queue.drain().len(), 1);
    let _ = data.unmap();
    (platform, backing, ram, queue)
}

/// Two blocks with 100 bytes after 300, and 4 after 200 more.
const ENDS: [usize; 5] = [300, 400, 600, 604, 2 * BLOCK];
const WANTED: u64 = 104;

/// The pieces of such a read to `addr`.
fn pieces(addr: u64) -> Vec<Segment> {
    let piece = |(n, end): (usize, usize)| {
        let at = if n == 0 { 0 } else { ENDS[n - 1] };
        let len = (end - at) as u32;
        match n % 2 {
            0 => Segment::hole(len),
            _ => Segment {
                addr: addr + at as u64,
                len,
            },
        }
    };
    ENDS.into_iter().enumerate().map(piece).collect()
}

/// What such a read brings to a buffer of 0xa5, and how long it takes after the medium's time.
fn read(holes: Holes) -> (Vec<u8>, u64) {
    let (platform, backing, ram, mut queue) = device(holes);
    let buffer = platform.map(&[0xa5; 2 * BLOCK], 0, 0);
    let pieces = pieces(buffer.segments()[0].addr);
    let begun = backing.now();
    queue.start(&command(1, Op::Read, 0, 2), &pieces).unwrap();
    while queue.drain().is_empty() {
        assert_eq!(backing.to_next_timer(), [0]);
        ram.interrupt(0);
    }
    (buffer.unmap(), backing.now() - begun - 1000)
}

#[test]
fn nothing_but_what_is_wanted_goes_over_the_link() {
    let data = pattern(2 * BLOCK, 3);
    let mut expected = vec![0xa5; 2 * BLOCK];
    expected[300..400].copy_from_slice(&data[300..400]);
    expected[600..604].copy_from_slice(&data[600..604]);
    assert!(read(Holes::Left) == (expected, WANTED));
}

#[test]
fn a_device_that_shifts_reads_what_is_before() {
    let data = pattern(2 * BLOCK, 3);
    let mut expected = vec![0xa5; 2 * BLOCK];
    expected[300..400].copy_from_slice(&data[..100]);
    expected[600..604].copy_from_slice(&data[100..104]);
    assert!(read(Holes::Shifted) == (expected, WANTED));
}

#[test]
fn holes_are_refused_where_none_may_be() {
    let (platform, _, _, mut queue) = device(Holes::No);
    let buffer = platform.map(&[0; 2 * BLOCK], 0, 0);
    let pieces = pieces(buffer.segments()[0].addr);
    let refused = queue.start(&command(1, Op::Read, 0, 2), &pieces);
    assert_eq!(refused, Err(CmdError::Invalid));
    let _ = buffer.unmap();
    let (platform, _, _, mut queue) = device(Holes::Left);
    let buffer = platform.map(&[0; 2 * BLOCK], 0, 0);
    let pieces = self::pieces(buffer.segments()[0].addr);
    let refused = queue.start(&command(1, Op::Write, 0, 2), &pieces);
    assert_eq!(refused, Err(CmdError::Invalid));
    let _ = buffer.unmap();
}
