// SPDX-License-Identifier: GPL-2.0
//! lld_nvme
#![no_std]
#![forbid(unsafe_code)]
