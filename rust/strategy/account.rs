// SPDX-License-Identifier: GPL-2.0
//! Whether something pays that saves time when it succeeds, and takes some when it fails.
//!
//! ```text
//!            it earns: credit grows, up to a most
//!               +--+
//!               v  |         it spends more than there was
//!   trial ----> open ------------------------------------------> closed
//!     ^  \______________________________________________________/  |
//!     |          the trial has spent what it may                   |
//!     +------ after 16 times what was lost: a trial may begin -----+
//! ```
//!
//! All sums are in nanoseconds of this machine, and so is the time until the next trial. It doubles
//! while trials go on failing, up to 16,384 times what they lose: a load that follows another is
//! soon given a trial, and one for which it never pays loses next to nothing.

use cell::sync::{AtomicU32, AtomicU64, Ordering};

/// How many times as long as what was lost passes until the next trial: 50 ms after a slice of 3
/// ms. With 256 a slice that fio took to start 256 threads cost psync-256 a third of its window.
const REST: u64 = 16;
/// The pause doubles for each trial that has failed in a row, up to this many times.
const MOST_DOUBLINGS: u32 = 10;
/// What was open for this many times as long as what it lost in the end begins anew: it fails so
/// seldom that it does not matter.
const HELD: u64 = 4096;
const NS_PER_MS: u64 = 1_000_000;

/// How much of an account's time may be at stake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stakes {
    /// The most that savings add up to: as much may be lost before it is given up.
    pub most_ns: u64,
    /// How much may be lost by a trial.
    pub trial_ns: u64,
}

/// The account of one thing to do. Several may write at once: it only guides.
#[derive(Debug, Default)]
pub struct Account {
    /// What may be lost before it is closed; 0: it is closed, or about to be tried.
    credit_ns: AtomicU64,
    /// What was lost since it was opened or tried, less what was saved.
    lost_ns: AtomicU64,
    /// It is closed until then, by a clock in milliseconds,
    until_ms: AtomicU64,
    /// and at least until then.
    soonest_ms: AtomicU64,
    /// Trials that failed in a row.
    failed: AtomicU32,
}

impl Account {
    /// It pays, or is to be tried.
    #[inline]
    pub fn is_open(&self, now_ms: u64) -> bool {
        self.has_credit() || now_ms >= self.until_ms.load(Ordering::Relaxed)
    }

    /// There is something that may be lost.
    #[inline]
    pub fn has_credit(&self) -> bool {
        self.credit_ns.load(Ordering::Relaxed) != 0
    }

    /// What may be lost before it is closed.
    pub fn credit_ns(&self) -> u64 {
        self.credit_ns.load(Ordering::Relaxed)
    }

    /// It has saved `ns`.
    #[inline]
    pub fn earn(&self, ns: u64, stakes: Stakes, now_ms: u64) {
        if !self.is_open(now_ms) {
            return;
        }
        let credit = self.credit_ns.load(Ordering::Relaxed);
        let credit = credit.saturating_add(ns).min(stakes.most_ns);
        self.credit_ns.store(credit, Ordering::Relaxed);
        let lost = self.lost_ns.load(Ordering::Relaxed);
        self.lost_ns
            .store(lost.saturating_sub(ns), Ordering::Relaxed);
        if credit > stakes.most_ns / 2 {
            self.failed.store(0, Ordering::Relaxed);
        }
    }

    /// It has taken `ns` in vain.
    #[inline]
    pub fn spend(&self, ns: u64, stakes: Stakes, now_ms: u64) {
        if !self.is_open(now_ms) {
            return;
        }
        let credit = match self.credit_ns.load(Ordering::Relaxed) {
            0 => stakes.trial_ns,
            credit => credit,
        };
        let lost = self.lost_ns.load(Ordering::Relaxed).saturating_add(ns);
        let left = credit.saturating_sub(ns);
        self.credit_ns.store(left, Ordering::Relaxed);
        self.lost_ns.store(lost, Ordering::Relaxed);
        if left == 0 {
            self.close(lost, now_ms);
        }
    }

    #[cold]
    fn close(&self, lost_ns: u64, now_ms: u64) {
        let held_ms = now_ms.saturating_sub(self.until_ms.load(Ordering::Relaxed));
        let failed = match held_ms > lost_ns.saturating_mul(HELD) / NS_PER_MS {
            true => 0,
            false => self.failed.load(Ordering::Relaxed),
        };
        let rest = (lost_ns.saturating_mul(REST) / NS_PER_MS).saturating_add(1);
        let doubled = rest.saturating_mul(1 << failed.min(MOST_DOUBLINGS));
        self.soonest_ms
            .store(now_ms.saturating_add(rest), Ordering::Relaxed);
        self.until_ms
            .store(now_ms.saturating_add(doubled), Ordering::Relaxed);
        self.failed
            .store(failed.saturating_add(1), Ordering::Relaxed);
        self.lost_ns.store(0, Ordering::Relaxed);
    }

    /// A trial may begin at once: what it depends on has changed.
    pub fn hasten(&self) {
        self.until_ms.store(0, Ordering::Relaxed);
    }

    /// The last trial failed.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed) != 0
    }

    /// What made the last trial fail, just now, stays: the next begins as if `failed` had failed
    /// in a row.
    pub fn persist(&self, failed: u32, now_ms: u64) {
        let rest = (self.soonest_ms.load(Ordering::Relaxed)).saturating_sub(now_ms);
        let before = failed.saturating_sub(1).min(MOST_DOUBLINGS);
        let until = now_ms.saturating_add(rest.saturating_mul(1 << before));
        self.until_ms.fetch_max(until, Ordering::Relaxed);
        self.failed.fetch_max(failed, Ordering::Relaxed);
    }

    /// What made trials fail was not there just now: the next may begin as if one had failed.
    #[inline]
    pub fn relent(&self) {
        if self.has_failed() {
            let until = self.until_ms.load(Ordering::Relaxed);
            let until = until.min(self.soonest_ms.load(Ordering::Relaxed));
            self.until_ms.store(until, Ordering::Relaxed);
            self.failed.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const STAKES: Stakes = Stakes {
        most_ns: 64_000,
        trial_ns: 16_000,
    };

    /// Spends `ns` at a time until it is closed; how often that took.
    fn spend_all(account: &Account, ns: u64, now_ms: u64) -> u32 {
        (1..)
            .find(|_| {
                account.spend(ns, STAKES, now_ms);
                !account.is_open(now_ms)
            })
            .unwrap_or(0)
    }

    /// The milliseconds from `now_ms` until it is tried.
    fn rest(account: &Account, now_ms: u64) -> u64 {
        (0..).find(|ms| account.is_open(now_ms + ms)).unwrap_or(0)
    }

    #[test]
    fn it_begins_with_a_trial() {
        let account = Account::default();
        assert!(account.is_open(0) && !account.has_credit());
        assert_eq!(spend_all(&account, 2_000, 0), 8);
    }

    #[test]
    fn what_pays_more_than_it_takes_stays_open() {
        let account = Account::default();
        for _ in 0..10_000 {
            account.spend(2_000, STAKES, 0);
            account.earn(3_000, STAKES, 0);
            assert!(account.is_open(0));
        }
        assert_eq!(account.credit_ns(), STAKES.most_ns);
    }

    #[test]
    fn what_takes_more_than_it_pays_is_closed_in_time() {
        let account = Account::default();
        account.earn(STAKES.most_ns, STAKES, 0);
        let mut turns = 0;
        while account.is_open(0) {
            account.earn(2_000, STAKES, 0);
            account.spend(3_000, STAKES, 0);
            turns += 1;
        }
        assert_eq!(turns, 62);
    }

    #[test]
    fn no_more_is_lost_at_once_than_was_at_stake() {
        let account = Account::default();
        account.earn(10 * STAKES.most_ns, STAKES, 0);
        assert_eq!(account.credit_ns(), STAKES.most_ns);
        assert_eq!(spend_all(&account, 2_000, 0), 32);
    }

    #[test]
    fn trials_that_go_on_failing_lose_ever_less() {
        let account = Account::default();
        let mut now = 1_000;
        let mut rests = std::vec::Vec::new();
        for failed in 0..12u32 {
            let lost = u64::from(spend_all(&account, 2_000, now)) * 2_000;
            let rest = rest(&account, now);
            let times = REST << failed.min(MOST_DOUBLINGS);
            assert!(
                lost * times <= rest * NS_PER_MS,
                "{lost} ns, then {rest} ms"
            );
            rests.push(rest);
            now += rest;
        }
        assert!(rests.is_sorted(), "{rests:?}");
        assert_eq!(rests[0] << MOST_DOUBLINGS, rests[11], "{rests:?}");
    }

    #[test]
    fn what_was_open_for_long_begins_anew() {
        let account = Account::default();
        let mut now = 1_000_000;
        let rests = [0, 0, 0, HELD / 100, HELD].map(|held_ms| {
            now += held_ms;
            // 16,000 ns are lost, so what HELD says is 66 ms.
            spend_all(&account, 2_000, now);
            let rest = rest(&account, now);
            now += rest;
            rest
        });
        assert_eq!(rests, [1, 2, 4, 8, 1]);
    }

    #[test]
    fn who_relents_leaves_the_first_rest() {
        let account = Account::default();
        let mut now = 5;
        for _ in 0..6 {
            account.spend(1_000_000, STAKES, now);
            now += rest(&account, now);
        }
        account.spend(1_000_000, STAKES, now);
        assert!(rest(&account, now) > 1_000);
        account.relent();
        let first = 1_000_000 * REST / NS_PER_MS + 1;
        assert_eq!(rest(&account, now), first);
        // And it is the first failure that follows.
        account.spend(1_000_000, STAKES, now + first);
        assert_eq!(rest(&account, now + first), first);
    }

    #[test]
    fn what_stays_is_not_tried_often_before_that_is_known() {
        let account = Account::default();
        spend_all(&account, 2_000, 5);
        let first = rest(&account, 5);
        account.persist(4, 5);
        assert_eq!(rest(&account, 5), 8 * first);
        // And the fifth failure follows.
        let now = 5 + 8 * first;
        spend_all(&account, 2_000, now);
        assert_eq!(rest(&account, now), 16 * first);
        // What has failed more often is not tried sooner.
        account.persist(4, now);
        assert_eq!(rest(&account, now), 16 * first);
    }

    #[test]
    fn what_has_paid_for_long_is_tried_again_soon() {
        let account = Account::default();
        let first = {
            spend_all(&account, 2_000, 0);
            rest(&account, 0)
        };
        let mut now = first;
        spend_all(&account, 2_000, now);
        now += rest(&account, now);
        account.earn(STAKES.most_ns, STAKES, now);
        spend_all(&account, 2_000, now);
        // By what was lost since, not by how often it has failed.
        let lost = STAKES.most_ns;
        assert!(rest(&account, now) <= lost * REST / NS_PER_MS + 1);
    }

    #[test]
    fn what_comes_late_of_a_closed_account_changes_nothing() {
        let account = Account::default();
        spend_all(&account, 2_000, 0);
        account.earn(1_000_000, STAKES, 0);
        assert!(!account.is_open(0));
        let until = rest(&account, 0);
        account.spend(1_000_000, STAKES, 0);
        assert_eq!(rest(&account, 0), until);
    }

    #[test]
    fn who_hastens_a_trial_has_it_at_once() {
        let account = Account::default();
        spend_all(&account, 2_000, 5);
        account.hasten();
        assert!(account.is_open(5));
    }

    extern crate std;
}
