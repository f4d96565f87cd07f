// SPDX-License-Identifier: GPL-2.0
//! The device's side of a queue: commands as it reads them, and carrying them out.

use crate::device::{Backing, Holes, MAX_SEGMENTS};
use cell::sync::{AtomicBool, AtomicU32, AtomicU64, AtomicU8, Ordering};
use hal::{CmdError, Command, Error, Op, Outcome, Platform, Segment};

const READ: u8 = 0;
const WRITE: u8 = 1;
const ZERO: u8 = 2;
const NOTHING: u8 = 3;
/// As [`ZERO`], with ranges of the medium in the place of segments of memory.
const ZERO_MANY: u8 = 4;
/// No command's word: of a tag that there is not.
const NONE: u32 = u32::MAX;

/// One tag's command, as the device reads it: written by the issuer before it is issued, by nobody
/// until it is released.
#[derive(Default)]
struct Place {
    kind: AtomicU8,
    /// Byte on the medium.
    at: AtomicU64,
    /// Bytes.
    len: AtomicU64,
    /// Of those, which go over the link.
    wanted: AtomicU64,
    /// Of its data, or of the medium, if it has several.
    segments: AtomicU32,
    /// When the medium is done with it, in nanoseconds.
    ready: AtomicU64,
    /// The word that reports it.
    word: AtomicU32,
    /// It hangs.
    hangs: AtomicBool,
}

/// The commands of a queue, and the ring in which the device finds them.
pub(crate) struct Commands<P: Platform> {
    places: P::Table<Place>,
    /// By tag, [`MAX_SEGMENTS`] each: address and length; or bytes of the medium.
    segments: P::Table<(AtomicU64, AtomicU32)>,
    ring: P::Table<AtomicU32>,
    /// The word of the command that was aborted; [`NONE`]: there is none.
    aborted: AtomicU32,
    /// Free-running; the issuer's.
    tail: AtomicU32,
}

impl<P: Platform> Commands<P> {
    pub(crate) fn new(platform: &P, tags: u16) -> Result<Self, Error> {
        let tags = usize::from(tags);
        let segments = tags.saturating_mul(usize::from(MAX_SEGMENTS));
        Ok(Self {
            places: platform.table(tags, |_| Place::default())?,
            segments: platform.table(segments, |_| (AtomicU64::new(0), AtomicU32::new(0)))?,
            // A power of two, so that the free-running indices may wrap.
            ring: platform.table(tags.next_power_of_two(), |_| AtomicU32::new(0))?,
            aborted: AtomicU32::new(NONE),
            tail: AtomicU32::new(0),
        })
    }

    fn segments_of(&self, tag: usize) -> &[(AtomicU64, AtomicU32)] {
        let each = usize::from(MAX_SEGMENTS);
        let from = tag.saturating_mul(each);
        self.segments
            .get(from..from.saturating_add(each))
            .unwrap_or_default()
    }

    /// Writes `cmd` and its data, or ranges, to `tag`, of a read with `holes` if it may have such.
    /// By the issuer.
    pub(crate) fn write(
        &self,
        tag: usize,
        cmd: &Command,
        holes: Holes,
        data: impl Iterator<Item = Result<Segment, CmdError>>,
    ) -> Result<(), CmdError> {
        let place = self.places.get(tag).ok_or(CmdError::Invalid)?;
        let shift = u32::from(cmd.block_shift);
        let len = bytes(cmd.blocks.into(), shift).ok_or(CmdError::Invalid)?;
        let (count, wanted) = match cmd.op {
            Op::Read | Op::Write => {
                let holes = holes != Holes::No && cmd.op == Op::Read;
                self.write_data(tag, len, holes, data)?
            }
            Op::Discard => (self.write_ranges(tag, cmd, data)?, 0),
            Op::WriteZeroes | Op::Flush => (0, 0),
        };
        let kind = match cmd.op {
            Op::Read => READ,
            Op::Write => WRITE,
            Op::Discard if count > 0 => ZERO_MANY,
            Op::Discard | Op::WriteZeroes => ZERO,
            Op::Flush => NOTHING,
        };
        place.kind.store(kind, Ordering::Relaxed);
        // What is beyond all bounds stays there.
        let at = bytes(cmd.lba, shift).unwrap_or(u64::MAX);
        place.at.store(at, Ordering::Relaxed);
        place.len.store(len, Ordering::Relaxed);
        place.wanted.store(wanted, Ordering::Relaxed);
        place.segments.store(count, Ordering::Relaxed);
        Ok(())
    }

    /// Writes `tag`'s data, of `len` bytes, with `holes` if it may have such: how many segments
    /// that are, and how many bytes are no holes.
    fn write_data(
        &self,
        tag: usize,
        len: u64,
        holes: bool,
        data: impl Iterator<Item = Result<Segment, CmdError>>,
    ) -> Result<(u32, u64), CmdError> {
        let (mut count, mut total, mut wanted) = (0u32, 0u64, 0u64);
        let mut room = self.segments_of(tag).iter();
        for segment in data {
            let segment = segment?;
            let (addr, len) = room.next().ok_or(CmdError::Invalid)?;
            match segment.is_hole() {
                true if !holes => return Err(CmdError::Invalid),
                true => {}
                false => wanted = wanted.saturating_add(u64::from(segment.len)),
            }
            addr.store(segment.addr, Ordering::Relaxed);
            len.store(segment.len, Ordering::Relaxed);
            total = total.saturating_add(u64::from(segment.len));
            count = count.wrapping_add(1);
        }
        match total == len {
            true => Ok((count, wanted)),
            false => Err(CmdError::Invalid),
        }
    }

    /// Writes the ranges of `tag`'s discard: how many they are, 0 where it is itself its only one.
    #[cold]
    fn write_ranges(
        &self,
        tag: usize,
        cmd: &Command,
        ranges: impl Iterator<Item = Result<Segment, CmdError>>,
    ) -> Result<u32, CmdError> {
        let shift = u32::from(cmd.block_shift);
        let (mut count, mut left) = (0u32, cmd.blocks);
        let mut room = self.segments_of(tag).iter();
        for range in ranges {
            let range = range?;
            let (at, len) = room.next().ok_or(CmdError::Invalid)?;
            left = left.checked_sub(range.len).ok_or(CmdError::Invalid)?;
            let length = bytes(range.len.into(), shift).and_then(|len| u32::try_from(len).ok());
            len.store(length.ok_or(CmdError::Invalid)?, Ordering::Relaxed);
            at.store(
                bytes(range.addr, shift).unwrap_or(u64::MAX),
                Ordering::Relaxed,
            );
            count = count.wrapping_add(1);
        }
        match count == 0 || left == 0 {
            true => Ok(count),
            false => Err(CmdError::Invalid),
        }
    }

    /// Whether the command of `tag` changes the medium.
    pub(crate) fn changes(&self, tag: usize) -> bool {
        (self.places.get(tag))
            .map(|place| place.kind.load(Ordering::Relaxed))
            .is_some_and(|kind| matches!(kind, WRITE | ZERO | ZERO_MANY))
    }

    /// How many bytes of `tag`'s command go over the link: those of a read or a write, but for
    /// holes.
    pub(crate) fn bytes(&self, tag: usize) -> u64 {
        (self.places.get(tag)).map_or(0, |place| place.wanted.load(Ordering::Relaxed))
    }

    /// The device learns of `tag`, to be reported as `generation`; the medium is done with it at
    /// `ready`. By the issuer.
    pub(crate) fn issue(&self, tag: u16, generation: u16, ready: u64) {
        let word = (u32::from(generation) << 16) | u32::from(tag);
        if let Some(place) = self.places.get(usize::from(tag)) {
            place.ready.store(ready, Ordering::Relaxed);
            place.word.store(word, Ordering::Relaxed);
            place.hangs.store(false, Ordering::Relaxed);
        }
        let tail = self.tail.load(Ordering::Relaxed);
        if let Some(entry) = self.entry_at(tail) {
            entry.store(word, Ordering::Relaxed);
        }
        // Release: the entry and its command are there for whoever sees the tail.
        self.tail.store(tail.wrapping_add(1), Ordering::Release);
    }

    fn entry_at(&self, at: u32) -> Option<&AtomicU32> {
        self.ring.get(at as usize & self.ring.len().wrapping_sub(1))
    }

    /// The next command in the ring, if there is one behind `head`: its word and when the medium is
    /// done with it. By the drainer.
    #[inline]
    pub(crate) fn next(&self, head: u32) -> Option<(u32, u64)> {
        if self.tail.load(Ordering::Acquire) == head {
            return None;
        }
        let word = self.entry_at(head)?.load(Ordering::Relaxed);
        let ready =
            (self.places.get(tag_of(word))).map_or(0, |place| place.ready.load(Ordering::Relaxed));
        Some((word, ready))
    }

    /// The command of `word` is not finished. By the drainer.
    #[cold]
    pub(crate) fn hang(&self, word: u32) {
        if let Some(place) = self.places.get(tag_of(word)) {
            place.hangs.store(true, Ordering::Release);
        }
    }

    /// The command of `tag` is given up, if it hangs; whether it did. One caller at a time.
    pub(crate) fn abort(&self, tag: usize) -> bool {
        let Some(place) = self.places.get(tag) else {
            return false;
        };
        let hung = place.hangs.swap(false, Ordering::Acquire);
        if hung {
            let word = place.word.load(Ordering::Relaxed);
            self.aborted.store(word, Ordering::Release);
        }
        hung
    }

    /// The word of the command that was aborted. By the drainer.
    #[inline]
    pub(crate) fn take_aborted(&self) -> Option<u32> {
        if !self.has_aborted() {
            return None;
        }
        Some(self.aborted.swap(NONE, Ordering::Acquire)).filter(|word| *word != NONE)
    }

    /// Whether there is one.
    #[inline]
    pub(crate) fn has_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed) != NONE
    }

    /// Where the issuer is, for a drainer that starts over.
    pub(crate) fn tail(&self) -> u32 {
        self.tail.load(Ordering::Acquire)
    }

    /// Whether `word` reports what was issued last under its tag.
    pub(crate) fn answers(&self, word: u32) -> bool {
        (self.places.get(tag_of(word)))
            .is_some_and(|place| place.word.load(Ordering::Relaxed) == word)
    }

    /// Does what the command of `word` says. By the drainer, before it is reported.
    pub(crate) fn execute(&self, backing: &impl Backing, word: u32) -> Outcome {
        let tag = tag_of(word);
        let place = self.places.get(tag).ok_or(CmdError::Io.permanent())?;
        let kind = place.kind.load(Ordering::Relaxed);
        if kind == NOTHING {
            return Ok(());
        }
        let medium = backing.device().config.bytes;
        let is_inside = |at: u64, len: u64| at.checked_add(len).is_some_and(|end| end <= medium);
        let count = place.segments.load(Ordering::Relaxed) as usize;
        let segments = (self.segments_of(tag).iter().take(count)).map(|(addr, len)| Segment {
            addr: addr.load(Ordering::Relaxed),
            len: len.load(Ordering::Relaxed),
        });
        if kind == ZERO_MANY {
            if !(segments.clone()).all(|range| is_inside(range.addr, range.len.into())) {
                return Err(CmdError::Range.permanent());
            }
            segments.for_each(|range| backing.zero(range.addr, range.len.into()));
            return Ok(());
        }
        let at = place.at.load(Ordering::Relaxed);
        let len = place.len.load(Ordering::Relaxed);
        if !is_inside(at, len) {
            return Err(CmdError::Range.permanent());
        }
        if kind == ZERO {
            backing.zero(at, len);
            return Ok(());
        }
        let mut at = at;
        let shifts = backing.device().config.holes == Holes::Shifted;
        for segment in segments {
            match kind {
                READ if segment.is_hole() && shifts => continue,
                READ if segment.is_hole() => {}
                READ => backing.read(at, segment),
                _ => backing.write(at, segment),
            }
            at = at.saturating_add(u64::from(segment.len));
        }
        Ok(())
    }
}

/// `blocks` blocks in bytes; `None`: more than there can be.
fn bytes(blocks: u64, shift: u32) -> Option<u64> {
    blocks.checked_mul(1u64.checked_shl(shift)?)
}

/// The tag in a word.
pub(crate) fn tag_of(word: u32) -> usize {
    (word & 0xffff) as usize
}
