// SPDX-License-Identifier: GPL-2.0
//! A completion queue entry's second half (Base 2.0 section 3.3.3.2): one 64-bit word that says
//! everything an I/O command needs.
//!
//! ```text
//!  63      49   48   47   32 31    16 15      0
//! +----------+-------+-------+--------+---------+
//! |  status  | phase |  CID  |  SQID  |  SQHD   |
//! +----------+-------+-------+--------+---------+
//! ```

/// Bits of the CID that are the tag; those above are its generation.
pub(crate) const TAG_BITS: u32 = 12;
/// The most tags a queue can have with such CIDs.
pub(crate) const TAGS_MAX: u16 = 1 << TAG_BITS;
/// Bytes of an entry.
pub(crate) const BYTES: usize = 16;
/// Where the second half is.
pub(crate) const SECOND_HALF: usize = 8;

/// Where entry `index` is.
#[inline]
pub(crate) const fn offset(index: u16) -> usize {
    (index as usize) << 4
}

/// The second half, read once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cqe(pub(crate) u64);

impl Cqe {
    /// Toggles with each pass over the queue; an entry whose phase is the expected one is new.
    #[inline]
    pub(crate) const fn phase(self) -> bool {
        self.0 & (1 << 48) != 0
    }

    /// Which command.
    #[inline]
    pub(crate) const fn cid(self) -> u16 {
        // CAST: bits 47:32.
        (self.0 >> 32) as u16
    }

    /// Status code, type and flags, 15 bits, without the phase.
    #[inline]
    pub(crate) const fn status(self) -> u16 {
        // CAST: bits 63:49.
        (self.0 >> 49) as u16
    }

    /// The submission queue that the command came from.
    #[inline]
    pub(crate) const fn sq_id(self) -> u16 {
        // CAST: bits 31:16.
        (self.0 >> 16) as u16
    }

    /// Where the controller's head in that queue is.
    #[inline]
    pub(crate) const fn sq_head(self) -> u16 {
        // CAST: bits 15:0.
        self.0 as u16
    }

    /// Whether it can be an answer to a command of queue `qid` with `entries` entries; the CID is
    /// still to be compared.
    #[inline]
    pub(crate) const fn is_from(self, qid: u16, entries: u16) -> bool {
        self.sq_id() == qid && self.sq_head() < entries
    }
}

/// How the CIDs of a queue's commands are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cids {
    /// The CID of the first tag: those below it are others'.
    first: u16,
    /// What a slot's CID grows by from one command to the next.
    generation: u16,
}

impl Cids {
    /// From `first` on; with `generations`, unless the device takes small ones only.
    pub(crate) const fn new(first: u16, generations: bool) -> Self {
        let generation = if generations { TAGS_MAX } else { 0 };
        Self { first, generation }
    }

    /// The first CID of slot `tag`.
    pub(crate) const fn of(self, tag: u16) -> u16 {
        tag.wrapping_add(self.first)
    }

    /// The slot of `cid`; of one that is nobody's here, no slot's number.
    #[inline]
    pub(crate) const fn tag_of(self, cid: u16) -> u16 {
        (cid & (TAGS_MAX - 1)).wrapping_sub(self.first)
    }

    /// The CID of the next command in the slot of `cid`.
    #[inline]
    pub(crate) const fn next(self, cid: u16) -> u16 {
        cid.wrapping_add(self.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_specification_has_them() {
        let cqe = Cqe((0x8281 << 49) | (1 << 48) | (0x7123 << 32) | (5 << 16) | 0x00fe);
        assert!(cqe.phase());
        assert_eq!((cqe.cid(), cqe.status()), (0x7123, 0x0281));
        assert_eq!((cqe.sq_id(), cqe.sq_head()), (5, 0xfe));
        assert!(cqe.is_from(5, 0xff) && !cqe.is_from(5, 0xfe) && !cqe.is_from(4, 0xff));
    }

    #[test]
    fn generations_wrap_within_the_slot() {
        let cids = Cids::new(0, true);
        let mut cid = cids.of(0xfff);
        for at in 0..16 {
            assert_eq!(cids.tag_of(cid), 0xfff);
            assert_eq!(cid, (at << 12) | 0xfff);
            cid = cids.next(cid);
        }
        assert_eq!(cid, 0xfff);
    }

    #[test]
    fn small_cids_begin_where_they_are_told_and_stay() {
        let cids = Cids::new(32, false);
        assert_eq!((cids.of(0), cids.of(254)), (32, 286));
        assert_eq!((cids.tag_of(32), cids.tag_of(286)), (0, 254));
        assert_eq!(cids.next(286), 286);
        // An admin command's.
        assert!(cids.tag_of(31) >= TAGS_MAX);
    }
}
