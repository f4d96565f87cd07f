// SPDX-License-Identifier: GPL-2.0
//! PRDTs and command FISes: what the HBA fetches is what the command and its segments were.

use crate::model::{Config, Drive, Taken, KNOWN_GOOD};
use crate::rig::{command, Line, Rig};
use hal::{CmdError, Command, Controller, Op, Segment};
use proptest::prelude::*;

/// A drive of which only the size matters.
fn rig(depth: Option<u8>, block_shift: u8) -> Rig {
    Rig::started(Config::with(Drive {
        depth,
        blocks: 1 << 47,
        block_shift,
        data: Vec::new(),
        // All of it fails: no memory is reached.
        bad: vec![],
        ..Drive::new(9, 8)
    }))
}

/// Tells `cmd` to a device that only fetches it. Returns what it fetched.
fn fetched(rig: &Rig, line: &mut Line, cmd: &Command, data: &[Segment]) -> Result<Taken, CmdError> {
    rig.model.state().hold = true;
    let slot = line.start(cmd, data)?;
    let mut state = rig.model.state();
    let taken = state.fetch(0, slot as u8).unwrap();
    assert_eq!(state.complaints, Vec::<String>::new());
    drop(state);
    // Back to a port that has nothing.
    rig.ahci[0].stop().unwrap();
    assert_eq!(line.reap().len(), 1);
    line.rewind();
    rig.model.state().hold = false;
    rig.ahci[0].start().unwrap();
    Ok(taken)
}

/// The entries that say it: of 4 MiB at most.
fn told(segments: &[Segment]) -> Vec<(u64, u32)> {
    let entries = |one: &Segment| {
        let Segment { addr, len } = *one;
        let starts = (0..len).step_by(4 << 20);
        starts.map(move |at| (addr + u64::from(at), (len - at).min(4 << 20)))
    };
    segments.iter().flat_map(entries).collect()
}

#[test]
fn edges_of_prdts() {
    let rig = rig(Some(32), 9);
    let mut line = rig.queue();
    let limits = rig.ahci[0].limits();
    let at = |addr, len| Segment { addr, len };
    let many = |count: u16| -> Vec<Segment> {
        let all = (0..u64::from(count)).map(|n| at(0x7_0000_0000 + n * 0x1_0000, 512));
        all.collect()
    };
    let good = [
        vec![at(2, 512)],
        vec![at(0x7_0000_0000, limits.max_transfer)],
        vec![at(0x7_0000_0000, (4 << 20) + 512), at(0x9_0000_0000, 512)],
        vec![at(u64::MAX - 1023, 512)],
        vec![at(0x7_0000_0002, 510), at(0x9_0000_0004, 2)],
        many(limits.max_segments - 1),
        many(limits.max_segments),
    ];
    for segments in good {
        let bytes: u32 = segments.iter().map(|one| one.len).sum();
        let cmd = command(Op::Read, 0, bytes / 512);
        let taken = fetched(&rig, &mut line, &cmd, &segments).unwrap();
        assert_eq!(taken.pieces, told(&segments));
    }
    let bad = [
        vec![at(1, 512)],
        vec![at(0, 511), at(0x1000, 513)],
        vec![at(u64::MAX - 511, 1024)],
        vec![at(0, 0), at(0, 512)],
        many(limits.max_segments + 1),
    ];
    for segments in bad {
        let bytes: u32 = segments.iter().map(|one| one.len).sum();
        let cmd = command(Op::Read, 0, bytes / 512);
        let refused = fetched(&rig, &mut line, &cmd, &segments);
        assert_eq!(refused, Err(CmdError::Invalid), "{segments:x?}");
    }
}

/// Even segments, whole blocks in sum.
fn segments() -> impl Strategy<Value = Vec<Segment>> {
    prop::collection::vec((0u64..1 << 46, 1u32..4000), 1..217).prop_map(|parts| {
        let mut segments: Vec<Segment> = parts
            .into_iter()
            .map(|(addr, len)| Segment {
                addr: addr * 2,
                len: len * 2,
            })
            .collect();
        let sum: u32 = segments.iter().map(|one| one.len).sum();
        if let Some(last) = segments.last_mut() {
            last.len += sum.next_multiple_of(4096) - sum;
        }
        segments
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 200 }))]

    #[test]
    fn prdts_say_what_the_segments_are(
        segments in segments(),
        queued in any::<bool>(),
        write in any::<bool>(),
    ) {
        let rig = rig(queued.then_some(32), 12);
        let mut line = rig.queue();
        let bytes: u32 = segments.iter().map(|one| one.len).sum();
        let op = if write { Op::Write } else { Op::Read };
        let cmd = Command { block_shift: 12, ..command(op, 5, bytes / 4096) };
        let taken = fetched(&rig, &mut line, &cmd, &segments).unwrap();
        prop_assert_eq!(taken.pieces, told(&segments));
    }

    #[test]
    fn fises_say_what_the_command_is(
        lba in 0u64..1 << 47,
        blocks in 1u32..=2048,
        write in any::<bool>(),
        fua in any::<bool>(),
        queued in any::<bool>(),
    ) {
        let rig = rig(queued.then_some(32), 9);
        let mut line = rig.queue();
        let op = if write { Op::Write } else { Op::Read };
        let cmd = Command { fua, ..command(op, lba, blocks) };
        let data = [Segment { addr: 0x7_0000_0000, len: blocks * 512 }];
        let taken = fetched(&rig, &mut line, &cmd, &data).unwrap();
        prop_assert_eq!(taken.lba, lba);
        let device = taken.device & 0x40;
        prop_assert_eq!(device, 0x40, "an LBA");
        if queued {
            let fua = if fua && write { 0x80 } else { 0 };
            prop_assert_eq!(taken.command, if write { 0x61 } else { 0x60 });
            prop_assert_eq!(u32::from(taken.features), blocks);
            prop_assert_eq!(taken.count, u16::from(taken.slot) << 3);
            prop_assert_eq!(taken.device, 0x40 | fua);
        } else {
            prop_assert_eq!(taken.command, if write { 0x35 } else { 0x25 });
            prop_assert_eq!(u32::from(taken.count), blocks);
            prop_assert_eq!((taken.features, taken.device), (0, 0x40));
        }
        prop_assert_eq!(taken.auxiliary, 0);
    }

    /// What was bound to the slot before leaves nothing behind.
    #[test]
    fn a_slot_keeps_nothing(first in 0usize..4, second in 0usize..4) {
        let rig = Rig::started(Config {
            slots: 1,
            ..Config::with(Drive { queued_trim: true, model: KNOWN_GOOD, ..Drive::new(9, 64) })
        });
        let mut line = rig.queue();
        let all = [Op::Read, Op::Write, Op::Flush, Op::Discard];
        let cmd = |which: usize| match all[which] {
            Op::Flush => command(Op::Flush, 0, 0),
            op => command(op, 7, 2),
        };
        let piece = |addr| [Segment { addr, len: 512 }, Segment { addr: addr + 0x1000, len: 512 }];
        let data = |which: usize, addr: u64| match which {
            0 | 1 => piece(addr).to_vec(),
            _ => Vec::new(),
        };
        let before = fetched(&rig, &mut line, &cmd(second), &data(second, 0x8000)).unwrap();
        fetched(&rig, &mut line, &cmd(first), &data(first, 0x2_0000)).unwrap();
        let after = fetched(&rig, &mut line, &cmd(second), &data(second, 0x8000)).unwrap();
        prop_assert_eq!(before, after);
    }
}
