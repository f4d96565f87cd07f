// SPDX-License-Identifier: GPL-2.0
//! A device that lies. Nothing it says ends a command that it does not have, ends one twice, or
//! stops the driver.

use crate::model::queues::Completion;
use crate::model::Config;
use crate::rig::{command, Line, Rig};
use hal::{Controller, Op, Queue};
use proptest::prelude::*;
use std::collections::BTreeSet;
use testkit::Device;

/// A device that tells a lie before each truth; a lie that is believed shows by its status.
fn honest_and(lie: impl Fn(Completion) -> Completion + Send + 'static) -> Rig {
    let rig = Rig::started(Config::default());
    rig.model.state().liar = Some(Box::new(move |_, truth| {
        let lie = Completion {
            status: 0x4281,
            ..lie(truth)
        };
        vec![lie, truth]
    }));
    rig
}

fn flush(queue: &mut Line) -> u16 {
    queue.start(&command(Op::Flush, 0, 0), &[]).unwrap()
}

/// Each lie comes before the truth; the truth alone counts.
#[test]
fn lies_are_counted_and_the_truth_is_taken() {
    let lies: [fn(Completion) -> Completion; 7] = [
        |c| Completion {
            sq_id: c.sq_id + 1,
            ..c
        },
        |c| Completion { sq_id: 0, ..c },
        // The queue has 1,024 entries.
        |c| Completion { sq_head: 1024, ..c },
        |c| Completion {
            sq_head: 0xffff,
            ..c
        },
        // A tag that is not issued, one that does not exist, another generation.
        |c| Completion {
            cid: c.cid ^ 0x80,
            ..c
        },
        |c| Completion {
            cid: c.cid | 0xfff,
            ..c
        },
        |c| Completion {
            cid: c.cid ^ 0x1000,
            ..c
        },
    ];
    for (n, lie) in lies.into_iter().enumerate() {
        let rig = honest_and(lie);
        let mut queue = rig.queue(0);
        for round in 1..=600 {
            let tag = flush(&mut queue);
            assert_eq!(queue.drain(), [(tag, Ok(()))], "lie {n}");
            assert_eq!(queue.violations(), round, "lie {n}");
        }
        rig.model.check();
    }
}

#[test]
fn a_completion_told_twice_ends_one_command() {
    let rig = Rig::started(Config::default());
    rig.model.state().liar = Some(Box::new(|_, truth| vec![truth, truth]));
    let mut queue = rig.queue(0);
    for round in 1..=40 {
        let tag = flush(&mut queue);
        assert_eq!(queue.drain(), [(tag, Ok(()))]);
        assert_eq!(queue.violations(), round);
    }
}

#[test]
fn a_completion_told_again_later_does_not_end_the_next_command_of_its_tag() {
    let rig = Rig::started(Config::default());
    let mut queue = rig.queue(0);
    let before = flush(&mut queue);
    assert_eq!(queue.drain(), [(before, Ok(()))]);
    let old = rig.model.state().io_log[0][0];
    rig.model.state().hold = true;
    let tag = flush(&mut queue);
    assert_eq!(tag, before, "the same slot again");
    let late = Completion {
        result: 0,
        sq_head: 1,
        sq_id: 1,
        cid: (old >> 16) as u16,
        status: 0,
    };
    {
        let mut state = rig.model.state();
        state.finish(1, late);
        state.work();
    }
    assert!(queue.0.queue.check_event(&mut queue.0.drain));
    assert_eq!(queue.drain(), []);
    assert_eq!(queue.violations(), 1);
    rig.model.run();
    assert_eq!(queue.drain(), [(tag, Ok(()))]);
}

#[test]
fn a_completion_of_a_command_that_is_only_staged_is_none() {
    let rig = Rig::started(Config::default());
    let mut queue = rig.queue(0);
    let bound = queue.bind(&command(Op::Flush, 0, 0), &[]).unwrap();
    let early = Completion {
        result: 0,
        sq_head: 0,
        sq_id: 1,
        cid: bound.number(),
        status: 0,
    };
    {
        let mut state = rig.model.state();
        state.finish(1, early);
        state.work();
    }
    assert_eq!(queue.drain(), []);
    assert_eq!(queue.violations(), 1);
    let tag = bound.number();
    queue.issue([bound]);
    assert_eq!(queue.drain(), [(tag, Ok(()))]);
}

#[test]
fn silence_is_not_a_completion() {
    let rig = Rig::started(Config::default());
    rig.model.state().liar = Some(Box::new(|_, _| Vec::new()));
    let mut queue = rig.queue(0);
    let tag = flush(&mut queue);
    assert!(!queue.0.queue.check_event(&mut queue.0.drain));
    assert_eq!(queue.drain(), []);
    rig.nvme.stop().unwrap();
    assert_eq!(queue.reap().len(), 1);
    queue.rewind();
    rig.model.state().liar = None;
    rig.nvme.start().unwrap();
    assert_eq!(flush(&mut queue), tag);
    assert_eq!(queue.drain().len(), 1);
}

/// All entries of the completion queue look new, again and again.
#[test]
fn a_queue_full_of_nonsense_is_left_in_bounded_time() {
    let rig = Rig::started(Config {
        mqes: 7,
        ..Config::default()
    });
    let mut queue = rig.queue(0);
    let base = rig.model.state().cqs[&1].base;
    let bus = rig.machine.bus();
    let mut violations = 0;
    for pass in 0..10u64 {
        let phase = (pass + 1) & 1;
        for entry in 0..8 {
            let word = (phase << 48) | (0x0777 << 32) | (1 << 16);
            bus.write(base + entry * 16 + 8, &word.to_le_bytes())
                .unwrap();
        }
        while queue.0.queue.check_event(&mut queue.0.drain) {
            assert!(queue.0.queue.fetch_event(&mut queue.0.drain).is_none());
        }
        violations += 8;
        assert_eq!(queue.violations(), violations);
    }
}

#[test]
fn answers_to_admin_commands_that_were_not_asked_are_dropped() {
    let rig = Rig::new(Config::default()).unwrap();
    rig.model.state().admin_liar = Some(Box::new(|_, truth| {
        let lie = Completion {
            status: 0x4006,
            ..truth
        };
        let lies = [
            Completion {
                cid: truth.cid.wrapping_sub(1),
                ..lie
            },
            Completion { sq_id: 1, ..lie },
            Completion { sq_head: 16, ..lie },
        ];
        // Before it and after it.
        lies.into_iter().chain([truth]).chain(lies).collect()
    }));
    rig.nvme.start().unwrap();
    let mut queue = rig.queue(0);
    assert!(rig.units()[0].is_ok());
    let tag = flush(&mut queue);
    assert_eq!(queue.drain(), [(tag, Ok(()))]);
    rig.model.check();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 200 }))]

    /// Random entries beside and instead of the true ones: every command ends at most once, only
    /// issued ones end, and after a reset the queue works.
    #[test]
    fn random_completions(
        seed in any::<u64>(),
        words in prop::collection::vec(
            (any::<u16>(), 0u16..4, 0u16..300, 0u16..16, 0u8..4),
            1..120,
        ),
    ) {
        let rig = Rig::started(Config { mqes: 31, ..Config::default() });
        let mut queue = rig.queue(0);
        let mut random = seed;
        let mut lies = words.into_iter();
        rig.model.state().liar = Some(Box::new(move |_, truth| match lies.next() {
            None => vec![truth],
            Some((cid, sq_id, sq_head, near, how)) => {
                let wild = Completion { cid, sq_id, sq_head, ..truth };
                let cid = truth.cid.wrapping_add((near << 12) | near);
                let close = Completion { cid, ..truth };
                match how {
                    0 => vec![wild, truth],
                    1 => vec![close, truth, close],
                    2 => vec![truth, truth, wild],
                    _ => vec![wild],
                }
            }
        }));
        let mut flying = BTreeSet::new();
        for _ in 0..200 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            if (random >> 33) & 1 == 0 && flying.len() < 31 {
                prop_assert!(flying.insert(flush(&mut queue)));
            }
            for (tag, _) in queue.drain() {
                prop_assert!(flying.remove(&tag), "tag {} ended, which was not issued", tag);
            }
        }
        rig.nvme.stop().unwrap();
        for (tag, _) in queue.reap() {
            prop_assert!(flying.remove(&tag));
        }
        prop_assert!(flying.is_empty());
        queue.rewind();
        rig.model.state().liar = None;
        rig.nvme.start().unwrap();
        for _ in 0..40 {
            let tag = flush(&mut queue);
            prop_assert_eq!(queue.drain(), [(tag, Ok(()))]);
        }
    }
}
