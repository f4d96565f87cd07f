// SPDX-License-Identifier: GPL-2.0
//! The way from a thread that waits to the hardware queue that has its I/O, and what comes back.

use crate::aim::Stays;
use crate::blk::request::handle::Rq;
use engine::{Context, Expected, Nap, Next, Thread, Turn, Waiter};

/// A finished request on its way to the thread that waits for it; its status is in its PDU.
pub(crate) struct Offer(pub(crate) Rq);

/// A thread that comes to wait.
#[derive(Clone, Copy)]
pub(crate) struct Come {
    /// What came of it when it last yielded.
    pub(crate) turn: Option<Turn>,
    /// It may do so on this CPU.
    pub(crate) calm: bool,
    /// When its I/O is over.
    pub(crate) expected: Option<Expected>,
    /// How its last nap ended, and how late.
    pub(crate) napped: Option<(Nap, u64)>,
}

/// A hardware queue, as the hook uses it. With preemption off.
pub(crate) trait Waited: Send + Sync {
    /// Takes completions for a while, and says what the caller, who waits for I/O of its own on the
    /// queue, does next.
    fn wait(&self, come: Come) -> Next;
    /// `thread`, the caller, has napped until `until_ns`: looks for I/O of its own on the queue,
    /// for up to `for_ns`. `waiter`: where that is enlisted.
    fn look_again(
        &self,
        waiter: &Waiter<Offer, Way>,
        thread: Thread,
        until_ns: u64,
        for_ns: u64,
    ) -> Nap;
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
