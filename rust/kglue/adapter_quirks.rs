// SPDX-License-Identifier: GPL-2.0
//! An adapter's quirks, as an operator sees them: in the log once, and in sysfs.

use crate::adapter::{Adapter, Bus};
use crate::log::log_info;
use crate::text::Text;
use core::fmt::{self, Write};
use hal::Controller;

/// Room for all names that one controller can have.
const LINE: usize = 512;

/// Writes the names that `quirks` tells to `to`, a blank between two. Returns whether there are
/// any.
pub(crate) fn write_quirks(
    to: &mut impl Write,
    quirks: impl FnOnce(&mut dyn FnMut(&'static str)),
) -> Result<bool, fmt::Error> {
    let mut any = false;
    let mut written = Ok(());
    quirks(&mut |name| {
        let blank = if any { " " } else { "" };
        any = true;
        written = written.and_then(|()| write!(to, "{blank}{name}"));
    });
    written.map(|()| any)
}

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
