// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of the mapped segments that are unmapped one by one.

use kernel::prelude::*;

#[kunit_tests(hiops_mapped_segments)]
mod mapped_segments_suite {
    use crate::blk::upper::{MappedSegment, MappedSegments};

    /// Pushes and pops `n` of them, twice.
    fn all_come_back(n: u32) -> bool {
        // As blk-mq leaves it in a request.
        let mut segments: MappedSegments = pin_init::zeroed();
        let segment = |at: u32| MappedSegment {
            addr: u64::from(at) << 12,
            len: at,
        };
        (0..2).all(|_| {
            let pushed = (0..n).all(|at| segments.push(segment(at)).is_ok());
            pushed
                && segments.count() == n as usize
                && (0..n).rev().all(|at| {
                    let popped = segments.pop();
                    popped.is_some_and(|it| (it.addr, it.len) == (segment(at).addr, at))
                })
                && segments.pop().is_none()
                && segments.count() == 0
        })
    }

    #[test]
    fn none_is_lost_where_a_chunk_ends() {
        for n in [0, 1, 30, 31, 32, 61, 62, 63, 128, 1000] {
            assert!(all_come_back(n));
        }
    }

    #[test]
    fn what_is_pushed_after_a_pop_takes_its_place() {
        let mut segments: MappedSegments = pin_init::zeroed();
        let segment = |len| MappedSegment { addr: 0, len };
        assert!((0..32).all(|len| segments.push(segment(len)).is_ok()));
        // Across the chunk's beginning, and back.
        assert!(segments.pop().is_some_and(|it| it.len == 31));
        assert!(segments.pop().is_some_and(|it| it.len == 30));
        assert!(segments.push(segment(70)).is_ok() && segments.push(segment(71)).is_ok());
        assert!(segments.pop().is_some_and(|it| it.len == 71));
        assert!(segments.pop().is_some_and(|it| it.len == 70));
        assert!(segments.pop().is_some_and(|it| it.len == 29));
    }
}
