// SPDX-License-Identifier: GPL-2.0
//! Discards of many ranges, and zeroes by deallocation.

use crate::model::Config;
use crate::rig::{command, Rig};
use hal::{CmdError, Command, Op, Segment};

/// Ranges of a discard: first block and length.
fn ranges(all: impl IntoIterator<Item = (u64, u32)>) -> Vec<Segment> {
    let range = |(addr, len)| Segment { addr, len };
    all.into_iter().map(range).collect()
}

#[test]
fn a_discard_of_many_ranges_is_one_command() {
    let rig = Rig::started(Config::default());
    let most = rig.units()[0].unwrap().discard.unwrap().max_ranges;
    let mut queue = rig.queue(0);
    rig.model.state().config.namespaces[0].data.fill(0x55);
    for count in [2, u64::from(most)] {
        let all = ranges((0..count).map(|n| (3 * n + 1, 1 + (n % 2) as u32)));
        let blocks = all.iter().map(|range| range.len).sum();
        assert_eq!(queue.run(&command(Op::Discard, 1, blocks), &all), Ok(()));
        let state = rig.model.state();
        assert_eq!(state.io_log.last().unwrap()[5] & 0xff, count - 1);
        for n in 0..count as usize {
            let byte = |block: usize| state.config.namespaces[0].data[block * 512];
            let second = if n % 2 == 1 { 0xdd } else { 0x55 };
            let at = 3 * n;
            assert_eq!([byte(at), byte(at + 1), byte(at + 2)], [0x55, 0xdd, second]);
        }
    }
    let sent = rig.model.state().io_log.len();
    let bad = [
        // Too many; not as many blocks as there are; more; none; an empty range.
        (
            u32::from(most) + 1,
            ranges((0..=u64::from(most)).map(|n| (n * 2, 1))),
        ),
        (3, ranges([(0, 1), (5, 1)])),
        (1, ranges([(0, 1), (5, 1)])),
        (1, ranges([(0, 0), (5, 1)])),
    ];
    for (blocks, all) in bad {
        let refused = queue.run(&command(Op::Discard, 0, blocks), &all);
        assert_eq!(refused, Err(CmdError::Invalid), "{blocks}");
    }
    assert_eq!(rig.model.state().io_log.len(), sent);
    rig.model.check();
}

#[test]
fn zeroes_are_written_by_deallocation_only_where_that_is_asked_for() {
    let rig = Rig::started(Config::default());
    let mut queue = rig.queue(0);
    for unmap in [false, true] {
        let cmd = Command {
            unmap,
            ..command(Op::WriteZeroes, 1, 8)
        };
        assert_eq!(queue.run(&cmd, &[]), Ok(()));
        let dword12 = rig.model.state().io_log.last().unwrap()[6];
        assert_eq!(dword12, 7 | (u64::from(unmap) << 25));
    }
    rig.model.check();
}
