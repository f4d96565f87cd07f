// SPDX-License-Identifier: GPL-2.0
//! The hook in the kernel's waits: what a thread does as it enters one and as it leaves it
//! (`c_shims/wait.c` is what redirects it here).

use super::{end, queue_of, table, WaitSlot};
use crate::blk::request::{Offer, QueueRef, WaitStart};
use crate::platform::{cpu, now_ns, stamp, PreemptOff, TICK_MS};
use crate::shims;
use crate::shims_safe::{
    hiops_hook_get, hiops_hook_put, hiops_may_drain, hiops_may_nap, hiops_predicts_get,
    hiops_predicts_put, hiops_this_pid,
};
use core::ptr::{from_ref, null_mut};
use core::sync::atomic::{AtomicBool, Ordering};
use engine::{Context, Next, Thread, Waiter};
use kernel::ffi::{c_long, c_void};
use kernel::prelude::*;

/// The hooks are in place.
static HOOKED: AtomicBool = AtomicBool::new(false);

/// # Safety
/// Called by the hook's callback, in the thread `this`.
#[no_mangle]
unsafe extern "C" fn hiops_wait_wanted(this: u64) -> bool {
    let (Some(table), Some(thread)) = (table(), Thread::at(this)) else {
        return false;
    };
    (table.waiters.slot(thread)).is_some_and(|waiter| waiter.waits(thread))
}

/// # Safety
/// Called by the hook's callback, in the thread `this`, which is about to sleep for up to so many
/// ticks; `hiops_sleep_end` follows, if the answer is that the time-out is looked after.
#[no_mangle]
unsafe extern "C" fn hiops_sleep_begin(this: u64, ticks: c_long) -> bool {
    table().is_some_and(|table| table.sleepers.begin_sleep(this, ticks))
}

/// # Safety
/// Called by the hook in the thread `this`, which is awake again.
#[no_mangle]
unsafe extern "C" fn hiops_sleep_end(this: u64) {
    if let Some(table) = table() {
        table.sleepers.end_sleep(this);
    }
}

/// # Safety
/// Called by the hook in the thread `this`, which is about to sleep for up to so many ticks and
/// wakeable already; `hiops_wait_leave` follows with what is returned.
#[no_mangle]
unsafe extern "C" fn hiops_wait_enter(
    this: u64,
    ticks: c_long,
    wait: *mut shims::hiops_wait,
) -> *mut c_void {
    let (Some(table), Some(thread)) = (table(), Thread::at(this)) else {
        return null_mut();
    };
    let Some(waiter) = table.waiters.slot(thread) else {
        return null_mut();
    };
    let Some(slot) = table.slots.get(waiter.index()) else {
        return null_mut();
    };
    slot.inside.fetch_add(1, Ordering::Relaxed);
    slot.last.store(hiops_this_pid(), Ordering::Relaxed);
    let _stay = PreemptOff::new();
    table.cpu_waiters.set_ready(&slot.ready, None);
    let may_yield = table.cpu_waiters.arrive();
    let mut until = 0;
    let code = match wait_on_queue(slot, waiter, thread, may_yield) {
        Next::Sleep => {
            // CAST: a number of a CPU.
            slot.cpu.store(cpu() as u32, Ordering::Relaxed);
            // The slot is the thread's own from the one to the other.
            match waiter.sleep(thread) && table.sleepers.begin_sleep(this, ticks) {
                true => shims::HIOPS_SLEEP_WATCHED,
                false => shims::HIOPS_SLEEP,
            }
        }
        Next::Yield => {
            slot.yielded_at.store(stamp(), Ordering::Relaxed);
            // CAST: as above.
            table.cpu_waiters.set_ready(&slot.ready, Some(cpu() as u32));
            shims::HIOPS_YIELD
        }
        Next::GoOn => {
            slot.naps.forget();
            shims::HIOPS_GO_ON
        }
        Next::Nap { until_ns, for_ns } => {
            // CAST: as above.
            slot.cpu.store(cpu() as u32, Ordering::Relaxed);
            until = until_ns.min(end_of(ticks));
            slot.naps.begin(until, for_ns, waiter.queue_ref(thread));
            waiter.sleep(thread);
            shims::HIOPS_NAP
        }
    };
    // SAFETY: the hook's own.
    let wait = unsafe { &mut *wait };
    wait.until_ns = until;
    wait.next = code;
    from_ref(waiter).cast_mut().cast()
}

/// Has the queue drained that has the I/O of `thread`, the caller, if that may be: what it does
/// next. `may_yield`: it may yield on this CPU. With preemption off.
#[inline]
fn wait_on_queue(
    slot: &WaitSlot,
    waiter: &Waiter<Offer, QueueRef>,
    thread: Thread,
    may_yield: bool,
) -> Next {
    if slot.naps.take_vain() || !waiter.waits(thread) || !hiops_may_drain() {
        return Next::Sleep;
    }
    let queue = queue_of(waiter, thread);
    let start = WaitStart {
        yielded: slot.take_yielded(),
        may_yield,
        expected: (slot.naps.expected(waiter.outstanding())).filter(|_| hiops_may_nap()),
        napped: slot
            .naps
            .take_ended(queue.map_or(null_mut(), |queue| from_ref(queue).cast_mut())),
    };
    match queue {
        Some(queue) => queue.queue().wait(start),
        None => Next::Sleep,
    }
}

/// When a wait of `ticks` ends, by the monotonic clock.
fn end_of(ticks: c_long) -> u64 {
    let ms = ticks.unsigned_abs().saturating_mul(TICK_MS as usize);
    // CAST: as wide.
    now_ns().saturating_add((ms as u64).saturating_mul(1_000_000))
}

/// # Safety
/// Called by the hook in the thread `this` with what `hiops_wait_enter` returned there, after it
/// has done what that said.
#[no_mangle]
unsafe extern "C" fn hiops_wait_leave(
    waiter: *mut c_void,
    this: u64,
    wait: *const shims::hiops_wait,
) {
    // SAFETY: the hook's own; and null or a slot of the table, which lives while a thread is in it.
    let (done, woken, waiter) = unsafe {
        let waiter = waiter.cast::<Waiter<Offer, QueueRef>>().as_ref();
        ((*wait).next, (*wait).woken, waiter)
    };
    let Some(waiter) = waiter else { return };
    let Some(table) = table() else { return };
    let slot = table.slots.get(waiter.index());
    if let Some(slot) = slot {
        table.cpu_waiters.set_ready(&slot.ready, None);
    }
    if done == shims::HIOPS_SLEEP_WATCHED {
        table.sleepers.end_sleep(this);
    }
    let slept = done == shims::HIOPS_SLEEP || done == shims::HIOPS_SLEEP_WATCHED;
    if slept || done == shims::HIOPS_NAP {
        let offer = Thread::at(this).and_then(|thread| waiter.wake(thread));
        if let Some(offer) = offer {
            let _stay = PreemptOff::new();
            end(offer, Context::Lazy);
        }
        if let (Some(slot), Some(thread)) = (slot, Thread::at(this)) {
            slot.naps.forget();
            if done == shims::HIOPS_NAP {
                let _stay = PreemptOff::new();
                slot.naps.end(waiter, thread, woken, hiops_may_drain());
            }
        }
    } else if done == shims::HIOPS_YIELD {
        if let (Some(slot), Some(thread)) = (slot, Thread::at(this)) {
            let since = slot.yielded_at.load(Ordering::Relaxed);
            let found = table.is_over(waiter, thread, since);
            slot.yielded.store(u8::from(found), Ordering::Relaxed);
        }
    }
    if let Some(slot) = slot {
        // Release: the thread that waits for the slot to be empty sees all of the above.
        slot.inside.fetch_sub(1, Ordering::Release);
    }
}

/// Whether threads pass through the hook.
pub(crate) fn is_hooked() -> bool {
    HOOKED.load(Ordering::Relaxed)
}

/// While it lives, queues may have prediction on: what asks is no no-op then.
struct MayPredict(());

impl MayPredict {
    fn new() -> Self {
        hiops_predicts_get();
        Self(())
    }
}

impl Drop for MayPredict {
    fn drop(&mut self) {
        hiops_predicts_put();
    }
}

/// The hooks, for as long as a disk is there.
pub(crate) struct Hook {
    /// Prediction has threads that wake early, so nothing is predicted without the hooks.
    may_predict: Option<MayPredict>,
}

impl Hook {
    /// Hooks the waits of the machine; `None`, said once: it can't be done here. Sleeps.
    pub(crate) fn new() -> Option<Self> {
        static TOLD: AtomicBool = AtomicBool::new(false);
        let failed = hiops_hook_get();
        if failed != 0 {
            if !TOLD.swap(true, Ordering::Relaxed) {
                pr_warn!(
                    "io_schedule() can't be hooked (error {}): I/O is finished by whoever finds it \
                     complete; `lazy` is unavailable. Is a live patch in place?\n",
                    failed
                );
            }
            return None;
        }
        HOOKED.store(true, Ordering::Relaxed);
        Some(Self { may_predict: None })
    }

    /// Whether the queues that hooked the waits may have prediction on from now on. Sleeps.
    pub(crate) fn set_may_predict(&mut self, on: bool) {
        match on {
            true => _ = self.may_predict.get_or_insert_with(MayPredict::new),
            false => self.may_predict = None,
        }
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        HOOKED.store(hiops_hook_put(), Ordering::Relaxed);
    }
}
