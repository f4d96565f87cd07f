// SPDX-License-Identifier: GPL-2.0
//! The RAM disk: lld_ram's device made of vmalloc'd memory and high-resolution timers.

use crate::adapter::{Adapter, Begin, Bus, Config, Naming};
use crate::blk::ioctl::AdminPath;
use crate::blk::DirectMap;
use crate::platform::KernelPlatform;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use hal::{Error, Segment};
use kernel::alloc::VVec;
use kernel::bindings;
use kernel::ffi::c_void;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;
use lld_ram::{Device, Ram, World};

pub(crate) type RamController = Ram<KernelPlatform, RamWorld>;
type RamAdapter = Adapter<RamController, RamBus>;

/// A queue's interrupt: a timer that serves the queue when it expires.
///
/// # Invariants
/// `timer` is set up. `adapter` is null, or an adapter that lives until the timer was cancelled with no new start possible.
#[repr(C)]
struct Bell {
    timer: Opaque<bindings::hrtimer>,
    adapter: AtomicPtr<c_void>,
    queue: u16,
}

// SAFETY: a timer may be started from any context.
unsafe impl Send for Bell {}
// SAFETY: as above; the timer's own lock orders it.
unsafe impl Sync for Bell {}

/// What the device is made of.
pub(crate) struct Parts {
    device: Device,
    /// Never borrowed: copied from and to by `memcpy` only, as a device would.
    medium: VVec<u8>,
    bells: KVec<Bell>,
}

// SAFETY: the medium is memory that several contexts copy from and to, as they would with a real disk: what two overlapping commands leave there is
// theirs to order.
unsafe impl Send for Parts {}
// SAFETY: as above.
unsafe impl Sync for Parts {}

/// A handle of the parts.
#[derive(Clone)]
pub struct RamWorld(Arc<Parts>);

impl RamWorld {
    pub(crate) fn new(config: lld_ram::Config) -> Result<Self, Error> {
        let device = Device::new(config)?;
        let len = usize::try_from(config.bytes).map_err(|_| Error::Invalid)?;
        let no_memory = |_| Error::NoMemory;
        let medium = VVec::zeroed(len, GFP_KERNEL).map_err(no_memory)?;
        let mut bells = KVec::with_capacity(config.queues.into(), GFP_KERNEL).map_err(no_memory)?;
        for queue in 0..config.queues {
            let bell = Bell {
                timer: Opaque::uninit(),
                adapter: AtomicPtr::new(null_mut()),
                queue,
            };
            bells.push(bell, GFP_KERNEL).map_err(no_memory)?;
        }
        for bell in &bells {
            // SAFETY: the bells stay where they are: the vector grows no more, and moving it does not move them.
            unsafe {
                bindings::hrtimer_setup(
                    bell.timer.get(),
                    Some(Bell::expired),
                    // CAST: 1.
                    bindings::CLOCK_MONOTONIC as bindings::clockid_t,
                    bindings::hrtimer_mode_HRTIMER_MODE_ABS_PINNED,
                );
            }
        }
        let parts = Parts {
            device,
            medium,
            bells,
        };
        Ok(Self(Arc::new(parts, GFP_KERNEL).map_err(no_memory)?))
    }

    fn connect(&self, adapter: *const RamAdapter) {
        for bell in &self.0.bells {
            bell.adapter
                .store(adapter.cast_mut().cast(), Ordering::Release);
        }
    }

    pub(crate) fn silence(&self) {
        for bell in &self.0.bells {
            // SAFETY: set up; waits for a handler that runs.
            unsafe { bindings::hrtimer_cancel(bell.timer.get()) };
        }
    }

    fn byte(&self, at: u64) -> *mut u8 {
        // CAST: below the medium's length, which is a `usize`.
        self.0.medium.as_ptr().cast_mut().wrapping_add(at as usize)
    }
}

impl Bell {
    /// # Safety
    /// Called by the timer core with the timer of a `Bell`.
    unsafe extern "C" fn expired(timer: *mut bindings::hrtimer) -> bindings::hrtimer_restart {
        // SAFETY: `timer` is the first field (`repr(C)`) of a bell that is not freed before it was cancelled.
        let bell = unsafe { &*timer.cast::<Bell>() };
        // SAFETY: by the invariant.
        if let Some(adapter) = unsafe {
            bell.adapter
                .load(Ordering::Acquire)
                .cast::<RamAdapter>()
                .as_ref()
        } {
            adapter.interrupt(bell.queue);
        }
        bindings::hrtimer_restart::HRTIMER_NORESTART
    }
}

impl World for RamWorld {
    fn device(&self) -> &Device {
        &self.0.device
    }

    fn now_ns(&self) -> u64 {
        // SAFETY: may be called in any context.
        // CAST: a monotonic clock is never negative.
        unsafe { bindings::ktime_get() as u64 }
    }

    fn ring(&self, queue: u16, at_ns: u64) {
        let Some(bell) = self.0.bells.get(usize::from(queue)) else {
            return;
        };
        let at = i64::try_from(at_ns).unwrap_or(i64::MAX);
        // SAFETY: set up; may be started from any context, its own handler included.
        unsafe {
            bindings::hrtimer_start_range_ns(
                bell.timer.get(),
                at,
                0,
                bindings::hrtimer_mode_HRTIMER_MODE_ABS_PINNED,
            );
        }
    }

    fn read(&self, at: u64, to: Segment) {
        // SAFETY: the range is inside the medium (contract of `World`); `to` is a piece of a request's data that `DirectMap` gave, and
        // the request has not ended.
        unsafe {
            bindings::memcpy(
                to.addr as *mut c_void,
                self.byte(at).cast(),
                to.len as usize,
            )
        };
    }

    fn write(&self, at: u64, from: Segment) {
        // SAFETY: as in `read`.
        unsafe {
            bindings::memcpy(
                self.byte(at).cast(),
                from.addr as *const c_void,
                from.len as usize,
            )
        };
    }

    fn zero(&self, at: u64, len: u64) {
        // SAFETY: the range is inside the medium.
        unsafe { bindings::memset(self.byte(at).cast(), 0, len as usize) };
    }
}

impl AdminPath for RamController {}

/// The RAM disk's bus: a timer for each queue, and no DMA.
pub struct RamBus {
    world: RamWorld,
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

    /// The bell is the controller's to keep silent.
    fn set_interrupt(&self, _vector: u16, _on: bool) {}

    fn device(&self) -> *mut bindings::device {
        null_mut()
    }

    fn queues(&self) -> u16 {
        self.queues
    }

    fn vector(&self, queue: u16) -> u16 {
        queue
    }

    fn map_queues(&self, map: &mut bindings::blk_mq_queue_map) {
        // SAFETY: blk-mq's own map, in its callback.
        unsafe { bindings::blk_mq_map_queues(map) };
    }

    fn cut_off(&self) {}

    fn restore(&self) -> Result<(), Error> {
        Ok(())
    }

    fn synchronize(&self) {
        self.world.silence();
    }
}

/// A RAM disk being served; dropping it takes it away.
pub struct RamDisk {
    adapter: KBox<RamAdapter>,
    world: RamWorld,
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
        let world = RamWorld::new(config)?;
        let platform = KernelPlatform::without_device();
        let controller = Ram::new(platform.clone(), world.clone(), number);
        hal::Controller::start(&controller)?;
        let bus = RamBus {
            world: world.clone(),
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
        world.connect(&*adapter);
        let disk = Self { adapter, world };
        disk.adapter.add_disks()?;
        Ok(disk)
    }

    /// How it may be made to misbehave.
    pub fn faults(&self) -> &lld_ram::Faults {
        &self.world.0.device.faults
    }
}

impl Drop for RamDisk {
    fn drop(&mut self) {
        self.adapter.remove();
        // The device is stopped: nobody starts a bell again.
        self.world.silence();
        self.world.connect(core::ptr::null());
    }
}
