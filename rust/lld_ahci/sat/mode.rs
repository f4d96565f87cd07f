// SPDX-License-Identifier: GPL-2.0
//! MODE SENSE (SPC-5 section 7.5, SAT-4 section 10.1): the pages Read-Write Error Recovery, Caching
//! and Control. Nothing of them can be changed this way.

use super::page::Page;
use super::Identity;
use crate::sense::Sense;
use hal::Unit;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// By the command of ten bytes, whose header is longer.
    pub(super) long: bool,
    /// Without the block descriptor (DBD).
    pub(super) bare: bool,
    /// Page control and page code.
    pub(super) page: u8,
    pub(super) subpage: u8,
}

const RECOVERY: u8 = 0x01;
const CACHING: u8 = 0x08;
const CONTROL: u8 = 0x0a;
const ALL: u8 = 0x3f;

/// Page control, bits 7:6.
const CHANGEABLE: u8 = 1;
const SAVED: u8 = 3;

/// In the header: the medium is write-protected; DPO and FUA are known.
const WP: u8 = 1 << 7;
const DPOFUA: u8 = 1 << 4;

#[inline(never)]
pub(super) fn sense(mode: &Mode, unit: &Unit, identity: &Identity) -> Result<Page, Sense> {
    let (control, code) = (mode.page >> 6, mode.page & 0x3f);
    if control == SAVED {
        return Err(Sense::NOT_SAVED);
    }
    let known = matches!(code, RECOVERY | CACHING | CONTROL | ALL);
    let whole = mode.subpage == 0 || (code == ALL && mode.subpage == 0xff);
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
        .filter(|one| code == ALL || code == *one)
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
