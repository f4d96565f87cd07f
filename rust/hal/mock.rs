// SPDX-License-Identifier: GPL-2.0
//! A machine of ordinary memory, for tests on the host.
//!
//! * [`MockPlatform`]: tables, DMA memory, a clock that moves when told to. Device models reach the
//!   same memory through its [`MockBus`], by bus address, as hardware would.
//! * [`MockMapping`]: the data of one request, bounced: the device sees a copy until it is
//!   unmapped.
//! * [`MockController`], [`MockQueue`], [`MockDevice`]: a controller that completes commands when a
//!   test says so, for the tests of strategies.
//!
//! It punishes: bus addresses lie above 4 GiB with unmapped gaps between them, freed memory is gone
//! from the bus, and every access that hits nothing is a counted fault ([`MockBus::faults`]).

mod bus;
mod controller;
mod device;
mod mapping;
mod platform;
mod queue;

pub use bus::{BusFault, MockBus};
pub use controller::MockController;
pub use device::{Issued, MockDevice};
pub use mapping::MockMapping;
pub use platform::{MockDma, MockPlatform};
pub use queue::{MockDrain, MockIssue, MockQueue};
