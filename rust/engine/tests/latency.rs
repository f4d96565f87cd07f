// SPDX-License-Identifier: GPL-2.0
//! The buckets of a histogram of latencies, and the scale of a counter.
#![cfg(not(loom))]

use engine::latency::{end_ns, PerStamp, BUCKETS, PROBE};
use proptest::prelude::*;

fn begins_ns(bucket: usize) -> u64 {
    bucket.checked_sub(1).and_then(end_ns).unwrap_or(0)
}

#[test]
fn there_are_two_a_power_of_two_from_one_microsecond_to_sixteen_seconds() {
    let ends: Vec<u64> = (0..BUCKETS).filter_map(end_ns).collect();
    assert_eq!(ends.len(), BUCKETS - 1);
    assert_eq!(ends[..6], [1_000, 1_500, 2_000, 3_000, 4_000, 6_000]);
    assert_eq!(ends[46..], [8_388_608_000, 12_582_912_000, 16_777_216_000]);
    for (two, one) in ends.iter().skip(2).zip(&ends) {
        assert_eq!(*two, one * 2);
    }
}

#[test]
fn each_bucket_begins_where_the_one_before_it_ends() {
    for bucket in 0..BUCKETS {
        assert_eq!(PerStamp::NS.bucket(begins_ns(bucket)), bucket);
        if let Some(end) = end_ns(bucket) {
            assert_eq!(PerStamp::NS.bucket(end - 1), bucket);
        }
    }
    assert_eq!(PerStamp::NS.bucket(0), 0);
    assert_eq!(PerStamp::NS.bucket(u64::MAX), BUCKETS - 1);
    assert_eq!(end_ns(BUCKETS), None);
}

proptest! {
    #[test]
    fn a_time_is_within_its_bucket(ns in prop_oneof![0..10_000u64, 0..1u64 << 36, any::<u64>()]) {
        let bucket = PerStamp::NS.bucket(ns);
        prop_assert!(ns >= begins_ns(bucket));
        prop_assert!(end_ns(bucket).is_none_or(|end| ns < end));
    }

    /// Of any counter from 100 MHz to 6 GHz: as the time in nanoseconds says, but for what is
    /// a stamp away from a bucket's end.
    #[test]
    fn any_counter_tells_the_same(khz in 100_000..6_000_000u64, stamps in 0..1u64 << 38) {
        let ns_of = |stamps: u64| (u128::from(stamps) * 1_000_000 / u128::from(khz)) as u64;
        let scale = PerStamp::new(ns_of(PROBE));
        let bucket = scale.bucket(stamps);
        let about = [ns_of(stamps.saturating_sub(1)), ns_of(stamps + 1) + 1];
        let [low, high] = about.map(|ns| PerStamp::NS.bucket(ns));
        prop_assert!((low..=high).contains(&bucket), "{low} {bucket} {high}");
    }
}
