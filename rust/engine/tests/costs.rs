// SPDX-License-Identifier: GPL-2.0
//! What things take on this machine, as a queue is told and as it finds.
#![cfg(not(loom))]

mod common;

use common::Rig;
use engine::Costs;

#[test]
fn an_interrupt_costs_a_tick_and_what_its_handler_does_first() {
    let queue = &Rig::new(4, 4).queue;
    queue.set_costs(Costs {
        tick_ns: 3_000,
        interrupt_ns: 4_000,
        ..Costs::ASSUMED
    });
    assert_eq!(queue.costs().interrupt_ns, 4_000);
    (0..200).for_each(|_| queue.note_interrupt(9_000));
    let costs = queue.costs();
    assert!((11_900..=12_000).contains(&costs.interrupt_ns), "{costs:?}");
    assert_eq!(costs.tick_ns, 3_000);
}

#[test]
fn a_clock_that_does_not_run_measures_no_zero() {
    let queue = &Rig::new(4, 4).queue;
    queue.set_costs(Costs {
        sleep_ns: 0,
        yield_ns: 0,
        tick_ns: 0,
        interrupt_ns: 0,
    });
    let costs = queue.costs();
    assert!(costs.sleep_ns > 0 && costs.yield_ns > 0 && costs.tick_ns > 0);
}
