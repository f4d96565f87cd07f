// SPDX-License-Identifier: GPL-2.0
//! An adapter's parts and states, which all of the folder above this file works with.

use crate::adapter::attention::Attention;
use crate::adapter::config::{Bus, Config, Label, Number};
use crate::adapter::queue::{HwQueue, Strategy};
use crate::adapter::shown::Shown;
use crate::adapter::tags::TagSet;
use crate::blk::owner::Gate;
use crate::blk::upper::BlkUpper;
use crate::platform::KernelPlatform;
use crate::wait::hook::Hook;
use crate::work::{Recover, Work};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicU8, Ordering};
use engine::Paused;
use hal::{Controller, Error, Limits};
use kernel::device::Device;
use kernel::prelude::*;
use kernel::sync::{Arc, Mutex};

pub(crate) const LIVE: u8 = 0;
pub(crate) const DEAD: u8 = 1;
pub(crate) const SUSPENDED: u8 = 2;

/// What is being done about a controller, of [`Adapter::recovering`]: nothing.
pub(crate) const WELL: u8 = 0;
/// What it has not answered is aborted.
pub(crate) const ABORT: u8 = 1;
/// It is reset.
pub(crate) const RESET: u8 = 2;

/// Between two looks at what is waited for.
pub(crate) const LOOK_AGAIN_US: u64 = 1_000;

/// The hardware queues at rest. They borrow from `Adapter::queues`, for which Rust has no lifetime:
/// see the adapter's invariants.
type PausedQueues<C, B> = Pin<KBox<Mutex<KVec<PausedQueue<C, B>>>>>;
pub(crate) type PausedQueue<C, B> =
    Paused<'static, KernelPlatform, <C as Controller>::Queue, BlkUpper<<B as Bus>::Map>, Strategy>;

/// A controller being served.
///
/// # Invariants
/// It is allocated once and not moved: its tag set, its recovery and its disks' lanes point into
/// it. `queues` is not changed once they were made (`create_queues`), before anything points to
/// them. `paused` is empty before any field is dropped.
pub struct Adapter<C: Controller, B: Bus> {
    /// What recovers the controller.
    pub(super) recovery: Work<Recover>,
    /// What sees to the controller's calls, and looks at the disks anew.
    pub(super) attention: Attention,
    /// Its hardware queues: first those that interrupt, then those for polled I/O.
    pub(super) queues: KVec<HwQueue<C, B>>,
    /// The vector of the first queue, if each that interrupts has its own, one after the other.
    pub(super) own_vectors: Option<u16>,
    /// What blk-mq has of the queues, once they are there.
    pub(super) set: Option<TagSet>,
    /// The disks that are shown.
    pub(super) disks: Pin<KBox<Mutex<Shown>>>,
    /// Held while disks come, go or change; `true`: they do no more.
    pub(super) change: Pin<KBox<Mutex<bool>>>,
    /// Held across each call of the controller's control path.
    pub(super) control: Pin<KBox<Mutex<()>>>,
    /// How many wait for it who can't be kept waiting.
    pub(super) urgent: AtomicU32,
    /// Empty save within [`Adapter::restart`] and while it is suspended, for which room for all
    /// queues is reserved here: a recovery can't fail for want of memory.
    pub(super) paused: PausedQueues<C, B>,
    /// [`LIVE`], [`DEAD`] or [`SUSPENDED`].
    pub(super) state: AtomicU8,
    /// Not 0: the controller was told that it goes, and is stopped.
    pub(super) stopped: AtomicU8,
    /// The controller could not be stopped when that was last tried. Under `control`.
    pub(super) loose: AtomicBool,
    /// What is being done about the controller: [`WELL`], [`ABORT`] or [`RESET`].
    pub(super) recovering: AtomicU8,
    /// An answer of it is missed.
    pub(super) misses: AtomicBool,
    /// How long the command that is the reason may have taken, in milliseconds.
    pub(super) late_ms: AtomicU64,
    /// The way here for those who may outlive it.
    pub(super) gate: Arc<Gate>,
    /// How often it was reset, by request or for a reason.
    pub(super) resets: AtomicU64,
    /// How often by an operator's request.
    pub(super) asked: AtomicU64,
    /// How many commands it has aborted.
    pub(super) aborts: AtomicU64,
    /// Doorbell writes that were counted before the counts were reset.
    pub(super) doorbells_before: AtomicU64,
    /// The machine.
    pub(super) platform: KernelPlatform,
    /// The number in its disks' names; negative: none.
    pub(super) number: i32,
    /// That number, where it is not somebody else's.
    pub(super) _numbered: Option<Number>,
    /// From the first disk on.
    pub(super) hook: Pin<KBox<Mutex<Option<Hook>>>>,
    /// How it is to serve.
    pub(super) config: Config,
    /// What the controller takes, within what the bus reaches.
    pub(super) limits: Limits,
    /// The controller, which is called under `control` save where its trait says otherwise.
    pub(super) controller: C,
    /// The bus that it sits on.
    pub(super) bus: B,
}

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// How many queues interrupt; the others, behind them, are for polled I/O.
    pub(crate) fn interrupting(&self) -> usize {
        let polled = |queue: &HwQueue<C, B>| queue.vector.is_none();
        self.queues
            .iter()
            .position(polled)
            .unwrap_or(self.queues.len())
    }

    /// How many queues there are.
    pub(crate) fn queue_count(&self) -> usize {
        self.queues.len()
    }

    /// The disks that are shown.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(crate) fn disks(&self) -> &Mutex<Shown> {
        &self.disks
    }

    /// It was given up, and no more than that.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(crate) fn set_dead(&self) {
        self.state.store(DEAD, Ordering::Release);
    }

    /// It was given up, and its disks with it.
    pub(crate) fn is_dead(&self) -> bool {
        self.state.load(Ordering::Acquire) == DEAD
    }

    /// The controller could not be stopped: it is cut off the bus.
    pub(crate) fn is_loose(&self) -> bool {
        self.loose.load(Ordering::Acquire)
    }

    /// It is served, and was not given up.
    pub(crate) fn is_live(&self) -> bool {
        self.state.load(Ordering::Acquire) == LIVE
    }

    /// Whether the controller is there, by its bus and by its own registers, and is not in a fatal
    /// state. Any context.
    pub(crate) fn alive(&self) -> Result<(), Error> {
        match self.bus.is_present() {
            true => self.controller.alive(),
            false => Err(Error::Gone),
        }
    }

    /// The controller.
    pub fn controller(&self) -> &C {
        &self.controller
    }

    /// Its bus.
    pub fn bus(&self) -> &B {
        &self.bus
    }

    /// How it is called where there is no device to name.
    pub(crate) fn label(&self) -> Label {
        Label(self.config.naming, self.number)
    }

    /// The device to name in the log, if there is one.
    pub(crate) fn device(&self) -> Option<&Device> {
        self.bus.device().map(|device| &***device)
    }
}
