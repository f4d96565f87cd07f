// SPDX-License-Identifier: GPL-2.0
//! The threads, by turns.

use super::clock::{Io, Machine, Read, Seen, Top};
use super::load::{Load, Played, NEVER, PAUSE_NS, SLICE_NS};
use engine::{Costs, Expected, IoQueue, Nap, Next, Strategy, Switches, Turn, Waiting};
use hal::mock::{MockPlatform, MockQueue};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use testkit::Dice;

const COOP: Switches = Switches(Switches::COOP);

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

    fn expects(&self) -> Option<Expected> {
        let seen = |seen: &mut Seen| seen.expected.get(&self.id).copied();
        self.top.machine.seen(seen)
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
    Woken(u32),
    /// Until then, and for how long it then looks.
    Naps(u32, u64, u64),
    NapIsOver(u32, u64, u64),
}

/// Plays it through, and tells what came of it. Every read ends.
pub fn play<S: Strategy>(strategy: S, load: Load) -> Played {
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
        noted: AtomicBool::new(false),
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
    queue.set_poll_interval_us(load.interval_us);
    queue.set_foretelling(load.predict);
    queue.set_costs(Costs {
        sleep_ns: load.switch_ns,
        ..Costs::ASSUMED
    });
    run(&queue, load);
    assert_eq!((queue.in_flight(), queue.queued()), (0, 0), "{load:?}");
    top.machine.seen(|seen| {
        assert!(seen.ended.iter().copied().eq(0..load.reads), "{load:?}");
        seen.played.longest = seen.longest;
        seen.played
    })
}

fn count_nap<S: Strategy>(queue: &Io<S>, nap: Nap) {
    let count = |seen: &mut Seen| seen.played.naps[nap as usize] += 1;
    queue.upper().machine.seen(count);
}

/// A nap has ended with nothing left to look for.
fn note_nap<S: Strategy>(queue: &Io<S>, nap: Nap, late_ns: u64) {
    queue.note_nap(nap, late_ns);
    count_nap(queue, nap);
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
            let now = machine.now();
            *thread = match *thread {
                Thread::Asleep(id) if top.is_over(id) => Thread::Woken(id),
                Thread::Naps(id, until, _) if top.is_over(id) => {
                    note_nap(queue, Nap::Woken, now.saturating_sub(until));
                    Thread::Woken(id)
                }
                Thread::Naps(id, until, ns) if until <= now => Thread::NapIsOver(id, until, ns),
                _ => continue,
            };
            ready.push_back(n);
        }
        let Some(n) = ready.pop_front() else {
            machine.busy.store(false, SeqCst);
            machine.begin();
            let naps = threads.iter().map(|thread| match *thread {
                Thread::Naps(_, until, _) => until,
                _ => NEVER,
            });
            let event = machine.next_over().min(top.next_handler());
            let event = naps.fold(event, u64::min);
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
        let since = machine.now();
        let (id, then) = match threads[n] {
            Thread::Computes => {
                top.pass(SLICE_NS);
                ready.push_back(n);
                continue;
            }
            Thread::Woken(id) => {
                top.pass(load.switch_to(id));
                (id, Next::GoOn)
            }
            Thread::NapIsOver(id, until, ns) => {
                top.pass(load.switch_to(id));
                let here = here(id, false);
                match top.is_over(id) {
                    true => note_nap(queue, Nap::Late, machine.now() - until),
                    false => count_nap(queue, queue.look_again(&here, until, ns)),
                }
                match top.is_over(id) {
                    true => (id, Next::GoOn),
                    false => (id, Next::Sleep),
                }
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
                let count = match load.several {
                    true => 1 + machine.roll(8) as u32 / 7 * 7,
                    false => 1,
                };
                let to = (next + count).min(load.reads);
                let noted = load.hooked && queue.notes_owner(COOP);
                machine.noted.store(noted, SeqCst);
                match to - next {
                    1 => queue.submit(Read(next), true),
                    _ => queue.submit_many((next..to).map(Read)),
                }
                next = to;
                queue.pass_by(COOP);
                let here = here(to - 1, true);
                let then = match (noted, here.is_awake()) {
                    (true, _) => queue.wait(&here, None),
                    (false, true) => Next::GoOn,
                    (false, false) => Next::Sleep,
                };
                (to - 1, then)
            }
        };
        let now = machine.now();
        threads[n] = match then {
            Next::GoOn => Thread::Reads,
            Next::Yield => Thread::GaveWay(id),
            Next::Sleep => Thread::Asleep(id),
            Next::Nap { until_ns, for_ns } => Thread::Naps(id, until_ns, for_ns),
        };
        machine.seen(|seen| {
            seen.played.busy_ns += now - since;
            if then == Next::Sleep {
                seen.played.sleeps[usize::from(load.is_large(id))] += 1;
            }
            if then == Next::GoOn {
                let delay = now - seen.over[&id];
                seen.played.delay_ns += delay;
                seen.longest.delay = seen.longest.delay.max(delay);
            }
        });
        if matches!(then, Next::GoOn | Next::Yield) {
            ready.push_back(n);
        }
    }
}
