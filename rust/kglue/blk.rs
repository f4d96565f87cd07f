// SPDX-License-Identifier: GPL-2.0
//! blk-mq disks over the engine.
//!
//! * [`ops`]: blk-mq's callbacks, and the interrupt.
//! * [`request`]: one request, and its disk on one hardware queue, with what is counted there.
//!   [`latency`]: how long a disk's requests take.
//! * [`upper`]: blk-mq as the engine's upper layer; a request's data as the controller sees it, by
//!   DMA or not.
//! * [`batch`]: several requests, and those that have ended, or are tried again.
//! * [`gendisk`]: the block layer's disk with its limits, names, numbers, and its part that may
//!   outlive the adapter. [`disk`]: one that is made.
//! * [`ioctl`]: what passes through to the controller, who that is for a disk, and the gate on the
//!   way there. [`fops`]: a disk as user space sees it. [`pr`]: its reservations.

pub(crate) mod batch;
pub(crate) mod disk;
pub(crate) mod fops;
pub(crate) mod gendisk;
pub mod ioctl;
pub(crate) mod latency;
pub(crate) mod ops;
pub(crate) mod pr;
pub(crate) mod request;
pub(crate) mod upper;

pub use gendisk::AllDisks;
pub use upper::{DirectMap, DmaMap, MapKind};

pub(crate) use gendisk::DiskShared;
