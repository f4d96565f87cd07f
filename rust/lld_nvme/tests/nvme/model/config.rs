// SPDX-License-Identifier: GPL-2.0
//! What kind of controller the model is.

use hal::PciIds;

/// One namespace.
#[derive(Clone, Debug)]
pub struct Namespace {
    pub nsid: u32,
    pub lbads: u8,
    /// Metadata bytes a block.
    pub metadata: u16,
    /// DPS.
    pub protection: u8,
    /// Command set: 0 NVM, 2 zoned.
    pub command_set: u8,
    pub write_protected: bool,
    /// NMIC.
    pub nmic: u8,
    pub blocks: u64,
    /// NOIOB.
    pub noiob: u16,
    pub data: Vec<u8>,
}

impl Namespace {
    pub fn new(nsid: u32, lbads: u8, blocks: u64) -> Self {
        Self {
            nsid,
            lbads,
            metadata: 0,
            protection: 0,
            command_set: 0,
            write_protected: false,
            nmic: 0,
            blocks,
            noiob: 0,
            data: vec![0; (blocks << lbads) as usize],
        }
    }
}

/// What the controller does not survive, or does wrong.
#[derive(Clone, Debug)]
pub struct Frail {
    /// Microseconds after `CC.EN` was cleared for which `CSTS` must not be read.
    pub csts_us: u64,
    /// Identify looks at one bit of CNS.
    pub one_bit_of_cns: bool,
    /// Bytes from one I/O submission queue entry to the next.
    pub sqe_bytes: u64,
    /// CIDs are below this, and those of the admin queue below 32, others not.
    pub shared_cids: Option<u16>,
    /// An I/O queue must not hold two commands.
    pub one_at_a_time: bool,
    /// What a PRP list's address is a multiple of.
    pub lists_at: u64,
    /// Dataset Management reads 256 ranges, whatever it is told.
    pub reads_all_ranges: bool,
}

impl Default for Frail {
    fn default() -> Self {
        Self {
            csts_us: 0,
            one_bit_of_cns: false,
            sqe_bytes: 64,
            shared_cids: None,
            one_at_a_time: false,
            lists_at: 8,
            reads_all_ranges: false,
        }
    }
}

/// The controller's properties.
#[derive(Clone, Debug)]
pub struct Config {
    /// What its configuration space says, and VID, MN and FR of Identify Controller.
    pub ids: PciIds,
    pub vid: u16,
    pub model: &'static str,
    pub firmware: &'static str,
    pub frail: Frail,
    /// APSTA.
    pub apsta: bool,
    pub mqes: u16,
    /// CAP.TO, half seconds.
    pub to: u8,
    pub dstrd: u8,
    /// CAP.CSS.
    pub css: u8,
    pub mpsmin: u8,
    pub mpsmax: u8,
    pub version: u32,
    pub bar: usize,
    /// Microseconds until CSTS.RDY follows CC.EN; `None`: never.
    pub ready_us: Option<u64>,
    /// Microseconds until CSTS.SHST is complete.
    pub shutdown_us: u64,
    pub rtd3e_us: u32,
    /// CMIC.
    pub cmic: u8,
    /// Queue pairs that are granted.
    pub queues: u16,
    pub mdts: u8,
    pub sgls: u32,
    pub doorbell_buffer: bool,
    pub oncs: u16,
    /// RESCAP of all its namespaces.
    pub rescap: u8,
    pub vwc: u8,
    /// The log of commands' effects, if there is one: entries of admin opcodes.
    pub effects: Option<Vec<(u8, u32)>>,
    /// OAES, MTFA, critical warnings of the health log.
    pub oaes: u32,
    pub mtfa: u16,
    pub warnings: u8,
    /// WCTEMP, CCTEMP; and of the health log the composite temperature and those of two sensors:
    /// kelvins.
    pub hot: (u16, u16),
    pub kelvins: [u16; 3],
    pub dmrsl: u32,
    pub wzsl: u8,
    pub kind: u8,
    /// CRDT1 to CRDT3.
    pub retry_delays: [u16; 3],
    pub sqes: u8,
    pub cqes: u8,
    /// HMPRE, HMMIN, HMMINDS in units of 4 KiB, and HMMAXD.
    pub host_memory: (u32, u32, u32, u16),
    /// NN.
    pub nn: u32,
    /// The register access from which on the device is gone.
    pub vanish_at: Option<u64>,
    /// Interrupts are a pin.
    pub pin: bool,
    pub namespaces: Vec<Namespace>,
    /// The active list, if it is to lie.
    pub active: Option<Vec<u32>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ids: PciIds::default(),
            vid: 0,
            model: "Model controller",
            firmware: "1.0",
            frail: Frail::default(),
            apsta: false,
            mqes: 0x7ff,
            to: 4,
            dstrd: 0,
            css: 0x41,
            mpsmin: 0,
            mpsmax: 4,
            version: 0x0002_0000,
            bar: 0x4000,
            ready_us: Some(1_000),
            shutdown_us: 1_000,
            rtd3e_us: 0,
            cmic: 0,
            queues: 4,
            mdts: 7,
            sgls: 0,
            doorbell_buffer: false,
            oncs: 0x0c,
            rescap: 0,
            vwc: 1,
            effects: None,
            oaes: 0x300,
            mtfa: 10,
            hot: (343, 373),
            kelvins: [323, 0, 0],
            warnings: 0,
            dmrsl: 0,
            wzsl: 0,
            kind: 1,
            retry_delays: [0; 3],
            sqes: 0x66,
            cqes: 0x44,
            host_memory: (0, 0, 0, 0),
            nn: 256,
            vanish_at: None,
            pin: false,
            namespaces: vec![Namespace::new(1, 9, 4096)],
            active: None,
        }
    }
}
