// SPDX-License-Identifier: GPL-2.0
//! Text: what the operator reads in the log (which device, what happened, what to do; rare events
//! only, nothing on the data path), and what goes to the kernel's buffers.

use core::fmt;

/// A note about an adapter's device. The text ends its line.
macro_rules! log_info {
    ($adapter:expr, $($text:tt)*) => {
        match $adapter.device() {
            Some(device) => kernel::dev_info!(device, $($text)*),
            None => kernel::pr_info!("{}: {}", $adapter.label(), kernel::prelude::fmt!($($text)*)),
        }
    };
}

/// A warning about an adapter's device. The text ends its line.
macro_rules! log_warn {
    ($adapter:expr, $($text:tt)*) => {
        match $adapter.device() {
            Some(device) => kernel::dev_warn!(device, $($text)*),
            None => kernel::pr_warn!("{}: {}", $adapter.label(), kernel::prelude::fmt!($($text)*)),
        }
    };
}

/// An error of an adapter's device. The text ends its line.
macro_rules! log_err {
    ($adapter:expr, $($text:tt)*) => {
        match $adapter.device() {
            Some(device) => kernel::dev_err!(device, $($text)*),
            None => kernel::pr_err!("{}: {}", $adapter.label(), kernel::prelude::fmt!($($text)*)),
        }
    };
}

pub(crate) use {log_err, log_info, log_warn};

/// Writes into a buffer of fixed length; what does not fit is cut.
pub(crate) struct Text<'a> {
    to: &'a mut [u8],
    len: usize,
}

impl<'a> Text<'a> {
    pub(crate) fn new(to: &'a mut [u8]) -> Self {
        Self { to, len: 0 }
    }

    /// Bytes written so far.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// What was written.
    pub(crate) fn as_str(&self) -> &str {
        let written = self.to.get(..self.len).unwrap_or_default();
        match core::str::from_utf8(written) {
            Ok(text) => text,
            // Cut within a character.
            Err(cut) => written
                .get(..cut.valid_up_to())
                .and_then(|text| core::str::from_utf8(text).ok())
                .unwrap_or_default(),
        }
    }

    /// What a device says of itself, byte for byte as the in-tree driver shows it: up to the first
    /// zero, with the blanks that pad it; and a line's end.
    pub(crate) fn identity(&mut self, said: &[u8]) -> fmt::Result {
        let said = said.split(|byte| *byte == 0).next().unwrap_or_default();
        said.iter()
            .chain(b"\n")
            .try_for_each(|byte| self.put(*byte))
    }

    fn put(&mut self, byte: u8) -> fmt::Result {
        let to = self.to.get_mut(self.len).ok_or(fmt::Error)?;
        *to = byte;
        self.len = self.len.wrapping_add(1);
        Ok(())
    }

    /// Ends it with a zero byte, for which the last written one makes room if need be.
    pub(crate) fn terminate(&mut self) {
        let last = self.to.len().saturating_sub(1);
        if let Some(byte) = self.to.get_mut(self.len.min(last)) {
            *byte = 0;
        }
    }
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().try_for_each(|byte| self.put(byte))
    }
}

/// Bytes in hexadecimal.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Writes the names that `quirks` tells to `to`, a blank between two. Returns whether there are
/// any.
pub(crate) fn write_quirks(
    to: &mut impl fmt::Write,
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

/// The number that was written. Fails with `EINVAL`: that is none.
pub(crate) fn number(text: &[u8]) -> Result<u64, kernel::error::Error> {
    let none = kernel::error::code::EINVAL;
    let text = core::str::from_utf8(text).map_err(|_| none)?;
    text.parse().map_err(|_| none)
}
