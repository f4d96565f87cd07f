// SPDX-License-Identifier: GPL-2.0
//! The registers of an AHCI HBA (AHCI 1.3.1 section 3).
//!
//! A port that does not see a command still has it in `PxSACT` and `PxCI`, as if its drive were
//! busy for ever: a bit that was never set there would look like a command that has ended. Both are
//! cleared as the specification has it: where the port's list is stopped (`PxCMD.ST`), and by a
//! reset of the HBA.

use crate::faults::{Faults, PortUnheard, Unheard};
use cell::sync::{AtomicU32, Ordering};
use core::ops::Deref;
use hal::Mmio;

/// Global HBA control, and its reset.
const GHC: usize = 0x04;
const GHC_HR: u32 = 1;
/// Where the ports' registers begin, and how many bytes each has.
const PORTS: usize = 0x100;
const PORT_BYTES: usize = 0x80;
/// Interrupt status of a port, and in it a fatal error of the host bus.
const IS: usize = 0x10;
const IS_HBF: u32 = 1 << 29;
/// Command and status of a port, and in it: its list is processed.
const CMD: usize = 0x18;
const CMD_ST: u32 = 1;
/// The registers by which commands are issued.
const SACT: usize = 0x34;
const CI: usize = 0x38;

impl PortUnheard {
    fn register(&self, register: usize) -> Option<&AtomicU32> {
        match register {
            SACT => Some(&self.sact),
            CI => Some(&self.ci),
            _ => None,
        }
    }

    fn forget(&self) {
        self.sact.store(0, Ordering::Relaxed);
        self.ci.store(0, Ordering::Relaxed);
    }
}

impl Unheard {
    /// The port whose register is at byte `offset`, and that register among its own.
    fn port(&self, offset: usize) -> Option<(&PortUnheard, usize)> {
        let at = offset.checked_sub(PORTS)?;
        let port = self.0.get(at.checked_div(PORT_BYTES)?)?;
        Some((port, at.checked_rem(PORT_BYTES)?))
    }
}

/// The registers behind `M`, with the faults of `F`.
#[derive(Clone)]
pub struct Registers<M, F> {
    inner: M,
    faults: F,
}

impl<M, F> Registers<M, F> {
    /// `inner`, with `faults`.
    pub fn new(inner: M, faults: F) -> Self {
        Self { inner, faults }
    }

    /// By which they go.
    pub fn faults(&self) -> &F {
        &self.faults
    }
}

impl<M, F> Mmio for Registers<M, F>
where
    M: Mmio,
    F: Deref<Target = Faults> + Send + Sync + 'static,
{
    fn len(&self) -> usize {
        self.inner.len()
    }

    #[inline]
    fn read32(&self, offset: usize) -> u32 {
        let faults = &*self.faults;
        if faults.all_ones.is_on() {
            return u32::MAX;
        }
        let value = self.inner.read32(offset);
        let Some((port, register)) = faults.unheard.port(offset) else {
            return value;
        };
        match port.register(register) {
            Some(unheard) => value | unheard.load(Ordering::Relaxed),
            None if register == IS && faults.cfs.is_on() => value | IS_HBF,
            None => value,
        }
    }

    #[inline]
    fn write32(&self, offset: usize, value: u32) {
        let faults = &*self.faults;
        if faults.all_ones.is_on() {
            return;
        }
        if let Some((port, register)) = faults.unheard.port(offset) {
            match port.register(register) {
                Some(unheard) if faults.is_deaf() => {
                    unheard.fetch_or(value, Ordering::Relaxed);
                    return;
                }
                None if register == CMD && value & CMD_ST == 0 => {
                    port.forget();
                    faults.cfs.put(0);
                }
                _ => {}
            }
        } else if offset == GHC && value & GHC_HR != 0 {
            faults.unheard.0.iter().for_each(PortUnheard::forget);
            faults.cfs.put(0);
        }
        self.inner.write32(offset, value);
    }
}
