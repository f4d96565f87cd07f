// SPDX-License-Identifier: GPL-2.0
//! lld_ram
#![no_std]
#![forbid(unsafe_code)]
