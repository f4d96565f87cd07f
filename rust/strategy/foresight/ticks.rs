// SPDX-License-Identifier: GPL-2.0
//! When the timer of a polled queue looks for a command that is alone, and that no thread looks for
//! itself: as one of io_uring, whose thread is woken by the tick that finds it.
//!
//! One tick that comes soon after the command is expected is enough, as a rule. But what is there
//! at the first look is not measured ([`engine::Seen::Found`]). So every few commands the ticks
//! begin earlier, in steps that are short enough to measure it:
//!
//! ```text
//!                                        T - s   T   T + s
//!   most                                                 tick   tick   tick ...  steps of s
//!   one in 16                              tick tick tick tick ...               short steps
//!   not regular (yet): most                      tick   tick   tick ...
//!   one in four                            tick tick tick tick ...
//!   not known yet: one in four   tick tick tick tick tick tick tick ...
//! ```

use super::SPREADS;
use crate::forecast::is_one_of;
use engine::{Costs, Due, Outlook, CLOSE};

/// Of so many commands, as a power of two, one is measured, if the device is regular,
const PROBES: u32 = 4;
/// and one of so many, if it is not known to be.
const PROBES_OF_VAGUE: u32 = 2;

/// In how many nanoseconds the next tick comes; `None`: after an interval.
pub(super) fn looks_in(costs: Costs, what: Outlook) -> Option<u64> {
    // Half of what is close enough: a timer comes late, and so did the one before.
    let close = what.since_ns >> CLOSE >> 1;
    let Some(Due {
        after_ns,
        spread_ns,
    }) = what.due
    else {
        return is_one_of(what.at_ns, PROBES_OF_VAGUE).then_some(close);
    };
    // No more often than a tick is worth.
    let apart = spread_ns.max(costs.tick_ns);
    let vague = spread_ns > after_ns >> CLOSE;
    let probes = match vague || spread_ns > costs.sleep_ns {
        true => PROBES_OF_VAGUE,
        false => PROBES,
    };
    let (first, step) = match (is_one_of(what.at_ns, probes), vague) {
        (true, _) => (after_ns.saturating_sub(apart), close.min(apart)),
        (false, true) => (after_ns, apart),
        (false, false) => (after_ns.saturating_add(spread_ns), apart),
    };
    let late = what.since_ns > after_ns.saturating_add(apart.saturating_mul(SPREADS));
    Some(match first.checked_sub(what.since_ns) {
        Some(left) if left != 0 => left,
        _ if late => close.max(apart),
        _ => step,
    })
}
