// SPDX-License-Identifier: GPL-2.0
//! The completion queue: which entries are new, whose command each proves finished, and how the
//! controller learns that they were taken.

use super::NvmeQueue;
use crate::cqe::{self, Cqe};
use crate::lists::Page;
use crate::silence::{self, Silence};
use crate::slot::Slot;
use cell::sync::{fence, Ordering};
use hal::{Completed, DmaMem, Mmio, Platform, Tag};

/// The drainer's side: the completion queue's head.
#[derive(Debug)]
pub struct NvmeDrain {
    /// The next entry to look at.
    pub(super) head: u16,
    /// Its phase when it is new.
    phase: bool,
    /// The head that the controller knows.
    rung: u16,
    /// Completions that answered nothing.
    pub(super) violations: u32,
}

impl NvmeDrain {
    pub(crate) fn new() -> Self {
        Self {
            head: 0,
            phase: true,
            rung: 0,
            violations: 0,
        }
    }
}

impl<P: Platform, M: Mmio> NvmeQueue<P, M> {
    pub(super) fn before(&self, at: u16) -> u16 {
        at.checked_sub(1).unwrap_or(self.entries.saturating_sub(1))
    }

    /// The entry at the head, if the controller has written it since the last pass.
    #[inline]
    pub(super) fn peek(&self, side: &NvmeDrain) -> Option<Cqe> {
        let at = cqe::offset(side.head) | cqe::SECOND_HALF;
        let entry = Cqe(self.cq.read64(at));
        (entry.phase() == side.phase).then_some(entry)
    }

    /// Whose completion `entry` is: the tag, if the device has it.
    #[inline]
    fn proven(&self, entry: Cqe) -> Option<Tag<Completed>> {
        if !entry.is_from(self.qid, self.entries) {
            return None;
        }
        let number = self.numbers.tag_of(entry.cid());
        let slot = self.slots.get(usize::from(number))?;
        if slot.cid() != entry.cid() {
            return None;
        }
        let tag = self.tags.complete(number)?;
        self.end(slot);
        Some(tag)
    }

    /// The command of `slot` has ended: from here on its CID answers nothing, and its list is free.
    #[inline]
    pub(super) fn end(&self, slot: &Slot) {
        let page = slot.end(self.numbers.next(slot.cid()));
        if page != Page::default() {
            self.lists.give_back(page);
        }
    }

    /// Takes the next completion: whose it is, and its entry.
    #[inline(always)]
    pub(super) fn fetch(&self, side: &mut NvmeDrain) -> Option<(Tag<Completed>, Cqe)> {
        // No further than once around, however fast a broken device writes.
        for _ in 0..self.entries {
            let entry = self.peek(side)?;
            // The data came before the entry that announces it.
            fence(Ordering::Acquire);
            side.head = self.after(side.head);
            side.phase ^= side.head == 0;
            if let Some(tag) = self.proven(entry) {
                return Some((tag, entry));
            }
            side.violations = side.violations.saturating_add(1);
        }
        None
    }

    /// Tells the controller of the head. Returns how many registers were written.
    #[inline(always)]
    pub(super) fn acknowledge(&self, side: &mut NvmeDrain) -> usize {
        if side.head == side.rung {
            return 0;
        }
        let old = core::mem::replace(&mut side.rung, side.head);
        self.doorbells.ring(self.head_doorbell, old, side.head)
    }

    /// The queue as it is, for the log; `tail`: of which the controller knows.
    pub(super) fn last_words(&self, tail: u16, side: &NvmeDrain) -> Silence {
        let second_half = |at: u16| Cqe(self.cq.read64(cqe::offset(at) | cqe::SECOND_HALF));
        let last = second_half(self.before(side.head));
        Silence {
            qid: self.qid,
            tail,
            fetched: silence::fetched(last, side.head, side.phase),
            head: side.head,
            phase: side.phase,
            entry: second_half(side.head),
        }
    }
}
