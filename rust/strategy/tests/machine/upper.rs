// SPDX-License-Identifier: GPL-2.0
//! The layer above, which sees when each command is staged, and when it ends.

use super::clock::{Read, Staged, Top};
use super::load::{BIND_NS, END_NS, KICK_NS, LOOK_NS};
use engine::{Context, Cpu, Data, Expected, Interrupted, Strategy, Upper, View};
use hal::{CmdError, Command, Op, Outcome, Segment};
use std::sync::atomic::Ordering::SeqCst;

impl<S: Strategy> Upper for Top<S> {
    type Request = Read;
    type Ended = usize;

    fn command(&self, rq: &Read) -> Command {
        Command {
            op: Op::Read,
            unit: 1,
            lba: u64::from(rq.0),
            blocks: if self.machine.load.is_large(rq.0) {
                128
            } else {
                1
            },
            block_shift: 9,
            fua: false,
            unmap: false,
        }
    }

    fn data<'a>(
        &'a self,
        _: &'a mut Read,
    ) -> Data<impl Iterator<Item = Result<Segment, CmdError>> + 'a> {
        Data::Many(std::iter::empty())
    }

    fn begin_cmd(&self, rq: &mut Read) {
        let most = self.queue().batching().most_ns();
        let at = self.machine.now();
        self.machine.seen(|seen| {
            // Those that began to wait before it let it wait no longer than themselves.
            let others = seen.staged.values().map(|staged| staged.most);
            let most = others.fold(most, u64::max);
            seen.staged.insert(rq.0, Staged { at, most });
            seen.bound += 1;
            seen.waiting.remove(&rq.0);
        });
        self.machine.look_at_tags();
        self.pass(BIND_NS);
    }

    fn predict(&self, rq: &Read, over: Option<Expected>) -> bool {
        if let Some(what) = over {
            self.machine.seen(|seen| {
                seen.played.foretold += 1;
                seen.expected.insert(rq.0, what);
            });
        }
        self.machine.sample.load(SeqCst)
    }

    fn unmap(&self, _: &mut Read) {}

    fn deferred(&self, rq: &Read) {
        self.machine.seen(|seen| seen.waiting.insert(rq.0));
        self.machine.look_at_tags();
    }

    fn end_cmd(&self, count: &mut usize, rq: Read, outcome: Outcome) {
        assert_eq!(outcome, Ok(()), "{}", rq.0);
        *count += 1;
        let now = self.machine.now();
        self.machine.seen(|seen| {
            let at = seen
                .finished
                .remove(&rq.0)
                .expect("the device has finished it");
            seen.longest.unnoticed = seen.longest.unnoticed.max(now - at);
            seen.over.insert(rq.0, at);
            assert!(seen.ended.insert(rq.0), "{} ends twice", rq.0);
            seen.bound -= 1;
        });
        self.machine.look_at_tags();
        self.pass(END_NS);
    }

    fn wakes(&self, count: &usize) -> bool {
        *count != 0
    }

    fn finish(&self, _: &mut usize, _: Context) {}

    fn retry_later(&self) {
        self.machine
            .kick
            .fetch_min(self.machine.now() + KICK_NS, SeqCst);
    }

    fn can_poll(&self) -> bool {
        true
    }

    fn set_interrupt(&self, on: bool) -> bool {
        self.machine.interrupts.store(on, SeqCst);
        if !on {
            self.machine.raised.store(false, SeqCst);
        }
        true
    }

    fn arm_poll(&self, us: u32) {
        let at = self.machine.now() + u64::from(us) * 1000;
        self.machine.timer.store(at, SeqCst);
    }
}

impl<S: Strategy> Cpu for Top<S> {
    fn interrupted(&self) -> Interrupted {
        let machine = &self.machine;
        match (machine.busy.load(SeqCst), machine.known.load(SeqCst)) {
            (false, _) => Interrupted::Nobody,
            (true, true) => Interrupted::Waiter,
            (true, false) => Interrupted::Thread,
        }
    }

    fn is_crowded(&self) -> bool {
        self.machine.ready.load(SeqCst) != 0
    }

    fn now_ms(&self) -> u64 {
        self.machine.now() / 1_000_000
    }

    fn now_ns(&self) -> u64 {
        self.pass(LOOK_NS);
        self.machine.now()
    }
}
