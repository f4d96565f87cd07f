// SPDX-License-Identifier: GPL-2.0
//! The threads, by turns.

use super::clock::{Io, Machine, Read, Top};
use super::load::{Load, Longest, NEVER, PAUSE_NS, SLICE_NS};
use engine::{IoQueue, Next, Strategy, Turn, Waiting};
use hal::mock::{MockPlatform, MockQueue};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use testkit::Dice;

/// A thread that waits for a read.
struct Here<'a, S: Strategy> {
    top: &'a Top<S>,
    id: u32,
    may_yield: bool,
}

impl<S: Strategy> Waiting for Here<'_, S> {
    fn is_awake(&self) -> bool {
        self.top.is_over(self.id)
    }

    fn pause(&self) -> bool {
        self.top.pass(PAUSE_NS);
        !self.is_awake()
    }

    fn may_yield(&self) -> bool {
        self.may_yield
    }
}

#[derive(Clone, Copy)]
enum Thread {
    Computes,
    Reads,
    GaveWay(u32),
    Asleep(u32),
}

/// Plays it through, and tells the longest times. Every read ends.
pub fn play<S: Strategy>(strategy: S, load: Load) -> Longest {
    let platform = MockPlatform::new();
    let (hw, device) = MockQueue::gathering(&platform, load.tags, load.batch).expect("memory");
    let machine = Machine {
        load,
        device,
        now: AtomicU64::new(1_000_000),
        timer: AtomicU64::new(NEVER),
        kick: AtomicU64::new(NEVER),
        interrupts: AtomicBool::new(true),
        raised: AtomicBool::new(false),
        in_handler: AtomicBool::new(false),
        busy: AtomicBool::new(false),
        ready: AtomicUsize::new(0),
        seen: Mutex::default(),
        dice: Mutex::new(Dice(load.seed)),
    };
    let top = Top {
        machine,
        queue: OnceLock::new(),
    };
    let depth = 8 * load.readers;
    let queue = IoQueue::new(&platform, hw, top, strategy, depth).expect("memory");
    let queue = Arc::new(queue);
    let top = queue.upper();
    top.queue
        .set(Arc::downgrade(&queue))
        .expect("it is the first");
    let mut paused = queue.pause(&platform);
    paused.set_mode(load.mode).expect("it can be polled");
    paused.resume();
    run(&queue, load);
    assert_eq!((queue.in_flight(), queue.queued()), (0, 0), "{load:?}");
    top.machine.seen(|seen| {
        assert!(seen.ended.iter().copied().eq(0..load.reads), "{load:?}");
        seen.longest
    })
}

fn run<S: Strategy>(queue: &Arc<Io<S>>, load: Load) {
    let top = queue.upper();
    let machine = &top.machine;
    let mut threads = vec![Thread::Reads; load.readers];
    threads.extend(vec![Thread::Computes; load.neighbours]);
    let mut ready: VecDeque<usize> = (0..threads.len()).collect();
    let mut next = 0;
    while machine.seen(|seen| seen.ended.len()) < load.reads as usize {
        for (n, thread) in threads.iter_mut().enumerate() {
            if matches!(*thread, Thread::Asleep(id) if top.is_over(id)) {
                *thread = Thread::Reads;
                ready.push_back(n);
            }
        }
        let Some(n) = ready.pop_front() else {
            machine.busy.store(false, SeqCst);
            let event = machine.next_over().min(top.next_handler());
            assert!(event != NEVER, "nobody comes for what is left: {load:?}");
            top.pass(event.saturating_sub(machine.now()).max(1));
            continue;
        };
        machine.busy.store(true, SeqCst);
        let readers = ready.iter().filter(|&&n| n < load.readers).count();
        machine.ready.store(readers, SeqCst);
        let here = |id, may_yield| Here {
            top,
            id,
            may_yield: may_yield && readers != 0,
        };
        let (id, then) = match threads[n] {
            Thread::Computes => {
                top.pass(SLICE_NS);
                ready.push_back(n);
                continue;
            }
            Thread::GaveWay(id) if top.is_over(id) => {
                queue.yielded(Turn::Paid, &here(id, true));
                (id, Next::GoOn)
            }
            Thread::GaveWay(id) => {
                let ended = queue.yielded(Turn::Vain, &here(id, false));
                (id, queue.wait(&here(id, false), ended))
            }
            _ if next >= load.reads => continue,
            _ => {
                top.pass(machine.roll(20_000));
                // Now and then several at once, as io_uring has them.
                let count = 1 + machine.roll(8) as u32 / 7 * 7;
                let to = (next + count).min(load.reads);
                match to - next {
                    1 => queue.submit(Read(next), true),
                    _ => queue.submit_many((next..to).map(Read)),
                }
                next = to;
                queue.pass_by(engine::Switches(engine::Switches::COOP));
                (to - 1, queue.wait(&here(to - 1, true), None))
            }
        };
        threads[n] = match then {
            Next::GoOn => Thread::Reads,
            Next::Yield => Thread::GaveWay(id),
            Next::Sleep => Thread::Asleep(id),
        };
        if then != Next::Sleep {
            ready.push_back(n);
        }
    }
}
