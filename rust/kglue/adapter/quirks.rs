// SPDX-License-Identifier: GPL-2.0
//! An adapter's quirks, as an operator sees them: in the log once, and in sysfs.

use crate::adapter::config::Bus;
use crate::adapter::state::Adapter;
use crate::log::log_info;
use crate::text::{write_quirks, Text};
use hal::Controller;

/// Room for all names that one controller can have.
const LINE: usize = 512;

impl<C: Controller, B: Bus> Adapter<C, B> {
    /// Says what the controller is known for, if it is.
    pub(crate) fn log_quirks(&self) {
        let mut line = [0; LINE];
        let mut text = Text::new(&mut line);
        let any = write_quirks(&mut text, |named| self.controller.quirks(named));
        let len = text.len();
        let names = line
            .get(..len)
            .and_then(|names| core::str::from_utf8(names).ok());
        if let (Ok(true), Some(names)) = (any, names) {
            log_info!(self, "known for, and spared (quirks): {}\n", names);
        }
    }
}
