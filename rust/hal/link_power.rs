// SPDX-License-Identifier: GPL-2.0
//! How much the link to a device may sleep.

/// A policy, from none to most that is saved. What each comes to on a certain link is the driver's
/// to say; the names are those of the in-tree drivers (Linux 7.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum LinkPower {
    /// As the firmware of the machine has set it. It is where a link begins, and nothing to be
    /// chosen.
    #[default]
    Firmware,
    /// It stays awake.
    MaxPerformance,
    /// It sleeps lightly, where the host has it do so.
    MediumPower,
    /// Likewise, and as deep as the device asks for.
    MediumPowerWithDipm,
    /// It sleeps as deep as the device asks for, and lightly where the host has it sleep.
    MinPowerWithPartial,
    /// It sleeps deep.
    MinPower,
}

impl LinkPower {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Firmware,
        Self::MaxPerformance,
        Self::MediumPower,
        Self::MediumPowerWithDipm,
        Self::MinPowerWithPartial,
        Self::MinPower,
    ];

    /// What an operator calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Firmware => "keep_firmware_settings",
            Self::MaxPerformance => "max_performance",
            Self::MediumPower => "medium_power",
            Self::MediumPowerWithDipm => "med_power_with_dipm",
            Self::MinPowerWithPartial => "min_power_with_partial",
            Self::MinPower => "min_power",
        }
    }

    /// The one of this name that can be chosen.
    pub fn of_name(name: &[u8]) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|policy| policy.name().as_bytes() == name && *policy != Self::Firmware)
    }

    /// The one of this number, from 0, in the order of [`LinkPower::ALL`].
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_lead_back() {
        for (number, policy) in (0u8..).zip(LinkPower::ALL) {
            assert_eq!(LinkPower::of_number(number), Some(policy));
            assert_eq!(policy as u8, number);
            let chosen = Some(policy).filter(|policy| *policy != LinkPower::Firmware);
            assert_eq!(LinkPower::of_name(policy.name().as_bytes()), chosen);
        }
        assert_eq!(LinkPower::of_number(6), None);
        for nonsense in [
            "",
            "min",
            "min_power ",
            "MIN_POWER",
            "min_power_with_partial_",
        ] {
            assert_eq!(LinkPower::of_name(nonsense.as_bytes()), None, "{nonsense}");
        }
    }
}
