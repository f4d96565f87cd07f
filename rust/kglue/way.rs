// SPDX-License-Identifier: GPL-2.0
//! The way from a thread that waits to the hardware queue that has its I/O, and what comes back.

use crate::blk::request::Rq;
use core::ptr::NonNull;
use engine::{Context, Next, Turn};

/// A finished request on its way to the thread that waits for it; its status is in its PDU.
pub(crate) struct Offer(pub(crate) Rq);

/// A hardware queue, as the hook uses it. With preemption off.
pub(crate) trait Waited: Send + Sync {
    /// Takes completions for a while, and says what the caller, who waits for I/O of its own on the
    /// queue, does next. It is told what came of it when the caller last yielded, and whether it
    /// may do so on this CPU.
    fn wait(&self, turn: Option<Turn>, calm: bool) -> Next;
    /// Ends a request of the queue's that was offered.
    fn end(&self, rq: Rq, by: Context);
}

/// The way there, for which a thin pointer has room.
///
/// # Invariants
/// The queue is valid while anything that is enlisted with this is outstanding, and for as long as
/// preemption is off then.
pub(crate) struct Way(NonNull<dyn Waited>);

impl Way {
    /// # Safety
    /// The invariant holds before anything is enlisted.
    pub(crate) unsafe fn new(queue: NonNull<dyn Waited>) -> Self {
        Self(queue)
    }

    /// The queue. By whoever has something enlisted with it that is outstanding.
    #[inline(always)]
    pub(crate) fn queue(&self) -> &dyn Waited {
        // SAFETY: who comes here has something enlisted, so by the invariant.
        unsafe { self.0.as_ref() }
    }
}
