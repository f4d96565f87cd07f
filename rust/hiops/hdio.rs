// SPDX-License-Identifier: GPL-2.0
//! The ioctls of ATA disks that are older than SG_IO (`linux/hdreg.h`): what their arguments mean,
//! as libata has it.

use core::ops::Range;
use lld_ahci::{AtaCommand, AtaReply};

/// 512 bytes: the IDENTIFY DEVICE data.
pub(crate) const HDIO_GET_IDENTITY: u32 = 0x030d;
/// Seven bytes: the registers of a command without data, before and after.
pub(crate) const HDIO_DRIVE_TASK: u32 = 0x031e;
/// Four bytes of registers, and the blocks that the command reads.
pub(crate) const HDIO_DRIVE_CMD: u32 = 0x031f;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 512;

/// SMART, and what must be in two of its registers.
const SMART: u8 = 0xb0;
const SMART_LBA: u64 = 0xc2_4f00;
const IDENTIFY_DEVICE: u8 = 0xec;
/// Device register: what of it is the caller's. Not which of two drives is meant, nor what is
/// obsolete.
const DEVICE: u8 = 0x4f;

/// Words of the IDENTIFY DEVICE data that are text: serial number; firmware revision and model.
const TEXTS: [Range<usize>; 2] = [10..20, 23..47];

/// The command of HDIO_DRIVE_CMD, and how many blocks it reads.
pub(crate) fn drive_cmd([command, place, features, blocks]: [u8; 4]) -> (AtaCommand, u8) {
    let (count, lba) = match command {
        SMART => (blocks, SMART_LBA | u64::from(place)),
        _ => (place, 0),
    };
    let command = AtaCommand {
        command,
        features: features.into(),
        count: count.into(),
        lba,
        device: 0,
    };
    (command, blocks)
}

/// What its first bytes are afterwards.
pub(crate) fn drive_cmd_reply(reply: &AtaReply) -> [u8; 3] {
    let [count, _] = reply.count.to_le_bytes();
    [reply.status, reply.error, count]
}

/// The command of HDIO_DRIVE_TASK.
pub(crate) fn drive_task(registers: [u8; 7]) -> AtaCommand {
    let [command, features, count, low, mid, high, device] = registers;
    AtaCommand {
        command,
        features: features.into(),
        count: count.into(),
        lba: u64::from_le_bytes([low, mid, high, 0, 0, 0, 0, 0]),
        device: device & DEVICE,
    }
}

/// Its registers afterwards.
pub(crate) fn drive_task_reply(reply: &AtaReply) -> [u8; 7] {
    let [count, _] = reply.count.to_le_bytes();
    let [low, mid, high, ..] = reply.lba.to_le_bytes();
    let [status, error, device] = [reply.status, reply.error, reply.device];
    [status, error, count, low, mid, high, device]
}

/// The command whose data HDIO_GET_IDENTITY returns.
pub(crate) fn identify() -> AtaCommand {
    AtaCommand {
        command: IDENTIFY_DEVICE,
        ..AtaCommand::default()
    }
}

/// The data as HDIO_GET_IDENTITY returns it: text in the order in which it is read.
pub(crate) fn identity(sector: &mut [u8; BLOCK]) {
    for (at, word) in sector.chunks_exact_mut(2).enumerate() {
        if TEXTS.iter().any(|words| words.contains(&at)) {
            word.reverse();
        }
    }
}
