// SPDX-License-Identifier: GPL-2.0
//! Reservations (Base 2.0 sections 7.2 to 7.5 and 8.19): the commands that change them, and what
//! statuses mean.
//!
//! What is sent, and what is made of the answer, is as in tree (drivers/nvme/host/pr.c of Linux
//! 7.3), so that who shares a disk with hosts of either driver finds no difference. That goes for a
//! new key of 0, too: the old one is replaced by it.

use crate::command::Sqe;
use hal::{Access, Denied, DmaMem, Reserve};

pub(crate) const REGISTER: u8 = 0x0d;
pub(crate) const REPORT: u8 = 0x0e;
pub(crate) const ACQUIRE: u8 = 0x11;
pub(crate) const RELEASE: u8 = 0x15;

/// Bytes of the data structures of Register and Acquire, two keys, and of Release, one.
pub(crate) const KEYS_BYTES: usize = 16;
pub(crate) const KEY_BYTES: usize = 8;

/// RREGA, RACQA, RRELA: bits 2:0 of dword 10.
const REPLACE: u32 = 2;
const PREEMPT: u32 = 1;
const PREEMPT_AND_ABORT: u32 = 2;
const CLEAR: u32 = 1;
/// IEKEY: the key that the command brings is not compared.
const IGNORE_KEY: u32 = 1 << 3;
/// CPTPL of Register: keys and reservation outlive a loss of power.
const PERSIST: u32 = 3 << 30;
/// Where RTYPE is in Acquire and Release.
const TYPE_SHIFT: u32 = 8;

/// RTYPE.
const TYPES: [(u8, Access); 6] = [
    (1, Access::WriteExclusive),
    (2, Access::ExclusiveAccess),
    (3, Access::WriteExclusiveRegistrants),
    (4, Access::ExclusiveAccessRegistrants),
    (5, Access::WriteExclusiveAll),
    (6, Access::ExclusiveAccessAll),
];

/// RTYPE for `access`; 0, which is none, for what has none: the device refuses that.
fn number(access: Option<Access>) -> u32 {
    let found = (TYPES.iter()).find(|(_, known)| Some(*known) == access);
    found.map_or(0, |(number, _)| u32::from(*number))
}

/// What RTYPE `number` is; `None`: nothing.
pub(crate) fn access(number: u8) -> Option<Access> {
    let found = TYPES.iter().find(|(known, _)| *known == number);
    found.map(|(_, access)| *access)
}

/// A command that changes something, with its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) sqe: Sqe,
    /// CRKEY, and NRKEY or PRKEY.
    keys: [u64; 2],
    /// Bytes of that which the command transfers.
    pub(crate) bytes: usize,
}

impl Change {
    /// The command that has `what` done with namespace `nsid`.
    pub(crate) fn new(nsid: u32, what: &Reserve) -> Self {
        let ignoring = |ignore: bool| if ignore { IGNORE_KEY } else { 0 };
        let typed = |access| number(access).wrapping_shl(TYPE_SHIFT);
        let (opcode, dword10, keys) = match *what {
            Reserve::Register { old, new, ignore } => {
                let action = if old == 0 { 0 } else { REPLACE };
                (REGISTER, action | ignoring(ignore) | PERSIST, [old, new])
            }
            Reserve::Acquire {
                key,
                access,
                ignore,
            } => (ACQUIRE, typed(access) | ignoring(ignore), [key, 0]),
            Reserve::Preempt {
                key,
                victim,
                access,
                abort,
            } => {
                let action = if abort { PREEMPT_AND_ABORT } else { PREEMPT };
                (ACQUIRE, typed(access) | action, [key, victim])
            }
            Reserve::Release { key, access } => {
                (RELEASE, typed(access) | ignoring(key == 0), [key, 0])
            }
            Reserve::Clear { key } => (RELEASE, CLEAR | ignoring(key == 0), [key, 0]),
        };
        Self {
            sqe: sqe(opcode, nsid, u64::from(dword10)),
            keys,
            bytes: match opcode {
                RELEASE => KEY_BYTES,
                _ => KEYS_BYTES,
            },
        }
    }

    /// Puts its data into `memory`, which has [`Change::bytes`].
    pub(crate) fn fill<D: DmaMem>(&self, memory: &D) {
        let places = (0..self.bytes).step_by(KEY_BYTES);
        places
            .zip(self.keys)
            .for_each(|(at, key)| memory.write64(at, key));
    }
}

pub(crate) fn sqe(opcode: u8, nsid: u32, dwords: u64) -> Sqe {
    let first = u64::from(opcode) | (u64::from(nsid) << 32);
    [first, 0, 0, 0, 0, dwords, 0, 0]
}

/// What a `status` means, of one of these commands.
pub(crate) fn verdict(status: u16) -> Result<(), Denied> {
    match status & 0x7ff {
        0 => Ok(()),
        // Reservation Conflict.
        0x083 => Err(Denied::Conflict),
        // Invalid Command Opcode, Invalid Field, Invalid Namespace; Conflicting Attributes.
        0x001 | 0x002 | 0x00b | 0x180 => Err(Denied::Invalid),
        // Path Related Status.
        0x300..=0x3ff => Err(Denied::Path),
        _ => Err(Denied::Failed),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    use hal::mock::MockPlatform;
    use hal::Platform;

    fn change(what: Reserve) -> (u8, u32, Vec<u64>) {
        let change = Change::new(7, &what);
        let memory = MockPlatform::new().dma(change.bytes).unwrap();
        change.fill(&memory);
        let keys = (0..change.bytes).step_by(8).map(|at| memory.read64(at));
        let [first, a, b, c, d, dwords, e, f] = change.sqe;
        assert_eq!((first >> 8, [a, b, c, d, e, f]), (7 << 24, [0; 6]));
        assert_eq!(dwords >> 32, 0, "dword 11");
        (first as u8, dwords as u32, keys.collect())
    }

    /// Opcode, dword 10 and data of each, as nvme of Linux 7.3 sends them.
    #[test]
    fn what_is_sent_is_what_is_sent_in_tree() {
        let access = Some(Access::ExclusiveAccess);
        let (key, victim) = (u64::MAX, 0x1122_3344_5566_7788);
        let register = |old, new, ignore| change(Reserve::Register { old, new, ignore });
        assert_eq!(
            register(0, key, false),
            (0x0d, 0xc000_0000, [0, key].into())
        );
        assert_eq!(
            register(1, key, false),
            (0x0d, 0xc000_0002, [1, key].into())
        );
        assert_eq!(register(0, key, true), (0x0d, 0xc000_0008, [0, key].into()));
        assert_eq!(register(key, 0, true), (0x0d, 0xc000_000a, [key, 0].into()));
        for (ignore, dword10) in [(false, 0x200), (true, 0x208)] {
            let acquire = Reserve::Acquire {
                key,
                access,
                ignore,
            };
            assert_eq!(change(acquire), (0x11, dword10, [key, 0].into()));
        }
        for (abort, dword10) in [(false, 0x201), (true, 0x202)] {
            let preempt = Reserve::Preempt {
                key,
                victim,
                access,
                abort,
            };
            assert_eq!(change(preempt), (0x11, dword10, [key, victim].into()));
        }
        for (key, release, clear) in [(key, 0x200, 1), (1, 0x200, 1), (0, 0x208, 9)] {
            let sent = change(Reserve::Release { key, access });
            assert_eq!(sent, (0x15, release, [key].into()));
            assert_eq!(change(Reserve::Clear { key }), (0x15, clear, [key].into()));
        }
    }

    #[test]
    fn types_go_there_and_come_back() {
        let numbers = TYPES.map(|(n, kind)| {
            assert_eq!((number(Some(kind)), access(n)), (u32::from(n), Some(kind)));
            n
        });
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        assert_eq!(
            (number(None), access(0), access(7), access(255)),
            (0, None, None, None)
        );
    }

    #[test]
    fn statuses_are_what_they_are_in_tree() {
        for flags in [0, 0x4000, 0x7800] {
            let denied = |status: u16| verdict(status | flags).err();
            assert_eq!(denied(0), None);
            assert_eq!(denied(0x083), Some(Denied::Conflict));
            for status in [0x001, 0x002, 0x00b, 0x180] {
                assert_eq!(denied(status), Some(Denied::Invalid), "{status:#x}");
            }
            for status in [0x300, 0x370, 0x371, 0x3ff] {
                assert_eq!(denied(status), Some(Denied::Path), "{status:#x}");
            }
            for status in [
                0x003, 0x018, 0x082, 0x084, 0x183, 0x281, 0x2ff, 0x400, 0x7ff,
            ] {
                assert_eq!(denied(status), Some(Denied::Failed), "{status:#x}");
            }
        }
    }
}
