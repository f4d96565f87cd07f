// SPDX-License-Identifier: GPL-2.0
//! Requests in a row, linked by the field that blk-mq has for it (`rq_next`).
//!
//! `kernel::block::mq` (Linux 7.2 and 7.3) has no lists of requests.

use super::{Rq, RqRef};
use crate::blk::lane::Lane;
use core::marker::PhantomData;
use core::ptr::{null_mut, NonNull};
use kernel::bindings;

/// Requests that the chain owns. Whoever has it takes all of them out.
///
/// # Invariants
/// The first one, if there is one, owns the next, and so on: their links are set.
#[derive(Default)]
pub(crate) struct Chain(Option<Rq>);

impl Chain {
    /// One with nothing in it.
    pub(crate) const EMPTY: Self = Self(None);

    /// Takes all of the requests of `list`.
    ///
    /// # Safety
    /// They are given to the caller, each as [`Rq::from_raw`] wants it.
    #[inline(always)]
    pub(crate) unsafe fn take(list: &mut bindings::rq_list) -> Self {
        let head = list.head;
        (list.head, list.tail) = (null_mut(), null_mut());
        // INVARIANT: a list of blk-mq is linked so, and ends with null.
        Self(NonNull::new(head).map(|rq| Rq { rq }))
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Puts `rq` before the others.
    #[inline(always)]
    pub(crate) fn push(&mut self, rq: Rq) {
        rq.view().fields().link.set(self.0.take());
        self.0 = Some(rq);
    }

    /// Takes the first one out.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Rq> {
        let rq = self.0.take()?;
        self.0 = rq.view().fields().link.take();
        Some(rq)
    }

    /// Looks at them, from the first to the last.
    #[inline(always)]
    pub(crate) fn iter(&self) -> Iter<'_> {
        Iter::new(self.0.as_ref().map(|rq| rq.rq))
    }
}

/// Requests of a row, one after the other.
///
/// # Invariants
/// `next` is in a row that is not changed for `'a`, and that ends with null.
pub(crate) struct Iter<'a> {
    next: Option<NonNull<bindings::request>>,
    alive: PhantomData<&'a Chain>,
}

impl<'a> Iter<'a> {
    /// From `next` on, of which the invariant holds.
    #[inline(always)]
    pub(super) fn new(next: Option<NonNull<bindings::request>>) -> Self {
        let alive = PhantomData;
        Self { next, alive }
    }

    #[inline(always)]
    fn peek(&self) -> Option<RqRef<'a>> {
        // INVARIANT: owned by the row, which is there for `'a`.
        self.next.map(RqRef::of)
    }

    /// The lane of the next one, and how many in a row are on it, which are passed.
    #[inline(always)]
    pub(crate) fn run(&mut self) -> Option<(&'a Lane, usize)> {
        let lane = self.next()?.lane();
        let mut length = 1usize;
        while (self.peek()).is_some_and(|rq| core::ptr::eq(rq.lane(), lane)) {
            self.next();
            length = length.wrapping_add(1);
        }
        Some((lane, length))
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = RqRef<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<RqRef<'a>> {
        let rq = self.peek()?;
        self.next = NonNull::new(rq.fields().next);
        Some(rq)
    }
}
