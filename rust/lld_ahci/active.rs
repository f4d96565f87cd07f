// SPDX-License-Identifier: GPL-2.0
//! Which commands the device has, which wait for their turn, and which have ended: one bit a slot.
//!
//! ```text
//!  issue_tags --> issued ------------------> done (by the device) -----> fetch_event
//!        |          ^                                                      ^
//!        +-> deferred (until its turn)   issued --> eh_done (by a recovery) +
//! ```
//! Queued (NCQ) and unqueued commands must not be with the device at once (Serial ATA 3.x section
//! 13.6.2.1), so they take turns, as libata defers the one for the other (`ata_std_qc_defer` in
//! Linux 7.3's drivers/ata/libata-scsi.c): queued ones are issued at once until an unqueued one
//! comes. Then all that comes is deferred until the device has nothing, and the kinds alternate.
//!
//! # Who writes what
//! `state` is not 0 unless queued commands are issued freely. The one issuer adds to `deferred`;
//! only the holder of `issuing` takes from it. The one drainer clears `issued`. Issuer and drainer
//! meet in `issued` and `state`: the issuer adds to `deferred` and then looks whether `issued` is
//! empty, the drainer empties `issued` and then looks at `state`, all of it sequentially
//! consistent: one of them sees that a turn is due.

use cell::sync::{AtomicBool, AtomicU32, AtomicU64, AtomicU8, Ordering};
use cell::TryLock;
use hal::{CmdError, Outcome};

/// In `state`: unqueued commands are with the device, or were last.
const NON_NCQ: u64 = 1 << 32;
/// In `state`: the device does not look for commands.
const STOPPED: u64 = 1 << 33;
/// In `state`: an error is to be handled, and until then nothing is issued. A device that
/// has reported an error takes no command anyhow; QEMU's takes it, and carries it out once more
/// with each that follows, when it was answered long ago.
const FROZEN: u64 = 1 << 34;

/// A port's active tags.
pub(crate) struct ActiveTags {
    /// With the device.
    pub(crate) issued: AtomicU32,
    /// Deferred commands in the low half, [`NON_NCQ`], [`STOPPED`], [`FROZEN`].
    pub(crate) state: AtomicU64,
    /// How often [`STOPPED`] was set, for readers of a register that a stop clears.
    stops: AtomicU32,
    /// Of which slots the bound command is a queued one.
    queued: AtomicU32,
    /// Ended by a recovery rather than by the device, as `verdicts` say.
    eh_done: AtomicU32,
    eh_outcomes: [AtomicU8; 32],
    /// The device has ended one of the unqueued commands issued last: its registers know of
    /// them all.
    pub(crate) answered: AtomicBool,
    /// The right to issue deferred commands; whether those issued last were no NCQ commands.
    pub(crate) issuing: TryLock<bool>,
}

/// Deferred commands that are to be issued now, one bit a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deferred {
    None,
    Ncq(u32),
    NonNcq(u32),
}

impl ActiveTags {
    pub(crate) fn new() -> Self {
        Self {
            issued: AtomicU32::new(0),
            state: AtomicU64::new(STOPPED),
            stops: AtomicU32::new(0),
            queued: AtomicU32::new(0),
            eh_done: AtomicU32::new(0),
            eh_outcomes: core::array::from_fn(|_| AtomicU8::new(0)),
            answered: AtomicBool::new(false),
            issuing: TryLock::new(false),
        }
    }

    /// The slots of `bits` are bound to queued commands, or to unqueued ones. By the issuer.
    #[inline]
    pub(crate) fn bind(&self, bits: u32, queued: bool) {
        let was = self.queued.load(Ordering::Relaxed);
        let is = if queued { was | bits } else { was & !bits };
        if is != was {
            // Before the slot gets to `issued` or `deferred`, which are stronger.
            self.queued.store(is, Ordering::Relaxed);
        }
    }

    /// Of `bits`, those that are bound to queued commands.
    #[inline]
    pub(crate) fn queued(&self, bits: u32) -> u32 {
        self.queued.load(Ordering::Relaxed) & bits
    }

    /// Whether queued commands flow freely.
    #[inline]
    pub(crate) fn is_ncq_free(&self) -> bool {
        self.state.load(Ordering::SeqCst) == 0
    }

    /// Whether the device looks for commands, and has any.
    #[inline]
    pub(crate) fn has_issued(&self) -> bool {
        self.issued.load(Ordering::SeqCst) != 0 && !self.is_stopped()
    }

    /// Whether the device looks for no commands.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.state.load(Ordering::SeqCst) & STOPPED != 0
    }

    /// From now on the device looks for no commands; whether that is new. Before the list is
    /// stopped, which clears the registers that tell what is finished.
    pub(crate) fn stop(&self) -> bool {
        let new = self.state.fetch_or(STOPPED, Ordering::SeqCst) & STOPPED == 0;
        if new {
            self.stops.fetch_add(1, Ordering::SeqCst);
        }
        new
    }

    /// How often the list was stopped. Read before `PxSACT` or `PxCI`, and given to
    /// [`ActiveTags::was_stopped`] afterwards.
    #[inline]
    pub(crate) fn stops(&self) -> u32 {
        self.stops.load(Ordering::SeqCst)
    }

    /// Whether the list was stopped since [`ActiveTags::stops`] returned `before`. Then what a
    /// register said meanwhile means nothing.
    #[inline]
    pub(crate) fn was_stopped(&self, before: u32) -> bool {
        self.is_stopped() || self.stops() != before
    }

    /// Whether the commands that the device has are unqueued.
    #[inline]
    pub(crate) fn has_non_ncq(&self) -> bool {
        self.state.load(Ordering::SeqCst) & NON_NCQ != 0
    }

    /// Whether the command in `slot`, which has not ended, was issued; else it waits for its turn.
    pub(crate) fn was_issued(&self, slot: u8) -> bool {
        self.state.load(Ordering::SeqCst) & 1u64.wrapping_shl(u32::from(slot)) == 0
    }

    /// Defers the commands in `bits`.
    pub(crate) fn defer(&self, bits: u32) {
        self.state.fetch_or(u64::from(bits), Ordering::SeqCst);
    }

    /// The device has finished `bits`. Those of them that nobody has ended yet, and whether a turn
    /// may be due. By the drainer.
    #[inline]
    pub(crate) fn finish(&self, bits: u32) -> (u32, bool) {
        let issued = self.issued.fetch_and(!bits, Ordering::SeqCst);
        (issued & bits, issued & !bits == 0 && !self.is_ncq_free())
    }

    /// Takes the deferred commands that may be issued now; the caller issues them at once. By the
    /// holder of `issuing`, whose value is `last`.
    pub(crate) fn next_deferred(&self, last: &mut bool) -> Deferred {
        let turns = self.state.load(Ordering::SeqCst);
        if turns & (STOPPED | FROZEN) != 0 || self.issued.load(Ordering::SeqCst) != 0 {
            return Deferred::None;
        }
        // CAST: the low half.
        let deferred = turns as u32;
        let queued = self.queued(deferred);
        let unqueued = deferred & !queued;
        if unqueued != 0 && (queued == 0 || !*last) {
            *last = true;
            self.state.fetch_or(NON_NCQ, Ordering::SeqCst);
            self.undefer(unqueued);
            return Deferred::NonNcq(unqueued);
        }
        *last = false;
        if queued == 0 {
            self.state.fetch_and(!NON_NCQ, Ordering::SeqCst);
            return Deferred::None;
        }
        // Should that be all, queued commands may flow freely beside these; should the issuer add
        // another one meanwhile, it knocks.
        self.state
            .fetch_and(!(NON_NCQ | u64::from(queued)), Ordering::SeqCst);
        Deferred::Ncq(queued)
    }

    /// `bits` are no longer deferred.
    pub(crate) fn undefer(&self, bits: u32) {
        self.state.fetch_and(!u64::from(bits), Ordering::SeqCst);
    }

    /// A recovery ends `bits`, which the device does not have any more, with `outcome`.
    pub(crate) fn eh_complete(&self, bits: u32, outcome: Outcome) {
        let verdict = encode(outcome);
        for (slot, place) in (0u32..).zip(&self.eh_outcomes) {
            if bits & 1u32.wrapping_shl(slot) != 0 {
                place.store(verdict, Ordering::Relaxed);
            }
        }
        // The drainer may be about to end some of them, too: each belongs to the one that
        // takes it from `issued`.
        let taken = self.issued.fetch_and(!bits, Ordering::SeqCst) & bits;
        self.eh_done.fetch_or(taken, Ordering::Release);
    }

    /// Whether a recovery has ended commands that the drainer has not taken yet.
    #[inline]
    pub(crate) fn has_eh_done(&self) -> bool {
        self.eh_done.load(Ordering::Relaxed) != 0
    }

    /// Takes the commands that a recovery has ended, each once. By the drainer.
    #[cold]
    pub(crate) fn take_eh_done(&self) -> u32 {
        self.eh_done.swap(0, Ordering::Acquire)
    }

    /// How a recovery has ended the command in `slot`.
    #[cold]
    pub(crate) fn eh_outcome(&self, slot: u8) -> Outcome {
        let place = self.eh_outcomes.get(usize::from(slot));
        decode(place.map_or(u8::MAX, |place| place.load(Ordering::Relaxed)))
    }

    /// From now on nothing is issued, until [`ActiveTags::thaw`].
    pub(crate) fn freeze(&self) {
        self.state.fetch_or(FROZEN, Ordering::SeqCst);
    }

    /// The error was handled. The caller then issues what is deferred.
    pub(crate) fn thaw(&self) {
        self.state.fetch_and(!FROZEN, Ordering::SeqCst);
    }

    /// The device looks for commands again.
    pub(crate) fn resume(&self) {
        self.state.fetch_and(!STOPPED, Ordering::SeqCst);
    }

    /// Forgets all commands. Only while the list is stopped and nobody issues or drains.
    pub(crate) fn rewind(&self) {
        self.issued.store(0, Ordering::SeqCst);
        self.eh_done.store(0, Ordering::SeqCst);
        self.state.fetch_and(STOPPED, Ordering::SeqCst);
        self.answered.store(false, Ordering::Relaxed);
    }
}

/// The outcomes that recoveries know, as bytes.
const EH_OUTCOMES: [Outcome; 9] = [
    Ok(()),
    Err(CmdError::Medium.permanent()),
    Err(CmdError::Medium.retryable()),
    Err(CmdError::Range.retryable()),
    Err(CmdError::Timeout.retryable()),
    Err(CmdError::Gone.permanent()),
    Err(CmdError::Fault.retryable()),
    Err(CmdError::Io.retryable()),
    Err(CmdError::Io.permanent()),
];

fn encode(outcome: Outcome) -> u8 {
    let at = EH_OUTCOMES.iter().position(|known| *known == outcome);
    // CAST: 9 at most. An unknown one is an error of no special kind, never a success.
    at.unwrap_or(EH_OUTCOMES.len()) as u8
}

fn decode(verdict: u8) -> Outcome {
    let known = EH_OUTCOMES.get(usize::from(verdict)).copied();
    known.unwrap_or(Err(CmdError::Io.permanent()))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    fn active_tags(queued: u32) -> ActiveTags {
        let active_tags = ActiveTags::new();
        active_tags.resume();
        active_tags.bind(queued, true);
        active_tags
    }

    #[test]
    fn kinds_alternate_and_then_flow_freely() {
        let active_tags = active_tags(0b0111);
        let mut last = false;
        active_tags.issued.store(0b0001, Ordering::SeqCst);
        active_tags.defer(0b1110);
        assert_eq!(
            active_tags.next_deferred(&mut last),
            Deferred::None,
            "the device has one"
        );
        assert_eq!(active_tags.finish(0b0001), (0b0001, true));
        assert_eq!(
            active_tags.next_deferred(&mut last),
            Deferred::NonNcq(0b1000)
        );
        assert!(active_tags.has_non_ncq());
        active_tags.defer(0b1_0000);
        assert_eq!(
            active_tags.next_deferred(&mut last),
            Deferred::Ncq(0b0110),
            "alternating"
        );
        assert!(!active_tags.has_non_ncq() && !active_tags.is_ncq_free());
        assert_eq!(
            active_tags.next_deferred(&mut last),
            Deferred::NonNcq(0b1_0000)
        );
        assert_eq!(active_tags.next_deferred(&mut last), Deferred::None);
        assert!(active_tags.is_ncq_free());
    }

    #[test]
    fn nothing_is_told_while_halted() {
        let active_tags = active_tags(1);
        let mut last = false;
        active_tags.state.fetch_or(STOPPED, Ordering::SeqCst);
        active_tags.defer(1);
        assert_eq!(active_tags.next_deferred(&mut last), Deferred::None);
        active_tags.resume();
        assert_eq!(active_tags.next_deferred(&mut last), Deferred::Ncq(1));
    }

    #[test]
    fn verdicts_come_back_as_they_were() {
        let active_tags = active_tags(0);
        for outcome in EH_OUTCOMES {
            active_tags.issued.store(1 << 31, Ordering::SeqCst);
            active_tags.eh_complete(1 << 31, outcome);
            assert_eq!(active_tags.finish(1 << 31).0, 0, "it was ended");
            assert_eq!(active_tags.take_eh_done(), 1 << 31);
            assert_eq!(active_tags.eh_outcome(31), outcome);
        }
        active_tags.eh_complete(1, Err(CmdError::Reserved.permanent()));
        let unknown = Err(CmdError::Io.permanent());
        assert_eq!(active_tags.eh_outcome(0), unknown, "never a success");
        assert_eq!(active_tags.eh_outcome(32), unknown);
    }
}
