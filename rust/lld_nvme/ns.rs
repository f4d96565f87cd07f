// SPDX-License-Identifier: GPL-2.0
//! Namespaces as disks: which are active (Identify with CNS 02h), what each is (CNS 00h, 03h), and
//! which this driver serves (Base 2.0 section 5.17, NVM Command Set 1.0 section 4.1.5).
//!
//! What Identify returns is decoded field by field from memory that the device wrote, and each
//! field is read once. NSIDs ascend and are bounded, so the walk over them ends whatever the device
//! lists.

use cell::sync::Ordering;
use core::ops::RangeInclusive;
use hal::{Discard, DmaMem, Error, Mmio, Platform, Refused, Topology, Unit, UnitIds, UnitKind};

use crate::admin::{AdminStep, Cns, IDENTIFY_BYTES};
use crate::ctrl::{About, NvmeController, Structure};
use crate::quirks::Quirks;
use crate::regs::VS;
use crate::sqe::{BLOCKS_MAX, RANGES_MAX};
use crate::{admin, regs};

/// Most namespaces of an active list.
const LIST_LEN: usize = IDENTIFY_BYTES / 4;
/// Most namespaces that are named; a device that lists more is not believed.
const UNITS_MAX: usize = 1024;
/// [`VS`] of the version that brought the active list, the descriptors, the limits by command set.
const VERSION_1_1: u32 = 0x0001_0100;
const VERSION_1_3: u32 = 0x0001_0300;
const VERSION_2_0: u32 = 0x0002_0000;
/// Why a shared namespace is not served: each of its controllers has a disk of it, so a file system
/// may be mounted twice. There is nothing here that makes one disk of them (multipath).
const SHARED: &str =
    "other controllers or ports may write it, too: load hiops with nvme_shared=1 to have it";
/// Log2 of the block sizes that are served, as far as the kernel can have them.
const BLOCK_SHIFTS: RangeInclusive<u8> = 9..=16;

/// Where the next NSIDs are.
#[derive(Clone, Copy)]
enum Listed {
    /// In the first page.
    Here,
    /// Nowhere: all up to this one are tried.
    UpTo(u32),
}

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
    write_protected: bool,
    /// More than one controller may have it (NMIC).
    may_be_shared: bool,
    /// Some type of reservation, or that they outlive a loss of power (RESCAP).
    pub(crate) has_reservations: bool,
    /// Blocks, less one, that are best written together; `None`: not said.
    npwg: Option<u16>,
    /// Blocks, less one, that are best deallocated together, and at multiples of which.
    npdg: Option<u16>,
    npda: Option<u16>,
    /// Blocks, less one, that are written best; `None`: not said.
    nows: Option<u16>,
    /// Blocks, less one, written whole at a power failure; 0: not said.
    nawupf: u16,
    /// An atomic write's boundary in blocks, less one; 0: there is none.
    nabspf: u16,
    /// Its first; other than 0, nothing is said about atomic writes.
    nabo: u16,
    /// I/O is best kept within multiples of so many blocks; 0: not said.
    noiob: u16,
    /// Deallocated blocks read as zeroes, and Write Zeroes may deallocate (DLFEAT).
    zeroes_unmap: bool,
    eui64: Option<[u8; 8]>,
    nguid: Option<[u8; 16]>,
}

/// What the Namespace Identification Descriptors say (Base 2.0 figure 282).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Descriptors {
    ids: UnitIds,
    /// Command Set Identifier; 0 is NVM.
    command_set: u8,
}

/// Limits of commands without data (Identify I/O Command Set specific Controller, NVM: figure 118);
/// 0: not said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct NvmLimits {
    /// Most ranges of a Dataset Management.
    dmrl: u8,
    /// Most blocks of one Dataset Management range.
    dmrsl: u32,
    /// Most data of a Write Zeroes, log2 of smallest pages.
    wzsl: u8,
}

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// Whether a namespace that other controllers or ports of its subsystem may write, too, is a
    /// disk; it is refused unless this says so. For [`hal::Controller::units`]; any context.
    pub fn serve_shared(&self, shared: bool) {
        self.shared.store(shared, Ordering::Relaxed);
    }

    /// Names every active namespace to `found`.
    pub(crate) fn each_unit(
        &self,
        about: &About,
        found: &mut dyn FnMut(Result<Unit, Refused>),
    ) -> Result<(), Error> {
        let version = self.quirk_set().version(regs::read(&self.mmio, VS)?);
        let limits = self.nvm_limits(version)?;
        let mut last = 0u32;
        let mut named = 0usize;
        while named < UNITS_MAX {
            let Some(listed) = self.active_after(last, version, about)? else {
                return Ok(());
            };
            for at in 0..LIST_LEN.min(UNITS_MAX.saturating_sub(named)) {
                let nsid = match listed {
                    Listed::Here => self.pages.read32(at.wrapping_mul(4)),
                    // Without a list every number may be one.
                    Listed::UpTo(end) => match last.checked_add(1) {
                        Some(next) if next <= end => next,
                        _ => 0,
                    },
                };
                if nsid == 0 {
                    return Ok(());
                }
                // Ascending, so the walk ends; and within what Identify Controller said.
                if nsid <= last || nsid > about.id.namespaces {
                    return Err(Error::Malformed);
                }
                last = nsid;
                named = named.wrapping_add(1);
                if let Some(unit) = self.unit(nsid, version, about, limits)? {
                    found(unit);
                }
            }
        }
        Ok(())
    }

    /// Limits of commands without data; a device that has none refuses the question.
    fn nvm_limits(&self, version: u32) -> Result<NvmLimits, Error> {
        if version < VERSION_2_0 && !self.cap.has_command_sets() {
            return Ok(NvmLimits::default());
        }
        match self.identify(AdminStep::NvmLimits, Cns::CommandSetController, 0) {
            Ok(view) => Ok(NvmLimits::decode(&view)),
            Err(Error::Refused(_)) => Ok(NvmLimits::default()),
            Err(why) => Err(why),
        }
    }

    /// The list of active namespaces above `nsid`, in the first page. `None`: there is none above.
    fn active_after(
        &self,
        nsid: u32,
        version: u32,
        about: &About,
    ) -> Result<Option<Listed>, Error> {
        if version < VERSION_1_1 {
            return Ok(Some(Listed::UpTo(about.id.namespaces)));
        }
        // 0xfffffffe and above are no NSIDs to list from.
        if nsid >= u32::MAX - 1 {
            return Ok(None);
        }
        let to = self.pages.bus_addr();
        let list = admin::identify(Cns::ActiveNamespaces, nsid, to);
        self.command(AdminStep::ActiveNamespaces, list)?;
        Ok(Some(Listed::Here))
    }

    /// What namespace `nsid` is. `None`: it is not there after all.
    fn unit(
        &self,
        nsid: u32,
        version: u32,
        about: &About,
        limits: NvmLimits,
    ) -> Result<Option<Result<Unit, Refused>>, Error> {
        let view = match self.identify(AdminStep::IdentifyNamespace, Cns::Namespace, nsid) {
            Ok(view) => view,
            Err(Error::Refused(_)) => {
                let why = "Identify Namespace failed";
                return Ok(Some(Err(Refused { id: nsid, why })));
            }
            Err(why) => return Err(why),
        };
        let id = NamespaceId::decode(&view);
        if id.blocks == 0 {
            return Ok(None);
        }
        let said = self.descriptors(nsid, version)?;
        // Some drives say of each namespace that it may be shared, and are alone: then it is not.
        let shared = id.may_be_shared && about.id.has_siblings;
        let why = refusal(&id, &said)
            .or_else(|| (shared && !self.shared.load(Ordering::Relaxed)).then_some(SHARED));
        Ok(Some(match why {
            Some(why) => Err(Refused { id: nsid, why }),
            None => Ok(self.describe(nsid, about, limits, &id, said.ids)),
        }))
    }

    /// The identification descriptors; none where the device has none.
    fn descriptors(&self, nsid: u32, version: u32) -> Result<Descriptors, Error> {
        let said = version >= VERSION_1_3 || self.cap.has_command_sets();
        if !said || self.quirk_set().has(Quirks::NO_NS_DESC_LIST) {
            return Ok(Descriptors::default());
        }
        match self.identify(
            AdminStep::NamespaceDescriptors,
            Cns::NamespaceDescriptors,
            nsid,
        ) {
            Ok(view) => Ok(Descriptors::decode(&view)),
            Err(Error::Refused(_)) => Ok(Descriptors::default()),
            Err(why) => Err(why),
        }
    }

    /// Namespace `nsid`, which is `id` and has these names, as a disk.
    fn describe(
        &self,
        nsid: u32,
        about: &About,
        limits: NvmLimits,
        id: &NamespaceId,
        named: UnitIds,
    ) -> Unit {
        let controller = &about.id;
        let quirks = self.quirk_set();
        let discard = controller
            .has_discard
            .then(|| id.discard(limits, about.layout.max_ranges()));
        let ids = UnitIds {
            eui64: named.eui64.or(id.eui64),
            nguid: named.nguid.or(id.nguid),
            uuid: named.uuid,
            wwn: None,
        };
        // Some are slow across multiples of their largest transfer, and don't say so.
        let stripe = (quirks.has(Quirks::STRIPE_SIZE))
            .then(|| {
                about
                    .limits
                    .max_transfer
                    .checked_shr(u32::from(id.lbads))
                    .unwrap_or(0)
            })
            .filter(|blocks| blocks.is_power_of_two());
        Unit {
            kind: UnitKind::Namespace {
                vendor: controller.vendor,
            },
            id: nsid,
            block_shift: id.lbads,
            physical_shift: id.physical_shift(),
            blocks: id.blocks,
            write_cache: controller.write_cache,
            fua: controller.write_cache,
            discard,
            max_write_zeroes: self.max_write_zeroes(about, limits, id, discard),
            topology: id.topology(stripe),
            read_only: id.write_protected,
            rotational: false,
            ids: match quirks.has(Quirks::BOGUS_NID) {
                true => UnitIds::default(),
                false => ids,
            },
            serial: controller.serial,
            model: controller.model,
            firmware: controller.firmware,
        }
    }

    /// Most blocks of a command that writes zeroes to the namespace `id`, whose discards are
    /// `discard`; 0: there is no such command.
    fn max_write_zeroes(
        &self,
        about: &About,
        limits: NvmLimits,
        id: &NamespaceId,
        discard: Option<Discard>,
    ) -> u32 {
        // Without a limit of its own, Write Zeroes keeps to that of a transfer: some devices apply
        // it.
        let zeroes = match limits.wzsl {
            0 => u64::from(about.limits.max_transfer),
            pages => u32::from(pages)
                .checked_add(u32::from(self.cap.page_shift_min()))
                .and_then(|shift| 1u64.checked_shl(shift))
                .unwrap_or(u64::MAX),
        };
        let zeroes = zeroes
            .checked_shr(u32::from(id.lbads))
            .unwrap_or(0)
            .min(u64::from(BLOCKS_MAX));
        let quirks = self.quirk_set();
        match discard.filter(|_| about.layout.zeroes_by_discard) {
            Some(discard) => discard.max_blocks,
            None if quirks.has(Quirks::DISABLE_WRITE_ZEROES) => 0,
            // CAST: at most 65,536.
            None if about.id.has_write_zeroes => zeroes as u32,
            None => 0,
        }
    }
}

/// Why a namespace is not served.
fn refusal(id: &NamespaceId, said: &Descriptors) -> Option<&'static str> {
    let most = |shift: u8| (i64::MAX as u64).checked_shr(u32::from(shift));
    if said.command_set != 0 {
        Some("its command set is not NVM (zoned or key value)")
    } else if id.metadata != 0 {
        Some("its format has metadata")
    } else if id.protected {
        Some("its format has protection information")
    } else if !BLOCK_SHIFTS.contains(&id.lbads) {
        Some("its logical blocks are smaller than 512 bytes or larger than 64 KiB")
    } else if most(id.lbads).is_none_or(|most| id.blocks > most) {
        Some("its capacity is impossible")
    } else {
        None
    }
}

impl NamespaceId {
    pub(crate) fn decode<D: DmaMem>(at: &Structure<'_, D>) -> Self {
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
    fn physical_shift(&self) -> u8 {
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
    fn topology(&self, stripe: Option<u32>) -> Topology {
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
        Topology {
            atomic_write_max: if said { atomic } else { 0 },
            atomic_write_boundary: if said { boundary } else { 0 },
            io_min: self.npwg.map_or(0, blocks),
            io_opt: self.nows.map_or(0, blocks),
            chunk: stripe,
            alignment_offset: 0,
            zeroes_unmap: self.zeroes_unmap,
        }
    }

    /// What a discard may be, with lists that have room for `ranges`.
    fn discard(&self, limits: NvmLimits, ranges: u16) -> Discard {
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

impl Descriptors {
    /// Walks the list: each descriptor is type, length, two reserved bytes, then its value; length
    /// 0 ends it.
    fn decode<D: DmaMem>(at: &Structure<'_, D>) -> Self {
        let mut found = Self::default();
        let mut place = 0usize;
        while place <= IDENTIFY_BYTES - 4 {
            let (kind, length) = (at.u8(place), usize::from(at.u8(place.wrapping_add(1))));
            let value = place.wrapping_add(4);
            let next = value.wrapping_add(length);
            if length == 0 || next > IDENTIFY_BYTES {
                break;
            }
            match (kind, length) {
                (1, 8) => found.ids.eui64 = named(at.bytes(value)),
                (2, 16) => found.ids.nguid = named(at.bytes(value)),
                (3, 16) => found.ids.uuid = named(at.bytes(value)),
                (4, 1) => found.command_set = at.u8(value),
                _ => {}
            }
            place = next;
        }
        found
    }
}

impl NvmLimits {
    fn decode<D: DmaMem>(at: &Structure<'_, D>) -> Self {
        Self {
            wzsl: at.u8(1),
            dmrl: at.u8(3),
            dmrsl: at.u32(4),
        }
    }
}

/// An identifier, unless it is all zeroes, which means that there is none.
fn named<const N: usize>(id: [u8; N]) -> Option<[u8; N]> {
    (id != [0; N]).then_some(id)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    use hal::mock::{MockDma, MockPlatform};
    use hal::Platform;

    /// A structure with these 32-bit words at these places.
    fn structure(words: &[(usize, u32)]) -> MockDma {
        let memory = MockPlatform::new().dma(2 * IDENTIFY_BYTES).unwrap();
        for (at, word) in words {
            memory.write32(IDENTIFY_BYTES + at, *word);
        }
        memory
    }

    #[test]
    fn descriptors_end_where_the_structure_does() {
        let decode = |words: &[(usize, u32)]| {
            let memory = structure(words);
            Descriptors::decode(&Structure {
                memory: &memory,
                base: IDENTIFY_BYTES,
            })
        };
        assert_eq!(decode(&[]), Descriptors::default());
        // EUI-64 of wrong length, then a command set.
        let found = decode(&[(0, (4 << 8) | 1), (4, 7), (8, (1 << 8) | 4), (12, 2)]);
        assert_eq!((found.ids.eui64, found.command_set), (None, 2));
        // A value that would reach beyond.
        let mut words: Vec<(usize, u32)> = Vec::new();
        words.extend((0..15).map(|n| (n * 256, (252 << 8) | 9)));
        words.push((15 * 256, (248 << 8) | 9));
        words.push((4092, (1 << 8) | 4));
        assert_eq!(decode(&words).command_set, 0);
    }

    fn namespace(words: &[(usize, u32)]) -> NamespaceId {
        let memory = structure(words);
        NamespaceId::decode(&Structure {
            memory: &memory,
            base: IDENTIFY_BYTES,
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
            let topology = id.topology(None);
            let said = (
                topology.atomic_write_max,
                topology.atomic_write_boundary,
                topology.chunk,
            );
            assert_eq!(said, told, "{id:?}");
        }
        let id = namespace(&[(24, 0x12), (32, 0x0900), (64, 7), (72, 63)]);
        let topology = id.topology(None);
        assert_eq!((topology.io_min, topology.io_opt), (8, 64));
        assert!(topology.zeroes_unmap);
        // Reads as zeroes, but may not; may, but does not read so.
        for dlfeat in [0x01, 0x08, 0x0a] {
            assert!(!namespace(&[(32, dlfeat << 8)]).topology(None).zeroes_unmap);
        }
    }
}
