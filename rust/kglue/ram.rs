// SPDX-License-Identifier: GPL-2.0
//! The RAM disk: lld_ram's device made of vmalloc'd memory and high-resolution timers.

use crate::adapter::{Adapter, Begin, Bus, Config, Naming};
use crate::blk::ioctl::AdminPath;
use crate::blk::DirectMap;
use crate::irq::Interrupt;
use crate::platform::BoundDevice;
use crate::platform::KernelPlatform;
use crate::timers::{Expired, HrTimer};
use crate::work::{Pinned, Target};
use hal::{Error, Segment};
use kernel::alloc::VVec;
use kernel::bindings;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::time::{ClockSource, Monotonic};
use lld_ram::{Backing, Device, Ram};

pub(crate) type RamController = Ram<KernelPlatform, RamBacking>;
type RamAdapter = Adapter<RamController, RamBus>;

/// A queue's interrupt: what a timer calls that serves the queue when it expires.
struct IrqTimer {
    adapter: Target<RamAdapter>,
    queue: u16,
}

/// What the device is made of.
pub(crate) struct Parts {
    device: Device,
    /// Never borrowed: copied from and to by `memcpy` only, as a device would.
    medium: VVec<u8>,
    timers: KVec<KBox<HrTimer<IrqTimer>>>,
}

// SAFETY: the medium is memory that several contexts copy from and to, as they would with a real
// disk: what two overlapping commands leave there is theirs to order.
unsafe impl Send for Parts {}
// SAFETY: as above.
unsafe impl Sync for Parts {}

/// A handle of the parts.
#[derive(Clone)]
pub struct RamBacking(Arc<Parts>);

impl RamBacking {
    pub(crate) fn new(config: lld_ram::Config) -> Result<Self, Error> {
        let device = Device::new(config)?;
        let len = usize::try_from(config.bytes).map_err(|_| Error::Invalid)?;
        let no_memory = |_| Error::NoMemory;
        let medium = crate::compat::zeroes(len).map_err(no_memory)?;
        let mut timers =
            KVec::with_capacity(config.queues.into(), GFP_KERNEL).map_err(no_memory)?;
        for queue in 0..config.queues {
            let adapter = Target::new();
            let timer = HrTimer::of(IrqTimer { adapter, queue }).map_err(|_| Error::NoMemory)?;
            timers.push(timer, GFP_KERNEL).map_err(no_memory)?;
        }
        let parts = Parts {
            device,
            medium,
            timers,
        };
        Ok(Self(Arc::new(parts, GFP_KERNEL).map_err(no_memory)?))
    }

    fn connect(&self, adapter: Pinned<RamAdapter>) {
        for timer in &self.0.timers {
            timer.target().adapter.set(adapter);
        }
    }

    pub(crate) fn silence(&self) {
        for timer in &self.0.timers {
            timer.cancel();
        }
    }

    /// Moves `len` bytes between the medium and a segment, for `Backing::{read, write}`.
    #[inline(always)]
    fn copy(to: *mut u8, from: *const u8, len: u32) {
        // SAFETY: the range is inside the medium (contract of `Backing`); the segment is a piece of
        // a request's data that `DirectMap` gave, and the request has not ended.
        unsafe { bindings::memcpy(to.cast(), from.cast(), len as usize) };
    }

    fn byte(&self, at: u64) -> *mut u8 {
        // CAST: below the medium's length, which is a `usize`.
        self.0.medium.as_ptr().cast_mut().wrapping_add(at as usize)
    }
}

impl Expired for IrqTimer {
    #[inline]
    fn expired(&self) {
        if let Some(adapter) = self.adapter.get() {
            adapter.interrupt(self.queue);
        }
    }
}

impl Backing for RamBacking {
    fn device(&self) -> &Device {
        &self.0.device
    }

    fn now_ns(&self) -> u64 {
        // CAST: a monotonic clock is never negative.
        Monotonic::ktime_get() as u64
    }

    fn arm(&self, queue: u16, at_ns: u64) {
        let Some(timer) = self.0.timers.get(usize::from(queue)) else {
            return;
        };
        timer.start_at(i64::try_from(at_ns).unwrap_or(i64::MAX));
    }

    fn read(&self, at: u64, to: Segment) {
        Self::copy(to.addr as *mut u8, self.byte(at), to.len);
    }

    fn write(&self, at: u64, from: Segment) {
        Self::copy(self.byte(at), from.addr as *const u8, from.len);
    }

    fn zero(&self, at: u64, len: u64) {
        // SAFETY: the range is inside the medium.
        unsafe { bindings::memset(self.byte(at).cast(), 0, len as usize) };
    }
}

impl AdminPath for RamController {}

/// The RAM disk's bus: a timer for each queue, and no DMA.
pub struct RamBus {
    backing: RamBacking,
    queues: u16,
}

impl Bus for RamBus {
    type Map = DirectMap;

    fn map(&self) -> DirectMap {
        DirectMap
    }

    fn can_poll(&self) -> bool {
        true
    }

    /// The timer is the controller's to mask.
    fn set_interrupt(&self, _vector: u16, _on: bool) {}

    fn device(&self) -> Option<&BoundDevice> {
        None
    }

    fn queues(&self) -> u16 {
        self.queues
    }

    fn vector(&self, queue: u16) -> u16 {
        queue
    }

    fn cut_off(&self) {}

    fn restore(&self) -> Result<(), Error> {
        Ok(())
    }

    fn synchronize(&self) {
        self.backing.silence();
    }
}

/// A RAM disk being served; dropping it takes it away.
pub struct RamDisk {
    adapter: KBox<RamAdapter>,
    backing: RamBacking,
}

impl RamDisk {
    /// Makes `/dev/hiops_ram<number>`. Sleeps.
    pub fn new(
        number: u32,
        config: lld_ram::Config,
        timeout_ms: u32,
        begin: Begin,
        poll_queues: u16,
    ) -> Result<Self, Error> {
        let backing = RamBacking::new(config)?;
        let platform = KernelPlatform::without_device();
        let controller = Ram::new(platform.clone(), backing.clone(), number);
        hal::Controller::start(&controller)?;
        let bus = RamBus {
            backing: backing.clone(),
            queues: config.queues.saturating_sub(poll_queues).max(1),
        };
        let serve = Config {
            naming: Naming::Ram(number),
            timeout_ms,
            queue_depth: None,
            poll_queues,
            begin,
        };
        let adapter = Adapter::new(&platform, controller, bus, serve)?;
        backing.connect(adapter.pinned());
        let disk = Self { adapter, backing };
        disk.adapter.add_disks()?;
        Ok(disk)
    }

    /// How it may be made to misbehave.
    pub fn faults(&self) -> &lld_ram::Faults {
        &self.backing.0.device.faults
    }
}

impl Drop for RamDisk {
    fn drop(&mut self) {
        self.adapter.remove();
        // The device is stopped: no timer is started again.
        self.backing.silence();
    }
}
