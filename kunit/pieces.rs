// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of the pieces that are unmapped one by one.

use kernel::prelude::*;

#[kunit_tests(hiops_pieces)]
mod pieces_suite {
    use crate::blk::dma::{Piece, Pieces};

    /// Pushes and pops `n` of them, twice.
    fn all_come_back(n: u32) -> bool {
        // As blk-mq leaves it in a request.
        let mut pieces: Pieces = pin_init::zeroed();
        let piece = |at: u32| Piece {
            addr: u64::from(at) << 12,
            len: at,
        };
        (0..2).all(|_| {
            let pushed = (0..n).all(|at| pieces.push(piece(at)).is_ok());
            pushed
                && pieces.count() == n as usize
                && (0..n).rev().all(|at| {
                    let popped = pieces.pop();
                    popped.is_some_and(|it| (it.addr, it.len) == (piece(at).addr, at))
                })
                && pieces.pop().is_none()
                && pieces.count() == 0
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
        let mut pieces: Pieces = pin_init::zeroed();
        let piece = |len| Piece { addr: 0, len };
        assert!((0..32).all(|len| pieces.push(piece(len)).is_ok()));
        // Across the chunk's beginning, and back.
        assert!(pieces.pop().is_some_and(|it| it.len == 31));
        assert!(pieces.pop().is_some_and(|it| it.len == 30));
        assert!(pieces.push(piece(70)).is_ok() && pieces.push(piece(71)).is_ok());
        assert!(pieces.pop().is_some_and(|it| it.len == 71));
        assert!(pieces.pop().is_some_and(|it| it.len == 70));
        assert!(pieces.pop().is_some_and(|it| it.len == 29));
    }
}
