// SPDX-License-Identifier: GPL-2.0
//! Requests as an input says, whose data tells whether they were right to succeed.

use crate::{command, Input, Job};
use hal::{Command, Limits, Op, Unit};

/// Most bytes of a request.
const BYTES: u64 = 32 << 10;
/// What a request's data is before it is read.
const UNREAD: u8 = 0xee;

/// The next request of `input`, with the name `id`, that `unit` and `limits` allow; `None`: that is
/// none.
pub(crate) fn next(input: &Input, unit: &Unit, limits: &Limits, id: usize) -> Option<Box<Job>> {
    let what = input.byte();
    let cmd = next_command(input, what, unit, limits)?;
    let data = match cmd.op {
        Op::Write => content(&cmd),
        Op::Read => vec![UNREAD; (cmd.blocks as usize) << cmd.block_shift],
        _ => Vec::new(),
    };
    let piece = if what & 0x10 == 0 { 0 } else { 4096 };
    Some(Job::shaped(id, cmd, data, (0, piece)))
}

fn next_command(input: &Input, what: u8, unit: &Unit, limits: &Limits) -> Option<Command> {
    let shift = unit.block_shift;
    let most = u64::from(limits.max_transfer).min(BYTES);
    let most = most.checked_shr(shift.into()).unwrap_or(0);
    let discards = unit.discard.map_or(0, |may| may.max_blocks);
    let (op, most) = match what & 7 {
        0 => return Some(command(unit.id, Op::Flush, 0, 0)),
        1 => (Op::Discard, u64::from(discards)),
        2 => (Op::WriteZeroes, u64::from(unit.max_write_zeroes)),
        3..=4 => (Op::Write, most),
        _ => (Op::Read, most),
    };
    let lba = input.below(unit.blocks);
    let left = unit.blocks.saturating_sub(lba);
    let most = most.min(left).min(1 << (what >> 5));
    // Too large a block, or nothing that it does.
    (most != 0).then(|| Command {
        block_shift: shift,
        fua: what & 8 != 0 && unit.fua && op == Op::Write,
        ..command(unit.id, op, lba, most as u32)
    })
}

/// What a block of a disk says, if it was written here: where it is.
fn block(lba: u64, bytes: usize) -> Vec<u8> {
    let word = lba.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    word.to_le_bytes().repeat(bytes / 8)
}

fn content(cmd: &Command) -> Vec<u8> {
    let blocks = (cmd.lba..).take(cmd.blocks as usize);
    let blocks = blocks.map(|lba| block(lba, 1 << cmd.block_shift));
    blocks.collect::<Vec<_>>().concat()
}

/// A block that was read is what was written to it, or nothing was, or it was discarded.
#[track_caller]
pub(crate) fn check_read(job: &Job) {
    let size = 1 << job.cmd.block_shift;
    for (lba, found) in (job.cmd.lba..).zip(job.data.chunks(size)) {
        let rights = [block(lba, size), vec![0; size], vec![0xdd; size]];
        let right = rights.iter().any(|right| right == found);
        assert!(right, "block {lba} of {:?} is {:x?}", job.cmd, &found[..16]);
    }
}
