// SPDX-License-Identifier: GPL-2.0
//! What the control path keeps of the controller from one call to the next.

use crate::attend::Events;
use crate::data::Layout;
use crate::doorbell::Shadow;
use crate::effects;
use crate::host_memory::{HostMemory, Lent};
use crate::identify::ControllerId;
use crate::kept::Kept;
use hal::{Limits, Mmio, Platform};

/// What only the control path touches.
pub(crate) struct State<P: Platform, M: Mmio> {
    /// Known after the first start.
    pub(crate) about: Option<About>,
    /// What admin commands change, once it was asked for.
    pub(crate) effects: Option<effects::Log>,
    /// What is known of the events that it has reported.
    pub(crate) events: Events,
    /// Memory that it has borrowed, and what is to be told of that.
    pub(crate) host_memory: Option<HostMemory<P>>,
    pub(crate) lent: Option<Lent>,
    /// The shadow doorbells, once they exist.
    pub(crate) shadow: Option<Shadow<P::Dma>>,
    /// How many queues exist.
    pub(crate) queues: u16,
    /// Memory that the device may still touch.
    pub(crate) kept: Kept<P, M>,
}

impl<P: Platform, M: Mmio> State<P, M> {
    /// That of a controller which was not started yet.
    pub(crate) fn new() -> Self {
        Self {
            about: None,
            effects: None,
            events: Events::default(),
            host_memory: None,
            lent: None,
            shadow: None,
            queues: 0,
            kept: Kept::nothing(),
        }
    }
}

/// What the controller said about itself, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) id: ControllerId,
    pub(crate) limits: Limits,
    pub(crate) layout: Layout,
}
