// SPDX-License-Identifier: GPL-2.0
//! Submission and completion queues.

use super::State;
use std::collections::VecDeque;
use std::sync::atomic::{fence, Ordering};

/// A submission queue.
#[derive(Debug)]
pub struct Sq {
    pub base: u64,
    pub entries: u16,
    pub cq: u16,
    pub head: u16,
    pub tail: u16,
}

impl Sq {
    pub fn new(base: u64, entries: u16, cq: u16) -> Self {
        Self {
            base,
            entries,
            cq,
            head: 0,
            tail: 0,
        }
    }
}

/// A completion queue.
#[derive(Debug)]
pub struct Cq {
    pub base: u64,
    pub entries: u16,
    pub interrupts: bool,
    pub vector: u16,
    pub head: u16,
    pub tail: u16,
    pub phase: bool,
    /// Finished, and not posted yet.
    pub waiting: VecDeque<Completion>,
}

impl Cq {
    pub fn new(base: u64, entries: u16, interrupts: bool, vector: u16) -> Self {
        Self {
            base,
            entries,
            interrupts,
            vector,
            head: 0,
            tail: 0,
            phase: true,
            waiting: VecDeque::new(),
        }
    }
}

/// A completion before it is an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub result: u64,
    pub sq_head: u16,
    pub sq_id: u16,
    pub cid: u16,
    pub status: u16,
}

impl State {
    /// A doorbell register was written.
    pub fn ring(&mut self, number: u16, is_cq: bool, value: u32) {
        let value = match u16::try_from(value) {
            Ok(value) => value,
            Err(_) => return self.complain(format!("doorbell value {value:#x}")),
        };
        let shadowed = self.shadow.is_some() && number != 0;
        if is_cq {
            let Some(cq) = self.cqs.get_mut(&number) else {
                return self.complain(format!("head doorbell of no queue {number}"));
            };
            if value >= cq.entries || (value == cq.head && !shadowed) {
                return self.complain(format!("head {value} of queue {number}"));
            }
            let taken = (value + cq.entries - cq.head) % cq.entries;
            let there = (cq.tail + cq.entries - cq.head) % cq.entries;
            if taken > there {
                return self.complain(format!("head {value} of queue {number} passes the tail"));
            }
            cq.head = value;
        } else {
            let Some(sq) = self.sqs.get_mut(&number) else {
                return self.complain(format!("tail doorbell of no queue {number}"));
            };
            if value >= sq.entries || (value == sq.tail && !shadowed) {
                return self.complain(format!("tail {value} of queue {number}"));
            }
            if !shadowed {
                sq.tail = value;
            }
        }
    }

    /// Looks at shadow doorbells, executes what is there, posts what there is room for, until
    /// nothing changes.
    pub fn work_queues(&mut self) {
        if !self.ready || self.gone() {
            return;
        }
        loop {
            self.read_shadow();
            let executed = self.execute_all();
            let posted = self.post_all();
            if executed + posted == 0 {
                return;
            }
        }
    }

    /// Takes over shadow values, and says in EventIdx up to where that was.
    fn read_shadow(&mut self) {
        let Some((values, events)) = self.shadow else {
            return;
        };
        // Between the EventIdx of the last look and the values of this one.
        fence(Ordering::SeqCst);
        let bus = self.platform.bus();
        let stride = 4u64 << self.config.dstrd;
        let mut broken = None;
        for (&number, sq) in self.sqs.iter_mut().filter(|(&number, _)| number != 0) {
            let at = 2 * u64::from(number) * stride;
            let tail = bus.read32(values + at).unwrap_or(u32::MAX);
            match u16::try_from(tail) {
                Ok(tail) if tail < sq.entries => sq.tail = tail,
                _ => broken = Some(tail),
            }
            let _ = bus.write32(events + at, u32::from(sq.tail));
        }
        for (&number, cq) in self.cqs.iter_mut().filter(|(&number, _)| number != 0) {
            let at = (2 * u64::from(number) + 1) * stride;
            let head = bus.read32(values + at).unwrap_or(u32::MAX);
            match u16::try_from(head) {
                Ok(head) if head < cq.entries => cq.head = head,
                _ => broken = Some(head),
            }
            // To be told of the next head only when the queue is so full that entries wait.
            let event = if cq.waiting.is_empty() {
                (cq.head + cq.entries - 1) % cq.entries
            } else {
                cq.head
            };
            let _ = bus.write32(events + at, u32::from(event));
        }
        if let Some(value) = broken {
            self.complain(format!("shadow doorbell {value:#x}"));
        }
    }

    fn execute_all(&mut self) -> usize {
        let mut executed = 0;
        let numbers: Vec<u16> = self.sqs.keys().copied().collect();
        for number in numbers {
            while !(self.hold && number != 0) {
                let Some(sq) = self.sqs.get_mut(&number).filter(|sq| sq.head != sq.tail) else {
                    break;
                };
                let bytes = match number {
                    0 => 64,
                    _ => self.config.frail.sqe_bytes,
                };
                let at = sq.base + u64::from(sq.head) * bytes;
                let held = (sq.tail + sq.entries - sq.head) % sq.entries;
                sq.head = (sq.head + 1) % sq.entries;
                let (sq_head, cq) = (sq.head, sq.cq);
                let mut sqe = [0u64; 8];
                for (word, offset) in sqe.iter_mut().zip((0..).step_by(8)) {
                    *word = self.platform.bus().read64(at + offset).unwrap_or(u64::MAX);
                }
                executed += 1;
                self.check_frailty(number, held, (sqe[0] >> 16) as u16);
                let answer = match number {
                    0 => self.admin(&sqe),
                    _ => Some(self.io(&sqe)),
                };
                let Some((status, result)) = answer else {
                    continue;
                };
                let completion = Completion {
                    result,
                    sq_head,
                    sq_id: number,
                    cid: (sqe[0] >> 16) as u16,
                    status,
                };
                if !self.keeps(cq, completion) {
                    self.finish(cq, completion);
                }
            }
        }
        executed
    }

    fn check_frailty(&mut self, number: u16, held: u16, cid: u16) {
        let frail = self.config.frail.clone();
        if number != 0 && held > 1 && frail.one_at_a_time {
            self.complain(format!("{held} commands at once"));
        }
        if let Some(most) = frail.shared_cids {
            if cid >= most || (cid < 32) != (number == 0) {
                self.complain(format!("CID {cid:#x} on queue {number}"));
            }
        }
    }

    /// A command is over: its completion waits for room in queue `cq`.
    pub fn finish(&mut self, cq: u16, completion: Completion) {
        let liar = match cq {
            0 => self.admin_liar.as_mut(),
            _ => self.liar.as_mut(),
        };
        let posts = match liar {
            None => vec![completion],
            Some(liar) => liar(cq, completion),
        };
        if let Some(cq) = self.cqs.get_mut(&cq) {
            cq.waiting.extend(posts);
        }
    }

    fn post_all(&mut self) -> usize {
        let bus = self.platform.bus();
        let mut posted = 0;
        for cq in self.cqs.values_mut() {
            let mut any = false;
            while (cq.tail + 1) % cq.entries != cq.head {
                let Some(completion) = cq.waiting.pop_front() else {
                    break;
                };
                let mut entry = [0u8; 16];
                let second = u64::from(completion.sq_head)
                    | (u64::from(completion.sq_id) << 16)
                    | (u64::from(completion.cid) << 32)
                    | (u64::from(cq.phase) << 48)
                    | (u64::from(completion.status) << 49);
                entry[..8].copy_from_slice(&completion.result.to_le_bytes());
                entry[8..].copy_from_slice(&second.to_le_bytes());
                let _ = bus.write(cq.base + u64::from(cq.tail) * 16, &entry);
                cq.tail = (cq.tail + 1) % cq.entries;
                cq.phase ^= cq.tail == 0;
                any = true;
                posted += 1;
            }
            if any && cq.interrupts {
                *self.messages.entry(cq.vector).or_default() += 1;
            }
        }
        posted
    }
}
