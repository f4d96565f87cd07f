// SPDX-License-Identifier: GPL-2.0
//! All that an adapter keeps, in one view: [`Adapter`], and of its parts those that are of this
//! folder. The folder's other files work with it.
//!
//! [`Shown`]: the disks, from all of which requests are kept away together. blk-mq would quiesce a
//! whole tag set at once (`blk_mq_quiesce_tagset`), and count that by queue: one that joins the set
//! in between has less to undo than the others. So it is counted here, under the lock of the list,
//! and a disk that joins or leaves is made even.
//!
//! [`Attention`]: how the controller's events are handled, and what was seen last.
//!
//! [`TagSet`]: what blk-mq has of the queues. The kernel crate's (`kernel::block::mq::TagSet`,
//! Linux 7.2 and 7.3) is of operations that lack what is needed here (`blk/ops.rs`), has one map of
//! queues, and is neither quiesced nor timed.

use core::ops::Deref;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicU8, Ordering};
use hal::{Controller, Error, Limits, Refused, Unit};
use kernel::bindings;
use kernel::device::Device;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};
use kernel::types::Opaque;

use crate::adapter::config::{Bus, Config, Label, Number};
use crate::adapter::queue::HwQueue;
use crate::blk::disk::Disk;
use crate::blk::ioctl::Gate;
use crate::platform::KernelPlatform;
use crate::timers::{Expired, HrTimer};
use crate::wait::hook::Hook;
use crate::work::{ControllerEvents, Pinned, Recover, Run, Work};

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

/// A controller being served.
///
/// # Invariants
/// It is allocated once and not moved: its tag set, its recovery and its disks' hctxs point into
/// it. `queues` is not changed once they were made (`create_queues`), before anything points to
/// them.
pub struct Adapter<C: Controller, B: Bus> {
    /// What recovers the controller.
    pub(super) recovery: Work<Recover>,
    /// What sees to the controller's calls, and looks at the disks anew.
    pub(super) attention: Attention,
    /// Its hardware queues: first those that interrupt, then those for polled I/O.
    pub(crate) queues: KVec<HwQueue<C, B>>,
    /// The vector of the first queue, if each that interrupts has its own, one after the other.
    pub(crate) own_vectors: Option<u16>,
    /// What blk-mq has of the queues, once they are there.
    pub(super) set: Option<TagSet>,
    /// The disks that are shown.
    pub(super) disks: Pin<KBox<Mutex<Shown>>>,
    /// Held while disks come, go or change; `true`: they do no more.
    pub(super) change: Pin<KBox<Mutex<bool>>>,
    /// Held across each call of the controller's control path.
    pub(super) control: Pin<KBox<Mutex<()>>>,
    /// How many callers wait for it that can't be kept waiting.
    pub(super) urgent: AtomicU32,
    /// Whether all queues were left closed ([`IoQueue::kept_closed`]): within [`Adapter::restart`],
    /// and while it is suspended.
    ///
    /// [`IoQueue::kept_closed`]: engine::IoQueue::kept_closed
    pub(super) quiesced: Pin<KBox<Mutex<bool>>>,
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
    /// The gate to it, for what may outlive it.
    pub(super) gate: Arc<Gate>,
    /// How often it was reset, by request or for a reason.
    pub(super) resets: AtomicU64,
    /// How often by an operator's request.
    pub(super) asked: AtomicU64,
    /// How many commands it has aborted.
    pub(super) aborts: AtomicU64,
    /// How many of its disks' bytes can be read.
    pub(super) bytes: Arc<AtomicU32>,
    /// Doorbell writes that were counted before the counts were reset.
    pub(super) doorbells_before: AtomicU64,
    /// The machine.
    pub(super) platform: KernelPlatform,
    /// The number in its disks' names; negative: none.
    pub(super) number: i32,
    /// That number, where it is not another adapter's.
    pub(super) _numbered: Option<Number>,
    /// From the first disk on.
    pub(super) hook: Pin<KBox<Mutex<Option<Hook>>>>,
    /// How it is to serve.
    pub(super) config: Config,
    /// What the controller takes, within what the bus reaches.
    pub(super) limits: Limits,
    /// The controller, which is called under `control` save where its trait says otherwise.
    pub(crate) controller: C,
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

    /// How many of them there are to be. With one map of queues, blk-mq makes no more of them than
    /// there are CPUs, and trusts that none is mapped beyond.
    pub(super) fn to_interrupt(&self) -> u16 {
        let cpus = u16::try_from(kernel::cpu::nr_cpu_ids()).unwrap_or(u16::MAX);
        self.bus
            .queues()
            .min(cpus)
            .clamp(1, self.limits.queues.max(1))
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

/// The disks that an adapter shows.
///
/// # Invariants
/// Each disk's queue was quiesced `kept_out` times by this, and not undone; and frozen once where
/// `frozen` says so.
pub(crate) struct Shown {
    disks: KVec<Arc<Disk>>,
    kept_out: u32,
    frozen: bool,
}

impl Shown {
    /// None.
    pub(super) fn new() -> Self {
        let disks = KVec::new();
        Self {
            disks,
            kept_out: 0,
            frozen: false,
        }
    }

    /// `disk` is one of them from now on; there is no I/O for it yet. Sleeps.
    pub(super) fn add(&mut self, disk: Arc<Disk>) -> Result<(), Error> {
        (self.disks.reserve(1, GFP_KERNEL)).map_err(|_| Error::NoMemory)?;
        // INVARIANT: as often as the others.
        (0..self.kept_out).for_each(|_| disk.quiesce());
        if self.frozen {
            // The thread that shows it waits for its partition table as others for their I/O.
            disk.freeze();
        }
        (self.disks.push_within_capacity(disk)).map_err(|_| Error::NoMemory)
    }

    /// The name of the first one.
    pub(super) fn first_name(&self) -> Option<&str> {
        self.disks.iter().next().map(|disk| disk.name())
    }

    /// The first disk of which `is_meant` is one of them no more; what it has still to do gets
    /// through.
    pub(super) fn take(&mut self, mut is_meant: impl FnMut(&Disk) -> bool) -> Option<Arc<Disk>> {
        let at = self.disks.iter().position(|disk| is_meant(disk))?;
        let disk = self.disks.remove(at).ok()?;
        (0..self.kept_out).for_each(|_| disk.unquiesce());
        if self.frozen {
            disk.thaw();
        }
        Some(disk)
    }

    /// Takes the last one, all of whose I/O has ended.
    pub(super) fn pop(&mut self) -> Option<Arc<Disk>> {
        self.disks.pop()
    }

    /// Requests are kept away from all of them, until [`Shown::let_in`]. What is in dispatch gets
    /// through.
    pub(super) fn keep_out(&mut self) {
        self.kept_out = self.kept_out.saturating_add(1);
        self.disks.iter().for_each(|disk| disk.quiesce());
    }

    /// What is under way for any of them goes on, and what comes waits and holds nothing of the
    /// block layer's, until [`Shown::thaw`]. Once frozen they stay so. Sleeps.
    pub(super) fn freeze(&mut self) {
        if !core::mem::replace(&mut self.frozen, true) {
            self.disks.iter().for_each(|disk| disk.freeze());
        }
    }

    /// Nothing that [`Shown::freeze`] waits for is under way any more; or they were thawed
    /// meanwhile, as their device is gone, and all that comes fails.
    pub(super) fn is_frozen(&self) -> bool {
        !self.frozen || self.disks.iter().all(|disk| disk.is_frozen())
    }

    /// Undoes [`Shown::freeze`]; without that, does nothing. Sleeps.
    pub(super) fn thaw(&mut self) {
        if core::mem::take(&mut self.frozen) {
            self.disks.iter().for_each(|disk| disk.thaw());
        }
    }

    /// Undoes one [`Shown::keep_out`].
    pub(super) fn let_in(&mut self) {
        if let Some(left) = self.kept_out.checked_sub(1) {
            self.kept_out = left;
            self.disks.iter().for_each(|disk| disk.unquiesce());
        }
    }
}

impl Deref for Shown {
    type Target = [Arc<Disk>];

    fn deref(&self) -> &[Arc<Disk>] {
        &self.disks
    }
}

/// What the controller says of its disks.
pub(crate) type Found = KVec<core::result::Result<Unit, Refused>>;

/// How the controller's events are handled: the work item of that, and the timer that puts it off.
pub(crate) struct Attention {
    work: Work<ControllerEvents>,
    timer: KBox<HrTimer>,
    /// The disks are to be looked at anew, whatever the controller says.
    look: AtomicBool,
    /// What the controller said of its disks when they last became that.
    known: Pin<KBox<Mutex<Found>>>,
}

impl Attention {
    /// That of no adapter yet. Sleeps.
    pub(super) fn new(number: i32) -> Result<Self, Error> {
        let no_memory = |_| Error::NoMemory;
        let known = new_mutex!(Found::new(), "hiops_known");
        Ok(Self {
            work: Work::new(number)?,
            timer: HrTimer::new().map_err(no_memory)?,
            look: AtomicBool::new(false),
            known: KBox::pin_init(known, GFP_KERNEL).map_err(no_memory)?,
        })
    }

    /// From now on it is `adapter`'s, which begins it when the timer has expired; once.
    /// [`Attention::disable`] silences it.
    pub(super) fn set_target<A: Run<ControllerEvents> + Expired + 'static>(
        &self,
        adapter: Pinned<A>,
    ) {
        self.work.set_target(adapter);
        self.timer.target().set(adapter.map(|adapter| adapter));
    }

    /// The controller's events are handled soon. Any context.
    pub(super) fn begin(&self) {
        self.work.begin();
    }

    /// The controller's events are handled soon, and its disks are looked at whatever it says.
    pub(super) fn begin_look(&self) {
        self.look.store(true, Ordering::Release);
        self.begin();
    }

    /// Whether the disks are to be looked at; not any more then.
    pub(super) fn take_look(&self) -> bool {
        self.look.swap(false, Ordering::AcqRel)
    }

    /// The controller's events are handled in `us` microseconds. By the work itself.
    pub(super) fn put_off(&self, us: u32) {
        self.timer.start(us);
    }

    /// No events are handled any more, whatever calls. Sleeps.
    pub(crate) fn disable(&self) {
        self.work.disable();
        // It is not started any more.
        self.timer.cancel();
    }

    /// The disks are what is `found`.
    pub(crate) fn know(&self, found: Found) {
        *self.known.lock() = found;
    }

    pub(super) fn knows(&self, found: &Found) -> bool {
        let known = self.known.lock();
        known.len() == found.len() && known.iter().eq(found.iter())
    }
}

/// A tag set, freed when dropped, which is after the last disk on it.
///
/// # Invariants
/// It is allocated.
pub(crate) struct TagSet(pub(super) KBox<Opaque<bindings::blk_mq_tag_set>>);

// SAFETY: blk-mq orders what is done to it by itself.
unsafe impl Send for TagSet {}
// SAFETY: as above.
unsafe impl Sync for TagSet {}

impl TagSet {
    /// The kernel's structure.
    pub(super) fn as_raw(&self) -> *mut bindings::blk_mq_tag_set {
        self.0.get()
    }

    /// Does with it what `verb` is for: one of those of blk-mq that ask for nothing but a tag set.
    fn tell(&self, verb: unsafe extern "C" fn(*mut bindings::blk_mq_tag_set)) {
        // SAFETY: allocated, by the invariant.
        unsafe { verb(self.as_raw()) };
    }

    /// The queue that the I/O of `cpu` goes to, one of those that interrupt.
    pub(super) fn queue_of(&self, cpu: u32) -> u16 {
        // SAFETY: allocated, by the invariant, so it has a place for each CPU; what is no CPU's
        // number is taken for the first one's.
        let queue = unsafe {
            let known = if cpu < kernel::cpu::nr_cpu_ids() {
                cpu
            } else {
                0
            };
            crate::shims::hiops_bytes_queue_of(self.as_raw(), known)
        };
        // CAST: as many queues as a u16 counts.
        queue as u16
    }

    /// What was being given to its queues when they were quiesced ([`Disk::quiesce`]) is there.
    /// Sleeps.
    ///
    /// [`Disk::quiesce`]: crate::blk::disk::Disk::quiesce
    pub(super) fn wait_for_dispatch(&self) {
        self.tell(bindings::blk_mq_wait_quiesce_done);
    }
}

impl Drop for TagSet {
    fn drop(&mut self) {
        self.tell(bindings::blk_mq_free_tag_set);
    }
}
