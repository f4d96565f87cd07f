// SPDX-License-Identifier: GPL-2.0
//! Where a command's data is: the choice between PRP and SGL, and each tag's own piece of DMA memory for lists.

use crate::{prp, sgl};
use hal::{CmdError, DmaMem, Error, Platform, Segment};

/// Most bytes of a tag's list that are used: 256 PRP entries or 128 SGL descriptors. With the first
/// page in the command this is 1 MiB of 4 KiB pages at any offset, and as a list never crosses a
/// page, it never needs a chain.
pub(crate) const LIST_MAX: usize = 2048;
/// Least bytes of a list: a Dataset Management range, and two SGL descriptors.
const LIST_MIN: usize = 64;
/// Most ranges of a Dataset Management (NR, less one, is a byte), and bytes of each.
pub(crate) const RANGES_MAX: u16 = 256;
const RANGE_BYTES: usize = 16;
/// Log2 of the bytes that each list has to itself: a page. Some devices read all 256 ranges of a
/// Dataset Management command, however few they are told of, and some take a list's address for
/// one that begins at a multiple of 512.
const PLACE_SHIFT: u32 = 12;
/// Bytes of one allocation for lists: what a fragmented machine still has in one piece.
const CHUNK_SHIFT: u32 = 15;

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
        let shift = self.page_mask.count_ones();
        let pages = u64::from(self.max_transfer)
            .saturating_add(self.page_mask)
            .wrapping_shr(shift);
        let bytes = usize::try_from(pages.saturating_mul(8))
            .ok()
            .and_then(usize::checked_next_power_of_two)
            .unwrap_or(LIST_MAX);
        // An SGL may have many more segments than pages, so it gets all there is.
        match self.sgl_align {
            Some(_) => LIST_MAX,
            None => bytes.clamp(LIST_MIN, LIST_MAX),
        }
    }

    /// Most segments of a command.
    pub(crate) fn max_segments(&self) -> u16 {
        let most = match self.sgl_align {
            Some(_) => self.list_bytes() / sgl::BYTES,
            // The first, which may be less than a page, and as many as there are further pages.
            None => (self.list_bytes() / 8).saturating_add(1),
        };
        u16::try_from(most).unwrap_or(u16::MAX)
    }

    /// Most ranges of a Dataset Management.
    pub(crate) fn max_ranges(&self) -> u16 {
        let room = u16::try_from(self.list_bytes() / RANGE_BYTES).unwrap_or(u16::MAX);
        room.min(RANGES_MAX)
    }

    /// Says where `bytes` of data are, with the list that `list` gives if one is needed.
    #[inline]
    pub(crate) fn describe<'a, D: DmaMem + 'a>(
        &self,
        mut data: impl Iterator<Item = Result<Segment, CmdError>>,
        bytes: u32,
        list: impl FnOnce() -> Option<List<'a, D>>,
    ) -> Result<Pointer, CmdError> {
        let first = data.next().ok_or(CmdError::Invalid)??;
        if first.len == bytes && prp::fits_command(first, self.page_mask) {
            return Ok(Pointer {
                words: prp::in_command(first, self.page_mask)?,
                psdt: 0,
            });
        }
        let Some(align) = self.sgl_align else {
            let list = list().ok_or(CmdError::Invalid)?;
            let words = prp::build(first, data, bytes, self.page_mask, &list)?;
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
        let list = list().ok_or(CmdError::Invalid)?;
        let words = sgl::build(first, second, data, bytes, align, &list)?;
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

/// The lists of all tags of a queue, each in a page of its own.
pub(crate) struct Lists<P: Platform> {
    chunks: P::Table<Option<P::Dma>>,
    /// Bytes of a list.
    bytes: usize,
}

impl<P: Platform> Lists<P> {
    /// Lists of `bytes`, up to [`LIST_MAX`], for `tags` tags.
    pub(crate) fn new(platform: &P, tags: u16, bytes: usize) -> Result<Self, Error> {
        let all = usize::from(tags).wrapping_shl(PLACE_SHIFT);
        let chunk = 1usize << CHUNK_SHIFT;
        let chunk_at = |at: usize| {
            let left = all.saturating_sub(at << CHUNK_SHIFT);
            platform.dma(left.min(chunk))
        };
        let mut failed = None;
        let chunks = platform.table(all.div_ceil(chunk), |at| match chunk_at(at) {
            Ok(memory) => Some(memory),
            Err(why) => {
                failed = Some(why);
                None
            }
        })?;
        match failed {
            Some(why) => Err(why),
            None => Ok(Self { chunks, bytes }),
        }
    }

    /// The list of tag `index`.
    #[inline]
    pub(crate) fn of(&self, index: usize) -> Option<List<'_, P::Dma>> {
        let at = index.wrapping_shl(PLACE_SHIFT);
        let memory = self.chunks.get(at >> CHUNK_SHIFT)?.as_ref()?;
        Some(List {
            memory,
            at: at & ((1 << CHUNK_SHIFT) - 1),
            bytes: self.bytes,
        })
    }
}

/// One tag's list.
pub(crate) struct List<'a, D> {
    /// The memory that it is a part of.
    pub(crate) memory: &'a D,
    /// Where in it.
    pub(crate) at: usize,
    /// Its length.
    pub(crate) bytes: usize,
}

impl<D: DmaMem> List<'_, D> {
    /// Where the device finds it.
    #[inline]
    pub(crate) fn bus(&self) -> u64 {
        self.memory.bus_addr().wrapping_add(self.at as u64)
    }

    /// Writes 64-bit word `index`.
    #[inline]
    pub(crate) fn write(&self, index: usize, word: u64) -> Result<(), CmdError> {
        let offset = index.wrapping_mul(8);
        if offset >= self.bytes {
            return Err(CmdError::Invalid);
        }
        self.memory.write64(self.at.wrapping_add(offset), word);
        Ok(())
    }

    /// Writes 16-byte entry `index`.
    #[inline]
    pub(crate) fn write_pair(&self, index: usize, words: [u64; 2]) -> Result<(), CmdError> {
        let offset = index.wrapping_mul(16);
        if offset >= self.bytes {
            return Err(CmdError::Invalid);
        }
        self.memory.write_words(self.at.wrapping_add(offset), words);
        Ok(())
    }
}

// A list fits its place.
const _: () = assert!(LIST_MAX <= 1 << PLACE_SHIFT);
