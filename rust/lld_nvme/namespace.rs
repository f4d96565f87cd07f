// SPDX-License-Identifier: GPL-2.0
//! What Identify Namespace says (NVM Command Set 1.0 section 4.1.5.1), and what a disk makes of it.

use crate::data::RANGES_MAX;
use crate::identify::{named, NvmLimits, View};
use hal::{Discard, DmaMem, Shape};

/// Identify Namespace (NVM Command Set 1.0 figure 97).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamespaceId {
    /// Size in logical blocks.
    pub(crate) blocks: u64,
    /// Log2 of a logical block's bytes.
    pub(crate) lbads: u8,
    /// Bytes of metadata of each block.
    pub(crate) metadata: u16,
    /// End-to-end protection is on.
    pub(crate) protected: bool,
    pub(crate) write_protected: bool,
    /// More than one controller may have it (NMIC).
    pub(crate) may_be_shared: bool,
    /// Some type of reservation, or that they outlive a loss of power (RESCAP).
    pub(crate) has_reservations: bool,
    /// Blocks, less one, that are best written together; `None`: not said.
    pub(crate) npwg: Option<u16>,
    /// Blocks, less one, that are best deallocated together, and at multiples of which.
    pub(crate) npdg: Option<u16>,
    pub(crate) npda: Option<u16>,
    /// Blocks, less one, that are written best; `None`: not said.
    pub(crate) nows: Option<u16>,
    /// Blocks, less one, written whole at a power failure; 0: not said.
    pub(crate) nawupf: u16,
    /// An atomic write's boundary in blocks, less one; 0: there is none.
    pub(crate) nabspf: u16,
    /// Its first; other than 0, nothing is said about atomic writes.
    pub(crate) nabo: u16,
    /// I/O is best kept within multiples of so many blocks; 0: not said.
    pub(crate) noiob: u16,
    /// Deallocated blocks read as zeroes, and Write Zeroes may deallocate (DLFEAT).
    pub(crate) zeroes_unmap: bool,
    pub(crate) eui64: Option<[u8; 8]>,
    pub(crate) nguid: Option<[u8; 16]>,
}

impl NamespaceId {
    pub(crate) fn decode<D: DmaMem>(at: &View<'_, D>) -> Self {
        let nsfeat = at.u8(24);
        let flbas = at.u8(26);
        // Bits 6:5 extend the index when there are more than 16 formats (NLBAF counts them, less
        // one).
        let high = if at.u8(25) > 15 { (flbas >> 5) & 3 } else { 0 };
        let index = usize::from(flbas & 0xf | (high << 4));
        // 64 formats of 4 bytes end before byte 384.
        let format = at.u32(128usize.wrapping_add(index.wrapping_mul(4)));
        let some = |said: bool, value: u16| said.then_some(value);
        // Bit 4 speaks for five fields, bit 5 (2.1) for all of them but NPDG.
        let (best, npdg) = (nsfeat & 0x30 != 0, nsfeat & 0x10 != 0);
        Self {
            blocks: at.u64(0),
            // CAST: bits 23:16 and 15:0.
            lbads: (format >> 16) as u8,
            metadata: format as u16,
            protected: at.u8(29) & 7 != 0,
            write_protected: at.u8(99) & 1 != 0,
            may_be_shared: at.u8(30) & 1 != 0,
            has_reservations: at.u8(31) != 0,
            npwg: some(best, at.u16(64)),
            npdg: some(npdg, at.u16(68)),
            npda: some(best, at.u16(70)),
            nows: some(best, at.u16(72)).filter(|blocks| *blocks != 0),
            nawupf: some(nsfeat & (1 << 1) != 0, at.u16(36)).unwrap_or(0),
            nabspf: at.u16(44),
            nabo: at.u16(42),
            noiob: at.u16(46),
            zeroes_unmap: at.u8(33) & 0xf == 0x9,
            eui64: named(at.bytes(120)),
            nguid: named(at.bytes(104)),
        }
    }

    /// Log2 of the blocks that are written best: of those said to be, and written whole. What the
    /// controller says of all its namespaces (AWUPF) is not believed, as in tree (Linux 7.3).
    pub(crate) fn physical_shift(&self) -> u8 {
        let whole = match self.nabo {
            0 => self.nawupf,
            _ => 0,
        };
        let blocks = u32::from(self.npwg.unwrap_or(0).min(whole)).saturating_add(1);
        // A power of two, or no statement; 64 KiB is the most a kernel makes of it.
        let shift = match blocks.is_power_of_two() {
            // CAST: at most 16.
            true => blocks.trailing_zeros() as u8,
            false => 0,
        };
        self.lbads.saturating_add(shift).min(16).max(self.lbads)
    }

    /// How I/O is best cut.
    pub(crate) fn shape(&self, stripe: Option<u32>) -> Shape {
        let blocks = |less_one: u16| u32::from(less_one).saturating_add(1);
        let boundary = match self.nabspf {
            blocks if self.nawupf == 0 || blocks == 0 => 0,
            last => blocks(last),
        };
        let stripe = match stripe.unwrap_or(u32::from(self.noiob)) {
            blocks if blocks.is_power_of_two() => blocks,
            _ => 0,
        };
        let atomic = blocks(self.nawupf);
        let fits = |within: u32| within == 0 || atomic <= within;
        let whole = boundary == 0 || boundary.is_power_of_two();
        let said = self.nabo == 0 && whole && fits(boundary) && fits(stripe);
        Shape {
            atomic: if said { atomic } else { 0 },
            atomic_boundary: if said { boundary } else { 0 },
            least: self.npwg.map_or(0, blocks),
            best: self.nows.map_or(0, blocks),
            stripe,
            aligned_at: 0,
            zeroes_unmap: self.zeroes_unmap,
        }
    }

    /// What a discard may be, with lists that have room for `ranges`.
    pub(crate) fn discard(&self, limits: NvmLimits, ranges: u16) -> Discard {
        let grain = self.npdg.max(self.npda);
        Discard {
            max_blocks: match limits.dmrsl {
                0 => u32::MAX,
                most => most,
            },
            max_ranges: match u16::from(limits.dmrl) {
                0 => RANGES_MAX,
                most => most,
            }
            .min(ranges),
            granularity: grain.map_or(1, |blocks| u32::from(blocks).saturating_add(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::identify::BYTES;

    use hal::mock::{MockDma, MockPlatform};
    use hal::Platform;

    /// A structure with these 32-bit words at these places.
    fn structure(words: &[(usize, u32)]) -> MockDma {
        let memory = MockPlatform::new().dma(2 * BYTES).unwrap();
        for (at, word) in words {
            memory.write32(BYTES + at, *word);
        }
        memory
    }

    fn namespace(words: &[(usize, u32)]) -> NamespaceId {
        let memory = structure(words);
        NamespaceId::decode(&View {
            memory: &memory,
            base: BYTES,
        })
    }

    #[test]
    fn the_format_in_use_is_found_among_64() {
        // NLBAF, FLBAS in bytes 25 and 26; formats from byte 128.
        let id = namespace(&[
            (24, (15 << 8) | (0x6f << 16)),
            (128 + 4 * 15, (12 << 16) | 8),
        ]);
        assert_eq!(
            (id.lbads, id.metadata),
            (12, 8),
            "16 formats: 6:5 say nothing"
        );
        let id = namespace(&[(24, (63 << 8) | (0x6f << 16)), (128 + 4 * 63, 9 << 16)]);
        assert_eq!((id.lbads, id.metadata), (9, 0));
    }

    #[test]
    fn physical_blocks_are_powers_of_two_that_are_written_whole() {
        // NSFEAT (byte 24): bit 1 NAWUPF (36), bit 4 NPWG (64); NABO (42); AWUPF of the controller.
        let cases = [
            // nsfeat, nawupf, npwg, nabo, physical shift of 512-byte blocks
            (0x00, 0, 0, 0, 9),
            (0x00, 7, 7, 0, 9),
            (0x02, 7, 0, 0, 9),
            (0x02, 0, 0, 0, 9),
            (0x12, 31, 7, 0, 12),
            (0x12, 7, 31, 0, 12),
            (0x12, 7, 7, 1, 9),
            (0x12, 6, 6, 0, 9),
            (0x12, 0xffff, 0xffff, 0, 16),
        ];
        for (nsfeat, nawupf, npwg, nabo, shift) in cases {
            let id = namespace(&[
                (24, nsfeat),
                (36, nawupf),
                (40, nabo << 16),
                (64, npwg),
                (128, 9 << 16),
            ]);
            assert_eq!(id.physical_shift(), shift, "{id:?}");
        }
    }

    #[test]
    fn a_discard_has_the_grain_and_the_length_that_are_said() {
        let mut limits = NvmLimits::default();
        let discard = namespace(&[(68, 7)]).discard(limits, 512);
        assert_eq!((discard.max_blocks, discard.granularity), (u32::MAX, 1));
        assert_eq!(discard.max_ranges, 256, "what a command can say");
        limits.dmrsl = 8;
        limits.dmrl = 200;
        let id = namespace(&[(24, 0x10), (68, 0xffff)]);
        let discard = id.discard(limits, 512);
        assert_eq!((discard.max_blocks, discard.granularity), (8, 0x1_0000));
        assert_eq!(discard.max_ranges, 200);
        assert_eq!(id.discard(limits, 128).max_ranges, 128);
        // NPDA in the upper half, with bit 4 or bit 5.
        let grain = |nsfeat| {
            let id = namespace(&[(24, nsfeat), (68, 0x0007_0003)]);
            id.discard(limits, 512).granularity
        };
        assert_eq!((grain(0x00), grain(0x10), grain(0x20)), (1, 8, 8));
    }

    #[test]
    fn only_atomic_writes_that_the_block_layer_takes_are_told() {
        // NAWUPF (36), NABO (42), NABSPF (44), NOIOB (46), blocks less one; what is told.
        let cases = [
            (0, 0, 0, 0, (1, 0, 0)),
            (7, 0, 0, 0, (8, 0, 0)),
            (7, 0, 7, 0, (8, 8, 0)),
            (7, 0, 31, 16, (8, 32, 16)),
            (7, 1, 0, 0, (0, 0, 0)),
            // A boundary within the write, or that is no power of two; a stripe within it.
            (7, 0, 3, 0, (0, 0, 0)),
            (7, 0, 8, 0, (0, 0, 0)),
            (7, 0, 0, 4, (0, 0, 4)),
            (0, 0, 8, 6, (1, 0, 0)),
            (0xffff, 0, 0xffff, 0, (0x1_0000, 0x1_0000, 0)),
        ];
        for (nawupf, nabo, nabspf, noiob, told) in cases {
            let id = namespace(&[
                (24, 0x02),
                (36, nawupf),
                (40, nabo << 16),
                (44, (noiob << 16) | nabspf),
                (128, 9 << 16),
            ]);
            let shape = id.shape(None);
            let said = (shape.atomic, shape.atomic_boundary, shape.stripe);
            assert_eq!(said, told, "{id:?}");
        }
        let id = namespace(&[(24, 0x12), (32, 0x0900), (64, 7), (72, 63)]);
        let shape = id.shape(None);
        assert_eq!((shape.least, shape.best), (8, 64));
        assert!(shape.zeroes_unmap);
        // Reads as zeroes, but may not; may, but does not read so.
        for dlfeat in [0x01, 0x08, 0x0a] {
            assert!(!namespace(&[(32, dlfeat << 8)]).shape(None).zeroes_unmap);
        }
    }
}
