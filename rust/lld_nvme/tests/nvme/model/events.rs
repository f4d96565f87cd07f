// SPDX-License-Identifier: GPL-2.0
//! Asynchronous events.

use super::queues::Completion;
use super::State;
use std::collections::{BTreeSet, VecDeque};
use testkit::Device;

/// Requests that are taken at once (AERL, plus one).
const REQUESTS: usize = 1;

/// What the controller has to report, and to whom.
#[derive(Default)]
pub struct Reporter {
    /// Asynchronous Event Configuration.
    pub config: u32,
    /// CIDs of the requests that wait.
    pub requests: Vec<u16>,
    /// What is to be reported yet.
    pub events: VecDeque<u32>,
    /// Types that are not reported until their log page is read, with that page.
    pub masked: BTreeSet<(u32, u8)>,
    /// What is reported whenever it can be, again and again.
    pub forever: Option<u32>,
    /// How many were reported.
    pub told: usize,
}

impl Reporter {
    /// A reset.
    pub fn forget(&mut self) {
        self.config = 0;
        self.requests.clear();
        self.events.clear();
        self.masked.clear();
    }

    /// Log page `id` was read.
    pub fn read(&mut self, id: u8) {
        self.masked.retain(|(_, page)| *page != id);
    }
}

impl State {
    /// An Asynchronous Event Request came. Status and result; `None`: it waits.
    pub fn await_event(&mut self, cid: u16) -> Option<(u16, u64)> {
        if self.reporter.requests.len() >= REQUESTS {
            self.complain("one Asynchronous Event Request too many");
            return Some((0x4105, 0));
        }
        self.reporter.requests.push(cid);
        self.report();
        None
    }

    /// The event `dword` is reported as soon as it can be.
    pub fn raise(&mut self, dword: u32) {
        self.reporter.events.push_back(dword);
        self.report();
        self.work();
    }

    fn report(&mut self) {
        let masked = &self.reporter.masked;
        let kind = |dword: u32| (dword & 7, (dword >> 16) as u8);
        let free = |dword: &u32| !masked.iter().any(|(which, _)| *which == *dword & 7);
        let events = &mut self.reporter.events;
        let next = match (events.iter().position(free), self.reporter.forever) {
            (Some(at), _) => events.remove(at),
            (None, forever) => forever,
        };
        let Some(dword) = next.filter(|_| !self.reporter.requests.is_empty()) else {
            return;
        };
        let cid = self.reporter.requests.remove(0);
        self.reporter.masked.insert(kind(dword));
        self.reporter.told += 1;
        let sq_head = self.sqs.get(&0).map_or(0, |sq| sq.head);
        let completion = Completion {
            result: u64::from(dword),
            sq_head,
            sq_id: 0,
            cid,
            status: 0,
        };
        self.finish(0, completion);
    }
}
