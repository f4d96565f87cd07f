// SPDX-License-Identifier: GPL-2.0
//! Where a command's data is: the choice between PRP and SGL.

use crate::lists::List;
use crate::{prp, sgl};
use hal::{CmdError, Platform, Segment};

/// Most bytes of a list, a page: 512 PRP entries or 256 SGL descriptors. With the first page in the
/// command this is 2 MiB of 4 KiB pages at any offset, and as a list never crosses a page, it never
/// needs a chain.
pub(crate) const LIST_MAX: usize = 4096;
/// Least bytes of a list: a Dataset Management range, and two SGL descriptors.
const LIST_MIN: usize = 64;
/// Most ranges of a Dataset Management (NR, less one, is a byte), and bytes of each.
pub(crate) const RANGES_MAX: u16 = 256;
const RANGE_BYTES: usize = 16;

/// How a queue's commands say where their data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The controller's memory page size, less one.
    pub(crate) page_mask: u64,
    /// SGLs are there; their segments begin and end where no bit of this is set.
    pub(crate) sgl_align: Option<u64>,
    /// Most bytes of one command's data.
    pub(crate) max_transfer: u32,
    /// Zeroes are written by deallocating.
    pub(crate) zeroes_by_discard: bool,
}

/// The data pointer of a submission queue entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    /// DPTR: PRP 1 and 2, or one SGL descriptor.
    pub(crate) words: [u64; 2],
    /// PSDT at its place in the entry's first word.
    pub(crate) psdt: u64,
}

/// PSDT 01b: an SGL.
const PSDT_SGL: u64 = 1 << 14;

impl Layout {
    /// Bytes of list that a command of `max_transfer` bytes can need: a power of two.
    pub(crate) fn list_bytes(&self) -> usize {
        let bytes = self
            .pages()
            .saturating_mul(8)
            .checked_next_power_of_two()
            .unwrap_or(LIST_MAX);
        // An SGL may have many more segments than pages, so it gets all there is.
        match self.sgl_align {
            Some(_) => LIST_MAX,
            None => bytes.clamp(LIST_MIN, LIST_MAX),
        }
    }

    /// Pages of a command of `max_transfer` bytes that begins with one.
    fn pages(&self) -> usize {
        let pages = u64::from(self.max_transfer)
            .saturating_add(self.page_mask)
            .wrapping_shr(self.page_mask.count_ones());
        usize::try_from(pages).unwrap_or(usize::MAX)
    }

    /// Most segments of a command: one for each page that it can touch, as in tree, and no more
    /// than a list has descriptors.
    pub(crate) fn max_segments(&self) -> u16 {
        // Data that begins within a page touches one more.
        let pages = self.pages().saturating_add(1);
        let most = match self.sgl_align {
            Some(_) => pages.min(self.list_bytes() / sgl::BYTES),
            None => pages,
        };
        u16::try_from(most).unwrap_or(u16::MAX)
    }

    /// Most ranges of a Dataset Management.
    pub(crate) fn max_ranges(&self) -> u16 {
        let room = u16::try_from(self.list_bytes() / RANGE_BYTES).unwrap_or(u16::MAX);
        room.min(RANGES_MAX)
    }

    /// Says where `bytes` of data are, in `list` if one is needed.
    #[inline]
    pub(crate) fn describe<P: Platform>(
        &self,
        data: &mut impl Iterator<Item = Result<Segment, CmdError>>,
        bytes: u32,
        list: &mut List<'_, P>,
    ) -> Result<Pointer, CmdError> {
        let first = data.next().ok_or(CmdError::Invalid)??;
        if first.len == bytes && prp::fits_command(first, self.page_mask) {
            return Ok(Pointer {
                words: prp::in_command(first, self.page_mask)?,
                psdt: 0,
            });
        }
        let Some(align) = self.sgl_align else {
            let words = prp::build(first, data, bytes, self.page_mask, list)?;
            return Ok(Pointer { words, psdt: 0 });
        };
        if first.len == bytes {
            let words = sgl::in_command(first, align)?;
            return Ok(Pointer {
                words,
                psdt: PSDT_SGL,
            });
        }
        let second = data.next().ok_or(CmdError::Invalid)??;
        if self.two_pages(first, second, bytes) {
            return Ok(Pointer {
                words: [first.addr, second.addr],
                psdt: 0,
            });
        }
        let words = sgl::build(first, second, data, bytes, align, list)?;
        Ok(Pointer {
            words,
            psdt: PSDT_SGL,
        })
    }

    /// Whether the two segments are all of the data, and PRP 1 and 2 say it without a list.
    #[inline]
    fn two_pages(&self, first: Segment, second: Segment, bytes: u32) -> bool {
        let page = self.page_mask.wrapping_add(1);
        first.addr & prp::ALIGN == 0
            && (first.addr & self.page_mask).wrapping_add(u64::from(first.len)) == page
            && second.addr & self.page_mask == 0
            && u64::from(second.len) <= page
            && first.len.checked_add(second.len) == Some(bytes)
    }
}
