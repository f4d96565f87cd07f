// SPDX-License-Identifier: GPL-2.0
//! What the tests of the low-level drivers have in common, on the machine of ordinary memory that
//! `hal::mock` is. Host only.
//!
//! * [`Model`], [`Device`], [`Bench`]: a device behind registers, in the test's hands.
//! * [`Line`]: one queue of a driver, verb by verb.
//! * [`Host`], [`Job`], [`Io`]: the layer above the engine, and a queue between the two.
//! * [`Whole`]: all of it together, and what has to hold whatever the device is.
//! * [`together`]: the threads of a test, which end with the first that panics.
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

mod dice;
mod fuzz;
mod host;
mod input;
mod lies;
mod line;
mod mix;
mod model;
mod replay;
mod requests;
mod together;
mod tries;
mod whole;

pub use dice::Dice;
pub use fuzz::{Fuzz, Target};
pub use host::{chosen, Host, Io, Job, Layer};
pub use input::Input;
pub use lies::Lies;
pub use line::Line;
pub use mix::Mix;
pub use model::{Bench, Device, Model};
pub use replay::replay;
pub use together::{together, Over, Together};
pub use tries::{stays_gone, tries_until_well};
pub use whole::Whole;

use hal::{CmdError, Command, Op, Outcome};

/// How a command ended, without what is to be said of another try: [`Host::agains`] and
/// [`Line::failure`] have that.
pub type Ended = Result<(), CmdError>;

fn kind(outcome: Outcome) -> Ended {
    outcome.map_err(|failure| failure.error)
}

/// A command for `unit`, in blocks of 512 bytes.
pub fn command(unit: u32, op: Op, lba: u64, blocks: u32) -> Command {
    Command {
        op,
        unit,
        lba,
        blocks,
        block_shift: 9,
        fua: false,
        unmap: false,
    }
}

/// Bytes that say where they are.
pub fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    (0..bytes)
        .map(|at| (at as u8).wrapping_mul(7) ^ (at >> 8) as u8 ^ seed)
        .collect()
}
