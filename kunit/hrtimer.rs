// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of timers that there is no memory for. Faults that are injected must reach
//! allocations that may wait (`/sys/kernel/debug/failslab/ignore-gfp-wait`: N).

use crate::timers::{Expired, HrTimer};
use core::hint::black_box;
use core::sync::atomic::{AtomicU32, Ordering};
use kernel::prelude::*;
use kernel::task::Task;

/// Counts how often it was dropped.
struct Counted<'a>(&'a AtomicU32);

impl Expired for Counted<'_> {
    fn expired(&self) {}
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// `work`, whose first allocation fails.
fn without_memory<T>(work: impl FnOnce() -> T) -> T {
    let task = Task::current_raw();
    // SAFETY: this task, which alone looks at it (lib/fault-inject.c).
    unsafe { (*task).fail_nth = 1 };
    let made = work();
    // SAFETY: as above.
    unsafe { (*task).fail_nth = 0 };
    made
}

/// Leaves on the stack, where calls to come have theirs, what is no timer.
#[inline(never)]
fn litter() {
    black_box([0xa5u8; 2048]);
}

#[kunit_tests(hiops_hrtimer)]
mod hrtimer_suite {
    use super::*;

    /// One that was never set up must not be cancelled: what the timer core would follow is
    /// whatever lay there before.
    #[test]
    fn without_memory_there_is_none() {
        let drops = AtomicU32::new(0);
        litter();
        let timer = without_memory(|| HrTimer::of(Counted(&drops)));
        assert!(timer.is_err());
        assert!(drops.load(Ordering::Relaxed) == 1);
    }

    #[test]
    fn what_a_timer_is_for_goes_with_it() {
        let drops = AtomicU32::new(0);
        let timer = HrTimer::of(Counted(&drops));
        assert!(timer.is_ok() && drops.load(Ordering::Relaxed) == 0);
        drop(timer);
        assert!(drops.load(Ordering::Relaxed) == 1);
    }
}
