// SPDX-License-Identifier: GPL-2.0
//! Which disks are known by which lasting names. Drives are sold whose identifiers are all the
//! same: of several such only the first is known by them, as in tree, or one would be mounted for
//! another.

use core::sync::atomic::{AtomicBool, Ordering};
use hal::{Error, Unit, UnitIds};
use kernel::prelude::*;

kernel::sync::global_lock! {
    // SAFETY: initialized by `init`, and not used before `READY` says so.
    unsafe(uninit) static HELD: Mutex<KVec<Held>> = KVec::new();
}

/// `HELD` is initialized.
static READY: AtomicBool = AtomicBool::new(false);

/// Before the first disk; once. Sleeps.
pub(super) fn init() {
    // SAFETY: the module is initialized once, and its disks come afterwards.
    unsafe { HELD.init() };
    READY.store(true, Ordering::Release);
}

/// A disk with the names that it goes by.
struct Held {
    number: u64,
    drive: ([u8; 20], [u8; 40], u32),
    ids: UnitIds,
}

impl Held {
    /// Whether it has a name of `unit`, and is another disk. Controllers of one subsystem show the
    /// same disk under its own names.
    fn is_mistaken_for(&self, unit: &Unit) -> bool {
        let ids = &unit.ids;
        self.drive != drive(unit)
            && (is_same(&self.ids.uuid, &ids.uuid)
                || is_same(&self.ids.nguid, &ids.nguid)
                || is_same(&self.ids.eui64, &ids.eui64))
    }
}

fn drive(unit: &Unit) -> ([u8; 20], [u8; 40], u32) {
    (unit.serial, unit.model, unit.id)
}

fn is_same<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
    one.is_some() && one == other
}

/// The names that a disk goes by, as long as it lives.
pub(crate) struct Names {
    ids: UnitIds,
    number: u64,
}

impl Names {
    /// Those of `unit`; none of them if another disk goes by one. Sleeps.
    pub(crate) fn take(unit: &Unit) -> Result<Self, Error> {
        if !READY.load(Ordering::Acquire) {
            return Err(Error::Invalid);
        }
        let mut held = HELD.lock();
        let number = held.last().map_or(0, |last| last.number.wrapping_add(1));
        let ids = match held.iter().any(|held| held.is_mistaken_for(unit)) {
            true => UnitIds::default(),
            false => unit.ids,
        };
        let new = Held {
            number,
            drive: drive(unit),
            ids,
        };
        held.push(new, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        Ok(Self { ids, number })
    }

    /// They are these.
    pub(crate) fn ids(&self) -> &UnitIds {
        &self.ids
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        let mut held = HELD.lock();
        let at = held.iter().position(|held| held.number == self.number);
        if let Some(at) = at {
            drop(held.remove(at));
        }
    }
}
