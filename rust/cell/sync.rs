// SPDX-License-Identifier: GPL-2.0
//! Atomics and fences, the same names on every face: `core`'s, or loom's. So is the cell that the
//! types of this crate have.

#[cfg(not(loom))]
pub use core::sync::atomic::*;
#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell as Cell;
#[cfg(loom)]
pub use loom::sync::atomic::*;

/// As `core`'s. That of `SeqCst` is an `mfence` on x86-64, which takes ten times as long as what
/// the kernel's `smp_mb()` does there, and this does, too: any locked instruction is a full barrier
/// (Intel SDM volume 3, section 9.2.3.9; Linux 7.3, arch/x86/include/asm/barrier.h).
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline(always)]
pub fn fence(order: Ordering) {
    match order {
        // SAFETY: adds 0 to a word of the stack, which keeps its value, whoever's it is.
        Ordering::SeqCst => unsafe {
            core::arch::asm!("lock add dword ptr [rsp - 4], 0", options(nostack));
        },
        order => core::sync::atomic::fence(order),
    }
}

/// A full fence right after an exchange that acquires and releases, which is one itself on x86-64:
/// the compiler keeps what was before the exchange there, and what follows it after it.
#[inline(always)]
pub fn fence_after_exchange() {
    if cfg!(any(not(target_arch = "x86_64"), loom, miri)) {
        fence(Ordering::SeqCst);
    }
}

/// `UnsafeCell` with loom's access-tracking shape, so that one text serves all faces.
#[cfg(not(loom))]
pub(crate) struct Cell<T>(core::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> Cell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}
