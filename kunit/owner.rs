// SPDX-License-Identifier: GPL-2.0
//! What KUnit suites have for a disk's owner: it answers what is asked of reservations as the test
//! wants, and of all else nothing.

use crate::blk::ioctl::{ControllerCounts, Ioctl, Owner};
use crate::caller::TakeOff;
use engine::Mode;
use hal::{Answer, Error, Holder, LinkPower, Registered, Reserve, Temperature};
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The unit of [`super::unit::unit`].
const UNIT: u32 = 3;
/// The keys that it tells of.
pub(crate) const KEYS: [u64; 3] = [1, u64::MAX, 3];

/// The owner.
#[pin_data]
pub(crate) struct Fake {
    #[pin]
    pub(crate) state: Mutex<State>,
}

/// What it answers, and was asked.
pub(crate) struct State {
    pub(crate) answer: Result<Answer<()>, Error>,
    pub(crate) holder: Holder,
    pub(crate) asked: Option<Reserve>,
    /// How often it was asked.
    pub(crate) times: u32,
}

impl Fake {
    /// One that grants everything.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let state = State {
            answer: Ok(Ok(())),
            holder: Holder::default(),
            asked: None,
            times: 0,
        };
        Arc::pin_init(pin_init!(Fake { state <- new_mutex!(state) }), GFP_KERNEL)
    }

    fn ask<T>(&self, unit: u32, what: Option<&Reserve>, done: T) -> Result<Answer<T>, Error> {
        let mut state = self.state.lock();
        state.times += 1;
        state.asked = what.copied();
        match unit {
            UNIT => state.answer.map(|answer| answer.map(|()| done)),
            _ => Err(Error::Fatal),
        }
    }
}

impl Owner for Fake {
    fn as_any(&self) -> &dyn core::any::Any {
        self
    }

    fn reserve(&self, unit: u32, what: &Reserve) -> Result<Answer<()>, Error> {
        self.ask(unit, Some(what), ())
    }

    fn registered(&self, unit: u32, keys: &mut [u64]) -> Result<Answer<Registered>, Error> {
        keys.iter_mut().zip(KEYS).for_each(|(to, key)| *to = key);
        let there = Registered {
            generation: 9,
            keys: 3,
        };
        self.ask(unit, None, there)
    }

    fn holder(&self, unit: u32) -> Result<Answer<Holder>, Error> {
        let holder = self.state.lock().holder;
        self.ask(unit, None, holder)
    }

    fn counts(&self) -> ControllerCounts {
        ControllerCounts::default()
    }

    fn reset_counts(&self) {}

    fn mode(&self) -> Mode {
        Mode::Irq
    }

    fn set_mode(&self, _mode: Mode) -> Result<(), Error> {
        Ok(())
    }

    fn strategy(&self) -> usize {
        0
    }

    fn choose(&self, _which: usize) {}

    fn learned(&self, _: &mut dyn core::fmt::Write) -> core::fmt::Result {
        Ok(())
    }

    fn poll_interval_us(&self) -> u32 {
        0
    }

    fn set_poll_interval_us(&self, _us: u32) {}

    fn predicts(&self) -> bool {
        false
    }

    fn set_predict(&self, _on: bool) {}

    fn window_us(&self) -> u32 {
        0
    }

    fn set_window_us(&self, _us: u32) {}

    fn forecast(&self, _: &mut dyn core::fmt::Write) -> core::fmt::Result {
        Ok(())
    }

    fn rescan(&self) {}

    fn take_off(&self) -> Option<&TakeOff> {
        None
    }

    fn temperature(&self) -> Result<Option<Temperature>, Error> {
        Ok(None)
    }

    fn link_power(&self) -> Option<LinkPower> {
        None
    }

    fn set_link_power(&self, _policy: LinkPower) -> Result<(), Error> {
        Err(Error::Unsupported)
    }

    fn depth(&self) -> Option<u16> {
        None
    }

    fn set_depth(&self, _depth: u16) -> Result<(), Error> {
        Err(Error::Invalid)
    }

    fn turns_cache(&self) -> bool {
        false
    }

    fn has_cache(&self, _unit: u32) -> Result<bool, Error> {
        Ok(false)
    }

    fn set_write_cache(&self, _on: bool) -> Result<(), Error> {
        Err(Error::Unsupported)
    }

    fn quirks(&self, _named: &mut dyn FnMut(&'static str)) {}

    fn reset(&self) -> Result<(), Error> {
        Ok(())
    }

    fn ioctls(&self) -> Ioctl {
        |_, _, _, _| Err(ENOTTY)
    }
}
