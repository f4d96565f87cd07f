// SPDX-License-Identifier: GPL-2.0
//! The link between the device's channels and the host, over which one command's bytes go at a
//! time.
//!
//! * *Ready*: the medium is done with a command, whose channel takes the next one.
//! * *Turn*: the bytes of a command that is ready have the whole link. Who is ready first has its
//!   turn first; between queues, as their completions are looked for.
//! * *Over*: the turn is over, and with it the command.
//!
//! ```text
//!  channel 0  |-- medium A --|-- medium C --|
//!  channel 1  |-- medium B --|
//!  link                      |-- A --|-- B --|-- C --|
//! ```

use cell::sync::{AtomicU64, Ordering};

/// The link that all queues share.
pub(crate) struct Link {
    /// Megabytes a second; 0: it takes no time.
    mb_s: u32,
    /// When the last turn is over, in nanoseconds.
    free: AtomicU64,
}

impl Link {
    pub(crate) const fn new(mb_s: u32) -> Self {
        Self {
            mb_s,
            free: AtomicU64::new(0),
        }
    }

    /// Whether it takes time.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.mb_s != 0
    }

    /// How long a turn of `bytes` is: whole nanoseconds, rounded up.
    fn turn(&self, bytes: u64) -> u64 {
        let mb_s = u64::from(self.mb_s);
        let ns = bytes.saturating_mul(1000);
        ns.saturating_add(mb_s.saturating_sub(1))
            .checked_div(mb_s)
            .unwrap_or(0)
    }

    /// When a command of `bytes` that is ready at `ready` is over, if no other takes a turn before.
    pub(crate) fn earliest(&self, ready: u64, bytes: u64) -> u64 {
        let free = self.free.load(Ordering::Relaxed);
        free.max(ready).saturating_add(self.turn(bytes))
    }

    /// Gives a turn to a command of `bytes` that is ready at `ready`; when that is over.
    pub(crate) fn take(&self, ready: u64, bytes: u64) -> u64 {
        let turn = self.turn(bytes);
        let mut over = u64::MAX;
        let take = |free: u64| {
            over = free.max(ready).saturating_add(turn);
            Some(over)
        };
        // Relaxed: it is only a number, nothing else is found by it.
        let _ = (self.free).fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        over
    }

    /// Nothing goes over it any more.
    pub(crate) fn clear(&self) {
        self.free.store(0, Ordering::Relaxed);
    }
}

/// What an issuer knows of its queue's turns: those of the commands that it issued in the order in
/// which they are ready. Without it the timer would fire for a short command at a time at which a
/// longer one, which is ready before, still has its turn.
#[derive(Default)]
pub(crate) struct LinkFifo {
    /// When the last of them is ready.
    ready: u64,
    /// When it is over, at the earliest.
    over: u64,
}

impl LinkFifo {
    /// A command of `bytes` is issued, which is ready at `ready`; when it is over, at the earliest.
    pub(crate) fn join(&mut self, link: &Link, ready: u64, bytes: u64) -> u64 {
        if ready < self.ready {
            // It overtakes the last, and maybe others.
            return link.earliest(ready, bytes);
        }
        let over = link.earliest(ready.max(self.over), bytes);
        *self = Self { ready, over };
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_as_long_as_its_bytes() {
        for (mb_s, bytes, ns) in [
            (0, u64::MAX, 0),
            (1, 0, 0),
            (1, 1, 1000),
            (200, 4096, 20_480),
            (3, 1, 334),
            (1000, 1, 1),
            (1001, 1, 1),
            (u32::MAX, 1, 1),
            (u32::MAX, 1 << 20, 1),
            (1, u64::MAX / 1000, u64::MAX / 1000 * 1000),
            (1, u64::MAX, u64::MAX),
            (2, u64::MAX, u64::MAX / 2),
        ] {
            assert_eq!(Link::new(mb_s).turn(bytes), ns, "{bytes} at {mb_s}");
        }
    }

    #[test]
    fn one_turn_after_the_other() {
        let link = Link::new(1000);
        assert_eq!(link.earliest(100, 50), 150);
        assert_eq!(link.take(100, 50), 150);
        // It waits.
        assert_eq!(link.earliest(120, 10), 160);
        assert_eq!(link.take(120, 10), 160);
        assert_eq!(link.take(160, 1), 161);
        // The link waits.
        assert_eq!(link.take(1000, 1), 1001);
        link.clear();
        assert_eq!(link.take(100, 50), 150);
    }

    #[test]
    fn the_end_of_time_stays_there() {
        let link = Link::new(1);
        assert_eq!(link.take(u64::MAX - 10, 1), u64::MAX);
        assert_eq!(link.earliest(0, 1), u64::MAX);
        assert_eq!(link.take(0, u64::MAX), u64::MAX);
        let mut fifo = LinkFifo::default();
        assert_eq!(fifo.join(&link, 0, 1), u64::MAX);
        assert_eq!(fifo.join(&link, u64::MAX, u64::MAX), u64::MAX);
    }

    #[test]
    fn who_is_in_line_waits_for_those_before() {
        let link = Link::new(1000);
        let mut fifo = LinkFifo::default();
        assert_eq!(fifo.join(&link, 100, 50), 150);
        assert_eq!(fifo.join(&link, 100, 1), 151);
        // Ready before both.
        assert_eq!(fifo.join(&link, 10, 5), 15);
        assert_eq!(fifo.join(&link, 120, 1), 152);
        assert_eq!(fifo.join(&link, 200, 1), 201);
        // Of another queue.
        assert_eq!(link.take(150, 350), 500);
        assert_eq!(fifo.join(&link, 200, 1), 501);
    }
}
