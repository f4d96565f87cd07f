// SPDX-License-Identifier: GPL-2.0
//! An I/O queue pair as a hal queue: commands go into its submission queue, completions come out of
//! its completion queue, and doorbells tell the controller how far either has got.
//!
//! # The submission queue
//! It has one entry more than there are tags, so it is never full, and neither is the completion
//! queue. An entry is written once, at the staged tail; the doorbell moves when it is issued. A
//! bound command that is given back instead is taken out of the staged entries.
//!
//! # The completion queue
//! An entry is new if it has the phase of the present pass. It ends a command only if its CID is
//! that of a slot whose tag the device has; any other is counted and ends nothing. The controller
//! learns that entries were taken once for a batch of them, by the head doorbell.
//!
//! # Slots
//! What the queue knows of each tag: the CID of its command, and where that has its list.
//!
//! ```text
//!  31     16 15      0
//! +---------+---------+
//! |  page   |   CID   |
//! +---------+---------+
//! ```
//!
//! # Doorbells
//! They are registers (PCIe Transport 1.0 section 3.1.2) or, where the controller has them, words
//! in memory that spare most of the register writes (Base 2.0 section 5.8 and annex B.5).

use cell::sync::{fence, AtomicU32, Ordering};
use core::fmt;
use hal::{
    Bound, CmdError, Command, Completed, Detached, DmaMem, Error, Event, Free, FreeTags, Mmio,
    Platform, Queue, Segment, Tag, TagBatch, TagTable, Unbound,
};

use crate::cqe::{AdminReply, Cids, Cqe, RetryDelays};
use crate::regs::DOORBELLS;
use crate::sqe::{Layout, Lists, Page, Sqe, SQE_BYTES};
use crate::timeout_report::QueueReport;
use crate::{cqe, regs, sqe, timeout_report};

/// A submission queue and its completion queue.
///
/// # Invariants
/// `slots` holds for each slot the CID of its next or present command; only the drainer changes it,
/// when the command is proven finished, so no earlier completion can be taken for a later
/// command's.
pub struct NvmeQueue<P: Platform, M: Mmio> {
    /// Which commands are with the device.
    tags: TagTable<P>,
    slots: P::Table<CidSlot>,
    /// How CIDs are made.
    numbers: Cids,
    /// Log2 of the bytes from one submission queue entry to the next.
    sqe_shift: u32,
    sq: P::Dma,
    cq: P::Dma,
    /// Memory for PRP and SGL lists.
    lists: Lists<P>,
    /// How data is described.
    layout: Layout,
    doorbells: Doorbells<P::Dma, M>,
    /// Where its two doorbells are, counted from the first of all.
    tail_doorbell: usize,
    head_doorbell: usize,
    /// Queue identifier, of both queues.
    qid: u16,
    /// Entries of each queue.
    entries: u16,
    /// After how long the controller wants what failed to be tried again.
    delays: RetryDelays,
    /// The vector to unmask after a drain: a pin that the interrupt handler masks.
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

/// The drainer's side: the completion queue's head.
#[derive(Debug)]
pub struct NvmeDrain {
    /// The next entry to look at.
    head: u16,
    /// Its phase when it is new.
    phase: bool,
    /// The head that the controller knows.
    rung: u16,
    /// Completions that answered nothing.
    violations: u32,
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

/// A slot. Whoever has its tag changes it: the issuer until the command is issued, the drainer from
/// when it is proven finished; the tag table's Acquire and Release are between them.
#[derive(Debug)]
struct CidSlot(AtomicU32);

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
    fn get_free_tags(&self, _side: &mut NvmeIssue, want: usize) -> FreeTags {
        self.tags.take(want)
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
        match sqe::encode(cmd, slot.cid(), &self.layout, &mut data, &mut list) {
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

    #[inline(always)]
    fn bind_one_segment(
        &self,
        side: &mut NvmeIssue,
        tag: Tag<Free>,
        cmd: &Command,
        data: Segment,
    ) -> Result<Tag<Bound>, Unbound> {
        let slot = self.slots.get(tag.index());
        let entry = slot.and_then(|slot| sqe::encode_one(cmd, slot.cid(), &self.layout, data));
        let Some(entry) = entry else {
            // A copy: the command itself can then stay in registers.
            let cmd = *cmd;
            return self.bind_with_list(side, tag, &cmd, data);
        };
        let at = self.entry(side.next);
        self.sq.write_words(at, entry);
        side.next = self.after(side.next);
        Ok(tag.bind())
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

    #[inline(always)]
    fn issue_tag(&self, side: &mut NvmeIssue, tag: Tag<Bound>) -> usize {
        self.tags.issue(tag);
        let tail = self.after(side.tail);
        let old = core::mem::replace(&mut side.tail, tail);
        self.doorbells.ring(self.tail_doorbell, old, tail)
    }

    fn unget_tags(&self, side: &mut NvmeIssue, tags: &mut TagBatch<Free>) {
        if side.next != side.tail {
            let mut kept = TagBatch::default();
            for tag in tags.drain() {
                self.unstage(side, &tag);
                // As many as there were.
                let _ = kept.push(tag);
            }
            *tags = kept;
        }
        self.tags.put_back(tags);
    }

    #[inline]
    fn check_event(&self, side: &mut NvmeDrain) -> bool {
        self.peek(side).is_some()
    }

    #[inline(always)]
    fn fetch_event(&self, side: &mut NvmeDrain) -> Option<Event> {
        let (tag, entry) = self.fetch(side)?;
        let outcome = cqe::outcome(entry.status(), &self.delays);
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
            regs::unmask(self.doorbells.mmio(), vector);
            written = written.wrapping_add(1);
        }
        written
    }

    fn violations(&self, side: &NvmeDrain) -> u32 {
        side.violations
    }

    fn timeout_report(
        &self,
        issue: &NvmeIssue,
        drain: &NvmeDrain,
        to: &mut dyn fmt::Write,
    ) -> fmt::Result {
        write!(to, "{}", self.queue_report(issue.tail, drain))
    }

    fn reap_tag(&self, _side: &mut NvmeDrain) -> Option<Event> {
        let number = self.tags.first_issued()?;
        let tag = self.tags.complete(number)?;
        if let Some(slot) = self.slots.get(usize::from(number)) {
            self.end(slot);
        }
        let outcome = Err(CmdError::Aborted.retryable());
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

impl<P: Platform, M: Mmio> NvmeQueue<P, M> {
    /// Binds a command whose one segment the entry alone may not say.
    #[cold]
    fn bind_with_list(
        &self,
        side: &mut NvmeIssue,
        tag: Tag<Free>,
        cmd: &Command,
        data: Segment,
    ) -> Result<Tag<Bound>, Unbound> {
        self.bind_tag_cmd(side, tag, cmd, core::iter::once(Ok(data)))
    }

    /// Where submission queue entry `index` is.
    #[inline]
    fn entry(&self, index: u16) -> usize {
        usize::from(index).wrapping_shl(self.sqe_shift)
    }

    /// The index that follows `at`, in either queue.
    #[inline]
    fn after(&self, at: u16) -> u16 {
        let next = at.wrapping_add(1);
        if next == self.entries {
            0
        } else {
            next
        }
    }

    /// The index before `at`, in either queue.
    fn before(&self, at: u16) -> u16 {
        at.checked_sub(1).unwrap_or(self.entries.saturating_sub(1))
    }

    /// Takes the entry of `tag`, which was bound, and is given back unissued, out of the staged
    /// ones; its list is free.
    #[cold]
    fn unstage(&self, side: &mut NvmeIssue, tag: &Tag<Free>) {
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
                    for word in (0..SQE_BYTES).step_by(8) {
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

    /// Takes the next completion: whose it is, and its entry.
    #[inline(always)]
    fn fetch(&self, side: &mut NvmeDrain) -> Option<(Tag<Completed>, Cqe)> {
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

    /// The entry at the head, if the controller has written it since the last pass.
    #[inline]
    fn peek(&self, side: &NvmeDrain) -> Option<Cqe> {
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
    fn end(&self, slot: &CidSlot) {
        let page = slot.end(self.numbers.next(slot.cid()));
        if page != Page::default() {
            self.lists.give_back(page);
        }
    }

    /// Tells the controller of the head. Returns how many registers were written.
    #[inline(always)]
    fn acknowledge(&self, side: &mut NvmeDrain) -> usize {
        if side.head == side.rung {
            return 0;
        }
        let old = core::mem::replace(&mut side.rung, side.head);
        self.doorbells.ring(self.head_doorbell, old, side.head)
    }
}

impl CidSlot {
    /// One whose first command has this CID.
    fn new(cid: u16) -> Self {
        Self(AtomicU32::new(u32::from(cid)))
    }

    /// The CID of its next or present command.
    #[inline]
    fn cid(&self) -> u16 {
        // CAST: bits 15:0.
        self.0.load(Ordering::Relaxed) as u16
    }

    /// Its command has its list in `page`. By the issuer.
    #[inline]
    fn keep(&self, page: Page) {
        if page != Page::default() {
            let cid = u32::from(self.cid());
            (self.0).store(cid | (u32::from(page.0) << 16), Ordering::Relaxed);
        }
    }

    /// Its command has ended, or was never issued: the next one has this CID, and no page. Returns
    /// where the list of the old one was.
    #[inline]
    fn end(&self, cid: u16) -> Page {
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(u32::from(cid), Ordering::Relaxed);
        // CAST: bits 31:16.
        Page((before >> 16) as u16)
    }
}

/// Shadow doorbells of all queues: as many bytes of values as there are of doorbells, then as many
/// of EventIdx.
#[derive(Clone)]
pub(crate) struct Shadow<D> {
    /// Both buffers.
    pub(crate) memory: D,
    /// Where the EventIdx buffer begins; also the length of each.
    pub(crate) events: usize,
}

/// What a queue rings.
struct Doorbells<D, M> {
    mmio: M,
    shadow: Option<Shadow<D>>,
}

impl<D: DmaMem, M: Mmio> Doorbells<D, M> {
    fn new(mmio: M, shadow: Option<Shadow<D>>) -> Self {
        Self { mmio, shadow }
    }

    /// The registers, for the interrupt mask.
    fn mmio(&self) -> &M {
        &self.mmio
    }

    /// Moves the doorbell at byte `at` of the doorbells from `old` to `new`. Returns how many
    /// registers were written: 0 or 1.
    #[inline]
    fn ring(&self, at: usize, old: u16, new: u16) -> usize {
        if let Some(shadow) = &self.shadow {
            // The entries are there before the doorbell that announces them.
            fence(Ordering::Release);
            shadow.memory.write32(dword(at), u32::from(new));
            // Either this CPU sees the EventIdx that the device wrote before it looked for the last
            // time, or the device sees the value.
            fence(Ordering::SeqCst);
            let event = (shadow.memory).read32(dword(at.wrapping_add(shadow.events)));
            // CAST: an index is 16 bits; what a device wrote above them changes nothing.
            if !crossed(event as u16, old, new) {
                return 0;
            }
        }
        self.mmio
            .write32(dword(DOORBELLS.wrapping_add(at)), u32::from(new));
        1
    }
}

/// Where the dword of byte `at` begins, which is there: a doorbell is aligned. Memory and registers
/// that see so need not ask.
#[inline(always)]
const fn dword(at: usize) -> usize {
    at & !3
}

/// The EventIdx rule: whether moving from `old` to `new` passed `event`, at which the device wants
/// the doorbell.
///
/// In 16-bit arithmetic, which also holds for a queue index that wraps earlier: the values it
/// leaves out are passed at once.
#[inline]
const fn crossed(event: u16, old: u16, new: u16) -> bool {
    new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
}

impl<P: Platform, M: Mmio> NvmeQueue<P, M> {
    /// Writes `sqe`, whose CID is filled in, where the device will look for it. `None`: the tag is
    /// none of this queue.
    pub(crate) fn bind_sqe(
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

    /// By which Abort names the command of `tag`: queue and command identifier. When Abort gets
    /// there the command may have ended.
    pub(crate) fn name_of(&self, tag: usize) -> Option<(u16, u16)> {
        Some((self.qid, self.slots.get(tag)?.cid()))
    }

    /// The queue as it is, for the log; `tail`: of which the controller knows.
    fn queue_report(&self, tail: u16, side: &NvmeDrain) -> QueueReport {
        let second_half = |at: u16| Cqe(self.cq.read64(cqe::offset(at) | cqe::SECOND_HALF));
        let last = second_half(self.before(side.head));
        QueueReport {
            qid: self.qid,
            tail,
            fetched: timeout_report::fetched(last, side.head, side.phase),
            head: side.head,
            phase: side.phase,
            entry: second_half(side.head),
        }
    }
}

/// What makes a queue, decided by the control path.
pub(crate) struct QueueParts<D, M> {
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
    /// The vector to unmask after a drain: a pin that the interrupt handler masks.
    pub(crate) pin: Option<u16>,
}

impl<P: Platform, M: Mmio> NvmeQueue<P, M> {
    /// Memory and tables for a queue; the controller does not know it yet. `page` is the alignment
    /// that it needs. Sleeps.
    pub(crate) fn new(
        platform: &P,
        plan: QueueParts<P::Dma, M>,
        page: usize,
    ) -> Result<Self, Error> {
        let entries = plan.tags.checked_add(1).ok_or(Error::Invalid)?;
        let memory = |entry: usize| {
            let bytes = usize::from(entries).saturating_mul(entry);
            paged(platform, bytes, page)
        };
        Ok(Self {
            tags: TagTable::new(platform, plan.tags)?,
            slots: platform.table(usize::from(plan.tags), |at| {
                // CAST: at most 65,535 tags.
                CidSlot::new(plan.cids.of(at as u16))
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
}

/// DMA memory of at least `bytes`, whole pages of `page` bytes (a power of two) at a page's
/// boundary.
pub(crate) fn paged<P: Platform>(platform: &P, bytes: usize, page: usize) -> Result<P::Dma, Error> {
    let mask = page.wrapping_sub(1);
    let memory = platform.dma(bytes.saturating_add(mask) & !mask)?;
    if memory.bus_addr() & mask as u64 != 0 {
        // This machine's pages are smaller than the controller's smallest.
        return Err(Error::Unsupported);
    }
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule, step by step: some value in `old..new` of a ring of `entries` is `event`.
    fn passes(event: u16, old: u16, new: u16, entries: u16) -> bool {
        let mut at = old;
        while at != new {
            if at == event {
                return true;
            }
            at = (at + 1) % entries;
        }
        false
    }

    #[test]
    fn crossing_agrees_with_walking_the_ring() {
        for entries in [2, 3, 8, 13] {
            for (old, new, event) in (0..entries)
                .flat_map(|old| (0..entries).map(move |new| (old, new)))
                .flat_map(|(old, new)| (0..entries).map(move |event| (old, new, event)))
            {
                assert_eq!(
                    crossed(event, old, new),
                    passes(event, old, new, entries),
                    "event {event}, from {old} to {new} of {entries}"
                );
            }
        }
    }
}
