// SPDX-License-Identifier: GPL-2.0
//! A controller that wraps another one and differs from it in its queues alone.

use crate::{
    Cause, Controller, DeviceEvent, Error, EventAction, Limits, LinkPower, NewQueue, Queue, Queues,
    Refused, Reservations, Shutdown, Temperature, Unit,
};
use core::fmt;

type QueueOf<C> = <C as Controller>::Queue;

/// A controller that passes every call on to an inner one, and wraps its queues.
pub trait Wrapper: Send + Sync + 'static {
    /// Type of the inner controller.
    type Inner: Controller;
    /// Type of the wrapped queues.
    type Outer: Queue;

    /// Returns the inner controller. Any context.
    fn inner(&self) -> &Self::Inner;

    /// Wraps a queue of the inner controller. Sleeps.
    fn wrap(&self, new: NewQueue<QueueOf<Self::Inner>>) -> Result<NewQueue<Self::Outer>, Error>;

    /// Returns the inner controller's queue that `queue` wraps. Any context.
    fn inner_queue(queue: &Self::Outer) -> &QueueOf<Self::Inner>;
}

impl<T: Wrapper> Controller for T {
    type Queue = T::Outer;

    fn start(&self) -> Result<(), Error> {
        self.inner().start()
    }

    fn limits(&self) -> Limits {
        self.inner().limits()
    }

    fn create_queue(
        &self,
        index: u16,
        vector: Option<u16>,
    ) -> Result<NewQueue<Self::Queue>, Error> {
        self.wrap(self.inner().create_queue(index, vector)?)
    }

    fn units(&self, found: &mut dyn FnMut(Result<Unit, Refused>)) -> Result<(), Error> {
        self.inner().units(found)
    }

    fn stop(&self) -> Result<(), Error> {
        self.inner().stop()
    }

    fn shutdown(&self, how: Shutdown) -> Result<(), Error> {
        self.inner().shutdown(how)
    }

    fn quirks(&self, named: &mut dyn FnMut(&'static str)) {
        self.inner().quirks(named);
    }

    fn timeout_report(&self, to: &mut dyn fmt::Write) -> fmt::Result {
        self.inner().timeout_report(to)
    }

    fn handle_events(
        &self,
        queues: Queues,
        report: &mut dyn FnMut(DeviceEvent<'_>),
    ) -> Result<EventAction, Error> {
        self.inner().handle_events(queues, report)
    }

    fn temperature(&self) -> Result<Option<Temperature>, Error> {
        self.inner().temperature()
    }

    fn reservations(&self) -> Option<&dyn Reservations> {
        self.inner().reservations()
    }

    fn link_power(&self) -> Option<LinkPower> {
        self.inner().link_power()
    }

    fn set_link_power(&self, policy: LinkPower) -> Result<Result<(), &'static str>, Error> {
        self.inner().set_link_power(policy)
    }

    fn depth(&self) -> Option<u16> {
        self.inner().depth()
    }

    fn set_depth(&self, depth: u16) -> Result<(), Error> {
        self.inner().set_depth(depth)
    }

    const SETS_WRITE_CACHE: bool = T::Inner::SETS_WRITE_CACHE;

    fn set_write_cache(&self, on: bool) -> Result<Result<(), &'static str>, Error> {
        self.inner().set_write_cache(on)
    }

    const ABORTS: bool = T::Inner::ABORTS;

    fn abort(&self, queue: &Self::Queue, tag: usize, limit_us: u64) -> Result<bool, Error> {
        self.inner().abort(T::inner_queue(queue), tag, limit_us)
    }

    #[inline]
    fn alive(&self) -> Result<(), Error> {
        self.inner().alive()
    }

    const ACKNOWLEDGES: bool = T::Inner::ACKNOWLEDGES;

    #[inline]
    fn interrupt(&self, vector: u16) -> Cause {
        self.inner().interrupt(vector)
    }

    #[inline]
    fn set_interrupt(&self, vector: u16, enabled: bool) {
        self.inner().set_interrupt(vector, enabled);
    }
}
