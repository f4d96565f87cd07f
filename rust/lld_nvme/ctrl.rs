// SPDX-License-Identifier: GPL-2.0
//! The controller: what it owns, and how it is enabled and disabled.
//!
//! The hal control path.
//!
//! What the control path keeps of the controller from one call to the next.
//!
//! Memory that the device may touch though no layer above uses it. It is freed when the device is
//! next disabled, which proves that it touches none any more.

use cell::sync::{AtomicBool, AtomicU64, Ordering};
use cell::{Guard, TryLock};
use core::fmt;
use hal::{
    Cause, Controller, Deadline, Error, Heat, Limits, Mmio, NewQueue, Notice, PciIds, Platform,
    Queues, Refused, Reservations, Shutdown, Unit, Wish,
};

use crate::admin::{Admin, Progress, Step};
use crate::aer::Events;
use crate::hmb::{HostMemory, Lent};
use crate::init::{Made, Patience};
use crate::ns::ControllerId;
use crate::passthru::ToolQueue;
use crate::queue::{NvmeDrain, NvmeIssue, NvmeQueue, Shadow};
use crate::quirks::Quirks;
use crate::regs::Cap;
use crate::sqe::Layout;
use crate::timeout_report::Registers;
use crate::{admin, init, passthru, queue, regs};

/// Most queues that are asked for: no device grants more than a few dozen, and no machine has use
/// for more than one a CPU.
pub(crate) const QUEUES_MAX: u16 = 128;
/// Largest memory page, log2, of which tables are still allocated without thought.
const PAGE_SHIFT_MAX: u8 = 16;

/// Bit 0 of dword 0: the command was not aborted.
const NOT_ABORTED: u64 = 1;

/// One NVMe controller.
///
/// `platform` and `mmio` are the machine and the whole register window (BAR 0). Clones of `M` and
/// of `P::Dma` are handles of the same thing.
pub struct NvmeController<P: Platform, M: Mmio + Clone>
where
    P::Dma: Clone,
{
    pub(crate) platform: P,
    pub(crate) mmio: M,
    pub(crate) cap: Cap,
    pub(crate) admin: Admin<P>,
    /// Three pages: namespace list, other structures, PRP list of a command passed through.
    pub(crate) pages: P::Dma,
    /// The queues that exist, for the start after a reset.
    pub(crate) made: P::Table<TryLock<Option<Made<P::Dma>>>>,
    pub(crate) progress: Progress,
    /// The bits of [`Quirks`]: the function's, and once it is identified the model's.
    pub(crate) quirks: AtomicU64,
    /// Interrupts come by a pin.
    pin: AtomicBool,
    /// Namespaces that other controllers have, too, are disks.
    pub(crate) shared: AtomicBool,
    /// Most bytes of memory that it may borrow.
    pub(crate) lendable: AtomicU64,
    /// The device may touch memory.
    pub(crate) enabled: AtomicBool,
    /// One, apart from the rest, which is made on a thread's stack.
    state: P::Table<TryLock<State<P, M>>>,
}

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// Looks at the capabilities and allocates what administration needs; the device is not touched
    /// before [`hal::Controller::start`]. Sleeps.
    ///
    /// [`Error::Gone`]: no device answers. [`Error::Malformed`], [`Error::Unsupported`]: its
    /// capabilities contradict the specification or the window's length, or it has no command set
    /// or page size that this driver knows.
    ///
    /// `ids` says what is known of it: memory is where [`Quirks::dma_bits`] of it reach by now, and
    /// interrupts come as [`Quirks::messages`] has it.
    pub fn new(platform: P, mmio: M, ids: &PciIds) -> Result<Self, Error> {
        let cap = Cap::read(&mmio)?;
        let quirks = Quirks::of_function(ids);
        let page_shift = cap.page_shift_min();
        if quirks.mqes(cap.mqes()) == 0 || page_shift > cap.page_shift_max() {
            return Err(Error::Malformed);
        }
        if page_shift > PAGE_SHIFT_MAX || !(cap.has_nvm_command_set() || cap.has_command_sets()) {
            return Err(Error::Unsupported);
        }
        // The admin pair and one more.
        let doorbells = mmio.len().saturating_sub(regs::DOORBELLS);
        if regs::pairs_within(doorbells, cap.stride()) < 2 {
            return Err(Error::Malformed);
        }
        let page = 1usize.wrapping_shl(u32::from(page_shift));
        Ok(Self {
            admin: Admin::new(&platform, cap.stride(), page, quirks.has_small_cids())?,
            pages: queue::paged(&platform, page.saturating_mul(3), page)?,
            made: platform.table(usize::from(QUEUES_MAX), |_| TryLock::new(None))?,
            mmio,
            cap,
            progress: Progress::new(),
            quirks: AtomicU64::new(quirks.bits()),
            pin: AtomicBool::new(false),
            shared: AtomicBool::new(false),
            lendable: AtomicU64::new(0),
            enabled: AtomicBool::new(false),
            state: platform.table(1, |_| TryLock::new(State::new()))?,
            platform,
        })
    }

    /// Says that the interrupt is a pin (INTx, a level) rather than messages. To be called before
    /// queues are created and the handler is registered; then there is one queue, and it starts
    /// masked: [`hal::Controller::set_interrupt`] opens it.
    pub fn use_pin(&self, pin: bool) {
        self.pin.store(pin, Ordering::Relaxed);
        if pin && self.enabled.load(Ordering::Relaxed) {
            regs::mask(&self.mmio, 0);
        }
    }

    /// What the control path was last doing: names the command or the step that an [`Error`] of it
    /// is about.
    pub fn step(&self) -> &'static str {
        self.progress.name()
    }

    /// The control path's state. [`Error::Invalid`]: two callers at once, against the contract.
    pub(crate) fn state(&self) -> Result<Guard<'_, State<P, M>>, Error> {
        (self.state.first().and_then(TryLock::try_lock)).ok_or(Error::Invalid)
    }

    /// Bytes of the controller's memory page.
    pub(crate) fn page(&self) -> usize {
        1usize.wrapping_shl(u32::from(self.cap.page_shift_min()))
    }

    pub(crate) fn is_pin(&self) -> bool {
        self.pin.load(Ordering::Relaxed)
    }

    /// Sends a command of the driver's own; any status but success is [`Error::Refused`] with it.
    pub(crate) fn command(&self, step: Step, sqe: crate::sqe::Sqe) -> Result<u64, Error> {
        self.progress.at(step);
        let deadline = Deadline::after(admin::TIMEOUT_US);
        let reply = (self.admin).submit(&self.platform, &self.mmio, sqe, deadline)?;
        match reply.status {
            0 => Ok(reply.result),
            status => Err(Error::Refused(status)),
        }
    }

    pub(crate) fn abort_command(
        &self,
        queue: &NvmeQueue<P, M>,
        tag: usize,
        limit_us: u64,
    ) -> Result<bool, Error> {
        let _state = self.state()?;
        let Some((qid, cid)) = queue.name_of(tag) else {
            return Ok(false);
        };
        self.progress.at(Step::Abort);
        let deadline = Deadline::after(limit_us.min(admin::TIMEOUT_US));
        let sqe = admin::abort(qid, cid);
        let reply = self
            .admin
            .submit(&self.platform, &self.mmio, sqe, deadline)?;
        // One at a time: no controller's limit (ACL) is in the way. Whatever it is that it objects
        // to, the command has not been aborted.
        Ok(reply.status == 0 && reply.result & NOT_ABORTED == 0)
    }

    /// Enables the disabled controller.
    pub(crate) fn enable(&self) -> Result<(), Error> {
        self.progress.at(Step::Enable);
        let base = self.admin.rewind();
        self.enabled.store(true, Ordering::Relaxed);
        let page_shift = self.cap.page_shift_min();
        init::enable(&self.platform, &self.mmio, self.cap, page_shift, &base)
    }

    /// After `Ok` the device touches no memory.
    pub(crate) fn disable(&self) -> Result<(), Error> {
        self.progress.at(Step::Disable);
        self.put_out(Patience::Full)
    }

    /// Disables it after a failure; what failed stays the step that is named.
    pub(crate) fn disable_quietly(&self) -> Result<(), Error> {
        self.put_out(Patience::Over)
    }

    fn put_out(&self, patience: Patience) -> Result<(), Error> {
        self.admin.close();
        let delay_us = self.quirk_set().delay_us();
        init::disable(&self.platform, &self.mmio, self.cap, patience, delay_us)?;
        self.enabled.store(false, Ordering::Relaxed);
        Ok(())
    }
}

impl<P: Platform, M: Mmio + Clone> Drop for NvmeController<P, M>
where
    P::Dma: Clone,
{
    fn drop(&mut self) {
        // The memory of a device that runs is not freed. Where it can't be stopped the caller has
        // cut it off the bus.
        if self.enabled.load(Ordering::Relaxed) {
            let _ = self.disable();
        }
    }
}

impl<P: Platform, M: Mmio + Clone> Controller for NvmeController<P, M>
where
    P::Dma: Clone,
{
    type Queue = NvmeQueue<P, M>;

    fn start(&self) -> Result<(), Error> {
        let mut state = self.state()?;
        let started = self.bring_up(&mut state);
        if started.is_err() {
            // Not half alive.
            let _ = self.disable_quietly();
        }
        started
    }

    fn limits(&self) -> Limits {
        let about = self.state().ok().and_then(|state| state.about);
        about.map_or(
            Limits {
                queues: 1,
                tags: 1,
                max_transfer: 4096,
                max_segments: 1,
                max_segment: 4096,
                virt_boundary: 4095,
                dma_align: 3,
                segment_boundary: u64::MAX,
            },
            |about| about.limits,
        )
    }

    fn create_queue(
        &self,
        index: u16,
        vector: Option<u16>,
    ) -> Result<NewQueue<Self::Queue>, Error> {
        let mut state = self.state()?;
        let about = state.about.ok_or(Error::Invalid)?;
        let place = self.made.get(usize::from(index)).ok_or(Error::Invalid)?;
        if index != state.queues || index >= about.limits.queues || state.kept.tools.is_some() {
            return Err(Error::Invalid);
        }
        let qid = index.saturating_add(1);
        let pair = self.make_pair(&mut state, qid, about.limits.tags, vector);
        if state.kept.queue.is_some() {
            let _ = self.disable_quietly();
        }
        let (queue, made) = pair?;
        if let Some(mut place) = place.try_lock() {
            *place = Some(made);
        }
        state.queues = qid;
        Ok(NewQueue {
            queue,
            issue: NvmeIssue::default(),
            drain: NvmeDrain::new(),
        })
    }

    fn units(&self, found: &mut dyn FnMut(Result<Unit, Refused>)) -> Result<(), Error> {
        let state = self.state()?;
        let about = state.about.ok_or(Error::Invalid)?;
        self.each_unit(&about, found)
    }

    fn stop(&self) -> Result<(), Error> {
        let mut state = self.state()?;
        self.disable()?;
        state.kept = Kept::nothing();
        Ok(())
    }

    fn shutdown(&self, how: Shutdown) -> Result<(), Error> {
        let state = self.state()?;
        self.progress.at(Step::Shutdown);
        self.admin.close();
        match how {
            Shutdown::Dead => Ok(()),
            Shutdown::Normal if !self.enabled.load(Ordering::Relaxed) => Ok(()),
            Shutdown::Normal => {
                let rtd3e_us = state.about.map_or(0, |about| about.id.rtd3e_us);
                init::shutdown(&self.platform, &self.mmio, rtd3e_us)
            }
        }
    }

    fn quirks(&self, named: &mut dyn FnMut(&'static str)) {
        self.quirk_set().each(named);
    }

    fn attend(&self, queues: Queues, tell: &mut dyn FnMut(Notice<'_>)) -> Result<Wish, Error> {
        let mut state = self.state()?;
        self.attend_events(&mut state, queues, tell)
    }

    fn silence(&self, to: &mut dyn fmt::Write) -> fmt::Result {
        let registers = Registers {
            csts: self.mmio.read32(regs::CSTS),
            cc: self.mmio.read32(regs::CC),
            admin: self.admin.is_lost().then(|| self.admin.silence()),
        };
        write!(to, "{registers}")
    }

    fn heat(&self) -> Result<Option<Heat>, Error> {
        self.read_heat()
    }

    fn reservations(&self) -> Option<&dyn Reservations> {
        Some(self)
    }

    const ABORTS: bool = true;

    fn abort(&self, queue: &Self::Queue, tag: usize, limit_us: u64) -> Result<bool, Error> {
        self.abort_command(queue, tag, limit_us)
    }

    fn alive(&self) -> Result<(), Error> {
        regs::alive(&self.mmio)
    }

    fn interrupt(&self, vector: u16) -> Cause {
        if self.is_pin() {
            regs::mask(&self.mmio, vector);
        }
        match self.is_called(vector) {
            true => Cause::Attention,
            false => Cause::Queues,
        }
    }

    fn set_interrupt(&self, vector: u16, enabled: bool) {
        match (self.is_pin(), enabled) {
            (false, _) => {}
            (true, true) => regs::unmask(&self.mmio, vector),
            (true, false) => regs::mask(&self.mmio, vector),
        }
    }
}

/// What only the control path touches.
pub(crate) struct State<P: Platform, M: Mmio> {
    /// Known after the first start.
    pub(crate) about: Option<About>,
    /// What admin commands change, once it was asked for.
    pub(crate) effects: Option<passthru::Log>,
    /// What is known of the events that it has reported.
    pub(crate) events: Events,
    /// Memory that it has borrowed, and what is to be told of that.
    pub(crate) host_memory: Option<HostMemory<P>>,
    pub(crate) lent: Option<Lent>,
    /// The shadow doorbells, once they exist.
    pub(crate) shadow: Option<Shadow<P::Dma>>,
    /// How many queues exist.
    pub(crate) queues: u16,
    /// Memory that the device may still touch.
    pub(crate) kept: Kept<P, M>,
}

impl<P: Platform, M: Mmio> State<P, M> {
    /// That of a controller which was not started yet.
    pub(crate) fn new() -> Self {
        Self {
            about: None,
            effects: None,
            events: Events::default(),
            host_memory: None,
            lent: None,
            shadow: None,
            queues: 0,
            kept: Kept::nothing(),
        }
    }
}

/// What the controller said about itself, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) id: ControllerId,
    pub(crate) limits: Limits,
    pub(crate) layout: Layout,
}

/// What is kept until the controller is disabled.
pub(crate) struct Kept<P: Platform, M: Mmio> {
    /// Data of an admin command that was not answered.
    pub(crate) data: Option<P::Dma>,
    /// A queue that the controller was not seen to delete.
    pub(crate) queue: Option<NvmeQueue<P, M>>,
    /// The queue pair of I/O commands passed through, once there was one.
    pub(crate) tools: Option<ToolQueue<P, M>>,
}

impl<P: Platform, M: Mmio> Kept<P, M> {
    pub(crate) fn nothing() -> Self {
        Self {
            data: None,
            queue: None,
            tools: None,
        }
    }
}
