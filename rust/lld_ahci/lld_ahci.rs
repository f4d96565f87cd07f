// SPDX-License-Identifier: GPL-2.0
//! Serial ATA behind AHCI as hal controllers (AHCI 1.3.1, Serial ATA 3.x, ACS-4).
//!
//! # One port is one controller
//! What hal calls a controller is what is started, stopped, reset and given up as one, and whose
//! queues serve all of its disks alike. For AHCI that is the port, not the HBA: a port has its own
//! command list, its own drive and its own recovery, which must not hold up the others; no command
//! of one port can be issued through another. So each implemented port becomes an
//! [`AhciController`] with one queue and, if its drive is served, one disk whose number is the
//! port's. The layer above serves a port as it serves an NVMe controller, with nothing new but
//! where interrupts come from and that a port may ask for error handling
//! ([`Site::schedule_eh`], [`AhciController::run_eh`]).
//!
//! The ports share an [`Hba`]: brought up once before them, and afterwards only asked which port
//! interrupted. It has no lock, because nothing in it changes. Its last resort, a reset, takes all
//! ports along, so no port uses it.
//!
//! # Serving an HBA
//! 1. [`Hba::new`] on the BAR that [`HbaQuirks::bar`] names; the DMA mask is of [`Hba::dma_bits`];
//!    [`Hba::start`].
//! 2. For each port of [`Hba::ports`]: [`Port::new`], a [`Site`] around it,
//!    [`AhciController::new`], `start`, `units`. One with a disk gets its queue; all of them are
//!    kept, since a drive may come.
//! 3. The handler is registered; [`Hba::set_interrupt`], and `set_interrupt` of each port. A
//!    caller that polls a port turns only the port's off.
//! 4. In the handler [`Hba::interrupt`] calls for each port that may be meant; there
//!    [`hal::Controller::interrupt`], and then its queue is drained.
//! 5. After [`Site::schedule_eh`] a thread quiesces the queue (`engine::Quiesced`), calls
//!    [`AhciController::run_eh`], unquiesces it, and acts on the [`EhOutcome`]. A port
//!    whose drive left or was exchanged is dropped with its queue, and made anew.
//!
//! # Vocabulary
//! * **FIS**: frame information structure, what goes over the link. H2D carries a command, D2H and
//!   Set Device Bits answer.
//! * **Slot**: one of up to 32 places of a port's command list: the tag, and the NCQ tag as well.
//!   It has a **header** and a **command table** with the command FIS and the **PRDT**, which says
//!   where the data is.
//! * **Queued** commands (NCQ) may be with a drive at once, **unqueued** ones may not be with them.
//! * **Issued**: the device has the command. **Deferred**: it waits until the device has no
//!   command of the other kind.
//!
//! # Files
//! * [`regs`]: registers of the HBA and of its ports. `quirks`: what HBAs ([`HbaQuirks`]) and
//!   drives do wrong.
//! * `port`: all that a port keeps, and how it is stopped and run. What is done with it is in the
//!   files that follow, as methods of [`Port`].
//! * Data path: `queue` (hal's queue: issue and completion), `active` (which commands the device
//!   has, which wait for their turn), `cmd` (a command in memory, and what its answer means).
//! * Control path: `init` (link up, drive recognized), `identify` (what it says of itself), `eh`
//!   (recovery, and the speeding down of a drive that fails often), `internal` (commands that are
//!   issued alone: the driver's own and those of tools; write cache; shutdown), `lpm` (sleep of the
//!   link), `timeout_report` (what the log says of a command that timed out).
//! * `host`, above them all: [`Hba`], and hal's controller of a port.
//! * Tools that speak SCSI: [`sat`] decodes their commands, `sat_pages` has the answers.
//!
//! # Left alone
//! ATAPI devices, port multipliers, drives of 28-bit addresses, locked ones, other block sizes than
//! 512 and 4096 bytes: named, and not touched further. Link power management stays as the firmware
//! has set it, across the HBA's reset, unless the drive is known to be lost by it, or the operator
//! has chosen a policy; device-initiated power management is turned off unless that wants it.
//! DevSleep is never entered. `PRDBC` is never read: a transfer's length is the device's word
//! against its own status, and no decision hangs on it.
#![no_std]
#![forbid(unsafe_code)]
// The kernel is built with overflow checks: an operator that could overflow is a panic in it.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

#[cfg(test)]
extern crate std;

mod active;
mod cmd;
mod eh;
mod host;
mod identify;
mod init;
mod internal;
mod irq_mask;
mod lpm;
mod port;
mod queue;
mod quirks;
pub mod regs;
pub mod sat;
mod sat_pages;
mod timeout_report;

pub use eh::EhOutcome;
pub use host::{AhciController, Hba};
pub use internal::{AtaCommand, AtaReply, Transfer};
pub use port::{Port, PortConfig, Site};
pub use queue::{AhciDrain, AhciQueue};
pub use quirks::HbaQuirks;
pub use sat::Sense;
pub use sat_pages::{Identity, Page};
