// SPDX-License-Identifier: GPL-2.0
//! An adapter is made: its queues, and the tag set that blk-mq has of them.

use core::mem::{size_of, MaybeUninit};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicU8};
use engine::Costs;
use hal::Error;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::sync::{Arc, LockClassKey, Mutex};
use kernel::types::Opaque;
use kernel::{bindings, c_str, static_lock_class};

use crate::adapter::config::{Bus, Config, Naming, Number};
use crate::adapter::queue::HwQueue;
use crate::adapter::state::{Adapter, Attention, Shown, TagSet, LIVE, WELL};
use crate::blk::ioctl::{AdminPath, Gate};
use crate::blk::ops::Ops;
use crate::blk::request::Pdu;
use crate::blk::MapKind;
use crate::bytes::memory::most_commands;
use crate::platform::KernelPlatform;
use crate::shims;
use crate::wait::hook::Hook;
use crate::work::{Pinned, Recover, Work};

/// Requests that may be outstanding on a queue by default, where the controller has fewer tags: the
/// FIFO holds the rest. Enough that a program with 256 in flight never sleeps for one of blk-mq's
/// tags, which come back a little later than the I/O is over.
const LEAST_DEPTH: u16 = 512;
/// blk-mq takes no more.
const MOST_DEPTH: u16 = 10_240;

/// What lockdep calls an adapter's locks: one address each, whatever the adapter's type.
struct Names {
    disks: &'static CStr,
    change: &'static CStr,
    control: &'static CStr,
    quiesced: &'static CStr,
    hook: &'static CStr,
}

static NAMES: Names = Names {
    disks: c_str!("hiops_disks"),
    change: c_str!("hiops_change"),
    control: c_str!("hiops_control"),
    quiesced: c_str!("hiops_paused"),
    hook: c_str!("hiops_hook"),
};

/// A mutex around `value`, for lockdep.
fn lock<T>(
    value: T,
    name: &'static CStr,
    key: Pin<&'static LockClassKey>,
) -> impl PinInit<Mutex<T>> {
    Mutex::new(value, name, key)
}

/// Allocates what is made in its place.
fn boxed<T>(init: impl PinInit<T>) -> Result<Pin<KBox<T>>, Error> {
    KBox::pin_init(init, GFP_KERNEL).map_err(|_| Error::NoMemory)
}

/// The first of `vectors`, if they are in a row.
fn in_a_row(mut vectors: impl Iterator<Item = u16>) -> Option<u16> {
    let first = vectors.next()?;
    let next = |last: u16, vector| (vector == last.wrapping_add(1)).then_some(vector);
    vectors.try_fold(first, next).is_some().then_some(first)
}

/// What an adapter has of its own, each part of which is allocated by itself; and its place.
struct Parts<C: AdminPath, B: Bus> {
    place: KBox<MaybeUninit<Adapter<C, B>>>,
    number: i32,
    numbered: Option<Number>,
    disks: Pin<KBox<Mutex<Shown>>>,
    change: Pin<KBox<Mutex<bool>>>,
    control: Pin<KBox<Mutex<()>>>,
    quiesced: Pin<KBox<Mutex<bool>>>,
    hook: Pin<KBox<Mutex<Option<Hook>>>>,
    recovery: Work<Recover>,
    attention: Attention,
    gate: Arc<Gate>,
    bytes: Arc<AtomicU32>,
}

impl<C: AdminPath, B: Bus> Parts<C, B> {
    /// Allocates them. Sleeps.
    fn new(config: &Config) -> Result<Self, Error> {
        let numbered = match config.naming {
            Naming::Namespace => Some(Number::new()?),
            Naming::Port(_) | Naming::Ram(_) => None,
        };
        let number = match config.naming {
            Naming::Port(number) => number,
            _ => numbered.as_ref().map_or(-1, Number::get),
        };
        // A class of lockdep's for each.
        let disks = boxed(lock(Shown::new(), NAMES.disks, static_lock_class!()))?;
        let change = boxed(lock(false, NAMES.change, static_lock_class!()))?;
        let control = boxed(lock((), NAMES.control, static_lock_class!()))?;
        let quiesced = boxed(lock(false, NAMES.quiesced, static_lock_class!()))?;
        let hook = boxed(lock(None, NAMES.hook, static_lock_class!()))?;
        let recovery = Work::new(number)?;
        let attention = Attention::new(number)?;
        let place = KBox::new_uninit(GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        let gate = Gate::new()?;
        let bytes = Arc::new(AtomicU32::new(0), GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        Ok(Self {
            place,
            number,
            numbered,
            disks,
            change,
            control,
            quiesced,
            hook,
            recovery,
            attention,
            gate,
            bytes,
        })
    }
}

impl<C: AdminPath, B: Bus> Adapter<C, B> {
    /// Makes queues and tag set for `controller`, which was started. No disk yet: interrupt
    /// handlers may be registered with the result's address now. On an error the controller is
    /// stopped. Sleeps.
    pub fn new(
        platform: &KernelPlatform,
        controller: C,
        bus: B,
        config: Config,
    ) -> Result<KBox<Self>, Error> {
        match Self::allocate(platform, controller, bus, config) {
            Ok(mut adapter) => {
                adapter.set_target();
                adapter.create_queues()?;
                adapter.allocate_set()?;
                Ok(adapter)
            }
            Err((error, controller, bus)) => {
                if controller.stop().is_err() {
                    bus.cut_off();
                }
                Err(error)
            }
        }
    }

    fn allocate(
        platform: &KernelPlatform,
        controller: C,
        bus: B,
        config: Config,
    ) -> Result<KBox<Self>, (Error, C, B)> {
        let parts = match Parts::<C, B>::new(&config) {
            Ok(parts) => parts,
            Err(error) => return Err((error, controller, bus)),
        };
        let Parts {
            place,
            number,
            numbered,
            disks,
            change,
            control,
            quiesced,
            hook,
            recovery,
            attention,
            gate,
            bytes,
        } = parts;
        Ok(place.write(Self {
            recovery,
            attention,
            queues: KVec::new(),
            own_vectors: None,
            set: None,
            disks,
            change,
            control,
            urgent: AtomicU32::new(0),
            quiesced,
            state: AtomicU8::new(LIVE),
            stopped: AtomicU8::new(0),
            loose: AtomicBool::new(false),
            recovering: AtomicU8::new(WELL),
            misses: AtomicBool::new(false),
            late_ms: AtomicU64::new(0),
            gate,
            resets: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            aborts: AtomicU64::new(0),
            bytes,
            doorbells_before: AtomicU64::new(0),
            platform: platform.clone(),
            number,
            _numbered: numbered,
            hook,
            config,
            limits: controller.limits().within(bus.reach()),
            controller,
            bus,
        }))
    }

    /// Its work items and its timer are its own from here on.
    fn set_target(&self) {
        let adapter = self.pinned();
        self.recovery.set_target(adapter);
        self.attention.set_target(adapter);
    }

    pub(crate) fn pinned(&self) -> Pinned<Self> {
        // SAFETY: it does not move any more (invariant). Before it goes (`put_away`) the gate is
        // closed, and disks are gone with their attributes; the recovery is cancelled, and as the
        // state is `DEAD` then not begun again; attention is disabled, and the queues are quiet.
        // Of a RAM disk the timers are cancelled, and the device is stopped.
        unsafe { Pinned::new(self) }
    }

    pub(super) fn depth(&self) -> u16 {
        let wanted = self.config.queue_depth;
        let depth = wanted.unwrap_or(self.limits.tags.max(LEAST_DEPTH));
        depth.clamp(1, MOST_DEPTH)
    }

    // A frame of its own, and so has its caller: a queue is large, and made on the stack.
    #[inline(never)]
    fn make_queue(
        &self,
        index: u16,
        vector: Option<u16>,
        depth: usize,
    ) -> Result<HwQueue<C, B>, Error> {
        let new = {
            let _control = self.control.lock();
            self.controller.create_queue(index, vector)?
        };
        let most = depth.saturating_add(most_commands(self.to_interrupt()));
        HwQueue::new(&self.platform, new, self.bus.map(), vector, most)
    }

    #[inline(never)]
    fn create_queues(&mut self) -> Result<(), Error> {
        let most = self.limits.queues.max(1);
        let interrupting = self.to_interrupt();
        let polled = (self.config.poll_queues).min(most.saturating_sub(interrupting));
        let count = interrupting.saturating_add(polled);
        let depth = usize::from(self.depth());
        self.queues =
            KVec::with_capacity(usize::from(count), GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        let costs = crate::platform::measure_costs();
        for index in 0..count {
            let vector = (index < interrupting).then(|| self.bus.vector(index));
            self.add_queue(index, vector, depth, costs)?;
        }
        self.own_vectors = in_a_row(self.queues.iter().filter_map(|queue| queue.vector));
        let adapter = self.pinned();
        for at in 0..self.queues.len() {
            let Some(queue) = adapter.part(|adapter| adapter.queues.get(at)) else {
                continue;
            };
            HwQueue::set_targets(queue, adapter);
            #[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
            C::wake_by(queue.get().io.hardware(), queue.get().alarm.clone());
        }
        Ok(())
    }

    /// Makes one more queue, for which there is room. Apart, as it is large and lies on the stack.
    #[inline(never)]
    fn add_queue(
        &mut self,
        index: u16,
        vector: Option<u16>,
        depth: usize,
        costs: Costs,
    ) -> Result<(), Error> {
        let queue = self.make_queue(index, vector, depth)?;
        // There is room, so nothing that was pushed before moves. This `push` gives nothing back,
        // so there is one copy less on the stack.
        (self.queues.push(queue, GFP_KERNEL)).map_err(|_| Error::NoMemory)?;
        (self.queues.last().iter()).for_each(|queue| queue.io.set_costs(costs));
        Ok(())
    }

    /// Allocates the tag set of the queues, which are there. Sleeps.
    fn allocate_set(&mut self) -> Result<(), Error> {
        let data: *mut Self = self;
        let set = bindings::blk_mq_tag_set {
            ops: &Ops::<C, B>::TABLE,
            nr_maps: match self.interrupting() == self.queues.len() {
                true => 1,
                false => bindings::hctx_type_HCTX_MAX_TYPES,
            },
            // CAST: as many as were created, which a u16 counted.
            nr_hw_queues: self.queues.len() as u32,
            queue_depth: u32::from(self.depth()),
            // CAST: some hundred bytes.
            cmd_size: size_of::<Pdu<<B::Map as MapKind>::Mapped>>() as u32,
            numa_node: self.bus.device().map_or(bindings::NUMA_NO_NODE, |device| {
                crate::compat::numa_node(device)
            }),
            timeout: self
                .config
                .timeout_ms
                .div_ceil(1000)
                .saturating_mul(shims::HIOPS_HZ),
            flags: bindings::BLK_MQ_F_NO_SCHED_BY_DEFAULT,
            driver_data: data.cast(),
            ..Default::default()
        };
        let set = KBox::new(Opaque::new(set), GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        // SAFETY: filled in, for an adapter that does not move any more and drops the set before
        // anything that `Ops` uses of it.
        to_result(unsafe { bindings::blk_mq_alloc_tag_set(set.get()) })
            .map_err(crate::errno::from_errno)?;
        // INVARIANT: just allocated.
        self.set = Some(TagSet(set));
        Ok(())
    }
}
