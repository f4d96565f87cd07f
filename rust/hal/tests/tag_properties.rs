// SPDX-License-Identifier: GPL-2.0
//! The record of slots against a plain set, under any sequence of what its two sides may do.
#![cfg(not(loom))]

use hal::mock::MockPlatform;
use hal::{Bound, Detached, Free, Tag, TagBatch, TagTable};
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
enum Step {
    Take(usize),
    /// The n-th of the free tags in hand is bound and issued.
    Issue(usize),
    Unget(usize),
    /// The device says this of any number.
    Complete(u16),
    Release,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0usize..80).prop_map(Step::Take),
        (0usize..80).prop_map(Step::Issue),
        (0usize..80).prop_map(Step::Unget),
        (0u16..140).prop_map(Step::Complete),
        Just(Step::Release),
    ]
}

/// How many slots at most, of more than one word, and how many steps: Miri takes seconds for what
/// takes a processor a millisecond.
const MOST: (u16, usize) = if cfg!(miri) { (70, 30) } else { (140, 150) };

proptest! {
    #[test]
    fn no_slot_is_in_two_hands(
        capacity in 1..MOST.0,
        steps in prop::collection::vec(step(), 0..MOST.1),
    ) {
        let table = TagTable::new(&MockPlatform::new(), capacity).unwrap();
        let mut pool: BTreeSet<u16> = (0..capacity).collect();
        let mut issued = BTreeSet::new();
        let mut free: Vec<Tag<Free>> = Vec::new();
        let mut detached: Vec<Tag<Detached>> = Vec::new();
        for step in steps {
            match step {
                Step::Take(want) => {
                    let mut tags = table.take(want);
                    // Of the first 64 in a row that have any.
                    let row = pool.first().map_or(0, |first| first / 64);
                    let expected: Vec<u16> = (pool.iter().copied())
                        .filter(|number| number / 64 == row)
                        .take(want)
                        .collect();
                    let mut got: Vec<Tag<Free>> = std::iter::from_fn(|| tags.pop()).collect();
                    got.reverse();
                    let numbers: Vec<u16> = got.iter().map(Tag::number).collect();
                    prop_assert_eq!(&numbers, &expected);
                    pool.retain(|number| !numbers.contains(number));
                    free.extend(got);
                }
                Step::Issue(at) if at < free.len() => {
                    let tag: Tag<Bound> = free.swap_remove(at).bind();
                    issued.insert(tag.number());
                    table.issue(tag);
                }
                Step::Unget(at) if at < free.len() => {
                    let mut batch = TagBatch::default();
                    let tag = free.swap_remove(at);
                    pool.insert(tag.number());
                    batch.push(tag).expect("one fits");
                    table.put_back(&mut batch);
                }
                Step::Issue(_) | Step::Unget(_) => {}
                Step::Complete(number) => {
                    let tag = table.complete(number);
                    prop_assert_eq!(tag.is_some(), issued.remove(&number));
                    detached.extend(tag.map(Tag::detach));
                }
                Step::Release => {
                    let mut batch = TagBatch::default();
                    for tag in detached.drain(..detached.len().min(64)) {
                        pool.insert(tag.number());
                        batch.push(tag).expect("64 fit");
                    }
                    table.release(&mut batch);
                }
            }
            prop_assert_eq!(table.first_issued(), issued.first().copied());
        }
    }
}
