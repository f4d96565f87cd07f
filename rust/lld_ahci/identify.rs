// SPDX-License-Identifier: GPL-2.0
//! What a drive says about itself: IDENTIFY DEVICE (ACS-4 section 7.13.6), and of its logs what
//! can be sent queued (section 9.16), decoded from copies of what the device wrote.

use hal::{Discard, Error, Topology, Unit, UnitIds, UnitKind};

use crate::cmd::{self, SECTOR_BYTES};

/// Log2 of the block sizes that are served.
const BLOCK_SHIFTS: [u8; 2] = [9, 12];
/// Word 255: there is a check sum.
const INTEGRITY: u16 = 0xa5;
/// Word 217: nothing rotates, or it is not said; from here on it is revolutions a minute.
const SLOWEST: u16 = 0x401;

/// Most bytes of a command: 65,535 sectors, as libata has it (`ATA_MAX_SECTORS_LBA48`, Linux 7.3),
/// which spares drives the count of 0 that means 65,536.
pub(crate) const TRANSFER_MAX: u32 = 65_535 << 9;

/// What a drive says about itself, as far as it matters here, less what its quirks forbid
/// ([`DriveId::with_quirks`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DriveId {
    pub(crate) serial: [u8; 20],
    pub(crate) model: [u8; 40],
    pub(crate) firmware: [u8; 8],
    pub(crate) wwn: Option<u64>,
    pub(crate) blocks: u64,
    pub(crate) block_shift: u8,
    pub(crate) physical_shift: u8,
    /// The first logical block at which a physical one begins (word 209).
    pub(crate) aligned_at: u32,
    /// Commands that it queues, 1 to 32; `None`: no native command queuing.
    pub(crate) depth: Option<u8>,
    /// SEND and RECEIVE FPDMA QUEUED are there.
    pub(crate) sends_queued: bool,
    /// It knows no more than 1.5 Gbit/s.
    pub(crate) gen1_only: bool,
    /// Host-initiated power management: it lets the HBA have the link sleep.
    pub(crate) hipm: bool,
    /// Device-initiated power management is there, and is on.
    pub(crate) has_dipm: bool,
    pub(crate) dipm: bool,
    /// General purpose logging: READ LOG EXT is there.
    pub(crate) logs: bool,
    pub(crate) write_cache: bool,
    pub(crate) fua: bool,
    pub(crate) trim: bool,
    /// Most blocks of a TRIM.
    pub(crate) trim_blocks: u32,
    /// Most bytes of a command.
    pub(crate) max_transfer: u32,
    pub(crate) rotational: bool,
}

impl DriveId {
    /// Decodes the sector. [`Error::Malformed`]: its check sum is wrong. The inner error: a drive
    /// that is not served, and why.
    pub(crate) fn decode(sector: &[u8; SECTOR_BYTES]) -> Result<Result<Self, &'static str>, Error> {
        let words = Words(sector);
        let sum = sector.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        if words.word(255) & 0xff == INTEGRITY && sum != 0 {
            return Err(Error::Malformed);
        }
        Ok(match refusal(&words) {
            Some(why) => Err(why),
            None => Self::of(&words),
        })
    }

    fn of(words: &Words<'_>) -> Result<Self, &'static str> {
        let (block_shift, physical_shift) =
            shifts(words).ok_or("its logical blocks are neither 512 nor 4096 bytes")?;
        // Words 230 to 233 where word 69 says so: more than 48 bits could hold of other sizes.
        let blocks = match words.number(100, 4) {
            _ if words.bit(69, 3) => words.number(230, 4),
            blocks => blocks,
        };
        if blocks == 0 || blocks > 1 << 48 {
            return Err("its capacity is impossible");
        }
        // 0 and all ones: no serial ATA drive said this.
        let sata = !matches!(words.word(76), 0 | 0xffff);
        let ncq = sata && words.bit(76, 8);
        Ok(Self {
            serial: words.text(10),
            firmware: words.text(23),
            model: words.text(27),
            wwn: (words.valid(87).is_some() && words.bit(87, 8))
                .then(|| (108..112).fold(0, |sum, at| (sum << 16) | u64::from(words.word(at)))),
            blocks,
            block_shift,
            physical_shift,
            aligned_at: aligned_at(words, physical_shift.saturating_sub(block_shift)),
            // CAST: 5 bits.
            depth: ncq.then(|| ((words.word(75) & 0x1f) as u8).wrapping_add(1)),
            sends_queued: ncq && words.bit(77, 6),
            gen1_only: sata && words.word(76) & 0xe == 2,
            hipm: sata && words.bit(76, 9),
            has_dipm: sata && words.bit(78, 3),
            dipm: sata && words.bit(79, 3),
            logs: words.valid(84).is_some() && words.bit(84, 5),
            write_cache: words.bit(82, 5) && words.bit(85, 5),
            fua: words.valid(84).is_some() && words.bit(84, 6),
            trim: words.bit(169, 0),
            trim_blocks: cmd::TRIM_BLOCKS_MAX,
            max_transfer: TRANSFER_MAX,
            rotational: words.word(217) >= SLOWEST && words.word(217) != 0xffff,
        })
    }

    /// The drive as a disk.
    pub(crate) fn unit(&self, id: u32) -> Unit {
        Unit {
            kind: UnitKind::Drive,
            id,
            block_shift: self.block_shift,
            physical_shift: self.physical_shift,
            blocks: self.blocks,
            write_cache: self.write_cache,
            fua: self.write_cache && self.fua,
            discard: self.trim.then(|| Discard {
                max_blocks: self.trim_blocks,
                max_ranges: cmd::max_ranges(self.trim_blocks),
                granularity: 1u32.wrapping_shl(u32::from(
                    self.physical_shift.wrapping_sub(self.block_shift),
                )),
            }),
            max_write_zeroes: 0,
            topology: Topology {
                alignment_offset: self.aligned_at,
                ..Topology::default()
            },
            read_only: false,
            rotational: self.rotational,
            ids: UnitIds {
                wwn: self.wwn,
                ..UnitIds::default()
            },
            serial: self.serial,
            model: self.model,
            firmware: self.firmware,
        }
    }

    /// Whether it is the drive that was there `before`, as what was promised of that one holds.
    pub(crate) fn is_same(&self, before: &Self) -> bool {
        self.serial == before.serial
            && self.model == before.model
            && self.wwn == before.wwn
            && self.block_shift == before.block_shift
            && self.blocks >= before.blocks
            && self.depth >= before.depth
            && self.trim >= before.trim
            && self.fua >= before.fua
            // A cache that nobody flushes loses data.
            && self.write_cache <= before.write_cache
    }
}

/// Why a drive is not served.
fn refusal(words: &Words<'_>) -> Option<&'static str> {
    if words.bit(0, 15) {
        Some("it is no ATA disk (IDENTIFY word 0)")
    } else if words.valid(83).is_none() || !words.bit(83, 10) {
        Some("it has 28-bit addresses only")
    } else if !words.bit(49, 8) {
        Some("it has no DMA")
    } else if words.bit(128, 1) && words.bit(128, 2) {
        Some("it is locked by a password")
    } else if !words.bit(83, 13) && words.bit(82, 5) {
        Some("its write cache can't be flushed (no FLUSH CACHE EXT)")
    } else {
        None
    }
}

/// Log2 of the bytes of a logical and of a physical block (words 106, 117, 118).
fn shifts(words: &Words<'_>) -> Option<(u8, u8)> {
    let Some(sizes) = words.valid(106) else {
        return Some((9, 9));
    };
    let logical = match sizes & (1 << 12) {
        0 => 9,
        _ => {
            let bytes = words.number(117, 2).checked_mul(2)?;
            if !bytes.is_power_of_two() {
                return None;
            }
            u8::try_from(bytes.trailing_zeros()).ok()?
        }
    };
    // CAST: 4 bits.
    let more = match sizes & (1 << 13) {
        0 => 0,
        _ => (sizes & 0xf) as u8,
    };
    (BLOCK_SHIFTS.contains(&logical)).then(|| (logical, logical.saturating_add(more)))
}

/// Where the first physical block of 2^`shift` logical ones begins: word 209 says how far into one
/// the first logical block lies.
fn aligned_at(words: &Words<'_>, shift: u8) -> u32 {
    let physical = 1u32.wrapping_shl(shift.into());
    match words.valid(209).map_or(0, |word| u32::from(word & 0x3fff)) {
        0 => 0,
        offset => physical.saturating_sub(offset),
    }
}

/// The sector, by words of 16 bits.
struct Words<'a>(&'a [u8; SECTOR_BYTES]);

impl Words<'_> {
    fn word(&self, at: usize) -> u16 {
        let byte = |at: usize| self.0.get(at).copied().unwrap_or(0);
        let at = at.wrapping_mul(2);
        u16::from_le_bytes([byte(at), byte(at.wrapping_add(1))])
    }

    fn bit(&self, at: usize, bit: u32) -> bool {
        self.word(at).wrapping_shr(bit) & 1 != 0
    }

    /// A word whose bits 15:14 say 01b: it is valid.
    fn valid(&self, at: usize) -> Option<u16> {
        Some(self.word(at)).filter(|word| word >> 14 == 1)
    }

    /// `count` words from `at` on, least significant first.
    fn number(&self, at: usize, count: usize) -> u64 {
        let words = (at..at.saturating_add(count)).rev();
        words.fold(0, |sum, at| (sum << 16) | u64::from(self.word(at)))
    }

    /// Characters, two a word, the first in the upper half.
    fn text<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut text = [b' '; N];
        for (index, place) in text.iter_mut().enumerate() {
            let word = self.word(at.wrapping_add(index / 2)).to_be_bytes();
            let byte = word.get(index % 2).copied().unwrap_or(b' ');
            // What is no character is no text for anybody's log or file.
            *place = if byte.is_ascii_graphic() { byte } else { b' ' };
        }
        text
    }
}

/// NCQ Send and Receive log (9.16).
pub(crate) const NCQ_SEND: u8 = 0x13;

/// Whether log 13h says that DATA SET MANAGEMENT, TRIM can be sent queued.
pub(crate) fn has_queued_trim(sector: &[u8; SECTOR_BYTES]) -> bool {
    let [subcommands, _, _, _, trim, ..] = *sector;
    subcommands & 1 != 0 && trim & 1 != 0
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    fn sector(words: &[(usize, u16)]) -> [u8; SECTOR_BYTES] {
        let mut sector = [0; SECTOR_BYTES];
        let plain = [
            (49, 0x300),
            (83, 0x6400),
            (84, 0x4000),
            (100, 0x1000),
            (82, 0x20),
        ];
        for (at, word) in plain.iter().chain(words) {
            sector[at * 2..at * 2 + 2].copy_from_slice(&word.to_le_bytes());
        }
        sector
    }

    fn decode(words: &[(usize, u16)]) -> Result<DriveId, &'static str> {
        DriveId::decode(&sector(words)).unwrap()
    }

    #[test]
    fn a_plain_drive() {
        let id = decode(&[]).unwrap();
        assert_eq!(
            (id.block_shift, id.physical_shift, id.blocks),
            (9, 9, 0x1000)
        );
        assert_eq!((id.depth, id.wwn), (None, None));
        assert!(!(id.write_cache || id.fua || id.trim || id.rotational || id.logs || id.dipm));
    }

    #[test]
    fn words_are_where_the_standard_has_them() {
        let id = decode(&[
            (10, 0x4142),
            (19, 0x5900),
            (75, 30),
            (76, 0x30e),
            (77, 0x40),
            (78, 8),
            (79, 8),
            (84, 0x4160),
            (85, 0x20),
            (87, 0x4100),
            (103, 0x0),
            (102, 0x12),
            (106, 0x7003),
            (117, 0x800),
            (108, 0x5001),
            (111, 0xabcd),
            (169, 1),
            (209, 0x4001),
            (217, 7200),
        ])
        .unwrap();
        assert_eq!(&id.serial[..2], b"AB");
        assert_eq!(id.serial[18..], [b'Y', b' ']);
        assert_eq!(id.depth, Some(31));
        assert_eq!((id.block_shift, id.physical_shift), (12, 15));
        assert_eq!(id.blocks, 0x12_0000_1000);
        assert_eq!(id.wwn, Some(0x5001_0000_0000_abcd));
        assert!(id.write_cache && id.fua && id.trim && id.rotational && id.logs && id.dipm);
        assert!(id.sends_queued && id.hipm && id.has_dipm);
        let unit = id.unit(3);
        assert_eq!(unit.discard.unwrap().granularity, 8);
        assert_eq!(unit.topology.alignment_offset, 7);
        assert!(unit.fua && unit.write_cache);
    }

    #[test]
    fn drives_that_are_not_served_are_told_why() {
        let cases: [(&[(usize, u16)], &str); 8] = [
            (&[(0, 0x8000)], "no ATA disk"),
            (&[(83, 0x6000)], "28-bit"),
            (&[(83, 0xa400)], "28-bit"),
            (&[(49, 0x200)], "no DMA"),
            (&[(128, 7)], "locked"),
            (&[(83, 0x4400)], "flushed"),
            (&[(106, 0x5000), (117, 0x104)], "512 nor 4096"),
            (&[(100, 0)], "capacity"),
        ];
        for (words, why) in cases {
            let said = decode(words).unwrap_err();
            assert!(said.contains(why), "{said}, {why}");
        }
        // A password that is set, and was given.
        assert!(decode(&[(128, 3)]).is_ok());
    }

    #[test]
    fn a_wrong_check_sum_is_found_out() {
        let mut good = sector(&[(255, 0xa5)]);
        let sum = good.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        good[511] = 0u8.wrapping_sub(sum);
        assert!(DriveId::decode(&good).is_ok());
        good[200] ^= 1;
        assert_eq!(DriveId::decode(&good), Err(Error::Malformed));
    }

    #[test]
    fn log_13h() {
        let says = |bytes: [u8; 5]| {
            let mut sector = [0; SECTOR_BYTES];
            sector[..5].copy_from_slice(&bytes);
            has_queued_trim(&sector)
        };
        assert!(says([1, 0, 0, 0, 1]));
        assert!(!says([1, 0, 0, 0, 0]));
        assert!(!says([0, 0, 0, 0, 1]));
    }

    proptest::proptest! {
        /// Whatever a device writes, decoding it is no panic, and what is served keeps to the
        /// bounds.
        #[test]
        fn any_sector_is_decoded(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, SECTOR_BYTES),
        ) {
            let mut sector: [u8; SECTOR_BYTES] = bytes.try_into().unwrap();
            // Not all refused at the first bit.
            sector[1] &= 0x7f;
            sector[166..168].copy_from_slice(&0x6400u16.to_le_bytes());
            if let Ok(Ok(id)) = DriveId::decode(&sector) {
                let unit = id.unit(0);
                assert!(unit.physical_shift >= unit.block_shift);
                assert!(unit.blocks != 0 && unit.blocks <= 1 << 48);
                assert!(id.depth.is_none_or(|depth| (1..=32).contains(&depth)));
            }
        }
    }
}
