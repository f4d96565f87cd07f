// SPDX-License-Identifier: GPL-2.0
//! The way out: unbind, surprise removal, reboot.

use crate::adapter::config::Bus;
use crate::adapter::rest::Then;
use crate::adapter::state::{Adapter, DEAD, LOOK_AGAIN_US};
use crate::compat::synchronize_rcu;
use crate::context::PreemptOff;
use core::sync::atomic::Ordering;
use engine::Context;
use hal::{CmdError, Controller, Error, Platform, Shutdown};
use kernel::bindings;

/// How long a reboot or a suspension waits for I/O that is under way. TIMEOUT: user space is gone
/// or frozen by then; what is left is a file system's last writes, and a controller that has not
/// answered in this time is not worth holding the machine up for.
const LAST_IO_US: u64 = 5_000_000;

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// Takes the disks away, ends all I/O, and puts the controller to rest. Interrupt handlers must
    /// still be there; after it they may go, then the adapter. Sleeps.
    pub fn remove(&self) {
        self.abandon();
        let gone = self.alive() == Err(Error::Gone);
        if gone {
            // What is under way ends first: a file system that learns that the disk is gone waits
            // for it.
            let _ = self.restart(CmdError::Gone.finally(), Then::Die);
            self.mark_dead();
        }
        crate::wait::take_all();
        self.take_disks();
        self.retire(if gone {
            Shutdown::Dead
        } else {
            Shutdown::Normal
        });
    }

    /// The machine goes down: what is under way ends, then the controller is told. Sleeps.
    pub fn shutdown(&self) {
        self.abandon();
        self.wait_for_last_io();
        self.state.store(DEAD, Ordering::Release);
        self.recovery.cancel();
        let _ = self.restart(CmdError::Aborted.finally(), Then::PowerOff);
        self.stopped.store(1, Ordering::Release);
    }

    /// Until nothing is under way, or the device is gone or takes too long. Sleeps.
    pub(crate) fn wait_for_last_io(&self) {
        let mut left = LAST_IO_US;
        let busy = || {
            self.queues
                .iter()
                .any(|queue| queue.io.in_flight() != 0 || queue.io.queued() != 0)
        };
        while left != 0 && self.alive().is_ok() && busy() {
            self.drain_all();
            self.platform.sleep_us(LOOK_AGAIN_US);
            left = left.saturating_sub(LOOK_AGAIN_US);
        }
    }

    /// Takes the completions that are there, also those that only threads look for which are frozen
    /// by now.
    pub(crate) fn drain_all(&self) {
        self.queues.iter().for_each(|queue| {
            let _stay = PreemptOff::new();
            queue.io.drain(Context::Sweep);
        });
    }

    pub(crate) fn take_disks(&self) {
        // A tool's command that takes long would keep what it holds.
        self.gate.close();
        // None comes any more.
        let mut closed = self.change.lock();
        *closed = true;
        // One by one and without the lock: a recovery that fails meanwhile takes it.
        loop {
            let raw = self.disks.lock().last().map(|disk| disk.as_raw());
            let Some(raw) = raw else { return };
            // SAFETY: in the list, out of which only the holder of `change` takes disks.
            unsafe { bindings::del_gendisk(raw) };
            let disk = self.disks.lock().pop();
            if let Some(mut disk) = disk {
                disk.mark_not_added();
            }
        }
    }

    fn retire(&self, how: Shutdown) {
        self.attention.disable();
        self.state.store(DEAD, Ordering::Release);
        self.recovery.cancel();
        if self.stopped.swap(1, Ordering::AcqRel) != 0 {
            return;
        }
        let _control = self.control_now();
        if self.controller.shutdown(how).is_err() && how == Shutdown::Normal {
            crate::log::log_warn!(self, "it did not confirm the shutdown\n");
        }
        let _ = self.stop_or_cut_off();
    }

    /// What a drop does before the fields go: from any state.
    pub(crate) fn put_away(&mut self) {
        self.abandon();
        self.take_disks();
        *self.hook.lock() = None;
        self.retire(Shutdown::Dead);
        // Who was in the hook, or passed by, has left the queues.
        synchronize_rcu();
        // No disk uses it any more.
        self.set = None;
        self.queues.iter().for_each(|queue| queue.quiet());
    }
}

impl<C: Controller, B: Bus> Drop for Adapter<C, B> {
    fn drop(&mut self) {
        self.put_away();
    }
}
