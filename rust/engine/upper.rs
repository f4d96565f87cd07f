// SPDX-License-Identifier: GPL-2.0
//! The layer above: whose requests the strategy carries out.

use crate::foretell::Expected;
use hal::{CmdError, Command, Outcome, Segment};

/// In which context requests were ended. Every request counts once, under one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// The controller's interrupt.
    Irq,
    /// The thread that slept for it.
    Lazy,
    /// Any thread that passed by.
    Coop,
    /// The poll timer.
    Poll,
    /// None of these: a reset, a removal, a time-out, or a timer that sweeps up what nobody came
    /// for; or whoever submitted what could not be issued.
    Sweep,
}

/// The layer above. In the kernel `kglue` implements it over blk-mq, in tests a recorder of what
/// happened.
///
/// Unless said otherwise its functions are called from any context, interrupts included, with a
/// token held: they neither sleep nor call the queue back.
pub trait Upper: Send + Sync + 'static {
    /// The owned handle of one request.
    type Request: Send + 'static;
    /// A batch of ended requests.
    type Ended: Default;

    /// What `rq` asks for.
    fn command(&self, rq: &Self::Request) -> Command;

    /// Maps the data of `rq` for the device, and yields it piece by piece. After an `Err`, or when
    /// not all of it is taken, [`Upper::unmap`] follows.
    fn segments<'a>(
        &'a self,
        rq: &'a mut Self::Request,
    ) -> impl Iterator<Item = Result<Segment, CmdError>> + 'a;

    /// `rq` is bound and about to be issued: its time starts here.
    fn begin_cmd(&self, rq: &mut Self::Request);

    /// `rq` is about to be issued, and is over then, as far as is known. Any context.
    fn expect(&self, rq: &Self::Request, what: Expected) {
        let _ = (rq, what);
    }

    /// Whether a thread is about to wait for `rq` that asks the queue what it does meanwhile
    /// ([`crate::IoQueue::wait`]). Any context.
    fn is_awaited(&self, rq: &Self::Request) -> bool {
        let _ = rq;
        false
    }

    /// `rq` could not be bound: undo what [`Upper::segments`] has mapped so far. The request stays
    /// valid.
    fn unmap(&self, rq: &mut Self::Request);

    /// `rq` has to wait in the FIFO. May be called without a token.
    fn deferred(&self, rq: &Self::Request);

    /// `rq` is about to fail, the first of maybe many: memory to map its data could not be had,
    /// though nothing in flight holds any.
    fn starved(&self, rq: &Self::Request) {
        let _ = rq;
    }

    /// `rq` is over: parted from its command, which the device no longer knows. It is collected in
    /// `ended`. A request that never began (see [`Upper::begin_cmd`]) may come here too, with an
    /// `Err`. An `Err` says whether another try is worth while ([`crate::Tries`]): then the layer
    /// above may submit the request anew, once it is finished.
    fn end_cmd(&self, ended: &mut Self::Ended, rq: Self::Request, outcome: Outcome);

    /// Ends a batch of at least one request towards its submitters; the batch is not used any more.
    /// No token is held by the caller, save by a [`crate::Paused`]; new requests may be submitted
    /// from here.
    fn finish(&self, ended: &mut Self::Ended, by: Context);

    /// [`crate::IoQueue::kick`] is to be called in a few milliseconds. Repeated wishes may be
    /// merged, a wish that comes after `kick` has begun may not. No token is held by the caller.
    fn retry_later(&self);

    /// Whether [`Upper::set_interrupt`] can turn the interrupt off.
    fn can_poll(&self) -> bool {
        false
    }

    /// Whether the interrupt that runs on this CPU keeps a thread from its work.
    fn interrupts_thread(&self) -> bool {
        false
    }

    /// Whether that thread is one that has waited for I/O of its own here.
    fn interrupts_waiter(&self) -> bool {
        true
    }

    /// Whether a thread that is asleep waits for one of `ended`.
    fn wakes(&self, ended: &Self::Ended) -> bool {
        let _ = ended;
        false
    }

    /// Whether threads are ready that this CPU has no time for at the moment, and that come by
    /// soon: none that computes is known to be among them.
    fn is_crowded(&self) -> bool {
        false
    }

    /// Lets the controller interrupt for this queue's completions, or not. An interrupt that it
    /// wanted to raise meanwhile need not come afterwards. `false`: it can't be turned off, and was
    /// not. The drain token is held.
    fn set_interrupt(&self, on: bool) -> bool {
        on
    }

    /// [`crate::IoQueue::tick`] is to be called in `us` microseconds; an earlier wish is replaced.
    /// Never called where [`Upper::can_poll`] is `false`.
    fn arm_poll(&self, us: u32) {
        let _ = us;
    }

    /// A coarse monotonic clock, in milliseconds.
    fn now_ms(&self) -> u64;

    /// A fine monotonic clock, in nanoseconds, for intervals up to seconds.
    fn now_ns(&self) -> u64;
}

/// A batch of ended requests that knows whether there is anything in it.
pub(crate) struct Ending<U: Upper> {
    batch: U::Ended,
    count: usize,
}

impl<U: Upper> Ending<U> {
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            batch: U::Ended::default(),
            count: 0,
        }
    }

    #[inline]
    pub(crate) fn end(&mut self, upper: &U, rq: U::Request, outcome: Outcome) {
        upper.end_cmd(&mut self.batch, rq, outcome);
        self.count = self.count.wrapping_add(1);
    }

    /// How many requests are in it.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether a thread that is asleep waits for one of them.
    #[inline]
    pub(crate) fn wakes(&self, upper: &U) -> bool {
        upper.wakes(&self.batch)
    }

    /// Finishes the batch, if it is one; returns how many requests were in it. Nothing is added to
    /// it afterwards.
    #[inline]
    pub(crate) fn finish(&mut self, upper: &U, by: Context) -> usize {
        if self.count != 0 {
            upper.finish(&mut self.batch, by);
        }
        self.count
    }
}
