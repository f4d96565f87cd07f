// SPDX-License-Identifier: GPL-2.0
//! What is taken from a drive that fails often: its queue first, then speed of its link, a
//! generation at a time. It has them again when it is bound anew.
//!
//! What counts, and how often is too often, is libata's (Linux 7.3, drivers/ata/libata-eh.c, rules
//! 4 and 5 of `ata_eh_speed_down_verdict`): more than three errors in ten minutes. Its rules for
//! drives that have not moved data yet, and for PIO, are not taken over.

use crate::port::{Occupant, Port, State};
use crate::regs::{Reg, SCTL_DET, SPD};
use cell::sync::Ordering;
use core::fmt;
use hal::{Error, Mmio, Platform};

/// How long an error counts, in microseconds: ten minutes.
const WINDOW_US: u64 = 600_000_000;
/// Errors that are known at most, a power of two, more than any of the following.
const ERRORS: usize = 16;
/// More of a kind, or of kinds that point to the same, are too many.
const MANY: usize = 3;
/// Likewise, of those that rather speak against the drive than against its link.
const VERY_MANY: usize = 6;

/// An error as far as it says something about queue or link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The link spoilt something, and noticed.
    Link,
    /// A command was not answered in time.
    Silence,
    /// The drive failed a command without a reason in medium or address.
    Drive,
}

/// What was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Its commands are queued no more.
    Queue,
    /// Its link is no faster than this generation, 1 or more.
    Speed(u32),
    /// Its link stays awake.
    Sleep,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Taken::Queue => f.write_str(
                "too many errors: its commands are queued no more (NCQ), until it is bound anew",
            ),
            Taken::Sleep => f.write_str(
                "it is lost when its link is given leave to sleep: that stays awake, until it is \
                 bound anew",
            ),
            Taken::Speed(generation) => write!(
                f,
                "too many errors: its link is limited to {} Gbit/s, until it is bound anew",
                match generation {
                    1 => "1.5",
                    _ => "3.0",
                }
            ),
        }
    }
}

/// The errors of late.
#[derive(Default)]
pub(crate) struct History {
    errors: [Option<(u64, Trouble)>; ERRORS],
    next: usize,
}

impl History {
    /// Adds one that came at `now_us`; what is to be taken for it from a drive with a queue, if it
    /// is `queued`, and a link of `generation`.
    pub(crate) fn add(
        &mut self,
        now_us: u64,
        trouble: Trouble,
        queued: bool,
        generation: u32,
    ) -> Option<Taken> {
        if let Some(place) = self.errors.get_mut(self.next) {
            *place = Some((now_us, trouble));
        }
        self.next = self.next.wrapping_add(1) & (ERRORS - 1);
        let since = now_us.saturating_sub(WINDOW_US);
        let count = |wanted: &[Trouble]| {
            let late = self.errors.iter().flatten();
            late.filter(|(at, trouble)| *at >= since && wanted.contains(trouble))
                .count()
        };
        let queue = count(&[Trouble::Silence, Trouble::Drive]) > MANY;
        let link = count(&[Trouble::Link, Trouble::Silence]) > MANY;
        let drive = count(&[Trouble::Drive]) > VERY_MANY;
        let taken = if queued && queue {
            Taken::Queue
        } else if generation > 1 && (link || drive) {
            Taken::Speed(generation.saturating_sub(1))
        } else {
            return None;
        };
        // Judged anew from here on.
        self.errors = Default::default();
        Some(taken)
    }
}

impl<P: Platform, M: Mmio> Port<P, M> {
    /// The generation of the link at this moment; 0: there is none.
    pub(crate) fn generation(&self) -> u32 {
        let ssts = self.regs.get(Reg::Ssts).unwrap_or(0);
        (ssts & SPD) >> SPD.trailing_zeros()
    }

    /// Notes `trouble` with a link that was of `generation`, and takes from the drive what it has
    /// too much of. Speed goes with the next reset of the link.
    pub(crate) fn weigh(
        &self,
        state: &mut State,
        trouble: Trouble,
        generation: u32,
    ) -> Result<Option<Taken>, Error> {
        let Occupant::Drive(about) = state.occupant else {
            return Ok(None);
        };
        let queued = about.dialect.ncq && !self.is_unqueued();
        let now = self.platform.now_us();
        let taken = state.history.add(now, trouble, queued, generation);
        match taken {
            None => return Ok(None),
            Some(Taken::Sleep) => self.power.give_up(),
            Some(Taken::Queue) => self.unqueued.store(true, Ordering::Relaxed),
            Some(Taken::Speed(limit)) => {
                self.generation_max.store(limit, Ordering::Relaxed);
                let sctl = self.regs.get(Reg::Sctl)? & !SCTL_DET;
                self.regs.write(Reg::Sctl, self.limited(sctl));
            }
        }
        if let Some(taken) = taken {
            self.tell_taken(taken);
        }
        Ok(taken)
    }

    /// The operator is told of the last one.
    pub(crate) fn tell_taken(&self, taken: Taken) {
        let _ = self.taken.take();
        let _ = self.taken.put(taken);
    }

    /// `PxSCTL` as `sctl`, with the limit of the link's speed, if there is one.
    pub(crate) fn limited(&self, sctl: u32) -> u32 {
        match self.generation_max.load(Ordering::Relaxed) {
            0 => sctl,
            limit => (sctl & !SPD) | (limit << SPD.trailing_zeros()),
        }
    }

    /// Whether a drive that has a queue gets one command at a time.
    #[inline]
    pub(crate) fn is_unqueued(&self) -> bool {
        self.unqueued.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::string::ToString;
    use Trouble::{Drive, Link, Silence};

    const MINUTE: u64 = 60_000_000;

    fn all(queued: bool, generation: u32, troubles: &[(u64, Trouble)]) -> Vec<Option<Taken>> {
        let mut history = History::default();
        let each = troubles.iter();
        each.map(|(at, trouble)| history.add(at * MINUTE, *trouble, queued, generation))
            .collect()
    }

    use std::vec::Vec;

    #[test]
    fn the_fourth_in_ten_minutes_is_one_too_many() {
        for (trouble, taken) in [
            (Link, Taken::Speed(2)),
            (Silence, Taken::Queue),
            (Drive, Taken::Queue),
        ] {
            let soon: Vec<_> = (0..4).map(|at| (at, trouble)).collect();
            let expected = [None, None, None, Some(taken)];
            assert_eq!(all(true, 3, &soon), expected, "{trouble:?}");
            let late: Vec<_> = (0..16).map(|at| (at * 4, trouble)).collect();
            assert_eq!(all(true, 3, &late), [None; 16], "{trouble:?}");
        }
        let mixed = [(0, Silence), (1, Drive), (2, Silence), (3, Drive)];
        assert_eq!(all(true, 3, &mixed)[3], Some(Taken::Queue));
        let mixed = [(0, Link), (1, Drive), (2, Link), (3, Drive)];
        assert_eq!(
            all(true, 3, &mixed)[3],
            None,
            "two of a kind, and two of another"
        );
    }

    #[test]
    fn without_a_queue_it_is_speed() {
        let silence: Vec<_> = (0..4).map(|at| (at, Silence)).collect();
        assert_eq!(all(false, 3, &silence)[3], Some(Taken::Speed(2)));
        assert_eq!(all(false, 2, &silence)[3], Some(Taken::Speed(1)));
        let drive: Vec<_> = (0..7).map(|at| (at, Drive)).collect();
        let mut expected = [None; 7];
        expected[6] = Some(Taken::Speed(2));
        assert_eq!(all(false, 3, &drive), expected);
    }

    #[test]
    fn the_slowest_link_stays_as_it_is() {
        for generation in [0, 1] {
            let troubles: Vec<_> = (0..40).map(|at| (at / 8, Link)).collect();
            assert!(all(false, generation, &troubles)
                .iter()
                .all(Option::is_none));
        }
    }

    #[test]
    fn after_a_verdict_it_is_judged_anew() {
        let troubles: Vec<_> = (0..8).map(|at| (at / 2, Silence)).collect();
        let taken = all(true, 3, &troubles);
        let expected = [None, None, None, Some(Taken::Queue)];
        assert_eq!(taken[..4], expected);
        assert_eq!(taken[4..], expected);
    }

    #[test]
    fn what_is_taken_is_said() {
        assert!(Taken::Queue.to_string().contains("NCQ"));
        assert!(Taken::Speed(1).to_string().contains("1.5 Gbit/s"));
        assert!(Taken::Speed(2).to_string().contains("3.0 Gbit/s"));
    }
}
