// SPDX-License-Identifier: GPL-2.0
//! blk-mq disks over the strategy.
//!
//! * [`hctx`]: a disk on one hardware queue, with what is counted there; a request's owner.
//!   [`latency`]: how long its requests take.
//! * [`request`]: one request, in a row, in a batch, and its bios. [`dma`]: its data as the
//!   controller sees it, by DMA or not. [`batch`]: requests that have ended, or are tried again.
//! * [`upper`]: blk-mq as the strategy's upper layer. [`ops`]: blk-mq's callbacks.
//! * [`gendisk`]: the block layer's disk with its limits, names, numbers, and its part that may
//!   outlive the adapter. [`disk`]: one that is made.
//! * [`ioctl`]: what passes through to the controller, who that is for a disk, and the gate on the
//!   way there. [`fops`]: a disk as user space sees it. [`pr`]: its reservations.

pub(crate) mod batch;
pub(crate) mod disk;
pub(crate) mod dma;
pub(crate) mod fops;
pub(crate) mod gendisk;
pub(crate) mod hctx;
pub mod ioctl;
pub(crate) mod latency;
pub(crate) mod ops;
pub(crate) mod pr;
pub(crate) mod request;
pub(crate) mod upper;

pub use dma::{DirectMap, DmaMap, MapKind};
pub use gendisk::AllDisks;

pub(crate) use gendisk::DiskShared;
