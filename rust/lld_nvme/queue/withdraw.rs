// SPDX-License-Identifier: GPL-2.0
//! Bound commands that are taken back before they are issued.

use super::{NvmeIssue, NvmeQueue};
use crate::command;
use hal::{DmaMem, Free, Mmio, Platform, Tag};

impl<P: Platform, M: Mmio> NvmeQueue<P, M> {
    /// Takes the entry of `tag`, which was bound, and is given back unissued, out of the staged
    /// ones; its list is free.
    #[cold]
    pub(super) fn withdraw(&self, side: &mut NvmeIssue, tag: &Tag<Free>) {
        if let Some(slot) = self.slots.get(tag.index()) {
            self.lists.give_back(slot.end(slot.cid()));
        }
        let mut from = side.tail;
        let mut to = side.tail;
        while from != side.next {
            let at = self.entry(from);
            // CAST: bits 31:16 of the first word are the CID.
            let cid = (self.sq.read64(at) >> 16) as u16;
            if self.numbers.tag_of(cid) != tag.number() {
                if from != to {
                    for word in (0..command::BYTES).step_by(8) {
                        let value = self.sq.read64(at.wrapping_add(word));
                        let place = self.entry(to);
                        self.sq.write64(place.wrapping_add(word), value);
                    }
                }
                to = self.after(to);
            }
            from = self.after(from);
        }
        side.next = to;
    }
}
