// SPDX-License-Identifier: GPL-2.0
//! Threads of one test. Where one of them panics the others end, and so does the test: whoever
//! waits for what that one would have done would wait for good.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{panicking, yield_now, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// After this long without progress something was lost. No speed: the busiest machine takes a
/// fraction of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether the threads are to end: all is done, or one has panicked. Clones are the same.
#[derive(Clone, Default)]
pub struct Over(Arc<Ends>);

#[derive(Default)]
struct Ends {
    over: AtomicBool,
    fallen: AtomicBool,
}

impl Over {
    /// Whether they are.
    pub fn is_set(&self) -> bool {
        self.0.over.load(Ordering::Acquire)
    }

    /// `body`; where it panics, all are to end.
    fn watch<T>(&self, body: impl FnOnce() -> T) -> T {
        let _watched = Watched(self);
        body()
    }
}

/// On a thread's stack: it sees the thread unwind.
struct Watched<'a>(&'a Over);

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if panicking() {
            let ends = &self.0 .0;
            ends.fallen.store(true, Ordering::Release);
            ends.over.store(true, Ordering::Release);
        }
    }
}

/// The threads of [`together`].
pub struct Together<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    over: Over,
}

impl<'scope> Together<'scope, '_> {
    /// For threads that wait for each other.
    pub fn over(&self) -> Over {
        self.over.clone()
    }

    /// One that does `body` once.
    pub fn spawn<T: Send + 'scope>(
        &self,
        body: impl FnOnce() -> T + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, T> {
        let over = self.over();
        self.scope.spawn(move || over.watch(body))
    }

    /// One that does `work` until all is over; where that says that there was nothing to do, the
    /// CPU is another's.
    pub fn keep(&self, mut work: impl FnMut() -> bool + Send + 'scope) {
        let over = self.over();
        self.spawn(move || {
            while !over.is_set() {
                if !work() {
                    yield_now();
                }
            }
        });
    }

    /// Waits until `count` is `wanted`. Panics where another thread has, or `count` stays as it is
    /// for a minute.
    #[track_caller]
    pub fn wait_for(&self, wanted: usize, count: impl Fn() -> usize) {
        let (mut seen, mut since) = (count(), Instant::now());
        while seen < wanted {
            let fallen = self.over.0.fallen.load(Ordering::Acquire);
            assert!(!fallen, "another thread has panicked");
            assert!(
                since.elapsed() < PATIENCE,
                "{seen} of {wanted}, and no more"
            );
            yield_now();
            let now = count();
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
        }
    }
}

/// A test of several threads: those that `body` makes of what it is given. When `body` has ended
/// all is over, and they are waited for.
pub fn together<'env, T>(body: impl for<'scope> FnOnce(&Together<'scope, 'env>) -> T) -> T {
    std::thread::scope(|scope| {
        let over = Over::default();
        let threads = Together {
            scope,
            over: over.clone(),
        };
        let result = over.watch(|| body(&threads));
        over.0.over.store(true, Ordering::Release);
        result
    })
}
