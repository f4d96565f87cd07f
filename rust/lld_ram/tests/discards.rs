// SPDX-License-Identifier: GPL-2.0
//! Discards of many ranges.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod common;

use common::{config, HostBacking, BLOCK};
use hal::mock::MockPlatform;
use hal::{CmdError, Controller, Op, Refused, Segment, Unit};
use lld_ram::{Ram, RamQueue};
use testkit::{command, Line};

const BLOCKS: u64 = (1 << 20) / BLOCK as u64;

/// First block and length.
type Range = (u64, u32);

/// A device that is full of 0x55, and its queue.
struct Full {
    backing: HostBacking,
    ram: Ram<MockPlatform, HostBacking>,
    queue: Line<RamQueue<MockPlatform, HostBacking>>,
}

impl Full {
    fn new() -> Self {
        let platform = MockPlatform::new();
        let backing = HostBacking::new(platform.bus(), config());
        let ram = Ram::new(platform.clone(), backing.clone(), 0);
        ram.start().unwrap();
        let queue = Line::of(&ram, 0, 0);
        backing.fill(0x55);
        Self {
            backing,
            ram,
            queue,
        }
    }

    /// The most ranges that it says that it takes.
    fn most(&self) -> u16 {
        let mut most = 0;
        let mut found = |unit: Result<Unit, Refused>| {
            most = unit.unwrap().discard.unwrap().max_ranges;
        };
        self.ram.units(&mut found).unwrap();
        most
    }

    /// How a discard of `blocks` blocks in those ranges ends.
    fn discard(&mut self, blocks: u32, ranges: &[Range]) -> Result<(), CmdError> {
        let range = |&(addr, len): &Range| Segment { addr, len };
        let ranges: Vec<_> = ranges.iter().map(range).collect();
        let cmd = command(1, Op::Discard, ranges.first().map_or(0, |r| r.addr), blocks);
        self.queue.start(&cmd, &ranges)?;
        self.backing.move_to(self.backing.now() + 1_000_000_000);
        self.queue.drain().pop().unwrap().1
    }

    /// The blocks that are zeroes now; the others are as they were.
    fn zeroes(&self) -> Vec<u64> {
        let medium = self.backing.medium();
        let blocks = medium.chunks(BLOCK).zip(0..);
        let zeroes = blocks.filter(|(block, _)| block.iter().all(|byte| *byte == 0));
        let zeroes: Vec<_> = zeroes.map(|(_, n)| n).collect();
        let left = medium.iter().filter(|byte| **byte == 0x55).count();
        assert_eq!(left + zeroes.len() * BLOCK, medium.len());
        zeroes
    }
}

#[test]
fn a_discard_of_many_ranges_is_one_command() {
    let most = Full::new().most();
    assert!(most >= 64);
    for count in [1, 2, u64::from(most)] {
        let mut full = Full::new();
        let ranges: Vec<_> = (0..count)
            .map(|n| (3 * n + 1, 1 + (n % 2) as u32))
            .collect();
        let blocks = ranges.iter().map(|range| range.1).sum();
        assert_eq!(full.discard(blocks, &ranges), Ok(()));
        let expected: Vec<_> = (ranges.iter())
            .flat_map(|&(at, len)| at..at + u64::from(len))
            .collect();
        assert_eq!(full.zeroes(), expected, "{count}");
    }
}

#[test]
fn a_bad_discard_changes_nothing() {
    let mut full = Full::new();
    let most = u64::from(full.most());
    let too_many: Vec<_> = (0..=most).map(|n| (n * 2, 1)).collect();
    let bad: [(u32, &[Range], CmdError); 7] = [
        (most as u32 + 1, &too_many, CmdError::Invalid),
        (3, &[(0, 1), (5, 1)], CmdError::Invalid),
        (1, &[(0, 1), (5, 1)], CmdError::Invalid),
        (2, &[(0, 1), (BLOCKS, 1)], CmdError::Range),
        (3, &[(0, 1), (BLOCKS - 1, 2)], CmdError::Range),
        (2, &[(0, 1), (u64::MAX, 1)], CmdError::Range),
        (u32::MAX, &[(0, 1), (0, u32::MAX - 1)], CmdError::Invalid),
    ];
    for (blocks, ranges, why) in bad {
        assert_eq!(full.discard(blocks, ranges), Err(why), "{blocks}");
        assert_eq!(full.zeroes(), []);
    }
}
