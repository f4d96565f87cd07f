// SPDX-License-Identifier: GPL-2.0
//! What `hiopsctl advise` takes.

use crate::cli::seconds;
use clap::{value_parser, Args};
use std::path::PathBuf;

/// What is looked at, or measured.
#[derive(Args, Debug)]
pub(crate) struct AdviseOptions {
    /// So many seconds are looked at, 0.1 to 3600
    #[arg(short, long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) interval: f64,
    /// Measure this unused disk instead: fio reads it under the in-tree driver, under hiops and
    /// under the in-tree driver again; nothing is written, and it goes back to its driver
    #[arg(long, value_name = "DISK", conflicts_with = "interval")]
    pub(crate) ab: Option<String>,
    /// Runs of each load under each driver
    #[arg(
        long, default_value_t = 5, requires = "ab",
        value_parser = value_parser!(u32).range(3..=99)
    )]
    pub(crate) runs: u32,
    /// Seconds of each run
    #[arg(
        long, value_name = "SECONDS", default_value_t = 5, requires = "ab",
        value_parser = value_parser!(u32).range(1..=3600)
    )]
    pub(crate) seconds: u32,
    /// The folder for hiops-advise-DISK.txt, .json and .svg, which must not be there yet
    #[arg(long, value_name = "FOLDER", default_value = ".", requires = "ab")]
    pub(crate) pages: PathBuf,
}
