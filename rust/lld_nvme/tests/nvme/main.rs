// SPDX-License-Identifier: GPL-2.0
//! lld_nvme whole, against a model controller on a machine of ordinary memory.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails loudly, and its names say what it is"
)]

mod aborts;
mod bringup;
mod data;
mod discards;
mod events;
mod faults;
mod fuzz;
mod host_memory;
mod hostile;
mod io;
mod io_tools;
mod lists;
mod model;
mod namespaces;
mod pin;
mod quirks;
mod reservations;
mod reset;
mod rig;
mod t2;
mod temperature;
mod timeout_report;
mod tools;
mod whole;
