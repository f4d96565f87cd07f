// SPDX-License-Identifier: GPL-2.0
//! A port's command slots as a hal queue.
//!
//! Tag and slot are the same number, and the NCQ tag as well.

use crate::command::{self, Dialect};
use crate::port::Site;
use hal::{
    Bound, CmdError, Command, Completed, Detached, Event, Free, Outcome, Queue, Segment, Tag,
    TagBatch, TagTable, Unbound,
};

/// All slots are so many batches.
const BATCHES: usize = 4;

/// The slots of a port.
pub struct AhciQueue<S: Site> {
    pub(crate) site: S,
    pub(crate) tags: TagTable<S::Platform>,
    dialect: Dialect,
}

/// The drainer's side.
#[derive(Debug, Default)]
pub struct AhciDrain {
    /// Found finished, and not fetched yet.
    pub(crate) done: u32,
    /// Of those, which a recovery ended.
    pub(crate) judged: u32,
    /// The registers were read in this drain.
    looked: bool,
    /// Completions that were announced, and that the registers did not show yet.
    pub(crate) owed: u32,
    /// Looks at memory, for the rare one at the registers that a polled port needs.
    pub(crate) looks: u32,
    /// Register writes of this drain.
    pub(crate) writes: usize,
    pub(crate) violations: u32,
}

impl<S: Site> AhciQueue<S> {
    pub(crate) fn new(site: S, tags: TagTable<S::Platform>, dialect: Dialect) -> Self {
        Self {
            site,
            tags,
            dialect,
        }
    }

    /// How the command in `slot` ended.
    #[inline]
    fn outcome(&self, side: &AhciDrain, slot: u8, bit: u32) -> Outcome {
        match side.judged & bit {
            0 => Ok(()),
            _ => self.site.port().flight.verdict(slot),
        }
    }
}

/// The bit of `slot`.
#[inline]
pub(crate) const fn bit(slot: u32) -> u32 {
    1u32.wrapping_shl(slot)
}

impl<S: Site> Queue for AhciQueue<S> {
    type Issue = ();
    type Drain = AhciDrain;

    fn capacity(&self) -> usize {
        self.tags.capacity()
    }

    /// A quarter of the slots: to issue costs two register writes, and to find out what is finished
    /// a read, for however many commands.
    #[inline]
    fn batch(&self) -> usize {
        (self.capacity() / BATCHES).max(1)
    }

    #[inline]
    fn get_free_tags(&self, _side: &mut (), want: usize, tags: &mut TagBatch<Free>) {
        (self.tags).take_below(self.site.port().depth.slots(), want, tags);
    }

    #[inline]
    fn bind_tag_cmd(
        &self,
        _side: &mut (),
        tag: Tag<Free>,
        cmd: &Command,
        data: impl Iterator<Item = Result<Segment, CmdError>>,
    ) -> Result<Tag<Bound>, Unbound> {
        let port = self.site.port();
        // CAST: below 32.
        let slot = tag.number() as u8;
        let ncq = self.dialect.ncq && !port.is_unqueued();
        match command::write(&port.memory, &self.dialect, ncq, slot, cmd, data) {
            Ok(queued) => {
                port.flight.bind(bit(u32::from(slot)), queued);
                Ok(tag.bind())
            }
            Err(why) => Err(Unbound { tag, why }),
        }
    }

    #[inline]
    fn issue_tags(&self, _side: &mut (), tags: &mut TagBatch<Bound>) -> usize {
        let mut bits = 0;
        for tag in tags.drain() {
            bits |= bit(u32::from(tag.number()));
            self.tags.issue(tag);
        }
        match bits {
            0 => 0,
            bits => self.site.port().issue(bits),
        }
    }

    fn unget_tags(&self, _side: &mut (), tags: &mut TagBatch<Free>) {
        // What was written for them is in their own slots only.
        self.tags.release(tags);
    }

    #[inline]
    fn check_event(&self, side: &mut AhciDrain) -> bool {
        side.done != 0 || self.is_announced(side)
    }

    #[inline]
    fn fetch_event(&self, side: &mut AhciDrain) -> Option<Event> {
        loop {
            if side.done == 0 {
                if core::mem::replace(&mut side.looked, true) {
                    return None;
                }
                side.done = self.look(side);
                if side.done == 0 {
                    return None;
                }
            }
            let slot = side.done.trailing_zeros();
            side.done &= side.done.wrapping_sub(1);
            // CAST: below 32.
            if let Some(tag) = self.tags.complete(slot as u16) {
                let outcome = self.outcome(side, slot as u8, bit(slot));
                return Some(Event { tag, outcome });
            }
            side.violations = side.violations.saturating_add(1);
        }
    }

    #[inline]
    fn detach_tag_cmd(&self, _side: &mut AhciDrain, tag: Tag<Completed>) -> Tag<Detached> {
        tag.detach()
    }

    /// What was finished was acknowledged by the interrupt; here only those get their turn that
    /// waited for the device to have nothing.
    #[inline]
    fn release_tags(&self, side: &mut AhciDrain, tags: &mut TagBatch<Detached>) -> usize {
        self.tags.release(tags);
        side.looked = false;
        core::mem::take(&mut side.writes)
    }

    fn violations(&self, side: &AhciDrain) -> u32 {
        side.violations
    }

    fn reap_tag(&self, _side: &mut AhciDrain) -> Option<Event> {
        let number = self.tags.first_issued()?;
        let tag = self.tags.complete(number)?;
        // CAST: below 32.
        let issued = self.site.port().flight.was_issued(number as u8);
        let why = CmdError::Aborted.again();
        let outcome = Err(if issued { why } else { why.untold() });
        Some(Event { tag, outcome })
    }

    fn rewind(&self, _issue: &mut (), drain: &mut AhciDrain) {
        *drain = AhciDrain {
            violations: drain.violations,
            ..AhciDrain::default()
        };
        self.site.port().flight.rewind();
        self.tags.rewind();
    }
}
