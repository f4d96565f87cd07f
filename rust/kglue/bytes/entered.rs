// SPDX-License-Identifier: GPL-2.0
//! A disk's queue, as one uses it whose I/O the block layer does not know: counted there, so that a
//! freeze and a removal wait for it.

use core::marker::PhantomData;
use kernel::bindings::gendisk;
use kernel::error::Error;
use kernel::ffi::{c_int, c_ulong};

use crate::shims;

/// A disk's structure, of which only its address is known here.
///
/// # Invariants
/// It is that of a disk of hiops, and is there for `'a`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct DiskRef<'a> {
    disk: *mut gendisk,
    alive: PhantomData<&'a gendisk>,
}

impl DiskRef<'_> {
    /// # Safety
    /// The type's invariant, which becomes the handle's.
    pub(crate) unsafe fn new(disk: *mut gendisk) -> Self {
        let alive = PhantomData;
        // INVARIANT: the caller's promise.
        Self { disk, alive }
    }

    /// The kernel's structure.
    pub(crate) fn as_raw(self) -> *mut gendisk {
        self.disk
    }
}

#[allow(clashing_extern_declarations, reason = "bindgen's are unsafe to call")]
#[allow(
    improper_ctypes,
    reason = "of the kernel's structures only the address goes"
)]
// Safe to call: they ask for a disk that is there, which the type's invariants say; counts that are
// wrong are all that comes of an end without a beginning. Each is as its header says it: see the
// constants below.
unsafe extern "C" {
    /// Counts an I/O that a freeze waits for; 0, or an errno. Sleeps while the disk is frozen, if
    /// it may.
    safe fn hiops_bytes_enter(disk: DiskRef<'_>, may_wait: bool) -> c_int;
    /// Counts one more, if any is counted. Any context.
    safe fn hiops_bytes_enter_too(disk: DiskRef<'_>) -> bool;
    /// Nothing may be given to the driver. With preemption off.
    safe fn hiops_bytes_is_quiesced(disk: DiskRef<'_>) -> bool;
    /// The disk goes away. Any context.
    safe fn hiops_bytes_is_dead(disk: DiskRef<'_>) -> bool;
    /// How long a command may take, in ticks. Any context.
    safe fn hiops_bytes_timeout(disk: DiskRef<'_>) -> u32;
    /// A command begins, for the disk's counts; what it answers is for the next. Any context.
    safe fn hiops_bytes_begin_acct(disk: DiskRef<'_>, is_write: bool) -> c_ulong;
    /// It is over. Any context.
    safe fn hiops_bytes_end_acct(disk: DiskRef<'_>, is_write: bool, sectors: u32, begun: c_ulong);
}

const _: [unsafe extern "C" fn(*mut gendisk, bool) -> c_int; 1] = [shims::hiops_bytes_enter];
const _: [unsafe extern "C" fn(*mut gendisk) -> bool; 1] = [shims::hiops_bytes_enter_too];
const _: [unsafe extern "C" fn(*const gendisk) -> bool; 2] =
    [shims::hiops_bytes_is_quiesced, shims::hiops_bytes_is_dead];
const _: [unsafe extern "C" fn(*const gendisk) -> u32; 1] = [shims::hiops_bytes_timeout];
const _: [unsafe extern "C" fn(*mut gendisk, bool) -> c_ulong; 1] = [shims::hiops_bytes_begin_acct];
const _: [unsafe extern "C" fn(*mut gendisk, bool, u32, c_ulong); 1] =
    [shims::hiops_bytes_end_acct];

/// A disk's queue that is not frozen, nor will be until the drop, in whatever context that is.
///
/// # Invariants
/// The block layer counts it, and so the disk is there: its removal waits.
pub(crate) struct Entered(*mut gendisk);

// SAFETY: what is counted belongs to no thread.
unsafe impl Send for Entered {}

impl Entered {
    /// Enters `disk`; `ENODEV`: it is dead. Sleeps while the disk is frozen, if it may; else
    /// `EAGAIN`.
    #[inline]
    pub(crate) fn new(disk: DiskRef<'_>, may_wait: bool) -> kernel::error::Result<Self> {
        match hiops_bytes_enter(disk, may_wait) {
            // INVARIANT: counted.
            0 => Ok(Self(disk.disk)),
            errno => Err(Error::from_errno(errno)),
        }
    }

    /// Enters beside others that have, frozen or not; `None`: there are none.
    pub(crate) fn beside(disk: DiskRef<'_>) -> Option<Self> {
        // Not by `then_some`, which makes one in any case, whose drop would uncount it.
        if !hiops_bytes_enter_too(disk) {
            return None;
        }
        // INVARIANT: counted.
        Some(Self(disk.disk))
    }

    /// The disk.
    #[inline]
    pub(crate) fn disk(&self) -> DiskRef<'_> {
        let alive = PhantomData;
        // INVARIANT: there, by this one's.
        DiskRef {
            disk: self.0,
            alive,
        }
    }

    /// Whether nothing may be given to a queue. With preemption off.
    #[inline]
    pub(crate) fn is_quiesced(&self) -> bool {
        hiops_bytes_is_quiesced(self.disk())
    }

    /// Whether the disk is going away.
    pub(crate) fn is_dead(&self) -> bool {
        hiops_bytes_is_dead(self.disk())
    }

    /// A command begins, by the disk's counts.
    #[inline]
    pub(crate) fn account(&self, is_write: bool, sectors: u32) -> Accounted {
        Accounted {
            is_write,
            sectors,
            begun: hiops_bytes_begin_acct(self.disk(), is_write),
        }
    }

    /// It is over. Any context.
    #[inline]
    pub(crate) fn account_end(&self, command: Accounted) {
        let Accounted {
            is_write,
            sectors,
            begun,
        } = command;
        hiops_bytes_end_acct(self.disk(), is_write, sectors, begun);
    }

    /// How many ticks a command may take.
    #[inline]
    pub(crate) fn timeout(&self) -> u32 {
        hiops_bytes_timeout(self.disk())
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: entered once, by the invariant.
        unsafe { shims::hiops_bytes_exit(self.0) };
    }
}

/// A command that the disk's counts have as under way: of so many sectors, since then.
#[must_use = "it is under way for ever"]
pub(crate) struct Accounted {
    is_write: bool,
    sectors: u32,
    begun: c_ulong,
}
