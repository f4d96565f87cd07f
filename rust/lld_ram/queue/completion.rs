// SPDX-License-Identifier: GPL-2.0
//! What the device reports: what is due, in the order of that, and what its faults make of it.

use super::RamQueue;
use crate::device::World;
use crate::heap::Heap;
use crate::latency::Dice;
use crate::service::tag_of;
use hal::{CmdError, Error, Event, Platform};

/// The drainer's part.
pub struct RamDrain<P: Platform> {
    /// By when they are due.
    pub(super) heap: Heap<P>,
    /// Those that have to go over the link first, by when they are ready for it.
    to_link: Heap<P>,
    /// Where in the ring it is.
    pub(super) head: u32,
    dice: Dice,
    /// A word to be reported once more.
    pub(super) again: Option<u32>,
    /// A word to be reported after a lie.
    pub(super) truth: Option<u32>,
    pub(super) violations: u32,
}

impl<P: Platform> RamDrain<P> {
    /// That of a queue of `tags` tags.
    pub(super) fn new(platform: &P, tags: u16, seed: u64) -> Result<Self, Error> {
        Ok(Self {
            heap: Heap::new(platform, tags.into())?,
            to_link: Heap::new(platform, tags.into())?,
            head: 0,
            dice: Dice::new(seed),
            again: None,
            truth: None,
            violations: 0,
        })
    }

    /// Nothing is with the device; what it is given next is at `head` of the ring.
    pub(super) fn rewind(&mut self, head: u32) {
        self.heap.clear();
        self.to_link.clear();
        self.head = head;
        self.again = None;
        self.truth = None;
    }
}

impl<P: Platform, W: World> RamQueue<P, W> {
    /// The device takes over what was issued.
    pub(super) fn pull(&self, side: &mut RamDrain<P>) {
        while let Some((word, ready)) = self.commands.next(side.head) {
            let heap = match self.over_link(tag_of(word)) {
                0 => &mut side.heap,
                _ => &mut side.to_link,
            };
            if !heap.push(ready, word) {
                return;
            }
            side.head = side.head.wrapping_add(1);
        }
    }

    /// Those that are ready for the link at `now` get their turns. By when they are ready, and not
    /// by when they are looked at: a look that comes late makes no command slower.
    #[inline]
    pub(super) fn take_turns(&self, side: &mut RamDrain<P>, now: u64) {
        while side.to_link.due().is_some_and(|ready| ready <= now) {
            self.take_turn(side, now);
        }
    }

    fn take_turn(&self, side: &mut RamDrain<P>, now: u64) {
        if let Some((ready, word)) = side.to_link.first() {
            let bytes = self.over_link(tag_of(word));
            let due = self.world.device().link.take(ready, bytes);
            side.to_link.pop(now);
            // There is room: either heap has it for all tags.
            side.heap.push(due, word);
        }
    }

    /// Has the bell ring for what is due next.
    pub(super) fn set_bell(&self, side: &RamDrain<P>) {
        let to_link = side.to_link.first().map(|(ready, word)| {
            let bytes = self.over_link(tag_of(word));
            self.world.device().link.earliest(ready, bytes)
        });
        if let Some(due) = side.heap.due().into_iter().chain(to_link).min() {
            self.ring_at(due);
        }
    }

    /// The command that was aborted, as it ended.
    pub(super) fn aborted(&self) -> Option<Event> {
        let word = self.commands.take_aborted()?;
        if !self.commands.answers(word) {
            return None;
        }
        Some(Event {
            // CAST: the tag is the low half.
            tag: self.tags.complete(tag_of(word) as u16)?,
            outcome: Err(CmdError::Aborted.again()),
        })
    }

    /// What the device reports next, true or not.
    pub(super) fn report(&self, side: &mut RamDrain<P>) -> Option<u32> {
        if let Some(word) = side.truth.take().or_else(|| side.again.take()) {
            return Some(word);
        }
        let faults = &self.world.device().faults;
        loop {
            let now = self.world.now_ns();
            self.take_turns(side, now);
            let word = side.heap.pop(now)?;
            if faults.drop.strikes() {
                continue;
            }
            if faults.stick.strikes() {
                self.commands.stick(word);
                continue;
            }
            if faults.duplicate.strikes() {
                side.again = Some(word);
            }
            if faults.lie.strikes() {
                side.truth = Some(word);
                return Some(self.lie(&mut side.dice));
            }
            return Some(word);
        }
    }

    /// A word that reports nothing that was issued: of a tag that there is not, or of one that may
    /// well be in flight, with a generation that it does not have now.
    fn lie(&self, dice: &mut Dice) -> u32 {
        let tags = self.tags.capacity().saturating_mul(2) as u64;
        // CAST: twice 4,096 at most; and any bits will do for a generation.
        let lie = ((dice.roll() as u32) << 16) | dice.below(tags) as u32;
        match self.commands.answers(lie) {
            true => u32::MAX,
            false => lie,
        }
    }
}
