// SPDX-License-Identifier: GPL-2.0
//! The module's parameters (`c_shims/params.c`).

use kernel::prelude::*;

use crate::shims;
use crate::shims_safe::hiops_get_params;

/// Those that are numbers, by their names.
pub type Numbers = shims::hiops_params;

/// What they were given as.
pub fn numbers() -> Numbers {
    hiops_get_params()
}

/// The name of the strategy that queues begin with.
pub fn strategy() -> &'static str {
    // SAFETY: the parameter is a string that is there as long as the module, and never null.
    let name = unsafe { CStr::from_char_ptr(shims::hiops_strategy().cast()) };
    name.to_str().unwrap_or("?")
}
