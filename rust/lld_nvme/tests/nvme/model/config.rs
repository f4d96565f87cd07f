// SPDX-License-Identifier: GPL-2.0
//! What kind of controller the model is.

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
    pub blocks: u64,
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
            blocks,
            data: vec![0; (blocks << lbads) as usize],
        }
    }
}

/// The controller's properties.
#[derive(Clone, Debug)]
pub struct Config {
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
    /// Queue pairs that are granted.
    pub queues: u16,
    pub mdts: u8,
    pub sgls: u32,
    pub doorbell_buffer: bool,
    pub oncs: u16,
    pub vwc: u8,
    pub dmrsl: u32,
    pub wzsl: u8,
    pub kind: u8,
    /// CRDT1 to CRDT3.
    pub retry_delays: [u16; 3],
    pub sqes: u8,
    pub cqes: u8,
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
            queues: 4,
            mdts: 7,
            sgls: 0,
            doorbell_buffer: false,
            oncs: 0x0c,
            vwc: 1,
            dmrsl: 0,
            wzsl: 0,
            kind: 1,
            retry_delays: [0; 3],
            sqes: 0x66,
            cqes: 0x44,
            nn: 256,
            vanish_at: None,
            pin: false,
            namespaces: vec![Namespace::new(1, 9, 4096)],
            active: None,
        }
    }
}
