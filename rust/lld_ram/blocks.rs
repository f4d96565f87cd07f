// SPDX-License-Identifier: GPL-2.0
//! A device that takes its commands in *blocks of descriptors*, and how long it takes for one: the
//! interface of "Prototyping and Performance Evaluation of a Dynamically Adaptable Block Device
//! Driver for PCIe-based SSDs" (Bougioukou et al.), as pure arithmetic.
//!
//! One block is with the device at a time. It *fetches* the descriptors by one transfer, and
//! *processes* one after the other. Each one's *data* goes by the DMA engine while the next is
//! processed. It *answers* all of them by one transfer (a block), or each as its data is there
//! (singly); singly by the engine that moves data, or by one of its own:
//!
//! ```text
//!  answers by block       | fetch |-p-|-p-|-p-|
//!                                     |--d--|--d--|--d--|- a -|   all three are over
//!  singly, one engine     | fetch |-p-|-p-|-p-|
//!                                     |--d--|a|--d--|a|--d--|a|   one after the other
//!  singly, two engines    | fetch |-p-|-p-|-p-|
//!                                     |--d--|--d--|--d--|
//!                                           |a|   |a|   |a|
//! ```
//!
//! Answers of their own engine pass the same link: each takes a moment of the data's time there.

use hal::{Error, TagBatch};

/// The most descriptors that a block may have.
pub const MOST: u16 = TagBatch::<hal::Bound>::MAX as u16;

/// How a device answers the descriptors of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// All of a block at once.
    Block,
    /// Each by itself, by the engine that moves data.
    Each,
    /// Each by itself, by an engine of its own.
    EachByItsOwn,
}

/// When a device takes a block in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Whatever there is, as soon as it has none.
    Any,
    /// Full ones; what has waited for [`PATIENCE_NS`] as it is.
    Full,
}

/// For how long a device that wants full blocks waits for one to become full, in nanoseconds.
pub const PATIENCE_NS: u64 = 10_000_000;

/// A device that takes blocks of descriptors: what it takes for them, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Descriptors of a block at most, 1 to [`MOST`].
    pub most: u16,
    /// When it takes one in.
    pub fill: Fill,
    /// How it answers.
    pub answers: Answers,
    /// A transfer of descriptors to the device.
    pub fetch_ns: u32,
    /// And each of them.
    pub fetch_each_ns: u32,
    /// To process a descriptor.
    pub process_ns: u32,
    /// What the DMA engine moves of a read and of a write, in 1,000,000 bytes a second.
    pub dma_mb_s: [u32; 2],
    /// A transfer of answers to the host.
    pub answer_ns: u32,
    /// And each of them.
    pub answer_each_ns: u32,
    /// What an answer by an engine of its own takes of the link.
    pub link_ns: u32,
}

/// Where a block's device is.
#[derive(Clone, Copy, Debug)]
struct At {
    /// The processor is done with the last descriptor.
    processed: u64,
    /// The engine for data is done with the last one's data, and its answer, if it makes that.
    moved: u64,
    /// The last answer of its own engine is there.
    answered: u64,
}

impl Blocks {
    /// Such a device, with figures that the project has chosen: the paper prints none. 3 us for a
    /// DMA transaction from the host's memory and back, 1 us for a posted one; 2 us of an embedded
    /// processor for a descriptor; PCIe Gen2 with four lanes, where reads of the host's memory are
    /// not posted.
    pub const CHOSEN: Self = Self {
        most: 32,
        fill: Fill::Any,
        answers: Answers::Block,
        fetch_ns: 3_000,
        fetch_each_ns: 100,
        process_ns: 2_000,
        dma_mb_s: [1_600, 1_000],
        answer_ns: 1_000,
        answer_each_ns: 50,
        link_ns: 100,
    };

    /// Whether such a device can be.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a field is out of its range.
    pub fn check(&self) -> Result<(), Error> {
        let good = (1..=MOST).contains(&self.most) && !self.dma_mb_s.contains(&0);
        good.then_some(()).ok_or(Error::Invalid)
    }

    /// Plays a block through whose doorbell is rung at `start`: of each command, by whether it is a
    /// write and its bytes, `over` is told when it is answered, in order. When the device is free
    /// again.
    pub fn play(
        &self,
        start: u64,
        commands: impl Iterator<Item = (bool, u64)> + Clone,
        mut over: impl FnMut(u64),
    ) -> u64 {
        let count = commands.clone().count() as u64;
        let fetched = start
            .saturating_add(self.fetch_ns.into())
            .saturating_add(count.saturating_mul(self.fetch_each_ns.into()));
        let mut at = At {
            processed: fetched,
            moved: fetched,
            answered: fetched,
        };
        if self.answers != Answers::Block {
            commands.for_each(|(is_write, bytes)| over(self.next(&mut at, is_write, bytes)));
            return at.moved.max(at.answered);
        }
        for (is_write, bytes) in commands {
            self.next(&mut at, is_write, bytes);
        }
        let all = (at.moved)
            .saturating_add(self.answer_ns.into())
            .saturating_add(count.saturating_mul(self.answer_each_ns.into()));
        (0..count).for_each(|_| over(all));
        all
    }

    /// The next command of a block: when it is answered, if that is singly.
    fn next(&self, at: &mut At, is_write: bool, bytes: u64) -> u64 {
        at.processed = at.processed.saturating_add(self.process_ns.into());
        let begins = at.processed.max(at.moved);
        at.moved = begins.saturating_add(self.data_ns(is_write, bytes));
        match self.answers {
            Answers::Block => at.moved,
            Answers::Each => {
                at.moved = at.moved.saturating_add(self.one_answer_ns());
                at.moved
            }
            Answers::EachByItsOwn => {
                at.answered = (at.answered.max(at.moved)).saturating_add(self.one_answer_ns());
                at.moved = at.moved.saturating_add(self.link_ns.into());
                at.answered
            }
        }
    }

    fn one_answer_ns(&self) -> u64 {
        u64::from(self.answer_ns).saturating_add(self.answer_each_ns.into())
    }

    /// What the data of a command takes, in whole nanoseconds, rounded up.
    fn data_ns(&self, is_write: bool, bytes: u64) -> u64 {
        let [read, write] = self.dma_mb_s;
        let mb_s = u64::from(if is_write { write } else { read });
        bytes.saturating_mul(1000).div_ceil(mb_s.max(1))
    }

    /// From one doorbell to the next, where blocks of `count` commands, which are all alike, are
    /// always pending, and the host takes `host_ns` for an interrupt: the closed form. Processing
    /// and data overlap, but for the first one's processing, or the last one's data.
    pub fn closed_ns(&self, count: u64, is_write: bool, bytes: u64, host_ns: u64) -> u64 {
        let data = self.data_ns(is_write, bytes);
        let one = self.one_answer_ns();
        // What sets the pace beside the processor, what is left when that is done with the last,
        // and what comes after it.
        let (pace, rest, last) = match self.answers {
            Answers::Block => {
                let each = count.saturating_mul(self.answer_each_ns.into());
                (data, data, each.saturating_add(self.answer_ns.into()))
            }
            Answers::Each => (data.saturating_add(one), data.saturating_add(one), 0),
            Answers::EachByItsOwn => (data.saturating_add(self.link_ns.into()).max(one), data, one),
        };
        let process = u64::from(self.process_ns);
        u64::from(self.fetch_ns)
            .saturating_add(count.saturating_mul(self.fetch_each_ns.into()))
            .saturating_add(count.saturating_mul(pace.max(process)))
            .saturating_add(rest.min(process))
            .saturating_add(last)
            .saturating_add(host_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    /// Figures of which each stage can be told in a sum.
    const PLAIN: Blocks = Blocks {
        most: 8,
        fill: Fill::Any,
        answers: Answers::Block,
        fetch_ns: 10_000,
        fetch_each_ns: 100,
        process_ns: 1_000,
        dma_mb_s: [1_000, 500],
        answer_ns: 500,
        answer_each_ns: 10,
        link_ns: 20,
    };

    fn played(blocks: &Blocks, commands: &[(bool, u64)]) -> (Vec<u64>, u64) {
        let mut over = vec![];
        let free = blocks.play(0, commands.iter().copied(), |at| over.push(at));
        (over, free)
    }

    #[test]
    fn a_block_is_over_at_once() {
        // Fetched at 10,300; processed at 11,300; three times 4,096 of data; 530 for the answers.
        let (over, free) = played(&PLAIN, &[(false, 4096); 3]);
        assert_eq!(over, [24_118; 3]);
        assert_eq!(free, 24_118);
        // Where there is less data than work, the processor sets the pace.
        let (over, _) = played(&PLAIN, &[(false, 512); 3]);
        assert_eq!(over, [10_300 + 3 * 1_000 + 512 + 530; 3]);
    }

    #[test]
    fn single_answers_hold_the_engine_up_unless_they_have_their_own() {
        let each = Blocks {
            answers: Answers::Each,
            ..PLAIN
        };
        let (over, free) = played(&each, &[(false, 4096); 3]);
        let one = 4096 + 510;
        assert_eq!(over, [1, 2, 3].map(|n| 11_300 + n * one));
        assert_eq!(free, over[2]);
        let own = Blocks {
            answers: Answers::EachByItsOwn,
            ..PLAIN
        };
        let (over, free) = played(&own, &[(false, 4096); 3]);
        let one = 4096 + 20;
        assert_eq!(over, [0, 1, 2].map(|n| 11_300 + 4096 + n * one + 510));
        assert_eq!(free, over[2]);
    }

    #[test]
    fn writes_and_reads_have_their_own_pace() {
        let (over, _) = played(&PLAIN, &[(true, 1000), (false, 1000)]);
        assert_eq!(over, [10_200 + 1_000 + 2_000 + 1_000 + 520; 2]);
    }

    #[test]
    fn nothing_takes_no_time_but_the_transfers() {
        assert_eq!(played(&PLAIN, &[]), (vec![], 10_500));
    }

    #[test]
    fn the_end_of_time_stays_there() {
        let free = PLAIN.play(u64::MAX - 5, [(false, u64::MAX)].into_iter(), |at| {
            assert_eq!(at, u64::MAX);
        });
        assert_eq!(free, u64::MAX);
        assert_eq!(PLAIN.closed_ns(u64::MAX, true, u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn the_closed_form_is_what_is_played() {
        for answers in [Answers::Block, Answers::Each, Answers::EachByItsOwn] {
            for (is_write, bytes) in [(false, 4096), (true, 4096), (false, 512)] {
                for count in [1u64, 2, 8, 64] {
                    let blocks = Blocks {
                        answers,
                        ..Blocks::CHOSEN
                    };
                    let commands = (0..count).map(|_| (is_write, bytes));
                    let played = blocks.play(0, commands, |_| {});
                    let closed = blocks.closed_ns(count, is_write, bytes, 0);
                    // Of the last one's data nobody waits for the link.
                    let off = closed.abs_diff(played);
                    assert!(off <= 100, "{answers:?}, {count}: {played} and {closed}");
                }
            }
        }
    }

    #[test]
    fn bounds() {
        let with = |change: &dyn Fn(&mut Blocks)| {
            let mut blocks = PLAIN;
            change(&mut blocks);
            blocks.check().is_ok()
        };
        assert!(with(&|b| b.most = 1) && with(&|b| b.most = MOST));
        assert!(!with(&|b| b.most = 0) && !with(&|b| b.most = MOST + 1));
        assert!(!with(&|b| b.dma_mb_s = [0, 1]) && !with(&|b| b.dma_mb_s = [1, 0]));
    }
}
