// SPDX-License-Identifier: GPL-2.0
//! I/O commands as submission queue entries (Base 2.0 section 3.3.3.1, NVM Command Set 1.0 section
//! 3.2), with the lists that say where their data is.
//!
//! # PRP (Base 2.0 section 4.1.1)
//! Physical region pages are a command's data as a list of memory pages. PRP 1 is the first byte,
//! which may lie anywhere in its page; every further entry is a whole page. Two entries are in the
//! command, more are in a list to which PRP 2 points.
//!
//! # SGL (Base 2.0 section 4.1.2)
//! A scatter gather list is a command's data as segments of any address and length. One segment is
//! a data block descriptor in the command itself; more are in a list, to which a last-segment
//! descriptor points. A hole is a bit bucket descriptor: what is read there does not cross the bus.
//!
//! # Which of them
//! PRP where the command holds it without a list; else an SGL, where the controller takes those.
//! A PRP can't say a hole: an address that none has ([`Segment::hole`]) is no PRP's, as it is odd.
//!
//! # Memory for lists
//! Each tag has as much as most commands need, and there are pages for the others.

use hal::{CmdError, Command, DmaMem, Error, Free, Op, Platform, Segment, Tag, TagBatch, TagTable};

/// A submission queue entry.
pub(crate) type Sqe = [u64; 8];
/// Bytes of an entry.
pub(crate) const SQE_BYTES: usize = 64;

/// Where entry `index` is.
#[inline]
pub(crate) const fn offset(index: u16) -> usize {
    (index as usize) << 6
}

const FLUSH: u64 = 0x00;
const WRITE: u64 = 0x01;
const READ: u64 = 0x02;
const WRITE_ZEROES: u64 = 0x08;
const DATASET_MANAGEMENT: u64 = 0x09;

/// Command dword 12 of read, write, write zeroes: force unit access.
const FUA: u64 = 1 << 30;
/// Command dword 12 of write zeroes: deallocate the blocks, if they read as zeroes then (DEAC).
const DEAC: u64 = 1 << 25;
/// Command dword 11 of Dataset Management: deallocate.
const DEALLOCATE: u64 = 1 << 2;

/// Most logical blocks of a command whose length is 16 bits, less one.
pub(crate) const BLOCKS_MAX: u32 = 1 << 16;

/// Encodes `cmd` for the tag whose CID is `cid` and whose list is `list`; most commands need none.
#[inline]
pub(crate) fn encode<P: Platform>(
    cmd: &Command,
    cid: u16,
    layout: &Layout,
    data: &mut impl Iterator<Item = Result<Segment, CmdError>>,
    list: &mut List<'_, P>,
) -> Result<Sqe, CmdError> {
    let opcode = match cmd.op {
        Op::Read => READ,
        Op::Write => WRITE,
        Op::Flush => return Ok(entry(FLUSH, cid, cmd.unit, [0, 0], 0, 0)),
        Op::WriteZeroes if !layout.zeroes_by_discard => {
            let deac = if cmd.unmap { DEAC } else { 0 };
            let length = length(cmd)? | deac;
            return Ok(entry(WRITE_ZEROES, cid, cmd.unit, [0, 0], cmd.lba, length));
        }
        Op::Discard | Op::WriteZeroes => {
            list.begin_page()?;
            let ranges = write_ranges(cmd, data, list)?;
            let at = [list.bus()?, 0];
            // Dword 10: ranges, less one.
            let dwords = ranges.wrapping_sub(1) | (DEALLOCATE << 32);
            return Ok(entry(DATASET_MANAGEMENT, cid, cmd.unit, at, dwords, 0));
        }
    };
    let length = length(cmd)?;
    let bytes = u64::from(cmd.blocks)
        .checked_shl(u32::from(cmd.block_shift))
        .and_then(|bytes| u32::try_from(bytes).ok())
        .filter(|&bytes| bytes <= layout.max_transfer)
        .ok_or(CmdError::Invalid)?;
    let rules = layout.rules(cmd.op);
    let pointer = layout.describe(data, bytes, rules, list)?;
    let opcode = opcode | pointer.psdt;
    Ok(entry(opcode, cid, cmd.unit, pointer.words, cmd.lba, length))
}

/// Encodes `cmd`, a read or a write of `data`. `None`: it is another command, is not as long as its
/// data, or takes more than the entry to say where that is ([`encode`]).
#[inline(always)]
pub(crate) fn encode_one(cmd: &Command, cid: u16, layout: &Layout, data: Segment) -> Option<Sqe> {
    let opcode = match cmd.op {
        Op::Read => READ,
        Op::Write => WRITE,
        _ => return None,
    };
    let bytes = u64::from(cmd.blocks).checked_shl(u32::from(cmd.block_shift))?;
    let fits = fits_command(data, layout.page_mask) && data.len <= layout.max_transfer;
    if bytes != u64::from(data.len) || !fits {
        return None;
    }
    let (length, words) = (
        length(cmd).ok()?,
        prps_in_command(data, layout.page_mask).ok()?,
    );
    Some(entry(opcode, cid, cmd.unit, words, cmd.lba, length))
}

/// Writes the ranges of a discard, those of `cmd` or that which it is itself, to `list`; says how
/// many they are, 1 to [`RANGES_MAX`].
#[cold]
fn write_ranges<P: Platform>(
    cmd: &Command,
    ranges: impl Iterator<Item = Result<Segment, CmdError>>,
    list: &mut List<'_, P>,
) -> Result<u64, CmdError> {
    let (mut count, mut left) = (0usize, cmd.blocks);
    let mut write = |range: Segment| {
        if range.len == 0 || count >= usize::from(RANGES_MAX) {
            return Err(CmdError::Invalid);
        }
        left = left.checked_sub(range.len).ok_or(CmdError::Invalid)?;
        // Context attributes and length, then the first block.
        list.write_pair(count, [u64::from(range.len) << 32, range.addr])?;
        count = count.wrapping_add(1);
        Ok(())
    };
    for range in ranges {
        write(range?)?;
    }
    if count == 0 {
        let (addr, len) = (cmd.lba, cmd.blocks);
        list.write_pair(0, [u64::from(len) << 32, addr])?;
        (count, left) = (1, u32::from(len == 0));
    }
    match left {
        0 => Ok(count as u64),
        _ => Err(CmdError::Invalid),
    }
}

/// Dword 12: blocks, less one, and FUA.
#[inline]
fn length(cmd: &Command) -> Result<u64, CmdError> {
    match cmd.blocks {
        blocks @ 1..=BLOCKS_MAX => {
            let fua = if cmd.fua { FUA } else { 0 };
            Ok(u64::from(blocks.wrapping_sub(1)) | fua)
        }
        _ => Err(CmdError::Invalid),
    }
}

#[inline]
fn entry(opcode: u64, cid: u16, nsid: u32, dptr: [u64; 2], dword10: u64, dword12: u64) -> Sqe {
    let first = opcode | (u64::from(cid) << 16) | (u64::from(nsid) << 32);
    [first, 0, 0, dptr[0], dptr[1], dword10, dword12, 0]
}

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
    /// They may have bit buckets.
    pub(crate) has_bit_bucket: bool,
    /// Most bytes of one command's data.
    pub(crate) max_transfer: u32,
    /// Zeroes are written by deallocating.
    pub(crate) zeroes_by_discard: bool,
}

/// The data pointer of a submission queue entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pointer {
    /// DPTR: PRP 1 and 2, or one SGL descriptor.
    words: [u64; 2],
    /// PSDT at its place in the entry's first word.
    psdt: u64,
}

/// What a command's SGL may say.
#[derive(Clone, Copy)]
struct SglRules {
    /// As of [`Layout::sgl_align`].
    align: u64,
    /// It may have holes.
    holes: bool,
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
            Some(_) => pages.min(self.list_bytes() / DESCRIPTOR_BYTES),
            None => pages,
        };
        u16::try_from(most).unwrap_or(u16::MAX)
    }

    /// Most ranges of a Dataset Management.
    pub(crate) fn max_ranges(&self) -> u16 {
        let room = u16::try_from(self.list_bytes() / RANGE_BYTES).unwrap_or(u16::MAX);
        room.min(RANGES_MAX)
    }

    /// What the SGL of an `op` may say; `None`: it has none.
    #[inline]
    fn rules(&self, op: Op) -> Option<SglRules> {
        // In a write's one it says nothing (Base 2.0, section 4.1.2).
        let holes = self.has_bit_bucket && op == Op::Read;
        self.sgl_align.map(|align| SglRules { align, holes })
    }

    /// Says where `bytes` of data are, in `list` if one is needed, by an SGL as `rules` allow.
    #[inline]
    fn describe<P: Platform>(
        &self,
        data: &mut impl Iterator<Item = Result<Segment, CmdError>>,
        bytes: u32,
        rules: Option<SglRules>,
        list: &mut List<'_, P>,
    ) -> Result<Pointer, CmdError> {
        let first = data.next().ok_or(CmdError::Invalid)??;
        if first.len == bytes && fits_command(first, self.page_mask) {
            return Ok(Pointer {
                words: prps_in_command(first, self.page_mask)?,
                psdt: 0,
            });
        }
        let Some(rules) = rules else {
            let words = build_prps(first, data, bytes, self.page_mask, list)?;
            return Ok(Pointer { words, psdt: 0 });
        };
        if first.len == bytes {
            let words = descriptor(first, rules)?;
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
        let words = build_sgl(first, second, data, bytes, rules, list)?;
        Ok(Pointer {
            words,
            psdt: PSDT_SGL,
        })
    }

    /// Whether the two segments are all of the data, and PRP 1 and 2 say it without a list.
    #[inline]
    fn two_pages(&self, first: Segment, second: Segment, bytes: u32) -> bool {
        let page = self.page_mask.wrapping_add(1);
        first.addr & ALIGN == 0
            && (first.addr & self.page_mask).wrapping_add(u64::from(first.len)) == page
            && second.addr & self.page_mask == 0
            && u64::from(second.len) <= page
            && first.len.checked_add(second.len) == Some(bytes)
    }
}

/// Low bits that PRP entries must not have (a dword).
const ALIGN: u64 = 3;

/// Whether `first` alone, which is all of the data, needs no list with pages of `mask + 1` bytes.
#[inline]
fn fits_command(first: Segment, mask: u64) -> bool {
    first.addr & ALIGN == 0
        && (first.addr & mask).wrapping_add(u64::from(first.len)) <= mask.wrapping_add(1) << 1
}

/// PRP 1 and 2 of data for which [`fits_command`] holds. [`CmdError::Invalid`]: it passes the end
/// of all addresses.
#[inline]
fn prps_in_command(first: Segment, mask: u64) -> Result<[u64; 2], CmdError> {
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
fn build_prps<P: Platform>(
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

/// Descriptor type Data Block, in the top byte of the second word.
const DATA_BLOCK: u64 = 0x00 << 56;
/// Descriptor type Bit Bucket.
const BIT_BUCKET: u64 = 0x10 << 56;
/// Descriptor type Last Segment.
const LAST_SEGMENT: u64 = 0x30 << 56;
/// Bytes of a descriptor.
const DESCRIPTOR_BYTES: usize = 16;

/// The command's descriptor of `bytes` of data in `first`, `second` and what `rest` yields, with a
/// descriptor each in `list`, as `rules` allow.
///
/// [`CmdError::Invalid`]: against the rules, not `bytes` long, or more segments than the list
/// holds. [`CmdError::NotReady`]: there is no page for so long a list.
fn build_sgl<P: Platform>(
    first: Segment,
    second: Segment,
    rest: &mut impl Iterator<Item = Result<Segment, CmdError>>,
    bytes: u32,
    rules: SglRules,
    list: &mut List<'_, P>,
) -> Result<[u64; 2], CmdError> {
    let mut count = 0usize;
    // What is left of so many bytes after one more.
    let mut add = |left: u32, segment: Segment| {
        list.write_pair(count, descriptor(segment, rules)?)?;
        count = count.wrapping_add(1);
        left.checked_sub(segment.len).ok_or(CmdError::Invalid)
    };
    let mut left = add(bytes, first)?;
    left = add(left, second)?;
    while left != 0 {
        left = add(left, rest.next().ok_or(CmdError::Invalid)??)?;
    }
    // At most a list's bytes, far below 32 bits.
    let length = count.wrapping_mul(DESCRIPTOR_BYTES) as u64;
    Ok([list.bus()?, length | LAST_SEGMENT])
}

/// The descriptor of `segment`. [`CmdError::Invalid`]: against the rules.
#[inline]
fn descriptor(segment: Segment, rules: SglRules) -> Result<[u64; 2], CmdError> {
    let len = u64::from(segment.len);
    if segment.is_hole() {
        return match rules.holes && len & rules.align == 0 {
            true => Ok([0, len | BIT_BUCKET]),
            false => Err(CmdError::Invalid),
        };
    }
    match (segment.addr | len) & rules.align {
        0 => Ok([segment.addr, len | DATA_BLOCK]),
        _ => Err(CmdError::Invalid),
    }
}

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

    /// What was kept ([`List::keep`]) is free again: the device reads it no more.
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
    fn begin_page(&mut self) -> Result<(), CmdError> {
        let page = self.lists.pages.take(1).pop().ok_or(CmdError::NotReady)?;
        let place = self.lists.large.at(page.index(), self.lists.most);
        self.page = Some(page);
        self.place = place;
        Ok(())
    }

    /// Where the device finds it.
    #[inline]
    fn bus(&self) -> Result<u64, CmdError> {
        let place = self.place.ok_or(CmdError::Invalid)?;
        Ok(place.memory.bus_addr().wrapping_add(place.at as u64))
    }

    /// Writes 64-bit word `index`. [`CmdError::Invalid`]: a list is not that long.
    #[inline]
    fn write(&mut self, index: usize, word: u64) -> Result<(), CmdError> {
        let offset = index.wrapping_mul(8);
        let place = self.place_for(offset)?;
        place.memory.write64(place.at.wrapping_add(offset), word);
        Ok(())
    }

    /// Writes 16-byte entry `index`. Errors as of [`List::write`].
    #[inline]
    fn write_pair(&mut self, index: usize, words: [u64; 2]) -> Result<(), CmdError> {
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
            self.lists.pages.put_back(&mut batch);
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

/// Pieces of memory of one length, in allocations of [`CHUNK`] bytes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_zero_based_and_bounded() {
        let mut cmd = Command {
            op: Op::Write,
            unit: 1,
            lba: 0,
            blocks: 1,
            block_shift: 9,
            fua: false,
            unmap: false,
        };
        assert_eq!(length(&cmd), Ok(0));
        cmd.blocks = BLOCKS_MAX;
        cmd.fua = true;
        assert_eq!(length(&cmd), Ok(0x4000_ffff));
        cmd.blocks = BLOCKS_MAX + 1;
        assert_eq!(length(&cmd), Err(CmdError::Invalid));
        cmd.blocks = 0;
        assert_eq!(length(&cmd), Err(CmdError::Invalid));
    }
}
