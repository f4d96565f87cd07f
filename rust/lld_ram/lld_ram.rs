// SPDX-License-Identifier: GPL-2.0
//! An emulated controller: memory that answers like a disk, after a while, over several queues and
//! channels.
//!
//! It is a disk in the kernel, and a test device everywhere: it can be told to misbehave
//! ([`Faults`]).
//!
//! # Vocabulary
//! * [`Backing`]: what the device is made of: a clock, a timer (its interrupt), and memory (its
//!   medium).
//! * [`Device`]: what all its queues share: how it is configured, whether it runs, its faults.
//! * **Channel**: what serves one command at a time. A queue has several; a command takes the one
//!   that is free first.
//! * **Link**: what a command's data goes over when its channel is done with it. All channels of
//!   all queues share it. It takes no time unless [`Config::link_mb_s`] says so.
//! * **Block**: commands that the device takes in together, one block at a time, where
//!   [`Config::interface`] says so ([`Blocks`]); it has no channels then.
//! * **Word**: what the device reports of a finished command: its tag and a generation, checked
//!   against what was issued.
//!
//! ```text
//!  issue_tags -> ring -> heap, by due time -> due -> data is moved -> word -> fetch_event
//!      |           |     (drain side)    ^                             ^
//!      |           +-> heap, by when     |                             |
//!      |               ready -> link ----+                             |
//!      +------------- timer for the earliest -------------------- interrupt
//! ```
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod blocks;
mod controller;
mod device;
mod heap;
mod latency;
mod link;
mod queue;
mod service;

pub use blocks::{Answers, Blocks, Fill, MOST, PATIENCE_NS};
pub use controller::Ram;
pub use device::{
    Backing, Config, Device, Fault, Faults, Holes, Interface, MAX_QUEUES, MAX_SEGMENTS,
};
pub use latency::Latency;
pub use queue::{RamDrain, RamIssue, RamQueue};
