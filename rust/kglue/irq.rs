// SPDX-License-Identifier: GPL-2.0
//! A PCI function's interrupt vectors, and the handlers on them.
//!
//! With MSI-X the first vector is the admin queue's, whose interrupts tell what the device reports by
//! itself; commands of the driver's own are polled. The others are managed: spread over the CPUs by the interrupt core, one I/O queue each. Where that can't be
//! had, one vector (MSI-X, MSI or the INTx line) serves everything. An HBA has a message for each port, or one vector for all.
//!
//! Vectors and handlers live from probe to unbind; a reset only silences the device and waits for the handlers that run.

use core::ops::Deref;
use core::ptr::from_ref;
use hal::{Error, Messages};
use kernel::bindings;
use kernel::ffi::{c_int, c_void};
use kernel::prelude::*;

use crate::pci::Function;

/// Whoever serves the interrupts of a device.
pub(crate) trait Interrupt: Send + Sync + 'static {
    /// `vector` fired. `true`: it was this device. Hard interrupt context.
    fn interrupt(&self, vector: u16) -> bool;
}

/// The kinds of messages that are `trusted`, as the PCI core has them.
fn kinds(trusted: Messages) -> u32 {
    let kind = |is: bool, kind: u32| if is { kind } else { 0 };
    kind(trusted.msi, bindings::PCI_IRQ_MSI) | kind(trusted.msix, bindings::PCI_IRQ_MSIX)
}

/// The vectors of one function; given back when dropped, which must be after the handlers are gone.
///
/// # Invariants
/// The function has exactly `first + irqs.len()` vectors allocated; `irqs` are the kernel's numbers of those from `first` on.
pub struct Vectors {
    function: Function,
    /// The first vector for I/O: 1 where the admin queue has its own.
    first: u16,
    /// The kernel's numbers of the vectors for I/O, at least one. The PCI core tells them only where sleeping is allowed.
    irqs: KVec<c_uint>,
    /// Likewise that of the admin queue's own.
    admin: Option<c_uint>,
}

impl Vectors {
    /// Vectors for up to `queues` I/O queues, of a device of which no more is expected than
    /// `trusted`. Sleeps.
    pub fn new(function: &Function, queues: u16, trusted: Messages) -> Result<Self, Error> {
        let any = kinds(trusted) | bindings::PCI_IRQ_INTX;
        if !(trusted.many && trusted.msix) {
            let count = Self::some(function, 1, any)?;
            return Self::numbered(function, 0, count);
        }
        // One queue a CPU is enough.
        let cpus = u16::try_from(kernel::cpu::nr_cpu_ids()).unwrap_or(u16::MAX);
        let queues = queues.min(cpus).max(1);
        let mut spread = bindings::irq_affinity {
            pre_vectors: 1,
            ..Default::default()
        };
        // SAFETY: the function is enabled and its driver is bound; `spread` is only read.
        let had = unsafe {
            bindings::pci_alloc_irq_vectors_affinity(
                function.as_raw(),
                2,
                u32::from(queues).saturating_add(1),
                bindings::PCI_IRQ_MSIX | bindings::PCI_IRQ_AFFINITY,
                &mut spread,
            )
        };
        let (first, count) = match u16::try_from(had) {
            Ok(had @ 2..) => (1, had.saturating_sub(1)),
            _ => (0, Self::some(function, 1, any)?),
        };
        Self::numbered(function, first, count)
    }

    /// Vectors for an HBA whose ports are numbered below `ports`: one for each port, of its number,
    /// if the function is granted as many, is `trusted` with them, and the HBA, which learns of it
    /// by that, `agrees`; else one for all. Sleeps.
    pub fn for_ports(
        function: &Function,
        ports: u16,
        trusted: Messages,
        agrees: impl FnOnce() -> bool,
    ) -> Result<Self, Error> {
        let messages = kinds(trusted);
        if ports > 1 && trusted.many && Self::some(function, ports, messages).is_ok() {
            let vectors = Self::numbered(function, 0, ports)?;
            if agrees() {
                return Ok(vectors);
            }
        }
        // A single MSI is what every HBA is driven by elsewhere; MSI-X with one vector only where there is nothing else.
        let one = Self::some(function, 1, messages & bindings::PCI_IRQ_MSI)
            .or_else(|_| Self::some(function, 1, messages & bindings::PCI_IRQ_MSIX))
            .or_else(|_| Self::some(function, 1, bindings::PCI_IRQ_INTX))?;
        Self::numbered(function, 0, one)
    }

    /// Allocates exactly `count` vectors of one of these `kinds`, not spread.
    fn some(function: &Function, count: u16, kinds: u32) -> Result<u16, Error> {
        if kinds == 0 {
            return Err(Error::Unsupported);
        }
        // SAFETY: the function is enabled and its driver is bound; no spreading is asked for, so there is no table of it.
        let had = unsafe {
            bindings::pci_alloc_irq_vectors_affinity(
                function.as_raw(),
                u32::from(count),
                u32::from(count),
                kinds,
                core::ptr::null_mut(),
            )
        };
        match u16::try_from(had) {
            Ok(had) if had == count => Ok(count),
            _ => Err(Error::Unsupported),
        }
    }

    /// The vectors that were just allocated, of which `count` from `first` on are for I/O.
    fn numbered(function: &Function, first: u16, count: u16) -> Result<Self, Error> {
        // INVARIANT: as many were allocated; their numbers follow. What is dropped gives them back.
        let mut vectors = Self {
            function: function.clone(),
            first,
            irqs: KVec::new(),
            admin: None,
        };
        let number = |vector| {
            // SAFETY: the function has this vector.
            let irq = unsafe { bindings::pci_irq_vector(function.as_raw(), u32::from(vector)) };
            c_uint::try_from(irq).map_err(|_| Error::Unsupported)
        };
        for vector in (first..).take(usize::from(count)) {
            let pushed = vectors.irqs.push(number(vector)?, GFP_KERNEL);
            pushed.map_err(|_| Error::NoMemory)?;
        }
        if first != 0 {
            vectors.admin = Some(number(0)?);
        }
        Ok(vectors)
    }

    /// How many vectors there are for I/O queues, at least 1.
    pub fn queues(&self) -> u16 {
        u16::try_from(self.irqs.len()).unwrap_or(u16::MAX)
    }

    /// The vector of I/O queue `queue`.
    pub fn of_queue(&self, queue: u16) -> u16 {
        match queue < self.queues() {
            true => self.first.wrapping_add(queue),
            false => self.first,
        }
    }

    /// The first I/O vector if the vectors are spread over the CPUs.
    pub fn spread_from(&self) -> Option<u16> {
        (self.first != 0).then_some(self.first)
    }

    /// Whether the one vector is the INTx pin: a level that stays until the device is told to lower it.
    pub fn pin(&self) -> bool {
        // SAFETY: the function lives as long as `self`.
        let kind = unsafe { bindings::pci_irq_type(self.function.as_raw()) };
        kind & (bindings::PCI_IRQ_MSI | bindings::PCI_IRQ_MSIX) == 0
    }

    /// Turns `vector` on or off, in turns. One that comes while it is off is remembered by the interrupt core or the device. Any context.
    pub fn set(&self, vector: u16, on: bool) {
        let at = vector.checked_sub(self.first).map(usize::from);
        let Some(&irq) = at.and_then(|at| self.irqs.get(at)) else {
            return;
        };
        // SAFETY: the vector is this function's as long as `self` lives; both may be called in any context, and only in turns is asked for.
        unsafe {
            match on {
                true => bindings::enable_irq(irq),
                false => bindings::disable_irq_nosync(irq),
            }
        }
    }

    /// Waits until no handler runs that was running when this was called. Sleeps.
    pub fn synchronize(&self) {
        for &irq in Iterator::chain(self.irqs.iter(), &self.admin) {
            // SAFETY: may be called with any interrupt number, where sleeping is allowed.
            unsafe { bindings::synchronize_irq(irq) }
        }
    }

    /// The vectors for I/O.
    pub fn io_vectors(&self) -> core::ops::Range<u16> {
        self.first..self.first.saturating_add(self.queues())
    }

    /// The vectors that have handlers: those for I/O, and the admin queue's.
    pub fn all(&self) -> core::ops::Range<u16> {
        0..self.io_vectors().end
    }
}

impl Drop for Vectors {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`; whoever requested handlers on them has freed them (`Handlers` does, before its target and the vectors
        // in it are dropped).
        unsafe { bindings::pci_free_irq_vectors(self.function.as_raw()) }
    }
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

/// A target with handlers requested on vectors. Dropping it frees the handlers first, then the target.
///
/// # Invariants
/// A handler is requested for the first `requested` of `lines`, whose places in memory don't change; each points to what `target` owns.
pub(crate) struct Handlers<T: Interrupt> {
    function: Function,
    requested: usize,
    lines: KVec<Line<T>>,
    target: KBox<T>,
}

impl<T: Interrupt> Handlers<T> {
    /// Requests a handler that calls `target` for each of `vectors`, which are allocated for `function` for as long as `target` lives. They may be called
    /// before this returns. On failure `target` is dropped. Sleeps.
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
        // INVARIANT: `lines` is not touched any more, and moving the vector or the box doesn't move what they own.
        let mut handlers = Self {
            function: function.clone(),
            requested: 0,
            lines,
            target,
        };
        for line in &handlers.lines {
            // SAFETY: the line lives until `drop` has freed the handler; `handle` takes a line of this type. The format is a literal that
            // takes the two values that follow it.
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
        true => bindings::irqreturn::IRQ_HANDLED,
        false => bindings::irqreturn::IRQ_NONE,
    }
}
