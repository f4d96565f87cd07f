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
//! * Registers: [`regs`]; the controller: `controller`; enabling and disabling: `bringup`, `start`;
//!   the hal control path: `control`; what it keeps: `state`; its steps by name: `step`; what the
//!   log says of a command that timed out: `silence`.
//! * Administration: `admin` (the admin queue pair), `features` (its commands), `identify`,
//!   `namespace` (what the device says about itself), `heat`, `units` (namespaces as disks),
//!   `passthrough` (commands of the operator's tools), `effects` (what those change),
//!   `io_passthrough` and `tool_queue` (their I/O commands), `kept` (memory that outlives its use),
//!   `reservation`, `reservation_report` (commands of reservations) and `reserve` (who sends them),
//!   `interrupt` (the mask that pins need), `made` (making queues).
//! * What the device reports by itself: `event`, `attend` (what is done about it), `error_log`,
//!   `pace` (how often at most).
//! * What it is lent: `host_memory`. What it is asked to give up: `abort`.
//! * What controllers do wrong, and who does: `quirks`, `drives`.
//! * The data path: `queue`, with `command` and `data` (`prp`, `sgl`) before the device, `cqe` and
//!   `status` after it, `doorbell` between.
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
