// SPDX-License-Identifier: GPL-2.0
//! Pages for lists: as many as there are, each for one command at a time, and none is lost.

use crate::model::{Config, Namespace};
use crate::rig::{command, Line, Rig};
use hal::{Bound, CmdError, Command, Controller, Failure, Op, Queue, Segment, Tag, TagBatch};

/// Pages of a queue.
const PAGES: usize = 128;
/// 1 MiB, of which 256 KiB go without a page.
const LARGE: u32 = 2048;

/// A controller whose memory is never reached: only addresses matter here.
fn rig(sgls: u32) -> Rig {
    Rig::started(Config {
        sgls,
        mdts: 0,
        namespaces: vec![Namespace::new(1, 9, 4096)],
        ..Config::default()
    })
}

fn read(blocks: u32) -> (Command, [Segment; 1]) {
    let segment = Segment {
        addr: 0x7_0000_0000,
        len: blocks << 9,
    };
    (command(Op::Read, 0, blocks), [segment])
}

/// The device has complained of nothing; that it does not reach the data is meant.
#[track_caller]
fn rules_are_kept(rig: &Rig) {
    assert_eq!(rig.model.state().complaints, Vec::<String>::new());
}

/// Binds large reads for as long as there are pages.
fn bind_all(queue: &mut Line) -> Vec<Tag<Bound>> {
    let (cmd, data) = read(LARGE);
    let mut bound = Vec::new();
    loop {
        match queue.bind(&cmd, &data) {
            Ok(tag) => bound.push(tag),
            Err(why) => {
                assert_eq!(why, CmdError::NotReady);
                return bound;
            }
        }
    }
}

fn issue(queue: &mut Line, bound: Vec<Tag<Bound>>) {
    let mut bound = bound.into_iter().peekable();
    while bound.peek().is_some() {
        queue.issue(bound.by_ref().take(TagBatch::<Bound>::MAX));
    }
}

#[test]
fn who_finds_no_page_waits_for_another_s() {
    let rig = rig(0);
    let mut queue = rig.queue(0);
    for _ in 0..3 {
        rig.model.state().hold = true;
        let bound = bind_all(&mut queue);
        assert_eq!(bound.len(), PAGES);
        issue(&mut queue, bound);
        // Others need none: 256 KiB and the page that the command itself names.
        let (cmd, data) = read(520);
        queue.start(&cmd, &data).unwrap();
        rig.model.state().hold = false;
        rig.model.run();
        assert_eq!(queue.drain().len(), PAGES + 1);
    }
    rules_are_kept(&rig);
}

#[test]
fn a_page_is_free_again_when_its_command_was_never_told() {
    let rig = rig(0);
    let mut queue = rig.queue(0);
    for _ in 0..3 {
        let bound = bind_all(&mut queue);
        assert_eq!(bound.len(), PAGES);
        let mut bound = bound.into_iter().map(Tag::unbind).peekable();
        while bound.peek().is_some() {
            let mut tags = TagBatch::default();
            for tag in bound.by_ref().take(TagBatch::<Bound>::MAX) {
                tags.push(tag).unwrap();
            }
            queue.0.queue.unget_tags(&mut queue.0.issue, &mut tags);
        }
    }
    rules_are_kept(&rig);
}

#[test]
fn a_page_is_free_again_when_its_command_could_not_be_said() {
    for sgls in [0, 1] {
        let rig = rig(sgls);
        let mut queue = rig.queue(0);
        let (cmd, _) = read(LARGE);
        let piece = |at: u64| Segment {
            addr: 0x7_0000_0000 + (at << 14),
            len: 4096,
        };
        for why in [CmdError::NotReady, CmdError::Invalid] {
            for _ in 0..2 * PAGES {
                // Long enough for a page: pages that don't touch.
                let data = (0..100).map(|at| Ok(piece(at))).chain([Err(why)]);
                assert_eq!(queue.bind_each(&cmd, data).err(), Some(why));
            }
        }
        let (cmd, _) = read(800);
        let data: Vec<_> = (0..100).map(piece).collect();
        rig.model.state().hold = true;
        for _ in 0..PAGES {
            queue.start(&cmd, &data).unwrap();
        }
        assert_eq!(queue.start(&cmd, &data), Err(CmdError::NotReady));
        rig.model.state().hold = false;
        rig.model.run();
        assert_eq!(queue.drain().len(), PAGES);
        rules_are_kept(&rig);
    }
}

#[test]
fn a_page_is_free_again_after_a_reset() {
    let rig = rig(0);
    let mut queue = rig.queue(0);
    for lost in [false, true, false] {
        rig.model.state().hold = true;
        let bound = bind_all(&mut queue);
        assert_eq!(bound.len(), PAGES);
        if !lost {
            issue(&mut queue, bound);
        }
        rig.nvme.stop().unwrap();
        let reaped: Vec<(u16, Failure)> = queue.reap();
        assert_eq!(reaped.len(), if lost { 0 } else { PAGES });
        queue.rewind();
        rig.model.state().hold = false;
        rig.nvme.start().unwrap();
    }
    assert_eq!(bind_all(&mut queue).len(), PAGES);
}

#[test]
fn discards_have_a_page_each() {
    let rig = rig(0);
    let mut queue = rig.queue(0);
    rig.model.state().hold = true;
    for _ in 0..PAGES {
        queue.start(&command(Op::Discard, 64, 32), &[]).unwrap();
    }
    let more = queue.start(&command(Op::Discard, 64, 32), &[]);
    assert_eq!(more, Err(CmdError::NotReady));
    rig.model.state().hold = false;
    rig.model.run();
    let done = queue.drain();
    assert_eq!(done.len(), PAGES);
    assert!(done.iter().all(|(_, outcome)| outcome.is_ok()), "{done:?}");
    rules_are_kept(&rig);
}
