// SPDX-License-Identifier: GPL-2.0
//! The HIOPS hardware abstraction layer: what the engine may ask of a storage controller, and what
//! a low-level driver (LLD) may ask of the machine it runs on.
//!
//! # Vocabulary
//! * **Controller**: one device function. Its *control path* ([`Controller`]) brings it up, names
//!   its disks ([`Unit`]), stops and restarts it; it may sleep.
//! * **Queue**: one independent issue/completion channel of a controller ([`Queue`]): an NVMe queue
//!   pair, an AHCI port. Its *data path* never sleeps and never waits.
//! * **Tag**: one of the queue's command slots (NVMe CID, AHCI slot). [`Tag`] is a type whose state
//!   is part of it.
//! * **Command**: what a tag is bound to: [`Command`], with its data as [`Segment`]s.
//! * **Event**: one completion, proven by the LLD to belong to a tag that it issued ([`Event`]).
//! * **Quirk**: what a device is known to do wrong, and is spared ([`quirk_set`]).
//!
//! # A tag's life
//! ```text
//!        get_free_tags         bind_tag_cmd          issue_tags
//!  pool ---------------> Free --------------> Bound ------------> (the device's)
//!   ^                                                                  | fetch_event, reap_tag
//!   |   release_tags              detach_tag_cmd                       v
//!   +------------------- Detached <----------------------------- Completed
//! ```
//! Every arrow consumes the tag, so a tag cannot be issued twice nor released while the device has
//! it.
//!
//! # Sides
//! A queue is used from two sides at once: one issuer and one drainer. What only the one may touch
//! is [`Queue::Issue`], what only the other may touch is [`Queue::Drain`]; the engine keeps each
//! behind a token ([`cell::TryLock`]), and hands the LLD `&mut` of it. So exclusive access costs
//! the LLD nothing and needs no promise.
//!
//! This crate knows no kernel type. Everything here runs on the host.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "mock"))]
extern crate std;

mod controller;
mod error;
#[cfg(any(test, feature = "mock"))]
pub mod mock;
mod platform;
mod poll;
mod queue;
mod quirks;
mod reservation;
mod tag;
mod wrapper;

pub use controller::{
    Cause, Controller, DeviceEvent, Discard, EventAction, Limits, LinkPower, NewQueue, Queues,
    Refused, Severity, Shutdown, Temperature, Topology, Unit, UnitIds, UnitKind, SENSORS,
};
pub use error::{CmdError, Error, Failure, Outcome, RetryHint};
pub use platform::{DmaMem, Mmio, Platform};
pub use poll::{poll_until, Backoff, Deadline, Progress, Steps, GRACE_US};
pub use queue::{Command, Event, Op, Queue, Segment, Unbound};
pub use quirks::{Messages, PciIds};
pub use reservation::{Access, Answer, Denied, Holder, Registered, Reservations, Reserve};
pub use tag::{Bound, Completed, Detached, Free, FreeTags, Tag, TagBatch, TagTable};
pub use wrapper::Wrapper;
