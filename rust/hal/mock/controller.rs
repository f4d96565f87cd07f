// SPDX-License-Identifier: GPL-2.0
//! A controller of [`MockQueue`]s.

use super::{MockDevice, MockQueue};
use crate::{
    Cause, Controller, Error, Limits, NewQueue, Platform, Refused, Shutdown, Unit, UnitIds,
    UnitKind,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

/// What a test sets and sees.
#[derive(Debug)]
struct State {
    alive: Result<(), Error>,
    starts: usize,
    running: bool,
    devices: Vec<Arc<MockDevice>>,
    shutdown: Option<Shutdown>,
}

/// A controller that is alive for as long as the test says so.
#[derive(Debug)]
pub struct MockController<P> {
    platform: P,
    limits: Limits,
    units: Vec<Result<Unit, Refused>>,
    state: Mutex<State>,
}

impl<P: Platform> MockController<P> {
    /// A controller of up to `queues` queues of `tags` slots each, with these disks.
    pub fn new(platform: P, queues: u16, tags: u16, units: Vec<Result<Unit, Refused>>) -> Self {
        Self {
            platform,
            limits: Limits {
                queues,
                tags,
                max_transfer: 1 << 20,
                max_segments: 128,
                max_segment: 1 << 20,
                segment_boundary: u64::MAX,
                virt_boundary: 0,
                dma_align: 3,
                hole_align: None,
            },
            units,
            state: Mutex::new(State {
                alive: Ok(()),
                starts: 0,
                running: false,
                devices: Vec::new(),
                shutdown: None,
            }),
        }
    }

    /// A plain disk of `blocks` blocks of 512 bytes.
    pub fn unit(id: u32, blocks: u64) -> Unit {
        Unit {
            kind: UnitKind::Ram,
            id,
            block_shift: 9,
            physical_shift: 9,
            blocks,
            write_cache: false,
            fua: false,
            discard: None,
            max_write_zeroes: 0,
            topology: crate::Topology::default(),
            read_only: false,
            rotational: false,
            ids: UnitIds::default(),
            serial: [b' '; 20],
            model: [b' '; 40],
            firmware: [b' '; 8],
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the device answers like this: `Err(Gone)` is a pulled one.
    pub fn set_alive(&self, alive: Result<(), Error>) {
        self.state().alive = alive;
    }

    /// The device's end of queue `index`.
    pub fn device(&self, index: usize) -> Option<Arc<MockDevice>> {
        self.state().devices.get(index).cloned()
    }

    /// How often it was started.
    pub fn starts(&self) -> usize {
        self.state().starts
    }

    /// How it was shut down, if it was.
    pub fn was_shut_down(&self) -> Option<Shutdown> {
        self.state().shutdown
    }
}

impl<P: Platform> Controller for MockController<P> {
    type Queue = MockQueue<P>;

    fn start(&self) -> Result<(), Error> {
        let mut state = self.state();
        state.alive?;
        state.starts += 1;
        state.running = true;
        Ok(())
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn create_queue(&self, index: u16, _: Option<u16>) -> Result<NewQueue<Self::Queue>, Error> {
        let mut state = self.state();
        state.alive?;
        if !state.running
            || index >= self.limits.queues
            || usize::from(index) != state.devices.len()
        {
            return Err(Error::Invalid);
        }
        let (queue, device) = MockQueue::new(&self.platform, self.limits.tags)?;
        state.devices.push(device);
        Ok(queue)
    }

    fn units(&self, found: &mut dyn FnMut(Result<Unit, Refused>)) -> Result<(), Error> {
        self.state().alive?;
        self.units.iter().for_each(|unit| found(*unit));
        Ok(())
    }

    fn stop(&self) -> Result<(), Error> {
        let mut state = self.state();
        state.running = false;
        state.alive
    }

    fn shutdown(&self, how: Shutdown) -> Result<(), Error> {
        let mut state = self.state();
        state.shutdown = Some(how);
        state.alive
    }

    fn alive(&self) -> Result<(), Error> {
        self.state().alive
    }

    fn interrupt(&self, _: u16) -> Cause {
        Cause::Queues
    }

    fn set_interrupt(&self, _: u16, _: bool) {}
}
