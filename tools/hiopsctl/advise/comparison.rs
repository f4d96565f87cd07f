// SPDX-License-Identifier: GPL-2.0
//! What runs under two drivers come to: medians, spread, and whether there is a difference.

use super::answer::{self, Answer};
use super::fio::{Reads, Run};
use serde::Serialize;

/// The in-tree driver agrees with itself if its medians before and after differ by no more.
pub(crate) const AGREE: f64 = 0.03;

/// One figure of some runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Figure {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// All figures of a load under one driver.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Figures {
    pub(crate) iops: Figure,
    pub(crate) p50_us: Figure,
    pub(crate) p99_us: Figure,
    pub(crate) cpu_us_per_io: Figure,
}

/// A load under the in-tree driver, under hiops, and under the in-tree driver again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Compared {
    pub(crate) load: &'static str,
    pub(crate) in_tree: Figures,
    pub(crate) hiops: Figures,
    pub(crate) in_tree_again: Figures,
    /// hiops over all runs of the in-tree driver.
    pub(crate) iops_ratio: f64,
    pub(crate) p99_ratio: f64,
    pub(crate) cpu_ratio: f64,
    /// How far the in-tree driver's two medians are apart.
    pub(crate) apart: f64,
    pub(crate) agree: bool,
    pub(crate) answer: Answer,
}

impl Figure {
    fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut all: Vec<f64> = values.into_iter().collect();
        all.sort_by(f64::total_cmp);
        let middle = all.len() / 2;
        let at = |at: usize| all.get(at).copied().unwrap_or(0.0);
        let median = if all.len() % 2 == 1 {
            at(middle)
        } else {
            (at(middle.saturating_sub(1)) + at(middle)) / 2.0
        };
        Self {
            median,
            least: all.first().copied().unwrap_or(0.0),
            most: all.last().copied().unwrap_or(0.0),
        }
    }

    /// How far its least and most are apart, as a share of the median.
    pub(crate) fn spread(&self) -> f64 {
        over(self.most - self.least, self.median)
    }
}

impl Figures {
    /// Those of `runs`.
    fn of(runs: &[Run]) -> Self {
        let figure = |of: fn(&Run) -> f64| Figure::of(runs.iter().map(of));
        Self {
            iops: figure(|run| run.iops),
            p50_us: figure(|run| run.p50_us),
            p99_us: figure(|run| run.p99_us),
            cpu_us_per_io: figure(|run| run.cpu_us),
        }
    }
}

/// `a / b`; 1 where there is nothing to divide by.
fn over(a: f64, b: f64) -> f64 {
    if b > 0.0 {
        a / b
    } else {
        1.0
    }
}

/// How far two medians are apart, as a share of their mean.
fn apart(a: &Figure, b: &Figure) -> f64 {
    2.0 * over((a.median - b.median).abs(), a.median + b.median)
}

/// What `load` came to under the in-tree driver, hiops, and the in-tree driver again.
pub(crate) fn compare(load: &Reads, before: &[Run], hiops: &[Run], after: &[Run]) -> Compared {
    let both: Vec<Run> = before.iter().chain(after).copied().collect();
    let (in_tree, hiops, in_tree_again) =
        (Figures::of(before), Figures::of(hiops), Figures::of(after));
    let all = Figures::of(&both);
    let iops_ratio = over(hiops.iops.median, all.iops.median);
    let cpu_ratio = over(hiops.cpu_us_per_io.median, all.cpu_us_per_io.median);
    let apart_iops = apart(&in_tree.iops, &in_tree_again.iops);
    let apart_cpu = apart(&in_tree.cpu_us_per_io, &in_tree_again.cpu_us_per_io);
    // Of single runs: half of the way from the least to the most is to either side.
    let noise = all.iops.spread().max(hiops.iops.spread()) / 2.0;
    let agree = apart_iops <= AGREE;
    Compared {
        load: load.name,
        iops_ratio,
        p99_ratio: over(hiops.p99_us.median, all.p99_us.median),
        cpu_ratio,
        apart: apart_iops,
        agree,
        answer: if agree {
            answer::of(iops_ratio, cpu_ratio, noise, apart_cpu)
        } else {
            Answer::TooNoisy
        },
        in_tree,
        hiops,
        in_tree_again,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::fio::LOADS;

    fn runs(iops: &[f64], cpu_us: f64) -> Vec<Run> {
        let run = |iops: &f64| Run {
            iops: *iops,
            p50_us: 80.0,
            p99_us: 100.0,
            cpu_us,
        };
        iops.iter().map(run).collect()
    }

    #[test]
    fn medians_have_their_ends() {
        let figure = Figure::of([5.0, 1.0, 3.0]);
        assert_eq!((figure.median, figure.least, figure.most), (3.0, 1.0, 5.0));
        assert_eq!(Figure::of([4.0, 1.0, 3.0, 2.0]).median, 2.5);
        assert_eq!(Figure::of([2.0, 4.0]).spread(), 2.0 / 3.0);
        assert_eq!(Figure::of([]), Figure::default());
    }

    #[test]
    fn the_in_tree_driver_has_to_agree_with_itself() {
        for (before, hiops, after, cpu, answer) in [
            (
                [100.0, 101.0, 99.0],
                [120.0; 3],
                [100.0; 3],
                4.0,
                Answer::Yes,
            ),
            ([100.0; 3], [80.0; 3], [101.0; 3], 4.0, Answer::No),
            (
                [100.0; 3],
                [101.0; 3],
                [101.0; 3],
                4.0,
                Answer::NoDifference,
            ),
            ([100.0; 3], [101.0; 3], [101.0; 3], 3.0, Answer::Yes),
            // Its two medians: 102.9 and 103.1.
            ([100.0; 3], [150.0; 3], [102.9; 3], 4.0, Answer::Yes),
            ([100.0; 3], [150.0; 3], [103.1; 3], 4.0, Answer::TooNoisy),
            // Single runs are further apart than the drivers.
            (
                [80.0, 100.0, 120.0],
                [110.0; 3],
                [100.0; 3],
                4.0,
                Answer::NoDifference,
            ),
            (
                [100.0; 3],
                [90.0, 110.0, 130.0],
                [100.0; 3],
                4.0,
                Answer::NoDifference,
            ),
        ] {
            let load = LOADS.first().unwrap();
            let (old, again) = (runs(&before, 4.0), runs(&after, 4.0));
            let compared = compare(load, &old, &runs(&hiops, cpu), &again);
            assert_eq!(compared.answer, answer, "{before:?} {hiops:?} {after:?}");
            assert_eq!(compared.cpu_ratio, cpu / 4.0);
        }
    }
}
