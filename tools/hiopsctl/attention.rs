// SPDX-License-Identifier: GPL-2.0
//! What asks for an operator's attention: what it is about, what is wrong, and the way out. The
//! exit status of `status` and `doctor` says what it is about.

use crate::failure::Failure;
use serde::Serialize;

/// What a finding is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Area {
    /// Kernels, and the module for each.
    Module,
    /// What binds drives at boot: the list, the initramfs, the unit.
    Boot,
    /// Names that a change of the driver breaks.
    Names,
    /// What watches drives, and udev.
    Watching,
    /// A drive or its disk.
    Drive,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Finding {
    pub(crate) area: Area,
    pub(crate) what: String,
    pub(crate) way_out: String,
}

/// The statuses of `status` and `doctor`, below their help.
pub(crate) const STATUSES: &str = "Exit status: 0 nothing asks for attention; 1 it could not be \
    done, and stderr says why; 2 usage; else the sum of what there is something to do about: 4 \
    the kernel or the module, 8 what binds drives at boot, 16 names that a change of the driver \
    breaks, 32 smartd or udev, 64 a drive.";

impl Area {
    /// Its part of the exit status: 1 and 2 are every command's.
    fn bit(self) -> u8 {
        match self {
            Self::Module => 4,
            Self::Boot => 8,
            Self::Names => 16,
            Self::Watching => 32,
            Self::Drive => 64,
        }
    }
}

impl Finding {
    /// `what` is wrong; `way_out` helps.
    pub(crate) fn new(area: Area, what: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self {
            area,
            what: what.into(),
            way_out: way_out.into(),
        }
    }
}

/// How a command ends that has told `findings`.
///
/// # Errors
/// There are some: the status says what they are about.
pub(crate) fn ended(findings: &[Finding]) -> Result<(), Failure> {
    let bits = findings
        .iter()
        .fold(0, |bits, finding| bits | finding.area.bit());
    match bits {
        0 => Ok(()),
        bits => Err(Failure::Found(bits)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_the_sum_of_the_areas() {
        let of = |areas: &[Area]| {
            let all: Vec<Finding> = areas.iter().map(|it| Finding::new(*it, "", "")).collect();
            match ended(&all) {
                Err(Failure::Found(bits)) => bits,
                _ => 0,
            }
        };
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&[Area::Module, Area::Module]), 4);
        assert_eq!(of(&[Area::Boot, Area::Names]), 24);
        assert_eq!(of(&[Area::Watching, Area::Drive]), 96);
    }
}
