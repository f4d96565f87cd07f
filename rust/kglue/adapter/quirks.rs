// SPDX-License-Identifier: GPL-2.0
//! Quirks in the log: each once, with whose they are.

use crate::adapter::config::Bus;
use crate::adapter::state::Adapter;
use crate::log::log_info;
use crate::text::{write_quirks, Text};
use core::fmt;
use hal::Controller;

/// Room for all names that one device can have.
const LINE: usize = 512;

/// Has `log` say the names that `quirks` tells, if it tells any.
pub(crate) fn log_quirks(
    quirks: impl FnOnce(&mut dyn FnMut(&'static str)),
    log: impl FnOnce(fmt::Arguments<'_>),
) {
    let mut line = [0; LINE];
    let mut text = Text::new(&mut line);
    let any = write_quirks(&mut text, quirks);
    let len = text.len();
    let names = line
        .get(..len)
        .and_then(|names| core::str::from_utf8(names).ok());
    if let (Ok(true), Some(names)) = (any, names) {
        log(format_args!("known for, and spared (quirks): {names}\n"));
    }
}

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// Says what the controller is known for.
    pub(crate) fn log_quirks(&self) {
        let quirks = |named: &mut dyn FnMut(&'static str)| self.controller.quirks(named);
        log_quirks(quirks, |text| log_info!(self, "{}", text));
    }

    /// Says what its only disk is known for, but for what its home is known for, which is said
    /// there.
    pub(crate) fn log_disk_quirks(&self, home: impl Fn(&mut dyn FnMut(&'static str))) {
        let quirks = |named: &mut dyn FnMut(&'static str)| {
            self.controller.quirks(&mut |name| {
                let mut known = false;
                home(&mut |other| known |= other == name);
                if !known {
                    named(name);
                }
            });
        };
        log_quirks(quirks, |text| match self.disks.lock().first_name() {
            Some(disk) => log_info!(self, "{}: {}", disk, text),
            None => log_info!(self, "{}", text),
        });
    }
}
