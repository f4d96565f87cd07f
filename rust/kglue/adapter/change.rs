// SPDX-License-Identifier: GPL-2.0
//! Disks that change while they are served: a format, a namespace that comes or goes, a cache that
//! is turned off.
//!
//! # States
//! ```text
//!  serving --freeze (what is under way ends)--> frozen --work, look anew, take over--> serving
//!                                                 +--can't be looked at--> closed, until it can
//! ```
//! A request's blocks are counted in the disk's block size, so no request may be between the block
//! layer and the device while that changes. A disk of which nothing is known any more is *closed*:
//! its capacity is 0, and what came before that is refused, too.

use crate::adapter::attention::Found;
use crate::adapter::config::Bus;
use crate::adapter::state::{Adapter, LOOK_AGAIN_US};
use crate::blk::disk::Disk;
use crate::blk::ioctl::AdminPath;
use crate::blk::limits::refusal;
use crate::context::NoIo;
use crate::errno::advice;
use crate::log::{log_err, log_warn};
use hal::{Error, Platform, Refused, Unit};
use kernel::bindings;
use kernel::prelude::*;
use kernel::sync::lock::{mutex::MutexBackend, Guard};

impl<C: AdminPath, B: Bus> Adapter<C, B> {
    /// Has `work` done with no I/O under way; afterwards the disks are what the controller says
    /// then. Disks that are gone are taken away, new ones shown. Sleeps.
    pub(crate) fn change_disks<R>(
        &self,
        work: impl FnOnce() -> core::result::Result<R, Error>,
    ) -> core::result::Result<R, Error> {
        self.change_under(self.change.lock(), work)
    }

    /// Likewise for who writes to a file of a disk that stays, whatever `work` does: who takes
    /// disks away holds the lock, and waits until nobody is in their files.
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
            // Another one in its place: it is exchanged.
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
    fn each_disk(&self, f: impl FnMut(&Disk)) {
        self.disks.lock().iter().for_each(f);
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
    /// Freezes them. By the holder of `change`, who keeps it until the drop. Sleeps until all I/O
    /// has ended, which a recovery may have to see to: so the control path is free meanwhile.
    fn new(adapter: &'a Adapter<C, B>) -> Self {
        // All at once, then all waited for. Without an owner, as in tree for the same purpose: the
        // limits' lock is taken within.
        adapter.each_disk(|disk| tell(disk.queue(), bindings::blk_freeze_queue_start_non_owner));
        let mut at = 0usize;
        loop {
            // A recovery that fails takes the lock.
            let queue = adapter.disks.lock().get(at).map(|disk| disk.queue());
            let Some(queue) = queue else { break };
            tell(queue, bindings::blk_mq_freeze_queue_wait);
            at = at.saturating_add(1);
        }
        // INVARIANT: just done.
        Self(adapter)
    }
}

/// Does with a disk's `queue`, as part of [`Frozen`], what `verb` is for.
fn tell(
    queue: *mut bindings::request_queue,
    verb: unsafe extern "C" fn(*mut bindings::request_queue),
) {
    // SAFETY: the disks, and their queues with them, are there as long as `Frozen` is, by its
    // invariant, and it thaws what it has frozen, once.
    unsafe { verb(queue) };
}

impl<C: AdminPath, B: Bus> Drop for Frozen<'_, C, B> {
    fn drop(&mut self) {
        let thaw = bindings::blk_mq_unfreeze_queue_non_owner;
        self.0.each_disk(|disk| tell(disk.queue(), thaw));
    }
}
