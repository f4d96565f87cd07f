// SPDX-License-Identifier: GPL-2.0
//! What of a disk's ioctls passes through to its controller.

use kernel::bindings;
use kernel::error::code::*;
use kernel::error::Error;

/// `SG_IO` (`scsi/sg.h`): a SCSI command, of whose structure 32-bit programs have another.
pub const SG_IO: u32 = 0x2285;

/// The disk that an ioctl is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfDisk {
    /// [`hal::Unit::id`].
    pub unit: u32,
    /// Nothing on it may be changed: the device says so, or the operator (blockdev(8) `--setro`).
    pub read_only: bool,
    /// It was asked of one of its partitions, for which a controller's commands are too much: they
    /// reach all of the disk.
    pub is_partition: bool,
    /// Its place among all disks of hiops that have a major of its own, of which no two have the
    /// same; 0 of others.
    pub number: u32,
}

/// A controller's own ioctls, as far as it has some.
pub trait AdminPath: hal::Controller {
    /// Carries out `cmd` with the user-space argument `arg` for `disk`, `None`: for the controller
    /// itself, on behalf of the calling task, which could open the disk; what takes more than that,
    /// [`Right`] tells. ENOTTY for a command that it does not know. Sleeps.
    ///
    /// User memory is touched here and not within `way`: a page of it may have to be read from this
    /// very disk, or from a program that never answers.
    fn ioctl(disk: Option<OfDisk>, cmd: u32, arg: usize, way: &impl Way<Self>) -> Result<i32, Error>
    where
        Self: Sized,
    {
        let _ = (disk, cmd, arg, way);
        Err(ENOTTY)
    }

    /// Has `queue` be drained by `alarm` where it keeps completions back.
    #[cfg(CONFIG_FAULT_INJECTION_DEBUG_FS = "y")]
    fn wake_by(queue: &Self::Queue, alarm: crate::alarm::Alarm) {
        let _ = (queue, alarm);
    }
}

/// The way to a controller that may be taken away at any time.
pub trait Way<C> {
    /// Its control path.
    type Control: ControlPath;

    /// Lets `f` have the controller, which stays for as long; its control path is called within
    /// the other one only. ENODEV: it is gone. Sleeps.
    fn with<R>(&self, f: impl FnOnce(&C, &Self::Control) -> Result<R, Error>) -> Result<R, Error>;
}

/// The way to a controller's control path, which takes one caller at a time. Who finds the
/// controller going away gets [`hal::Error::Gone`], and `work` is not done.
pub trait ControlPath {
    /// Has `work` done with the control path to itself. [`hal::Error::Timeout`] of it makes the
    /// controller recover. Sleeps.
    fn hold<R>(&self, work: impl FnOnce() -> Result<R, hal::Error>) -> Result<R, hal::Error>;

    /// Likewise with the controller's queues at rest. After any error but [`hal::Error::Invalid`]
    /// the controller was stopped before this returns, so it touches no memory of `work` any more,
    /// and recovers. Sleeps.
    fn hold_at_rest<R>(
        &self,
        work: impl FnOnce() -> Result<R, hal::Error>,
    ) -> Result<R, hal::Error>;

    /// Has the controller reset and brought back. An error: it did not come back. Sleeps until
    /// then.
    fn reset(&self) -> Result<(), hal::Error>;

    /// Has `work`, which may change the controller's disks, done with no I/O under way on any of
    /// them; it holds the control path itself. Afterwards they are what the controller says then:
    /// block size, capacity and limits; some may be gone, some new. Not even then does a request
    /// get to the device that was counted in other blocks than the device's. [`hal::Error::Gone`]:
    /// the disks are going away. Sleeps.
    fn change<R>(&self, work: impl FnOnce() -> Result<R, hal::Error>) -> Result<R, hal::Error>;

    /// Somebody waits for the control path who can't be kept waiting: a reset, a removal. A command
    /// of `work` that takes long is then given up. Sleeps.
    fn is_wanted(&self) -> bool;
}

/// A right that a task may have beyond those to files (capabilities(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// CAP_SYS_ADMIN.
    Administer,
    /// CAP_SYS_RAWIO.
    RawIo,
}

impl Right {
    /// Whether the calling task has it.
    pub fn is_held(self) -> bool {
        let capability = match self {
            Self::Administer => bindings::CAP_SYS_ADMIN,
            Self::RawIo => bindings::CAP_SYS_RAWIO,
        };
        // CAST: both are below 64.
        // SAFETY: asks about the calling task.
        unsafe { bindings::capable(capability as i32) }
    }
}
