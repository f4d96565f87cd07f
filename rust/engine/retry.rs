// SPDX-License-Identifier: GPL-2.0
//! Whether a request that failed is tried again, and when.
//!
//! The low-level driver says what another try is good for ([`hal::RetryHint`]), the layer above
//! what it thinks of it. A request is tried at most so many times, so each one ends; only one that
//! the device was never told of is not counted, because nothing was tried: it can come back so for
//! as long as the device is brought back, and a dead one ends it.
//!
//! As the in-tree drivers of Linux 7.3 do it (`nvme_decide_disposition` in
//! drivers/nvme/host/core.c, `ata_eh_worth_retry` in drivers/ata/libata-eh.c): nothing is tried
//! again of a queue that is going away, or whose submitter wants to be told of a failure at once.

use hal::{Failure, RetryHint};

/// The longest delay that a device may ask for, in milliseconds. TIMEOUT: what the layers above
/// grant a command.
const LONGEST_MS: u32 = 30_000;

/// A request's tries so far, as the layer above knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryCount {
    /// How often it was tried again.
    pub done: u8,
    /// How often it may be.
    pub most: u8,
    /// Its submitter wants to be told of a failure at once.
    pub fail_fast: bool,
    /// Its queue is going away.
    pub dying: bool,
}

/// Another try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// In how many milliseconds; 0: at once.
    pub delay_ms: u32,
    /// [`RetryCount::done`] from now on.
    pub done: u8,
}

impl RetryCount {
    /// What becomes of the request after `failure`; `None`: it has failed.
    pub fn after(&self, failure: Failure) -> Option<Retry> {
        let delay_ms = match failure.retry {
            RetryHint::Never => return None,
            RetryHint::NotIssued => {
                return Some(Retry {
                    delay_ms: 0,
                    done: self.done,
                })
            }
            RetryHint::Now => 0,
            RetryHint::After(tenths) => u32::from(tenths).saturating_mul(100).min(LONGEST_MS),
        };
        if self.fail_fast || self.dying || self.done >= self.most {
            return None;
        }
        Some(Retry {
            delay_ms,
            done: self.done.saturating_add(1),
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use hal::CmdError;

    use super::*;

    const FRESH: RetryCount = RetryCount {
        done: 0,
        most: 5,
        fail_fast: false,
        dying: false,
    };

    fn failure(retry: RetryHint) -> Failure {
        Failure {
            error: CmdError::Io,
            retry,
        }
    }

    #[test]
    fn a_request_is_tried_again_so_often_and_not_more() {
        for most in [0, 1, 5, u8::MAX] {
            let mut tries = RetryCount { most, ..FRESH };
            for done in 0..most {
                let retry = tries.after(failure(RetryHint::Now));
                let expected = Retry {
                    delay_ms: 0,
                    done: done + 1,
                };
                assert_eq!(retry, Some(expected), "{most}");
                tries.done = done + 1;
            }
            assert_eq!(tries.after(failure(RetryHint::Now)), None, "{most}");
            assert_eq!(tries.after(failure(RetryHint::After(1))), None, "{most}");
        }
    }

    #[test]
    fn what_would_fail_again_has_failed() {
        assert_eq!(FRESH.after(failure(RetryHint::Never)), None);
        assert_eq!(FRESH.after(CmdError::Medium.into()), None);
    }

    #[test]
    fn who_wants_to_know_at_once_is_told() {
        for again in [RetryHint::Now, RetryHint::After(0), RetryHint::After(7)] {
            let fail_fast = RetryCount {
                fail_fast: true,
                ..FRESH
            };
            assert_eq!(fail_fast.after(failure(again)), None);
            let dying = RetryCount {
                dying: true,
                ..FRESH
            };
            assert_eq!(dying.after(failure(again)), None);
        }
    }

    #[test]
    fn what_the_device_was_never_told_of_was_not_tried() {
        let last = RetryCount {
            done: 5,
            fail_fast: true,
            dying: true,
            ..FRESH
        };
        let retry = last.after(failure(RetryHint::NotIssued));
        let expected = Retry {
            delay_ms: 0,
            done: 5,
        };
        assert_eq!(retry, Some(expected));
        assert_eq!(
            CmdError::Gone.permanent().not_issued().retry,
            RetryHint::Never
        );
        assert_eq!(
            CmdError::Timeout.retryable().not_issued().retry,
            RetryHint::NotIssued
        );
    }

    #[test]
    fn a_delay_is_in_tenths_of_a_second_and_bounded() {
        let cases = [
            (0, 0),
            (1, 100),
            (299, 29_900),
            (300, 30_000),
            (301, 30_000),
            (u16::MAX, 30_000),
        ];
        for (tenths, delay_ms) in cases {
            let retry = FRESH.after(failure(RetryHint::After(tenths)));
            assert_eq!(retry, Some(Retry { delay_ms, done: 1 }), "{tenths}");
        }
    }
}
