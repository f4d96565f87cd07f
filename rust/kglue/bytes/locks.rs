// SPDX-License-Identifier: GPL-2.0
//! A disk's locks by which a part of it has one writer at a time (`bytewise::Regions`): a thread,
//! which has them, or an asynchronous write, for which they are busy (`bytewise::Busy`).

use bytewise::{Busy, Region, Regions};
use hal::Error;
use kernel::prelude::*;
use kernel::sync::lock::mutex::MutexGuard;
use kernel::sync::{new_condvar, new_mutex, Arc, CondVar, Mutex};

/// All of a disk's.
#[pin_data]
pub(crate) struct RegionLocks {
    #[pin]
    even: [Mutex<()>; Regions::LOCKS],
    #[pin]
    odd: [Mutex<()>; Regions::LOCKS],
    busy: Arc<BusyRegions>,
}

/// Those of the regions that a write touches, which are its own until the drop.
pub(crate) type Held<'a> = (MutexGuard<'a, ()>, Option<MutexGuard<'a, ()>>);

impl RegionLocks {
    /// Those of a disk, of whose regions those in `busy` are. Sleeps.
    pub(crate) fn new(busy: Arc<BusyRegions>) -> Result<Pin<KVBox<Self>>> {
        let init = pin_init!(Self {
            even <- pin_init::pin_init_array_from_fn(|_| new_mutex!((), "hiops_bytes_even")),
            odd <- pin_init::pin_init_array_from_fn(|_| new_mutex!((), "hiops_bytes_odd")),
            busy,
        });
        KVBox::pin_init(init, GFP_KERNEL)
    }

    /// Takes those of `len` bytes from `offset` on. Sleeps while another has one, unless it may not
    /// wait: then there are none.
    pub(crate) fn lock(&self, offset: u64, len: usize, may_wait: bool) -> Option<Held<'_>> {
        Regions::of(offset, len).lock(|region| {
            let lock = match region {
                Region::Even(at) => self.even.get(at)?,
                Region::Odd(at) => self.odd.get(at)?,
            };
            let held = match may_wait {
                true => lock.lock(),
                false => lock.try_lock()?,
            };
            match self.busy.is_busy(region) {
                false => {}
                true if may_wait => self.busy.wait(region),
                true => return None,
            }
            Some(held)
        })
    }

    /// Has those be busy that nobody has, or none of them; [`BusyRegions::end`] ends that.
    pub(crate) fn make_busy(&self, offset: u64, len: usize) -> Option<Regions> {
        let _held = self.lock(offset, len, false)?;
        let regions = Regions::of(offset, len);
        let (first, second) = regions.each();
        self.busy.begin(first);
        second.iter().for_each(|&region| self.busy.begin(region));
        Some(regions)
    }
}

/// Which of a disk's regions are written to asynchronously, and the threads that wait for one.
#[pin_data]
pub(crate) struct BusyRegions {
    busy: Busy,
    #[pin]
    lock: Mutex<()>,
    #[pin]
    over: CondVar,
}

impl core::ops::Deref for BusyRegions {
    type Target = Busy;

    fn deref(&self) -> &Busy {
        &self.busy
    }
}

impl BusyRegions {
    /// None. Sleeps.
    pub(crate) fn new() -> Result<Arc<Self>, Error> {
        let init = pin_init!(Self {
            busy: Busy::new(),
            lock <- new_mutex!((), "hiops_bytes_busy"),
            over <- new_condvar!("hiops_bytes_over"),
        });
        Arc::pin_init(init, GFP_KERNEL).map_err(|_| Error::NoMemory)
    }

    #[cold]
    fn wait(&self, region: Region) {
        let mut lock = self.lock.lock();
        self.begin_wait();
        while self.is_busy_still(region) {
            self.over.wait(&mut lock);
        }
        self.end_wait();
    }

    /// They are busy no more. Whether a thread waits, which is to be woken
    /// ([`BusyRegions::wake_all`]). Any context.
    #[must_use = "who waits for a region is to be woken"]
    pub(crate) fn end_all(&self, regions: Regions) -> bool {
        let (first, second) = regions.each();
        let waits = self.end(first);
        second.map_or(waits, |region| self.end(region) || waits)
    }

    /// Has all that wait look again. Sleeps.
    pub(crate) fn wake_all(&self) {
        let _lock = self.lock.lock();
        self.over.notify_all();
    }
}
