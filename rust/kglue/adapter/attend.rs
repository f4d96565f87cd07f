// SPDX-License-Identifier: GPL-2.0
//! A controller calls for attention, or an operator has it looked at: in a thread that no disk
//! waits for.
//!
//! What it says goes to the log and, as a uevent of its device, to programs; what it wishes is
//! done: its disks are looked at anew, it is recovered, or it is attended with its queues at rest.
//! An unasked look at the disks disturbs nobody as long as they are what they were.

use crate::adapter::attention::Found;
use crate::adapter::config::Bus;
use crate::adapter::reason::Reason;
use crate::adapter::state::{Adapter, LIVE, WELL};
use crate::blk::ioctl::AdminPath;
use crate::context::NoIo;
use crate::errno::advice;
use crate::hrtimer::Expired;
use crate::log::{log_err, log_info, log_warn};
use crate::text::Text;
use crate::work::{Attend, Run};
use core::fmt::Write;
use core::ptr::null_mut;
use core::sync::atomic::Ordering;
use hal::{Controller, Error, Notice, Queues, Weight, Wish};
use kernel::bindings;
use kernel::prelude::*;

/// Wishes that are seen to in one go.
const ROUNDS: u32 = 16;
/// Bytes of a line of the log.
const LINE: usize = 256;
/// Bytes of a variable of a uevent.
const VARIABLE: usize = 48;

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// The controller is attended soon. Any context.
    pub(crate) fn call(&self) {
        self.attention.begin();
    }
}

impl<C: AdminPath, B: Bus> Expired for Adapter<C, B> {
    fn expired(&self) {
        self.call();
    }
}

impl<C: AdminPath, B: Bus> Run<Attend> for Adapter<C, B> {
    fn run(&self) {
        if self.attention.take_look() {
            // What went wrong is told there.
            let _ = self.change_disks(|| Ok(()));
        }
        let _no_io = NoIo::new();
        for _ in 0..ROUNDS {
            if !self.attend() {
                return;
            }
        }
        self.call();
    }
}

impl<C: AdminPath, B: Bus> Adapter<C, B> {
    /// Looks anew at the disks, soon, in a thread that none of them waits for.
    pub(crate) fn begin_rescan(&self) {
        self.attention.begin_look();
    }

    /// Resets the controller for an operator; an error: it did not come back. Sleeps until then.
    pub(crate) fn reset_now(&self) -> Result<(), Error> {
        // One that is being reset by others comes back first.
        drop(self.control());
        // One that begins meanwhile for another reason is at worst taken for this one.
        if self.is_live() && self.recovering.load(Ordering::Acquire) == WELL {
            self.asked.fetch_add(1, Ordering::Relaxed);
        }
        self.recover_from(Reason::Asked);
        self.recovery.flush();
        // It may wait for a reset of all that the controller is part of.
        drop(self.control());
        match self.is_live() {
            true => Ok(()),
            false => Err(Error::Gone),
        }
    }

    /// Sees to one wish; whether there may be more.
    fn attend(&self) -> bool {
        // One that sleeps is attended when it is awake, one that recovers when it is back.
        if self.state.load(Ordering::Acquire) != LIVE
            || self.recovering.load(Ordering::Acquire) != WELL
        {
            return false;
        }
        let live = {
            let _control = self.control();
            let mut tell = |notice: Notice<'_>| self.tell(&notice);
            self.controller.attend(Queues::Live, &mut tell)
        };
        let wish = match live {
            Ok(Wish::Rest) => self.at_rest(|controller| {
                controller.attend(Queues::AtRest, &mut |notice| self.tell(&notice))
            }),
            other => other,
        };
        match wish {
            Ok(Wish::LookAnew) => {
                self.look_if_changed();
                true
            }
            Ok(Wish::Later(us)) => {
                self.attention.put_off(us);
                false
            }
            Ok(Wish::Recover) => {
                self.recover_from(Reason::Asked);
                false
            }
            Ok(Wish::Nothing | Wish::Rest) => false,
            // What is wrong is told there.
            Err(_) => {
                self.recover_from(Reason::Unanswered);
                false
            }
        }
    }

    /// Asks the controller for its disks with I/O going on; only if they are not what they were,
    /// they are frozen and become what it says. One that can't tell keeps them as they are.
    fn look_if_changed(&self) {
        let mut found = Found::new();
        match self.look(&mut found) {
            Ok(()) if self.attention.knows(&found) => {}
            Ok(()) => {
                let _ = self.change_disks(|| Ok(()));
            }
            Err(error) => {
                log_err!(
                    self,
                    "its disks may have changed, and can't be read anew ({}): they stay as they \
                     were; hiops/rescan_controller asks again\n",
                    advice(error)
                );
                if matches!(error, Error::Timeout | Error::Fatal) {
                    self.recover_from(Reason::Unanswered);
                }
            }
        }
    }

    fn tell(&self, notice: &Notice<'_>) {
        let mut line = [0u8; LINE];
        let mut text = Text::new(&mut line);
        // What does not fit is cut.
        let _ = write!(text, "{}", notice.text);
        match notice.weight {
            Weight::Info => log_info!(self, "{}\n", text.as_str()),
            Weight::Warning => log_warn!(self, "{}\n", text.as_str()),
            Weight::Error => log_err!(self, "{}\n", text.as_str()),
        }
        if let Some((name, value)) = notice.uevent {
            self.announce(name, value);
        }
    }

    /// Has user space told that the controller's device has changed, with the variable `name`.
    fn announce(&self, name: &str, value: u32) {
        let Some(device) = self.device().map(crate::device::raw) else {
            return;
        };
        let mut line = [0u8; VARIABLE];
        let mut text = Text::new(&mut line);
        // What does not fit is cut.
        let _ = write!(text, "{name}={value:#08x}");
        text.terminate();
        let mut variables = [line.as_mut_ptr().cast(), null_mut()];
        // SAFETY: the device is alive; the list ends with null, and what it points to ends with
        // zero.
        unsafe {
            bindings::kobject_uevent_env(
                &raw mut (*device).kobj,
                bindings::kobject_action_KOBJ_CHANGE,
                variables.as_mut_ptr(),
            );
        }
    }
}
