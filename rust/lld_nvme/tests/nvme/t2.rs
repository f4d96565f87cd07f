// SPDX-License-Identifier: GPL-2.0
//! The controller of Macs with a T2: larger entries, and small CIDs that the admin queue shares.

use crate::model::{Config, Frail};
use crate::quirks::known;
use crate::rig::{command, Rig, UNIT};
use hal::{Controller, Op};
use testkit::pattern;

/// What is in Macs with a T2: entries of 128 bytes, small CIDs, shared with the admin queue.
fn t2() -> Config {
    Config {
        sqes: 0x77,
        mqes: 255,
        ..known(
            0x106b,
            0x2005,
            Frail {
                sqe_bytes: 128,
                shared_cids: Some(255),
                ..Frail::default()
            },
        )
    }
}

#[test]
fn a_controller_with_larger_entries_and_shared_cids_is_served() {
    let rig = Rig::started(t2());
    let limits = rig.nvme.limits();
    assert_eq!((limits.queues, limits.tags), (1, 223));
    let mut queue = rig.queue(0);
    queue.moves_data(&rig.machine, UNIT, &[(512, 0, 0), (65_536, 0, 4096)]);
    // Every tag several times, and admin commands between them, past their CIDs' end.
    for round in 0..3u64 {
        rig.model.state().hold = true;
        let mut maps = Vec::new();
        for lba in 0..u64::from(limits.tags) {
            let map = rig.map(&pattern(512, round as u8), 0, 0);
            let cmd = command(Op::Write, lba, 1);
            queue.start(&cmd, &map.segments()).unwrap();
            maps.push(map);
        }
        for _ in 0..10 {
            rig.units();
        }
        rig.model.state().hold = false;
        rig.model.state().work_queues();
        let done = queue.drain();
        assert_eq!(done.len(), usize::from(limits.tags));
        assert!(done.iter().all(|(_, outcome)| outcome.is_ok()));
    }
    assert_eq!(queue.violations(), 0);
    rig.model.check();
}

#[test]
fn a_completion_of_nobodys_small_cid_ends_nothing() {
    let rig = Rig::started(t2());
    let mut queue = rig.queue(0);
    for cid in [0, 31, 32 + 223, 0x1020, u16::MAX] {
        rig.model.state().liar = Some(Box::new(move |_, completion| {
            vec![crate::model::queues::Completion { cid, ..completion }]
        }));
        let tag = queue.start(&command(Op::Flush, 0, 0), &[]).unwrap();
        assert_eq!(queue.drain(), [], "{cid:#x}");
        assert_eq!(queue.reap(), [(tag, hal::CmdError::Aborted.retryable())]);
    }
    assert_eq!(queue.violations(), 5);
}
