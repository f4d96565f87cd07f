// SPDX-License-Identifier: GPL-2.0
//! The module's folder in debugfs, with one for each device whose faults can be switched on.

use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use hal::Error;
use kernel::debugfs::{Dir, Scope, ScopedDir};
use kernel::prelude::*;

use crate::platform::KernelPlatform;

kernel::sync::global_lock! {
    // SAFETY: initialized once by `Root::new`, and not used before `READY` says so.
    unsafe(uninit) static ROOT: Mutex<Option<Dir>> = None;
}

/// `ROOT` is being initialized, or is.
static BEGUN: AtomicBool = AtomicBool::new(false);
/// It is.
static READY: AtomicBool = AtomicBool::new(false);

/// The folder, as long as it lives.
pub struct Root(());

impl Root {
    /// Makes it, once for each time that the module is loaded. Before there are drivers. Sleeps.
    pub fn new() -> Result<Self, Error> {
        if BEGUN.swap(true, Ordering::Relaxed) {
            return Err(Error::Invalid);
        }
        // SAFETY: nobody comes here twice.
        unsafe { ROOT.init() };
        *ROOT.lock() = Some(Dir::new(c"hiops"));
        READY.store(true, Ordering::Release);
        Ok(Self(()))
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        *ROOT.lock() = None;
    }
}

/// The folder of one device, with what its files are about. They go with it.
pub type Folder<T> = Pin<KBox<Scope<T>>>;

/// The folder of the device of `platform`, in which `fill` makes files about `data`. Where debugfs
/// does not make it, there is none. Sleeps.
pub fn folder<T: Send + Sync + 'static>(
    platform: &KernelPlatform,
    data: T,
    fill: impl for<'data, 'dir> FnOnce(&'data T, &'dir ScopedDir<'data, 'dir>),
) -> Result<Folder<T>, Error> {
    if !READY.load(Ordering::Acquire) {
        return Err(Error::Invalid);
    }
    let root = ROOT.lock().clone().ok_or(Error::Invalid)?;
    let name = platform.name().ok_or(Error::Invalid)?;
    KBox::pin_init(root.scope(data, name, fill), GFP_KERNEL).map_err(|_| Error::NoMemory)
}
