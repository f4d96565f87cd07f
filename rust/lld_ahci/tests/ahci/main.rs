// SPDX-License-Identifier: GPL-2.0
//! lld_ahci whole, against a model HBA with drives on a machine of ordinary memory.
#![cfg(not(loom))]
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails loudly, and its names say what it is"
)]
#![expect(
    clippy::precedence,
    reason = "shifts of register fields, as everybody writes them"
)]

mod bringup;
mod data;
mod defer;
mod depth;
mod errors;
mod exclusive;
mod fuzz;
mod hostile;
mod hotplug;
mod interrupts;
mod io;
mod lpm;
mod lpm_policies;
mod model;
mod quirks;
mod races;
mod rig;
mod shutdown;
mod speed_down;
mod threads;
mod timeout_report;
mod tools;
mod unreachable;
mod whole;
