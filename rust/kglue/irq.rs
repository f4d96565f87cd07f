// SPDX-License-Identifier: GPL-2.0
//! A PCI function's interrupt vectors, and the handlers on them. Both live from probe to unbind; a
//! reset only silences the device and waits for the handlers that run.
//!
//! With MSI-X the first vector is the admin queue's, whose interrupts tell what the device reports
//! by itself; commands of the driver's own are polled. The others are managed: spread over the CPUs
//! by the interrupt core, one I/O queue each. Where that can't be had, one vector (MSI-X, MSI or
//! the INTx line) serves everything. An HBA has a message for each port, or one vector for all.
//!
//! `kernel::irq::Registration` owns its handler, so a handler for each vector would be an `Arc` of
//! the adapter; and it is another thing in each of Linux 7.2 (revoked by the device's resources,
//! with a test for that in each interrupt) and 7.3 (borrowed from the device). The kernel crate's
//! vectors (`kernel::pci`) are not spread over the CPUs, and are a range in 7.2 and a registration
//! that borrows from the device in 7.3.

use core::ops::Deref;
use core::ptr::from_ref;
use hal::{Error, Messages};
use kernel::device::Bound;
use kernel::ffi::{c_int, c_uint, c_void};
use kernel::prelude::*;
use kernel::{bindings, pci};

use crate::compat::{HANDLED, NOT_OURS};
use crate::pci::Function;

#[allow(
    improper_ctypes,
    reason = "of the kernel's structures only the address goes"
)]
// Safe to call: the interrupt core leaves a number alone that is nobody's. The others ask for a
// function whose driver calls, which the crate's type says. Each is as its header says it: see the
// constants below.
unsafe extern "C" {
    safe fn enable_irq(irq: c_uint);
    safe fn disable_irq_nosync(irq: c_uint);
    /// Returns when no handler runs any more. Sleeps.
    safe fn synchronize_irq(irq: c_uint);
    /// The number of vector `nr`; negative: it has none.
    safe fn pci_irq_vector(function: &pci::Device<Bound>, nr: c_uint) -> c_int;
    /// Allocates `least` to `most` vectors: how many; negative: none. `spread` is read. Sleeps.
    safe fn pci_alloc_irq_vectors_affinity(
        function: &pci::Device<Bound>,
        least: c_uint,
        most: c_uint,
        kind: c_uint,
        spread: Option<&mut bindings::irq_affinity>,
    ) -> c_int;
}

const _: [unsafe extern "C" fn(c_uint); 3] = [
    bindings::enable_irq,
    bindings::disable_irq_nosync,
    bindings::synchronize_irq,
];
const _: [unsafe extern "C" fn(*mut bindings::pci_dev, c_uint) -> c_int; 1] =
    [bindings::pci_irq_vector];
const _: [unsafe extern "C" fn(
    *mut bindings::pci_dev,
    c_uint,
    c_uint,
    c_uint,
    *mut bindings::irq_affinity,
) -> c_int; 1] = [bindings::pci_alloc_irq_vectors_affinity];

/// What serves the interrupts of a device.
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

/// The kinds of vectors that the PCI core has, in its order, where messages are used as far as they
/// are `trusted`.
fn kinds(trusted: Messages) -> [Option<u32>; 3] {
    [
        trusted.msix.then_some(bindings::PCI_IRQ_MSIX),
        trusted.msi.then_some(bindings::PCI_IRQ_MSI),
        Some(bindings::PCI_IRQ_INTX),
    ]
}

/// Vectors that were just allocated.
struct Granted {
    /// How many.
    count: u16,
    /// It is one, which is the INTx pin.
    pin: bool,
}

/// The vectors of one function; given back when dropped, which must be after the handlers are gone.
///
/// # Invariants
/// The function has exactly `first + irqs.len()` vectors allocated; `irqs` are the kernel's numbers
/// of those from `first` on.
pub struct Vectors {
    function: Function,
    /// The first vector for I/O: 1 where the admin queue has its own.
    first: u16,
    /// The kernel's numbers of the vectors for I/O, at least one. The PCI core tells them only
    /// where sleeping is allowed.
    irqs: KVec<c_uint>,
    /// That of the admin queue's own vector.
    admin: Option<c_uint>,
    /// The one vector is the INTx pin.
    pin: bool,
}

impl Vectors {
    /// Vectors for up to `queues` I/O queues, of a device of which no more is expected than
    /// `trusted`. Sleeps.
    pub fn new(function: &Function, queues: u16, trusted: Messages) -> Result<Self, Error> {
        if trusted.many && trusted.msix {
            // One queue a CPU is enough.
            let cpus = u16::try_from(kernel::cpu::nr_cpu_ids()).unwrap_or(u16::MAX);
            let most = u32::from(queues.min(cpus).max(1)).saturating_add(1);
            let kind = bindings::PCI_IRQ_MSIX | bindings::PCI_IRQ_AFFINITY;
            let mut spread = bindings::irq_affinity {
                pre_vectors: 1,
                ..Default::default()
            };
            if let Some(had @ 2..) = allocate(function, 2, most, kind, Some(&mut spread)) {
                let (count, pin) = (had.saturating_sub(1), false);
                return Self::numbered(function, 1, Granted { count, pin });
            }
        }
        let one = Self::some(function, 1, kinds(trusted))?;
        Self::numbered(function, 0, one)
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
        if ports > 1 && trusted.many {
            let [msix, msi, _] = kinds(trusted);
            if let Ok(granted) = Self::some(function, ports, [msix, msi]) {
                let vectors = Self::numbered(function, 0, granted)?;
                if agrees() {
                    return Ok(vectors);
                }
            }
        }
        // A single MSI is what every HBA is driven by elsewhere; MSI-X with one vector only where
        // there is nothing else.
        let [msix, msi, pin] = kinds(trusted);
        let one = Self::some(function, 1, [msi, msix, pin])?;
        Self::numbered(function, 0, one)
    }

    /// Allocates exactly `count` vectors of the first of these `kinds` of which as many are had,
    /// not spread.
    fn some<const N: usize>(
        function: &Function,
        count: u16,
        kinds: [Option<u32>; N],
    ) -> Result<Granted, Error> {
        let wanted = u32::from(count);
        let has = |kind: &u32| allocate(function, wanted, wanted, *kind, None) == Some(count);
        let mut kinds = kinds.into_iter().flatten();
        let kind = kinds.find(has).ok_or(Error::Unsupported)?;
        let pin = kind == bindings::PCI_IRQ_INTX;
        Ok(Granted { count, pin })
    }

    /// The vectors that were just allocated, of which those `granted`, from `first` on, are for
    /// I/O.
    fn numbered(function: &Function, first: u16, granted: Granted) -> Result<Self, Error> {
        // INVARIANT: as many were allocated; their numbers follow. What is dropped gives them back.
        let mut vectors = Self {
            function: function.clone(),
            first,
            irqs: KVec::new(),
            admin: None,
            pin: granted.pin,
        };
        let number = |vector| {
            let irq = pci_irq_vector(function, u32::from(vector));
            c_uint::try_from(irq).map_err(|_| Error::Unsupported)
        };
        for vector in (first..).take(usize::from(granted.count)) {
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

    /// Whether the one vector is the INTx pin: a level that stays until the device is told to lower
    /// it.
    pub fn pin(&self) -> bool {
        self.pin
    }

    /// Turns `vector` on or off, in turns. One that comes while it is off is remembered by the
    /// interrupt core or the device. Any context.
    pub fn set(&self, vector: u16, on: bool) {
        let at = vector.checked_sub(self.first).map(usize::from);
        let Some(&irq) = at.and_then(|at| self.irqs.get(at)) else {
            return;
        };
        match on {
            true => enable_irq(irq),
            false => disable_irq_nosync(irq),
        }
    }

    /// Waits until no handler runs that was running when this was called. Sleeps.
    pub fn synchronize(&self) {
        for &irq in Iterator::chain(self.irqs.iter(), &self.admin) {
            synchronize_irq(irq);
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

/// Allocates `least` to `most` vectors of `kind`; returns how many, if any.
fn allocate(
    function: &Function,
    least: u32,
    most: u32,
    kind: u32,
    spread: Option<&mut bindings::irq_affinity>,
) -> Option<u16> {
    let had = pci_alloc_irq_vectors_affinity(function, least, most, kind, spread);
    u16::try_from(had).ok()
}

impl Drop for Vectors {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`; no handler is requested on them any more (`Handlers` frees
        // its own before its target and the vectors in it are dropped).
        unsafe { bindings::pci_free_irq_vectors(self.function.as_raw()) }
    }
}
