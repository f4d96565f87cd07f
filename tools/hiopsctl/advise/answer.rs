// SPDX-License-Identifier: GPL-2.0
//! What a comparison comes to: one measure for what was measured for `docs/results.md` and for what
//! `--ab` measures on the reader's own drive.

use serde::Serialize;
use std::fmt;

/// So much more or less than the in-tree driver's IOPS is a difference: two boots of one machine
/// agree to 1 % for the in-tree drivers and to 2 % for hiops.
pub(crate) const IOPS: f64 = 0.03;
/// So much less CPU time an I/O is worth it where IOPS are equal.
pub(crate) const CPU: f64 = 0.10;

/// Whether hiops is worth it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Yes,
    No,
    NoDifference,
    /// Some loads gain and others lose.
    Depends,
    /// The in-tree driver does not agree with itself.
    TooNoisy,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::NoDifference => "no difference",
            Self::Depends => "it depends",
            Self::TooNoisy => "too noisy to say",
        })
    }
}

/// The answer to hiops' IOPS and CPU time an I/O over the in-tree driver's, of which differences
/// below `iops_noise` and `cpu_noise` are chance.
pub(crate) fn of(iops: f64, cpu: f64, iops_noise: f64, cpu_noise: f64) -> Answer {
    let enough = iops_noise.max(IOPS);
    if iops >= 1.0 + enough {
        Answer::Yes
    } else if iops <= 1.0 - enough {
        Answer::No
    } else if cpu <= 1.0 - cpu_noise.max(CPU) {
        Answer::Yes
    } else {
        Answer::NoDifference
    }
}

/// One answer for several loads.
pub(crate) fn of_all(answers: &[Answer]) -> Answer {
    let has = |answer| answers.contains(&answer);
    match (has(Answer::Yes), has(Answer::No)) {
        (true, true) => Answer::Depends,
        (true, false) => Answer::Yes,
        (false, true) => Answer::No,
        (false, false) if has(Answer::NoDifference) => Answer::NoDifference,
        (false, false) => Answer::TooNoisy,
    }
}

#[cfg(test)]
mod tests {
    use super::Answer::{Depends, No, NoDifference, TooNoisy, Yes};
    use super::*;

    #[test]
    fn differences_have_to_exceed_chance() {
        for (iops, cpu, noise, answer) in [
            (1.031, 1.0, 0.0, Yes),
            (1.029, 1.0, 0.0, NoDifference),
            (0.969, 1.0, 0.0, No),
            (0.971, 1.0, 0.0, NoDifference),
            // Less CPU time is worth it, but not in place of IOPS.
            (1.0, 0.89, 0.0, Yes),
            (1.0, 0.91, 0.0, NoDifference),
            (0.96, 0.5, 0.0, No),
            // What is noisier than that.
            (1.07, 1.0, 0.08, NoDifference),
            (1.09, 1.0, 0.08, Yes),
            (0.93, 1.0, 0.08, NoDifference),
            (0.91, 1.0, 0.08, No),
        ] {
            assert_eq!(of(iops, cpu, noise, 0.0), answer, "{iops} {cpu} {noise}");
        }
        assert_eq!(of(1.0, 0.85, 0.0, 0.2), NoDifference);
    }

    #[test]
    fn several_loads_have_one_answer() {
        for (all, one) in [
            (&[][..], TooNoisy),
            (&[TooNoisy, NoDifference], NoDifference),
            (&[TooNoisy, TooNoisy], TooNoisy),
            (&[NoDifference, Yes, TooNoisy], Yes),
            (&[NoDifference, No], No),
            (&[No, Yes], Depends),
        ] {
            assert_eq!(of_all(all), one, "{all:?}");
        }
    }
}
