// SPDX-License-Identifier: GPL-2.0
//! How a controller calls for attention from a context that must not sleep.

use hal::Error;
use kernel::prelude::*;
use kernel::sync::Arc;

use crate::aim::Stays;
use crate::work::{Run, Tend, Work};

/// How a port calls for attention. Clones are the same caller.
#[derive(Clone)]
pub struct Caller(Arc<Work<Tend>>);

impl Caller {
    /// A caller of nobody yet, whose workqueue has `number` in its name. Sleeps.
    pub(crate) fn new(number: i32) -> Result<Self, Error> {
        let work = Arc::new(Work::new(number)?, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        Ok(Self(work))
    }

    /// The port is attended soon. `false`: it was called for before, or nobody attends. Any
    /// context.
    pub fn call(&self) -> bool {
        self.0.begin()
    }

    /// From now on `port` is attended; once. [`Caller::silence`] silences it.
    pub(crate) fn aim<P: Run<Tend> + 'static>(&self, port: Stays<P>) {
        self.0.aim(port);
    }

    /// Nothing is attended that was called for before. Sleeps.
    pub(crate) fn cancel(&self) {
        self.0.cancel();
    }

    /// Nothing is attended any more, whoever calls. Sleeps.
    pub(crate) fn silence(&self) {
        // Not only cancelled: an interrupt that comes meanwhile would begin it again.
        self.0.disable();
    }
}
