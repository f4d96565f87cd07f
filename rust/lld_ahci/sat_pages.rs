// SPDX-License-Identifier: GPL-2.0
//! INQUIRY: the standard data (SAT-4 section 8.1.2, SPC-5 section 6.7.2) and the pages of vital
//! product data (SAT-4 section 10.3, SPC-5 section 7.7, SBC-4 section 6.6).
//!
//! UNMAP and WRITE SAME are not to be had by SG_IO, so no page says anything of them.
//!
//! MODE SENSE (SPC-5 section 7.5, SAT-4 section 10.1): the pages Read-Write Error Recovery, Caching
//! and Control. Nothing of them can be changed this way.
//!
//! Data that a SCSI command is answered with, built from its beginning.

use hal::Unit;

use crate::sat::{Identity, Sense};

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
pub(crate) fn standard(unit: &Unit, identity: &Identity) -> Page {
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
    // SPC-3; this response format; so many bytes follow; command queuing.
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
pub(crate) fn vital(code: u8, unit: &Unit, identity: &Identity) -> Result<Page, Sense> {
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

/// Who translates, the drive's signature as its first FIS has it, and what it says of itself.
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

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// By the command of ten bytes, whose header is longer.
    pub(crate) long: bool,
    /// Without the block descriptor (DBD).
    pub(crate) bare: bool,
    /// Page control and page code.
    pub(crate) page: u8,
    pub(crate) subpage: u8,
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

#[inline(never)]
pub(crate) fn sense(mode: &Mode, unit: &Unit, identity: &Identity) -> Result<Page, Sense> {
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

/// The longest: the page ATA Information.
const MOST: usize = 572;

/// The data. What is put beyond its end is dropped.
#[derive(Clone, Debug)]
pub struct Page {
    bytes: [u8; MOST],
    len: usize,
}

impl Page {
    pub(crate) fn new() -> Self {
        Self {
            bytes: [0; MOST],
            len: 0,
        }
    }

    /// `bytes` follow.
    pub(crate) fn put(mut self, bytes: &[u8]) -> Self {
        let rest = self.bytes.get_mut(self.len..).unwrap_or_default();
        rest.iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = *from);
        self.len = self.len.saturating_add(bytes.len()).min(MOST);
        self
    }

    /// Zeroes follow, up to a length of `len`.
    pub(crate) fn zero_to(mut self, len: usize) -> Self {
        self.len = self.len.max(len).min(MOST);
        self
    }

    /// The big-endian word of `N` bytes at `at` says how many bytes follow it and the `beyond`
    /// bytes after it.
    pub(crate) fn count<const N: usize>(mut self, at: usize, beyond: usize) -> Self {
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
