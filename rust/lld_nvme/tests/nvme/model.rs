// SPDX-License-Identifier: GPL-2.0
//! A model NVMe controller: registers, queues, phases, namespaces, all of it in the test's hands.

pub mod aborts;
pub mod admin;
pub mod borrowed;
pub mod config;
pub mod data;
pub mod events;
pub mod identify;
pub mod io;
pub mod queues;
pub mod registers;
pub mod reservations;

pub use config::{Config, Frail, Namespace};

use aborts::Stuck;
use borrowed::Borrowed;
use events::Reporter;
use hal::mock::MockPlatform;
use queues::{Completion, Cq, Sq};
use reservations::Reservations;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use testkit::Bench;

/// Rewrites what is about to be posted on a queue: hostility.
pub type Liar = Box<dyn FnMut(u16, Completion) -> Vec<Completion> + Send>;

/// Everything behind the registers.
pub struct State {
    bench: Bench,
    pub config: Config,
    /// Register writes to doorbells so far.
    pub doorbells: u64,
    pub cc: u32,
    /// When CC.EN was cleared last.
    pub cleared_at: Option<u64>,
    /// QPRIO of the I/O submission queues, as they were made.
    pub priorities: Vec<u8>,
    /// When CSTS.RDY becomes what CC.EN says.
    pub ready_at: u64,
    pub ready: bool,
    pub fatal: bool,
    pub shut_down: bool,
    /// Its memory space is off: its registers read as zero, and it goes on.
    pub out_of_reach: bool,
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
    /// What the host makes use of, as it said last.
    pub host_behavior: Option<Vec<u8>>,
    /// Admin commands as they came: opcode and dword 10.
    pub admin_log: Vec<(u8, u32)>,
    /// What it reports by itself.
    pub reporter: Reporter,
    /// CSTS.PP is set until then.
    pub paused_until: u64,
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
    /// The memory that it has borrowed.
    pub borrowed: Borrowed,
    /// Who has reserved the namespace.
    pub reservations: Reservations,
    /// What it does not finish.
    pub stuck: Stuck,
    pub liar: Option<Liar>,
    pub admin_liar: Option<Liar>,
}

/// A handle of the model.
pub type Model = testkit::Model<State>;

impl State {
    pub fn new(platform: &MockPlatform, config: Config) -> Self {
        Self {
            bench: Bench::new(platform, config.bar, config.vanish_at),
            config,
            doorbells: 0,
            cc: 0,
            cleared_at: None,
            priorities: Vec::new(),
            ready_at: 0,
            ready: false,
            fatal: false,
            shut_down: false,
            out_of_reach: false,
            aqa: 0,
            asq: 0,
            acq: 0,
            masked: 0,
            messages: BTreeMap::new(),
            sqs: BTreeMap::new(),
            cqs: BTreeMap::new(),
            shadow: None,
            host_behavior: None,
            admin_log: Vec::new(),
            reporter: Reporter::default(),
            paused_until: 0,
            refuse: None,
            ignore: None,
            io_log: Vec::new(),
            pieces: Vec::new(),
            io_status: Vec::new(),
            borrowed: Borrowed::default(),
            reservations: Reservations::default(),
            stuck: Stuck::default(),
            liar: None,
            admin_liar: None,
        }
    }

    pub fn page(&self) -> u64 {
        4096 << ((self.cc >> 7) & 0xf)
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
