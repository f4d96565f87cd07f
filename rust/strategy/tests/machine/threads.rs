// SPDX-License-Identifier: GPL-2.0
//! The threads, by turns.

use super::clock::{Io, Machine, Read, Seen, Top};
use super::load::{Load, Played, NEVER, PAUSE_NS, SLICE_NS};
use engine::{Costs, Expected, IoQueue, Nap, Next, Strategy, Switches, Waiting};
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
        known: AtomicBool::new(false),
        sample: AtomicBool::new(false),
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
    let mut quiesced = queue.quiesce(&platform);
    quiesced.set_mode(load.mode).expect("it can be polled");
    quiesced.unquiesce();
    queue.set_poll_interval_us(load.interval_us);
    queue.set_predicting(load.predict);
    queue.set_costs(Costs {
        sleep_ns: load.switch_ns,
        ..Costs::ASSUMED
    });
    Schedule::new(&queue, load).run();
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

/// The threads on their CPU.
struct Schedule<'a, S: Strategy> {
    queue: &'a Io<S>,
    load: Load,
    /// Those that read come first.
    threads: Vec<Thread>,
    /// Whether each is tracked with what it waits for, and has been with anything.
    tracked: Vec<bool>,
    known: Vec<bool>,
    ready: VecDeque<usize>,
    /// The next read.
    next: u32,
}

impl<'a, S: Strategy> Schedule<'a, S> {
    fn new(queue: &'a Io<S>, load: Load) -> Self {
        let mut threads = vec![Thread::Reads; load.readers];
        threads.extend(vec![Thread::Computes; load.neighbours]);
        Self {
            queue,
            load,
            ready: (0..threads.len()).collect(),
            tracked: vec![false; threads.len()],
            known: vec![false; threads.len()],
            threads,
            next: 0,
        }
    }

    fn top(&self) -> &'a Top<S> {
        self.queue.upper()
    }

    fn run(&mut self) {
        let machine = &self.top().machine;
        while machine.seen(|seen| seen.ended.len()) < self.load.reads as usize {
            self.wake();
            let Some(n) = self.ready.pop_front() else {
                self.idle();
                continue;
            };
            machine.busy.store(true, SeqCst);
            machine.known.store(self.known[n], SeqCst);
            let readers = self.ready.iter().filter(|&&n| self.tracked[n]).count();
            machine.ready.store(readers, SeqCst);
            let since = machine.now();
            if let Some((id, then)) = self.turn(n, readers != 0) {
                self.leave_cpu(n, id, then, since);
            }
        }
    }

    /// Those whose read is over are ready, and those whose nap is.
    fn wake(&mut self) {
        let (queue, top) = (self.queue, self.top());
        for (n, thread) in self.threads.iter_mut().enumerate() {
            let now = top.machine.now();
            *thread = match *thread {
                Thread::Asleep(id) if top.is_over(id) => Thread::Woken(id),
                Thread::Naps(id, until, _) if top.is_over(id) => {
                    note_nap(queue, Nap::Woken, now.saturating_sub(until));
                    Thread::Woken(id)
                }
                Thread::Naps(id, until, ns) if until <= now => Thread::NapIsOver(id, until, ns),
                _ => continue,
            };
            self.ready.push_back(n);
        }
    }

    /// No thread is ready: time passes until something comes.
    fn idle(&self) {
        let top = self.top();
        let machine = &top.machine;
        machine.busy.store(false, SeqCst);
        machine.begin();
        let naps = self.threads.iter().map(|thread| match *thread {
            Thread::Naps(_, until, _) => until,
            _ => NEVER,
        });
        let event = machine.next_over().min(top.next_handler());
        let event = naps.fold(event, u64::min);
        let load = self.load;
        assert!(event != NEVER, "nobody comes for what is left: {load:?}");
        top.pass(event.saturating_sub(machine.now()).max(1));
    }

    /// That thread has the CPU: which read it waits for then, and how. None: for nothing.
    fn turn(&mut self, n: usize, crowded: bool) -> Option<(u32, Next)> {
        let (queue, top) = (self.queue, self.top());
        let here = |id, may_yield| Here {
            top,
            id,
            may_yield: may_yield && crowded,
        };
        match self.threads[n] {
            Thread::Computes => {
                top.pass(SLICE_NS);
                self.ready.push_back(n);
                None
            }
            Thread::Woken(id) => {
                top.pass(self.load.switch_to(id));
                Some((id, Next::GoOn))
            }
            Thread::NapIsOver(id, until, ns) => {
                top.pass(self.load.switch_to(id));
                let here = here(id, false);
                match top.is_over(id) {
                    true => note_nap(queue, Nap::Late, top.machine.now() - until),
                    false => count_nap(queue, queue.look_again(&here, until, ns)),
                }
                match top.is_over(id) {
                    true => Some((id, Next::GoOn)),
                    false => Some((id, Next::Sleep)),
                }
            }
            Thread::GaveWay(id) if top.is_over(id) => {
                queue.yielded(true, &here(id, true));
                Some((id, Next::GoOn))
            }
            Thread::GaveWay(id) => {
                let ended = queue.yielded(false, &here(id, false));
                Some((id, queue.wait(&here(id, false), ended)))
            }
            _ if self.next >= self.load.reads => None,
            _ => Some(self.read(n, crowded)),
        }
    }

    /// A read is submitted, or several, of which the last is waited for.
    fn read(&mut self, n: usize, crowded: bool) -> (u32, Next) {
        let (queue, top, load) = (self.queue, self.top(), self.load);
        let machine = &top.machine;
        top.pass(machine.roll(20_000));
        let count = match load.several {
            true => 1 + machine.roll(8) as u32 / 7 * 7,
            false => 1,
        };
        let to = (self.next + count).min(load.reads);
        let sample = load.hooked && queue.tracks(COOP);
        machine.sample.store(sample, SeqCst);
        self.tracked[n] = sample;
        self.known[n] |= sample;
        machine.known.store(self.known[n], SeqCst);
        match to - self.next {
            1 => queue.submit(Read(self.next), true),
            _ => queue.submit_many((self.next..to).map(Read)),
        }
        self.next = to;
        queue.poll_on_submit(COOP);
        let here = Here {
            top,
            id: to - 1,
            may_yield: crowded,
        };
        let then = match (sample, here.is_awake()) {
            (true, _) => queue.wait(&here, None),
            (false, true) => Next::GoOn,
            (false, false) => Next::Sleep,
        };
        (to - 1, then)
    }

    /// That thread had the CPU since then. It waits for the read as it was told to, or goes on with
    /// its next turn.
    fn leave_cpu(&mut self, n: usize, id: u32, then: Next, since: u64) {
        let machine = &self.top().machine;
        let now = machine.now();
        self.threads[n] = match then {
            Next::GoOn => Thread::Reads,
            Next::Yield => Thread::GaveWay(id),
            Next::Sleep => Thread::Asleep(id),
            Next::Nap { until_ns, for_ns } => Thread::Naps(id, until_ns, for_ns),
        };
        machine.seen(|seen| {
            seen.played.busy_ns += now - since;
            if then == Next::Sleep {
                seen.played.sleeps[usize::from(self.load.is_large(id))] += 1;
            }
            if then == Next::GoOn {
                let delay = now - seen.over[&id];
                seen.played.delay_ns += delay;
                seen.longest.delay = seen.longest.delay.max(delay);
            }
        });
        match then {
            Next::GoOn => {
                self.tracked[n] = false;
                self.ready.push_front(n);
            }
            Next::Yield => self.ready.push_back(n),
            Next::Sleep | Next::Nap { .. } => {}
        }
    }
}
