// SPDX-License-Identifier: GPL-2.0
//! When a request that can't be mapped is given up.
//!
//! Memory for a mapping (a bounce buffer, a list of segments) usually comes back with the next
//! completion, so who can't be mapped waits for one. With nothing in flight there is no such
//! completion, and some mappings succeed never: more bytes than the machine maps at once, a bounce
//! buffer that others hold for good. Such a request would keep all behind it waiting for ever.

/// How often it is tried in vain, and for how many milliseconds, until a mapping is given up: as
/// long as a device gets for its answer, as memory may be held by what other devices have in
/// flight.
const TRIES: u32 = 64;
const PATIENCE_MS: u64 = 30_000;

/// What the issuer knows of mappings that fail.
#[derive(Debug, Default)]
pub(crate) struct Starving {
    /// Attempts in vain, since when nothing was in flight that could give memory back.
    tries: u32,
    /// When the first of them was, by the clock of [`crate::Upper::now_ms`].
    since_ms: u64,
    /// That requests are given up was told.
    told: bool,
}

impl Starving {
    /// Some data was mapped, or may be soon.
    #[inline(always)]
    pub(crate) fn end(&mut self) {
        if self.tries != 0 {
            *self = Self::default();
        }
    }

    /// Whether that a request is given up is news: once until [`Starving::end`].
    pub(crate) fn is_news(&mut self) -> bool {
        !core::mem::replace(&mut self.told, true)
    }

    /// A mapping has failed at `now_ms`, with nothing in flight. Whether to give that request up;
    /// what comes after it is then given up at its first failure, until some data is mapped again.
    #[cold]
    pub(crate) fn gives_up(&mut self, now_ms: u64) -> bool {
        if self.tries == 0 {
            self.since_ms = now_ms;
        }
        self.tries = self.tries.saturating_add(1);
        let waited = now_ms.saturating_sub(self.since_ms);
        // Both: a clock that jumps (a machine that was suspended) alone is no reason.
        self.tries > TRIES && waited >= PATIENCE_MS
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_takes_tries_and_time() {
        let mut starving = Starving::default();
        for try_ in 0..TRIES {
            assert!(!starving.gives_up(5 + u64::from(try_)));
        }
        assert!(!starving.gives_up(4 + PATIENCE_MS), "too early");
        assert!(starving.gives_up(5 + PATIENCE_MS));
        assert!(starving.is_news() && !starving.is_news());
        assert!(starving.gives_up(5 + PATIENCE_MS), "nor the next one");
        starving.end();
        assert!(!starving.gives_up(6 + PATIENCE_MS));
        assert!(!starving.gives_up(u64::MAX), "too few tries");
    }
}
