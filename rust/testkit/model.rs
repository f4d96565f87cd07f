// SPDX-License-Identifier: GPL-2.0
//! A device behind registers.
//!
//! It reaches memory by bus address only, as hardware does, and it is strict: whatever the driver
//! does that the specification does not allow is a complaint, and [`Model::check`] fails the test
//! with it.

use crate::lies::Lies;
use hal::mock::MockPlatform;
use hal::Mmio;
use std::ops::DerefMut;
use std::sync::{Arc, Mutex, MutexGuard};

/// What every model has, whatever it is a model of.
pub struct Bench {
    /// The machine that the device is part of.
    pub platform: MockPlatform,
    /// Bytes of registers.
    pub window: usize,
    /// Register accesses so far.
    pub accesses: u64,
    /// Those of them that were reads.
    pub reads: u64,
    /// The register access from which on the device is gone.
    pub vanish_at: Option<u64>,
    /// Commands are taken but not carried out until [`Model::run`].
    pub hold: bool,
    /// A register only wakes the device, which works in a thread of the test's: [`Model::serve`].
    pub detached: bool,
    /// It was woken.
    pub woken: bool,
    /// What it says instead of the truth.
    pub lies: Lies,
    /// Rules that were broken.
    pub complaints: Vec<String>,
}

impl Bench {
    /// A device of `platform` with `window` bytes of registers.
    pub fn new(platform: &MockPlatform, window: usize, vanish_at: Option<u64>) -> Self {
        Self {
            platform: platform.clone(),
            window,
            accesses: 0,
            reads: 0,
            vanish_at,
            hold: false,
            detached: false,
            woken: false,
            lies: Lies::default(),
            complaints: Vec::new(),
        }
    }

    /// A rule was broken.
    pub fn complain(&mut self, what: impl Into<String>) {
        self.complaints.push(what.into());
    }

    /// Whether the device is no more.
    pub fn gone(&self) -> bool {
        self.vanish_at.is_some_and(|n| self.accesses > n)
    }
}

/// What makes a model one of this device: registers, and what they set going.
pub trait Device: DerefMut<Target = Bench> + Send + 'static {
    /// The driver reads the register at `offset`, which is in the window.
    fn read(&mut self, offset: usize) -> u32;
    /// It writes it.
    fn write(&mut self, offset: usize, value: u32);
    /// Does everything that can be done now.
    fn work(&mut self);
    /// Whether the interrupt line is up.
    fn line(&mut self) -> bool;

    /// Works, or if it is detached is woken to do so.
    fn wake(&mut self) {
        match self.detached {
            true => self.woken = true,
            false => self.work(),
        }
    }
}

/// A handle of the model, to its driver the register window; clones are the same.
pub struct Model<D>(Arc<Mutex<D>>);

impl<D> Clone for Model<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<D: Device> Model<D> {
    /// A model of `device`.
    pub fn new(device: D) -> Self {
        Self(Arc::new(Mutex::new(device)))
    }

    /// What is behind the registers; a test that failed elsewhere is no reason to hide it.
    pub fn state(&self) -> MutexGuard<'_, D> {
        self.0.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// Carries on with what was held back, and looks at what no register tells.
    pub fn run(&self) {
        let mut state = self.state();
        let hold = std::mem::replace(&mut state.hold, false);
        state.work();
        state.hold = hold;
    }

    /// What a detached device does when it is woken; it looks at nothing before. Returns whether it
    /// was.
    pub fn serve(&self) -> bool {
        let mut state = self.state();
        let woken = std::mem::take(&mut state.woken);
        if woken {
            state.work();
        }
        woken
    }

    /// Whether the interrupt line is up.
    pub fn line(&self) -> bool {
        self.state().line()
    }

    /// From now on the device is gone.
    pub fn vanish(&self) {
        let mut state = self.state();
        state.vanish_at = Some(state.accesses);
    }

    /// No rule was broken, and no access went astray.
    #[track_caller]
    pub fn check(&self) {
        let state = self.state();
        assert_eq!(state.complaints, Vec::<String>::new());
        assert_eq!(state.platform.bus().faults(), 0, "accesses to no memory");
    }
}

impl<D: Device> Mmio for Model<D> {
    fn len(&self) -> usize {
        self.state().window
    }

    fn read32(&self, offset: usize) -> u32 {
        let mut state = self.state();
        state.accesses += 1;
        state.reads += 1;
        if state.gone() || offset >= state.window {
            return u32::MAX;
        }
        let truth = state.read(offset);
        state.lies.register(offset, truth)
    }

    fn write32(&self, offset: usize, value: u32) {
        let mut state = self.state();
        state.accesses += 1;
        if state.gone() {
            return;
        }
        if offset >= state.window {
            return state.complain(format!("write to {offset:#x}, past the window"));
        }
        state.write(offset, value);
    }
}
