// SPDX-License-Identifier: GPL-2.0
//! The registers of an HBA (AHCI 1.3.1 section 3.1) and of its ports (3.3), decoded where they are
//! declared.

use cell::sync::{AtomicU32, Ordering};
use hal::{Error, Mmio};

/// What every register of an absent device reads as.
pub const ABSENT: u32 = u32::MAX;

/// Reads a register that is never all ones while the device is there.
pub fn read(mmio: &impl Mmio, register: usize) -> Result<u32, Error> {
    match mmio.read32(register) {
        ABSENT => Err(Error::Gone),
        value => Ok(value),
    }
}

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
    /// The same, with queued commands or without, whatever the HBA says.
    pub(crate) const fn with_ncq(self, has: bool) -> Self {
        match has {
            true => Self(self.0 | CAP_SNCQ),
            false => Self(self.0 & !CAP_SNCQ),
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

/// A register of a port, by its offset among them (3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reg {
    /// Command list base address, low half (3.3.1).
    Clb = 0x00,
    /// Command list base address, high half (3.3.2).
    Clbu = 0x04,
    /// FIS base address, low half (3.3.3).
    Fb = 0x08,
    /// FIS base address, high half (3.3.4).
    Fbu = 0x0c,
    /// Interrupt status (3.3.5).
    Is = 0x10,
    /// Interrupt enable (3.3.6).
    Ie = 0x14,
    /// Command and status (3.3.7).
    Cmd = 0x18,
    /// Task file data (3.3.8).
    Tfd = 0x20,
    /// Signature (3.3.9).
    Sig = 0x24,
    /// SStatus (3.3.10).
    Ssts = 0x28,
    /// SControl (3.3.11).
    Sctl = 0x2c,
    /// SError (3.3.12).
    Serr = 0x30,
    /// SActive (3.3.13).
    Sact = 0x34,
    /// Command issue (3.3.14).
    Ci = 0x38,
}

/// `PxCMD.ST`: the command list is processed.
pub const CMD_ST: u32 = 1;
/// `PxCMD.SUD`: spin up the drive.
pub const CMD_SUD: u32 = 1 << 1;
/// `PxCMD.POD`: power on the drive.
pub const CMD_POD: u32 = 1 << 2;
/// `PxCMD.CLO`: override BSY and DRQ.
pub const CMD_CLO: u32 = 1 << 3;
/// `PxCMD.FRE`: FISes are received.
pub const CMD_FRE: u32 = 1 << 4;
/// `PxCMD.FR`: the FIS receiver runs.
pub const CMD_FR: u32 = 1 << 14;
/// `PxCMD.CR`: the command list runs.
pub const CMD_CR: u32 = 1 << 15;
/// `PxCMD.HPCP`: a port for hot-plug.
pub const CMD_HPCP: u32 = 1 << 18;
/// `PxCMD.ESP`: an external port, if `CAP.SXS`.
pub const CMD_ESP: u32 = 1 << 21;
/// `PxCMD.ALPE`: the HBA has an idle link go to sleep (aggressive link power management).
pub const CMD_ALPE: u32 = 1 << 26;
/// `PxCMD.ASP`: to Slumber, and not to Partial.
pub const CMD_ASP: u32 = 1 << 27;
/// `PxCMD.ALPE` and `ASP`, which a reset of the HBA clears.
pub const CMD_ALPM: u32 = CMD_ALPE | CMD_ASP;
/// `PxCMD.ICC` = 1h: the link is to be active.
pub const CMD_ICC_ACTIVE: u32 = 1 << 28;
/// `PxCMD.ICC`, the field.
pub const CMD_ICC: u32 = 0xf << 28;

/// `PxIS.DHRS`: a D2H Register FIS came.
pub const IS_DHR: u32 = 1;
/// `PxIS.SDBS`: a Set Device Bits FIS came.
pub const IS_SDB: u32 = 1 << 3;
/// `PxIS.PCS`: a drive was connected or went (follows `PxSERR.DIAG.X`).
pub const IS_PC: u32 = 1 << 6;
/// `PxIS.PRCS`: PhyRdy changed (follows `PxSERR.DIAG.N`).
pub const IS_PRC: u32 = 1 << 22;
/// `PxIS.OFS`: a device sent more than the PRDT holds.
pub const IS_OF: u32 = 1 << 24;
/// `PxIS.IFS`: a fatal error of the interface.
pub const IS_IF: u32 = 1 << 27;
/// `PxIS.HBDS`: an error of the host bus, in data.
pub const IS_HBD: u32 = 1 << 28;
/// `PxIS.HBFS`: a fatal error of the host bus.
pub const IS_HBF: u32 = 1 << 29;
/// `PxIS.TFES`: a device reported an error in its status.
pub const IS_TFE: u32 = 1 << 30;

/// What comes with a completion.
pub const IS_DONE: u32 = IS_DHR | IS_SDB;
/// What tells of a drive that came or went.
pub const IS_HOTPLUG: u32 = IS_PC | IS_PRC;
/// What a transfer did not survive, other than an error that the device reports itself.
pub const IS_BUS_ERROR: u32 = IS_OF | IS_IF | IS_HBD | IS_HBF;
/// What the control path has to see to.
pub const IS_ERROR: u32 = IS_HOTPLUG | IS_BUS_ERROR | IS_TFE;

/// ATA status bits, as in [`Reg::Tfd`].
pub const STATUS_ERR: u32 = 1;
/// A device fault.
pub const STATUS_DF: u32 = 1 << 5;
/// Data is to be moved.
pub const STATUS_DRQ: u32 = 1 << 3;
/// The device is busy.
pub const STATUS_BSY: u32 = 1 << 7;

/// `PxSCTL.DET`, the field.
pub const SCTL_DET: u32 = 0xf;
/// `PxSCTL.SPD` and `IPM`: what the firmware set and a reset of the HBA clears.
pub const SCTL_FIRMWARE: u32 = 0xff0;
/// `PxSCTL.SPD` = 1: no more than 1.5 Gbit/s.
pub const SCTL_GEN1: u32 = 1 << 4;
/// `PxSCTL.SPD` and `PxSSTS.SPD`, the field.
pub const SPD: u32 = 0xf << 4;
/// `PxSCTL.IPM`, the field: each bit keeps the link from going to one state.
pub const SCTL_IPM: u32 = 0xf << 8;
/// `PxSCTL.IPM`: not to Partial.
pub const SCTL_NO_PARTIAL: u32 = 1 << 8;
/// `PxSCTL.IPM`: not to Slumber.
pub const SCTL_NO_SLUMBER: u32 = 1 << 9;
/// `PxSCTL.IPM` = 3: the link goes neither to Partial nor to Slumber.
pub const SCTL_NO_LPM: u32 = SCTL_NO_PARTIAL | SCTL_NO_SLUMBER;
/// `PxSSTS.IPM`, the field: 2 is Partial, 6 Slumber.
pub const SSTS_IPM: u32 = 0xf << 8;
/// `PxSSTS.IPM` = 1: the link is active.
pub const SSTS_ACTIVE: u32 = 1 << 8;
/// `PxSSTS.DET` = 3: a device is there, and communicates.
pub const DET_READY: u32 = 3;
/// `PxSERR.DIAG.N`: PhyRdy changed.
pub const SERR_PHY: u32 = 1 << 16;
/// `PxSERR.DIAG.N`, and `X`: a device was exchanged.
const SERR_CHANGED: u32 = SERR_PHY | (1 << 26);

/// The registers of one port.
pub struct PortRegs<M> {
    mmio: M,
    base: usize,
    /// Bits of `PxIS` that say nothing. By the control path.
    ignored_irqs: AtomicU32,
}

impl<M: Mmio> PortRegs<M> {
    /// Those of port `number`, below [`PORTS_MAX`].
    pub fn new(mmio: M, number: u8) -> Self {
        let base = PORTS.wrapping_add(usize::from(number) << PORT_SHIFT);
        Self {
            mmio,
            base,
            ignored_irqs: AtomicU32::new(0),
        }
    }

    /// The registers of port `number`, where the bits `ignored_irqs` of `PxIS` say nothing.
    pub(crate) fn ignoring_irqs(mmio: M, number: u8, ignored_irqs: u32) -> Self {
        Self {
            ignored_irqs: AtomicU32::new(ignored_irqs),
            ..Self::new(mmio, number)
        }
    }

    fn ignored_irqs(&self) -> u32 {
        self.ignored_irqs.load(Ordering::Relaxed)
    }

    /// Whether a change of PhyRdy says that a drive came or went: not where the link goes to sleep
    /// and wakes up by itself, as that is such a change, too.
    pub(crate) fn tracks_phyrdy(&self) -> bool {
        self.ignored_irqs() & IS_PRC == 0
    }

    /// Says so; `PxIE` follows when it is next written. By the control path.
    pub(crate) fn track_phyrdy(&self, heeds: bool) {
        let ignored_irqs = self.ignored_irqs() & !IS_PRC;
        let phy = if heeds { 0 } else { IS_PRC };
        self.ignored_irqs
            .store(ignored_irqs | phy, Ordering::Relaxed);
    }

    /// Whether a drive came or went, as far as `PxSERR` says.
    pub(crate) fn has_changed(&self) -> bool {
        let heeded = match self.tracks_phyrdy() {
            true => SERR_CHANGED,
            false => SERR_CHANGED & !SERR_PHY,
        };
        self.read(Reg::Serr) & heeded != 0
    }

    /// Reads a register that may be all ones.
    #[inline]
    pub fn read(&self, reg: Reg) -> u32 {
        // CAST: the enum is a byte.
        let value = self.mmio.read32(self.base.wrapping_add(reg as usize));
        match reg {
            Reg::Is if value != ABSENT => value & !self.ignored_irqs(),
            _ => value,
        }
    }

    /// [`Error::Gone`]: the HBA's registers say nothing, as its memory space is off or it is not
    /// there. Its capabilities are never all zeroes or all ones.
    pub fn check_present(&self) -> Result<(), Error> {
        match read(&self.mmio, CAP)? {
            0 => Err(Error::Gone),
            _ => Ok(()),
        }
    }

    /// Writes a register.
    #[inline]
    pub fn write(&self, reg: Reg, value: u32) {
        let value = match reg {
            Reg::Ie => value & !self.ignored_irqs(),
            _ => value,
        };
        // CAST: the enum is a byte.
        self.mmio
            .write32(self.base.wrapping_add(reg as usize), value);
    }

    /// Reads a register that is never all ones while the device is there.
    pub fn get(&self, reg: Reg) -> Result<u32, Error> {
        match self.read(reg) {
            ABSENT => Err(Error::Gone),
            value => Ok(value),
        }
    }

    /// `PxCMD`, with `clear` cleared and `set` set. `ICC` never goes back as it was read: it is a
    /// request.
    pub fn change_cmd(&self, clear: u32, set: u32) -> Result<(), Error> {
        let cmd = self.get(Reg::Cmd)?;
        self.write(Reg::Cmd, (cmd & !(clear | CMD_ICC | CMD_CLO)) | set);
        Ok(())
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
        assert_eq!(IS_ERROR & IS_DONE, 0);
        assert_eq!(IS_ERROR, 0x7940_0040);
    }
}
