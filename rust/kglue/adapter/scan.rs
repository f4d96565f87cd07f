// SPDX-License-Identifier: GPL-2.0
//! An adapter's disks: made and shown as the controller names them, looked at anew when it calls
//! for attention or an operator wants that, and changed while they are served (a format, a
//! namespace that comes or goes, a cache that is turned off).
//!
//! # Attention
//! A thread that no disk waits for handles the controller's events. What the controller says goes
//! to the log and, as a uevent of its device, to programs; what it wishes is done: its disks are
//! looked at anew, it is recovered, or its events are handled with its queues at rest. An unasked
//! look at the disks disturbs nobody as long as they are what they were.
//!
//! # A change
//! ```text
//!  serving --freeze (what is under way ends)--> frozen --work, look anew, take over--> serving
//!                                                 +--can't be looked at--> closed, until it can
//! ```
//! A request's blocks are counted in the disk's block size, so no request may be between the block
//! layer and the device while that changes. A disk of which nothing is known any more is *closed*:
//! its capacity is 0, and what came before that is refused, too.

use core::fmt;
use core::fmt::Write;
use core::ptr::null_mut;
use core::sync::atomic::Ordering;
use engine::{Mode, Switches};
use hal::{Controller, DeviceEvent, Error, EventAction, Platform, Queues, Refused, Severity, Unit};
use kernel::bindings;
use kernel::device::Device;
use kernel::prelude::*;
use kernel::sync::lock::mutex::MutexBackend;
use kernel::sync::lock::Guard;
use kernel::sync::Arc;

use crate::adapter::config::{Bus, Reason};
use crate::adapter::state::{Adapter, Found, LIVE, LOOK_AGAIN_US, WELL};
use crate::blk::disk::Disk;
use crate::blk::gendisk::{refusal, DiskShared};
use crate::blk::ioctl::{AdminPath, Owner};
use crate::blk::request::{DiskStats, Format, HctxData, Toggles};
use crate::bytes::holes::Holes;
use crate::bytes::io::LaneShared;
use crate::bytes::memory::{buffers_of, Claim, DiskMemory, Lane};
use crate::bytes::switch::Bytes;
use crate::bytes::switch::Parts;
use crate::bytes::trial::set_bytes;
use crate::errno::advice;
use crate::hwmon::Thermometer;
use crate::node::Node;
use crate::platform::NoIo;
use crate::text::{log_err, log_info, log_warn, write_quirks, Text};
use crate::timers::Expired;
use crate::wait::hook::{is_hooked, Hook};
use crate::work::{ControllerEvents, Pinned, Run};

impl<C: AdminPath, B: Bus> Adapter<C, B> {
    /// Names the controller's disks and shows them; returns how many there are. After the interrupt
    /// handlers are there. Sleeps.
    pub fn add_disks(&self) -> Result<usize, Error> {
        let mut found = Found::new();
        self.look(&mut found)?;
        self.gate.open(self.owner());
        self.begin();
        // A program that opens the first of them may ask for a change.
        let _change = self.change.lock();
        let mut added = 0usize;
        let mut last = Ok(());
        for one in &found {
            let unit = match one {
                Ok(unit) => unit,
                Err(refused) => {
                    crate::text::log_warn!(
                        self,
                        "disk {} is not served: {}\n",
                        refused.id,
                        refused.why
                    );
                    continue;
                }
            };
            match self.add_disk(*unit) {
                Ok(()) => added = added.saturating_add(1),
                Err(error) => {
                    crate::text::log_err!(
                        self,
                        "disk {} can't be served: {}\n",
                        unit.id,
                        crate::errno::advice(error)
                    );
                    last = Err(error);
                }
            }
        }
        // One that can't be served does not keep the others away.
        if added == 0 {
            last?;
        }
        self.attention.know(found);
        // What came before its interrupts were heard.
        self.call();
        Ok(added)
    }

    /// The controller's own node, under `parent`. Sleeps.
    pub(crate) fn node(&self, parent: &Device) -> Result<Node, Error> {
        Node::new(self.number, self.gate.clone(), parent)
    }

    /// The controller's temperatures, if it says any, under `parent`. Sleeps.
    pub(crate) fn thermometer(&self, parent: &Device) -> Result<Option<Thermometer>, Error> {
        Thermometer::new(self.gate.clone(), parent)
    }

    /// What is on when a disk begins.
    fn switches(&self) -> u8 {
        let lazy = self.config.begin.lazy && is_hooked();
        let switch = |on: bool, which: u8| if on { which } else { 0 };
        switch(lazy, Switches::LAZY) | switch(self.config.begin.coop, Switches::COOP)
    }

    /// Waits are hooked and the queues go over to the mode they are to begin in; one that can't be
    /// polled takes interrupts.
    fn begin(&self) {
        *self.hook.lock() = Hook::new();
        let begin = &self.config.begin;
        for queue in self.queues.iter().take(self.interrupting()) {
            queue.io.set_poll_interval_us(begin.poll_interval_us);
            queue.choose(&self.platform, begin.strategy);
            queue.set_window_us(begin.predict_window_us);
            let mode = begin.mode;
            if queue.set_mode(&self.platform, mode).is_err() && mode == Mode::Poll {
                crate::text::log_warn!(self, "its interrupt is a shared pin: it is not polled\n");
            }
        }
        self.set_predict(begin.predict);
    }

    /// It, as its disks' files have it.
    fn owner(&self) -> Pinned<dyn Owner> {
        self.pinned().map(|adapter| adapter)
    }

    pub(crate) fn add_disk(&self, unit: Unit) -> Result<(), Error> {
        let no_memory = |_| Error::NoMemory;
        let mut hctxs = KVec::with_capacity(self.queues.len(), GFP_KERNEL).map_err(no_memory)?;
        let stats = Arc::new(DiskStats::new()?, GFP_KERNEL).map_err(no_memory)?;
        for queue in &self.queues {
            let hctx = HctxData {
                queue: core::ptr::from_ref(queue).cast(),
                unit: unit.id,
                format: Format::new(&unit),
                max_retries: self.config.begin.max_retries,
                queue_ref: queue.queue_ref.as_ref().ok_or(Error::Invalid)?,
                switches: Toggles::new(self.switches(), queue.useful_switches()),
                stats: stats.clone(),
            };
            hctxs.push(hctx, GFP_KERNEL).map_err(no_memory)?;
        }
        let bytes = Bytes::new(
            self.interrupting(),
            buffers_of(self.to_interrupt()),
            self.queues_of_cpus()?,
        )?;
        let (gate, owner) = (self.gate.clone(), self.owner());
        let shared = DiskShared::new(unit, hctxs, stats, bytes, gate, owner)?;
        if *shared.names.ids() != unit.ids {
            crate::text::log_warn!(
                self,
                "disk {} has an EUI-64, NGUID or UUID of another drive: it goes by its model and \
                 serial number\n",
                unit.id
            );
        }
        let set = self.set.as_ref().ok_or(Error::Gone)?;
        let disk = Disk::new(
            set.as_raw(),
            &self.limits,
            shared,
            self.config.naming,
            self.number,
        )?;
        let disk = Arc::new(disk, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        // In the list before it is shown: a recovery that fails meanwhile must find it.
        self.disks.lock().add(disk.clone())?;
        let shown = disk.show(self.device());
        if shown.is_err() {
            let is_it = |other: &Disk| core::ptr::eq(other, &*disk);
            self.disks.lock().take(is_it);
        }
        shown?;
        self.begin_bytes(&disk);
        Ok(())
    }

    /// The disk's bytes can be read from the start, if that is wanted. Sleeps.
    fn begin_bytes(&self, disk: &Disk) {
        if !self.config.begin.bytes {
            return;
        }
        if let Err(error) = set_bytes(disk.gendisk().shared(), true) {
            log_warn!(
                self,
                "/dev/{}_bytes is not there (error {})\n",
                disk.name(),
                error.to_errno()
            );
        }
    }

    /// By the number of the CPU, which queue its I/O goes to.
    fn queues_of_cpus(&self) -> Result<KVec<u16>, Error> {
        let cpus = kernel::cpu::nr_cpu_ids();
        let set = self.set.as_ref().ok_or(Error::Gone)?;
        let no_memory = |_| Error::NoMemory;
        let mut queues = KVec::with_capacity(cpus as usize, GFP_KERNEL).map_err(no_memory)?;
        for cpu in 0..cpus {
            queues
                .push(set.queue_of(cpu), GFP_KERNEL)
                .map_err(|_| Error::NoMemory)?;
        }
        Ok(queues)
    }

    /// The buffers for the bytes of a disk: [`Owner::bytes_memory`].
    pub(super) fn make_bytes(
        &self,
        unit: &Unit,
        stats: &Arc<DiskStats>,
        parts: Parts<'_>,
    ) -> Result<KBox<DiskMemory>, Error> {
        let span = self.limits.max_transfer.min(self.limits.max_segment);
        let claim = Claim::new(&self.bytes).ok_or(Error::Unsupported)?;
        let mut memory =
            DiskMemory::new(claim, span, Holes::new(self.limits.hole_align), self.number)?;
        let block = 1u32.checked_shl(u32::from(unit.block_shift));
        if block.is_none_or(|block| block > memory.span) {
            return Err(Error::Unsupported);
        }
        for (at, room) in parts.rooms.iter().enumerate() {
            let queue = (self.pinned())
                .part(|adapter| adapter.queues.get(at))
                .ok_or(Error::Invalid)?;
            let shared = LaneShared {
                unit: unit.id,
                room: room.clone(),
                busy: parts.busy.clone(),
                stats: stats.clone(),
                watchdog: memory.watchdog.clone(),
            };
            let lane = Lane::new(queue.map(|queue| queue), &self.platform, shared)?;
            (memory.lanes.push(lane, GFP_KERNEL)).map_err(|_| Error::NoMemory)?;
        }
        KBox::new(memory, GFP_KERNEL).map_err(|_| Error::NoMemory)
    }
}

impl<C: AdminPath, B: Bus> Adapter<C, B> {
    /// Has `work` done with no I/O under way; afterwards the disks are what the controller says
    /// then. Disks that are gone are taken away, new ones shown. Sleeps.
    pub(crate) fn change_disks<R>(
        &self,
        work: impl FnOnce() -> core::result::Result<R, Error>,
    ) -> core::result::Result<R, Error> {
        self.change_under(self.change.lock(), work)
    }

    /// The same for a thread that writes to a file of a disk that stays, whatever `work` does: what
    /// takes disks away holds the lock, and waits until no thread is in their files.
    pub(crate) fn change_disks_by_file<R>(
        &self,
        work: impl FnOnce() -> core::result::Result<R, Error>,
    ) -> core::result::Result<R, Error> {
        loop {
            if let Some(closed) = self.change.try_lock() {
                return self.change_under(closed, work);
            }
            if self.gate.is_closing() {
                return Err(Error::Gone);
            }
            self.platform.sleep_us(LOOK_AGAIN_US);
        }
    }

    fn change_under<R>(
        &self,
        closed: Guard<'_, bool, MutexBackend>,
        work: impl FnOnce() -> core::result::Result<R, Error>,
    ) -> core::result::Result<R, Error> {
        if *closed {
            return Err(Error::Gone);
        }
        let _no_io = NoIo::new();
        let mut found = Found::new();
        let done = {
            let _frozen = Frozen::new(self);
            let done = work();
            let known = self.look(&mut found);
            if let Err(error) = known {
                log_err!(
                    self,
                    "its disks can't be read anew ({}): they take no I/O until that was done, by \
                     hiops/rescan_controller or by binding it again\n",
                    advice(error)
                );
            }
            self.each_disk(|disk| match known {
                Ok(()) => self.take_over(disk, &found),
                Err(_) => disk.close(),
            });
            known.and(done)
        };
        if done.is_ok() {
            self.come_and_go(&found);
            self.attention.know(found);
        }
        done
    }

    /// Asks the controller what disks it has, and what of them the block layer can have.
    pub(crate) fn look(&self, found: &mut Found) -> core::result::Result<(), Error> {
        let mut failed = Ok(());
        let _control = self.control();
        self.controller.units(&mut |unit| {
            let unit = unit.and_then(|unit| match refusal(&unit) {
                Some(why) => Err(Refused { id: unit.id, why }),
                None => Ok(unit),
            });
            if found.push(unit, GFP_KERNEL).is_err() {
                failed = Err(Error::NoMemory);
            }
        })?;
        failed
    }

    /// Makes `disk`, which is frozen, what the controller says.
    fn take_over(&self, disk: &Disk, found: &Found) {
        let id = disk.unit().id;
        let why = match found.iter().find(|one| id_of(one) == id) {
            Some(Ok(unit)) if unit.ids == disk.unit().ids => {
                match disk.become_unit(&self.limits, unit) {
                    Ok(()) => return,
                    Err(error) => advice(error),
                }
            }
            // Another one in its place: this disk goes, and that one comes.
            Some(Ok(_)) | None => return disk.close(),
            Some(Err(refused)) => refused.why,
        };
        disk.close();
        log_warn!(
            self,
            "disk {} takes no I/O any more: {}. Give it a format that is served, or bind it to its \
             in-tree driver\n",
            id,
            why
        );
    }

    /// Takes away what is no more, and shows what is new.
    fn come_and_go(&self, found: &Found) {
        let stays = |disk: &Disk| {
            (found.iter()).any(|one| match one {
                Ok(unit) => unit.id == disk.unit().id && unit.ids == disk.unit().ids,
                Err(refused) => refused.id == disk.unit().id,
            })
        };
        loop {
            // Without the lock: it waits for the disk's users.
            let gone = self.disks.lock().take(|disk| !stays(disk));
            let Some(disk) = gone else { break };
            log_warn!(self, "disk {} is gone\n", disk.unit().id);
            drop(disk);
        }
        for one in found {
            let there = |id| self.disks.lock().iter().any(|disk| disk.unit().id == id);
            match one {
                Ok(unit) if !there(unit.id) => self.show(*unit),
                _ => {}
            }
        }
    }

    fn show(&self, unit: Unit) {
        if let Err(error) = self.add_disk(unit) {
            log_err!(
                self,
                "disk {} can't be served: {}\n",
                unit.id,
                advice(error)
            );
        }
    }

    /// Calls `f` for each disk. None comes or goes meanwhile: the caller holds `change`.
    fn each_disk(&self, mut f: impl FnMut(&Disk)) {
        self.disks.lock().iter().for_each(|disk| f(disk));
    }
}

fn id_of(found: &core::result::Result<Unit, Refused>) -> u32 {
    match found {
        Ok(unit) => unit.id,
        Err(refused) => refused.id,
    }
}

/// An adapter's disks with no I/O under way; what comes waits until the drop.
///
/// # Invariants
/// Each disk's queue was frozen once by this. The disks are the same until the drop.
struct Frozen<'a, C: AdminPath, B: Bus>(&'a Adapter<C, B>);

impl<'a, C: AdminPath, B: Bus> Frozen<'a, C, B> {
    /// Freezes them. By the holder of `change`, which keeps it until the drop. Sleeps until all I/O
    /// has ended, which a recovery may have to see to: so the control path is free meanwhile.
    fn new(adapter: &'a Adapter<C, B>) -> Self {
        // All at once, then all waited for. Without an owner, as in tree for the same purpose: the
        // limits' lock is taken within.
        adapter.each_disk(|disk| disk.freeze());
        let mut at = 0usize;
        loop {
            // A recovery that fails takes the lock.
            let disk = adapter.disks.lock().get(at).cloned();
            let Some(disk) = disk else { break };
            disk.wait_until_frozen();
            at = at.saturating_add(1);
        }
        // INVARIANT: just done.
        Self(adapter)
    }
}

impl<C: AdminPath, B: Bus> Drop for Frozen<'_, C, B> {
    fn drop(&mut self) {
        self.0.each_disk(|disk| disk.thaw());
    }
}

/// Wishes that are seen to in one go.
const ROUNDS: u32 = 16;
/// Bytes of a line of the log.
const EVENT_LINE: usize = 256;
/// Bytes of a variable of a uevent.
const VARIABLE: usize = 48;

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// The controller's events are handled soon. Any context.
    pub(crate) fn call(&self) {
        self.attention.begin();
    }
}

impl<C: AdminPath, B: Bus> Expired for Adapter<C, B> {
    fn expired(&self) {
        self.call();
    }
}

impl<C: AdminPath, B: Bus> Run<ControllerEvents> for Adapter<C, B> {
    fn run(&self) {
        if self.attention.take_look() {
            // What went wrong is told there.
            let _ = self.change_disks(|| Ok(()));
        }
        let _no_io = NoIo::new();
        for _ in 0..ROUNDS {
            if !self.handle_events() {
                return;
            }
        }
        self.call();
    }
}

impl<C: AdminPath, B: Bus> Adapter<C, B> {
    /// Looks anew at the disks, soon, in a thread that none of them waits for.
    pub(crate) fn begin_rescan(&self) {
        self.attention.begin_look();
    }

    /// Resets the controller for an operator; an error: it did not come back. Sleeps until then.
    pub(crate) fn reset_now(&self) -> Result<(), Error> {
        // One that is being reset by others comes back first.
        drop(self.control());
        // One that begins meanwhile for another reason is at worst taken for this one.
        if self.is_live() && self.recovering.load(Ordering::Acquire) == WELL {
            self.asked.fetch_add(1, Ordering::Relaxed);
        }
        self.recover_from(Reason::Asked);
        self.recovery.flush();
        // It may wait for a reset of all that the controller is part of.
        drop(self.control());
        match self.is_live() {
            true => Ok(()),
            false => Err(Error::Gone),
        }
    }

    /// Handles the pending events and does what they ask for; whether there may be more.
    fn handle_events(&self) -> bool {
        // Events of one that sleeps are handled when it is awake, of one that recovers when it is
        // back.
        if self.state.load(Ordering::Acquire) != LIVE
            || self.recovering.load(Ordering::Acquire) != WELL
        {
            return false;
        }
        let live = {
            let _control = self.control();
            let mut tell = |notice: DeviceEvent<'_>| self.tell(&notice);
            self.controller.handle_events(Queues::Live, &mut tell)
        };
        let action = match live {
            Ok(EventAction::Quiesce) => self.at_rest(|controller| {
                controller.handle_events(Queues::Quiesced, &mut |notice| self.tell(&notice))
            }),
            other => other,
        };
        match action {
            Ok(EventAction::Rescan) => {
                self.look_if_changed();
                true
            }
            Ok(EventAction::Defer(us)) => {
                self.attention.put_off(us);
                false
            }
            Ok(EventAction::Recover) => {
                self.recover_from(Reason::Asked);
                false
            }
            Ok(EventAction::None | EventAction::Quiesce) => false,
            // What is wrong is told there.
            Err(_) => {
                self.recover_from(Reason::Unanswered);
                false
            }
        }
    }

    /// Asks the controller for its disks with I/O going on; only if they are not what they were,
    /// they are frozen and become what it says. One that can't tell keeps them as they are.
    fn look_if_changed(&self) {
        let mut found = Found::new();
        match self.look(&mut found) {
            Ok(()) if self.attention.knows(&found) => {}
            Ok(()) => {
                let _ = self.change_disks(|| Ok(()));
            }
            Err(error) => {
                log_err!(
                    self,
                    "its disks may have changed, and can't be read anew ({}): they stay as they \
                     were; hiops/rescan_controller asks again\n",
                    advice(error)
                );
                if matches!(error, Error::Timeout | Error::Fatal) {
                    self.recover_from(Reason::Unanswered);
                }
            }
        }
    }

    fn tell(&self, notice: &DeviceEvent<'_>) {
        let mut line = [0u8; EVENT_LINE];
        let mut text = Text::new(&mut line);
        // What does not fit is cut.
        let _ = write!(text, "{}", notice.text);
        match notice.severity {
            Severity::Info => log_info!(self, "{}\n", text.as_str()),
            Severity::Warning => log_warn!(self, "{}\n", text.as_str()),
            Severity::Error => log_err!(self, "{}\n", text.as_str()),
        }
        if let Some((name, value)) = notice.uevent {
            self.announce(name, value);
        }
    }

    /// Has user space told that the controller's device has changed, with the variable `name`.
    fn announce(&self, name: &str, value: u32) {
        let Some(device) = self.device().map(crate::platform::raw_device) else {
            return;
        };
        let mut line = [0u8; VARIABLE];
        let mut text = Text::new(&mut line);
        // What does not fit is cut.
        let _ = write!(text, "{name}={value:#08x}");
        text.terminate();
        let mut variables = [line.as_mut_ptr().cast(), null_mut()];
        // SAFETY: the device is alive; the list ends with null, and what it points to ends with
        // zero.
        unsafe {
            bindings::kobject_uevent_env(
                &raw mut (*device).kobj,
                bindings::kobject_action_KOBJ_CHANGE,
                variables.as_mut_ptr(),
            );
        }
    }
}

/// Room for all names that one device can have.
const QUIRKS_LINE: usize = 512;

/// Has `log` say the names that `quirks` tells, if it tells any.
pub(crate) fn log_quirks(
    quirks: impl FnOnce(&mut dyn FnMut(&'static str)),
    log: impl FnOnce(fmt::Arguments<'_>),
) {
    let mut line = [0; QUIRKS_LINE];
    let mut text = Text::new(&mut line);
    let any = write_quirks(&mut text, quirks);
    let len = text.len();
    let names = line
        .get(..len)
        .and_then(|names| core::str::from_utf8(names).ok());
    if let (Ok(true), Some(names)) = (any, names) {
        log(format_args!("known for, and spared (quirks): {names}\n"));
    }
}

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// Says what the controller is known for.
    pub(crate) fn log_quirks(&self) {
        let quirks = |named: &mut dyn FnMut(&'static str)| self.controller.quirks(named);
        log_quirks(quirks, |text| log_info!(self, "{}", text));
    }

    /// Says what its only disk is known for, but for what its host is known for, which is said
    /// there.
    pub(crate) fn log_disk_quirks(&self, host: impl Fn(&mut dyn FnMut(&'static str))) {
        let quirks = |named: &mut dyn FnMut(&'static str)| {
            self.controller.quirks(&mut |name| {
                let mut known = false;
                host(&mut |other| known |= other == name);
                if !known {
                    named(name);
                }
            });
        };
        log_quirks(quirks, |text| match self.disks.lock().first_name() {
            Some(disk) => log_info!(self, "{}: {}", disk, text),
            None => log_info!(self, "{}", text),
        });
    }
}
