// SPDX-License-Identifier: GPL-2.0
//! Frame information structures: the H2D Register FIS that carries a command (Serial ATA 3.x
//! section 10.5.5), and what the first words of the two that answer it say (10.5.6, 10.5.7).

use crate::regs::{STATUS_DF, STATUS_ERR};

/// An H2D Register FIS, five dwords, as 64-bit words.
pub(crate) type Cfis = [u64; 3];

/// FIS types.
const H2D: u8 = 0x27;
const D2H: u32 = 0x34;
const SDB: u32 = 0xa1;
/// H2D: the command register was written.
const COMMAND: u64 = 1 << 15;
/// D2H, SDB: the device asks for an interrupt.
const INTERRUPT: u32 = 1 << 14;

/// ATA registers of a 48-bit command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taskfile {
    pub(crate) command: u8,
    pub(crate) features: u16,
    pub(crate) count: u16,
    /// 48 bits.
    pub(crate) lba: u64,
    pub(crate) device: u8,
    pub(crate) auxiliary: u32,
}

impl Taskfile {
    /// The FIS that carries it.
    #[inline]
    pub(crate) const fn encode(&self) -> Cfis {
        let low = self.lba & 0xff_ffff;
        let high = (self.lba >> 24) & 0xff_ffff;
        let features = self.features as u64;
        [
            (H2D as u64)
                | COMMAND
                | ((self.command as u64) << 16)
                | ((features & 0xff) << 24)
                | (low << 32)
                | ((self.device as u64) << 56),
            high | ((features >> 8) << 24) | ((self.count as u64) << 32),
            self.auxiliary as u64,
        ]
    }

    /// The registers in a FIS that [`Taskfile::encode`] made, whatever became of it in memory that
    /// the HBA can write.
    pub(crate) const fn decode(cfis: Cfis) -> Self {
        let [first, second, third] = cfis;
        // CAST: fields of their widths.
        Self {
            command: (first >> 16) as u8,
            features: (((first >> 24) & 0xff) | (((second >> 24) & 0xff) << 8)) as u16,
            count: (second >> 32) as u16,
            lba: ((first >> 32) & 0xff_ffff) | ((second & 0xff_ffff) << 24),
            device: (first >> 56) as u8,
            auxiliary: third as u32,
        }
    }
}

/// Whether the first word of a D2H Register FIS, or of a Set Device Bits FIS, reports an error.
#[inline]
pub(crate) const fn is_error(word: u32) -> bool {
    word & ((STATUS_ERR | STATUS_DF) << 16) != 0
}

/// Whether the first word of a Set Device Bits FIS has an error's code, whatever its status says:
/// that of an earlier one, perhaps, which this one has covered. Without an error the standard
/// leaves it open what stands there.
#[inline]
pub(crate) const fn has_error_code(sdb: u32) -> bool {
    sdb >> 24 != 0
}

/// Whether the first word of the D2H Register FIS ends a command: a device also accepts each queued
/// one with such a FIS, silently.
#[inline]
pub(crate) const fn ends_command(rfis: u32) -> bool {
    rfis & INTERRUPT != 0 || is_error(rfis)
}

/// Whether what is in the places of the two FISes is no such FIS at all.
#[inline]
pub(crate) const fn is_garbage(sdb: u32, rfis: u32) -> bool {
    (sdb != 0 && sdb & 0xff != SDB) || (rfis != 0 && rfis & 0xff != D2H)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn registers_are_where_the_standard_has_them() {
        let taskfile = Taskfile {
            command: 0x60,
            features: 0x1234,
            count: 0xabcd,
            lba: 0x6655_4433_2211,
            device: 0x40,
            auxiliary: 0x8765_4321,
        };
        let cfis = taskfile.encode();
        let bytes: Vec<u8> = cfis.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(
            bytes[..20],
            [
                0x27, 0x80, 0x60, 0x34, 0x11, 0x22, 0x33, 0x40, 0x44, 0x55, 0x66, 0x12, 0xcd, 0xab,
                0, 0, 0x21, 0x43, 0x65, 0x87
            ]
        );
        assert_eq!(bytes[20..], [0; 4]);
        assert_eq!(Taskfile::decode(cfis), taskfile);
    }

    #[test]
    fn answers_are_told_apart() {
        assert!(!ends_command(0x0050_0034), "a queued command was accepted");
        assert!(ends_command(0x0050_4034));
        assert!(ends_command(0x0451_0034));
        assert!(is_error(0x4041_40a1) && !is_error(0x0040_40a1));
        assert!(has_error_code(0x0440_40a1) && !has_error_code(0x0040_40a1));
        assert!(!is_garbage(0, 0) && !is_garbage(0x40a1, 0x34));
        assert!(is_garbage(0x4034, 0) && is_garbage(0, 0xa1));
    }
}
