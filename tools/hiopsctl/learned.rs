// SPDX-License-Identifier: GPL-2.0
//! What a controller's strategy has learnt, `/sys/block/DISK/hiops/learned`: a line for what things
//! take on this machine, and a line for each of the first queues.

use crate::pairs::Pairs;
use crate::show::nanoseconds;
use serde::Serialize;

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Learned {
    /// What a sleep, a yield and a tick take: `sleep_ns` and so on.
    pub(crate) costs: Pairs<u64>,
    /// By queue.
    pub(crate) queues: Vec<Queue>,
}

/// What is known of a queue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Queue {
    pub(crate) queue: u64,
    pub(crate) interrupt_ns: u64,
    pub(crate) polled: bool,
    /// For each thing that may pay how many nanoseconds it may lose before it is given up; none: it
    /// was.
    pub(crate) credit_ns: Pairs<Option<u64>>,
}

impl Learned {
    /// Reads the file. What a later version adds and this one does not know is left out.
    pub(crate) fn parse(text: &str) -> Self {
        let mut learned = Self::default();
        for line in text.lines() {
            let mut pairs = pairs(line);
            if pairs.first().is_some_and(|(name, _)| name == "queue") {
                learned.queues.extend(queue(&mut pairs));
            } else {
                let known = pairs.into_iter().filter_map(|(name, it)| Some((name, it?)));
                learned.costs.0.extend(known);
            }
        }
        learned
    }

    /// For people: a line for what things take, and one for the queues: on how many of them each
    /// thing still pays.
    pub(crate) fn lines(&self) -> [String; 2] {
        let costs = self.costs.0.iter().map(|(name, ns)| {
            let name = name.trim_end_matches("_ns");
            format!("{name} {}", nanoseconds(*ns))
        });
        let mut takes: Vec<String> = costs.collect();
        let Some(middle) = self.middle_interrupt_ns() else {
            return [takes.join(", "), String::new()];
        };
        takes.push(format!("interrupt {}", nanoseconds(middle)));
        let polled = self.queues.iter().filter(|queue| queue.polled).count();
        let pays = self.things().map(|name| {
            let pays = |queue: &&Queue| queue.credit_ns.get(name).flatten().is_some();
            let count = self.queues.iter().filter(pays).count();
            format!("{name} {count}")
        });
        let pays: Vec<String> = pays.collect();
        let count = self.queues.len();
        let unit = if count == 1 { "queue" } else { "queues" };
        let mut queues = format!("{count} {unit}: polled {polled}");
        if !pays.is_empty() {
            queues.push_str(&format!("; pays on: {}", pays.join(", ")));
        }
        [takes.join(", "), queues]
    }

    /// What may pay, by name.
    fn things(&self) -> impl Iterator<Item = &str> {
        let first = self.queues.first().into_iter();
        first.flat_map(|queue| queue.credit_ns.0.iter().map(|(name, _)| name.as_str()))
    }

    /// The median of what an interrupt takes, over the queues.
    fn middle_interrupt_ns(&self) -> Option<u64> {
        let mut all: Vec<u64> = self.queues.iter().map(|q| q.interrupt_ns).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }
}

/// The line's names and values; none for a `-`. What is no number ends it.
fn pairs(line: &str) -> Vec<(String, Option<u64>)> {
    let mut words = line.split_whitespace();
    let mut pairs = Vec::new();
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        match (value, value.parse()) {
            ("-", _) => pairs.push((name.to_string(), None)),
            (_, Ok(number)) => pairs.push((name.to_string(), Some(number))),
            (_, Err(_)) => break,
        }
    }
    pairs
}

/// A queue's line; what has no name of its own is what may pay.
fn queue(pairs: &mut Vec<(String, Option<u64>)>) -> Option<Queue> {
    let mut take = |wanted: &str| {
        let at = pairs.iter().position(|(name, _)| name == wanted)?;
        pairs.remove(at).1
    };
    Some(Queue {
        queue: take("queue")?,
        interrupt_ns: take("interrupt_ns")?,
        polled: take("polled")? != 0,
        credit_ns: Pairs(std::mem::take(pairs)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "sleep_ns 4100 yield_ns 900 tick_ns 2000\n\
        queue 0 interrupt_ns 1900 polled 1 polling 50000 napping -\n\
        queue 1 interrupt_ns 2500 polled 0 polling - napping -\n";

    #[test]
    fn costs_and_queues_are_told_apart() {
        let learned = Learned::parse(TEXT);
        assert_eq!(learned.costs.get("yield_ns"), Some(900));
        let [first, second] = &learned.queues[..] else {
            panic!("two queues: {learned:?}");
        };
        assert_eq!(
            (first.queue, first.interrupt_ns, first.polled),
            (0, 1900, true)
        );
        assert_eq!(first.credit_ns.get("polling"), Some(Some(50_000)));
        assert_eq!(first.credit_ns.get("napping"), Some(None));
        assert!(!second.polled);
        assert_eq!(
            learned.lines(),
            [
                "sleep 4.1 us, yield 900 ns, tick 2.0 us, interrupt 2.5 us",
                "2 queues: polled 1; pays on: polling 1, napping 0"
            ]
        );
    }

    #[test]
    fn what_is_not_understood_is_left_out() {
        assert_eq!(Learned::parse(""), Learned::default());
        assert_eq!(Learned::parse("").lines(), ["", ""]);
        assert_eq!(
            Learned::parse("queue x\nqueue 1 polled 0\n"),
            Learned::default()
        );
        let odd = Learned::parse("sleep_ns 1 mood good tick_ns 2\n");
        assert_eq!(odd.costs.0, [("sleep_ns".to_string(), 1)]);
    }
}
