// SPDX-License-Identifier: GPL-2.0
//! How often a device is listened to that reports things by itself: as often as it likes for a
//! while, then at longer and longer intervals, until it has been quiet.

/// How many are seen to at once.
const BURST: u8 = 32;
/// The first and the longest interval after those, in microseconds.
const INTERVAL_US: (u32, u32) = (1_000_000, 64_000_000);
/// After so long without any it begins anew.
const QUIET_US: u64 = 60_000_000;

/// The state of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    left: u8,
    interval_us: u32,
    /// When the last was seen to.
    last_us: u64,
    /// One was deferred.
    waits: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            left: BURST,
            interval_us: INTERVAL_US.0,
            last_us: 0,
            waits: false,
        }
    }
}

impl Pace {
    /// Whether what came is seen to `now_us`; else, in how many microseconds it is.
    pub(crate) fn admit(&mut self, now_us: u64) -> Result<(), u32> {
        let since = now_us.saturating_sub(self.last_us);
        // One that had to wait does not show that the device was quiet.
        if !self.waits && since >= QUIET_US {
            *self = Self::default();
        }
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None if since < u64::from(self.interval_us) => {
                self.waits = true;
                let us = u64::from(self.interval_us).saturating_sub(since);
                return Err(u32::try_from(us).unwrap_or(u32::MAX));
            }
            None => self.interval_us = self.interval_us.saturating_mul(2).min(INTERVAL_US.1),
        }
        self.last_us = now_us;
        self.waits = false;
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_never_stops_is_listened_to_ever_more_rarely() {
        let mut pace = Pace::default();
        let mut now = 5;
        (0..BURST).for_each(|_| assert_eq!(pace.admit(now), Ok(())));
        for interval in [1, 2, 4, 8, 16, 32, 64, 64, 64] {
            assert_eq!(pace.admit(now), Err(interval * 1_000_000));
            now += u64::from(interval) * 1_000_000 - 1;
            assert_eq!(pace.admit(now), Err(1));
            now += 1;
            assert_eq!(pace.admit(now), Ok(()));
        }
        // Quiet, and as at first.
        now += QUIET_US;
        (0..BURST).for_each(|_| assert_eq!(pace.admit(now), Ok(())));
        assert_eq!(pace.admit(now), Err(1_000_000));
    }

    #[test]
    fn a_clock_that_goes_back_is_no_panic() {
        let mut pace = Pace::default();
        (0..BURST).for_each(|_| assert_eq!(pace.admit(u64::MAX), Ok(())));
        assert_eq!(pace.admit(0), Err(1_000_000));
    }
}
