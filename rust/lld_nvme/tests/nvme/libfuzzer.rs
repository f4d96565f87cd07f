// SPDX-License-Identifier: GPL-2.0
//! libFuzzer's way in; `rust/fuzz` builds it.
#![no_main]
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails loudly, and its names say what it is"
)]
#![allow(dead_code, reason = "the tests use more of the model")]

mod fuzz;
mod model;
mod rig;

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::run(input));
