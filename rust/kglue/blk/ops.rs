// SPDX-License-Identifier: GPL-2.0
//! blk-mq's callbacks. Each recovers its pointer, calls safe code, converts the result.

use super::again::is_retry;
use super::lane::Lane;
use super::request::Rq;
use super::upper::end_swallowed;
use super::DiskShared;
use crate::adapter::{Adapter, Bus, HwQueue};
use crate::compat::zeroed;
use crate::context::PreemptOff;
use crate::shims;
use crate::wait;
use core::marker::PhantomData;
use core::ptr::{null, NonNull};
use engine::{Context, Switches};
use hal::Controller;
use kernel::bindings;
use kernel::ffi::{c_int, c_uint, c_void};

/// blk-mq's operations for controllers `C` on bus `B`.
pub(crate) struct Ops<C, B>(PhantomData<(C, B)>);

/// Requests that plugging gathered, taken from the front.
///
/// # Invariants
/// The list is blk-mq's for the duration of its `queue_rqs` call.
struct Plugged<'a>(&'a mut bindings::rq_list);

impl Plugged<'_> {
    /// The lane of the first request, and how many in a row are on it.
    #[inline]
    fn run(&self) -> Option<(*const Lane, usize)> {
        let lane_of = |rq: NonNull<bindings::request>| -> *const Lane {
            // SAFETY: the list's requests are alive, and hiops' from this call on; the handle is forgotten at once.
            unsafe { Rq::from_raw(rq) }.lane()
        };
        let first = NonNull::new(self.0.head)?;
        let lane = lane_of(first);
        let mut length = 1usize;
        let mut rq = first;
        // SAFETY: a live request of the list, whose links are this call's to read.
        while let Some(next) = NonNull::new(unsafe { (*rq.as_ptr()).__bindgen_anon_1.rq_next }) {
            if lane_of(next) != lane {
                break;
            }
            length = length.wrapping_add(1);
            rq = next;
        }
        Some((lane, length))
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Rq> {
        let rq = NonNull::new(self.0.head)?;
        // SAFETY: the list's requests are alive and given to this call.
        let next = unsafe { (*rq.as_ptr()).__bindgen_anon_1.rq_next };
        self.0.head = next;
        if next.is_null() {
            self.0.tail = next;
        }
        // SAFETY: blk-mq gives the request away with the list.
        Some(unsafe { Rq::from_raw(rq) })
    }
}

/// The first `left` requests of a list.
struct Run<'a, 'b> {
    plugged: &'a mut Plugged<'b>,
    left: usize,
    switches: Switches,
    /// It is of use to know who waits.
    noted: bool,
}

impl Iterator for Run<'_, '_> {
    type Item = Rq;

    #[inline(always)]
    fn next(&mut self) -> Option<Rq> {
        self.left = self.left.checked_sub(1)?;
        let rq = self.plugged.pop()?;
        enlist(&rq, self.switches, self.noted);
        Some(rq)
    }
}

/// Notes who waits for `rq`, if that is of use (`noted`) and certain.
#[inline(always)]
fn enlist(rq: &Rq, switches: Switches, noted: bool) {
    let waiter = match noted {
        true => wait::enlist(rq, switches.coop()),
        false => null(),
    };
    // SAFETY: the request was just given to hiops; the head is its own.
    unsafe { (*rq.head()).waiter = waiter };
}

/// Takes over `rq`, which comes from an elevator: it goes back where no tag is free, as the order
/// of what waits is the elevator's, and ioprio's. blk-mq comes again when a request ends.
fn scheduled<C: Controller, B: Bus>(
    lane: &Lane,
    queue: &HwQueue<C, B>,
    rq: Rq,
    last: bool,
) -> bindings::blk_status_t {
    let is_new = !is_retry(&rq);
    enlist_nobody(&rq);
    // Before anybody can end it; taken back where it does not come to that.
    if is_new {
        lane.stats.submitted(1);
    }
    match queue.io.try_submit(rq, last) {
        Ok(()) => shims::HIOPS_STS_OK,
        Err(back) => {
            if is_new {
                lane.stats.not_submitted();
            }
            let _ = back.into_raw();
            shims::HIOPS_STS_RESOURCE
        }
    }
}

/// Notes that it is not known who waits for `rq`.
#[cold]
fn enlist_nobody(rq: &Rq) {
    // SAFETY: as in `enlist`.
    unsafe { (*rq.head()).waiter = null() };
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

    #[inline(always)]
    fn io(lane: &Lane) -> &HwQueue<C, B> {
        // SAFETY: `init_hctx` got it from this very adapter, which outlives its disks' requests.
        unsafe { &*lane.queue.cast::<HwQueue<C, B>>() }
    }

    /// # Safety
    /// `set` is the tag set of an adapter of this type, which lives while the result is used.
    unsafe fn adapter<'a>(set: *const bindings::blk_mq_tag_set) -> &'a Adapter<C, B> {
        // SAFETY: by the caller's promise: that is who has made it.
        unsafe { &*(*set).driver_data.cast::<Adapter<C, B>>() }
    }

    /// # Safety
    /// Called by blk-mq with a request that is hiops' from now on.
    unsafe extern "C" fn queue_rq(
        hctx: *mut bindings::blk_mq_hw_ctx,
        bd: *const bindings::blk_mq_queue_data,
    ) -> bindings::blk_status_t {
        // SAFETY: blk-mq passes its own; `driver_data` was set in `init_hctx`.
        let (lane, rq, last) =
            unsafe { (&*(*hctx).driver_data.cast::<Lane>(), (*bd).rq, (*bd).last) };
        let Some(rq) = NonNull::new(rq) else {
            return shims::HIOPS_STS_IOERR;
        };
        // SAFETY: given to hiops with this call.
        let rq = unsafe { Rq::from_raw(rq) };
        if rq.op().is_none() {
            return shims::HIOPS_STS_NOTSUPP;
        }
        let _stay = PreemptOff::new();
        let (queue, switches) = (Self::io(lane), lane.switches.get());
        if rq.is_scheduled() {
            return scheduled(lane, queue, rq, last);
        }
        if is_retry(&rq) {
            // Counted before. Whoever brings it is not who waits for it.
            enlist_nobody(&rq);
        } else {
            lane.stats.submitted(1);
            enlist(&rq, switches, queue.io.notes_owner(switches));
        }
        queue.io.submit(rq, last);
        queue.io.pass_by(switches);
        shims::HIOPS_STS_OK
    }

    /// # Safety
    /// Called by blk-mq with requests of this adapter that are hiops' from now on, those that it takes out.
    unsafe extern "C" fn queue_rqs(list: *mut bindings::rq_list) {
        // SAFETY: blk-mq's list, ours for this call.
        let mut plugged = Plugged(unsafe { &mut *list });
        let _stay = PreemptOff::new();
        while let Some((lane, left)) = plugged.run() {
            // SAFETY: a lane outlives its requests, and the first of the list is one.
            let lane = unsafe { &*lane };
            // Who is tried again does not come in a plug.
            lane.stats.submitted(left as u64);
            let (queue, switches) = (Self::io(lane), lane.switches.get());
            let run = Run {
                plugged: &mut plugged,
                left,
                switches,
                noted: queue.io.notes_owner(switches),
            };
            // Plugs gather reads and writes only: what else hiops takes, `command` knows too.
            queue.io.submit_many(run);
            // The queue is there while preemption is off; the lane goes with its disk, which these requests may have kept.
            queue.io.pass_by(switches);
        }
    }

    /// # Safety
    /// Called by blk-mq for a hardware context of this adapter.
    unsafe extern "C" fn commit_rqs(hctx: *mut bindings::blk_mq_hw_ctx) {
        // SAFETY: as in `queue_rq`.
        let lane = unsafe { &*(*hctx).driver_data.cast::<Lane>() };
        let _stay = PreemptOff::new();
        Self::io(lane).io.commit();
    }

    /// # Safety
    /// Called by blk-mq for a request of this adapter that it holds a reference to.
    unsafe extern "C" fn timeout(rq: *mut bindings::request) -> bindings::blk_eh_timer_return {
        let Some(rq) = NonNull::new(rq) else {
            return bindings::blk_eh_timer_return_BLK_EH_DONE;
        };
        // SAFETY: this is the time-out of a request of this adapter's tag set.
        if cfg!(CONFIG_FAIL_IO_TIMEOUT) && unsafe { end_swallowed(rq) } {
            return bindings::blk_eh_timer_return_BLK_EH_DONE;
        }
        // SAFETY: blk-mq holds a reference to the request, which may be over or not; it is only looked at.
        let rq = unsafe { Rq::from_raw(rq) };
        // SAFETY: while the request is there, its queue is, and the tag set of that.
        let adapter = unsafe { Self::adapter((*(*rq.as_raw()).q).tag_set) };
        adapter.late(Self::io(rq.lane()), &rq);
        bindings::blk_eh_timer_return_BLK_EH_RESET_TIMER
    }

    /// # Safety
    /// Called by blk-mq for a hardware context of this adapter, one for polled I/O.
    unsafe extern "C" fn poll(
        hctx: *mut bindings::blk_mq_hw_ctx,
        _batch: *mut bindings::io_comp_batch,
    ) -> c_int {
        // SAFETY: as in `queue_rq`.
        let lane = unsafe { &*(*hctx).driver_data.cast::<Lane>() };
        let io = &Self::io(lane).io;
        let _stay = PreemptOff::new();
        // Most calls come before the device has answered: those are to be cheap.
        if !io.check() {
            return 0;
        }
        c_int::try_from(io.drain(Context::Poll)).unwrap_or(c_int::MAX)
    }

    /// # Safety
    /// Called by blk-mq while it makes a queue of this adapter's.
    unsafe extern "C" fn init_hctx(
        hctx: *mut bindings::blk_mq_hw_ctx,
        _adapter: *mut c_void,
        index: c_uint,
    ) -> c_int {
        // SAFETY: the queue was allocated with its disk's `DiskShared` as `queuedata`.
        let disk = unsafe { &*(*(*hctx).queue).queuedata.cast::<DiskShared>() };
        match disk.lanes.get(index as usize) {
            Some(lane) => {
                let lane: *const Lane = lane;
                // SAFETY: the context is being made, and is ours.
                unsafe { (*hctx).driver_data = lane.cast_mut().cast() };
                0
            }
            None => kernel::error::code::EINVAL.to_errno(),
        }
    }

    /// # Safety
    /// Called by blk-mq with this adapter's tag set.
    unsafe extern "C" fn map_queues(set: *mut bindings::blk_mq_tag_set) {
        // SAFETY: `driver_data` is the adapter that owns the set; the maps are the set's own, and not in use yet.
        unsafe {
            let adapter = Self::adapter(set);
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
