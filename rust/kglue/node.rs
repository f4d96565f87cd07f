// SPDX-License-Identifier: GPL-2.0
//! A controller's own node, `/dev/hiops<C>`, for tools that speak to the controller and not to one
//! of its disks. As in tree, root alone may open it, and its ioctls ask for more where they need it.
//!
//! A program may have it open for longer than the controller is there. So what an open file needs is
//! counted, and the way from it to the controller is a [`Gate`].

use crate::blk::gate::Gate;
use crate::compat::zeroed;
use crate::text::Text;
use core::fmt::Write;
use hal::Error;
use kernel::bindings;
use kernel::ffi::{c_int, c_long, c_uint, c_ulong, c_void};
use kernel::prelude::*;
use kernel::sync::{Arc, ArcBorrow};
use kernel::types::Opaque;

/// Bytes of a name, with the zero at its end.
const NAME: usize = 20;

/// # Invariants
/// `name` ends with a zero byte.
#[repr(C)]
struct Shared {
    device: Opaque<bindings::miscdevice>,
    name: [u8; NAME],
    gate: Arc<Gate>,
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
    ///
    /// # Safety
    /// `parent` is alive until the drop.
    pub(crate) unsafe fn new(
        number: i32,
        gate: Arc<Gate>,
        parent: *mut bindings::device,
    ) -> Result<Self, Error> {
        let mut name = [0; NAME];
        let mut text = Text::new(&mut name);
        // It always fits: 5 letters and at most 11 more.
        let _ = write!(text, "hiops{number}");
        text.terminate();
        // INVARIANT: terminated above.
        let shared = Shared {
            device: Opaque::zeroed(),
            name,
            gate,
        };
        let shared = Arc::new(shared, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        let device = shared.device.get();
        // SAFETY: zeroed, and nobody else's yet. What it points to stays where it is as long as the
        // device is registered: the name and the device are in a counted place of their own.
        let failed = unsafe {
            // CAST: 255.
            (*device).minor = bindings::MISC_DYNAMIC_MINOR as c_int;
            (*device).name = shared.name.as_ptr().cast();
            (*device).fops = &raw const TABLE.0;
            (*device).parent = parent;
            bindings::misc_register(device)
        };
        kernel::error::to_result(failed).map_err(crate::errno::from_errno)?;
        // INVARIANT: just registered.
        Ok(Self(shared))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // SAFETY: registered, by the invariant. Who opens it holds the core's lock until it has a
        // reference of its own.
        unsafe { bindings::misc_deregister(self.0.device.get()) };
    }
}

/// The table, as a static that the kernel may point to.
struct Table(bindings::file_operations);

// SAFETY: nobody writes it.
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
    // SAFETY: the device is the first field (`repr(C)`) of a counted `Shared`, of which its node has
    // a reference as long as it is registered, which it is under this lock.
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

/// # Safety
/// Called by the kernel for a file that `open` has opened.
unsafe extern "C" fn ioctl(file: *mut bindings::file, cmd: c_uint, arg: c_ulong) -> c_long {
    // SAFETY: `open` has put it there, and `release` comes later.
    let shared = unsafe { &*(*file).private_data.cast_const().cast::<Shared>() };
    let done = crate::blk::ioctl::dispatch_controller(&shared.gate, cmd, arg);
    // CAST: an int, as an errno is.
    done.unwrap_or_else(|error: kernel::error::Error| error.to_errno()) as c_long
}
