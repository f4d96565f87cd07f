// SPDX-License-Identifier: GPL-2.0
//! The mastering of a bus by a function that several ports have in common.
//!
//! A port that can't be stopped is *loose*: the function masters the bus no more, as the port may
//! write to memory that was given back. It gets the bus back when no port is loose: each was
//! stopped after all, or all of them were reset together. A port that is loose even after that
//! holds nothing but memory of its own; it is *given up*: who keeps that memory lets the others go
//! on.

use hal::Error;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Which ports are loose, or given up.
#[pin_data]
pub(crate) struct Mastering {
    #[pin]
    ports: Mutex<Ports>,
}

/// One bit each.
struct Ports {
    loose: u32,
    given_up: u32,
}

fn bit(port: u8) -> u32 {
    1u32.wrapping_shl(port.into())
}

impl Mastering {
    /// That of a function that masters the bus, or is about to. Sleeps.
    pub(crate) fn new() -> Result<Arc<Self>, Error> {
        let none = Ports {
            loose: 0,
            given_up: 0,
        };
        let ports = new_mutex!(none, "hiops_mastering");
        Arc::pin_init(pin_init!(Self { ports <- ports }), GFP_KERNEL).map_err(|_| Error::NoMemory)
    }

    /// `port` can't be stopped: the bus is taken away by `cut`, unless the port was given up.
    /// Sleeps.
    pub(crate) fn cut_off(&self, port: u8, cut: impl FnOnce()) {
        let mut ports = self.ports.lock();
        if ports.given_up & bit(port) == 0 {
            ports.loose |= bit(port);
            cut();
        }
    }

    /// `port` is stopped: the bus is given back by `master`. [`Error::Timeout`]: another port is
    /// loose. Sleeps.
    pub(crate) fn restore(
        &self,
        port: u8,
        master: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut ports = self.ports.lock();
        ports.loose &= !bit(port);
        Self::give_back(&ports, master)
    }

    /// All ports were reset: the bus is given back by `master`. Sleeps.
    pub(crate) fn renew(&self, master: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let mut ports = self.ports.lock();
        ports.loose = 0;
        Self::give_back(&ports, master)
    }

    /// `port` can't be stopped, although all were reset since it had its last request: the others
    /// get the bus back by `master`. By whoever keeps the port's memory until the function was cut
    /// off for good. Sleeps.
    pub(crate) fn give_up(
        &self,
        port: u8,
        master: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut ports = self.ports.lock();
        ports.given_up |= bit(port);
        ports.loose &= !bit(port);
        Self::give_back(&ports, master)
    }

    /// Under the lock: nobody becomes loose meanwhile.
    fn give_back(ports: &Ports, master: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        match ports.loose {
            0 => master(),
            _ => Err(Error::Timeout),
        }
    }

    /// Whether it is for `port` that the bus was taken away. Sleeps.
    pub(crate) fn is_loose(&self, port: u8) -> bool {
        self.ports.lock().loose & bit(port) != 0
    }
}
