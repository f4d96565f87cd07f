// SPDX-License-Identifier: GPL-2.0
//! The admin completion queue.
//!
//! Whoever sees a completion takes it: normally the thread that waits; with a pin also the
//! interrupt handler, because an entry that nobody takes keeps the line up. The two agree by one
//! atomic exchange of the head, so the handler never depends on the thread that it interrupted.

use super::{after, Admin, ENTRIES};
use crate::cqe::{self, Cqe};
use crate::event::EVENT_CID;
use crate::regs;
use crate::silence::{self, Silence};
use cell::sync::{fence, Ordering};
use hal::{DmaMem, Mmio, Platform};

/// Set in `head` on the passes whose entries have phase 0.
const SECOND_PASS: u32 = 1 << 16;

impl<P: Platform> Admin<P> {
    /// Takes what the controller has completed, at most once around; whether an event was among
    /// it. Any context; several may at once.
    pub(crate) fn collect<M: Mmio>(&self, mmio: &M) -> bool {
        let mut any = false;
        for _ in 0..ENTRIES {
            let state = self.head.load(Ordering::Acquire);
            let Some(entry) = self.next(state) else {
                break;
            };
            fence(Ordering::Acquire);
            // CAST: the low half is the index.
            let at = state as u16;
            let result = self.cq.read64(cqe::offset(at));
            let ours = entry.is_from(0, ENTRIES);
            if ours && entry.cid() == EVENT_CID {
                any = true;
                // Before the head moves: who finds it moved finds the event.
                self.event.answer(result, entry.status());
            }
            let head = after(at);
            let wrapped = if head == 0 { SECOND_PASS } else { 0 };
            let next = (state & SECOND_PASS ^ wrapped) | u32::from(head);
            let won = self
                .head
                .compare_exchange(state, next, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
            // Before the next entry is looked at: see `is_called`.
            fence(Ordering::SeqCst);
            // One that nobody waits for is dropped.
            let cid = self.cid.load(Ordering::Acquire);
            if won && ours && entry.cid() == cid && cid != EVENT_CID {
                self.result.store(result, Ordering::Relaxed);
                self.status.store(entry.status(), Ordering::Relaxed);
                self.answered.store(true, Ordering::Release);
            }
        }
        self.ring_head(mmio);
        any
    }

    /// The entry at the head `state`, if it is new.
    fn next(&self, state: u32) -> Option<Cqe> {
        // CAST: the low half is the index.
        let entry = Cqe(self.cq.read64(cqe::offset(state as u16) | cqe::SECOND_HALF));
        (entry.phase() != (state & SECOND_PASS != 0)).then_some(entry)
    }

    /// Whether an event has come that nobody has seen to. For a handler of messages, which takes
    /// nothing: an entry that it does not see here is behind one that a thread is about to take,
    /// and that thread looks at it afterwards.
    pub(crate) fn is_called(&self) -> bool {
        if self.event.has_come() {
            return true;
        }
        let next = || self.next(self.head.load(Ordering::SeqCst));
        self.event.is_armed()
            && next().is_some_and(|entry| entry.cid() != self.cid.load(Ordering::Acquire))
    }

    /// The queue as it is, for the log.
    pub(crate) fn silence(&self) -> Silence {
        let state = self.head.load(Ordering::Acquire);
        // CAST: the low half is the index.
        let head = state as u16;
        let phase = state & SECOND_PASS == 0;
        let second_half = |at: u16| Cqe(self.cq.read64(cqe::offset(at) | cqe::SECOND_HALF));
        let last = second_half(head.checked_sub(1).unwrap_or(ENTRIES - 1));
        Silence {
            qid: 0,
            tail: self.tail.load(Ordering::Relaxed),
            fetched: silence::fetched(last, head, phase),
            head,
            phase,
            entry: second_half(head),
        }
    }

    /// Tells the controller of the head, if that has not been done. Where a handler interrupts a
    /// thread that was about to, both do it: harmless, whereas leaving it to the thread would leave
    /// a pin up.
    fn ring_head<M: Mmio>(&self, mmio: &M) {
        // CAST: the low half is the index.
        let head = self.head.load(Ordering::Acquire) as u16;
        if self.rung.load(Ordering::Acquire) != head {
            mmio.write32(
                regs::DOORBELLS.wrapping_add(regs::cq_doorbell(0, self.stride)),
                u32::from(head),
            );
            // Afterwards, so that a handler that comes between does it again rather than not at
            // all.
            self.rung.store(head, Ordering::Release);
        }
    }
}
