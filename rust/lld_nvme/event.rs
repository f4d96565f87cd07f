// SPDX-License-Identifier: GPL-2.0
//! Asynchronous events (Base 2.0 section 5.2): the request that is answered when the controller has
//! something to say, and what its answer says.

use cell::sync::{AtomicBool, AtomicU64, Ordering};
use core::fmt;

/// The CID of the Asynchronous Event Request; no other admin command has it.
pub(crate) const EVENT_CID: u16 = 0;

/// The one request that is outstanding, and the answer to it. Every controller takes one (AERL).
pub(crate) struct EventSlot {
    /// The request is with the controller.
    armed: AtomicBool,
    /// An answer is there that nobody has taken.
    come: AtomicBool,
    /// Dword 0 of the answer, and above it the status; written before `come`.
    answer: AtomicU64,
}

impl EventSlot {
    pub(crate) fn new() -> Self {
        Self {
            armed: AtomicBool::new(false),
            come: AtomicBool::new(false),
            answer: AtomicU64::new(0),
        }
    }

    /// The request is about to be sent: `false` if it was already. The control path's.
    pub(crate) fn arm(&self) -> bool {
        !self.armed.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Acquire)
    }

    /// The controller has answered; what it says without having been asked is dropped. Any context.
    pub(crate) fn answer(&self, result: u64, status: u16) {
        if self.armed.swap(false, Ordering::AcqRel) {
            let said = (result & u64::from(u32::MAX)) | (u64::from(status) << 32);
            self.answer.store(said, Ordering::Relaxed);
            self.come.store(true, Ordering::Release);
        }
    }

    pub(crate) fn has_come(&self) -> bool {
        self.come.load(Ordering::Acquire)
    }

    /// The answer, once: dword 0 and the status.
    pub(crate) fn take(&self) -> Option<(u32, u16)> {
        let come = self.come.swap(false, Ordering::AcqRel);
        let said = self.answer.load(Ordering::Relaxed);
        // CAST: the halves as they were put there.
        come.then_some((said as u32, (said >> 32) as u16))
    }

    /// The controller was disabled: it has no request any more.
    pub(crate) fn forget(&self) {
        self.armed.store(false, Ordering::Relaxed);
        self.come.store(false, Ordering::Release);
    }
}

/// Log pages (figure "Log Page Identifiers") that are read for events: each by what clears it.
pub(crate) const ERROR_LOG: u8 = 0x01;
pub(crate) const HEALTH_LOG: u8 = 0x02;
pub(crate) const FIRMWARE_LOG: u8 = 0x03;
pub(crate) const CHANGED_LOG: u8 = 0x04;

/// Bits of Asynchronous Event Configuration, and of OAES: namespace attributes, firmware
/// activation. The low byte is that of the health log's critical warnings, of which 1.0 has five.
const NAMESPACES: u32 = 1 << 8;
const FIRMWARE: u32 = 1 << 9;
const WARNINGS: u32 = 0x1f;

/// What a controller is asked to report that says `offered` in OAES.
pub(crate) fn wanted(offered: u32) -> u32 {
    WARNINGS | (offered & (NAMESPACES | FIRMWARE))
}

/// What an event is about (figure "Asynchronous Event Request, Completion Queue Entry Dword 0").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A doorbell was written that is none, or with a value that is none.
    Doorbell,
    /// The controller fails for good.
    Persistent,
    /// Another error, which the error log tells more of.
    Error(u8),
    /// The health log has a critical warning.
    Health,
    /// Namespaces have come, gone or changed.
    Namespaces,
    /// New firmware is about to run.
    Firmware,
    /// What nothing is done about: for the operator's programs.
    Other,
}

impl Event {
    /// From dword 0.
    pub(crate) fn decode(dword: u32) -> Self {
        // CAST: bits 15:8.
        match (dword & 7, (dword >> 8) as u8) {
            (0, 0 | 1) => Self::Doorbell,
            (0, 3) => Self::Persistent,
            (0, info) => Self::Error(info),
            (1, _) => Self::Health,
            (2, 0) => Self::Namespaces,
            (2, 1) => Self::Firmware,
            _ => Self::Other,
        }
    }
}

/// What the critical warnings mean, from bit 0 on (figure "SMART / Health Information Log").
const WARNING_NAMES: [&str; 6] = [
    "its spare blocks are below the threshold",
    "its temperature is beyond a threshold",
    "its reliability is degraded",
    "its media are read-only",
    "the backup of its volatile memory has failed",
    "its persistent memory region is read-only or unreliable",
];

/// Critical warnings by name.
pub(crate) struct Warnings(pub(crate) u8);

impl fmt::Display for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for (bit, name) in (0u32..).zip(WARNING_NAMES) {
            if self.0 & 1u8.wrapping_shl(bit) != 0 {
                write!(f, "{comma}{name}")?;
                comma = ", ";
            }
        }
        write!(f, " ({:#04x}; nvme smart-log)", self.0)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_once_and_only_when_it_was_asked_for() {
        let slot = EventSlot::new();
        slot.answer(1, 0);
        assert_eq!((slot.has_come(), slot.take()), (false, None));
        assert!(slot.arm() && !slot.arm(), "one at a time");
        slot.answer(0xffff_ffff_0004_0002, 0x7fff);
        slot.answer(9, 9);
        assert!(slot.has_come() && !slot.is_armed());
        assert_eq!(slot.take(), Some((0x0004_0002, 0x7fff)));
        assert_eq!(slot.take(), None);
        assert!(slot.arm());
        slot.answer(1, 0);
        slot.forget();
        assert_eq!((slot.take(), slot.is_armed()), (None, false));
    }

    #[test]
    fn events_are_what_the_specification_has() {
        let cases = [
            (0x0001_0000, Event::Doorbell),
            (0x0001_0100, Event::Doorbell),
            (0x0001_0200, Event::Error(2)),
            (0x0001_0300, Event::Persistent),
            (0x0001_0400, Event::Error(4)),
            (0x0002_0001, Event::Health),
            (0x0004_0002, Event::Namespaces),
            (0x0003_0102, Event::Firmware),
            (0x0007_0202, Event::Other),
            (0x00c0_0007, Event::Other),
            (0xffff_ffff, Event::Other),
        ];
        for (dword, event) in cases {
            assert_eq!(Event::decode(dword), event, "{dword:#x}");
        }
        assert_eq!(wanted(0), 0x1f);
        assert_eq!(wanted(u32::MAX), 0x31f);
    }
}
