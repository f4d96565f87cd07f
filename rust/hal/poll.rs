// SPDX-License-Identifier: GPL-2.0
//! How the control path waits for a device: it polls until an answer is there or a deadline has
//! expired, and sleeps between two polls. [`Progress`] names the step under way, for the log, when
//! that fails or does not end.

use cell::sync::{AtomicU8, Ordering};
use core::marker::PhantomData;

use crate::{Error, Platform};

/// How much longer a tool's command may run, in microseconds, once the control path is wanted for
/// something urgent. TIMEOUT: what a device answers from memory, such as an identification, is
/// over in a fraction of it, so a reset costs no tool such an answer; what takes longer (a format,
/// a self-test) may take hours.
pub const GRACE_US: u64 = 500_000;

/// Time limit of a command.
pub struct Deadline<'a> {
    us: u64,
    wanted: Option<&'a dyn Fn() -> bool>,
}

impl<'a> Deadline<'a> {
    /// Returns the deadline `us` microseconds after the command was sent.
    pub const fn after(us: u64) -> Self {
        Self { us, wanted: None }
    }

    /// Returns the deadline `us` microseconds after the command was sent, or [`GRACE_US`] after
    /// `wanted` first returned that the control path is wanted, whichever is earlier: a reset must
    /// not wait for a tool's command. `wanted` may sleep.
    pub const fn preemptible(us: u64, wanted: &'a dyn Fn() -> bool) -> Self {
        Self {
            us,
            wanted: Some(wanted),
        }
    }

    /// Whether it has expired, `waited_us` microseconds after the command was sent. Sleeps.
    pub fn has_expired(&mut self, waited_us: u64) -> bool {
        if self.wanted.is_some_and(|wanted| wanted()) {
            self.wanted = None;
            self.us = self.us.min(waited_us.saturating_add(GRACE_US));
        }
        waited_us >= self.us
    }
}

/// Exponential backoff of polls: each sleep is twice as long as the last, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    next_us: u64,
    most_us: u64,
}

impl Backoff {
    /// Returns a backoff from `first_us` up to `most_us` microseconds.
    pub const fn new(first_us: u64, most_us: u64) -> Self {
        Self {
            next_us: first_us,
            most_us,
        }
    }

    /// Returns a backoff whose sleeps are all `us` microseconds.
    pub const fn constant(us: u64) -> Self {
        Self::new(us, us)
    }

    /// Returns the next sleep, in microseconds.
    fn next(&mut self) -> u64 {
        let us = self.next_us;
        self.next_us = us.saturating_mul(2).min(self.most_us);
        us
    }
}

/// Polls until `poll` has an answer, and sleeps in between. The clock is read before each poll, so
/// that a late wake-up is not taken for the device's fault. Control path.
///
/// # Errors
/// [`Error::Timeout`]: the deadline has expired, and the poll after it had no answer. Any error of
/// `poll` is returned at once.
pub fn poll_until<T>(
    platform: &impl Platform,
    deadline: Deadline<'_>,
    backoff: Backoff,
    mut poll: impl FnMut() -> Result<Option<T>, Error>,
) -> Result<T, Error> {
    let (mut deadline, mut backoff) = (deadline, backoff);
    let start = platform.now_us();
    loop {
        let waited = platform.now_us().saturating_sub(start);
        if let Some(answer) = poll()? {
            return Ok(answer);
        }
        if deadline.has_expired(waited) {
            return Err(Error::Timeout);
        }
        platform.sleep_us(backoff.next());
    }
}

/// The steps of a driver's control path, numbered from 0.
pub trait Steps: Copy {
    /// Name of each step in the log, by its number.
    const NAMES: &'static [&'static str];

    /// Returns its number.
    fn number(self) -> u8;
}

/// The step under way, or the one that failed. All methods: any context.
pub struct Progress<S> {
    at: AtomicU8,
    steps: PhantomData<fn(S)>,
}

impl<S: Steps> Progress<S> {
    /// Returns the progress of a control path at step `first`.
    pub fn new(first: S) -> Self {
        Self {
            at: AtomicU8::new(first.number()),
            steps: PhantomData,
        }
    }

    /// Notes that `step` begins.
    pub fn at(&self, step: S) {
        self.at.store(step.number(), Ordering::Relaxed);
    }

    /// Returns the log's name of the step that was begun last.
    pub fn name(&self) -> &'static str {
        let at = usize::from(self.at.load(Ordering::Relaxed));
        S::NAMES.get(at).copied().unwrap_or("nothing")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::cell::Cell;

    use super::*;
    use crate::mock::MockPlatform;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut backoff = Backoff::new(20, 100);
        assert_eq!([(); 5].map(|()| backoff.next()), [20, 40, 80, 100, 100]);
        let mut steady = Backoff::constant(7);
        assert_eq!([(); 3].map(|()| steady.next()), [7; 3]);
    }

    #[test]
    fn it_polls_once_more_when_the_deadline_has_come() {
        let platform = MockPlatform::new();
        let polls = Cell::new(0);
        let answer = |at: u32| {
            polls.set(0);
            poll_until(
                &platform,
                Deadline::after(100),
                Backoff::constant(50),
                || {
                    polls.set(polls.get() + 1);
                    Ok((polls.get() == at).then_some(at))
                },
            )
        };
        assert_eq!(
            (answer(1), polls.get()),
            (Ok(1), 1),
            "no pause before the first"
        );
        assert_eq!((answer(3), polls.get()), (Ok(3), 3), "100 us on");
        assert_eq!((answer(4), polls.get()), (Err(Error::Timeout), 3));
        assert_eq!((answer(u32::MAX), polls.get()), (Err(Error::Timeout), 3));
    }

    #[test]
    fn what_fails_is_polled_no_more() {
        let platform = MockPlatform::new();
        let gone = || Err::<Option<()>, _>(Error::Gone);
        let wait = poll_until(&platform, Deadline::after(100), Backoff::constant(50), gone);
        assert_eq!(wait, Err(Error::Gone));
    }

    #[test]
    fn it_comes_when_it_was_said() {
        let mut deadline = Deadline::after(10);
        assert!(
            !deadline.has_expired(9) && deadline.has_expired(10) && deadline.has_expired(u64::MAX)
        );
    }

    #[test]
    fn it_comes_earlier_for_what_is_urgent() {
        let urgent = Cell::new(false);
        let wanted = || urgent.get();
        let mut deadline = Deadline::preemptible(u64::MAX, &wanted);
        assert!(!deadline.has_expired(GRACE_US * 10));
        urgent.set(true);
        assert!(!deadline.has_expired(GRACE_US * 10));
        urgent.set(false);
        assert!(!deadline.has_expired(GRACE_US * 11 - 1));
        assert!(deadline.has_expired(GRACE_US * 11));
    }

    #[test]
    fn it_comes_no_later_for_it() {
        let mut deadline = Deadline::preemptible(10, &|| true);
        assert!(!deadline.has_expired(9) && deadline.has_expired(10));
        let mut deadline = Deadline::preemptible(u64::MAX, &|| true);
        assert!(!deadline.has_expired(u64::MAX - 1) && deadline.has_expired(u64::MAX));
    }

    #[derive(Clone, Copy)]
    struct Step(u8);

    impl Steps for Step {
        const NAMES: &'static [&'static str] = &["first", "second"];

        fn number(self) -> u8 {
            self.0
        }
    }

    #[test]
    fn the_last_step_is_told() {
        let progress = Progress::new(Step(0));
        assert_eq!(progress.name(), "first");
        progress.at(Step(1));
        assert_eq!(progress.name(), "second");
        progress.at(Step(2));
        assert_eq!(progress.name(), "nothing", "no such step");
    }
}
