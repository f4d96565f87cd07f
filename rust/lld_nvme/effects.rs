// SPDX-License-Identifier: GPL-2.0
//! The side effects of an admin command: on the namespaces, on I/O in flight (Base 2.0 section
//! 5.16.1.6, the log page Commands Supported and Effects).
//!
//! The log is read once after each start of the controller, when a command is first passed through:
//! other firmware may say other things.

use crate::command::Sqe;
use crate::controller::NvmeController;
use crate::features;
use crate::identify::{View, BYTES};
use crate::state::State;
use crate::step::Step;
use hal::{DmaMem, Error, Mmio, Platform};

/// What a command changes for the layers above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// No I/O may be under way beside it.
    pub exclusive: bool,
    /// Which namespaces there are, or what they are.
    pub namespaces: bool,
    /// What the controller is able to, which is asked for at a start only.
    pub capabilities: bool,
}

/// Namespace capability change, namespace inventory change.
const NCC_NIC: u32 = (1 << 2) | (1 << 3);
/// Controller capability change.
const CCC: u32 = 1 << 4;
/// Command submission and execution relaxations (2.0): where one is said, CSE is for hosts that
/// don't know them.
const CSER: u32 = 3 << 14;
/// Command submission and execution: beside what it may not run.
const CSE: u32 = 7 << 16;

/// The log page.
const LOG: u8 = 0x05;

/// Opcodes of admin commands (figure 138).
const NAMESPACE_MANAGEMENT: u8 = 0x0d;
const NAMESPACE_ATTACHMENT: u8 = 0x15;
const FORMAT_NVM: u8 = 0x80;
const SECURITY_RECEIVE: u8 = 0x82;
const SANITIZE: u8 = 0x84;

impl Effects {
    /// Those that the log's entry says.
    fn decode(entry: u32) -> Self {
        Self {
            exclusive: entry & CSE != 0 && entry & CSER == 0,
            namespaces: entry & NCC_NIC != 0,
            capabilities: entry & CCC != 0,
        }
    }

    /// What the log says of `opcode`, if there is one, and what is known whatever it says. Format,
    /// Sanitize and Security Receive are as in tree (`nvme_init_known_nvm_effects`, Linux 7.3); the
    /// namespaces' own commands are here because their asynchronous event is not waited for.
    fn of(opcode: u8, entry: u32) -> Self {
        let said = Self::decode(entry);
        match opcode {
            FORMAT_NVM => Self {
                exclusive: true,
                namespaces: true,
                ..said
            },
            SANITIZE => Self {
                exclusive: true,
                ..said
            },
            // Exclusive beside other security commands, and not beside I/O.
            SECURITY_RECEIVE => Self {
                exclusive: false,
                ..said
            },
            NAMESPACE_MANAGEMENT | NAMESPACE_ATTACHMENT => Self {
                namespaces: true,
                ..said
            },
            _ => said,
        }
    }

    /// Whether the disks have to be frozen for it, and looked at anew.
    pub fn change_disks(&self) -> bool {
        self.exclusive || self.namespaces
    }
}

/// The log's part about admin commands: what of each opcode's entry matters.
pub(crate) type Log = [u8; 256];

const EXCLUSIVE: u8 = 1;
const NAMESPACES: u8 = 2;
const CAPABILITIES: u8 = 4;

fn pack(entry: u32) -> u8 {
    let said = Effects::decode(entry);
    let bit = |on: bool, bit: u8| if on { bit } else { 0 };
    bit(said.exclusive, EXCLUSIVE)
        | bit(said.namespaces, NAMESPACES)
        | bit(said.capabilities, CAPABILITIES)
}

fn unpack(said: u8) -> u32 {
    let bits = |bit: u8, bits: u32| if said & bit != 0 { bits } else { 0 };
    bits(EXCLUSIVE, CSE) | bits(NAMESPACES, NCC_NIC) | bits(CAPABILITIES, CCC)
}

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// The side effects of the admin command `sqe`. Sleeps; under the same mutex as the control
    /// path.
    pub fn effects(&self, sqe: &Sqe) -> Result<Effects, Error> {
        // CAST: bits 7:0 are the opcode.
        let opcode = sqe[0] as u8;
        let mut state = self.state()?;
        let log = match state.effects {
            Some(log) => log,
            None => self.read_effects(&mut state)?,
        };
        let said = log.get(usize::from(opcode)).copied().unwrap_or(0);
        Ok(Effects::of(opcode, unpack(said)))
    }

    fn read_effects(&self, state: &mut State<P, M>) -> Result<Log, Error> {
        let mut log = [0; 256];
        let about = state.about.ok_or(Error::Invalid)?;
        if about.id.has_effects_log {
            let base = self.page();
            let to = self.pages.bus_addr().wrapping_add(base as u64);
            match self.command(Step::EffectsLog, features::log_page(LOG, BYTES, to)) {
                Ok(_) => {
                    let view = View {
                        memory: &self.pages,
                        base,
                    };
                    for (place, at) in log.iter_mut().zip((0usize..).step_by(4)) {
                        *place = pack(view.u32(at));
                    }
                }
                // Then nothing is said.
                Err(Error::Refused(_)) => {}
                Err(why) => return Err(why),
            }
        }
        state.effects = Some(log);
        Ok(log)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_holds_whatever_the_log_says() {
        let exclusive = |opcode, entry| Effects::of(opcode, entry).exclusive;
        let namespaces = |opcode, entry| Effects::of(opcode, entry).namespaces;
        assert!(exclusive(FORMAT_NVM, 0) && namespaces(FORMAT_NVM, 0));
        assert!(exclusive(FORMAT_NVM, CSER | CSE));
        assert!(exclusive(SANITIZE, 0) && !namespaces(SANITIZE, 0));
        assert!(!exclusive(SECURITY_RECEIVE, CSE));
        assert!(namespaces(NAMESPACE_MANAGEMENT, 0) && namespaces(NAMESPACE_ATTACHMENT, 0));
        assert_eq!(Effects::of(0x06, 0), Effects::default());
    }

    #[test]
    fn entries_are_what_the_specification_has() {
        let said = |entry| {
            let said = Effects::of(0xc0, unpack(pack(entry)));
            (said.exclusive, said.namespaces, said.capabilities)
        };
        assert_eq!(said(0x0000_0003), (false, false, false), "CSUPP, LBCC");
        assert_eq!(said(1 << 2), (false, true, false));
        assert_eq!(said(1 << 3), (false, true, false));
        assert_eq!(said(1 << 4), (false, false, true));
        for cse in 1..8 {
            assert_eq!(said(cse << 16), (true, false, false));
            assert_eq!(said((cse << 16) | (1 << 14)), (false, false, false));
            assert_eq!(said((cse << 16) | (1 << 15)), (false, false, false));
        }
        assert_eq!(said(u32::MAX), (false, true, true));
        assert_eq!(said(0xfff8_0000), (false, false, false));
    }
}
