// SPDX-License-Identifier: GPL-2.0
//! Faults on demand, around a low-level driver that does not know of them.
//!
//! Below the driver, in what its device's registers read and take: [`nvme::Registers`],
//! [`ahci::Registers`]. Above it, in what it says of its completions: [`Queue`]. [`Faults`] are the
//! switches that both go by, all of them off at first.
//!
//! ```text
//!  engine --- Queue - the driver's queue - Registers - the device's registers
//!              |                             |
//!              drop, delay_us, duplicate,    deaf, cfs, all_ones
//!              fail_nth, fail_as
//! ```
//! For tests: a kernel without `CONFIG_FAULT_INJECTION_DEBUG_FS` gets a module without this crate.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod ahci;
mod faults;
pub mod nvme;
mod queue;

pub use faults::{Faults, Knob};
pub use queue::{Alarm, Drain, Queue};
