// SPDX-License-Identifier: GPL-2.0
//! lld_nvme whole, against a model controller on a machine of ordinary memory.
#![allow(missing_docs, clippy::indexing_slicing)]

mod bringup;
mod data;
mod faults;
mod hostile;
mod io;
mod machine;
mod model;
mod namespaces;
mod pin;
mod reset;
mod rig;
mod tools;
mod whole;
