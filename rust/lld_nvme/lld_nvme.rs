// SPDX-License-Identifier: GPL-2.0
//! NVM Express over PCIe as a hal controller (NVM Express Base 2.x, NVM Command Set, PCIe
//! Transport).
//!
//! # Vocabulary
//! * **SQE, CQE**: submission and completion queue entry, 64 and 16 bytes of DMA memory.
//! * **CID**: the command identifier a CQE repeats: the tag in its low 12 bits, a generation above,
//!   so that a completion that comes twice or late is told from the next one of the same tag.
//! * **PRP, SGL**: the two ways to say where a command's data is.
//! * **Doorbell**: the register that tells the controller of a queue's new tail or head; **shadow**
//!   doorbells are the same in memory.
//!
//! # Files
//! Imports run one way, from each of these to those above it.
//! * [`regs`]: the registers.
//! * The data path: `sqe` (commands as submission queue entries, PRP and SGL), `cqe` (completions,
//!   and what statuses mean), and `queue` (a queue pair, as a hal queue), with `timeout_report`
//!   (what the log says of a command that timed out).
//! * `quirks`: what controllers do wrong, and which do. `admin`: the admin queue pair and its
//!   commands. `ctrl`: all that a controller keeps.
//! * What is done with a controller: `hmb` (the memory that it is lent), `aer` (its events, and how
//!   hot it is), `ns` (its namespaces as disks), `init` (enabling, disabling, shutting down, making
//!   queue pairs), `passthru` (commands of the operator's tools, and what these change), `pr`
//!   (reservations).
//! * `control`: the hal control path.
//!
//! The device is not trusted: whatever it says is checked before it is used.
#![no_std]
#![forbid(unsafe_code)]
// The kernel is built with overflow checks: an operator that could overflow is a panic in it.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

#[cfg(test)]
extern crate std;

mod admin;
mod aer;
mod control;
mod cqe;
mod ctrl;
mod hmb;
mod init;
mod ns;
mod passthru;
mod pr;
mod queue;
mod quirks;
pub mod regs;
mod sqe;
mod timeout_report;

pub use cqe::AdminReply;
pub use ctrl::NvmeController;
pub use passthru::{admin_bytes, may_change, Effects};
pub use queue::{NvmeDrain, NvmeIssue, NvmeQueue};
pub use quirks::Quirks;
