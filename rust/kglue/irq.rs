// SPDX-License-Identifier: GPL-2.0
//! A PCI function's interrupt vectors ([`vectors`]), and the handlers on them.
//!
//! Vectors and handlers live from probe to unbind; a reset only silences the device and waits for
//! the handlers that run.
//!
//! `kernel::irq::Registration` owns its handler, so a handler for each vector would be an `Arc` of
//! the adapter; and it is another thing in each of Linux 7.2 (revoked by the device's resources,
//! with a test for that in each interrupt) and 7.3 (borrowed from the device).

use core::ops::Deref;
use core::ptr::from_ref;
use hal::Error;
use kernel::bindings;
use kernel::ffi::{c_int, c_void};
use kernel::prelude::*;

use crate::compat::{HANDLED, NOT_OURS};
use crate::pci::Function;

mod vectors;

pub use vectors::Vectors;

/// Whoever serves the interrupts of a device.
pub(crate) trait Interrupt: Send + Sync + 'static {
    /// `vector` fired. `true`: it was this device. Hard interrupt context.
    fn interrupt(&self, vector: u16) -> bool;
}

/// What the kernel hands back to the handler of one vector.
struct Line<T> {
    target: *const T,
    vector: u16,
}

// SAFETY: `target` points to a `T` that any context may share.
unsafe impl<T: Sync> Send for Line<T> {}
// SAFETY: as above; nothing of it changes.
unsafe impl<T: Sync> Sync for Line<T> {}

/// A target with handlers requested on vectors. Dropping it frees the handlers first, then the
/// target.
///
/// # Invariants
/// A handler is requested for the first `requested` of `lines`, whose places in memory don't
/// change; each points to what `target` owns.
pub(crate) struct Handlers<T: Interrupt> {
    function: Function,
    requested: usize,
    lines: KVec<Line<T>>,
    target: KBox<T>,
}

impl<T: Interrupt> Handlers<T> {
    /// Requests a handler that calls `target` for each of `vectors`, which are allocated for
    /// `function` for as long as `target` lives. They may be called before this returns. On failure
    /// `target` is dropped. Sleeps.
    pub(crate) fn request(
        function: &Function,
        vectors: core::ops::Range<u16>,
        name: &'static CStr,
        target: KBox<T>,
    ) -> Result<Self, Error> {
        let mut lines =
            KVec::with_capacity(vectors.len(), GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        for vector in vectors {
            let target = from_ref::<T>(&target);
            lines
                .push(Line { target, vector }, GFP_KERNEL)
                .map_err(|_| Error::NoMemory)?;
        }
        // INVARIANT: `lines` is not touched any more, and moving the vector or the box doesn't move
        // what they own.
        let mut handlers = Self {
            function: function.clone(),
            requested: 0,
            lines,
            target,
        };
        for line in &handlers.lines {
            // SAFETY: the line lives until `drop` has freed the handler; `handle` takes a line of
            // this type. The format is a literal that takes the two values that follow it.
            let errno = unsafe {
                bindings::pci_request_irq(
                    function.as_raw(),
                    u32::from(line.vector),
                    Some(handle::<T>),
                    None,
                    from_ref(line).cast_mut().cast(),
                    c"%s-%u".as_char_ptr(),
                    name.as_char_ptr(),
                    u32::from(line.vector),
                )
            };
            if errno != 0 {
                return Err(Error::NoMemory);
            }
            handlers.requested = handlers.requested.wrapping_add(1);
        }
        Ok(handlers)
    }
}

impl<T: Interrupt> Deref for Handlers<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.target
    }
}

impl<T: Interrupt> Drop for Handlers<T> {
    fn drop(&mut self) {
        for line in self.lines.iter().take(self.requested) {
            // SAFETY: requested with exactly these values. It waits for a handler that runs.
            unsafe {
                bindings::pci_free_irq(
                    self.function.as_raw(),
                    u32::from(line.vector),
                    from_ref(line).cast_mut().cast(),
                )
            }
        }
    }
}

/// The interrupt handler.
///
/// # Safety
/// `line` is the `Line<T>` that was given with the request.
unsafe extern "C" fn handle<T: Interrupt>(_irq: c_int, line: *mut c_void) -> bindings::irqreturn_t {
    // SAFETY: the line and its target live until the handler is freed (invariant of `Handlers`).
    let (target, vector) = unsafe {
        let line = &*line.cast_const().cast::<Line<T>>();
        (&*line.target, line.vector)
    };
    match target.interrupt(vector) {
        true => HANDLED,
        false => NOT_OURS,
    }
}
