// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of the wait hook: which waits of a thread with I/O of its own pass through it.

use super::hook::Hook;
use super::{interrupts_waiter, own_slot, table};
use crate::blk::request::{self, Offer, QueueRef, Rq, WaitStart};
use crate::platform::{now_ns, PreemptOff};
use crate::shims;
use crate::shims_safe::{hiops_this_pid, hiops_this_thread};
use crate::work::Pinned;
use core::mem::MaybeUninit;
use core::ptr::from_ref;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use engine::{Context, Nap, Next, Thread, Waiter};
use kernel::bindings;
use kernel::ffi::c_ulong;
use kernel::prelude::*;

/// Ticks of a second. CAST: a small constant.
const HZ: c_ulong = shims::HIOPS_HZ as c_ulong;

/// When the I/O of a queue is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// Whenever somebody looks,
    AtOnce,
    /// when the thread has napped,
    AfterNap,
    /// or never, and it naps,
    NeverNaps,
    /// or does not.
    Never,
}

struct Fake {
    ends: Ends,
    visits: AtomicU32,
    looks: AtomicU32,
    over: AtomicPtr<bindings::completion>,
}

impl Fake {
    fn end(&self) {
        // SAFETY: alive, as its maker waits for it; may be called in any context.
        unsafe { bindings::complete(self.over.load(Ordering::Relaxed)) };
    }
}

/// What came of a wait.
#[derive(PartialEq, Eq)]
struct Waited {
    /// How often the thread looked for its I/O, and after a nap.
    visits: u32,
    looks: u32,
    /// Of its time-out, in ticks.
    left: c_ulong,
    /// The timer is on that wakes sleepers with long time-outs.
    watched: bool,
}

impl request::Waited for Fake {
    fn wait(&self, _: WaitStart) -> Next {
        self.visits.fetch_add(1, Ordering::Relaxed);
        match self.ends {
            Ends::Never => Next::Sleep,
            Ends::AtOnce => {
                self.end();
                Next::GoOn
            }
            Ends::AfterNap | Ends::NeverNaps => Next::Nap {
                until_ns: now_ns() + 1_000_000,
                for_ns: 0,
            },
        }
    }

    fn look_again(&self, _: &Waiter<Offer, QueueRef>, _: Thread, until_ns: u64, _: u64) -> Nap {
        self.looks.fetch_add(1, Ordering::Relaxed);
        if self.ends == Ends::NeverNaps || now_ns() < until_ns {
            return Nap::Vain;
        }
        self.end();
        Nap::Hit
    }

    fn end(&self, _: Rq, _: Context) {}
}

/// Something that is not over, in its place, which is not moved until the end.
fn begin(over: &mut MaybeUninit<bindings::completion>) -> *mut bindings::completion {
    let completion = over.as_mut_ptr();
    // SAFETY: zeroed, as its makers do, is not done; its queue is made here.
    unsafe {
        bindings::__init_swait_queue_head(
            &raw mut (*completion).wait,
            c"hiops_kunit".as_char_ptr(),
            kernel::static_lock_class!().as_ptr(),
        );
    }
    completion
}

/// A thread that has just submitted, and that no slot is taken for, waits for something that never
/// comes, for `ticks`. What is left of these.
fn wait_untracked(ticks: c_ulong) -> Option<c_ulong> {
    let _hook = Hook::new()?;
    let mut over = MaybeUninit::<bindings::completion>::zeroed();
    let completion = begin(&mut over);
    drop(PreemptOff::of_submitter());
    // SAFETY: may sleep; the completion is this function's.
    Some(unsafe { bindings::wait_for_completion_io_timeout(completion, ticks) })
}

/// A thread that has I/O outstanding waits for it, for `ticks` at most.
fn wait(ends: Ends, ticks: c_ulong) -> Option<Waited> {
    let _hook = Hook::new()?;
    let mut over = MaybeUninit::<bindings::completion>::zeroed();
    let completion = begin(&mut over);
    let queue = Fake {
        ends,
        visits: AtomicU32::new(0),
        looks: AtomicU32::new(0),
        over: AtomicPtr::new(completion),
    };
    // SAFETY: it stays where it is until all is over that is tracked below.
    let queue_ref = QueueRef::new(unsafe { Pinned::new(&queue) });
    let this = Thread::at(hiops_this_thread())?;
    let waiter = table()?.waiters.slot(this)?;
    if !waiter.track(this, from_ref(&queue_ref).cast_mut()) {
        return None;
    }
    // SAFETY: may sleep; the completion is this function's.
    let left = unsafe { bindings::wait_for_completion_io_timeout(completion, ticks) };
    super::ended(waiter);
    Some(Waited {
        visits: queue.visits.load(Ordering::Relaxed),
        looks: queue.looks.load(Ordering::Relaxed),
        left,
        watched: table()?.sleepers.state().1,
    })
}

#[kunit_tests(hiops_wait)]
mod wait_suite {
    use super::*;

    #[test]
    fn a_pause_keeps_its_length() {
        // The longest of balance_dirty_pages().
        let waited = wait(Ends::AtOnce, HZ / 5);
        assert!(waited.is_some_and(|it| it.visits == 0 && it.left == 0 && !it.watched));
    }

    #[test]
    fn a_wait_for_io_ends_with_it() {
        // The shortest of blk_io_schedule(): nothing of it passes.
        let waited = wait(Ends::AtOnce, HZ / 2);
        assert!(waited.is_some_and(|it| it.visits == 1 && it.left > 0));
    }

    #[test]
    fn who_has_the_record_of_one_that_waited_is_no_waiter() -> Result<(), hal::Error> {
        assert!(wait(Ends::AtOnce, HZ / 2).is_some());
        assert!(interrupts_waiter());
        // As if one that has ended had been at the same address.
        let slot = own_slot().ok_or(hal::Error::Invalid)?;
        slot.last.store(hiops_this_pid() ^ 1, Ordering::Relaxed);
        assert!(!interrupts_waiter());
        Ok(())
    }

    #[test]
    fn who_has_napped_looks_again() {
        let waited = wait(Ends::AfterNap, HZ);
        assert!(waited.is_some_and(|it| it.visits == 1 && it.looks == 1 && it.left > 0));
    }

    #[test]
    fn who_has_napped_in_vain_sleeps_until_its_time_out() {
        let waited = wait(Ends::NeverNaps, HZ);
        assert!(waited.is_some_and(|it| it.visits == 1 && it.looks == 1 && it.left == 0));
    }

    #[test]
    fn a_time_out_ends_a_wait_for_io_that_does_not() {
        let waited = wait(Ends::Never, HZ / 2);
        assert!(waited.is_some_and(|it| it.visits == 1 && it.left == 0 && !it.watched));
    }

    #[test]
    fn one_timer_ends_the_waits_with_long_time_outs() {
        // It was what woke, so it comes once more.
        let waited = wait(Ends::Never, 5 * HZ);
        assert!(waited.is_some_and(|it| it.visits == 1 && it.left == 0 && it.watched));
        assert!(table().is_some_and(|table| !table.sleepers.state().0));
    }

    #[test]
    fn who_has_just_submitted_needs_no_timer() {
        // Unless it goes on on another CPU, where it is not known to have submitted.
        let mut tries = (0..3).map(|_| {
            let left = wait_untracked(5 * HZ);
            assert!(left == Some(0));
            table().map(|table| table.sleepers.state())
        });
        assert!(tries.any(|state| state == Some((false, true))));
    }

    #[test]
    fn a_pause_of_who_has_just_submitted_keeps_its_length() {
        let left = wait_untracked(HZ / 5);
        assert!(left == Some(0));
    }
}
