// SPDX-License-Identifier: GPL-2.0
//! What kind of HBA the model is, and what its drives are.

use hal::PciIds;

/// A model whose queued TRIM is known to be good, whatever its firmware.
pub const KNOWN_GOOD: &str = "Micron_M510_MODEL";

/// A sector that fails.
#[derive(Clone, Debug)]
pub struct Bad {
    pub lba: u64,
    /// Status in the lower byte, error in the upper.
    pub tfd: u16,
    /// How often it fails yet.
    pub times: usize,
}

/// A drive.
#[derive(Clone, Debug)]
pub struct Drive {
    pub signature: u32,
    pub serial: &'static str,
    pub model: &'static str,
    pub firmware: &'static str,
    /// Speeds that it knows: word 76, bits 3:1.
    pub speeds: u16,
    /// It is lost when its link may sleep, and when it is faster than 1.5 Gbit/s.
    pub sleepless: bool,
    pub slow: bool,
    pub block_shift: u8,
    pub blocks: u64,
    /// Commands that it queues.
    pub depth: Option<u8>,
    /// It has log 10h.
    pub names_errors: bool,
    pub trim: bool,
    pub queued_trim: bool,
    pub fua: bool,
    pub write_cache: bool,
    /// It refuses to have that turned on or off.
    pub keeps_cache: bool,
    /// Device-initiated power management: it has it; it is on; a reset leaves it on. And it lets
    /// the HBA have the link sleep.
    pub has_dipm: bool,
    pub dipm: bool,
    pub keeps_dipm: bool,
    pub hipm: bool,
    /// It says that it has it, and refuses; it never answers when it is to be on.
    pub refuses_dipm: bool,
    pub dies_of_dipm: bool,
    pub locked: bool,
    pub lba48: bool,
    /// Microseconds from the end of a reset to the link, and from there until it is ready; `None`:
    /// never.
    pub link_us: u64,
    pub ready_us: Option<u64>,
    /// Resets after which it gets ready, if it is not before.
    pub resets_needed: u32,
    pub data: Vec<u8>,
    pub bad: Vec<Bad>,
    /// A sector about which it never answers.
    pub mute: Option<u64>,
}

impl Drive {
    pub fn new(block_shift: u8, blocks: u64) -> Self {
        Self {
            signature: 0x0000_0101,
            serial: "SERIAL-0",
            model: "A model drive",
            firmware: "FW 1.0",
            speeds: 6,
            sleepless: false,
            slow: false,
            block_shift,
            blocks,
            depth: Some(32),
            names_errors: true,
            trim: true,
            queued_trim: false,
            fua: true,
            write_cache: true,
            keeps_cache: false,
            has_dipm: false,
            dipm: false,
            keeps_dipm: false,
            hipm: true,
            refuses_dipm: false,
            dies_of_dipm: false,
            locked: false,
            lba48: true,
            link_us: 2_000,
            ready_us: Some(3_000),
            resets_needed: 0,
            data: vec![0; (blocks << block_shift) as usize],
            bad: Vec::new(),
            mute: None,
        }
    }

    /// One that something else than a disk is.
    pub fn other(signature: u32) -> Self {
        Self {
            signature,
            ..Self::new(9, 16)
        }
    }
}

/// A firmware that has the HBA.
#[derive(Clone, Debug)]
pub struct Bios {
    /// It says that it is busy from the start.
    pub busy: bool,
    /// Microseconds until it lets go; `None`: never.
    pub lets_go_us: Option<u64>,
}

/// The HBA's properties.
#[derive(Clone, Debug)]
pub struct Config {
    pub ids: PciIds,
    /// What the operator says of FUA.
    pub fua: bool,
    pub slots: u8,
    pub ncq: bool,
    pub s64a: bool,
    pub clo: bool,
    pub sss: bool,
    /// Partial, Slumber, ALPM, external ports: CAP.PSC, SSC, SALP, SXS.
    pub psc: bool,
    pub ssc: bool,
    pub salp: bool,
    pub sxs: bool,
    /// PI.
    pub ports: u32,
    /// A reset forgets it.
    pub forgets_ports: bool,
    /// Microseconds of a reset; `None`: it never ends.
    pub reset_us: Option<u64>,
    pub bios: Option<Bios>,
    /// It sends one message for all ports, whatever it is granted.
    pub reverts: bool,
    pub bar: usize,
    /// The register access from which on the device is gone.
    pub vanish_at: Option<u64>,
    /// By port.
    pub drives: Vec<Option<Drive>>,
    /// Set Device Bits FISes are sent for several commands at once.
    pub batches: bool,
    /// The last command is carried out first.
    pub reverses: bool,
    /// `PxCI` is cleared for a command that failed, as some HBAs do.
    pub clears_failed: bool,
    /// Reads of `PxSACT` and `PxCI` for which a bit stays after the FIS is in memory.
    pub lag: usize,
    /// A queued command is accepted with the status of the one before, even if that failed.
    pub harps: bool,
    /// `PxCMD.CR` stays set; 1: until CLO or COMRESET; 2: until COMRESET.
    pub stuck: u8,
    /// The engine is hung: what is told is not looked at.
    pub deaf: bool,
    /// What is written to PRDBC instead of the truth.
    pub prdbc: Option<u32>,
    /// Bits that `PxSACT` and `PxCI` show beside the truth.
    pub phantoms: u32,
    /// Words that are written to both FISes instead of the truth.
    pub garbage: Option<u32>,
    /// The n-th read or write (from 0) breaks the link, and those after it, so many times.
    pub breaks: Option<(usize, usize)>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ids: PciIds::default(),
            fua: true,
            slots: 32,
            ncq: true,
            s64a: true,
            clo: true,
            sss: true,
            psc: true,
            ssc: true,
            salp: true,
            sxs: false,
            ports: 1,
            forgets_ports: false,
            reset_us: Some(1_000),
            bios: None,
            bar: 0x1100,
            vanish_at: None,
            drives: vec![Some(Drive::new(9, 4096))],
            batches: true,
            reverses: false,
            clears_failed: false,
            lag: 0,
            harps: false,
            stuck: 0,
            deaf: false,
            prdbc: None,
            phantoms: 0,
            garbage: None,
            breaks: None,
            reverts: false,
        }
    }
}

impl Config {
    /// An HBA with one drive.
    pub fn with(drive: Drive) -> Self {
        Self {
            drives: vec![Some(drive)],
            ..Self::default()
        }
    }
}
