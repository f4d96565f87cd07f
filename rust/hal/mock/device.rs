// SPDX-License-Identifier: GPL-2.0
//! The device of a mock queue: it completes what, when and as the test says.

use crate::{CmdError, Command, Outcome, Segment};
use core::fmt;
use std::boxed::Box;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

/// A command as it was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    /// Its tag.
    pub number: u16,
    /// What to do.
    pub command: Command,
    /// With which memory.
    pub data: Vec<Segment>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Told, and not yet taken for execution, oldest first.
    pub(super) issued: VecDeque<Issued>,
    /// Completions that the driver has not fetched.
    pub(super) posted: VecDeque<(u16, Outcome)>,
    /// Answers to the next binds.
    pub(super) bind_answers: VecDeque<Option<CmdError>>,
    pub(super) doorbells: usize,
    pub(super) releases: usize,
    /// No tag is reaped.
    pub(super) keeps_tags: bool,
}

/// What happens while somebody looks for events.
type Meanwhile = Box<dyn FnOnce() + Send>;

/// The device's end of a [`MockQueue`](crate::mock::MockQueue). Any thread.
#[derive(Default)]
pub struct MockDevice {
    state: Mutex<State>,
    /// After so many looks.
    meanwhile: Mutex<Option<(usize, Meanwhile)>>,
}

impl fmt::Debug for MockDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.fmt(f)
    }
}

impl MockDevice {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commands that were issued and that the device has not taken yet, oldest first.
    pub fn issued(&self) -> Vec<Issued> {
        self.state().issued.iter().cloned().collect()
    }

    /// Takes the oldest command for execution; nothing is completed by that.
    pub fn take(&self) -> Option<Issued> {
        self.state().issued.pop_front()
    }

    /// Takes command `at` (0: the oldest) for execution.
    pub fn take_at(&self, at: usize) -> Option<Issued> {
        self.state().issued.remove(at)
    }

    /// Posts a completion for tag `number`, true or not.
    pub fn post(&self, number: u16, outcome: Result<(), CmdError>) {
        let outcome = outcome.map_err(CmdError::permanent);
        self.state().posted.push_back((number, outcome));
    }

    /// Takes the oldest command and posts its completion; a failure is final.
    pub fn complete_next(&self, outcome: Result<(), CmdError>) -> Option<Issued> {
        self.end_next(outcome.map_err(CmdError::permanent))
    }

    /// Takes the oldest command and posts how it ended.
    pub fn end_next(&self, outcome: Outcome) -> Option<Issued> {
        let mut state = self.state();
        let issued = state.issued.pop_front()?;
        state.posted.push_back((issued.number, outcome));
        Some(issued)
    }

    /// Takes everything and posts its completion; returns how many commands there were.
    pub fn complete_all(&self, outcome: Result<(), CmdError>) -> usize {
        core::iter::from_fn(|| self.complete_next(outcome)).count()
    }

    /// The answers to the next binds: `None` lets one succeed. After them all succeed.
    pub fn answer_binds(&self, answers: impl IntoIterator<Item = Option<CmdError>>) {
        self.state().bind_answers.extend(answers);
    }

    /// Forgets the answers that are left: binds succeed from now on.
    pub fn bind_well(&self) {
        self.state().bind_answers.clear();
    }

    /// From now on the controller, too, lies: no tag of its is reaped.
    pub fn keep_tags(&self) {
        self.state().keeps_tags = true;
    }

    /// After `looks` more calls of [`Queue::check_event`](crate::Queue::check_event), the next
    /// finds nothing, and `what` happens before it returns.
    pub fn meanwhile(&self, looks: usize, what: impl FnOnce() + Send + 'static) {
        let mut place = self
            .meanwhile
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *place = Some((looks, Box::new(what)));
    }

    pub(super) fn is_time(&self) -> Option<Meanwhile> {
        let mut place = self
            .meanwhile
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (looks, _) = place.as_mut()?;
        match looks.checked_sub(1) {
            Some(left) => *looks = left,
            None => return place.take().map(|(_, what)| what),
        }
        None
    }

    /// Register writes by which the driver announced commands.
    pub fn doorbells(&self) -> usize {
        self.state().doorbells
    }

    /// How many drains ended ([`Queue::release_tags`](crate::Queue::release_tags)).
    pub fn releases(&self) -> usize {
        self.state().releases
    }
}
