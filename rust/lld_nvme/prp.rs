// SPDX-License-Identifier: GPL-2.0
//! Physical region pages (Base 2.0 section 4.1.1): a command's data as a list of memory pages.
//!
//! PRP 1 is the first byte, which may lie anywhere in its page; every further entry is a whole
//! page. Two entries are in the command, more are in a list to which PRP 2 points.

use crate::lists::List;
use hal::{CmdError, Platform, Segment};

/// Low bits that PRP entries must not have (a dword).
pub(crate) const ALIGN: u64 = 3;

/// Whether `first` alone, which is all of the data, needs no list with pages of `mask + 1` bytes.
#[inline]
pub(crate) fn fits_command(first: Segment, mask: u64) -> bool {
    first.addr & ALIGN == 0
        && (first.addr & mask).wrapping_add(u64::from(first.len)) <= mask.wrapping_add(1) << 1
}

/// PRP 1 and 2 of data for which [`fits_command`] holds. [`CmdError::Invalid`]: it passes the end
/// of all addresses.
#[inline]
pub(crate) fn in_command(first: Segment, mask: u64) -> Result<[u64; 2], CmdError> {
    let in_page = mask.wrapping_add(1).wrapping_sub(first.addr & mask);
    if u64::from(first.len) <= in_page {
        return Ok([first.addr, 0]);
    }
    let second = first.addr.checked_add(in_page).ok_or(CmdError::Invalid)?;
    Ok([first.addr, second])
}

/// PRP 1 and 2 of `bytes` of data, of which `first` is the first segment and `rest` yields the
/// others; with more than two pages the tail goes to `list`.
///
/// [`CmdError::Invalid`]: the segments don't meet at page boundaries, are not `bytes` long, or are
/// more pages than the list holds. [`CmdError::NotReady`]: there is no page for so long a list.
pub(crate) fn build<P: Platform>(
    first: Segment,
    rest: &mut impl Iterator<Item = Result<Segment, CmdError>>,
    bytes: u32,
    mask: u64,
    list: &mut List<'_, P>,
) -> Result<[u64; 2], CmdError> {
    if first.addr & ALIGN != 0 {
        return Err(CmdError::Invalid);
    }
    let page = mask.wrapping_add(1);
    let mut pages = Pages {
        list,
        second: 0,
        count: 0,
    };
    let in_page = page.wrapping_sub(first.addr & mask);
    let mut end = pages.add(first, in_page, page)?;
    let mut left = bytes.checked_sub(first.len).ok_or(CmdError::Invalid)?;
    while left != 0 {
        let segment = rest.next().ok_or(CmdError::Invalid)??;
        // A page in the middle that is not whole can't be said.
        if (segment.addr | end) & mask != 0 {
            return Err(CmdError::Invalid);
        }
        end = pages.add(segment, 0, page)?;
        left = left.checked_sub(segment.len).ok_or(CmdError::Invalid)?;
    }
    Ok([first.addr, pages.second_entry()?])
}

/// The entries after the first, of which a single one goes to the command itself.
struct Pages<'a, 'l, P: Platform> {
    list: &'a mut List<'l, P>,
    second: u64,
    count: usize,
}

impl<P: Platform> Pages<'_, '_, P> {
    /// Adds the pages of `segment` after its first `skip` bytes. Returns the address behind it.
    fn add(&mut self, segment: Segment, skip: u64, page: u64) -> Result<u64, CmdError> {
        let end = (segment.addr)
            .checked_add(u64::from(segment.len))
            .ok_or(CmdError::Invalid)?;
        let mut at = segment.addr.saturating_add(skip);
        while at < end {
            match self.count {
                0 => self.second = at,
                1 => {
                    self.list.write(0, self.second)?;
                    self.list.write(1, at)?;
                }
                n => self.list.write(n, at)?,
            }
            self.count = self.count.wrapping_add(1);
            at = at.saturating_add(page);
        }
        Ok(end)
    }

    fn second_entry(&self) -> Result<u64, CmdError> {
        match self.count {
            0 => Ok(0),
            1 => Ok(self.second),
            _ => self.list.bus(),
        }
    }
}
