// SPDX-License-Identifier: GPL-2.0
//! A disk's locks by which a part of it has one writer at a time (`bytewise::Regions`).

use bytewise::{Region, Regions};
use kernel::prelude::*;
use kernel::sync::lock::mutex::MutexGuard;
use kernel::sync::{new_mutex, Mutex};

/// All of a disk's.
#[pin_data]
pub(crate) struct RegionLocks {
    #[pin]
    even: [Mutex<()>; Regions::LOCKS],
    #[pin]
    odd: [Mutex<()>; Regions::LOCKS],
}

/// Those of the regions that a write touches, which are its own until the drop.
pub(crate) type Held<'a> = (MutexGuard<'a, ()>, Option<MutexGuard<'a, ()>>);

impl RegionLocks {
    /// Those of a disk. Sleeps.
    pub(crate) fn new() -> Result<Pin<KVBox<Self>>> {
        let init = pin_init!(Self {
            even <- pin_init::pin_init_array_from_fn(|_| new_mutex!((), "hiops_bytes_even")),
            odd <- pin_init::pin_init_array_from_fn(|_| new_mutex!((), "hiops_bytes_odd")),
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
            match may_wait {
                true => Some(lock.lock()),
                false => lock.try_lock(),
            }
        })
    }
}
