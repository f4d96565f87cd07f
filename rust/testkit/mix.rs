// SPDX-License-Identifier: GPL-2.0
//! Chance that repeats itself; random commands, and what they have to do.

use crate::job::{command, Job};
use hal::{Command, Op};
use std::iter::repeat_n;
use std::ops::Range;

/// A generator of numbers; the same every time.
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// A number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Which random commands a disk is given.
pub struct Mix<'a> {
    /// Of which unit.
    pub unit: u32,
    /// Its block size is `1 << shift`.
    pub shift: u8,
    /// Most blocks of one command.
    pub most: u64,
    /// What is done, and how often among all.
    pub ops: &'a [(Op, usize)],
    /// The shape, as in [`Job::shaped`], of so many bytes.
    pub shape: &'a dyn Fn(&mut Dice, usize) -> (usize, usize),
}

impl Mix<'_> {
    /// What a command is about, on a disk of `total` blocks.
    pub fn range(&self, dice: &mut Dice, total: u64) -> Range<u64> {
        let lba = dice.roll(total);
        lba..lba + 1 + dice.roll((total - lba).min(self.most))
    }

    /// A command on a disk whose content `disk` will be when it is its turn, and what its data has
    /// to be afterwards. What is discarded reads as 0xdd.
    pub fn job(&self, dice: &mut Dice, id: usize, disk: &mut [u8]) -> (Box<Job>, Vec<u8>) {
        let blocks = self.range(dice, disk.len() as u64 >> self.shift);
        let bytes = (blocks.start << self.shift) as usize..(blocks.end << self.shift) as usize;
        let mut ops = (self.ops.iter()).flat_map(|&(op, often)| repeat_n(op, often));
        let rolled = dice.roll(ops.clone().count() as u64);
        let op = ops.nth(rolled as usize).unwrap();
        let content = &mut disk[bytes];
        let data = match op {
            Op::Write => {
                content.fill_with(|| dice.roll(256) as u8);
                content.to_vec()
            }
            Op::Read => vec![0; content.len()],
            _ => Vec::new(),
        };
        match op {
            Op::WriteZeroes => content.fill(0),
            Op::Discard => content.fill(0xdd),
            _ => {}
        }
        let shape = (self.shape)(dice, data.len());
        let expected = match op {
            Op::Read => content.to_vec(),
            _ => data.clone(),
        };
        let cmd = Command {
            block_shift: self.shift,
            ..match op {
                Op::Flush => command(self.unit, op, 0, 0),
                _ => {
                    let count = (blocks.end - blocks.start) as u32;
                    command(self.unit, op, blocks.start, count)
                }
            }
        };
        (Job::shaped(id, cmd, data, shape), expected)
    }
}
