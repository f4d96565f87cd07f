// SPDX-License-Identifier: GPL-2.0
//! ATA PASS-THROUGH (SAT-4 sections 12.2.2 and 12.2.3): the registers and the data of a command.

use super::{Data, Request};
use crate::pass::AtaCommand;
use crate::sense::Sense;

/// PROTOCOL, byte 1 bits 4:1.
const NON_DATA: u8 = 3;
const PIO_IN: u8 = 4;
const PIO_OUT: u8 = 5;
const DMA: u8 = 6;
const UDMA_IN: u8 = 10;
const UDMA_OUT: u8 = 11;
/// EXTEND, byte 1.
pub(super) const EXTEND: u8 = 1;

/// Byte 2: where the length of the data is said,
const T_LENGTH: u8 = 0b11;
const IN_FEATURES: u8 = 1;
const IN_COUNT: u8 = 2;
/// that it is in blocks,
const BYT_BLOK: u8 = 1 << 2;
/// that the data comes from the drive,
const T_DIR: u8 = 1 << 3;
/// that the registers are wanted in any case.
const CK_COND: u8 = 1 << 5;

/// A block of [`BYT_BLOK`] has at least so many bytes.
const BLOCK: u32 = 512;
/// Device register: the second of two drives on a cable, which serial ATA does not have.
const SECOND: u8 = 1 << 4;

pub(super) fn lba([low, mid, high, low_hob, mid_hob, high_hob]: [u8; 6]) -> u64 {
    u64::from_le_bytes([low, mid, high, low_hob, mid_hob, high_hob, 0, 0])
}

/// `how` and `what` are bytes 1 and 2.
pub(super) fn pass_through(
    how: u8,
    what: u8,
    command: AtaCommand,
    data: Data,
) -> Result<Request, Sense> {
    let from_device = what & T_DIR != 0;
    let bytes = match ((how >> 1) & 0xf, data) {
        (NON_DATA, Data::Nothing) => 0,
        (PIO_IN | DMA | UDMA_IN, Data::FromDevice(bytes)) if from_device => bytes,
        (PIO_OUT | DMA | UDMA_OUT, Data::ToDevice(bytes)) if !from_device => bytes,
        // Resets, queued commands, and what does not agree.
        _ => return Err(Sense::INVALID_FIELD),
    };
    // What the command says of the data's length: the drive may transfer as much, so there has to
    // be room for it.
    let said = match what & T_LENGTH {
        0 if bytes != 0 => return Err(Sense::INVALID_FIELD),
        IN_FEATURES => u32::from(command.features),
        IN_COUNT => u32::from(command.count),
        // Nothing, or that it is as long as it is.
        _ => 0,
    };
    let unit = match what & BYT_BLOK {
        0 => 1,
        _ => BLOCK,
    };
    if said.saturating_mul(unit) > bytes {
        return Err(Sense::INVALID_FIELD);
    }
    Ok(Request::Ata {
        command: AtaCommand {
            device: command.device & !SECOND,
            ..command
        },
        extend: how & EXTEND != 0,
        registers: what & CK_COND != 0,
    })
}
