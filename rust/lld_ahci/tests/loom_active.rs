// SPDX-License-Identifier: GPL-2.0
//! Every interleaving of a drain with a recovery:
//! `RUSTFLAGS="--cfg loom" cargo test -p lld_ahci --release`. `ci/loom-breaks` shows that it fails
//! when its key lines are broken. The hand-over of turns is not here: it rests on the one order of
//! sequentially consistent accesses, which loom does not model.
#![cfg(loom)]

// The models use their part of it.
#[allow(dead_code)]
#[path = "../active.rs"]
mod active;

use active::ActiveTags;
use hal::CmdError;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use std::sync::Arc;

/// The device has finished this command, and not this one.
const OVER: u32 = 1;
const OPEN: u32 = 2;

/// A port with two commands. The list's stop clears the register of those that the device has.
struct Port {
    active_tags: ActiveTags,
    stopped: AtomicBool,
}

impl Port {
    fn new() -> Self {
        let active_tags = ActiveTags::new();
        active_tags.resume();
        active_tags.bind(OVER | OPEN, true);
        active_tags.issued.store(OVER | OPEN, Ordering::SeqCst);
        Self {
            active_tags,
            stopped: AtomicBool::new(false),
        }
    }

    /// The register, for who does not stop the list himself.
    fn active(&self) -> u32 {
        match self.stopped.load(Ordering::SeqCst) {
            true => 0,
            false => OPEN,
        }
    }

    /// What a drain ends, in the order of `AhciQueue::read_completions`: judged, and finished by
    /// the device.
    fn drain(&self) -> (u32, u32) {
        let judged = self.active_tags.take_eh_done();
        let stops = self.active_tags.stops();
        if self.active_tags.is_stopped() {
            return (judged, 0);
        }
        let issued = self.active_tags.issued.load(Ordering::SeqCst);
        let active = self.active();
        if self.active_tags.was_stopped(stops) {
            return (judged, 0);
        }
        (judged, self.active_tags.finish(issued & !active).0)
    }

    /// A recovery that fails what the device has not finished, in the order of
    /// `Port::latch_finished`, `Port::clear_st` and `Port::recover`.
    fn recover(&self) {
        if self.active_tags.stop() {
            let issued = self.active_tags.issued.load(Ordering::SeqCst);
            // It reads the register, too; loom would lose sight of the drain's look behind this
            // one.
            self.active_tags.eh_complete(issued & !OPEN, Ok(()));
        }
        self.stopped.store(true, Ordering::SeqCst);
        let issued = self.active_tags.issued.load(Ordering::SeqCst);
        self.active_tags
            .eh_complete(issued, Err(CmdError::Medium.permanent()));
    }
}

/// Each command ends once, and only the one that was finished ends well.
#[test]
fn a_drain_beside_a_recovery() {
    loom::model(|| {
        let port = Arc::new(Port::new());
        let recovery = {
            let port = Arc::clone(&port);
            thread::spawn(move || port.recover())
        };
        let (early, finished) = port.drain();
        recovery.join().unwrap();
        let (late, after) = port.drain();
        assert_eq!(after, 0, "it is halted");
        assert_eq!(early & late, 0, "judged twice");
        let judged = early | late;
        assert_eq!(judged & finished, 0, "ended twice");
        assert_eq!(judged | finished, OVER | OPEN, "ended at all");
        assert_eq!(
            finished & OPEN,
            0,
            "finished by a register that was cleared"
        );
        assert_eq!(
            port.active_tags.eh_outcome(1),
            Err(CmdError::Medium.permanent())
        );
        if judged & OVER != 0 {
            assert_eq!(port.active_tags.eh_outcome(0), Ok(()), "it was finished");
        }
    });
}
