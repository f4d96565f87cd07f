// SPDX-License-Identifier: GPL-2.0
//! One controller being served: its queues, its tag set, its disks, its recovery.
//!
//! # States
//! ```text
//!  Live --recover--> (recovery: queues quiesced, controller stopped, reaped, started) --> Live
//!    |                                                                    +--failed--> Dead
//!    +--remove, shutdown--> Dead
//!    +--suspend--> (queues quiesced, controller stopped) Suspended --resume--> Live, or Dead
//! ```
//! The gate itself is the engine's ([`engine::Quiesced`]); the state here only says whether a
//! recovery may still be begun.
//!
//! # Files, each of which works with those above it
//! * `config`: what the adapter is given, [`Bus`] and [`Config`]; why it is reset, or put to rest.
//! * `queue`: one hardware queue. `state`: all that an adapter keeps.
//! * `quiesce`: at rest: for a moment, for a sleep, for good. `eh`: time-outs, aborts, recovery.
//! * `scan`: its disks, and what the controller reports by itself.
//! * `probe`: an adapter is made.
//! * `control`: interrupts, the disks' files, and how tools' commands reach it.

mod config;
mod control;
mod eh;
mod probe;
mod queue;
mod quiesce;
mod scan;
mod state;

pub use config::{Begin, Bus, Config, Naming, Suspend};
pub use state::Adapter;

pub(crate) use config::{spread, Label, Number, Reason};
pub(crate) use queue::HwQueue;
pub(crate) use scan::log_quirks;
