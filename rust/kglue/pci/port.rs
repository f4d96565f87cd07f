// SPDX-License-Identifier: GPL-2.0
//! A port's side of the bus.

use hal::Error;
use kernel::bindings;
use kernel::sync::Arc;

use super::{enable_bus_master, Function};
use crate::adapter::Bus;
use crate::blk::DmaMap;
use crate::irq::Vectors;
use crate::rescue::RescueCall;

/// The bus side of a port.
pub struct PortBus {
    pub(super) function: Function,
    pub(super) vectors: Arc<Vectors>,
    pub(super) call: RescueCall,
}

impl Bus for PortBus {
    type Map = DmaMap;

    fn map(&self) -> DmaMap {
        // SAFETY: the function is claimed, so its driver bound, for as long as the bus side and the adapter live.
        unsafe { DmaMap::new(self.device()) }
    }

    fn device(&self) -> *mut bindings::device {
        self.function.device()
    }

    fn queues(&self) -> u16 {
        1
    }

    fn vector(&self, _queue: u16) -> u16 {
        0
    }

    fn map_queues(&self, map: &mut bindings::blk_mq_queue_map) {
        // SAFETY: the map is blk-mq's, handed to its map_queues callback.
        unsafe { bindings::blk_mq_map_queues(map) }
    }

    /// As in tree (`scsi_add_host_with_dma`, Linux 7.3): what can be mapped at all.
    fn reach(&self) -> u64 {
        // SAFETY: as in `map`.
        unsafe { crate::dma::max_mapping(self.device()) }
    }

    fn can_poll(&self) -> bool {
        true
    }

    fn set_interrupt(&self, _vector: u16, _on: bool) {
        // The others need the line: a port's own mask is enough.
    }

    fn cut_off(&self) {
        // The other ports' commands wait for the HBA's reset, or time out, and each then restores
        // it: better than memory that is written to after it was freed.
        // SAFETY: the function is this driver's while the bus side lives.
        unsafe { bindings::pci_clear_master(self.function.as_raw()) }
    }

    fn reset_all(&self) -> bool {
        self.call.make()
    }

    fn restore(&self) -> Result<(), Error> {
        enable_bus_master(&self.function)
    }

    fn synchronize(&self) {
        self.vectors.synchronize();
    }
}
