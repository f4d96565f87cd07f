// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of the wait hook: which waits of a thread with I/O of its own pass through it.

use super::hook::Hook;
use super::table;
use crate::aim::Stays;
use crate::shims;
use crate::shims_safe::hiops_this_thread;
use crate::way::{Waited, Way};
use core::mem::MaybeUninit;
use core::ptr::from_ref;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use engine::{Context, Next, Thread, Turn};
use kernel::bindings;
use kernel::ffi::c_ulong;
use kernel::prelude::*;

/// Ticks of a second. CAST: a small constant.
const HZ: c_ulong = shims::HIOPS_HZ as c_ulong;

/// A queue whose I/O is over whenever somebody looks, or never.
struct Fake {
    ends: bool,
    visits: AtomicU32,
    over: AtomicPtr<bindings::completion>,
}

impl Waited for Fake {
    fn wait(&self, _: Option<Turn>, _: bool) -> Next {
        self.visits.fetch_add(1, Ordering::Relaxed);
        if !self.ends {
            return Next::Sleep;
        }
        // SAFETY: alive, as its maker waits for it; may be called in any context.
        unsafe { bindings::complete(self.over.load(Ordering::Relaxed)) };
        Next::GoOn
    }

    fn end(&self, _: crate::blk::request::Rq, _: Context) {}
}

/// How often a thread that has I/O outstanding looks for it, in a wait of `ticks` at most that only
/// its look ends, if it `ends`; how many ticks are left then, and whether the timer is on that
/// wakes sleepers with long time-outs.
fn wait(ends: bool, ticks: c_ulong) -> Option<(u32, c_ulong, bool)> {
    let _hook = Hook::new()?;
    let mut over = MaybeUninit::<bindings::completion>::zeroed();
    let completion = over.as_mut_ptr();
    // SAFETY: zeroed is not done; its queue is made here. It is not moved until the end.
    unsafe {
        bindings::__init_swait_queue_head(
            &raw mut (*completion).wait,
            c"hiops_kunit".as_char_ptr(),
            kernel::static_lock_class!().as_ptr(),
        );
    }
    let queue = Fake {
        ends,
        visits: AtomicU32::new(0),
        over: AtomicPtr::new(completion),
    };
    // SAFETY: it stays where it is until all is over that is enlisted below.
    let way = Way::new(unsafe { Stays::new(&queue) });
    let this = Thread::at(hiops_this_thread())?;
    let waiter = table()?.waiters.place(this)?;
    if !waiter.enlist(this, from_ref(&way).cast_mut()) {
        return None;
    }
    // SAFETY: may sleep; the completion is this function's.
    let left = unsafe { bindings::wait_for_completion_io_timeout(completion, ticks) };
    super::ended(waiter);
    let watched = table()?.timeouts.is_on();
    Some((queue.visits.load(Ordering::Relaxed), left, watched))
}

#[kunit_tests(hiops_wait)]
mod wait_suite {
    use super::*;

    #[test]
    fn a_pause_keeps_its_length() {
        // The longest of balance_dirty_pages().
        assert!(wait(true, HZ / 5) == Some((0, 0, false)));
    }

    #[test]
    fn a_wait_for_io_ends_with_it() {
        // The shortest of blk_io_schedule(): nothing of it passes.
        let waited = wait(true, HZ / 2);
        assert!(waited.is_some_and(|(visits, left, _)| visits == 1 && left > 0));
    }

    #[test]
    fn a_time_out_ends_a_wait_for_io_that_does_not() {
        assert!(wait(false, HZ / 2) == Some((1, 0, false)));
    }

    #[test]
    fn one_timer_ends_the_waits_with_long_time_outs() {
        // It was what woke, so it comes once more.
        assert!(wait(false, 5 * HZ) == Some((1, 0, true)));
        assert!(table().is_some_and(|table| !table.places.iter().any(|p| p.timeout.is_set())));
    }
}
