// SPDX-License-Identifier: GPL-2.0
//! The controller: what it owns, and how it is enabled and disabled.

use crate::admin::{self, Admin};
use crate::bringup::Patience;
use crate::made::Made;
use crate::quirks::Quirks;
use crate::regs::{self, Cap};
use crate::state::State;
use crate::step::{Progress, Step};
use crate::{bringup, interrupt};
use cell::sync::{AtomicBool, AtomicU64, Ordering};
use cell::{Guard, TryLock};
use hal::{Deadline, Error, Mmio, PciIds, Platform};

/// Most queues that are asked for: no device grants more than a few dozen, and no machine has use
/// for more than one a CPU.
pub(crate) const QUEUES_MAX: u16 = 128;
/// Largest memory page, log2, of which tables are still allocated without thought.
const PAGE_SHIFT_MAX: u8 = 16;

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
            pages: admin::paged(&platform, page.saturating_mul(3), page)?,
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
            interrupt::mask(&self.mmio, 0);
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
    pub(crate) fn command(&self, step: Step, sqe: crate::command::Sqe) -> Result<u64, Error> {
        self.progress.at(step);
        let deadline = Deadline::after(admin::TIMEOUT_US);
        let reply = (self.admin).submit(&self.platform, &self.mmio, sqe, deadline)?;
        match reply.status {
            0 => Ok(reply.result),
            status => Err(Error::Refused(status)),
        }
    }

    /// Enables the disabled controller.
    pub(crate) fn enable(&self) -> Result<(), Error> {
        self.progress.at(Step::Enable);
        let base = self.admin.rewind();
        self.enabled.store(true, Ordering::Relaxed);
        let page_shift = self.cap.page_shift_min();
        bringup::enable(&self.platform, &self.mmio, self.cap, page_shift, &base)
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
        bringup::disable(&self.platform, &self.mmio, self.cap, patience, delay_us)?;
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
