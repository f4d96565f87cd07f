// SPDX-License-Identifier: GPL-2.0
//! How long requests take: a disk's histograms, `/sys/block/DISK/hiops/latency_*`, what they have
//! grown by, and what is read from them. No disk is listed here: see `latencies`.

use crate::pairs::Pairs;
use serde::Serialize;

/// What requests ask for, as the files are named.
pub(crate) const OPERATIONS: [&str; 3] = ["read", "write", "other"];

/// A row of them, from nothing to all.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Requests that took as long.
#[derive(Clone, Debug, PartialEq)]
struct Bucket {
    /// They took less than that; `None`: any time.
    end_ns: Option<u64>,
    /// How many, by the context that ended them.
    counts: Vec<u64>,
}

/// One file: what it says of each context.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Histogram {
    contexts: Vec<String>,
    /// Those in which there are any, from the shortest time on.
    buckets: Vec<Bucket>,
    sums_ns: Vec<u64>,
}

/// What is read from a histogram. A percentile is the end of the bucket that it falls in: the true
/// one is below that, by a third at most.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Summary {
    pub(crate) count: u64,
    pub(crate) mean_ns: Option<u64>,
    pub(crate) p50_ns: Option<u64>,
    pub(crate) p99_ns: Option<u64>,
    pub(crate) p999_ns: Option<u64>,
    /// How many ended in each context.
    pub(crate) contexts: Pairs<u64>,
    /// Where each bucket ends that is not empty, and how many are in it.
    pub(crate) buckets: Counts,
}

/// Where buckets end, `None` of the last, and how many are in each.
pub(crate) type Counts = Vec<(Option<u64>, u64)>;

/// The sum of counts.
fn sum(counts: &[u64]) -> u64 {
    counts.iter().copied().fold(0, u64::saturating_add)
}

impl Histogram {
    /// Reads the file's text: contexts, buckets, sums. `None`: it is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(|line| line.split(' '));
        let mut head = lines.next()?;
        if head.next()? != "below_ns" {
            return None;
        }
        let mut read = Self {
            contexts: head.map(str::to_string).collect(),
            ..Self::default()
        };
        for mut line in lines {
            let end = line.next()?;
            let counts: Option<Vec<u64>> = line.map(|count| count.parse().ok()).collect();
            let counts = counts.filter(|counts| counts.len() == read.contexts.len())?;
            match end {
                "sum_ns" => read.sums_ns = counts,
                "inf" => read.buckets.push(Bucket {
                    end_ns: None,
                    counts,
                }),
                end => read.buckets.push(Bucket {
                    end_ns: Some(end.parse().ok()?),
                    counts,
                }),
            }
        }
        (read.sums_ns.len() == read.contexts.len()).then_some(read)
    }

    /// What has come since `before`, and whether somebody has zeroed it meanwhile: then it is what
    /// came after that.
    pub(crate) fn since(&self, before: &Self) -> (Self, bool) {
        let old = |end_ns| {
            let mut buckets = before.buckets.iter();
            let found = buckets.find(|bucket| bucket.end_ns == end_ns)?;
            Some(&found.counts)
        };
        let mut grown = self.clone();
        for bucket in &mut grown.buckets {
            let Some(old) = old(bucket.end_ns) else {
                continue;
            };
            for (count, old) in bucket.counts.iter_mut().zip(old) {
                match count.checked_sub(*old) {
                    Some(more) => *count = more,
                    None => return (self.clone(), true),
                }
            }
        }
        let is_there = |end_ns| self.buckets.iter().any(|bucket| bucket.end_ns == end_ns);
        if !before.buckets.iter().all(|bucket| is_there(bucket.end_ns)) {
            return (self.clone(), true);
        }
        for (ns, old) in grown.sums_ns.iter_mut().zip(&before.sums_ns) {
            *ns = ns.saturating_sub(*old);
        }
        (grown, false)
    }

    /// Where each bucket ends, and how many are in it, whatever context ended them.
    fn all(&self) -> Counts {
        let buckets = self.buckets.iter();
        let all = buckets.map(|bucket| (bucket.end_ns, sum(&bucket.counts)));
        all.filter(|(_, count)| *count != 0).collect()
    }

    /// What is to be told of it.
    pub(crate) fn summary(&self) -> Summary {
        let buckets = self.all();
        let count = buckets
            .iter()
            .fold(0u64, |all, (_, n)| all.saturating_add(*n));
        let of = |per_mille| percentile(&buckets, per_mille);
        let by_context = |(at, name): (usize, &String)| {
            let counts = self
                .buckets
                .iter()
                .filter_map(|bucket| bucket.counts.get(at));
            (name.clone(), counts.copied().fold(0, u64::saturating_add))
        };
        Summary {
            count,
            mean_ns: sum(&self.sums_ns).checked_div(count),
            p50_ns: of(500),
            p99_ns: of(990),
            p999_ns: of(999),
            contexts: Pairs(self.contexts.iter().enumerate().map(by_context).collect()),
            buckets,
        }
    }

    /// For each context that has ended anything: its name, its buckets, and the nanoseconds that
    /// all took.
    pub(crate) fn by_context(&self) -> Vec<(&str, Counts, u64)> {
        let contexts = self.contexts.iter().enumerate();
        let one = contexts.map(|(at, name)| {
            let count = |bucket: &Bucket| bucket.counts.get(at).copied().unwrap_or(0);
            let buckets = self.buckets.iter();
            let counts = buckets.map(|bucket| (bucket.end_ns, count(bucket)));
            let sum_ns = self.sums_ns.get(at).copied().unwrap_or(0);
            (name.as_str(), counts.collect(), sum_ns)
        });
        one.filter(|(_, counts, _): &(_, Counts, _)| counts.iter().any(|(_, n)| *n != 0))
            .collect()
    }
}

/// The end of the bucket in which the first is that so many of a thousand are not above; `None`:
/// there are none, or the bucket has no end.
fn percentile(buckets: &[(Option<u64>, u64)], per_mille: u64) -> Option<u64> {
    let wide = |n: u64| u128::from(n);
    let all: u128 = buckets.iter().map(|(_, count)| wide(*count)).sum();
    let mut below = 0;
    for (end_ns, count) in buckets {
        below += wide(*count);
        if below > 0 && below * 1000 >= all * wide(per_mille) {
            return *end_ns;
        }
    }
    None
}

/// Where all buckets end, in nanoseconds: as the driver has them (`rust/engine/latency.rs`).
pub(crate) fn ends_ns() -> impl Iterator<Item = u64> {
    let power = |power: u32| [2_000u64 << power, 3_000u64 << power];
    std::iter::once(1_000)
        .chain(std::iter::once(1_500))
        .chain((0..24).flat_map(power))
        .take_while(|end_ns| *end_ns <= 16_777_216_000)
}

/// A bar for each bucket from the first to the last that has anything in it, those between them
/// included: as high as it has requests, beside the one that has most.
pub(crate) fn sparkline(buckets: &[(Option<u64>, u64)]) -> String {
    let most = buckets.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let place = |end_ns: &Option<u64>| match end_ns {
        Some(end_ns) => ends_ns().position(|end| end >= *end_ns),
        None => Some(ends_ns().count()),
    };
    let mut line = String::new();
    let mut at = None;
    for (end_ns, count) in buckets.iter().filter(|(_, count)| *count != 0) {
        let here = place(end_ns).unwrap_or(0);
        let blanks = at.map_or(0, |at: usize| here.saturating_sub(at).saturating_sub(1));
        line.push_str(&" ".repeat(blanks));
        at = Some(here);
        let high = u128::from(*count) * 8 / u128::from(most.max(1));
        // CAST: 8 at most.
        let bar = BARS.get((high as usize).saturating_sub(1));
        line.push(bar.copied().unwrap_or(' '));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &str) -> Histogram {
        let text = format!("below_ns irq coop\n{lines}");
        Histogram::parse(&text).unwrap()
    }

    #[test]
    fn what_is_no_histogram_is_none() {
        assert_eq!(of("sum_ns 0 0\n").summary().count, 0);
        for text in [
            "",
            "submitted 4\n",
            "below_ns irq\n",
            "below_ns irq\n1000 1 1\nsum_ns 5\n",
            "below_ns irq\n1000 x\nsum_ns 5\n",
            "below_ns irq\nlong 1\nsum_ns 5\n",
        ] {
            assert_eq!(Histogram::parse(text), None, "{text}");
        }
    }

    #[test]
    fn percentiles_are_ends_of_buckets() {
        let read =
            of("96000 400 100\n128000 450 40\n256000 0 9\ninf 0 1\nsum_ns 90000000 9000000\n");
        let summary = read.summary();
        assert_eq!((summary.count, summary.mean_ns), (1000, Some(99_000)));
        assert_eq!(
            (summary.p50_ns, summary.p99_ns),
            (Some(96_000), Some(128_000))
        );
        assert_eq!(summary.p999_ns, Some(256_000));
        assert_eq!(summary.contexts.get("coop"), Some(150));
        assert_eq!(percentile(&summary.buckets, 1000), None);
        let none = of("sum_ns 0 0\n").summary();
        assert_eq!((none.p50_ns, none.mean_ns), (None, None));
        let one = of("1000 1 0\nsum_ns 7 0\n").summary();
        assert_eq!((one.p50_ns, one.p999_ns), (Some(1_000), Some(1_000)));
    }

    #[test]
    fn growth_is_told_from_what_was_zeroed() {
        let before = of("1000 5 0\n1500 1 1\nsum_ns 6000 1400\n");
        let (grown, was_reset) =
            of("1000 7 0\n1500 1 1\n2000 0 3\nsum_ns 8000 7000\n").since(&before);
        assert!(!was_reset);
        assert_eq!(grown.all(), [(Some(1_000), 2), (Some(2_000), 3)]);
        assert_eq!(grown.sums_ns, [2_000, 5_600]);
        let fewer = of("1000 4 0\n1500 1 1\nsum_ns 5000 1400\n");
        assert_eq!(fewer.since(&before), (fewer.clone(), true));
        let gone = of("1000 9 0\nsum_ns 9000 0\n");
        assert_eq!(gone.since(&before), (gone.clone(), true));
    }

    #[test]
    fn contexts_that_have_ended_nothing_are_left_out() {
        let read = of("1000 5 0\nsum_ns 6000 0\n");
        assert_eq!(read.by_context(), [("irq", vec![(Some(1_000), 5)], 6_000)]);
    }

    #[test]
    fn a_sparkline_has_a_place_for_each_bucket_between_the_ends() {
        let line = |buckets: &[(Option<u64>, u64)]| sparkline(buckets);
        assert_eq!(line(&[]), "");
        assert_eq!(line(&[(Some(1_000), 1)]), "█");
        let buckets = [(Some(96_000), 80), (Some(128_000), 40), (Some(256_000), 1)];
        assert_eq!(line(&buckets), "█▄ ▁");
        assert_eq!(line(&[(Some(16_777_216_000), 8), (None, 8)]), "██");
    }

    #[test]
    fn ends_are_the_drivers() {
        let ends: Vec<u64> = ends_ns().collect();
        assert_eq!(ends.len(), 49);
        assert_eq!(ends[..5], [1_000, 1_500, 2_000, 3_000, 4_000]);
        assert_eq!(ends[47..], [12_582_912_000, 16_777_216_000]);
    }
}
