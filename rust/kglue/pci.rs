// SPDX-License-Identifier: GPL-2.0
//! PCI: a function claimed by its driver, and the bus as the adapter sees it.
//!
//! * [`Function`]: a reference to one PCI function.
//! * [`Claim`]: the function enabled, its register window reserved, bus master on when its device
//!   is stopped; undone in reverse order when dropped.
//! * [`bus`]: what the [`crate::adapter::Adapter`] needs of the function, which may be one of
//!   several ports'.
//! * [`registration`]: a driver with the PCI core: probe, remove, shutdown, sleep, errors, resets;
//!   and what it makes of a function.
//! * [`driver`]: one made of a hal controller. [`hba`]: one made of an HBA, whose ports are the
//!   controllers.

pub(crate) mod bus;
pub mod driver;
mod function;
pub mod hba;
pub mod registration;

pub use bus::PciBus;
pub use function::{Claim, Function};
