// SPDX-License-Identifier: GPL-2.0
//! Every interleaving of contexts that write `PxIE`, and freeze a port:
//! `RUSTFLAGS="--cfg loom" cargo test -p lld_ahci --release`. `ci/loom-breaks` shows that it fails
//! when its key lines are broken.
#![cfg(loom)]

// The models use their part of it.
#[allow(dead_code)]
#[path = "../irq_mask.rs"]
mod irq_mask;

use irq_mask::IrqMask;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;
use std::sync::Arc;

/// What the register says where nothing silences the port.
const ON: u32 = 7;

struct Port {
    irq: IrqMask,
    register: AtomicU32,
    frozen: AtomicBool,
}

impl Port {
    /// One whose control path is at work, with interrupts wanted, or not.
    fn new(enabled: bool) -> Arc<Self> {
        let port = Self {
            irq: IrqMask::new(),
            register: AtomicU32::new(0),
            frozen: AtomicBool::new(false),
        };
        port.irq.enable(enabled);
        port.irq.begin_control();
        Arc::new(port)
    }

    fn apply(&self) {
        self.irq
            .apply(|| ON, |value| self.register.store(value, Ordering::Relaxed));
    }

    fn freeze(&self) {
        self.frozen.swap(true, Ordering::SeqCst);
    }

    fn request_eh(&self) -> bool {
        let first = self.irq.request_eh(|| self.freeze());
        self.apply();
        first
    }

    fn end_control(&self) {
        let thaw = || {
            self.frozen.swap(false, Ordering::SeqCst);
        };
        self.irq.end_control(thaw, || self.freeze());
        self.apply();
    }

    fn register(&self) -> u32 {
        self.register.load(Ordering::Relaxed)
    }
}

/// What `other` does beside the end of the control path.
fn beside_the_end(enabled: bool, other: impl Fn(&Port) + Send + Sync + Copy + 'static) -> u32 {
    let port = Port::new(enabled);
    let control = {
        let port = Arc::clone(&port);
        thread::spawn(move || port.end_control())
    };
    other(&port);
    control.join().unwrap();
    port.register()
}

#[test]
fn a_queue_is_polled_no_more_as_the_control_path_ends() {
    loom::model(|| {
        let register = beside_the_end(false, |port| {
            port.irq.enable(true);
            port.apply();
        });
        assert_eq!(register, ON);
    });
}

#[test]
fn a_late_interrupt_as_the_control_path_ends() {
    loom::model(|| {
        let register = beside_the_end(true, |port| {
            if port.irq.is_control_active() {
                port.apply();
            }
        });
        assert_eq!(register, ON);
    });
}

#[test]
fn a_queue_is_polled_from_now_on_as_the_control_path_ends() {
    loom::model(|| {
        let register = beside_the_end(true, |port| {
            port.irq.enable(false);
            port.apply();
        });
        assert_eq!(register, 0);
    });
}

/// Who calls for error handling first has it done; until then the port is silent and frozen, and
/// no longer.
#[test]
fn an_error_as_the_control_path_ends() {
    loom::model(|| {
        let port = Port::new(true);
        assert!(port.request_eh(), "it is at work for that");
        let control = {
            let port = Arc::clone(&port);
            thread::spawn(move || port.end_control())
        };
        let first = port.request_eh();
        control.join().unwrap();
        assert_eq!(port.irq.is_eh_pending(), first);
        assert_eq!(port.frozen.load(Ordering::SeqCst), first);
        assert_eq!(port.register(), if first { 0 } else { ON });
    });
}
