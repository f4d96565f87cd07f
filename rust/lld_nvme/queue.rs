// SPDX-License-Identifier: GPL-2.0
//! An I/O queue pair as a hal queue.
//!
//! The submission queue has one entry more than there are tags, so it is never full, and neither is
//! the completion queue. Entries are written once, at the staged tail; the doorbell moves when they
//! are issued.

mod completion;
mod whole;
mod withdraw;

pub use self::completion::NvmeDrain;
use crate::cqe::{self, Cids};
use crate::data::Layout;
use crate::doorbell::{Doorbells, Shadow};
use crate::interrupt;
use crate::lists::Lists;
use crate::slot::Slot;
use crate::status::RetryDelays;
use crate::{command, regs, status};
use core::fmt;
use hal::{
    Bound, CmdError, Command, Completed, Detached, DmaMem, Error, Event, Free, Mmio, Platform,
    Queue, Segment, Tag, TagBatch, TagTable, Unbound,
};

/// What makes a queue, decided by the control path.
pub(crate) struct Plan<D, M> {
    /// Queue identifier, from 1.
    pub(crate) qid: u16,
    /// Tags; entries are one more.
    pub(crate) tags: u16,
    /// How their CIDs are made.
    pub(crate) cids: Cids,
    /// Log2 of the bytes from one submission queue entry to the next.
    pub(crate) sqe_shift: u32,
    /// How data is described.
    pub(crate) layout: Layout,
    /// Bytes from one doorbell to the next.
    pub(crate) stride: usize,
    /// The registers.
    pub(crate) mmio: M,
    /// Shadow doorbells, where the controller has them.
    pub(crate) shadow: Option<Shadow<D>>,
    /// After how long it wants what failed to be tried again.
    pub(crate) delays: RetryDelays,
    /// The vector to unmask after a drain: a pin that [`interrupt`] masks.
    pub(crate) pin: Option<u16>,
}

/// A submission queue and its completion queue.
///
/// # Invariants
/// `slots` holds for each slot the CID of its next or present command; only the drainer changes it,
/// when the command is proven finished, so no earlier completion can be taken for a later
/// command's.
pub struct NvmeQueue<P: Platform, M: Mmio> {
    tags: TagTable<P>,
    slots: P::Table<Slot>,
    numbers: Cids,
    sqe_shift: u32,
    sq: P::Dma,
    cq: P::Dma,
    lists: Lists<P>,
    layout: Layout,
    doorbells: Doorbells<P::Dma, M>,
    tail_doorbell: usize,
    head_doorbell: usize,
    qid: u16,
    entries: u16,
    delays: RetryDelays,
    pin: Option<u16>,
}

/// The issuer's side.
#[derive(Debug, Default)]
pub struct NvmeIssue {
    /// The tail that the controller knows.
    tail: u16,
    /// Where the next entry goes.
    next: u16,
}

impl<P: Platform, M: Mmio> NvmeQueue<P, M> {
    /// Memory and tables for a queue; the controller does not know it yet. `page` is the alignment
    /// that it needs. Sleeps.
    pub(crate) fn new(platform: &P, plan: Plan<P::Dma, M>, page: usize) -> Result<Self, Error> {
        let entries = plan.tags.checked_add(1).ok_or(Error::Invalid)?;
        let memory = |entry: usize| {
            let bytes = usize::from(entries).saturating_mul(entry);
            crate::admin::paged(platform, bytes, page)
        };
        Ok(Self {
            tags: TagTable::new(platform, plan.tags)?,
            slots: platform.table(usize::from(plan.tags), |at| {
                // CAST: at most 65,535 tags.
                Slot::new(plan.cids.of(at as u16))
            })?,
            numbers: plan.cids,
            sqe_shift: plan.sqe_shift,
            sq: memory(1usize.wrapping_shl(plan.sqe_shift))?,
            cq: memory(cqe::BYTES)?,
            lists: Lists::new(platform, plan.tags, plan.layout.list_bytes())?,
            layout: plan.layout,
            doorbells: Doorbells::new(plan.mmio, plan.shadow),
            tail_doorbell: regs::sq_doorbell(plan.qid, plan.stride),
            head_doorbell: regs::cq_doorbell(plan.qid, plan.stride),
            qid: plan.qid,
            entries,
            delays: plan.delays,
            pin: plan.pin,
        })
    }

    /// Handles of the submission and the completion queue's memory.
    pub(crate) fn memory(&self) -> (P::Dma, P::Dma)
    where
        P::Dma: Clone,
    {
        (self.sq.clone(), self.cq.clone())
    }

    /// Entries of each.
    pub(crate) fn entries(&self) -> u16 {
        self.entries
    }

    /// By which Abort names the command of `tag`: queue and command identifier. When Abort gets
    /// there the command may have ended.
    pub(crate) fn name_of(&self, tag: usize) -> Option<(u16, u16)> {
        Some((self.qid, self.slots.get(tag)?.cid()))
    }

    /// Where submission queue entry `index` is.
    #[inline]
    fn entry(&self, index: u16) -> usize {
        usize::from(index).wrapping_shl(self.sqe_shift)
    }

    #[inline]
    fn after(&self, at: u16) -> u16 {
        let next = at.wrapping_add(1);
        if next == self.entries {
            0
        } else {
            next
        }
    }
}

impl<P: Platform, M: Mmio> Queue for NvmeQueue<P, M> {
    type Issue = NvmeIssue;
    type Drain = NvmeDrain;

    fn capacity(&self) -> usize {
        self.tags.capacity()
    }

    /// Its doorbell costs next to nothing: one posted write for any number of commands, often none,
    /// and no reads. A command that is deferred is delayed by as much.
    fn batch(&self) -> usize {
        1
    }

    #[inline]
    fn get_free_tags(&self, _side: &mut NvmeIssue, want: usize, tags: &mut TagBatch<Free>) {
        self.tags.take(want, tags);
    }

    #[inline]
    fn bind_tag_cmd(
        &self,
        side: &mut NvmeIssue,
        tag: Tag<Free>,
        cmd: &Command,
        mut data: impl Iterator<Item = Result<Segment, CmdError>>,
    ) -> Result<Tag<Bound>, Unbound> {
        let index = tag.index();
        let Some(slot) = self.slots.get(index) else {
            let why = CmdError::Invalid;
            return Err(Unbound { tag, why });
        };
        let mut list = self.lists.of(index);
        match command::encode(cmd, slot.cid(), &self.layout, &mut data, &mut list) {
            Ok(entry) => {
                slot.keep(list.keep());
                let at = self.entry(side.next);
                self.sq.write_words(at, entry);
                side.next = self.after(side.next);
                Ok(tag.bind())
            }
            Err(why) => Err(Unbound { tag, why }),
        }
    }

    #[inline]
    fn issue_tags(&self, side: &mut NvmeIssue, tags: &mut TagBatch<Bound>) -> usize {
        let mut tail = side.tail;
        for tag in tags.drain() {
            self.tags.issue(tag);
            tail = self.after(tail);
        }
        if tail == side.tail {
            return 0;
        }
        let old = core::mem::replace(&mut side.tail, tail);
        self.doorbells.ring(self.tail_doorbell, old, tail)
    }

    fn unget_tags(&self, side: &mut NvmeIssue, tags: &mut TagBatch<Free>) {
        if side.next != side.tail {
            let mut kept = TagBatch::default();
            for tag in tags.drain() {
                self.withdraw(side, &tag);
                // As many as there were.
                let _ = kept.push(tag);
            }
            *tags = kept;
        }
        self.tags.release(tags);
    }

    #[inline]
    fn check_event(&self, side: &mut NvmeDrain) -> bool {
        self.peek(side).is_some()
    }

    #[inline(always)]
    fn fetch_event(&self, side: &mut NvmeDrain) -> Option<Event> {
        let (tag, entry) = self.fetch(side)?;
        let outcome = status::outcome(entry.status(), &self.delays);
        Some(Event { tag, outcome })
    }

    #[inline]
    fn detach_tag_cmd(&self, _side: &mut NvmeDrain, tag: Tag<Completed>) -> Tag<Detached> {
        tag.detach()
    }

    #[inline(always)]
    fn release_tags(&self, side: &mut NvmeDrain, tags: &mut TagBatch<Detached>) -> usize {
        let mut written = self.acknowledge(side);
        self.tags.release(tags);
        if let Some(vector) = self.pin {
            interrupt::unmask(self.doorbells.mmio(), vector);
            written = written.wrapping_add(1);
        }
        written
    }

    fn violations(&self, side: &NvmeDrain) -> u32 {
        side.violations
    }

    fn silence(
        &self,
        issue: &NvmeIssue,
        drain: &NvmeDrain,
        to: &mut dyn fmt::Write,
    ) -> fmt::Result {
        write!(to, "{}", self.last_words(issue.tail, drain))
    }

    fn reap_tag(&self, _side: &mut NvmeDrain) -> Option<Event> {
        let number = self.tags.first_issued()?;
        let tag = self.tags.complete(number)?;
        if let Some(slot) = self.slots.get(usize::from(number)) {
            self.end(slot);
        }
        let outcome = Err(CmdError::Aborted.again());
        Some(Event { tag, outcome })
    }

    fn rewind(&self, issue: &mut NvmeIssue, drain: &mut NvmeDrain) {
        *issue = NvmeIssue::default();
        *drain = NvmeDrain::new();
        // No entry may look new.
        let bytes = usize::from(self.entries).saturating_mul(cqe::BYTES);
        self.cq.zero(0, bytes);
        for slot in self.slots.iter() {
            slot.end(slot.cid());
        }
        self.lists.rewind();
        self.tags.rewind();
    }
}
