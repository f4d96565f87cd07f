// SPDX-License-Identifier: GPL-2.0
//! A port's command slots as a hal queue: commands are issued to the device, and it is found out
//! which of them it has finished. Tag and slot are the same number, and the NCQ tag as well. Which
//! commands the device has is in [`crate::active`]; what is written for one is of [`crate::cmd`].
//!
//! # Memory first
//! What is finished is in registers: `PxSACT` for queued commands, `PxCI` for unqueued ones (AHCI
//! 1.3.1 section 5.5). To read one costs more than all else in a drain, so it is read only when the
//! FIS area, which is memory, announces something: the HBA puts every Set Device Bits FIS and every
//! D2H Register FIS there. The first word of either is cleared when it is seen, so the next one is
//! noticed.
//!
//! The FIS is no proof, only a reason to look. Of several that came since the last look it shows
//! the last; and it is in memory a little before the HBA clears the bits in the register. So where
//! the last FIS names a tag whose bit is still there, another look is owed; and an interrupt, which
//! comes after both, always looks at the register.
//!
//! An error of the link is in no FIS. Interrupts report it; a polled port, which has none, reads
//! `PxIS` once in [`ERROR_POLL_INTERVAL`] polls. From the moment at which an error is seen until it
//! is handled nothing is issued.
//!
//! # Proof
//! A slot is finished when its bit is gone from the register, provided that the bit had been there:
//! one that the issuer has not written yet looks the same.
//!
//! * *Queued commands* are counted as issued between the writes of `PxSACT` and of `PxCI`, and
//!   `issued` is read before `PxSACT` is: every bit in the former was in the latter.
//! * *Unqueued commands* have no such register. They are issued in one write, and none is issued
//!   after it before all have ended; so the first answer after it proves that the device has them
//!   all. An answer counts only if it is read after `issued` is: an earlier one was cleared before
//!   the commands were counted as issued.
//!
//! A bit that the device sets or clears beyond what was issued is ignored.
//!
//! A register of an HBA that somebody has reset, or whose memory space was turned off, reads as
//! zero: as if everything were finished. So where it says that of more than was announced, and of
//! all, it is believed only of a command list that runs, by a register that is read after it.
//!
//! # Depth
//! How many commands a drive is given at once is the operator's choice: as by libata's
//! `queue_depth` (`ata_change_queue_depth` in Linux 7.3's drivers/ata/libata-sata.c), 1 turns
//! queuing (NCQ) off, and more turns it on again, also where errors had cost it ([`crate::eh`]).

use cell::sync::{fence, Ordering};
use hal::{
    Bound, CmdError, Command, Completed, Detached, Error, Event, Free, FreeTags, Mmio, Outcome,
    Platform, Queue, Segment, Tag, TagBatch, TagTable, Unbound,
};

use crate::active::Deferred;
use crate::cmd::{self, CommandSet};
use crate::port::{Depth, DriveConfig, Port, Site};
use crate::regs::{Reg, IS_ERROR};

/// Batches that all slots make.
const BATCHES: usize = 4;

/// The slots of a port.
pub struct AhciQueue<S: Site> {
    site: S,
    tags: TagTable<S::Platform>,
    cmd_set: CommandSet,
}

/// The drainer's side.
#[derive(Debug, Default)]
pub struct AhciDrain {
    /// Found finished, and not fetched yet.
    done: u32,
    /// Of those, which a recovery ended.
    eh_done: u32,
    /// The registers were read in this drain.
    polled: bool,
    /// Completions that were announced, and that the registers did not show yet.
    announced: u32,
    /// Looks at memory, for the rare one at the registers that a polled port needs.
    polls: u32,
    /// Register writes of this drain.
    writes: usize,
    violations: u32,
}

impl<S: Site> AhciQueue<S> {
    pub(crate) fn new(site: S, tags: TagTable<S::Platform>, cmd_set: CommandSet) -> Self {
        Self {
            site,
            tags,
            cmd_set,
        }
    }
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
    fn get_free_tags(&self, _side: &mut (), want: usize) -> FreeTags {
        (self.tags).take_below(self.site.port().depth.slots(), want)
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
        let ncq = self.cmd_set.ncq && !port.is_ncq_off();
        match cmd::write(&port.memory, &self.cmd_set, ncq, slot, cmd, data) {
            Ok(queued) => {
                port.active_tags.bind(bit(u32::from(slot)), queued);
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

    #[inline]
    fn issue_tag(&self, _side: &mut (), tag: Tag<Bound>) -> usize {
        let bits = bit(u32::from(tag.number()));
        self.tags.issue(tag);
        self.site.port().issue(bits)
    }

    fn unget_tags(&self, _side: &mut (), tags: &mut TagBatch<Free>) {
        // What was written for them is in their own slots only.
        self.tags.put_back(tags);
    }

    #[inline]
    fn check_event(&self, side: &mut AhciDrain) -> bool {
        side.done != 0 || self.is_announced(side)
    }

    #[inline]
    fn fetch_event(&self, side: &mut AhciDrain) -> Option<Event> {
        loop {
            if side.done == 0 {
                if core::mem::replace(&mut side.polled, true) {
                    return None;
                }
                side.done = self.read_completions(side);
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
        side.polled = false;
        core::mem::take(&mut side.writes)
    }

    fn violations(&self, side: &AhciDrain) -> u32 {
        side.violations
    }

    fn reap_tag(&self, _side: &mut AhciDrain) -> Option<Event> {
        let number = self.tags.first_issued()?;
        let tag = self.tags.complete(number)?;
        // CAST: below 32.
        let issued = self.site.port().active_tags.was_issued(number as u8);
        let why = CmdError::Aborted.retryable();
        let outcome = Err(if issued { why } else { why.not_issued() });
        Some(Event { tag, outcome })
    }

    fn rewind(&self, _issue: &mut (), drain: &mut AhciDrain) {
        *drain = AhciDrain {
            violations: drain.violations,
            ..AhciDrain::default()
        };
        self.site.port().active_tags.rewind();
        self.tags.rewind();
    }
}

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Issues the commands in `bits`, or defers them until their turn. By the issuer. Returns how
    /// many registers were written.
    #[inline]
    fn issue(&self, bits: u32) -> usize {
        if self.active_tags.is_ncq_free() && self.active_tags.queued(bits) == bits {
            return self.issue_ncq(bits);
        }
        self.active_tags.defer(bits);
        self.issue_deferred()
    }

    #[inline]
    pub(crate) fn issue_ncq(&self, bits: u32) -> usize {
        self.regs.write(Reg::Sact, bits);
        self.active_tags.issued.fetch_or(bits, Ordering::SeqCst);
        self.regs.write(Reg::Ci, bits);
        2
    }

    fn issue_non_ncq(&self, bits: u32) -> usize {
        self.active_tags.answered.store(false, Ordering::Relaxed);
        self.memory.clear_rfis();
        self.active_tags.issued.fetch_or(bits, Ordering::SeqCst);
        self.regs.write(Reg::Ci, bits);
        1
    }

    /// Issues what is deferred, as far as it is its turn. Any context. Returns how many registers
    /// were written.
    #[cold]
    pub(crate) fn issue_deferred(&self) -> usize {
        let mut written = 0usize;
        while let Some(mut last) = self.active_tags.issuing.lock_or_knock() {
            let writes = match self.active_tags.next_deferred(&mut last) {
                Deferred::None => 0,
                Deferred::Ncq(bits) => self.issue_ncq(bits),
                Deferred::NonNcq(bits) => self.issue_non_ncq(bits),
            };
            written = written.wrapping_add(writes);
            if !last.release() {
                break;
            }
        }
        written
    }
}

/// Looks of a polled port at memory, for one at its interrupt status. A power of two.
const ERROR_POLL_INTERVAL: u32 = 1024;

impl<S: Site> AhciQueue<S> {
    /// Whether a completion may be there, from memory.
    #[inline]
    fn is_announced(&self, side: &mut AhciDrain) -> bool {
        let port = self.site.port();
        let (sdb, rfis) = port.memory.fises();
        if sdb != 0
            || cmd::ends_command(rfis)
            || side.announced != 0
            || port.active_tags.has_eh_done()
        {
            return true;
        }
        side.polls = side.polls.wrapping_add(1);
        // Errors that no interrupt reports, as there are none.
        if side.polls & (ERROR_POLL_INTERVAL - 1) == 0 && !port.irq.is_enabled() {
            self.check_errors();
        }
        false
    }

    /// Reads whether there is an error, if the device has anything.
    #[cold]
    fn check_errors(&self) {
        let port = self.site.port();
        let issued = port.active_tags.issued.load(Ordering::Relaxed) != 0;
        if issued && !port.active_tags.is_stopped() {
            // All ones, too: it is gone.
            if port.regs.read(Reg::Is) & IS_ERROR != 0 {
                self.request_eh();
            }
        }
    }

    #[cold]
    fn request_eh(&self) {
        if self.site.port().request_eh() {
            self.site.schedule_eh();
        }
    }

    /// What is finished, as bits; reads one register if the device has anything. By the drainer.
    #[inline]
    fn read_completions(&self, side: &mut AhciDrain) -> u32 {
        let port = self.site.port();
        side.eh_done = match port.active_tags.has_eh_done() {
            true => port.active_tags.take_eh_done(),
            false => 0,
        };
        let stops = port.active_tags.stops();
        if port.active_tags.is_stopped() {
            // The registers of a stopped port say that everything is finished.
            return side.eh_done;
        }
        let before = port.active_tags.issued.load(Ordering::SeqCst);
        let (sdb, rfis) = port.memory.fises();
        if before != 0 && port.active_tags.has_non_ncq() {
            return side.eh_done | self.read_completions_non_ncq(side, before, stops, sdb, rfis);
        }
        if sdb != 0 || cmd::ends_command(rfis) {
            // The answer to an unqueued command that was issued just now stays; one from before is
            // of no use.
            self.consume_fises(side, sdb, rfis, before != 0);
        }
        let issued = port.active_tags.issued.load(Ordering::SeqCst);
        if issued == 0 || port.active_tags.has_non_ncq() {
            side.announced = 0;
            return side.eh_done;
        }
        if sdb != 0 {
            side.announced |= port.memory.sdb_active();
        }
        let active = port.regs.read(Reg::Sact);
        if port.active_tags.was_stopped(stops) {
            // By the control path, between the two: a halt keeps what was finished.
            return side.eh_done;
        }
        let done = issued & !active;
        let unsaid = done & !side.announced != 0;
        if unsaid && (sdb == 0 || active == 0) && !port.is_running() {
            // Finished without a word, or with one for the last of all: the HBA was reset, or its
            // registers are out of reach.
            self.request_eh();
            return side.eh_done;
        }
        side.announced &= active & issued;
        side.eh_done | self.finish(side, done)
    }

    /// Makes room for the next announcement, before the register is read.
    #[inline]
    fn consume_fises(&self, side: &mut AhciDrain, sdb: u32, rfis: u32, clears_rfis: bool) {
        let port = self.site.port();
        if sdb != 0 {
            port.memory.clear_sdb();
        }
        if clears_rfis && cmd::ends_command(rfis) {
            port.memory.clear_rfis();
        }
        // A port that is polled keeps the line of memory to itself.
        if port.irq_undrained.load(Ordering::Relaxed) {
            port.irq_undrained.store(false, Ordering::Relaxed);
        }
        // What comes from here on is announced anew, or is in the register.
        fence(Ordering::SeqCst);
        if cmd::is_error(sdb) || cmd::is_error(rfis) {
            self.request_eh();
        } else if cmd::has_error_code(sdb) {
            self.check_errors();
        }
        if cmd::is_garbage(sdb, rfis) {
            side.violations = side.violations.saturating_add(1);
        }
    }

    /// As [`AhciQueue::read_completions`], for commands that are not queued. `rfis` was read after
    /// `issued`, so it is an answer to one of these.
    #[cold]
    fn read_completions_non_ncq(
        &self,
        side: &mut AhciDrain,
        issued: u32,
        stops: u32,
        sdb: u32,
        rfis: u32,
    ) -> u32 {
        let port = self.site.port();
        self.consume_fises(side, sdb, rfis, true);
        if cmd::ends_command(rfis) {
            port.active_tags.answered.store(true, Ordering::Relaxed);
        }
        side.announced = 0;
        // After an error, whose FIS may have been cleared by an earlier look: some HBAs clear PxCI
        // of the command that failed, too.
        let eh_pending = port.irq.is_eh_pending();
        if eh_pending || !port.active_tags.answered.load(Ordering::Relaxed) {
            return 0;
        }
        let ci = port.regs.read(Reg::Ci);
        if port.active_tags.was_stopped(stops) {
            return 0;
        }
        let (_, after) = port.memory.fises();
        if cmd::is_error(rfis) || cmd::is_error(after) {
            // Which one failed is for the recovery to find out.
            self.request_eh();
            return 0;
        }
        let done = issued & !ci;
        if ci == 0 && !done.is_power_of_two() && !port.is_running() {
            // As above.
            self.request_eh();
            return 0;
        }
        // One FIS may have covered another, so it can't be said which are announced: from the first
        // answer on, all are.
        side.announced = issued & ci;
        self.finish(side, done)
    }

    /// Takes `done` from the device; returns those that a recovery has not ended meanwhile.
    #[inline]
    fn finish(&self, side: &mut AhciDrain, done: u32) -> u32 {
        if done == 0 {
            return 0;
        }
        let port = self.site.port();
        let (taken, due) = port.active_tags.finish(done);
        if due {
            side.writes = side.writes.wrapping_add(port.issue_deferred());
        }
        taken
    }

    /// How the command in `slot` ended.
    #[inline]
    fn outcome(&self, side: &AhciDrain, slot: u8, bit: u32) -> Outcome {
        match side.eh_done & bit {
            0 => Ok(()),
            _ => self.site.port().active_tags.eh_outcome(slot),
        }
    }
}

/// The bit of `slot`.
#[inline]
const fn bit(slot: u32) -> u32 {
    1u32.wrapping_shl(slot)
}

impl Depth {
    /// The drive says that of itself.
    pub(crate) fn begin_control(&self, about: &DriveConfig) {
        let most = if about.cmd_set.ncq { about.tags } else { 1 };
        self.most.store(u32::from(most), Ordering::Relaxed);
    }

    /// Slots that may be used.
    #[inline]
    fn slots(&self) -> usize {
        // CAST: a usize has 32 bits at least.
        self.chosen.load(Ordering::Relaxed) as usize
    }

    /// Whether the operator wants one command at a time.
    pub(crate) fn is_one(&self) -> bool {
        self.slots() == 1
    }
}

impl<P: Platform, M: Mmio> Port<P, M> {
    /// Whether a drive that has a queue gets one command at a time.
    #[inline]
    pub(crate) fn is_ncq_off(&self) -> bool {
        self.ncq_off.load(Ordering::Relaxed)
    }

    /// The commands that the drive is given at once, at most.
    pub(crate) fn depth(&self) -> u16 {
        let most = self.depth.most.load(Ordering::Relaxed);
        let now = match self.is_ncq_off() {
            true => 1,
            false => self.depth.chosen.load(Ordering::Relaxed).min(most),
        };
        // CAST: 32 at most.
        now as u16
    }

    /// Limits the commands that it is given at once to `depth`. The queue is at rest, as the issue
    /// side keeps free slots for itself. [`Error::Invalid`]: none, or more than the drive takes.
    pub(crate) fn set_depth(&self, depth: u16) -> Result<(), Error> {
        let most = self.depth.most.load(Ordering::Relaxed);
        let depth = u32::from(depth);
        if !(1..=most).contains(&depth) {
            return Err(Error::Invalid);
        }
        // Of a drive without a queue the HBA keeps the others.
        if most > 1 {
            self.depth.chosen.store(depth, Ordering::Relaxed);
            self.ncq_off.store(depth == 1, Ordering::Relaxed);
        }
        Ok(())
    }
}
