// SPDX-License-Identifier: GPL-2.0
//! INQUIRY: the standard data (SAT-4 section 8.1.2, SPC-5 section 6.7.2) and the pages of vital
//! product data (SAT-4 section 10.3, SPC-5 section 7.7, SBC-4 section 6.6).
//!
//! UNMAP and WRITE SAME are not to be had by SG_IO, so no page says anything of them.

use super::page::Page;
use super::Identity;
use crate::sense::Sense;
use hal::Unit;

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
const ALL: [u8; 7] = [
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
pub(super) fn standard(unit: &Unit, identity: &Identity) -> Page {
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
pub(super) fn vital(code: u8, unit: &Unit, identity: &Identity) -> Result<Page, Sense> {
    let page = Page::new().put(&[0, code, 0, 0]);
    let page = match code {
        SUPPORTED => page.put(&ALL),
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
