// SPDX-License-Identifier: GPL-2.0
//! An adapter's disks: named by the controller, made and shown.

use crate::adapter::attention::Found;
use crate::adapter::config::Bus;
use crate::adapter::state::Adapter;
use crate::aim::Stays;
use crate::blk::disk::Disk;
use crate::blk::ioctl::AdminPath;
use crate::blk::lane::{Format, Lane, Panel};
use crate::blk::owner::Owner;
use crate::blk::shared::DiskShared;
use crate::heat::Thermometer;
use crate::node::Node;
use crate::wait::hook::{is_hooked, Hook};
use core::ptr::null_mut;
use engine::{Mode, Switches};
use hal::{Error, Unit};
use kernel::bindings;
use kernel::device::Device;
use kernel::prelude::*;

impl<C: AdminPath, B: Bus> Adapter<C, B> {
    /// Names the controller's disks and shows them; returns how many there are. After the interrupt
    /// handlers are there. Sleeps.
    pub fn add_disks(&self) -> Result<usize, Error> {
        let mut found = Found::new();
        self.look(&mut found)?;
        self.gate.open(self.owner());
        self.begin();
        // Who opens the first of them may ask for a change.
        let _change = self.change.lock();
        let mut added = 0usize;
        let mut last = Ok(());
        for one in &found {
            let unit = match one {
                Ok(unit) => unit,
                Err(refused) => {
                    crate::log::log_warn!(
                        self,
                        "disk {} is not served: {}\n",
                        refused.id,
                        refused.why
                    );
                    continue;
                }
            };
            match self.add_disk(*unit) {
                Ok(()) => added = added.saturating_add(1),
                Err(error) => {
                    crate::log::log_err!(
                        self,
                        "disk {} can't be served: {}\n",
                        unit.id,
                        crate::errno::advice(error)
                    );
                    last = Err(error);
                }
            }
        }
        // One that can't be served does not keep the others away.
        if added == 0 {
            last?;
        }
        self.attention.know(found);
        // What came before its interrupts were heard.
        self.call();
        Ok(added)
    }

    /// The controller's own node, under `parent`. Sleeps.
    pub(crate) fn node(&self, parent: &Device) -> Result<Node, Error> {
        Node::new(self.number, self.gate.clone(), parent)
    }

    /// The controller's temperatures, if it says any, under `parent`. Sleeps.
    pub(crate) fn thermometer(&self, parent: &Device) -> Result<Option<Thermometer>, Error> {
        Thermometer::new(self.gate.clone(), parent)
    }

    /// What is on when a disk begins.
    fn switches(&self) -> u8 {
        let lazy = self.config.begin.lazy && is_hooked();
        let switch = |on: bool, which: u8| if on { which } else { 0 };
        switch(lazy, Switches::LAZY) | switch(self.config.begin.coop, Switches::COOP)
    }

    /// Waits are hooked and the queues go over to the mode they are to begin in; who can't poll
    /// takes interrupts.
    fn begin(&self) {
        *self.hook.lock() = Hook::new();
        let begin = &self.config.begin;
        for queue in self.queues.iter().take(self.interrupting()) {
            queue.io.set_poll_interval_us(begin.poll_interval_us);
            queue.choose(&self.platform, begin.strategy);
            queue.set_window_us(begin.predict_window_us);
            queue.set_predict(begin.predict && is_hooked());
            let mode = begin.mode;
            if queue.set_mode(&self.platform, mode).is_err() && mode == Mode::Poll {
                crate::log::log_warn!(self, "its interrupt is a shared pin: it is not polled\n");
            }
        }
    }

    /// It, as its disks' files have it.
    fn owner(&self) -> Stays<dyn Owner> {
        self.stays().seen_as(|adapter| adapter)
    }

    pub(crate) fn add_disk(&self, unit: Unit) -> Result<(), Error> {
        let no_memory = |_| Error::NoMemory;
        let mut lanes = KVec::with_capacity(self.queues.len(), GFP_KERNEL).map_err(no_memory)?;
        for queue in &self.queues {
            let lane = Lane {
                queue: core::ptr::from_ref(queue).cast(),
                unit: unit.id,
                format: Format::new(&unit),
                max_retries: self.config.begin.max_retries,
                way: queue.way.as_ref().ok_or(Error::Invalid)?,
                switches: Panel::new(self.switches(), queue.useful_switches()),
                stats: Default::default(),
            };
            lanes.push(lane, GFP_KERNEL).map_err(no_memory)?;
        }
        let shared = DiskShared::new(unit, lanes, self.gate.clone(), self.owner())?;
        if *shared.names.ids() != unit.ids {
            crate::log::log_warn!(
                self,
                "disk {} has an EUI-64, NGUID or UUID of another drive: it goes by its model and \
                 serial number\n",
                unit.id
            );
        }
        let set = self.set.as_ref().ok_or(Error::Gone)?;
        let disk = Disk::new(
            set.as_raw(),
            &self.limits,
            shared,
            self.config.naming,
            self.number,
        )?;
        let raw = disk.as_raw();
        // In the list before it is shown: a recovery that fails meanwhile must find it.
        {
            let mut disk = disk;
            disk.mark_added();
            self.disks.lock().add(disk)?;
        }
        let parent = self.device().map_or(null_mut(), crate::device::raw);
        // SAFETY: in the list, which only `remove` empties, after this.
        let added = unsafe { crate::blk::disk::add(raw, parent) };
        if added.is_err() {
            self.forget_disk(raw);
        }
        added
    }

    fn forget_disk(&self, raw: *mut bindings::gendisk) {
        let forgotten = self.disks.lock().take(|disk| disk.as_raw() == raw);
        if let Some(mut disk) = forgotten {
            disk.mark_not_added();
        }
    }
}
