// SPDX-License-Identifier: GPL-2.0
//! blk-mq disks over the strategy.
//!
//! * [`request`], [`map`], [`direct`]: one request, and its data as the controller sees it, by DMA or not.
//! * [`upper`]: blk-mq as the strategy's upper layer; [`retry`], [`poller`]: its timers;
//!   [`again`]: requests that are tried again.
//! * [`lane`]: a disk's way to one hardware queue, with what is counted there.
//! * [`ops`]: blk-mq's callbacks. [`limits`]: what a disk promises the block layer.
//! * [`disk`], [`fops`]: a disk as user space sees it. [`ioctl`]: what passes through to the
//!   controller; [`gate`]: the way there. [`pr`]: its reservations.

pub(crate) mod again;
pub(crate) mod direct;
pub(crate) mod disk;
pub(crate) mod fops;
pub(crate) mod gate;
pub mod ioctl;
pub(crate) mod lane;
pub(crate) mod limits;
pub(crate) mod map;
pub(crate) mod ops;
pub(crate) mod poller;
pub(crate) mod pr;
pub(crate) mod request;
pub(crate) mod retry;
pub(crate) mod upper;

pub use direct::DirectMap;
pub use disk::AllDisksGone;
pub(crate) use disk::DiskShared;
pub use map::{DmaMap, MapKind};
