// SPDX-License-Identifier: GPL-2.0
//! What a request is made of: bios, and the pieces of memory or of the disk that those are about.
//!
//! The kernel crate (Linux 7.2 and 7.3) has neither bios nor their vectors.

use crate::compat::zeroed;
use crate::shims;
use core::marker::PhantomData;
use core::ptr::{null, NonNull};
use hal::{CmdError, Segment};
use kernel::bindings;

/// The bios of a request, from the first to the last: each with where it begins.
///
/// # Invariants
/// `bio` is null or one of a request's, which is owned for `'a`.
pub(crate) struct Bios<'a> {
    bio: *const bindings::bio,
    alive: PhantomData<&'a bindings::bio>,
}

impl Bios<'_> {
    /// `bio` and those that follow, of which the invariant holds.
    #[inline(always)]
    pub(super) fn new(bio: *const bindings::bio) -> Self {
        let alive = PhantomData;
        Self { bio, alive }
    }
}

impl Iterator for Bios<'_> {
    type Item = (NonNull<bindings::bio>, bindings::bvec_iter);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let bio = NonNull::new(self.bio.cast_mut())?;
        // SAFETY: by the invariant; nobody changes them while the request is owned.
        let (next, begin) = unsafe { ((*bio.as_ptr()).bi_next, (*bio.as_ptr()).bi_iter) };
        self.bio = next;
        Some((bio, begin))
    }
}

/// The ranges of a discard, as [`hal::Command`] wants them.
pub(crate) struct Ranges<'a> {
    bios: Bios<'a>,
    shift: u8,
}

impl<'a> Ranges<'a> {
    /// A range for each of `bios`, in blocks of a size of which `shift` is the power of two.
    #[inline(always)]
    pub(super) fn new(bios: Bios<'a>, shift: u8) -> Self {
        Self { bios, shift }
    }
}

impl Iterator for Ranges<'_> {
    type Item = Result<Segment, CmdError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (_, begin) = self.bios.next()?;
        let shift = u32::from(self.shift);
        Some(Ok(Segment {
            addr: begin.bi_sector.wrapping_shr(shift.wrapping_sub(9)),
            len: begin.bi_size.wrapping_shr(shift),
        }))
    }
}

/// The data of a request as the CPU sees it, piece by piece.
pub(crate) struct Vecs<'a> {
    bios: Bios<'a>,
    /// Where it is; of no meaning while nothing is left of `at`.
    bio: *const bindings::bio,
    at: bindings::bvec_iter,
}

impl<'a> Vecs<'a> {
    /// The pieces of all of `bios`.
    #[inline(always)]
    pub(crate) fn new(bios: Bios<'a>) -> Self {
        Self {
            bios,
            bio: null(),
            at: zeroed(),
        }
    }
}

impl Iterator for Vecs<'_> {
    type Item = Segment;

    #[inline(always)]
    fn next(&mut self) -> Option<Segment> {
        while self.at.bi_size == 0 {
            let (bio, begin) = self.bios.next()?;
            self.bio = bio.as_ptr();
            self.at = begin;
        }
        let mut seg = shims::hiops_segment { addr: 0, len: 0 };
        // SAFETY: a bio of the request's, which is owned, and a place in it that is not its end.
        unsafe { shims::hiops_vec_next(self.bio, &mut self.at, &mut seg) };
        Some(Segment {
            addr: seg.addr,
            len: seg.len,
        })
    }
}
