// SPDX-License-Identifier: GPL-2.0
//! A controller's own node, `/dev/hiops<C>`, for tools that speak to the controller and not to one
//! of its disks. As in tree, root alone may open it, and its ioctls ask for more where they need
//! it.
//!
//! A program may have it open for longer than the controller is there. So what an open file needs
//! is counted, and it reaches the controller through a [`Gate`].
//!
//! `kernel::miscdevice` (Linux 7.2 and 7.3) lacks a name that is made while the module runs, the
//! parent, and what leads from the device to whose it is when it is opened.

use crate::blk::ioctl::Gate;
use crate::platform::raw_device;
use hal::Error;
use kernel::bindings;
use kernel::device::Device;
use kernel::ffi::{c_int, c_long, c_uint, c_ulong, c_void};
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::{Arc, ArcBorrow};
use kernel::types::Opaque;
use pin_init::zeroed;

/// # Invariants
/// `device` has `_name` as its name.
#[repr(C)]
struct Shared {
    device: Opaque<bindings::miscdevice>,
    gate: Arc<Gate>,
    _name: CString,
}

// SAFETY: the misc device is touched by its registration alone, and by the core, which orders that.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// A node that is there; it goes with the drop. Files that are open stay, and lead nowhere once the
/// gate is closed.
///
/// # Invariants
/// The shared part's device is registered.
pub(crate) struct Node(Arc<Shared>);

impl Node {
    /// The node of controller `number`, whose device is `parent`. Sleeps.
    pub(crate) fn new(number: i32, gate: Arc<Gate>, parent: &Device) -> Result<Self, Error> {
        let no_memory = |_| Error::NoMemory;
        let name = CString::try_from_fmt(fmt!("hiops{number}")).map_err(|_| Error::NoMemory)?;
        let device = bindings::miscdevice {
            // CAST: 255.
            minor: bindings::MISC_DYNAMIC_MINOR as c_int,
            name: name.as_char_ptr(),
            fops: &raw const TABLE.0,
            parent: raw_device(parent),
            ..zeroed()
        };
        // INVARIANT: so it has; a name stays where it is.
        let shared = Shared {
            device: Opaque::new(device),
            gate,
            _name: name,
        };
        let shared = Arc::new(shared, GFP_KERNEL).map_err(no_memory)?;
        // SAFETY: filled in. What it points to stays where it is as long as it is registered, as
        // does the device itself, in a counted place of its own; the core takes a reference of the
        // parent.
        let failed = unsafe { bindings::misc_register(shared.device.get()) };
        kernel::error::to_result(failed).map_err(crate::errno::from_errno)?;
        // INVARIANT: just registered.
        Ok(Self(shared))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // SAFETY: registered, by the invariant. A thread that opens it holds the core's lock until
        // it has a reference of its own.
        unsafe { bindings::misc_deregister(self.0.device.get()) };
    }
}

/// The table, as a static that the kernel may point to.
struct Table(bindings::file_operations);

// SAFETY: it is never written.
unsafe impl Sync for Table {}

/// `owner` keeps the module loaded while a file is open.
static TABLE: Table = Table(bindings::file_operations {
    owner: (&raw const bindings::__this_module).cast_mut(),
    open: Some(open),
    release: Some(release),
    unlocked_ioctl: Some(ioctl),
    compat_ioctl: bindings::compat_ptr_ioctl,
    llseek: Some(bindings::noop_llseek),
    ..zeroed()
});

/// # Safety
/// Called by the misc core under its lock, with a registered device of ours as the file's data.
unsafe extern "C" fn open(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    // SAFETY: the device is the first field (`repr(C)`) of a counted `Shared`, of which its node
    // has a reference as long as it is registered, which it is under this lock.
    unsafe {
        let shared = ArcBorrow::from_raw((*file).private_data.cast_const().cast::<Shared>());
        (*file).private_data = Arc::into_raw(Arc::from(shared)).cast_mut().cast::<c_void>();
    }
    0
}

/// # Safety
/// Called by the kernel when the last reference to a file that `open` has opened is gone.
unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    // SAFETY: `open` has put it there, and it is taken once.
    drop(unsafe { Arc::from_raw((*file).private_data.cast_const().cast::<Shared>()) });
    0
}

/// Hands an ioctl to the controller, if that is still there.
fn carry_out(gate: &Gate, cmd: u32, arg: usize) -> kernel::error::Result<i32> {
    let ioctl = gate.with(|owner| owner.ioctls()).ok_or(ENODEV)?;
    ioctl(gate, None, cmd, arg)
}

/// # Safety
/// Called by the kernel for a file that `open` has opened.
unsafe extern "C" fn ioctl(file: *mut bindings::file, cmd: c_uint, arg: c_ulong) -> c_long {
    // SAFETY: `open` has put it there, and `release` comes later.
    let shared = unsafe { &*(*file).private_data.cast_const().cast::<Shared>() };
    let done = carry_out(&shared.gate, cmd, arg);
    // CAST: an int, as an errno is.
    done.unwrap_or_else(|error: kernel::error::Error| error.to_errno()) as c_long
}
