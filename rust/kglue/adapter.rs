// SPDX-License-Identifier: GPL-2.0
//! One controller being served: its queues, its tag set, its disks, its recovery.
//!
//! # States
//! ```text
//!  Live --recover--> (recovery work: gate paused, controller stopped, reaped, started) --> Live
//!    |                                                                    +--failed--> Dead
//!    +--remove, shutdown--> Dead
//!    +--suspend--> (gate paused, controller stopped) Suspended --resume--> Live, or Dead
//! ```
//! The gate itself is the strategy's ([`engine::Paused`]); the state here only says whether a
//! recovery may still be begun.
//!
//! # Files, each of which works with those above it
//! * `config`: what the adapter is given, [`Bus`] and [`Config`]. `reason`: why it is reset.
//! * `queue`: one hardware queue. `attention`: how the controller is attended. `shown`: the disks.
//!   `state`: all parts.
//! * `rest`: queues at rest. `suspend`: sleep, resets by others, and the control path.
//! * `recover`: recovery. `abort`: the rungs below it.
//! * `quirks`, `disks`, `change`: disks are made and shown, and change. `attend`: what the
//!   controller reports by itself.
//! * `remove`: the way out. `tags`, `make`: the beginning, of all that.
//! * `control`: the way of tools' commands. `learned`: what strategies have learnt. `serve`:
//!   interrupts, and the disks' files.

mod config;
mod control;
mod eh;
mod probe;
mod queue;
mod quiesce;
mod scan;
mod state;

pub use config::Suspend;
pub use config::{Begin, Bus, Config, Naming};
pub use state::Adapter;

pub(crate) use config::Reason;
pub(crate) use config::{spread, Label, Number};
pub(crate) use queue::HwQueue;
pub(crate) use scan::log_quirks;
