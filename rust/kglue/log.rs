// SPDX-License-Identifier: GPL-2.0
//! What the operator reads: which device, what happened, what to do. Rare events only; nothing on
//! the data path.

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
