// SPDX-License-Identifier: GPL-2.0
//! The mock machine with DMA memory of which there can be several handles.

use hal::mock::{MockDma, MockPlatform};
use hal::{DmaMem, Error, Platform};
use std::sync::Arc;

/// A machine; clones are the same.
#[derive(Clone)]
pub struct Machine(pub MockPlatform);

/// A handle of DMA memory, which is off the bus with the last of them.
#[derive(Clone)]
pub struct Handle(Arc<MockDma>);

impl Platform for Machine {
    type Table<T: Send + Sync + 'static> = Box<[T]>;
    type Dma = Handle;

    fn table<T: Send + Sync + 'static>(
        &self,
        len: usize,
        make: impl FnMut(usize) -> T,
    ) -> Result<Box<[T]>, Error> {
        self.0.table(len, make)
    }

    fn dma(&self, bytes: usize) -> Result<Handle, Error> {
        self.0.dma(bytes).map(|memory| Handle(Arc::new(memory)))
    }

    fn now_us(&self) -> u64 {
        self.0.now_us()
    }

    fn sleep_us(&self, us: u64) {
        self.0.sleep_us(us);
    }
}

impl DmaMem for Handle {
    fn bus_addr(&self) -> u64 {
        self.0.bus_addr()
    }
    fn len(&self) -> usize {
        self.0.len()
    }
    fn read32(&self, offset: usize) -> u32 {
        self.0.read32(offset)
    }
    fn write32(&self, offset: usize, value: u32) {
        self.0.write32(offset, value);
    }
    fn read64(&self, offset: usize) -> u64 {
        self.0.read64(offset)
    }
    fn write64(&self, offset: usize, value: u64) {
        self.0.write64(offset, value);
    }
}
