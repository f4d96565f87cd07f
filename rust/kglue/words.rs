// SPDX-License-Identifier: GPL-2.0
//! Module parameters that are words (`c_shims/params.c`).

use crate::shims;
use kernel::prelude::*;

/// The name of the strategy that queues begin with.
pub fn strategy() -> &'static str {
    // SAFETY: the parameter is a string that is there as long as the module, and never null.
    let name = unsafe { CStr::from_char_ptr(shims::hiops_strategy().cast()) };
    name.to_str().unwrap_or("?")
}
