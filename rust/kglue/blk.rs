// SPDX-License-Identifier: GPL-2.0
//! blk-mq disks over the strategy.
//!
//! * [`request`]: one request; in a row, in a batch, and its bios. [`map`]: its data as the
//!   controller sees it, by DMA ([`dma_map`], `dma_segments`, [`pieces`]) or not ([`direct`]).
//! * [`upper`]: blk-mq as the strategy's upper layer; [`ended`]: what it has ended; [`retry`],
//!   [`poller`]: its timers; [`again`]: requests that are tried again.
//! * [`lane`]: a disk's way to one hardware queue, with what is counted there.
//! * [`ops`]: blk-mq's callbacks. [`limits`]: what a disk promises the block layer.
//! * [`gendisk`]: the block layer's disk; [`disk`]: one that is made; [`fops`]: as user space sees
//!   it. [`shared`]: its part that may outlive the adapter; [`names`]: what it is known by;
//!   [`numbers`]: its device numbers.
//!   [`ioctl`]: what passes through to the
//!   controller; [`owner`]: who that is for a disk; [`gate`]: the way there. [`pr`]: its
//!   reservations.

pub(crate) mod batch;
pub(crate) mod disk;
pub(crate) mod dma;
pub(crate) mod fops;
pub(crate) mod gendisk;
pub(crate) mod hctx;
pub mod ioctl;
pub(crate) mod ops;
pub(crate) mod pr;
pub(crate) mod request;
pub(crate) mod upper;

pub use dma::DirectMap;
pub use dma::DmaMap;
pub use dma::MapKind;
pub use gendisk::AllDisks;
pub(crate) use gendisk::DiskShared;
