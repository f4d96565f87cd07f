// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of what is measured as a controller is bound. How much is found only a machine that
//! keeps time can tell: `ci/vm-tests/naps.sh` asks it.

use crate::platform::measure_costs;
use kernel::prelude::*;

#[kunit_tests(hiops_costs)]
mod costs_suite {
    use super::*;

    /// Each time two threads pass something to and fro, and one of them ends: a step that the other
    /// one misses would be waited for without end.
    #[test]
    fn it_comes_to_an_end_however_often() {
        for _ in 0..50 {
            let costs = measure_costs();
            assert!(costs.sleep_ns > 0 && costs.yield_ns > 0 && costs.tick_ns > 0);
        }
    }
}
