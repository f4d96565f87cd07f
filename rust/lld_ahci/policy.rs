// SPDX-License-Identifier: GPL-2.0
//! What a policy of link power management comes to, with what HBA and drive have of it.
//!
//! | policy | Partial | Slumber | HBA (ALPM) | drive (DIPM) |
//! | --- | --- | --- | --- | --- |
//! | `max_performance` | – | – | – | – |
//! | `medium_power` | allowed | – | to Partial | – |
//! | `med_power_with_dipm`, `min_power_with_partial` | allowed | allowed | to Partial | asks |
//! | `min_power` | allowed | allowed | to Slumber | asks |
//!
//! This is libata's (Linux 7.3: `sata_link_scr_lpm`, `ahci_set_lpm`, `ata_eh_link_set_lpm`), but
//! for DevSleep, which is never entered here: in tree the last two may add it. Where the HBA lacks
//! a state it is not allowed, and no ALPM is asked for that would lead there.

use crate::boards::Boards;
use crate::identify::DriveId;
use crate::lpm::Leave;
use crate::regs::{Cap, CMD_ALPE, CMD_ASP, SCTL_AWAKE, SCTL_NO_PARTIAL, SCTL_NO_SLUMBER};
use hal::LinkPower;

/// What HBA and drive have of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Means {
    /// Partial, Slumber.
    pub(crate) partial: bool,
    pub(crate) slumber: bool,
    /// The HBA may have the link sleep.
    pub(crate) alpm: bool,
    /// The drive may ask for it.
    pub(crate) dipm: bool,
}

impl Means {
    /// Those of a drive behind an HBA of `cap`, known as `board`.
    pub(crate) fn of(cap: Cap, board: Boards, id: &DriveId) -> Self {
        let (partial, slumber) = (cap.has_partial(), cap.has_slumber());
        Self {
            partial,
            slumber,
            alpm: cap.has_alpm() && id.hipm,
            // Some drives are upset by a state that is denied to them: all or nothing.
            dipm: id.has_dipm && partial && slumber && !board.has(Boards::NO_DIPM),
        }
    }
}

impl Leave {
    /// What `policy` gives leave to; of the firmware's, [`Leave::NONE`].
    pub(crate) fn of(policy: LinkPower, means: Means) -> Self {
        let (deep, alpm) = match policy {
            LinkPower::Firmware | LinkPower::MaxPerformance => return Self::NONE,
            LinkPower::MediumPower => (false, CMD_ALPE),
            LinkPower::MediumPowerWithDipm | LinkPower::MinPowerWithPartial => (true, CMD_ALPE),
            // Without Slumber it is as deep as can be.
            LinkPower::MinPower if means.slumber => (true, CMD_ALPE | CMD_ASP),
            LinkPower::MinPower => (true, CMD_ALPE),
        };
        let partial = if means.partial { 0 } else { SCTL_NO_PARTIAL };
        let slumber = match deep && means.slumber {
            true => 0,
            false => SCTL_NO_SLUMBER,
        };
        let leads_to_partial = alpm & CMD_ASP == 0;
        let leads_somewhere = means.partial || !leads_to_partial;
        Self {
            ipm: partial | slumber,
            alpm: match means.alpm && leads_somewhere {
                true => alpm,
                false => 0,
            },
            dipm: deep && means.dipm,
        }
    }
}

/// Why no link of an HBA of `cap` is ever given leave to sleep, at a port that is `external`.
pub(crate) fn refusal(cap: Cap, external: bool) -> Option<&'static str> {
    if !cap.has_partial() && !cap.has_slumber() {
        Some("the controller has neither Partial nor Slumber (CAP.PSC, SSC)")
    } else if external {
        Some("the port is for hot-plug (PxCMD.HPCP, ESP), which a link that sleeps does not notice")
    } else {
        None
    }
}

const _: () = assert!(SCTL_AWAKE == SCTL_NO_PARTIAL | SCTL_NO_SLUMBER);

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use LinkPower::*;

    const ALL: Means = Means {
        partial: true,
        slumber: true,
        alpm: true,
        dipm: true,
    };

    /// IPM, ALPE, ASP, DIPM.
    fn leave(policy: LinkPower, means: Means) -> (u32, bool, bool, bool) {
        let leave = Leave::of(policy, means);
        assert_eq!(leave.ipm & !SCTL_AWAKE, 0);
        assert!(leave.alpm & CMD_ASP == 0 || leave.alpm & CMD_ALPE != 0);
        let sleeps = leave.ipm >> 8 != 3 && (leave.alpm != 0 || leave.dipm);
        assert_eq!(leave.may_sleep(), sleeps);
        let has = |bit| leave.alpm & bit != 0;
        (leave.ipm >> 8, has(CMD_ALPE), has(CMD_ASP), leave.dipm)
    }

    #[test]
    fn policies_are_what_they_are_in_tree() {
        let cases = [
            (Firmware, (3, false, false, false)),
            (MaxPerformance, (3, false, false, false)),
            (MediumPower, (2, true, false, false)),
            (MediumPowerWithDipm, (0, true, false, true)),
            (MinPowerWithPartial, (0, true, false, true)),
            (MinPower, (0, true, true, true)),
        ];
        for (policy, wanted) in cases {
            assert_eq!(leave(policy, ALL), wanted, "{policy:?}");
        }
    }

    #[test]
    fn what_is_not_there_is_not_used() {
        let no_partial = Means {
            partial: false,
            dipm: false,
            ..ALL
        };
        assert_eq!(leave(MediumPower, no_partial), (3, false, false, false));
        assert_eq!(
            leave(MinPowerWithPartial, no_partial),
            (1, false, false, false)
        );
        assert_eq!(leave(MinPower, no_partial), (1, true, true, false));
        let no_slumber = Means {
            slumber: false,
            dipm: false,
            ..ALL
        };
        assert_eq!(leave(MediumPower, no_slumber), (2, true, false, false));
        assert_eq!(leave(MinPower, no_slumber), (2, true, false, false));
        let no_alpm = Means { alpm: false, ..ALL };
        assert_eq!(leave(MediumPower, no_alpm), (2, false, false, false));
        assert_eq!(leave(MinPower, no_alpm), (0, false, false, true));
        let no_dipm = Means { dipm: false, ..ALL };
        assert_eq!(leave(MediumPowerWithDipm, no_dipm), (0, true, false, false));
    }

    #[test]
    fn ports_and_controllers_that_may_not_are_named() {
        let states = |bits: u32| Cap(bits << 13);
        assert!(refusal(states(0), false).is_some_and(|why| why.contains("Partial")));
        assert!(refusal(states(3), true).is_some_and(|why| why.contains("hot-plug")));
        assert_eq!(refusal(states(1), false), None);
        assert_eq!(refusal(states(2), false), None);
    }
}
