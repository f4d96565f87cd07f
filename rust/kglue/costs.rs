// SPDX-License-Identifier: GPL-2.0
//! What this machine takes for what a strategy can choose between, measured as a controller is
//! bound.

use crate::shims;
use engine::Costs;

/// Measures it on this CPU; what can't be measured is assumed. Some milliseconds; sleeps.
pub(crate) fn measure() -> Costs {
    let mut found = shims::hiops_costs::default();
    // SAFETY: may sleep; the place is this function's.
    unsafe { shims::hiops_measure_costs(&mut found) };
    let or = |ns: u64, assumed: u64| if ns == 0 { assumed } else { ns };
    let tick_ns = or(found.tick_ns, Costs::ASSUMED.tick_ns);
    Costs {
        sleep_ns: or(found.sleep_ns, Costs::ASSUMED.sleep_ns),
        yield_ns: or(found.yield_ns, Costs::ASSUMED.yield_ns),
        tick_ns,
        // Until one came: what it does beside is its driver's.
        interrupt_ns: tick_ns,
    }
}
