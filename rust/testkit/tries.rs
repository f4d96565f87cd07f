// SPDX-License-Identifier: GPL-2.0
//! Whatever can fail, failed at every place where it can.

use hal::mock::MockPlatform;
use hal::{Controller, Error, Platform};

/// Calls `attempt` with 0, 1, 2 and so on, how much goes well before something fails, until nothing
/// does. Each failure is `why`. Returns how much that took.
#[track_caller]
pub fn tries_until_well(why: Error, mut attempt: impl FnMut(usize) -> Result<(), Error>) -> usize {
    let mut n = 0;
    while let Err(error) = attempt(n) {
        assert_eq!(error, why, "after {n}");
        n += 1;
    }
    n
}

/// Gone is gone: no later step finds the device again, or waits for it.
#[track_caller]
pub fn stays_gone(machine: &MockPlatform, controller: &impl Controller) {
    let at = machine.now_us();
    assert_eq!(controller.alive(), Err(Error::Gone));
    assert_eq!(controller.stop(), Err(Error::Gone));
    assert_eq!(controller.start(), Err(Error::Gone));
    assert_eq!(machine.now_us(), at, "it waits");
}
