// SPDX-License-Identifier: GPL-2.0
//! No faults: registers and queues are the devices' own.

use hal::{Error, NewQueue};
use kglue::platform::{KernelPlatform, Window};

pub(crate) type NvmeRegisters = Window;
pub(crate) type AhciRegisters = Window;
pub(crate) type Queue<Q> = Q;

/// Nothing that could be switched on.
pub(crate) struct Root;

impl Root {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self)
    }
}

/// No switches of a device.
pub(crate) struct Handle;

impl Handle {
    pub(crate) fn new(_platform: &KernelPlatform) -> Result<Self, Error> {
        Ok(Self)
    }

    pub(crate) fn nvme(&self, window: Window) -> NvmeRegisters {
        window
    }

    pub(crate) fn ahci(&self, window: Window) -> AhciRegisters {
        window
    }

    pub(crate) fn queue<Q: hal::Queue>(
        &self,
        _platform: &KernelPlatform,
        new: NewQueue<Q>,
    ) -> Result<NewQueue<Queue<Q>>, Error> {
        Ok(new)
    }
}

/// By which `registers` go.
pub(crate) fn handle(_registers: &AhciRegisters) -> Handle {
    Handle
}

/// The driver's queue.
pub(crate) fn inner<Q: hal::Queue>(queue: &Queue<Q>) -> &Q {
    queue
}
