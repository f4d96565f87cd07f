// SPDX-License-Identifier: GPL-2.0
//! Which commands the device has, which wait for their turn, and which have ended: one bit a slot.
//!
//! ```text
//!  issue_tags --> issued ------------------> done (by the device) -----> fetch_event
//!        |          ^                                                      ^
//!        +-> deferred (until its turn)   issued --> judged (by a recovery) +
//! ```
//! Queued (NCQ) and unqueued commands must not be with the device at once (Serial ATA 3.x section
//! 13.6.2.1), so they take turns, as libata defers the one for the other (`ata_std_qc_defer` in
//! Linux 7.3's drivers/ata/libata-scsi.c): queued ones are issued at once until an unqueued one
//! comes. Then all that comes is deferred until the device has nothing, and the kinds alternate.
//!
//! # Who writes what
//! `turns` is not 0 unless queued commands are issued freely. The one issuer adds to `deferred`;
//! only the holder of `turn` takes from it. The one drainer clears `issued`. Issuer and drainer
//! meet in `issued` and `turns`: the issuer adds to `deferred` and then looks whether `issued` is
//! empty, the drainer empties `issued` and then looks at `turns`, all of it sequentially
//! consistent: one of them sees that a turn is due.

use cell::sync::{AtomicBool, AtomicU32, AtomicU64, AtomicU8, Ordering};
use cell::TryLock;
use hal::{CmdError, Outcome};

/// In `turns`: unqueued commands are with the device, or were last.
const UNQUEUED: u64 = 1 << 32;
/// In `turns`: the device does not look for commands.
const HALTED: u64 = 1 << 33;
/// In `turns`: an error is to be handled, and until then nothing is issued. A device that
/// has reported an error takes no command anyhow; QEMU's takes it, and carries it out once more
/// with each that follows, when it was answered long ago.
const TROUBLED: u64 = 1 << 34;

/// The record of a port's commands.
pub(crate) struct Flight {
    /// With the device.
    pub(crate) issued: AtomicU32,
    /// Deferred commands in the low half, [`UNQUEUED`], [`HALTED`], [`TROUBLED`].
    pub(crate) turns: AtomicU64,
    /// How often [`HALTED`] was set: for who reads a register that a halt clears.
    halts: AtomicU32,
    /// Of which slots the bound command is a queued one.
    queued: AtomicU32,
    /// Ended by a recovery rather than by the device, as `verdicts` say.
    judged: AtomicU32,
    verdicts: [AtomicU8; 32],
    /// The device has ended one of the unqueued commands issued last: its registers know of
    /// them all.
    pub(crate) answered: AtomicBool,
    /// Held by who gives turns: whether the last one was of unqueued commands.
    pub(crate) turn: TryLock<bool>,
}

/// What is to be issued next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Nothing,
    Queued(u32),
    Unqueued(u32),
}

impl Flight {
    pub(crate) fn new() -> Self {
        Self {
            issued: AtomicU32::new(0),
            turns: AtomicU64::new(HALTED),
            halts: AtomicU32::new(0),
            queued: AtomicU32::new(0),
            judged: AtomicU32::new(0),
            verdicts: core::array::from_fn(|_| AtomicU8::new(0)),
            answered: AtomicBool::new(false),
            turn: TryLock::new(false),
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
    pub(crate) fn is_free(&self) -> bool {
        self.turns.load(Ordering::SeqCst) == 0
    }

    /// Whether the device looks for commands, and has any.
    #[inline]
    pub(crate) fn has_issued(&self) -> bool {
        self.issued.load(Ordering::SeqCst) != 0 && !self.is_halted()
    }

    /// Whether the device looks for no commands.
    #[inline]
    pub(crate) fn is_halted(&self) -> bool {
        self.turns.load(Ordering::SeqCst) & HALTED != 0
    }

    /// From now on the device looks for no commands; whether that is new. Before the list is
    /// stopped, which clears the registers that tell what is finished.
    pub(crate) fn halt(&self) -> bool {
        let new = self.turns.fetch_or(HALTED, Ordering::SeqCst) & HALTED == 0;
        if new {
            self.halts.fetch_add(1, Ordering::SeqCst);
        }
        new
    }

    /// To be read before those registers are, and given to [`Flight::was_halted`] afterwards.
    #[inline]
    pub(crate) fn halts(&self) -> u32 {
        self.halts.load(Ordering::SeqCst)
    }

    /// Whether the device was halted since [`Flight::halts`] said `before`: what a register said
    /// meanwhile means nothing.
    #[inline]
    pub(crate) fn was_halted(&self, before: u32) -> bool {
        self.is_halted() || self.halts() != before
    }

    /// Whether the commands that the device has are unqueued.
    #[inline]
    pub(crate) fn has_unqueued(&self) -> bool {
        self.turns.load(Ordering::SeqCst) & UNQUEUED != 0
    }

    /// Whether the command in `slot`, which has not ended, was issued; else it waits for its turn.
    pub(crate) fn was_issued(&self, slot: u8) -> bool {
        self.turns.load(Ordering::SeqCst) & 1u64.wrapping_shl(u32::from(slot)) == 0
    }

    /// Lets `bits` wait for their turn.
    pub(crate) fn hold(&self, bits: u32) {
        self.turns.fetch_or(u64::from(bits), Ordering::SeqCst);
    }

    /// The device has finished `bits`. Those of them that nobody has ended yet, and whether a turn
    /// may be due. By the drainer.
    #[inline]
    pub(crate) fn finish(&self, bits: u32) -> (u32, bool) {
        let issued = self.issued.fetch_and(!bits, Ordering::SeqCst);
        (issued & bits, issued & !bits == 0 && !self.is_free())
    }

    /// Whose turn it is. What is returned is no longer deferred, and is to be issued at once. By
    /// the holder of `turn`, whose value is `last`.
    pub(crate) fn next(&self, last: &mut bool) -> Turn {
        let turns = self.turns.load(Ordering::SeqCst);
        if turns & (HALTED | TROUBLED) != 0 || self.issued.load(Ordering::SeqCst) != 0 {
            return Turn::Nothing;
        }
        // CAST: the low half.
        let deferred = turns as u32;
        let queued = self.queued(deferred);
        let unqueued = deferred & !queued;
        if unqueued != 0 && (queued == 0 || !*last) {
            *last = true;
            self.turns.fetch_or(UNQUEUED, Ordering::SeqCst);
            self.release(unqueued);
            return Turn::Unqueued(unqueued);
        }
        *last = false;
        if queued == 0 {
            self.turns.fetch_and(!UNQUEUED, Ordering::SeqCst);
            return Turn::Nothing;
        }
        // Should that be all, queued commands may flow freely beside these; should the issuer add
        // another one meanwhile, it knocks.
        self.turns
            .fetch_and(!(UNQUEUED | u64::from(queued)), Ordering::SeqCst);
        Turn::Queued(queued)
    }

    /// `bits` are no longer deferred.
    pub(crate) fn release(&self, bits: u32) {
        self.turns.fetch_and(!u64::from(bits), Ordering::SeqCst);
    }

    /// A recovery ends `bits`, which the device does not have any more, with `outcome`.
    pub(crate) fn judge(&self, bits: u32, outcome: Outcome) {
        let verdict = encode(outcome);
        for (slot, place) in (0u32..).zip(&self.verdicts) {
            if bits & 1u32.wrapping_shl(slot) != 0 {
                place.store(verdict, Ordering::Relaxed);
            }
        }
        // The drainer may be about to end some of them, too: each belongs to who takes it from
        // `issued`.
        let taken = self.issued.fetch_and(!bits, Ordering::SeqCst) & bits;
        self.judged.fetch_or(taken, Ordering::Release);
    }

    /// Whether anything was judged and not taken yet.
    #[inline]
    pub(crate) fn is_judged(&self) -> bool {
        self.judged.load(Ordering::Relaxed) != 0
    }

    /// What was judged; each once. By the drainer.
    #[cold]
    pub(crate) fn take_judged(&self) -> u32 {
        self.judged.swap(0, Ordering::Acquire)
    }

    /// The verdict on `slot`.
    #[cold]
    pub(crate) fn verdict(&self, slot: u8) -> Outcome {
        let place = self.verdicts.get(usize::from(slot));
        decode(place.map_or(u8::MAX, |place| place.load(Ordering::Relaxed)))
    }

    /// From now on nothing is issued, until [`Flight::trust`].
    pub(crate) fn suspect(&self) {
        self.turns.fetch_or(TROUBLED, Ordering::SeqCst);
    }

    /// The error was handled. The caller then gives turns.
    pub(crate) fn trust(&self) {
        self.turns.fetch_and(!TROUBLED, Ordering::SeqCst);
    }

    /// It looks for them again.
    pub(crate) fn resume(&self) {
        self.turns.fetch_and(!HALTED, Ordering::SeqCst);
    }

    /// Nothing is issued, deferred or judged. While it is halted, and nobody issues or drains.
    pub(crate) fn rewind(&self) {
        self.issued.store(0, Ordering::SeqCst);
        self.judged.store(0, Ordering::SeqCst);
        self.turns.fetch_and(HALTED, Ordering::SeqCst);
        self.answered.store(false, Ordering::Relaxed);
    }
}

/// The outcomes that recoveries know, as bytes.
const VERDICTS: [Outcome; 9] = [
    Ok(()),
    Err(CmdError::Medium.finally()),
    Err(CmdError::Medium.again()),
    Err(CmdError::Range.again()),
    Err(CmdError::Timeout.again()),
    Err(CmdError::Gone.finally()),
    Err(CmdError::Fault.again()),
    Err(CmdError::Io.again()),
    Err(CmdError::Io.finally()),
];

fn encode(outcome: Outcome) -> u8 {
    let at = VERDICTS.iter().position(|known| *known == outcome);
    // CAST: 9 at most. An unknown one is an error of no special kind, never a success.
    at.unwrap_or(VERDICTS.len()) as u8
}

fn decode(verdict: u8) -> Outcome {
    let known = VERDICTS.get(usize::from(verdict)).copied();
    known.unwrap_or(Err(CmdError::Io.finally()))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    fn flight(queued: u32) -> Flight {
        let flight = Flight::new();
        flight.resume();
        flight.bind(queued, true);
        flight
    }

    #[test]
    fn kinds_alternate_and_then_flow_freely() {
        let flight = flight(0b0111);
        let mut last = false;
        flight.issued.store(0b0001, Ordering::SeqCst);
        flight.hold(0b1110);
        assert_eq!(flight.next(&mut last), Turn::Nothing, "the device has one");
        assert_eq!(flight.finish(0b0001), (0b0001, true));
        assert_eq!(flight.next(&mut last), Turn::Unqueued(0b1000));
        assert!(flight.has_unqueued());
        flight.hold(0b1_0000);
        assert_eq!(flight.next(&mut last), Turn::Queued(0b0110), "alternating");
        assert!(!flight.has_unqueued() && !flight.is_free());
        assert_eq!(flight.next(&mut last), Turn::Unqueued(0b1_0000));
        assert_eq!(flight.next(&mut last), Turn::Nothing);
        assert!(flight.is_free());
    }

    #[test]
    fn nothing_is_told_while_halted() {
        let flight = flight(1);
        let mut last = false;
        flight.turns.fetch_or(HALTED, Ordering::SeqCst);
        flight.hold(1);
        assert_eq!(flight.next(&mut last), Turn::Nothing);
        flight.resume();
        assert_eq!(flight.next(&mut last), Turn::Queued(1));
    }

    #[test]
    fn verdicts_come_back_as_they_were() {
        let flight = flight(0);
        for outcome in VERDICTS {
            flight.issued.store(1 << 31, Ordering::SeqCst);
            flight.judge(1 << 31, outcome);
            assert_eq!(flight.finish(1 << 31).0, 0, "it was ended");
            assert_eq!(flight.take_judged(), 1 << 31);
            assert_eq!(flight.verdict(31), outcome);
        }
        flight.judge(1, Err(CmdError::Reserved.finally()));
        let unknown = Err(CmdError::Io.finally());
        assert_eq!(flight.verdict(0), unknown, "never a success");
        assert_eq!(flight.verdict(32), unknown);
    }
}
