// SPDX-License-Identifier: GPL-2.0
//! What `c_shims/` declares, read by bindgen at build time.
#![allow(
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    dead_code,
    improper_ctypes,
    clashing_extern_declarations,
    clippy::all,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    unreachable_pub,
    unsafe_op_in_unsafe_fn
)]

use kernel::bindings::*;
use kernel::ffi;

include!("shims_generated.rs");
