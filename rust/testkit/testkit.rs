// SPDX-License-Identifier: GPL-2.0
//! What the tests of the low-level drivers have in common, on the machine of ordinary memory that
//! `hal::mock` is. Host only.
//!
//! * [`Model`], [`Device`], [`Bench`]: a device behind registers, in the test's hands.
//! * [`Line`]: one queue of a driver, verb by verb.
//! * [`Job`], [`Host`], [`Io`]: a request, the layer above the engine, and a queue between the two.
//! * [`Whole`]: all of it together, and what has to hold whatever the device is.
//! * [`together()`]: the threads of a test, which end with the first that panics.
//! * [`Mix`], [`Dice`]: random commands, the same every time.
//! * [`Fuzz`], [`Target`], [`Input`], [`Lies`]: a driver under a device that does what an input
//!   says.
#![forbid(unsafe_code)]
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails loudly"
)]

mod fuzz;
mod host;
mod input;
mod job;
mod lies;
mod line;
mod mix;
mod model;
mod together;
mod tries;
mod whole;

pub use fuzz::{Fuzz, Target};
pub use host::{chosen, Host, Io, Layer};
pub use input::{replay, Input};
pub use job::{command, pattern, Ended, Job};
pub use lies::Lies;
pub use line::Line;
pub use mix::{Dice, Mix};
pub use model::{Bench, Device, Model};
pub use together::{together, Over, Together};
pub use tries::{stays_gone, tries_until_well};
pub use whole::Whole;
