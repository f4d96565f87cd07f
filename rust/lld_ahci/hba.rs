// SPDX-License-Identifier: GPL-2.0
//! The HBA: what all its ports share. It is brought up once, before any port; afterwards only its
//! interrupt status is touched.

use crate::boards::Boards;
use crate::handoff;
use crate::quirks::Surroundings;
use crate::regs::{
    self, Cap, PortRegs, Reg, CAP, GHC, GHC_AE, GHC_HR, GHC_IE, GHC_MRSM, IS, PI, PORTS, PORTS_MAX,
    PORT_SHIFT,
};
use hal::{Error, Messages, Mmio, PciIds, Platform};

/// How long `GHC.HR` may stay set: beyond it the HBA is hung (10.4.3).
const RESET_US: u64 = 1_000_000;
/// The pause between two looks.
const PAUSE_US: u64 = 100;

/// What a port's registers were before the HBA's reset, as far as it is the firmware's to decide:
/// link power management and speed, and what the port is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Firmware {
    pub(crate) cmd: u32,
    pub(crate) sctl: u32,
    /// The port is made for drives that come and go.
    pub(crate) external: bool,
}

/// What a port is told of its HBA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPlan {
    pub(crate) number: u8,
    pub(crate) cap: Cap,
    pub(crate) board: Boards,
    pub(crate) around: Surroundings,
    /// The first address that the HBA does not reach; 0: none.
    pub(crate) below: u64,
    pub(crate) firmware: Firmware,
}

impl PortPlan {
    /// The port's number, from 0.
    pub const fn number(&self) -> u8 {
        self.number
    }

    /// Likewise, with FUA where the drive has it and is not known to break it.
    pub const fn with_fua(mut self, fua: bool) -> Self {
        self.around.fua = fua;
        self
    }
}

/// One host bus adapter.
///
/// `mmio` is its whole register window ([`crate::boards::bar`]).
pub struct Hba<M: Mmio> {
    mmio: M,
    cap: Cap,
    board: Boards,
    vendor: u16,
    /// PI.
    implemented: u32,
    /// Those of them that are for SATA drives.
    ports: u32,
    firmware: [Firmware; PORTS_MAX as usize],
}

impl<M: Mmio + Clone> Hba<M> {
    /// Looks at the capabilities of an HBA made by `ids`; the device is not touched before
    /// [`Hba::start`].
    ///
    /// [`Error::Unsupported`]: [`Boards::refusal`] says why. [`Error::Gone`]: no device answers.
    /// [`Error::Malformed`]: it implements no port, or ports beyond the window.
    pub fn new(mmio: M, ids: &PciIds) -> Result<Self, Error> {
        let board = Boards::of(ids);
        if board.refusal().is_some() {
            return Err(Error::Unsupported);
        }
        let cap = regs::read(&mmio, CAP)?;
        let implemented = mmio.read32(PI);
        let ports = board.sata_ports(implemented, ids);
        // All ports implemented is possible, all capabilities as well is not.
        let last = match ports.checked_ilog2() {
            Some(last) => last,
            None => return Err(Error::Malformed),
        };
        let end = PORTS.saturating_add((last as usize).saturating_add(1) << PORT_SHIFT);
        if end > mmio.len() {
            return Err(Error::Malformed);
        }
        Ok(Self {
            cap: Cap(cap).of(board),
            board,
            vendor: ids.vendor,
            implemented,
            ports,
            firmware: [Firmware::default(); PORTS_MAX as usize],
            mmio,
        })
    }

    /// How many bits of an address it takes, and gets right: the DMA mask, to be set before a port
    /// is made.
    pub fn dma_bits(&self) -> u8 {
        let said = if self.cap.has_64_bits() { 64 } else { 32 };
        self.board.dma_bits(said)
    }

    /// Tells the names of what it is known for to `named`; its ports' controllers tell them, too.
    pub fn quirks(&self, named: &mut dyn FnMut(&'static str)) {
        self.board.each(named);
    }

    /// How it may interrupt.
    pub const fn messages(&self) -> Messages {
        self.board.messages()
    }

    /// The ports that are to be on in the register PCS of configuration space, which a reset of the
    /// HBA may have turned off; `None`: there is no such register.
    pub const fn switched_ports(&self) -> Option<u32> {
        match self.board.has(Boards::PCS) {
            true => Some(self.ports),
            false => None,
        }
    }

    /// The implemented ports, one bit each.
    pub const fn ports(&self) -> u32 {
        self.ports
    }

    /// What makes port `number`; `None`: it is not implemented. After [`Hba::start`].
    pub fn port(&self, number: u8) -> Option<PortPlan> {
        let bit = 1u32.checked_shl(u32::from(number))?;
        let firmware = *self.firmware.get(usize::from(number))?;
        (self.ports & bit != 0).then_some(PortPlan {
            number,
            cap: self.cap,
            board: self.board,
            around: Surroundings {
                vendor: self.vendor,
                fua: false,
                sectors: self.board.sectors(),
            },
            below: 1u64.checked_shl(u32::from(self.dma_bits())).unwrap_or(0),
            firmware,
        })
    }

    /// Takes it over from the firmware, resets it and leaves all ports idle and all interrupts off.
    /// Sleeps, for 3 s at most.
    ///
    /// [`Error::Timeout`]: the reset does not end. [`Error::Gone`].
    pub fn start<P: Platform>(&mut self, platform: &P) -> Result<(), Error> {
        handoff::take_over(platform, &self.mmio)?;
        // Registers below GHC are defined only now (3.1.2, AE).
        self.enable_ahci()?;
        for (number, place) in (0u8..).zip(self.firmware.iter_mut()) {
            if 1u32.wrapping_shl(u32::from(number)) & self.ports == 0 {
                continue;
            }
            let port = PortRegs::new(self.mmio.clone(), number);
            let cmd = port.get(Reg::Cmd)?;
            let esata = cmd & regs::CMD_ESP != 0 && self.cap.has_external();
            *place = Firmware {
                cmd: cmd & regs::CMD_ALPM,
                sctl: port.get(Reg::Sctl)? & regs::SCTL_KEPT,
                external: esata || cmd & regs::CMD_HPCP != 0,
            };
        }
        self.reset(platform)
    }

    /// Brings back one that [`Hba::start`] had brought up, after a sleep or a reset in which its
    /// registers were lost: likewise, with what the firmware had set up before the start. Sleeps.
    ///
    /// [`Error::Timeout`]: the reset does not end. [`Error::Gone`].
    pub fn restart<P: Platform>(&self, platform: &P) -> Result<(), Error> {
        // A firmware that woke the machine may have used it (10.6.3).
        handoff::take_over(platform, &self.mmio)?;
        self.enable_ahci()?;
        self.reset(platform)
    }

    /// Resets it, and leaves all ports idle and all interrupts off (10.4.3). Sleeps.
    fn reset<P: Platform>(&self, platform: &P) -> Result<(), Error> {
        self.mmio.write32(GHC, GHC_AE | GHC_HR);
        let start = platform.now_us();
        loop {
            // The clock before the register: a late wake-up is not the device's fault.
            let waited = platform.now_us().saturating_sub(start);
            if regs::read(&self.mmio, GHC)? & GHC_HR == 0 {
                break;
            }
            if waited >= RESET_US {
                return Err(Error::Timeout);
            }
            platform.sleep_us(PAUSE_US);
        }
        self.enable_ahci()?;
        if self.mmio.read32(PI) != self.implemented {
            // Written once by the firmware; some HBAs forget it.
            self.mmio.write32(PI, self.implemented);
        }
        self.mmio.write32(IS, u32::MAX);
        Ok(())
    }

    fn enable_ahci(&self) -> Result<(), Error> {
        let ghc = regs::read(&self.mmio, GHC)?;
        if ghc & GHC_AE == 0 {
            self.mmio.write32(GHC, GHC_AE);
            // One that refuses is none.
            if regs::read(&self.mmio, GHC)? & GHC_AE == 0 {
                return Err(Error::Unsupported);
            }
        }
        Ok(())
    }

    /// Lets the HBA interrupt, or not. Before it is let, the handler is registered.
    pub fn set_interrupt(&self, enabled: bool) {
        let ie = if enabled { GHC_IE } else { 0 };
        self.mmio.write32(GHC, GHC_AE | ie);
    }

    /// Whether all ports share the first message although several were granted (`GHC.MRSM`).
    /// Otherwise each port has the message of its number, which follows the port's own status
    /// alone: `IS` is not asked, nor acknowledged (10.6.2.2).
    pub fn shares_message(&self) -> bool {
        self.mmio.read32(GHC) & GHC_MRSM != 0
    }

    /// Serves an interrupt that ports may share: a pin, or the only message. Calls `serve` for each
    /// port that may have caused it, to answer whether it did. Returns whether the HBA did. Any
    /// context; one caller at a time.
    ///
    /// `IS` costs more to read than all else here. Where one port only is `served`, and no other
    /// device may have raised the line (`shared`), that one is asked instead; what others have to
    /// tell, which is rare, makes the HBA interrupt again once this is acknowledged (10.7.2.1,
    /// 10.7.2.2). `IS` is acknowledged last, as it follows the ports' own status.
    #[inline]
    pub fn interrupt(&self, shared: bool, served: u32, mut serve: impl FnMut(u8) -> bool) -> bool {
        let alone = !shared && served.is_power_of_two() && !self.board.has(Boards::ACK_FIRST);
        // CAST: below 32, or 32 of no port.
        if alone && serve(served.trailing_zeros() as u8) {
            self.mmio.write32(IS, served);
            return true;
        }
        let pending = self.mmio.read32(IS);
        // All ports at once, of an HBA that has fewer: it is gone.
        if pending == 0 || (pending == regs::ABSENT && self.ports != regs::ABSENT) {
            return false;
        }
        let first = self.board.has(Boards::ACK_FIRST);
        if first {
            // What comes from here on interrupts again.
            self.mmio.write32(IS, pending);
        }
        let mut ours = false;
        let mut left = pending & self.ports;
        while left != 0 {
            // CAST: below 32.
            ours |= serve(left.trailing_zeros() as u8);
            left &= left.wrapping_sub(1);
        }
        if !first {
            // Of ports that had nothing to tell, too: the line goes down.
            self.mmio.write32(IS, pending);
        }
        ours || pending & !served != 0
    }
}
