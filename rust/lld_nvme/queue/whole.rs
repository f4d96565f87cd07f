// SPDX-License-Identifier: GPL-2.0
//! Commands that come as whole submission queue entries, and all that their completions say.

use super::{NvmeDrain, NvmeIssue, NvmeQueue};
use crate::admin::AdminReply;
use crate::command::Sqe;
use crate::cqe;
use hal::{Bound, Completed, DmaMem, Free, Mmio, Platform, Tag};

impl<P: Platform, M: Mmio> NvmeQueue<P, M> {
    /// Writes `sqe`, whose CID is filled in, where the device will look for it. `None`: the tag is
    /// none of this queue.
    pub(crate) fn bind_entry(
        &self,
        side: &mut NvmeIssue,
        tag: Tag<Free>,
        mut sqe: Sqe,
    ) -> Option<Tag<Bound>> {
        let cid = self.slots.get(tag.index())?.cid();
        let [first, ..] = &mut sqe;
        *first = (*first & !(0xffff << 16)) | (u64::from(cid) << 16);
        self.sq.write_words(self.entry(side.next), sqe);
        side.next = self.after(side.next);
        Some(tag.bind())
    }

    /// Takes one completion, with the command's result and status.
    pub(crate) fn fetch_reply(&self, side: &mut NvmeDrain) -> Option<(Tag<Completed>, AdminReply)> {
        let (tag, entry) = self.fetch(side)?;
        // The device may not write it again before the head doorbell.
        let result = self.cq.read64(cqe::offset(self.before(side.head)));
        let status = entry.status();
        Some((tag, AdminReply { result, status }))
    }
}
