// SPDX-License-Identifier: GPL-2.0
//! Answers to SCSI commands, from what is known of a drive and what it says itself.
//!
//! * INQUIRY: the standard data (SAT-4 section 8.1.2, SPC-5 section 6.7.2) and the pages of vital
//!   product data (SAT-4 section 10.3, SPC-5 section 7.7, SBC-4 section 6.6). UNMAP and WRITE SAME
//!   are not to be had by SG_IO, so no page says anything of them.
//! * MODE SENSE (SPC-5 section 7.5, SAT-4 section 10.1): the pages Read-Write Error Recovery,
//!   Caching and Control. Nothing of them can be changed this way.
//! * READ CAPACITY (SBC-4 sections 5.15, 5.16), REPORT LUNS, REQUEST SENSE.

use hal::Unit;

use crate::sat::{Mode, Query, Sense};

/// The data of IDENTIFY DEVICE.
pub struct Identity([u8; 512]);

impl Identity {
    /// As the drive sent it.
    pub const fn new(sector: [u8; 512]) -> Self {
        Self(sector)
    }

    fn word(&self, at: usize) -> u16 {
        let word = self.0.chunks_exact(2).nth(at);
        let word = word.and_then(|word| word.first_chunk::<2>());
        word.copied().map_or(0, u16::from_le_bytes)
    }

    fn bit(&self, at: usize, bit: u32) -> bool {
        self.word(at)
            .checked_shr(bit)
            .is_some_and(|word| word & 1 != 0)
    }

    fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Query {
    /// The answer, by what is known of the drive and what it says itself.
    pub fn answer(&self, unit: &Unit, identity: &Identity) -> Result<Page, Sense> {
        match self {
            Self::Inquiry(None) => Ok(standard(unit, identity)),
            Self::Inquiry(Some(page)) => vital(*page, unit, identity),
            Self::Capacity => Ok(capacity(unit)),
            Self::Capacity16 => Ok(long_capacity(unit)),
            Self::Mode(mode) => mode_sense(mode, unit, identity),
            Self::Luns => Ok(luns()),
            Self::Sense(true) => Ok(sense_descriptors()),
            Self::Sense(false) => Ok(fixed_sense()),
        }
    }
}

// None of these is inlined: a page has hundreds of bytes, and all of theirs would be on the stack
// whichever is wanted.

const VENDOR: &[u8] = b"ATA     ";
const TRANSLATOR: &[u8] = b"hiops   hiops           7.2 ";

/// The pages.
const SUPPORTED: u8 = 0x00;
const SERIAL: u8 = 0x80;
const IDENTIFICATION: u8 = 0x83;
const ATA_INFORMATION: u8 = 0x89;
const LIMITS: u8 = 0xb0;
const CHARACTERISTICS: u8 = 0xb1;
const PROVISIONING: u8 = 0xb2;
const ALL_PAGES: [u8; 7] = [
    SUPPORTED,
    SERIAL,
    IDENTIFICATION,
    ATA_INFORMATION,
    LIMITS,
    CHARACTERISTICS,
    PROVISIONING,
];

/// Bytes of the pages of the block commands' standard but the last.
const BLOCK_PAGE: usize = 64;

/// Where the standard data names the standards that it keeps: SAM-3, SBC-2 and SPC-3, as libata
/// does; and its end.
const VERSIONS_AT: usize = 58;
const VERSIONS: [u8; 6] = [0x00, 0x60, 0x03, 0x20, 0x03, 0x00];
const STANDARD_BYTES: usize = 96;
/// In its second byte: the medium can be removed.
const RMB: u8 = 1 << 7;

/// The standard data.
#[inline(never)]
fn standard(unit: &Unit, identity: &Identity) -> Page {
    // The last four characters of the revision say most of it, where there are any.
    let (first, last) = unit.firmware.split_at(4);
    let revision = match last == b"    " {
        true => first,
        false => last,
    };
    let revision = match revision {
        [0 | b' ', ..] => b"n/a ",
        said => said,
    };
    let (model, _) = unit.model.split_at(16);
    let removable = match identity.bit(0, 7) {
        true => RMB,
        false => 0,
    };
    // SPC-3; this response format; how many bytes follow; command queuing.
    Page::new()
        .put(&[0, removable, 5, 2, 0, 0, 0, 2])
        .put(VENDOR)
        .put(model)
        .put(revision)
        .zero_to(VERSIONS_AT)
        .put(&VERSIONS)
        .zero_to(STANDARD_BYTES)
        .count::<1>(4, 0)
}

/// The page `code` of vital product data.
#[inline(never)]
fn vital(code: u8, unit: &Unit, identity: &Identity) -> Result<Page, Sense> {
    let page = Page::new().put(&[0, code, 0, 0]);
    let page = match code {
        SUPPORTED => page.put(&ALL_PAGES),
        SERIAL => page.put(&unit.serial),
        IDENTIFICATION => names(page, unit),
        ATA_INFORMATION => information(page, identity),
        LIMITS => {
            let exponent = unit.physical_shift.saturating_sub(unit.block_shift);
            let granularity = 1u16.checked_shl(exponent.into()).unwrap_or(0);
            page.put(&[0, 0])
                .put(&granularity.to_be_bytes())
                .zero_to(BLOCK_PAGE)
        }
        CHARACTERISTICS => {
            let rate = identity.word(217).to_be_bytes();
            // CAST: the lowest four bits, the nominal form factor.
            let form = (identity.word(168) & 0xf) as u8;
            page.put(&rate).put(&[0, form]).zero_to(BLOCK_PAGE)
        }
        PROVISIONING => page.zero_to(8),
        _ => return Err(Sense::INVALID_FIELD),
    };
    Ok(page.count::<2>(2, 0))
}

/// Designators: a vendor's own of the serial number, one by the T10 vendor, the world-wide name.
fn names(page: Page, unit: &Unit) -> Page {
    const ASCII: u8 = 2;
    const BINARY: u8 = 1;
    let page = page.put(&[ASCII, 0, 0, 20]).put(&unit.serial);
    let page = page
        .put(&[ASCII, 1, 0, 68])
        .put(VENDOR)
        .put(&unit.model)
        .put(&unit.serial);
    match unit.ids.wwn {
        Some(wwn) => page.put(&[BINARY, 3, 0, 8]).put(&wwn.to_be_bytes()),
        None => page,
    }
}

/// What translates, the drive's signature as its first FIS has it, and what it says of itself.
fn information(page: Page, identity: &Identity) -> Page {
    const REGISTER_FIS: u8 = 0x34;
    const READY: u8 = 0x40;
    const IDENTIFY_DEVICE: u8 = 0xec;
    page.zero_to(8)
        .put(TRANSLATOR)
        .put(&[REGISTER_FIS, 0, READY, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1])
        .zero_to(56)
        .put(&[IDENTIFY_DEVICE, 0, 0, 0])
        .put(identity.as_bytes())
}

const RECOVERY: u8 = 0x01;
const CACHING: u8 = 0x08;
const CONTROL: u8 = 0x0a;
const ALL_MODES: u8 = 0x3f;

/// Page control, bits 7:6.
const CHANGEABLE: u8 = 1;
const SAVED: u8 = 3;

/// In the header: the medium is write-protected; DPO and FUA are known.
const WP: u8 = 1 << 7;
const DPOFUA: u8 = 1 << 4;

/// The pages that `mode` asks for, behind their header.
#[inline(never)]
fn mode_sense(mode: &Mode, unit: &Unit, identity: &Identity) -> Result<Page, Sense> {
    let (control, code) = (mode.page >> 6, mode.page & 0x3f);
    if control == SAVED {
        return Err(Sense::NOT_SAVED);
    }
    let known = matches!(code, RECOVERY | CACHING | CONTROL | ALL_MODES);
    let whole = mode.subpage == 0 || (code == ALL_MODES && mode.subpage == 0xff);
    if !known || !whole {
        return Err(Sense::INVALID_FIELD);
    }
    let flag = |on: bool, bit: u8| if on { bit } else { 0 };
    let medium = flag(unit.read_only, WP) | flag(unit.fua, DPOFUA);
    let descriptor = if mode.bare { 0 } else { 8 };
    let page = match mode.long {
        true => Page::new().put(&[0, 0, 0, medium, 0, 0, 0, descriptor]),
        false => Page::new().put(&[0, 0, medium, descriptor]),
    };
    let page = match mode.bare {
        true => page,
        false => {
            let blocks = u32::try_from(unit.blocks).unwrap_or(u32::MAX);
            let size = 1u32.wrapping_shl(unit.block_shift.into());
            page.put(&blocks.to_be_bytes()).put(&size.to_be_bytes())
        }
    };
    let page = [RECOVERY, CACHING, CONTROL]
        .into_iter()
        .filter(|one| code == ALL_MODES || code == *one)
        .fold(page, |page, one| {
            append(page, one, control == CHANGEABLE, identity)
        });
    Ok(match mode.long {
        true => page.count::<2>(0, 0),
        false => page.count::<1>(0, 0),
    })
}

/// Page `code` with its values as they are, or with none that can be changed.
fn append(page: Page, code: u8, changeable: bool, identity: &Identity) -> Page {
    let mut values = [0u8; 18];
    let len = if code == CACHING { 18 } else { 10 };
    let flag = |on: bool, bit: u8| if on { bit } else { 0 };
    if !changeable {
        match code {
            // AWRE.
            RECOVERY => values[0] = 1 << 7,
            // WCE and DRA, of word 85: write cache and read look-ahead are on.
            CACHING => {
                values[0] = flag(identity.bit(85, 5), 1 << 2);
                values[10] = flag(!identity.bit(85, 6), 1 << 5);
            }
            // D_SENSE: sense data is in descriptors; GLTSD: no parameters of logs are saved.
            // Queued commands come in any order, and nobody says how long it is busy.
            _ => {
                values[0] = (1 << 2) | (1 << 1);
                values[1] = 1 << 4;
                values[6] = 0xff;
                values[7] = 0xff;
            }
        }
    }
    let (values, _) = values.split_at(len);
    // CAST: a small number.
    page.put(&[code, len as u8]).put(values)
}

/// The last block, or all ones where the number does not fit, and the size of one (SBC-4 5.15).
#[inline(never)]
fn capacity(unit: &Unit) -> Page {
    let last = u32::try_from(last(unit)).unwrap_or(u32::MAX);
    Page::new().put(&last.to_be_bytes()).put(&block(unit))
}

/// The last block and the size of a block, in 64 bits; physical blocks and where they begin;
/// whether blocks can be given back (SBC-4 5.16).
#[inline(never)]
fn long_capacity(unit: &Unit) -> Page {
    const LBPME: u16 = 1 << 15;
    const LBPRZ: u16 = 1 << 14;
    let exponent = unit.physical_shift.saturating_sub(unit.block_shift) & 0xf;
    // CAST: fourteen bits.
    let aligned = (unit.topology.alignment_offset & 0x3fff) as u16;
    let gives_back = match (unit.discard, unit.topology.zeroes_unmap) {
        (None, _) => 0,
        (Some(_), false) => LBPME,
        (Some(_), true) => LBPME | LBPRZ,
    };
    Page::new()
        .put(&last(unit).to_be_bytes())
        .put(&block(unit))
        .put(&[0, exponent])
        .put(&(aligned | gives_back).to_be_bytes())
        .zero_to(32)
}

fn last(unit: &Unit) -> u64 {
    unit.blocks.saturating_sub(1)
}

fn block(unit: &Unit) -> [u8; 4] {
    1u32.wrapping_shl(unit.block_shift.into()).to_be_bytes()
}

/// A list of eight bytes: the one unit, which is 0.
#[inline(never)]
fn luns() -> Page {
    Page::new().put(&[0, 0, 0, 8]).zero_to(16)
}

/// Whatever there was to be said was said with the command that it was about.
#[inline(never)]
fn sense_descriptors() -> Page {
    Page::new().put(&[0x72]).zero_to(8)
}

/// The same in fixed format (SPC-4 4.5.3).
#[inline(never)]
fn fixed_sense() -> Page {
    Page::new().put(&[0x70]).zero_to(18).count::<1>(7, 0)
}

/// The longest: the page ATA Information.
const MOST: usize = 572;

/// The data. What is put beyond its end is dropped.
#[derive(Clone, Debug)]
pub struct Page {
    bytes: [u8; MOST],
    len: usize,
}

impl Page {
    fn new() -> Self {
        Self {
            bytes: [0; MOST],
            len: 0,
        }
    }

    /// `bytes` follow.
    fn put(mut self, bytes: &[u8]) -> Self {
        let rest = self.bytes.get_mut(self.len..).unwrap_or_default();
        rest.iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = *from);
        self.len = self.len.saturating_add(bytes.len()).min(MOST);
        self
    }

    /// Zeroes follow, up to a length of `len`.
    fn zero_to(mut self, len: usize) -> Self {
        self.len = self.len.max(len).min(MOST);
        self
    }

    /// The big-endian word of `N` bytes at `at` says how many bytes follow it and the `beyond`
    /// bytes after it.
    fn count<const N: usize>(mut self, at: usize, beyond: usize) -> Self {
        let follow = self
            .len
            .saturating_sub(at.saturating_add(N).saturating_add(beyond));
        let word = (follow as u64).to_be_bytes();
        let (_, low) = word.split_at(word.len().saturating_sub(N));
        let place = self.bytes.get_mut(at..).unwrap_or_default();
        place.iter_mut().zip(low).for_each(|(to, from)| *to = *from);
        self
    }

    /// The first of it, no more than `room` bytes.
    pub fn first(&self, room: u32) -> &[u8] {
        let all = self.bytes.get(..self.len).unwrap_or_default();
        all.get(..room as usize).unwrap_or(all)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    fn unit() -> Unit {
        Unit {
            kind: hal::UnitKind::Drive,
            id: 0,
            block_shift: 9,
            physical_shift: 12,
            blocks: 0x0102_0304,
            write_cache: true,
            fua: true,
            discard: None,
            max_write_zeroes: 0,
            topology: hal::Topology {
                alignment_offset: 1,
                ..hal::Topology::default()
            },
            read_only: false,
            rotational: false,
            ids: hal::UnitIds {
                wwn: Some(0x5000_c500_1234_5678),
                ..hal::UnitIds::default()
            },
            serial: *b"SERIAL              ",
            model: *b"A DRIVE WITH A LONG NAME                ",
            firmware: *b"2.5+    ",
        }
    }

    /// Write cache and look-ahead on, 7,200 rpm, 3.5 inch.
    fn identity() -> Identity {
        let mut sector = [0; 512];
        for (word, value) in [(85, 0x0060u16), (217, 7200), (168, 0xfff2)] {
            sector[word * 2..][..2].copy_from_slice(&value.to_le_bytes());
        }
        Identity::new(sector)
    }

    fn bytes(ask: Query) -> std::vec::Vec<u8> {
        ask.answer(&unit(), &identity()).unwrap().first(4096).into()
    }

    fn vital(page: u8) -> std::vec::Vec<u8> {
        bytes(Query::Inquiry(Some(page)))
    }

    #[test]
    fn a_drive_says_what_it_is() {
        let page = bytes(Query::Inquiry(None));
        assert_eq!(page[..8], [0, 0, 5, 2, 91, 0, 0, 2]);
        assert_eq!(page[8..36], *b"ATA     A DRIVE WITH A L2.5+");
        assert_eq!(page[36..58], [0; 22]);
        assert_eq!(page[58..64], [0, 0x60, 3, 0x20, 3, 0]);
        assert_eq!(page[64..], [0; 32]);
        for (firmware, revision) in [
            (b"FW 12345", b"2345"),
            (b"2.5+    ", b"2.5+"),
            (b"        ", b"n/a "),
            (b"1.0 \0\0\0\0", b"n/a "),
            (b"FW\xe9\t\"\xe9x ", b"\"\xe9x "),
        ] {
            let other = Unit {
                firmware: *firmware,
                ..unit()
            };
            let page = Query::Inquiry(None).answer(&other, &identity()).unwrap();
            assert_eq!(page.first(36)[32..], *revision, "{firmware:?}");
            assert_eq!(page.first(5).len(), 5);
        }
    }

    /// The bytes of an identity are nobody's to mend: udev makes links of them.
    #[test]
    fn names_are_the_drives_own_bytes() {
        let odd = Unit {
            serial: *b"  \"o\xe9\td,\0$x         ",
            model: *b" /\"M\xe9\t  x                               ",
            ..unit()
        };
        let page = |page| {
            let told = Query::Inquiry(page).answer(&odd, &identity()).unwrap();
            told.first(4096).to_vec()
        };
        assert_eq!(page(None)[16..32], odd.model[..16]);
        assert_eq!(page(Some(0x80))[4..], odd.serial);
        let names = page(Some(0x83));
        assert_eq!(names[8..28], odd.serial);
        assert_eq!(names[40..80], odd.model);
        assert_eq!(names[80..100], odd.serial);
    }

    #[test]
    fn there_is_one_unit() {
        let luns = bytes(Query::Luns);
        assert_eq!(luns, [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn vital_product_data() {
        let all = vital(0x00);
        assert_eq!(all, [0, 0, 0, 7, 0x00, 0x80, 0x83, 0x89, 0xb0, 0xb1, 0xb2]);
        for page in &all[4..] {
            let told = vital(*page);
            assert_eq!(told[1], *page);
            let follow = u16::from_be_bytes([told[2], told[3]]);
            assert_eq!(usize::from(follow) + 4, told.len(), "{page:#x}");
        }
        assert_eq!(vital(0x80)[4..], unit().serial);
        let names = vital(0x83);
        assert_eq!(names[..8], [0, 0x83, 0, 108, 2, 0, 0, 20]);
        assert_eq!(names[28..40], *b"\x02\x01\0\x44ATA     ");
        let wwn = [1, 3, 0, 8, 0x50, 0, 0xc5, 0, 0x12, 0x34, 0x56, 0x78];
        assert_eq!(names[100..], wwn);
        let about = vital(0x89);
        assert_eq!(
            (about.len(), about[36], about[40], about[48], about[56]),
            (572, 0x34, 1, 1, 0xec)
        );
        assert_eq!(about[60..], *identity().as_bytes());
        assert_eq!(vital(0xb0)[..8], [0, 0xb0, 0, 60, 0, 0, 0, 8]);
        assert_eq!(vital(0xb1)[..8], [0, 0xb1, 0, 60, 0x1c, 0x20, 0, 2]);
        assert_eq!(vital(0xb2), [0, 0xb2, 0, 4, 0, 0, 0, 0]);
        let unknown = Query::Inquiry(Some(0x84)).answer(&unit(), &identity());
        assert_eq!(unknown.unwrap_err(), Sense::INVALID_FIELD);
    }

    #[test]
    fn capacity_in_ten_and_in_sixteen_bytes() {
        assert_eq!(bytes(Query::Capacity), [1, 2, 3, 3, 0, 0, 2, 0]);
        let long = bytes(Query::Capacity16);
        assert_eq!(long.len(), 32);
        assert_eq!(long[..16], [0, 0, 0, 0, 1, 2, 3, 3, 0, 0, 2, 0, 0, 3, 0, 1]);
        let lasts = [
            (1 << 32, u32::MAX),
            ((1 << 32) - 1, 0xffff_fffe),
            (1 << 33, u32::MAX),
            (0, 0),
        ];
        for (blocks, last) in lasts {
            let large = Unit {
                blocks,
                discard: Some(hal::Discard {
                    max_blocks: 1,
                    max_ranges: 1,
                    granularity: 1,
                }),
                ..unit()
            };
            let page = Query::Capacity.answer(&large, &identity()).unwrap();
            assert_eq!(page.first(4), last.to_be_bytes(), "{blocks}");
            let page = Query::Capacity16.answer(&large, &identity()).unwrap();
            assert_eq!(page.first(8), blocks.saturating_sub(1).to_be_bytes());
            assert_eq!(page.first(16)[14], 0x80);
        }
    }

    #[test]
    fn mode_pages() {
        let mode = |long, bare, page, subpage| {
            Query::Mode(Mode {
                long,
                bare,
                page,
                subpage,
            })
        };
        let caching = bytes(mode(false, true, 0x08, 0));
        assert_eq!(caching[..8], [23, 0, 0x10, 0, 0x08, 18, 4, 0]);
        assert_eq!((caching.len(), caching[16]), (24, 0));
        let control = bytes(mode(true, true, 0x8a, 0));
        assert_eq!(control[..8], [0, 18, 0, 0x10, 0, 0, 0, 0]);
        assert_eq!(
            control[8..],
            [0x0a, 10, 6, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0, 0]
        );
        let changeable = bytes(mode(true, true, 0x48, 0));
        assert_eq!(changeable[8..10], [0x08, 18]);
        assert!(changeable[10..].iter().all(|byte| *byte == 0));
        let all = bytes(mode(false, false, 0x3f, 0xff));
        assert_eq!(all[..12], [55, 0, 0x10, 8, 1, 2, 3, 4, 0, 0, 2, 0]);
        assert_eq!(
            (all.len(), all[12], all[24], all[44]),
            (56, 0x01, 0x08, 0x0a)
        );
        for (page, subpage, why) in [
            (0xc8, 0, Sense::NOT_SAVED),
            (0x08, 1, Sense::INVALID_FIELD),
            (0x3f, 1, Sense::INVALID_FIELD),
            (0x1c, 0, Sense::INVALID_FIELD),
        ] {
            let told = mode(false, false, page, subpage).answer(&unit(), &identity());
            assert_eq!(told.unwrap_err(), why, "{page:#x} {subpage:#x}");
        }
    }

    #[test]
    fn there_is_nothing_more_to_be_said() {
        assert_eq!(bytes(Query::Sense(true)), [0x72, 0, 0, 0, 0, 0, 0, 0]);
        let fixed = bytes(Query::Sense(false));
        assert_eq!((fixed[0], fixed[7], fixed.len()), (0x70, 10, 18));
        assert!(fixed[1..7].iter().chain(&fixed[8..]).all(|byte| *byte == 0));
    }
}
