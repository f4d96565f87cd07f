// SPDX-License-Identifier: GPL-2.0
//! The kernel's command line, without the values that may be anybody's secret.
//!
//! Passwords and keys come under any name. So a value is kept only where its parameter is known to
//! say how a kernel drives its hardware.

use crate::redact::Redactor;

/// Parameters whose values are kept: these, and those of these modules.
const PLAIN: [&str; 24] = [
    "amd_iommu",
    "cgroup_disable",
    "clocksource",
    "console",
    "crashkernel",
    "hugepages",
    "intel_idle.max_cstate",
    "intel_iommu",
    "iommu",
    "irqaffinity",
    "isolcpus",
    "loglevel",
    "maxcpus",
    "mem",
    "mitigations",
    "nohz_full",
    "nr_cpus",
    "pci",
    "pcie_aspm",
    "preempt",
    "rcu_nocbs",
    "swiotlb",
    "transparent_hugepage",
    "tsc",
];
const PLAIN_MODULES: [&str; 6] = ["hiops", "nvme", "nvme_core", "ahci", "libata", "iommu"];
/// A flag that is longer is no flag.
const LONGEST_FLAG: usize = 24;

/// The command line with all other values replaced.
pub(crate) fn clean(text: &str, redactor: &mut Redactor) -> String {
    let mut cleaned = Vec::new();
    // What follows is init's.
    let mut is_kernels = true;
    for word in words(text.trim()) {
        let part = match word.split_once('=') {
            _ if !is_kernels => redactor.token("value", word),
            Some((name, value)) if !is_plain(name) => {
                format!("{name}={}", redactor.token("value", value))
            }
            None if !is_flag(word) => redactor.token("value", word),
            _ => word.to_string(),
        };
        is_kernels &= word != "--";
        cleaned.push(part);
    }
    cleaned.join(" ")
}

/// Words, a blank between quotes being part of its word, as the kernel takes them.
fn words(text: &str) -> Vec<&str> {
    let mut quoted = false;
    let ends = |c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    };
    text.split(ends).filter(|word| !word.is_empty()).collect()
}

fn is_plain(name: &str) -> bool {
    let module = name.split_once('.').map(|(module, _)| module);
    PLAIN.contains(&name) || module.is_some_and(|module| PLAIN_MODULES.contains(&module))
}

/// Whether a word without a value looks like one of the kernel's own.
fn is_flag(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || matches!(c, '_' | '-' | '.');
    word.len() <= LONGEST_FLAG && word.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_values_are_kept() {
        let mut redactor = Redactor::new(&[]).unwrap();
        let line = "BOOT_IMAGE=/vmlinuz root=UUID=1 ro quiet hiops.mode=2 isolcpus=1-3 \
                    luks.key=\"a b\" again=\"a b\" Hunter2 -- arg=1 ro\n";
        assert_eq!(
            clean(line, &mut redactor),
            "BOOT_IMAGE=<value-1> root=<value-2> ro quiet hiops.mode=2 isolcpus=1-3 \
             luks.key=<value-3> again=<value-3> <value-4> -- <value-5> <value-6>"
        );
        assert_eq!(clean("", &mut redactor), "");
    }
}
