// SPDX-License-Identifier: GPL-2.0
//! The HBA's registers (AHCI 1.3.1 section 3.1), decoded where they are declared, and its ports'
//! (3.3).

mod port;

pub use self::port::*;
use crate::boards::Boards;
use hal::{Error, Mmio};

/// HBA capabilities (3.1.1).
pub const CAP: usize = 0x00;
/// Global HBA control (3.1.2).
pub const GHC: usize = 0x04;
/// Interrupt status: one bit a port (3.1.3).
pub const IS: usize = 0x08;
/// Ports implemented (3.1.4).
pub const PI: usize = 0x0c;
/// HBA capabilities extended (3.1.10).
pub const CAP2: usize = 0x24;
/// BIOS/OS handoff control and status (3.1.11).
pub const BOHC: usize = 0x28;
/// Where the ports' registers begin, and how many bytes each port has (3.3).
pub const PORTS: usize = 0x100;
/// Log2 of a port's bytes.
pub const PORT_SHIFT: u32 = 7;
/// Most ports of an HBA.
pub const PORTS_MAX: u8 = 32;

/// `GHC.HR`: reset of the whole HBA; clears itself.
pub const GHC_HR: u32 = 1;
/// `GHC.IE`: interrupts of the HBA.
pub const GHC_IE: u32 = 1 << 1;
/// `GHC.MRSM`: fewer messages were granted than asked for, so all ports share the first.
pub const GHC_MRSM: u32 = 1 << 2;
/// `GHC.AE`: AHCI rather than legacy registers.
pub const GHC_AE: u32 = 1 << 31;
/// `CAP2.BOH`: [`BOHC`] is there.
pub const CAP2_BOH: u32 = 1;
/// `BOHC.BOS`: the BIOS owns the HBA.
pub const BOHC_BOS: u32 = 1;
/// `BOHC.OOS`: the OS asks for it.
pub const BOHC_OOS: u32 = 1 << 1;
/// `BOHC.BB`: the BIOS is busy handing it over.
pub const BOHC_BB: u32 = 1 << 4;

/// `CAP.SALP`.
const CAP_SALP: u32 = 1 << 26;
/// `CAP.SNCQ`.
const CAP_SNCQ: u32 = 1 << 30;

/// The fields of [`CAP`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap(pub u32);

impl Cap {
    /// The capabilities that an HBA known as `board` has in truth.
    pub(crate) const fn of(self, board: Boards) -> Self {
        match (board.has(Boards::NO_NCQ), board.has(Boards::YES_NCQ)) {
            (true, _) => Self(self.0 & !CAP_SNCQ),
            (false, true) => Self(self.0 | CAP_SNCQ),
            (false, false) => self,
        }
    }

    /// `NCS`: command slots of each port, 1 to 32.
    pub const fn slots(self) -> u8 {
        // CAST: 5 bits.
        (((self.0 >> 8) & 0x1f) as u8).wrapping_add(1)
    }

    /// `SXS`: ports may be external (eSATA).
    pub const fn has_external(self) -> bool {
        self.0 & (1 << 5) != 0
    }

    /// `PSC`: links go to Partial.
    pub const fn has_partial(self) -> bool {
        self.0 & (1 << 13) != 0
    }

    /// `SSC`: links go to Slumber.
    pub const fn has_slumber(self) -> bool {
        self.0 & (1 << 14) != 0
    }

    /// `SALP`: the HBA has links sleep by itself.
    pub const fn has_alpm(self) -> bool {
        self.0 & CAP_SALP != 0
    }

    /// `SCLO`: BSY and DRQ can be overridden (`PxCMD.CLO`).
    pub const fn has_clo(self) -> bool {
        self.0 & (1 << 24) != 0
    }

    /// `SSS`: drives are spun up one by one.
    pub const fn is_staggered(self) -> bool {
        self.0 & (1 << 27) != 0
    }

    /// `SNCQ`: native command queuing.
    pub const fn has_ncq(self) -> bool {
        self.0 & CAP_SNCQ != 0
    }

    /// `S64A`: 64-bit addresses.
    pub const fn has_64_bits(self) -> bool {
        self.0 & (1 << 31) != 0
    }
}

/// What every register of an absent device reads as.
pub const ABSENT: u32 = u32::MAX;

/// Reads a register that is never all ones while the device is there.
pub fn read(mmio: &impl Mmio, register: usize) -> Result<u32, Error> {
    match mmio.read32(register) {
        ABSENT => Err(Error::Gone),
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_specification_has_them() {
        let cap = Cap(0xc934_1f05);
        assert_eq!(cap.slots(), 32);
        assert!(cap.has_clo() && cap.is_staggered() && cap.has_ncq() && cap.has_64_bits());
        assert!(!(cap.has_partial() || cap.has_slumber() || cap.has_alpm() || cap.has_external()));
        let sleepy = Cap(0x0400_6020);
        assert!(sleepy.has_partial() && sleepy.has_slumber() && sleepy.has_alpm());
        assert!(sleepy.has_external());
        let none = Cap(0);
        assert_eq!(none.slots(), 1);
        assert!(!(none.has_clo() || none.is_staggered() || none.has_ncq() || none.has_64_bits()));
        assert_eq!(IS_TROUBLE & IS_DONE, 0);
        assert_eq!(IS_TROUBLE, 0x7940_0040);
    }
}
