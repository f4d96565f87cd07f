// SPDX-License-Identifier: GPL-2.0
//! A port at the moment at which an answer was missed: what the log says of it, so that a drive
//! that is late is told from a completion that was lost on its way.
//!
//! The registers are read before anything is done about it, as stopping the command list clears
//! those that tell what is finished (AHCI 1.3.1 sections 3.3.13, 3.3.14).

use cell::sync::Ordering;
use core::fmt;
use hal::{Mmio, Platform};

use crate::port::{Port, TimeoutReport};
use crate::regs::{
    self, Reg, ABSENT, CMD_ST, IS_BUS_ERROR, IS_TFE, STATUS_BSY, STATUS_DF, STATUS_DRQ, STATUS_ERR,
};

impl TimeoutReport {
    /// What follows from the registers, the worst first.
    pub(crate) fn diagnosis(&self) -> &'static str {
        if self.ssts == ABSENT {
            return "the HBA is gone";
        }
        if self.ssts & 0xf != regs::DET_READY {
            return "the link is down";
        }
        if self.cmd & CMD_ST == 0 {
            return "the command list does not run: it was stopped, or somebody has reset the HBA";
        }
        if self.is & IS_BUS_ERROR != 0 {
            return "the link or the bus has failed, and nobody has seen to it";
        }
        if self.is & IS_TFE != 0 || self.tfd & (STATUS_ERR | STATUS_DF) != 0 {
            return "the drive has reported an error, and nobody has seen to it";
        }
        if self.awaited == 0 {
            return "the drive has nothing to do";
        }
        if (self.ci | self.sact) & self.awaited != self.awaited {
            return "the drive has finished something: its completion was lost on its way";
        }
        match self.tfd & (STATUS_BSY | STATUS_DRQ) {
            0 => "the drive has taken it, and is late",
            _ => "the drive is busy, and late",
        }
    }
}

impl fmt::Display for TimeoutReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [sdb, active] = self.sdb;
        write!(
            f,
            "{} ({}): waited for {:#010x}, PxCI {:#010x}, PxSACT {:#010x}, PxTFD {:#06x}, \
             PxIS {:#010x}, PxSERR {:#010x}, PxSSTS {:#05x}, PxCMD {:#010x}; \
             FIS area: Set Device Bits {sdb:#010x} {active:#010x}, D2H {:#010x}",
            self.diagnosis(),
            self.step,
            self.awaited,
            self.ci,
            self.sact,
            self.tfd,
            self.is,
            self.serr,
            self.ssts,
            self.cmd,
            self.rfis,
        )
    }
}

impl<P: Platform, M: Mmio> Port<P, M> {
    /// The port as it is now, at `step`, waiting for the slots in `awaited`.
    fn snapshot(&self, step: &'static str, awaited: u32) -> TimeoutReport {
        let (sdb, rfis) = self.memory.fises();
        TimeoutReport {
            step,
            awaited,
            tfd: self.regs.read(Reg::Tfd),
            ci: self.regs.read(Reg::Ci),
            sact: self.regs.read(Reg::Sact),
            is: self.regs.read(Reg::Is),
            serr: self.regs.read(Reg::Serr),
            ssts: self.regs.read(Reg::Ssts),
            cmd: self.regs.read(Reg::Cmd),
            sdb: [sdb, self.memory.sdb_active()],
            rfis,
        }
    }

    /// The control path has waited for `awaited` in vain: keeps what the registers say, before it
    /// does anything about it. The first time counts, until the port is the data path's again.
    #[cold]
    pub(crate) fn record_timeout(&self, awaited: u32) {
        // One that is kept is the earlier one.
        let _ = self
            .timeout_report
            .put(self.snapshot(self.progress.name(), awaited));
    }

    /// What there is to say of an answer that was missed: by the control path, or now, by the data
    /// path.
    pub(crate) fn take_timeout_report(&self) -> TimeoutReport {
        let now = || self.snapshot("I/O", self.active_tags.issued.load(Ordering::SeqCst));
        self.timeout_report.take().unwrap_or_else(now)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::string::ToString;

    use super::*;

    /// A drive that is at work on what was issued.
    const LATE: TimeoutReport = TimeoutReport {
        step: "a command passed through",
        awaited: 0b11,
        tfd: 0x50,
        ci: 0b11,
        sact: 0b11,
        is: 0,
        serr: 0,
        ssts: 0x123,
        cmd: 0x0000_c017,
        sdb: [0; 2],
        rfis: 0,
    };

    #[test]
    fn registers_tell_late_from_lost() {
        let cases = [
            (LATE, "the drive has taken it, and is late"),
            (
                TimeoutReport { tfd: 0xd0, ..LATE },
                "the drive is busy, and late",
            ),
            (
                TimeoutReport {
                    ci: 0b01,
                    sact: 0b01,
                    ..LATE
                },
                "the drive has finished something: its completion was lost on its way",
            ),
            (
                TimeoutReport {
                    ci: 0,
                    sact: 0b01,
                    ..LATE
                },
                "the drive has finished something: its completion was lost on its way",
            ),
            (
                TimeoutReport {
                    tfd: 0x0451,
                    ..LATE
                },
                "the drive has reported an error, and nobody has seen to it",
            ),
            (
                TimeoutReport { cmd: 6, ..LATE },
                "the command list does not run: it was stopped, or somebody has reset the HBA",
            ),
            (TimeoutReport { ssts: 1, ..LATE }, "the link is down"),
            (
                TimeoutReport {
                    ssts: ABSENT,
                    ..LATE
                },
                "the HBA is gone",
            ),
            (
                TimeoutReport {
                    is: regs::IS_IF,
                    ..LATE
                },
                "the link or the bus has failed, and nobody has seen to it",
            ),
            (
                TimeoutReport { awaited: 0, ..LATE },
                "the drive has nothing to do",
            ),
        ];
        for (report, diagnosis) in cases {
            assert_eq!(report.diagnosis(), diagnosis, "{report:?}");
        }
    }

    #[test]
    fn a_queued_command_that_was_accepted_is_late_and_not_lost() {
        let accepted = TimeoutReport { ci: 0, ..LATE };
        assert_eq!(accepted.diagnosis(), LATE.diagnosis());
    }

    #[test]
    fn the_line_has_all_of_it() {
        let line = LATE.to_string();
        for part in [
            "late (a command passed through)",
            "PxCI 0x00000003",
            "PxTFD 0x0050",
            "PxSSTS 0x123",
            "D2H 0x00000000",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
}
