// SPDX-License-Identifier: GPL-2.0
//! What enters from outside: blk-mq's callbacks, each of which recovers its pointer, calls safe
//! code, and converts the result; and the interrupt.
//!
//! `kernel::block::mq::Operations` (Linux 7.2 and 7.3) has `queue_rq`, `commit_rqs` and a `poll`
//! that is not told of what; neither `queue_rqs`, `timeout` nor `map_queues`, nor data of a
//! hardware context.

use core::marker::PhantomData;
use core::ptr::{from_ref, NonNull};
use engine::{Context, Switches};
use hal::{Cause, Controller};
use kernel::bindings;
use kernel::ffi::{c_int, c_uint, c_void};

use crate::adapter::{Adapter, Bus, HwQueue};
use crate::blk::batch::{end_swallowed, Chain};
use crate::blk::latency::now;
use crate::blk::request::{HctxData, Rq, RqRef};
use crate::blk::DiskShared;
use crate::bytes::io::Req;
use crate::compat::zeroed;
use crate::irq::Interrupt;
use crate::platform::{stamp, PreemptOff};
use crate::{shims, wait};

/// The vector on which a controller's events come.
const EVENTS: u16 = 0;

/// blk-mq's operations for controllers `C` on bus `B`.
pub(crate) struct Ops<C, B>(PhantomData<(C, B)>);

/// The first `left` requests of a list.
struct Run<'a> {
    rest: &'a mut Chain,
    left: usize,
    switches: Switches,
    /// It is of use to know which thread waits.
    noted: bool,
    /// When they were handed over, if that is measured.
    start: u64,
}

impl Iterator for Run<'_> {
    type Item = Rq;

    #[inline(always)]
    fn next(&mut self) -> Option<Rq> {
        self.left = self.left.checked_sub(1)?;
        let rq = self.rest.pop()?;
        // A request that is tried again does not come in a plug.
        let _ = rq.take_again();
        if self.switches.latency() {
            rq.own().start.set(self.start);
        }
        track(&rq, self.switches, || self.noted);
        Some(rq)
    }
}

/// Notes the thread that waits for `rq`, if that is certain, and of use, which `noted` says: for a
/// request of io_uring it is not asked.
#[inline(always)]
fn track(rq: &Rq, switches: Switches, noted: impl FnOnce() -> bool) {
    rq.set_waiter(match rq.view().may_be_slept_for() && noted() {
        true => wait::track(rq, switches.coop()),
        false => None,
    });
}

/// Notes that `rq` is handed over now, if that is measured.
#[inline(always)]
fn start(rq: &Rq, switches: Switches) {
    if switches.latency() {
        rq.own().start.set(now(switches));
    }
}

/// Takes over `rq`, which comes from an elevator: it goes back where no tag is free, as the order
/// of what waits is the elevator's, and ioprio's. blk-mq comes again when a request ends.
fn scheduled<C: Controller, B: Bus>(
    data: &HctxData,
    queue: &HwQueue<C, B>,
    rq: Rq,
    last: bool,
) -> bindings::blk_status_t {
    let again = rq.take_again();
    rq.set_waiter(None);
    // Before anybody can end it; taken back where it does not come to that.
    if !again {
        data.stats.submitted(1);
        start(&rq, data.switches.get());
    }
    match queue.io.try_submit(Req::Block(rq), last) {
        Ok(()) | Err(Req::Bytes(_)) => shims::HIOPS_STS_OK,
        Err(Req::Block(back)) => {
            match again {
                true => back.set_again(true),
                false => data.stats.not_submitted(),
            }
            let _ = back.into_raw();
            shims::HIOPS_STS_RESOURCE
        }
    }
}

impl<C: Controller, B: Bus> Ops<C, B> {
    /// The table that the tag set points to.
    pub(crate) const TABLE: bindings::blk_mq_ops = bindings::blk_mq_ops {
        queue_rq: Some(Self::queue_rq),
        queue_rqs: Some(Self::queue_rqs),
        commit_rqs: Some(Self::commit_rqs),
        timeout: Some(Self::timeout),
        poll: Some(Self::poll),
        init_hctx: Some(Self::init_hctx),
        map_queues: Some(Self::map_queues),
        ..zeroed()
    };

    /// The hardware queue of `data`, for as long as preemption is off: it outlives the disk, with
    /// which `data` goes.
    #[inline(always)]
    fn io<'a>(data: &HctxData, _stay: &'a PreemptOff) -> &'a HwQueue<C, B> {
        // SAFETY: `init_hctx` got the data from this very adapter, which outlives its disks, and
        // then waits until nobody has preemption off that may have seen one.
        unsafe { &*data.queue.cast::<HwQueue<C, B>>() }
    }

    /// # Safety
    /// Called by blk-mq with a request that is hiops' from now on.
    unsafe extern "C" fn queue_rq(
        hctx: *mut bindings::blk_mq_hw_ctx,
        bd: *const bindings::blk_mq_queue_data,
    ) -> bindings::blk_status_t {
        // SAFETY: blk-mq passes its own; `driver_data` was set in `init_hctx`. The request is
        // there, and given to hiops with this call.
        let (data, rq, last) = unsafe {
            let rq = Rq::from_raw(NonNull::new_unchecked((*bd).rq));
            (&*(*hctx).driver_data.cast::<HctxData>(), rq, (*bd).last)
        };
        if rq.view().op().is_none() {
            return shims::HIOPS_STS_NOTSUPP;
        }
        let stay = PreemptOff::of_submitter();
        let (queue, switches) = (Self::io(data, &stay), data.switches.get());
        if rq.view().is_scheduled() {
            return scheduled(data, queue, rq, last);
        }
        if rq.take_again() {
            // Counted before. The thread that brings it is not the one that waits for it.
            rq.set_waiter(None);
        } else {
            data.stats.submitted(1);
            start(&rq, switches);
            track(&rq, switches, || queue.io.tracks(switches));
        }
        queue.io.submit(Req::Block(rq), last);
        queue.io.poll_on_submit(switches);
        shims::HIOPS_STS_OK
    }

    /// # Safety
    /// Called by blk-mq with requests of this adapter that are hiops' from now on, those that it
    /// takes out.
    unsafe extern "C" fn queue_rqs(list: *mut bindings::rq_list) {
        // SAFETY: blk-mq's list, ours for this call, and so are its requests.
        let mut rest = unsafe { Chain::take(&mut *list) };
        let stay = PreemptOff::of_submitter();
        while let Some((data, left)) = rest.iter().run() {
            data.stats.submitted(left as u64);
            let (queue, switches) = (Self::io(data, &stay), data.switches.get());
            let run = Run {
                rest: &mut rest,
                left,
                switches,
                noted: queue.io.tracks(switches),
                start: match switches.latency() {
                    true => now(switches),
                    false => 0,
                },
            };
            // Plugs gather reads and writes only: what else hiops takes, `command` knows too.
            queue.io.submit_many(run.map(Req::Block));
            // The data of an hctx goes with its disk, which these requests may have kept.
            queue.io.poll_on_submit(switches);
        }
    }

    /// # Safety
    /// Called by blk-mq for a hardware context of this adapter.
    unsafe extern "C" fn commit_rqs(hctx: *mut bindings::blk_mq_hw_ctx) {
        // SAFETY: as in `queue_rq`.
        let data = unsafe { &*(*hctx).driver_data.cast::<HctxData>() };
        let stay = PreemptOff::new();
        Self::io(data, &stay).io.commit();
    }

    /// # Safety
    /// Called by blk-mq for a request of this adapter that it holds a reference to.
    unsafe extern "C" fn timeout(rq: *mut bindings::request) -> bindings::blk_eh_timer_return {
        // SAFETY: blk-mq holds a reference to the request, which may be over or not, and while that
        // is there, its queue is, the tag set of that, and the adapter that has made the set, which
        // is of this type, with its hardware queues.
        let (rq, adapter, queue) = unsafe {
            let set = (*(*rq).q).tag_set;
            let rq = RqRef::from_raw(NonNull::new_unchecked(rq));
            let adapter = &*(*set).driver_data.cast::<Adapter<C, B>>();
            (rq, adapter, &*rq.hctx().queue.cast::<HwQueue<C, B>>())
        };
        if cfg!(CONFIG_FAIL_IO_TIMEOUT) {
            if let Some(rq) = rq.take_swallowed() {
                end_swallowed(rq);
                return bindings::blk_eh_timer_return_BLK_EH_DONE;
            }
        }
        adapter.late(queue, &rq);
        bindings::blk_eh_timer_return_BLK_EH_RESET_TIMER
    }

    /// # Safety
    /// Called by blk-mq for a hardware context of this adapter, one for polled I/O.
    unsafe extern "C" fn poll(
        hctx: *mut bindings::blk_mq_hw_ctx,
        _batch: *mut bindings::io_comp_batch,
    ) -> c_int {
        // SAFETY: as in `queue_rq`.
        let data = unsafe { &*(*hctx).driver_data.cast::<HctxData>() };
        let stay = PreemptOff::new();
        let queue = Self::io(data, &stay);
        // Most calls come before the device has answered: those are to be cheap.
        if !queue.io.check() {
            return 0;
        }
        let ended = queue.io.drain(Context::Poll);
        queue.check_violations();
        c_int::try_from(ended).unwrap_or(c_int::MAX)
    }

    /// # Safety
    /// Called by blk-mq while it makes a queue of this adapter's.
    unsafe extern "C" fn init_hctx(
        hctx: *mut bindings::blk_mq_hw_ctx,
        _adapter: *mut c_void,
        index: c_uint,
    ) -> c_int {
        // SAFETY: the context is being made, and is ours. Its queue was allocated with its disk's
        // `DiskShared` as `queuedata`.
        let (disk, place) = unsafe {
            let disk = &*(*(*hctx).queue).queuedata.cast::<DiskShared>();
            (disk, &mut (*hctx).driver_data)
        };
        match disk.hctxs.get(index as usize) {
            Some(data) => {
                *place = from_ref(data).cast_mut().cast();
                0
            }
            None => kernel::error::code::EINVAL.to_errno(),
        }
    }

    /// # Safety
    /// Called by blk-mq with this adapter's tag set.
    unsafe extern "C" fn map_queues(set: *mut bindings::blk_mq_tag_set) {
        // SAFETY: `driver_data` is the adapter that owns the set, of this type; the maps are the
        // set's own, and not in use yet.
        unsafe {
            let adapter = &*(*set).driver_data.cast::<Adapter<C, B>>();
            let (interrupting, all) = (adapter.interrupting(), adapter.queue_count());
            let [default, read, poll, ..] = &mut (*set).map;
            // CAST: as many queues as a u16 counts.
            default.nr_queues = interrupting as c_uint;
            adapter.bus().map_queues(default);
            // Reads go with the rest.
            read.nr_queues = 0;
            poll.nr_queues = all.wrapping_sub(interrupting) as c_uint;
            poll.queue_offset = interrupting as c_uint;
            if poll.nr_queues != 0 {
                bindings::blk_mq_map_queues(poll);
            }
        }
    }
}

impl<C: Controller, B: Bus> Interrupt for Adapter<C, B> {
    #[inline]
    fn interrupt(&self, vector: u16) -> bool {
        let begin = stamp();
        let queue = self.queue_of(vector);
        if let Some(queue) = queue.filter(|_| !C::ACKNOWLEDGES && vector != EVENTS) {
            queue.serve(begin, |io| io.drain_interrupt());
            return true;
        }
        match self.controller.interrupt(vector) {
            Cause::None => return false,
            Cause::Queues => {}
            Cause::AsyncEvent => self.call(),
        }
        match queue {
            Some(queue) => queue.serve(begin, |io| io.drain(Context::Irq)),
            None => self.interrupt_all(vector, begin),
        }
        true
    }
}

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// The queue of `vector`, where each has its own.
    #[inline]
    fn queue_of(&self, vector: u16) -> Option<&HwQueue<C, B>> {
        let at = vector.wrapping_sub(self.own_vectors?);
        let queue = self.queues.get(usize::from(at))?;
        queue.vector.is_some().then_some(queue)
    }

    /// Several queues share `vector`.
    #[cold]
    fn interrupt_all(&self, vector: u16, begin: u64) {
        let mut queues = self
            .queues
            .iter()
            .filter(|queue| queue.vector == Some(vector));
        let first = queues.next();
        queues.for_each(|queue| {
            queue.io.drain(Context::Irq);
        });
        if let Some(queue) = first {
            queue.serve(begin, |io| io.drain(Context::Irq));
        }
    }
}
