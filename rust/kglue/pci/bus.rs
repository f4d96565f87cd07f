// SPDX-License-Identifier: GPL-2.0
//! A function's side of the bus, and how data reaches a device there.

use hal::Error;
use kernel::bindings;

use super::Function;
use crate::adapter::{spread, Bus};
use crate::blk::DmaMap;
use crate::device::{raw, BoundDevice};
use crate::irq::Vectors;

/// The bus side of a function, for its adapter.
pub struct PciBus {
    function: Function,
    device: BoundDevice,
    vectors: Vectors,
}

impl PciBus {
    /// The bus side of `function`, with `vectors` of its own.
    pub fn new(function: &Function, vectors: Vectors) -> Self {
        Self {
            function: function.clone(),
            device: function.device(),
            vectors,
        }
    }

    /// The function.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Its vectors.
    pub fn vectors(&self) -> &Vectors {
        &self.vectors
    }
}

impl Bus for PciBus {
    type Map = DmaMap;

    /// As in tree (`nvme_pci_alloc_dev`, Linux 7.3): what is mapped well, which never is more than
    /// what can be.
    fn reach(&self) -> u64 {
        crate::dma::mapping(&self.device, crate::dma::Mapping::Well)
    }

    fn can_poll(&self) -> bool {
        // Others may be on the pin's line.
        !self.vectors.pin()
    }

    fn set_interrupt(&self, vector: u16, on: bool) {
        self.vectors.set(vector, on);
    }

    fn map(&self) -> DmaMap {
        dma_map(&self.device)
    }

    fn device(&self) -> Option<&BoundDevice> {
        Some(&self.device)
    }

    fn queues(&self) -> u16 {
        self.vectors.queues()
    }

    fn vector(&self, queue: u16) -> u16 {
        self.vectors.of_queue(queue)
    }

    fn map_queues(&self, map: &mut bindings::blk_mq_queue_map) {
        let first = self.vectors.spread_from();
        spread(map, first.map(|first| (&**self.device, first)));
    }

    fn is_present(&self) -> bool {
        self.function.is_present()
    }

    fn cut_off(&self) {
        self.function.cut_off();
    }

    fn restore(&self) -> Result<(), Error> {
        self.function.master_again()
    }

    fn synchronize(&self) {
        self.vectors.synchronize();
    }
}

/// How data reaches `device`, for an adapter of its driver's.
pub(super) fn dma_map(device: &BoundDevice) -> DmaMap {
    // SAFETY: bound for as long as there is a reference to it, which the adapter's bus has.
    unsafe { DmaMap::new(raw(device)) }
}
