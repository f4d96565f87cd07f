// SPDX-License-Identifier: GPL-2.0
//! Faults on demand, on a kernel that is made for them: the module's folder in debugfs, with one
//! for each device whose faults can be switched on; and what drains a queue when its controller
//! asks for it, in place of an interrupt that such a fault keeps from it ([`Alarm`]).

use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use hal::Error;
use kernel::debugfs::{Dir, Scope, ScopedDir};
use kernel::prelude::*;
use kernel::sync::Arc;

use crate::platform::KernelPlatform;
use crate::timers::{Expired, HrTimer};
use crate::work::{Pinned, Target};

/// A queue with an alarm.
pub(crate) trait Woken: Send + Sync {
    /// It goes off. Hard interrupt context.
    fn wake(&self);
}

/// The alarm of one queue. Clones are the same alarm.
#[derive(Clone)]
pub struct Alarm(Arc<KBox<HrTimer<Sleeper>>>);

struct Sleeper {
    queue: Target<dyn Woken>,
    /// The queue is about to go.
    quiet: AtomicBool,
}

impl Expired for Sleeper {
    fn expired(&self) {
        if self.quiet.load(Ordering::Acquire) {
            return;
        }
        if let Some(queue) = self.queue.get() {
            queue.wake();
        }
    }
}

impl Alarm {
    /// An alarm of nothing yet. Sleeps.
    pub(crate) fn new() -> Result<Self, Error> {
        let sleeper = Sleeper {
            queue: Target::new(),
            quiet: AtomicBool::new(false),
        };
        let timer = HrTimer::of(sleeper).map_err(|_| Error::NoMemory)?;
        let timer = Arc::new(timer, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        Ok(Self(timer))
    }

    /// From now on it wakes `queue`; once. [`Alarm::quiet`] silences it.
    pub(crate) fn set_target<Q: Woken + 'static>(&self, queue: Pinned<Q>) {
        self.0.target().queue.set(queue.map(|queue| queue));
    }

    /// Never wakes it again. Sleeps.
    pub(crate) fn quiet(&self) {
        self.0.target().quiet.store(true, Ordering::Release);
        self.0.cancel();
    }

    /// Wakes it in `us` microseconds, instead of when it would have. Any context.
    pub fn wake_in(&self, us: u32) {
        self.0.start(us);
    }
}

kernel::sync::global_lock! {
    // SAFETY: initialized once by `Root::new`, and not used before `READY` says so.
    unsafe(uninit) static ROOT: Mutex<Option<Dir>> = None;
}

/// `ROOT` is being initialized, or is initialized.
static BEGUN: AtomicBool = AtomicBool::new(false);
/// `ROOT` is initialized.
static READY: AtomicBool = AtomicBool::new(false);

/// The module's folder, as long as it lives.
pub struct Root(());

impl Root {
    /// Makes it, once for each time that the module is loaded. Before there are drivers. Sleeps.
    pub fn new() -> Result<Self, Error> {
        if BEGUN.swap(true, Ordering::Relaxed) {
            return Err(Error::Invalid);
        }
        // SAFETY: this is reached once.
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
