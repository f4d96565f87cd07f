// SPDX-License-Identifier: GPL-2.0
//! strategy
#![no_std]
#![forbid(unsafe_code)]
