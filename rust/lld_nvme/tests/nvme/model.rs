// SPDX-License-Identifier: GPL-2.0
//! A model NVMe controller: registers, queues, phases, namespaces, all of it in the test's hands.
//!
//! It reaches memory by bus address only, as hardware does, and it is strict: whatever the driver does that the specification does not allow is
//! a complaint, and [`Model::check`] fails the test with it.

pub mod admin;
pub mod config;
pub mod data;
pub mod identify;
pub mod io;
pub mod queues;
pub mod registers;

pub use config::{Config, Namespace};
pub use registers::Registers;

use hal::mock::MockPlatform;
use queues::{Completion, Cq, Sq};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Rewrites what is about to be posted on a queue: hostility.
pub type Liar = Box<dyn FnMut(u16, Completion) -> Vec<Completion> + Send>;

/// Everything behind the registers.
pub struct State {
    pub config: Config,
    pub platform: MockPlatform,
    /// Register accesses so far.
    pub accesses: u64,
    /// Register writes to doorbells so far.
    pub doorbells: u64,
    pub cc: u32,
    /// When CSTS.RDY becomes what CC.EN says.
    pub ready_at: u64,
    pub ready: bool,
    pub fatal: bool,
    pub shut_down: bool,
    pub aqa: u32,
    pub asq: u64,
    pub acq: u64,
    /// INTMS/INTMC.
    pub masked: u32,
    /// Message interrupts sent, by vector.
    pub messages: BTreeMap<u16, u64>,
    pub sqs: BTreeMap<u16, Sq>,
    pub cqs: BTreeMap<u16, Cq>,
    /// Bus addresses of shadow doorbells and EventIdx.
    pub shadow: Option<(u64, u64)>,
    /// I/O commands are fetched but not completed until [`Model::run`].
    pub hold: bool,
    /// A doorbell only wakes the device, which works in a thread of the test's: [`Model::serve`].
    pub detached: bool,
    /// It was woken.
    pub woken: bool,
    /// Admin commands as they came: opcode and dword 10.
    pub admin_log: Vec<(u8, u32)>,
    /// The n-th admin command (from 0) is answered with this status instead of being carried out.
    pub refuse: Option<(usize, u16)>,
    /// The n-th admin command (from 0) is never answered.
    pub ignore: Option<usize>,
    /// I/O commands as they came.
    pub io_log: Vec<[u64; 8]>,
    /// Data pointers of the last read or write, walked.
    pub pieces: Vec<(u64, u32)>,
    /// Status with which the next I/O commands are answered.
    pub io_status: Vec<u16>,
    pub liar: Option<Liar>,
    pub admin_liar: Option<Liar>,
    pub complaints: Vec<String>,
}

impl State {
    pub fn complain(&mut self, what: impl Into<String>) {
        self.complaints.push(what.into());
    }

    pub fn gone(&self) -> bool {
        self.config.vanish_at.is_some_and(|n| self.accesses > n)
    }

    pub fn page(&self) -> u64 {
        4096 << ((self.cc >> 7) & 0xf)
    }
}

/// A handle of the model; clones are the same.
#[derive(Clone)]
pub struct Model(Arc<Mutex<State>>);

impl Model {
    pub fn new(platform: &MockPlatform, config: Config) -> Self {
        Self(Arc::new(Mutex::new(State {
            config,
            platform: platform.clone(),
            accesses: 0,
            doorbells: 0,
            cc: 0,
            ready_at: 0,
            ready: false,
            fatal: false,
            shut_down: false,
            aqa: 0,
            asq: 0,
            acq: 0,
            masked: 0,
            messages: BTreeMap::new(),
            sqs: BTreeMap::new(),
            cqs: BTreeMap::new(),
            shadow: None,
            hold: false,
            detached: false,
            woken: false,
            admin_log: Vec::new(),
            refuse: None,
            ignore: None,
            io_log: Vec::new(),
            pieces: Vec::new(),
            io_status: Vec::new(),
            liar: None,
            admin_liar: None,
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

    /// Carries on with what was held back, and looks at shadow doorbells.
    pub fn run(&self) {
        let mut state = self.state();
        let hold = std::mem::replace(&mut state.hold, false);
        state.work();
        state.hold = hold;
    }

    /// What a detached device does when it is woken; it looks at nothing before. Returns whether it was.
    pub fn serve(&self) -> bool {
        let mut state = self.state();
        let woken = std::mem::take(&mut state.woken);
        if woken {
            state.work();
        }
        woken
    }

    /// Whether the pin is up.
    pub fn pin(&self) -> bool {
        let state = self.state();
        let pending = |cq: &Cq| cq.interrupts && cq.head != cq.tail;
        state.masked & 1 == 0 && state.cqs.values().any(pending)
    }

    /// No rule was broken, and no access went astray.
    #[track_caller]
    pub fn check(&self) {
        let state = self.state();
        assert_eq!(state.complaints, Vec::<String>::new());
        assert_eq!(state.platform.bus().faults(), 0, "accesses to no memory");
    }
}
