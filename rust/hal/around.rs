// SPDX-License-Identifier: GPL-2.0
//! A controller around another one, that differs from it in its queues alone.

use crate::{
    Cause, Controller, DeviceEvent, Error, EventAction, Limits, LinkPower, NewQueue, Queue, Queues,
    Refused, Reservations, Shutdown, Temperature, Unit,
};
use core::fmt;

type QueueOf<C> = <C as Controller>::Queue;

/// A controller that does what the one within does, with queues that are made of that one's.
pub trait Around: Send + Sync + 'static {
    /// The controller within.
    type Within: Controller;
    /// Its data path, as it is outside.
    type Outer: Queue;

    /// The controller within. Any context.
    fn within(&self) -> &Self::Within;

    /// A queue of the one within, as it is outside. Sleeps.
    fn wrap(&self, new: NewQueue<QueueOf<Self::Within>>) -> Result<NewQueue<Self::Outer>, Error>;

    /// The queue that `queue` was made of.
    fn inner(queue: &Self::Outer) -> &QueueOf<Self::Within>;
}

impl<T: Around> Controller for T {
    type Queue = T::Outer;

    fn start(&self) -> Result<(), Error> {
        self.within().start()
    }

    fn limits(&self) -> Limits {
        self.within().limits()
    }

    fn create_queue(
        &self,
        index: u16,
        vector: Option<u16>,
    ) -> Result<NewQueue<Self::Queue>, Error> {
        self.wrap(self.within().create_queue(index, vector)?)
    }

    fn units(&self, found: &mut dyn FnMut(Result<Unit, Refused>)) -> Result<(), Error> {
        self.within().units(found)
    }

    fn stop(&self) -> Result<(), Error> {
        self.within().stop()
    }

    fn shutdown(&self, how: Shutdown) -> Result<(), Error> {
        self.within().shutdown(how)
    }

    fn quirks(&self, named: &mut dyn FnMut(&'static str)) {
        self.within().quirks(named);
    }

    fn timeout_report(&self, to: &mut dyn fmt::Write) -> fmt::Result {
        self.within().timeout_report(to)
    }

    fn attend(
        &self,
        queues: Queues,
        tell: &mut dyn FnMut(DeviceEvent<'_>),
    ) -> Result<EventAction, Error> {
        self.within().attend(queues, tell)
    }

    fn temperature(&self) -> Result<Option<Temperature>, Error> {
        self.within().temperature()
    }

    fn reservations(&self) -> Option<&dyn Reservations> {
        self.within().reservations()
    }

    fn link_power(&self) -> Option<LinkPower> {
        self.within().link_power()
    }

    fn set_link_power(&self, policy: LinkPower) -> Result<Result<(), &'static str>, Error> {
        self.within().set_link_power(policy)
    }

    fn depth(&self) -> Option<u16> {
        self.within().depth()
    }

    fn set_depth(&self, depth: u16) -> Result<(), Error> {
        self.within().set_depth(depth)
    }

    const TURNS_CACHE: bool = T::Within::TURNS_CACHE;

    fn set_write_cache(&self, on: bool) -> Result<Result<(), &'static str>, Error> {
        self.within().set_write_cache(on)
    }

    const ABORTS: bool = T::Within::ABORTS;

    fn abort(&self, queue: &Self::Queue, tag: usize, limit_us: u64) -> Result<bool, Error> {
        self.within().abort(T::inner(queue), tag, limit_us)
    }

    #[inline]
    fn alive(&self) -> Result<(), Error> {
        self.within().alive()
    }

    #[inline]
    fn interrupt(&self, vector: u16) -> Cause {
        self.within().interrupt(vector)
    }

    #[inline]
    fn set_interrupt(&self, vector: u16, enabled: bool) {
        self.within().set_interrupt(vector, enabled);
    }
}
