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

mod alone;
mod bringup;
mod data;
mod decline;
mod depth;
mod errors;
mod fuzz;
mod hostile;
mod hotplug;
mod interrupts;
mod io;
mod model;
mod policies;
mod quirks;
mod races;
mod rig;
mod shutdown;
mod silence;
mod sleep;
mod threads;
mod tools;
mod turns;
mod unreachable;
mod whole;
