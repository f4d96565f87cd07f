// SPDX-License-Identifier: GPL-2.0
//! A model HBA with drives: registers, command lists, FISes, link, all of it in the test's hands.
//!
//! It reaches memory by bus address only, as hardware does, and it is strict: whatever the driver does that the specification does not allow is
//! a complaint, and [`Model::check`] fails the test with it.

pub mod ata;
pub mod config;
pub mod engine;
pub mod identify;
pub mod link;
pub mod port;
pub mod registers;

pub use config::{Config, Drive};
pub use port::Port;
pub use registers::Registers;

use hal::mock::MockPlatform;
use hal::Platform;
use std::sync::{Arc, Mutex, MutexGuard};

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
    pub config: Config,
    pub platform: MockPlatform,
    pub ports: Vec<Port>,
    pub ghc: u32,
    pub pi: u32,
    /// When the reset under way is over.
    pub reset_at: Option<u64>,
    /// `IS` as it was left.
    pub latched: u32,
    /// The firmware's end of the hand-off.
    pub bohc: u32,
    pub asked_at: Option<u64>,
    /// Register accesses so far, and of those the reads.
    pub accesses: u64,
    pub reads: u64,
    /// Commands are accepted but not carried out until [`Model::run`].
    pub hold: bool,
    /// Or until then.
    pub release_at: Option<u64>,
    /// A register only wakes the device, which works in a thread of the test's: [`Model::serve`].
    pub detached: bool,
    pub woken: bool,
    /// Commands as they were carried out, IDENTIFY and the like included.
    pub log: Vec<Taken>,
    pub complaints: Vec<String>,
}

impl State {
    pub fn complain(&mut self, what: impl Into<String>) {
        self.complaints.push(what.into());
    }

    pub fn gone(&self) -> bool {
        self.config.vanish_at.is_some_and(|n| self.accesses > n)
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

/// A handle of the model; clones are the same.
#[derive(Clone)]
pub struct Model(Arc<Mutex<State>>);

impl Model {
    pub fn new(platform: &MockPlatform, config: Config) -> Self {
        let ports = config.drives.iter().cloned().map(Port::new).collect();
        Self(Arc::new(Mutex::new(State {
            pi: config.ports,
            bohc: u32::from(config.bios.is_some()),
            config,
            platform: platform.clone(),
            ports,
            ghc: 0,
            reset_at: None,
            latched: 0,
            asked_at: None,
            accesses: 0,
            reads: 0,
            hold: false,
            release_at: None,
            detached: false,
            woken: false,
            log: Vec::new(),
            complaints: Vec::new(),
        })))
    }

    /// What is behind the registers; a test that failed elsewhere is no reason to hide it.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// The register window.
    pub fn registers(&self) -> Registers {
        Registers::new(self.clone())
    }

    /// Carries on with what was held back.
    pub fn run(&self) {
        let mut state = self.state();
        let hold = std::mem::replace(&mut state.hold, false);
        state.work();
        state.hold = hold;
    }

    /// What a detached device does when it is woken. Returns whether it was.
    pub fn serve(&self) -> bool {
        let mut state = self.state();
        let woken = std::mem::take(&mut state.woken);
        if woken {
            state.work();
        }
        woken
    }

    /// Whether the HBA interrupts.
    pub fn line(&self) -> bool {
        let mut state = self.state();
        state.ghc & 2 != 0 && state.pending() != 0
    }

    /// No rule was broken, and no access went astray.
    #[track_caller]
    pub fn check(&self) {
        let state = self.state();
        assert_eq!(state.complaints, Vec::<String>::new());
        assert_eq!(state.platform.bus().faults(), 0, "accesses to no memory");
    }
}
