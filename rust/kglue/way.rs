// SPDX-License-Identifier: GPL-2.0
//! The way from a thread that waits to the hardware queue that has its I/O, and what comes back.

use crate::aim::Stays;
use crate::blk::request::handle::Rq;
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

/// The way there, for which a thin pointer has room. Who takes it is silenced when nothing that was
/// enlisted with it is outstanding any more, and nobody has preemption off who saw that it was.
pub(crate) struct Way(Stays<dyn Waited>);

impl Way {
    /// The way to `queue`.
    pub(crate) fn new<Q: Waited + 'static>(queue: Stays<Q>) -> Self {
        Self(queue.seen_as(|queue| queue))
    }

    /// The queue. By whoever has something enlisted with it that is outstanding.
    #[inline(always)]
    pub(crate) fn queue(&self) -> &dyn Waited {
        self.0.get()
    }
}
