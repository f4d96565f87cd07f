// SPDX-License-Identifier: GPL-2.0
//! What the hook keeps of a place in the table of waiters, beside what the engine does.

use super::nap::Naps;
use super::timeouts::Timeout;
use crate::share::Ready;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, Ordering};
use engine::Turn;

/// What a place is to the hook.
pub(super) struct Place {
    /// Threads between the hook's entry and its end.
    pub(super) inside: AtomicU32,
    /// What came of it when a thread here last yielded: a [`Turn`]; [`NO_TURN`]: told already.
    pub(super) turn: AtomicU8,
    /// When a thread here last yielded, as a [`stamp`](crate::context::stamp).
    pub(super) yielded_at: AtomicU64,
    /// Who last waited here, by its number: the address by which it falls on this place may be
    /// another's that has begun since. [`NOBODY`]: nobody has.
    pub(super) last: AtomicU32,
    /// The CPU that the thread here came to sleep on.
    pub(super) cpu: AtomicU32,
    /// Where the thread here is counted as ready.
    pub(super) ready: Ready,
    /// When the time-out is over that the thread here sleeps with.
    pub(super) timeout: Timeout,
    /// What the thread here expects, and its naps.
    pub(super) naps: Naps,
}

const NO_TURN: u8 = u8::MAX;
/// No thread's number; 0 is the idle threads'.
const NOBODY: u32 = u32::MAX;

impl Place {
    /// A place where nobody has waited yet.
    pub(super) fn new() -> Self {
        Self {
            inside: AtomicU32::new(0),
            turn: AtomicU8::new(NO_TURN),
            yielded_at: AtomicU64::new(0),
            last: AtomicU32::new(NOBODY),
            cpu: AtomicU32::new(0),
            ready: Ready::default(),
            timeout: Timeout::default(),
            naps: Naps::default(),
        }
    }

    /// Whether that thread was the last to wait here.
    pub(super) fn was_last(&self, pid: u32) -> bool {
        self.last.load(Ordering::Relaxed) == pid
    }

    /// What there is to tell of the last time that a thread yielded here.
    #[inline]
    pub(super) fn take_turn(&self) -> Option<Turn> {
        let turn = self.turn.load(Ordering::Relaxed);
        if turn == NO_TURN {
            return None;
        }
        self.turn.store(NO_TURN, Ordering::Relaxed);
        [Turn::Paid, Turn::Vain]
            .into_iter()
            .find(|known| *known as u8 == turn)
    }
}
