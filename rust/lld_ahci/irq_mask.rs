// SPDX-License-Identifier: GPL-2.0
//! Whether a port interrupts, and is issued anything: what `PxIE` is made of, and how it is written
//! (AHCI 1.3.1, section 3.3.6).
//!
//! # Several contexts at once
//! The control path writes it as it begins and ends, a queue as it is polled from now on or no
//! more, an interrupt handler as it finds a port silent that interrupts, and who calls for error
//! handling. Each first changes what the register is made of, or has seen it change, and then
//! writes what follows. One that is overtaken between looking and writing leaves a value of the
//! past: a port that is silent for good, whose completions nobody notices before their deadline. So
//! who has written looks again, behind a fence. Likewise the port is frozen as long as error
//! handling is pending: who thaws it looks whether it is again (`tests/loom_irq_mask.rs`).

use cell::sync::{fence, AtomicBool, Ordering};

/// What a port's interrupts depend on.
pub(crate) struct IrqMask {
    /// The layer above wants them.
    enabled: AtomicBool,
    /// Something came that the control path has to see to: none until it has.
    eh_pending: AtomicBool,
    /// The control path is at work, and looks at the registers itself.
    control_active: AtomicBool,
}

impl IrqMask {
    /// Of a port that nobody wants to hear of yet.
    pub(crate) fn new() -> Self {
        Self {
            enabled: AtomicBool::new(false),
            eh_pending: AtomicBool::new(false),
            control_active: AtomicBool::new(false),
        }
    }

    /// The layer above wants interrupts.
    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed)
    }

    /// Error handling was called for, and has not been done.
    #[inline]
    pub(crate) fn is_eh_pending(&self) -> bool {
        self.eh_pending.load(Ordering::SeqCst)
    }

    /// The control path is at work.
    #[inline]
    pub(crate) fn is_control_active(&self) -> bool {
        self.control_active.load(Ordering::SeqCst)
    }

    /// The layer above wants interrupts, or none; for who applies that then, as of all the
    /// following.
    pub(crate) fn enable(&self, enabled: bool) {
        self.enabled.store(enabled, Ordering::SeqCst);
    }

    /// Calls for error handling, and has `freeze` keep all from being issued; whether nobody has
    /// before.
    pub(crate) fn request_eh(&self, freeze: impl FnOnce()) -> bool {
        let first = !self.eh_pending.swap(true, Ordering::SeqCst);
        if first {
            freeze();
        }
        first
    }

    /// The control path begins.
    pub(crate) fn begin_control(&self) {
        self.control_active.store(true, Ordering::SeqCst);
    }

    /// The control path is done, and so is what it was called for: `thaw`, unless it is called for
    /// again.
    pub(crate) fn end_control(&self, thaw: impl FnOnce(), freeze: impl FnOnce()) {
        // An exchange, as the calls are: loom knows no order of two stores.
        self.eh_pending.swap(false, Ordering::SeqCst);
        thaw();
        if self.is_eh_pending() {
            freeze();
        }
        self.control_active.store(false, Ordering::SeqCst);
    }

    /// Writes what the register has to say, by `write`: 0 as long as anything silences the port,
    /// else what `enabled` answers. Any context.
    pub(crate) fn apply(&self, enabled: impl Fn() -> u32, write: impl Fn(u32)) {
        let mut value = self.value(&enabled);
        loop {
            // Behind the change that is applied, and behind what others have written before.
            fence(Ordering::SeqCst);
            write(value);
            fence(Ordering::SeqCst);
            let now = self.value(&enabled);
            if now == value {
                return;
            }
            value = now;
        }
    }

    fn value(&self, enabled: impl Fn() -> u32) -> u32 {
        let silent = !self.enabled.load(Ordering::SeqCst)
            || self.is_eh_pending()
            || self.is_control_active();
        match silent {
            true => 0,
            false => enabled(),
        }
    }
}
