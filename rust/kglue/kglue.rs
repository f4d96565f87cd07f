// SPDX-License-Identifier: GPL-2.0
//! The glue between the pure crates and the kernel: the only Rust that says `kernel::bindings`.
//!
//! # Files
//! * [`platform`]: hal's platform: tables, DMA memory, registers, time; preemption, memory under
//!   I/O, clocks.
//! * [`pci`], `irq`: a PCI function with its vectors, and its driver.
//! * [`adapter`]: one controller being served: queues, tag set, disks, recovery, removal.
//! * [`hotplug`]: slots for drives that come and go. `host_reset`: all of them at rest.
//!   [`caller`]: what a controller asks of its host.
//! * [`blk`]: blk-mq disks over the engine. `sysfs`: their attributes.
//! * `bytes`: a disk's bytes, `/dev/<disk>_bytes`.
//! * `node`: a controller's own node, `/dev/hiops<C>`. `hwmon`: its temperatures.
//! * [`wait`]: threads that wait for their I/O.
//! * [`ram`]: the RAM disk.
//! * `errno`: errors at the kernel's edge. `text`: the log, and text for the kernel's buffers.
//!   [`params`]: the module's parameters.
//! * `compat`: what differs between kernels.
//! * `work`: what sleeps, begun from where nothing may; and what that, or a timer, calls.
//!   `timers`: the timer that polls, and looks after waiters.
//! * `faults`: faults on demand, on a kernel that is made for them.
//! * `kunit`: tests that need a kernel, of the folder of that name (and `wait`'s and the gate's,
//!   which have their own).
//! * `shims`: what `c_shims/` declares; `shims_safe`: what of it, and of the kernel's, is safe to
//!   call.

pub mod adapter;
pub mod blk;
mod bytes;
pub mod caller;
mod compat;
pub mod errno;
#[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
pub mod faults;
mod host_reset;
pub mod hotplug;
mod hwmon;
pub mod irq;
mod node;
pub mod params;
pub mod pci;
pub mod platform;
pub mod ram;
mod shims;
mod shims_safe;
mod sysfs;
mod text;
mod timers;
pub mod wait;
mod work;
#[cfg(CONFIG_KUNIT = "y")]
#[path = "../../kunit"]
mod kunit {
    mod costs;
    mod engine;
    mod errno;
    #[cfg(CONFIG_FAILSLAB)]
    mod hrtimer;
    mod limits;
    mod mapped_segments;
    mod names;
    mod owner;
    mod platform;
    mod pr;
    mod recovery;
    mod retry;
    mod slots;
    mod sysfs;
    mod test_host;
    mod test_port;
    mod unit;
}

pub use compat::zeroes;
pub use sysfs::{POLL_INTERVAL_US, WINDOW_US};

/// What the kernel's print macros put before each line.
pub(crate) const __LOG_PREFIX: &[u8] = b"hiops\0";
