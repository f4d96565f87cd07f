// SPDX-License-Identifier: GPL-2.0
//! A model HBA with drives: registers, command lists, FISes, link, all of it in the test's hands.

pub mod ata;
pub mod config;
pub mod engine;
pub mod identify;
pub mod link;
pub mod port;
pub mod registers;

pub use config::{Config, Drive, KNOWN_GOOD};
pub use port::Port;

use hal::mock::MockPlatform;
use hal::Platform;
use std::ops::{Deref, DerefMut};
use testkit::Bench;

/// A command as a drive took it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub port: usize,
    pub slot: u8,
    pub command: u8,
    pub features: u16,
    pub count: u16,
    pub lba: u64,
    pub device: u8,
    pub auxiliary: u32,
    /// PRDT entries: address and length.
    pub pieces: Vec<(u64, u32)>,
}

/// Everything behind the registers.
pub struct State {
    bench: Bench,
    pub config: Config,
    pub ports: Vec<Port>,
    /// Its memory space is off: its registers read as zero, and it goes on.
    pub out_of_reach: bool,
    pub ghc: u32,
    pub pi: u32,
    /// When the reset under way is over.
    pub reset_at: Option<u64>,
    /// `IS` as it was left.
    pub latched: u32,
    /// The firmware's end of the hand-off.
    pub bohc: u32,
    pub asked_at: Option<u64>,
    /// When what is held is carried out all the same.
    pub release_at: Option<u64>,
    /// Commands as they were carried out, IDENTIFY and the like included.
    pub log: Vec<Taken>,
}

/// A handle of the model.
pub type Model = testkit::Model<State>;

impl State {
    pub fn new(platform: &MockPlatform, config: Config) -> Self {
        Self {
            bench: Bench::new(platform, config.bar, config.vanish_at),
            pi: config.ports,
            bohc: u32::from(config.bios.is_some()),
            ports: config.drives.iter().cloned().map(Port::new).collect(),
            config,
            out_of_reach: false,
            ghc: 0,
            reset_at: None,
            latched: 0,
            asked_at: None,
            release_at: None,
            log: Vec::new(),
        }
    }

    pub fn now(&self) -> u64 {
        self.platform.now_us()
    }

    /// `IS`: set as long as a port's own status is, and until it is acknowledged.
    pub fn pending(&mut self) -> u32 {
        let ports = self.ports.iter().enumerate();
        self.latched = ports.fold(self.latched, |sum, (at, port)| {
            sum | (u32::from(port.status() & port.ie != 0) << at)
        });
        self.latched
    }

    /// Commands of the data path, as they were carried out.
    pub fn data_log(&self) -> Vec<Taken> {
        let own = [0xec, 0x2f, 0xef];
        let log = self.log.iter();
        log.filter(|taken| !own.contains(&taken.command))
            .cloned()
            .collect()
    }
}

impl Deref for State {
    type Target = Bench;

    fn deref(&self) -> &Bench {
        &self.bench
    }
}

impl DerefMut for State {
    fn deref_mut(&mut self) -> &mut Bench {
        &mut self.bench
    }
}
