// SPDX-License-Identifier: GPL-2.0
//! A port's side of the bus.

use hal::Error;
use kernel::sync::Arc;

use super::bus::dma_map;
use super::Function;
use crate::adapter::Bus;
use crate::blk::DmaMap;
use crate::device::BoundDevice;
use crate::irq::Vectors;
use crate::mastering::Mastering;
use crate::rescue::RescueCall;
use crate::taken_off::TakeOff;

/// The bus side of a port.
pub struct PortBus {
    pub(super) function: Function,
    pub(super) device: BoundDevice,
    pub(super) vectors: Arc<Vectors>,
    pub(super) call: RescueCall,
    /// The function's, of which this is one port.
    pub(super) mastering: Arc<Mastering>,
    pub(super) take_off: TakeOff,
    pub(super) number: u8,
}

impl Bus for PortBus {
    type Map = DmaMap;

    fn map(&self) -> DmaMap {
        dma_map(&self.device)
    }

    fn device(&self) -> Option<&BoundDevice> {
        Some(&self.device)
    }

    fn queues(&self) -> u16 {
        1
    }

    fn vector(&self, _queue: u16) -> u16 {
        0
    }

    /// As in tree (`scsi_add_host_with_dma`, Linux 7.3): what can be mapped at all.
    fn reach(&self) -> u64 {
        crate::dma::mapping(&self.device, crate::dma::Mapping::AtAll)
    }

    fn can_poll(&self) -> bool {
        true
    }

    fn set_interrupt(&self, _vector: u16, _on: bool) {
        // The others need the line: a port's own mask is enough.
    }

    fn is_present(&self) -> bool {
        self.function.is_present()
    }

    fn cut_off(&self) {
        // The other ports' commands wait for the HBA's reset, or time out, and call for it then:
        // better than memory that is written to after it was freed.
        (self.mastering).cut_off(self.number, || self.function.cut_off());
    }

    fn reset_all(&self) -> bool {
        match self.mastering.is_loose(self.number) {
            true => self.call.make(),
            false => self.call.wait(),
        }
    }

    fn restore(&self) -> Result<(), Error> {
        (self.mastering).restore(self.number, || self.function.master_again())
    }

    fn give_up(&self) {
        // One that is not there needs no bus; where another is loose, its reset follows.
        let _ = (self.mastering).give_up(self.number, || self.function.master_again());
    }

    fn take_off(&self) -> Option<&TakeOff> {
        Some(&self.take_off)
    }

    fn synchronize(&self) {
        self.vectors.synchronize();
    }
}
