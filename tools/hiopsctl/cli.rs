// SPDX-License-Identifier: GPL-2.0
//! The command line: what `--help`, completions and manual pages say comes from here.

use crate::advise::AdviseOptions;
use crate::attention::STATUSES;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

/// What the exit status tells, below each help.
const STATUS: &str = "Exit status: 0 well; 1 it could not be done, and stderr says why; 2 usage.";

/// Which build this is: `ci/version` of its tree, the module's `modinfo -F version`.
pub(crate) const VERSION: &str = match option_env!("HIOPS_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// Lists, shows, sets and hands over what the hiops driver serves
///
/// A DISK is named as in /dev (hiops0n1 or /dev/hiops0n1), by a partition or a link of /dev/disk, a
/// controller by its PCI address (0000:01:00.0, or 01:00.0), its own node (nvme0, hiops0), or a
/// DISK of it.
#[derive(Debug, Parser)]
#[command(name = "hiopsctl", version = VERSION, after_help = STATUS)]
pub(crate) struct Cli {
    /// Print JSON instead of text; what goes wrong, too (docs/schemas has its form)
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The folder that is read instead of / (for tests)
    #[arg(
        long,
        global = true,
        hide = true,
        env = "HIOPS_ROOT",
        default_value = "/"
    )]
    pub(crate) root: PathBuf,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// A command, with what it takes.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List NVMe and AHCI controllers with their disks: driver, model, who uses them
    List,
    /// Show the module, each controller's settings, and what asks for attention
    #[command(after_help = STATUSES)]
    Status {
        /// Only these disks' controllers
        #[arg(value_name = "DISK")]
        disks: Vec<String>,
    },
    /// Print a disk's settings, or one of them
    Get {
        /// A disk that hiops serves
        disk: String,
        /// A file of /sys/block/DISK/hiops; all settings if left out
        name: Option<String>,
    },
    /// Change a setting of a disk; it lasts until the disk goes, or for good
    Set {
        /// A disk that hiops serves
        disk: String,
        /// A file of /sys/block/DISK/hiops, for example mode
        name: String,
        /// What is written there, for example poll
        value: String,
        /// Keep it in /etc/hiops/switches, by the drive's serial number: it is set whenever the
        /// disk comes
        #[arg(long)]
        save: bool,
    },
    /// Set what is kept of disks, as udev has it done whenever one comes
    Apply {
        /// Only these disks
        #[arg(value_name = "DISK")]
        disks: Vec<String>,
    },
    /// Keep a setting of a disk no more
    Forget {
        /// A disk that hiops serves
        disk: String,
        /// A setting; all that are kept if left out
        name: Option<String>,
    },
    /// Show what disks do: IOPS, who completes, interrupts, FIFO, depth, what was learnt
    Stat(StatOptions),
    /// Hand a controller to hiops, by hiops-bind
    Bind {
        /// The address of a PCI function, or a disk of it
        #[arg(value_name = "ADDRESS|DISK")]
        device: String,
        /// The driver; hiops_nvme or hiops_ahci by the controller's class if left out
        driver: Option<String>,
    },
    /// Give a controller back to the in-tree driver, by hiops-bind
    Unbind {
        /// The address of a PCI function, or a disk of it
        #[arg(value_name = "ADDRESS|DISK")]
        device: String,
        /// The driver, or none; nvme or ahci by the controller's class if left out
        driver: Option<String>,
    },
    /// Have drives be hiops' at every boot; what they are now stays
    ///
    /// The drive is written to /etc/hiops/devices, with its serial number where there is one, and
    /// the initramfs is made anew. (An AHCI controller with several drives is listed by its address
    /// alone.)
    Enable {
        /// The address of a PCI function, or a disk of it
        #[arg(value_name = "ADDRESS|DISK", required = true)]
        devices: Vec<String>,
    },
    /// Leave drives to the in-tree drivers from the next boot on
    Disable {
        /// The address of a PCI function, or a disk of it
        #[arg(value_name = "ADDRESS|DISK", required = true)]
        devices: Vec<String>,
    },
    /// Look for all that may keep drives from being as they were set, now and after the next boot
    ///
    /// Kernels and the module for each, what the initramfs holds, lockdown, the list of devices,
    /// names in fstab, crypttab and the kernel's command line, saved switches, udev's rules,
    /// smartd's lines. It changes nothing.
    #[command(after_help = STATUSES)]
    Doctor,
    /// Check the list of devices that are bound at boot
    ///
    /// A line is ADDRESS [DRIVER] [serial=NUMBER]; # begins a comment. DRIVER is hiops_nvme if left
    /// out. With serial= the drive is left alone where another one has come to that address; in
    /// NUMBER a ? stands for any one byte, such as a blank.
    Check {
        /// The list; /etc/hiops/devices if left out
        file: Option<PathBuf>,
    },
    /// Say whether hiops is worth it for what each drive does now; or measure it (--ab)
    ///
    /// The rules are those of docs/results.md: it wins where CPUs are short of time, with many
    /// threads or deep queues on few cores, and on SATA; where the device is what is waited for, it
    /// makes no difference.
    Advise(AdviseOptions),
    /// Show the steps of the next I/Os of a disk, by hiops-trace
    Trace {
        /// A disk that hiops serves
        disk: String,
        /// So many I/Os
        #[arg(default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
        count: u32,
    },
    /// Write one file for a bug report, with no secrets in it
    ///
    /// Serial numbers, WWIDs, NQNs, UUIDs, names of hosts, addresses of networks, keys and
    /// passwords are replaced: each always by the same word, so that lines can be compared.
    Report {
        /// The file, which must not be there yet; - is stdout
        /// [default: hiops-report.txt, hiops-report.json with --json]
        file: Option<PathBuf>,
    },
    /// Print all counters for Prometheus (node_exporter's textfile collector)
    ///
    /// hiops-metrics.timer writes them four times a minute to where Debian's node_exporter looks,
    /// once it is enabled: systemctl enable --now hiops-metrics.timer.
    Metrics {
        /// Write them to this file, which is replaced as a whole and readable by all; a device or
        /// pipe is written; - is stdout
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// List NVMe namespaces as `nvme list` does, those of hiops too
    NvmeList {
        /// A table, or JSON with the keys and types of `nvme list -o json`
        #[arg(short, long, value_name = "FORMAT", default_value = "normal")]
        output_format: crate::nvme_list::Format,
    },
    /// Print the lines that smartd.conf needs for the disks of hiops, above DEVICESCAN
    Smartd,
    /// Print the completions of a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages to a folder, or print the first one
    Man {
        /// An existing folder, for example /usr/local/share/man/man8
        folder: Option<PathBuf>,
    },
}

/// How `stat` looks.
#[derive(Args, Debug)]
pub(crate) struct StatOptions {
    /// Only these disks
    #[arg(value_name = "DISK")]
    pub(crate) disks: Vec<String>,
    /// Show how long requests took, of disks that measure it (hiopsctl set DISK latency 1)
    #[arg(short, long)]
    pub(crate) latency: bool,
    /// Look again and again: on a terminal on a screen of its own, until q is pressed
    ///
    /// The arrows to the left and right choose the column that rows are sorted by, r the other
    /// order, those up and down scroll, Tab shows the controllers and what was learnt.
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Seconds between two looks, 0.1 to 3600
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) interval: f64,
    /// End after so many looks; implies --watch
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
}

/// An interval that is neither a busy loop nor endless.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "it is no number of seconds, like 0.5 or 10".to_string())?;
    if (0.1..=3600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("it is not between 0.1 and 3600 seconds".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn intervals_have_two_ends() {
        for (text, is) in [
            ("0.1", Ok(0.1)),
            ("3600", Ok(3600.0)),
            ("0.09", Err(())),
            ("3600.1", Err(())),
            ("NaN", Err(())),
            ("inf", Err(())),
            ("-1", Err(())),
            ("fast", Err(())),
        ] {
            assert_eq!(seconds(text).map_err(drop), is, "{text}");
        }
    }
}
