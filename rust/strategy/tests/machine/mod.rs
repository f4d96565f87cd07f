// SPDX-License-Identifier: GPL-2.0
//! A machine with one CPU and a clock of its own, which moves as work is done: a device that takes
//! its time, its interrupt, a timer, threads that read and wait, and neighbours that compute. An
//! interrupt comes at any point of the engine's at which the clock moves, with a token held, too.

mod clock;
mod load;
mod threads;
mod upper;

pub use load::{Load, Played, SWITCH_NS};
pub use threads::play;
