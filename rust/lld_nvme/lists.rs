// SPDX-License-Identifier: GPL-2.0
//! Memory for lists: of each tag as much as most commands need, and pages for the others.

use hal::{CmdError, DmaMem, Error, Free, Platform, Tag, TagBatch, TagTable};

/// Log2 of the bytes that each tag has to itself: 64 PRP entries (256 KiB of 4 KiB pages, and the
/// first) or 32 SGL descriptors. Some devices take a list's address for one that begins at a
/// multiple of 512.
const SMALL_SHIFT: u32 = 9;
const SMALL: usize = 1 << SMALL_SHIFT;
/// Log2 of the bytes of a page. Some devices read all 256 ranges of a Dataset Management command,
/// however few they are told of, so its list is a page's.
const PAGE_SHIFT: u32 = 12;
/// Most pages of a queue: who finds none waits for another's. So many commands of more than
/// 256 KiB are 32 MiB in flight, which keeps a drive of 16 GB/s busy for 2 ms.
const PAGES: u16 = 128;
/// Bytes of one allocation: what a fragmented machine still has in one piece.
const CHUNK_SHIFT: u32 = 15;
const CHUNK: usize = 1 << CHUNK_SHIFT;

/// The lists of all tags of a queue.
pub(crate) struct Lists<P: Platform> {
    small: Places<P>,
    large: Places<P>,
    /// Which of `large` are free. They are taken by the issuer, and given back by the drainer or by
    /// the issuer, as the tags are whose lists are there.
    pages: TagTable<P>,
    /// Bytes of a list.
    most: usize,
}

impl<P: Platform> Lists<P> {
    /// Lists of `most` bytes, up to a page, for `tags` tags.
    pub(crate) fn new(platform: &P, tags: u16, most: usize) -> Result<Self, Error> {
        let pages = tags.min(PAGES);
        Ok(Self {
            small: Places::new(platform, tags, SMALL_SHIFT)?,
            large: Places::new(platform, pages, PAGE_SHIFT)?,
            pages: TagTable::new(platform, pages)?,
            most: most.min(1 << PAGE_SHIFT),
        })
    }

    /// The list of the next command of tag `tag`.
    #[inline]
    pub(crate) fn of(&self, tag: usize) -> List<'_, P> {
        List {
            lists: self,
            tag,
            place: None,
            page: None,
        }
    }

    /// What was [`Page::kept`] is free again: the device reads it no more.
    #[cold]
    pub(crate) fn give_back(&self, page: Page) {
        let Some(number) = page.0.checked_sub(1) else {
            return;
        };
        if let Some(page) = self.pages.complete(number) {
            let mut batch = TagBatch::default();
            // It is the only one.
            let _ = batch.push(page.detach());
            self.pages.release(&mut batch);
        }
    }

    /// All of them are free. Only in [`hal::Queue::rewind`].
    pub(crate) fn rewind(&self) {
        self.pages.rewind();
    }
}

/// The page that a command has taken for its list, as a slot remembers it: 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page(pub(crate) u16);

/// One command's list while it is written. What it took and did not [`List::keep`] is free again.
pub(crate) struct List<'a, P: Platform> {
    lists: &'a Lists<P>,
    tag: usize,
    /// Where it is, once something was written.
    place: Option<Place<'a, P::Dma>>,
    page: Option<Tag<Free>>,
}

impl<P: Platform> List<'_, P> {
    /// Begins it in a page of its own. [`CmdError::NotReady`]: there is none at the moment.
    pub(crate) fn begin_page(&mut self) -> Result<(), CmdError> {
        let mut one = TagBatch::default();
        self.lists.pages.take(1, &mut one);
        let page = one.pop().ok_or(CmdError::NotReady)?;
        let place = self.lists.large.at(page.index(), self.lists.most);
        self.page = Some(page);
        self.place = place;
        Ok(())
    }

    /// Where the device finds it.
    #[inline]
    pub(crate) fn bus(&self) -> Result<u64, CmdError> {
        let place = self.place.ok_or(CmdError::Invalid)?;
        Ok(place.memory.bus_addr().wrapping_add(place.at as u64))
    }

    /// Writes 64-bit word `index`. [`CmdError::Invalid`]: a list is not that long.
    #[inline]
    pub(crate) fn write(&mut self, index: usize, word: u64) -> Result<(), CmdError> {
        let offset = index.wrapping_mul(8);
        let place = self.place_for(offset)?;
        place.memory.write64(place.at.wrapping_add(offset), word);
        Ok(())
    }

    /// Writes 16-byte entry `index`. Errors as of [`List::write`].
    #[inline]
    pub(crate) fn write_pair(&mut self, index: usize, words: [u64; 2]) -> Result<(), CmdError> {
        let offset = index.wrapping_mul(16);
        let place = self.place_for(offset)?;
        let at = place.at.wrapping_add(offset);
        place.memory.write_words(at, words);
        Ok(())
    }

    /// The command is bound: the page, if it has one, is its own until [`Lists::give_back`].
    #[inline]
    pub(crate) fn keep(mut self) -> Page {
        match self.page.take() {
            None => Page::default(),
            Some(page) => {
                let number = page.number();
                self.lists.pages.issue(page.bind());
                Page(number.wrapping_add(1))
            }
        }
    }

    /// Where it is, with room for what begins at `offset`.
    #[inline(always)]
    fn place_for(&mut self, offset: usize) -> Result<&Place<'_, P::Dma>, CmdError> {
        if (self.place.as_ref()).is_none_or(|place| offset >= place.bytes) {
            self.grow(offset)?;
        }
        self.place.as_ref().ok_or(CmdError::Invalid)
    }

    /// It gets room for what begins at `offset`: is there, or is in a page.
    #[inline(never)]
    fn grow(&mut self, offset: usize) -> Result<(), CmdError> {
        let lists = self.lists;
        if offset >= lists.most {
            return Err(CmdError::Invalid);
        }
        let small = match self.place {
            None => lists.small.at(self.tag, SMALL.min(lists.most)),
            before => before,
        };
        let small = small.ok_or(CmdError::Invalid)?;
        if offset < small.bytes {
            self.place = Some(small);
            return Ok(());
        }
        self.begin_page()?;
        let large = self.place.ok_or(CmdError::Invalid)?;
        for word in (0..small.bytes).step_by(8) {
            let written = small.memory.read64(small.at.wrapping_add(word));
            large.memory.write64(large.at.wrapping_add(word), written);
        }
        Ok(())
    }
}

impl<P: Platform> Drop for List<'_, P> {
    #[inline]
    fn drop(&mut self) {
        if let Some(page) = self.page.take() {
            let mut batch = TagBatch::default();
            // It is the only one.
            let _ = batch.push(page);
            self.lists.pages.release(&mut batch);
        }
    }
}

/// A piece of DMA memory.
struct Place<'a, D> {
    memory: &'a D,
    /// Where in it.
    at: usize,
    /// Its length.
    bytes: usize,
}

impl<D> Clone for Place<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for Place<'_, D> {}

/// So many pieces of the same length, in allocations of [`CHUNK`].
struct Places<P: Platform> {
    chunks: P::Table<Option<P::Dma>>,
    shift: u32,
}

impl<P: Platform> Places<P> {
    fn new(platform: &P, count: u16, shift: u32) -> Result<Self, Error> {
        let all = usize::from(count).wrapping_shl(shift);
        let mut failed = None;
        let chunks = platform.table(all.div_ceil(CHUNK), |at| {
            let left = all.saturating_sub(at << CHUNK_SHIFT);
            match platform.dma(left.min(CHUNK)) {
                Ok(memory) => Some(memory),
                Err(why) => {
                    failed = Some(why);
                    None
                }
            }
        })?;
        match failed {
            Some(why) => Err(why),
            None => Ok(Self { chunks, shift }),
        }
    }

    /// The first `bytes` of piece `index`.
    #[inline]
    fn at(&self, index: usize, bytes: usize) -> Option<Place<'_, P::Dma>> {
        let at = index.wrapping_shl(self.shift);
        Some(Place {
            memory: self.chunks.get(at >> CHUNK_SHIFT)?.as_ref()?,
            at: at & (CHUNK - 1),
            bytes,
        })
    }
}
