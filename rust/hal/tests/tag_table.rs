// SPDX-License-Identifier: GPL-2.0
//! The record of slots, at its edges.
#![cfg(not(loom))]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test states what it expects by failing loudly"
)]

use hal::mock::MockPlatform;
use hal::{Bound, Detached, Error, Free, FreeTags, Tag, TagBatch, TagTable};
use std::collections::BTreeSet;

/// Around the words of 64 bits, and the most that a number can name. Miri would take hours for
/// that.
const CAPACITIES: &[u16] = match cfg!(miri) {
    true => &[1, 63, 64, 65, 129],
    false => &[1, 2, 32, 63, 64, 65, 127, 128, 129, 1023, u16::MAX],
};

fn table(capacity: u16) -> TagTable<MockPlatform> {
    TagTable::new(&MockPlatform::new(), capacity).unwrap()
}

/// All free tags, as they come.
fn take_all(table: &TagTable<MockPlatform>) -> Vec<Tag<Free>> {
    all_of(|| table.take(usize::MAX))
}

/// All that come, until none does.
fn all_of(mut take: impl FnMut() -> FreeTags) -> Vec<Tag<Free>> {
    let mut all = Vec::new();
    loop {
        let mut tags = take();
        if tags.is_empty() {
            return all;
        }
        let at = all.len();
        all.extend(std::iter::from_fn(|| tags.pop()));
        // Lowest first.
        all.split_at_mut(at).1.reverse();
    }
}

/// Gives detached tags back, a batch at a time.
fn release(table: &TagTable<MockPlatform>, tags: impl IntoIterator<Item = Tag<Detached>>) {
    let mut batch = TagBatch::default();
    for tag in tags {
        if batch.is_full() {
            table.release(&mut batch);
        }
        batch.push(tag).expect("it has room");
    }
    table.release(&mut batch);
    assert!(batch.is_empty());
}

/// Gives tags back that were not issued, a batch at a time.
fn put_back(table: &TagTable<MockPlatform>, tags: impl IntoIterator<Item = Tag<Free>>) {
    let mut batch = TagBatch::default();
    for tag in tags {
        if batch.is_full() {
            table.put_back(&mut batch);
        }
        batch.push(tag).expect("it has room");
    }
    table.put_back(&mut batch);
    assert!(batch.is_empty());
}

/// Each is issued, answered, and given back by the drainer.
fn use_up(table: &TagTable<MockPlatform>, tags: impl IntoIterator<Item = Tag<Free>>) {
    let used = tags.into_iter().map(|tag| {
        let number = tag.number();
        table.issue(tag.bind());
        table.complete(number).expect("it was issued").detach()
    });
    release(table, used);
}

#[test]
fn every_slot_is_given_out_once() {
    for &capacity in CAPACITIES {
        let table = table(capacity);
        assert_eq!(table.capacity(), usize::from(capacity));
        for give in [put_back, use_up, use_up, put_back] {
            let tags = take_all(&table);
            let numbers: BTreeSet<u16> = tags.iter().map(Tag::number).collect();
            assert!(numbers.into_iter().eq(0..capacity), "all of {capacity}");
            assert_eq!(tags.len(), usize::from(capacity), "each once of {capacity}");
            give(&table, tags);
        }
    }
}

#[test]
fn below_a_limit_there_are_so_many() {
    for limit in [0, 1, 63, 64, 65, 199, 200, 201, usize::MAX] {
        let table = table(200);
        let tags = all_of(|| table.take_below(limit, 7));
        let numbers = tags.iter().map(Tag::index);
        assert!(numbers.eq(0..limit.min(200)), "below {limit}");
        put_back(&table, tags);
        assert_eq!(take_all(&table).len(), 200);
    }
}

#[test]
fn no_more_than_wanted_lowest_first() {
    let table = table(200);
    for (want, wanted) in [
        (0, 0..0),
        (1, 0..1),
        (62, 1..63),
        (9, 63..64),
        (100, 64..128),
    ] {
        let mut tags = table.take(want);
        assert_eq!(tags.len(), wanted.len(), "{want} more");
        let numbers = std::iter::from_fn(|| tags.pop()).map(|tag| tag.number());
        assert!(numbers.eq(wanted.rev()), "{want} more");
    }
}

#[test]
fn a_released_slot_is_the_next_lowest() {
    for at in [0, 63, 64, 127, 128] {
        let table = table(129);
        let mut tags = take_all(&table);
        let tag = tags.remove(at);
        put_back(&table, [tag]);
        let again: Vec<_> = take_all(&table).iter().map(Tag::index).collect();
        assert_eq!(again, [at]);
    }
}

#[test]
fn release_in_any_order_across_words() {
    let table = table(65);
    let mut tags = take_all(&table);
    tags.reverse();
    let (odd, even): (Vec<_>, Vec<_>) = tags.into_iter().partition(|tag| tag.index() % 2 == 1);
    use_up(&table, even);
    put_back(&table, odd);
    assert_eq!(take_all(&table).len(), 65);
}

#[test]
fn only_what_was_issued_completes_and_only_once() {
    for &capacity in CAPACITIES {
        let table = table(capacity);
        let last = capacity - 1;
        for number in [0, last, capacity, u16::MAX] {
            assert!(
                table.complete(number).is_none(),
                "{number} was never issued"
            );
        }
        let bound: Vec<Tag<Bound>> = take_all(&table).into_iter().map(Tag::bind).collect();
        assert!(table.complete(last).is_none(), "bound is not issued");
        assert_eq!(table.first_issued(), None);
        bound.into_iter().for_each(|tag| table.issue(tag));
        assert_eq!(table.first_issued(), Some(0));
        let tag = table.complete(last).expect("it was issued");
        assert_eq!(tag.number(), last);
        assert!(table.complete(last).is_none(), "twice");
        let detached: Tag<Detached> = tag.detach();
        release(&table, [detached]);
        assert!(table.complete(last).is_none(), "free");
        assert_eq!(take_all(&table).len(), 1, "only that one is free");
    }
}

#[test]
fn reaping_finds_all_that_is_issued() {
    let table = table(130);
    for tag in take_all(&table) {
        if tag.index() % 3 == 0 {
            table.issue(tag.bind());
        }
    }
    let mut reaped = Vec::new();
    while let Some(number) = table.first_issued() {
        reaped.push(number);
        let _ = table.complete(number).expect("it is issued").detach();
    }
    assert!(reaped.into_iter().eq((0..130).step_by(3)));
}

#[test]
fn a_slot_that_is_free_already_stays_so() {
    let table = table(65);
    let tags = take_all(&table);
    let last = tags.last().expect("65").number();
    for tag in tags {
        table.issue(tag.bind());
    }
    // The drainer's, of a tag that comes back twice: its slot was issued anew in between.
    let once = table.complete(last).expect("it was issued").detach();
    release(&table, [once]);
    let tag = take_all(&table).pop().expect("one is free");
    table.issue(tag.bind());
    let twice = table.complete(last).expect("it was issued").detach();
    table.rewind();
    release(&table, [twice]);
    assert_eq!(take_all(&table).len(), 65);
}

#[test]
fn an_unbound_tag_is_free_again() {
    let table = table(1);
    let tag = table.take(1).pop().expect("one").bind().unbind();
    put_back(&table, [tag]);
    assert_eq!(take_all(&table).len(), 1);
}

#[test]
fn a_rewind_brings_lost_tags_back() {
    for &capacity in CAPACITIES {
        let table = table(capacity);
        let mut tags = take_all(&table);
        let issued = tags.pop().expect("at least one");
        table.issue(issued.bind());
        drop(tags);
        assert_eq!(take_all(&table).len(), 0);
        table.rewind();
        assert_eq!(table.first_issued(), None);
        assert_eq!(take_all(&table).len(), usize::from(capacity));
    }
}

#[test]
fn what_new_refuses() {
    let platform = MockPlatform::new();
    assert_eq!(TagTable::new(&platform, 0).err(), Some(Error::Invalid));
    for left in [0, 1] {
        platform.fail_allocations_after(left);
        assert_eq!(TagTable::new(&platform, 64).err(), Some(Error::NoMemory));
    }
    platform.fail_allocations_after(2);
    assert!(TagTable::new(&platform, 64).is_ok());
}

#[test]
fn a_batch_keeps_order_and_gives_back_what_does_not_fit() {
    let table = table(65);
    let mut tags = take_all(&table);
    let extra = tags.pop().expect("65");
    let mut batch = TagBatch::default();
    tags.into_iter()
        .for_each(|tag| batch.push(tag).expect("64 fit"));
    let back = batch.push(extra).expect_err("65 do not");
    assert_eq!((back.number(), batch.len()), (64, TagBatch::<Free>::MAX));
    assert_eq!(batch.pop().map(|tag| tag.number()), Some(63));
    batch.push(back).expect("one fits again");
    let numbers: Vec<_> = batch.drain().map(|tag| tag.number()).collect();
    assert!(numbers.into_iter().eq((0..63).chain([64])));
    assert!(batch.is_empty() && batch.pop().is_none());
}

#[test]
fn free_tags_take_back_what_came_from_them() {
    let table = table(129);
    let (mut first, mut second) = (table.take(usize::MAX), table.take(usize::MAX));
    let (one, other) = (first.pop().expect("64"), second.pop().expect("64"));
    let other = first.push(other).expect_err("it is of another row");
    first.push(one).expect("it came from there");
    second.push(other).expect("it came from there");
    assert_eq!((first.len(), second.len()), (64, 64));
    assert_eq!(first.pop().map(|tag| tag.number()), Some(63), "the highest");
    let numbers: Vec<_> = second.take_all().drain().map(|tag| tag.number()).collect();
    assert!(numbers.into_iter().eq((64..128).rev()));
    assert!(second.is_empty() && second.pop().is_none());
}
