// SPDX-License-Identifier: GPL-2.0
//! The data path: the verbs of HIOPS (ATC '14, section 3.2) on one queue of a controller, and the
//! [`Command`] that one of its tags is bound to.

use core::fmt;

use crate::tag::{Bound, Completed, Detached, Free, FreeTags, Tag, TagBatch};
use crate::{CmdError, Outcome};

/// One completion, proven by the LLD to answer a command that it issued.
#[derive(Debug)]
#[must_use = "an event that is not detached is an I/O that never ends"]
pub struct Event {
    /// The slot that the device finished.
    pub tag: Tag<Completed>,
    /// How it ended.
    pub outcome: Outcome,
}

/// A tag that could not be bound comes back with the reason.
#[derive(Debug)]
pub struct Unbound {
    /// The slot, as free as before.
    pub tag: Tag<Free>,
    /// [`CmdError::NotReady`]: try again later (the data could not be mapped now). Anything else:
    /// this command fails with it.
    pub why: CmdError,
}

/// One issue/completion channel of a controller.
///
/// Nothing here sleeps, spins or allocates; all of it may be called from any context, interrupts
/// included. Who holds `&mut Issue` is the one issuer, who holds `&mut Drain` the one drainer; the
/// two run at once.
pub trait Queue: Send + Sync + 'static {
    /// What only the issuer touches (tail pointers, staged doorbells).
    type Issue: Send + 'static;
    /// What only the drainer touches (head pointers, phase).
    type Drain: Send + 'static;

    /// How many slots the queue has; tags are numbered below it.
    fn capacity(&self) -> usize;

    /// How many commands are worth a doorbell. With fewer the engine may defer it, as long as the
    /// device has others, or the threads that wait for them yield to other threads. 1: deferring
    /// gains nothing. Asked once, when the engine takes the queue over.
    fn batch(&self) -> usize;

    /// Up to `want` free slots, possibly none: "the device is busy" is an answer, not a wait. There
    /// may be more than it gives, and none only if there is none.
    fn get_free_tags(&self, side: &mut Self::Issue, want: usize) -> FreeTags;

    /// Writes `cmd` and its `data` where the device will look for them, without a doorbell.
    ///
    /// `data` yields the segments in order; an `Err` from it is passed on in [`Unbound`]. A slot
    /// that comes back, from here or by [`Queue::unget_tags`], leaves nothing behind.
    fn bind_tag_cmd(
        &self,
        side: &mut Self::Issue,
        tag: Tag<Free>,
        cmd: &Command,
        data: impl Iterator<Item = Result<Segment, CmdError>>,
    ) -> Result<Tag<Bound>, Unbound>;

    /// As [`Queue::bind_tag_cmd`], for a command whose data is one segment: what a driver does with
    /// fewer steps, as most commands are so.
    #[inline(always)]
    fn bind_one_segment(
        &self,
        side: &mut Self::Issue,
        tag: Tag<Free>,
        cmd: &Command,
        data: Segment,
    ) -> Result<Tag<Bound>, Unbound> {
        self.bind_tag_cmd(side, tag, cmd, core::iter::once(Ok(data)))
    }

    /// Whether any device of the kind takes blocks: else the engine has no code for that.
    const BLOCKS: bool = false;

    /// Whether the device takes commands in as blocks, one at a time ([`Queue::takes`]). It never
    /// changes.
    #[inline(always)]
    fn takes_blocks(&self) -> bool {
        Self::BLOCKS
    }

    /// How many of `staged` commands, at least one, the device takes in now: all of them, unless it
    /// takes blocks. What it does not take stays staged, and is offered again after the next drain:
    /// a device takes more in, once it does not take all, by what is released
    /// ([`Queue::release_tags`]), or by an interrupt of its own ([`Queue::hold`]).
    #[inline(always)]
    fn takes(&self, side: &Self::Issue, staged: usize) -> usize {
        let _ = side;
        staged
    }

    /// The device took none of `staged` commands. Where it would take them after a while, without
    /// any of its commands coming to an end, it is to interrupt then.
    fn hold(&self, side: &mut Self::Issue, staged: usize) {
        let _ = (side, staged);
    }

    /// Hands all of `tags` to the device, in the order in which they were bound, with as few
    /// register writes as the hardware allows for the whole batch. Returns how many it took (0 or
    /// more). `tags` is empty afterwards.
    fn issue_tags(&self, side: &mut Self::Issue, tags: &mut TagBatch<Bound>) -> usize;

    /// As [`Queue::issue_tags`], for one command: what a driver does with fewer steps, as most
    /// are issued by themselves.
    #[inline(always)]
    fn issue_tag(&self, side: &mut Self::Issue, tag: Tag<Bound>) -> usize {
        let mut tags = TagBatch::default();
        // It has room.
        let _ = tags.push(tag);
        self.issue_tags(side, &mut tags)
    }

    /// Gives unused slots back, on the issue side.
    fn unget_tags(&self, side: &mut Self::Issue, tags: &mut TagBatch<Free>);

    /// Whether a completion may be waiting: cheap, and from memory that the device writes wherever
    /// the hardware allows.
    fn check_event(&self, side: &mut Self::Drain) -> bool;

    /// Takes one completion. `None`: nothing more is there now. A completion that does not answer
    /// an issued command is counted ([`Queue::violations`]) and skipped, but no more of them in one
    /// call than the device can have written at once: then `None` as well.
    fn fetch_event(&self, side: &mut Self::Drain) -> Option<Event>;

    /// Tag and command part: the device is done with the command's memory.
    fn detach_tag_cmd(&self, side: &mut Self::Drain, tag: Tag<Completed>) -> Tag<Detached>;

    /// Ends a drain: the slots are free again, and the device learns which of its completions were
    /// taken. Called after every run of `fetch_event`, also with no tags; every interrupt leads to
    /// one, at once or by whoever holds the drain side then. Returns the number of register writes.
    ///
    /// The engine passes a `SeqCst` fence after this, and another before the `get_free_tags` that
    /// must not miss what came free; so the pool has to be made of the atomics of [`cell::sync`],
    /// as [`crate::TagTable`] is.
    fn release_tags(&self, side: &mut Self::Drain, tags: &mut TagBatch<Detached>) -> usize;

    /// How many completions the device reported that answer no issued command. More than a few are
    /// a reason to reset.
    fn violations(&self, side: &Self::Drain) -> u32;

    /// As [`crate::Controller::timeout_report`], of one queue that has commands outstanding.
    fn timeout_report(
        &self,
        issue: &Self::Issue,
        drain: &Self::Drain,
        to: &mut dyn fmt::Write,
    ) -> fmt::Result {
        let _ = (issue, drain, to);
        Ok(())
    }

    /// Takes back one command that the device has not finished, as [`CmdError::Aborted`] that may
    /// be tried again, or as [`crate::RetryHint::NotIssued`] if it was never issued; `None` when
    /// none is left.
    ///
    /// Only while [`crate::Controller::stop`] has stopped the device, which is the proof that it no
    /// longer touches memory.
    fn reap_tag(&self, side: &mut Self::Drain) -> Option<Event>;

    /// Both sides as after creation, lost tags found again, for a device that was stopped and
    /// reaped and is about to be started again.
    fn rewind(&self, issue: &mut Self::Issue, drain: &mut Self::Drain);
}

/// The operations of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Device to memory.
    Read,
    /// Memory to device.
    Write,
    /// Everything acknowledged so far becomes durable.
    Flush,
    /// The range's content is no longer needed (deallocate, TRIM).
    Discard,
    /// The range reads as zeroes afterwards.
    WriteZeroes,
}

impl Op {
    /// Whether the operation moves data between memory and the device.
    pub const fn has_data(self) -> bool {
        matches!(self, Op::Read | Op::Write)
    }
}

/// One command. Its data, if [`Op::has_data`], comes beside it as [`Segment`]s whose lengths add up
/// to `blocks` logical blocks; those of a read may be holes ([`crate::Limits::hole_align`]). So do
/// the ranges of a discard that has several, `blocks` in sum: there, a segment's address is a
/// range's first logical block, and its length is in logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What to do.
    pub op: Op,
    /// Which disk of the controller: [`crate::Unit::id`].
    pub unit: u32,
    /// First logical block; 0 for a flush.
    pub lba: u64,
    /// Length in logical blocks; 0 for a flush.
    pub blocks: u32,
    /// Bytes of one logical block, as a power of two.
    pub block_shift: u8,
    /// Force unit access: the data of a write is durable when it completes.
    pub fua: bool,
    /// Of [`Op::WriteZeroes`]: the device may give the blocks' space back, as long as they read as
    /// zeroes. Only where [`crate::Topology::zeroes_unmap`].
    pub unmap: bool,
}

/// A contiguous piece of memory as the device sees it; or a hole, which is bytes of a read that
/// nobody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Bus address of the first byte.
    pub addr: u64,
    /// Length in bytes, never 0.
    pub len: u32,
}

/// Where no data is: the address with which the kernel's DMA mapping says that it has failed
/// (`DMA_MAPPING_ERROR`), and so the only one that no memory has. It is odd: what asks whether an
/// address is aligned has asked for this one, too.
const HOLE: u64 = u64::MAX;

impl Segment {
    /// `len` bytes that the device reads, if it has to, and keeps to itself.
    pub const fn hole(len: u32) -> Self {
        Self { addr: HOLE, len }
    }

    /// Whether it is such.
    #[inline]
    pub const fn is_hole(self) -> bool {
        self.addr == HOLE
    }
}
