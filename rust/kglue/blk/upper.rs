// SPDX-License-Identifier: GPL-2.0
//! blk-mq as the strategy's upper layer.

use engine::{Context, Cpu, Data, Expected, Interrupted, Upper, Waiter};
use hal::{CmdError, Command, Error, Failure, Op, Outcome, Segment};
use kernel::jump_label::static_branch_unlikely;
use kernel::prelude::*;

use crate::blk::batch;
use crate::blk::batch::EndedRequests;
use crate::blk::dma::MapKind;
use crate::blk::hctx::{Offer, Rq};
use crate::blk::request::Ranges;
use crate::bytes::buffer::PartPieces;
use crate::bytes::io::Req;
use crate::errno::status;
use crate::platform::{now_ms, now_ns};
use crate::shims;
use crate::shims_safe::hiops_on_idle_cpu;
use crate::timers::{CoarseTimer, Poller};

/// One hardware queue's upper layer.
pub(crate) struct BlkUpper<M: MapKind> {
    map: M,
    /// Looks again at a queue whose first request could not be mapped.
    pub(crate) retry: KBox<CoarseTimer>,
    /// Looks for completions while the interrupt is off.
    pub(crate) poller: KBox<Poller>,
}

impl<M: MapKind> BlkUpper<M> {
    /// The upper layer of a queue whose data is mapped by `map`. Sleeps.
    pub(crate) fn new(map: M) -> Result<Self, Error> {
        let no_memory = |_| Error::NoMemory;
        Ok(Self {
            map,
            retry: CoarseTimer::new().map_err(no_memory)?,
            poller: Poller::new().map_err(no_memory)?,
        })
    }

    /// Unmaps `rq`, which is over, and puts it to those that end with `ended`.
    #[inline]
    fn conclude(&self, ended: &mut EndedRequests, mut rq: Rq) {
        self.map.unmap(&mut rq);
        if cfg!(CONFIG_FAIL_IO_TIMEOUT) {
            rq = match rq.swallow() {
                // The time-out ends it: see `Ops::timeout`.
                Ok(()) => return,
                Err(rq) => rq,
            };
        }
        if let Some(waiter) = rq.waiter() {
            crate::wait::ended(waiter);
        }
        ended.put(rq);
    }

    /// `rq` failed: it is over, or is tried again.
    #[cold]
    fn fail(&self, ended: &mut EndedRequests, mut rq: Rq, failure: Failure) {
        if !batch::is_worth_a_try(&rq, failure) {
            return self.conclude(ended, rq);
        }
        self.map.unmap(&mut rq);
        if let Some(waiter) = rq.waiter() {
            crate::wait::ended(waiter);
        }
        ended.again.push(rq);
    }

    /// Offers each of those that are to be to the thread that waits for it; what is not taken is
    /// the caller's to end, in `ended`.
    #[inline]
    fn offer(&self, ended: &mut EndedRequests) {
        let mut offers = core::mem::take(&mut ended.offers);
        while let Some(rq) = offers.pop() {
            let back = match rq.waiter() {
                Some(waiter) => crate::wait::offer(waiter, Offer(rq)),
                None => Some(Offer(rq)),
            };
            if let Some(Offer(rq)) = back {
                self.conclude(ended, rq);
            }
        }
    }

    /// Ends `rq`, an offer that was claimed in the context `by`: [`Context::Lazy`] for the thread
    /// that it was for, [`Context::Sweep`] for anybody else. With preemption off.
    #[inline]
    pub(crate) fn end_claimed(&self, rq: Rq, by: Context) {
        let mut ended = EndedRequests::default();
        self.conclude(&mut ended, rq);
        self.finish(&mut ended, by);
    }
}

/// What comes beside a command.
enum Beside<'a, D> {
    /// Its data, mapped.
    Data(D),
    /// Pieces of a buffer, and holes.
    Pieces(PartPieces),
    /// Of a discard, those of the disk.
    Ranges(Ranges<'a>),
}

impl<D: Iterator<Item = Result<Segment, CmdError>>> Iterator for Beside<'_, D> {
    type Item = Result<Segment, CmdError>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Data(data) => data.next(),
            Self::Pieces(pieces) => pieces.next(),
            Self::Ranges(ranges) => ranges.next(),
        }
    }
}

impl<M: MapKind> Upper for BlkUpper<M> {
    type Request = Req;
    type Ended = EndedRequests;

    #[inline(always)]
    fn command(&self, rq: &Req) -> Command {
        match rq {
            Req::Block(rq) => rq.view().command(),
            Req::Bytes(io) => io.command(),
        }
    }

    #[inline(always)]
    fn data<'a>(
        &'a self,
        rq: &'a mut Req,
    ) -> Data<impl Iterator<Item = Result<Segment, CmdError>> + 'a> {
        let rq = match rq {
            Req::Block(rq) => rq,
            Req::Bytes(io) => {
                let part = io.part();
                return match part.pieces() {
                    None => Data::One(part.all),
                    Some(pieces) => Data::Many(Beside::Pieces(pieces)),
                };
            }
        };
        match rq.view().op() {
            Some(Op::Read | Op::Write) => match self.map.data(rq) {
                Data::One(segment) => Data::One(segment),
                Data::Many(data) => Data::Many(Beside::Data(data)),
                Data::Not(why) => Data::Not(why),
            },
            // Of a discard its pieces; the others have none.
            _ => Data::Many(Beside::Ranges(rq.ranges())),
        }
    }

    #[inline(always)]
    fn begin_cmd(&self, rq: &mut Req) {
        match rq {
            Req::Block(rq) => rq.begin(),
            Req::Bytes(io) => io.stop_waiting(),
        }
    }

    #[inline]
    fn predict(&self, rq: &Req, over: Option<Expected>) -> bool {
        let waiter = match rq {
            Req::Block(rq) => rq.waiter(),
            Req::Bytes(io) => io.waiter(),
        };
        let Some(waiter) = waiter else {
            return false;
        };
        if let Some(what) = over {
            crate::wait::expect(waiter, what);
        }
        true
    }

    #[inline]
    fn unmap(&self, rq: &mut Req) {
        if let Req::Block(rq) = rq {
            self.map.unmap(rq);
        }
    }

    fn deferred(&self, rq: &Req) {
        match rq {
            Req::Block(rq) => rq.start_waiting(),
            Req::Bytes(io) => io.start_waiting(),
        }
    }

    #[cold]
    fn starved(&self, rq: &Req) {
        // A read of bytes has its memory mapped.
        let Req::Block(rq) = rq else { return };
        kernel::pr_err!(
            "{}: no memory to map {} bytes for DMA in half a minute, with nothing in flight that \
             holds any: the I/O fails. Give the machine more (swiotlb= on the kernel's command \
             line where data goes through bounce buffers), or lower queue/max_sectors_kb\n",
            rq.disk_name(),
            rq.view().bytes()
        );
    }

    #[inline]
    fn end_cmd(&self, ended: &mut EndedRequests, rq: Req, outcome: Outcome) {
        let rq = match rq {
            Req::Block(rq) => rq,
            Req::Bytes(io) => {
                ended.wakes |= ended.bytes.put(io, outcome);
                return;
            }
        };
        rq.set_status(status(outcome));
        if let Err(failure) = outcome {
            rq.stop_waiting();
            return self.fail(ended, rq, failure);
        }
        let asleep = rq.waiter().is_some_and(Waiter::is_asleep);
        ended.wakes |= asleep;
        match asleep && rq.hctx().switches.get().lazy() {
            // What is left to do is its own, if it is asleep still when the token is free.
            true => ended.offers.push(rq),
            false => self.conclude(ended, rq),
        }
    }

    #[inline]
    fn finish(&self, ended: &mut EndedRequests, by: Context) {
        if !ended.offers.is_empty() {
            self.offer(ended);
        }
        ended.end(by);
    }

    fn can_poll(&self) -> bool {
        self.poller.can_poll()
    }

    #[inline]
    fn wakes(&self, ended: &EndedRequests) -> bool {
        ended.wakes
    }

    fn set_interrupt(&self, on: bool) -> bool {
        self.poller.set_interrupt(on)
    }

    fn arm_poll(&self, us: u32) {
        self.poller.start(us);
    }

    #[cold]
    fn retry_later(&self) {
        self.retry.arm();
    }
}

impl<M: MapKind> Cpu for BlkUpper<M> {
    fn interrupted(&self) -> Interrupted {
        match hiops_on_idle_cpu() {
            true => Interrupted::Nobody,
            false if crate::wait::interrupts_waiter() => Interrupted::Waiter,
            false => Interrupted::Thread,
        }
    }

    #[inline]
    fn is_crowded(&self) -> bool {
        crate::wait::is_crowded()
    }

    #[inline(always)]
    fn may_predict(&self) -> bool {
        // SAFETY: a static key that C defines, and whose fields have the types that are named.
        unsafe { static_branch_unlikely!(shims::hiops_predicts, shims::hiops_key, key) }
    }

    #[inline(always)]
    fn now_ms(&self) -> u64 {
        now_ms()
    }

    #[inline(always)]
    fn now_ns(&self) -> u64 {
        now_ns()
    }
}
