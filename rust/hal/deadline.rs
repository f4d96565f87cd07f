// SPDX-License-Identifier: GPL-2.0
//! How long the control path waits for a command.

/// How long a command goes on, in microseconds from its beginning, once the control path is wanted
/// for something urgent. TIMEOUT: what a device answers from memory, such as an identification, is
/// over in a fraction of it, so a reset costs no tool such an answer; what takes longer (a format,
/// a self-test) may take hours.
pub const GRACE_US: u64 = 500_000;

/// When a command is given up.
pub struct Deadline<'a> {
    us: u64,
    wanted: Option<&'a dyn Fn() -> bool>,
}

impl<'a> Deadline<'a> {
    /// `us` after its beginning.
    pub const fn after(us: u64) -> Self {
        Self { us, wanted: None }
    }

    /// Likewise, or [`GRACE_US`] after `wanted` said for the first time that the control path is
    /// wanted: a reset must not wait for a tool's command. `wanted` may sleep.
    pub const fn unless(us: u64, wanted: &'a dyn Fn() -> bool) -> Self {
        Self {
            us,
            wanted: Some(wanted),
        }
    }

    /// Whether it has come, `waited_us` after the beginning. Sleeps.
    pub fn has_come(&mut self, waited_us: u64) -> bool {
        if self.wanted.is_some_and(|wanted| wanted()) {
            self.wanted = None;
            self.us = self.us.min(waited_us.saturating_add(GRACE_US));
        }
        waited_us >= self.us
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::cell::Cell;

    #[test]
    fn it_comes_when_it_was_said() {
        let mut deadline = Deadline::after(10);
        assert!(!deadline.has_come(9) && deadline.has_come(10) && deadline.has_come(u64::MAX));
    }

    #[test]
    fn it_comes_earlier_for_what_is_urgent() {
        let urgent = Cell::new(false);
        let wanted = || urgent.get();
        let mut deadline = Deadline::unless(u64::MAX, &wanted);
        assert!(!deadline.has_come(GRACE_US * 10));
        urgent.set(true);
        assert!(!deadline.has_come(GRACE_US * 10));
        urgent.set(false);
        assert!(!deadline.has_come(GRACE_US * 11 - 1));
        assert!(deadline.has_come(GRACE_US * 11));
    }

    #[test]
    fn it_comes_no_later_for_it() {
        let mut deadline = Deadline::unless(10, &|| true);
        assert!(!deadline.has_come(9) && deadline.has_come(10));
        let mut deadline = Deadline::unless(u64::MAX, &|| true);
        assert!(!deadline.has_come(u64::MAX - 1) && deadline.has_come(u64::MAX));
    }
}
