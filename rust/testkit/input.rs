// SPDX-License-Identifier: GPL-2.0
//! The bytes of an input, by which everything is decided; and inputs that were found, run once
//! more.

use std::sync::{Arc, Mutex};

/// An input that is read once, from its first byte; past its end there are zeroes. Clones read on
/// from the same place.
#[derive(Clone, Debug)]
pub struct Input(Arc<Mutex<std::vec::IntoIter<u8>>>);

impl Input {
    /// One of these bytes.
    pub fn new(bytes: &[u8]) -> Self {
        let bytes: Vec<u8> = bytes.into();
        Self(Arc::new(Mutex::new(bytes.into_iter())))
    }

    /// Whether there is no more.
    pub fn is_empty(&self) -> bool {
        self.0.lock().unwrap().len() == 0
    }

    /// The next byte.
    pub fn byte(&self) -> u8 {
        self.0.lock().unwrap().next().unwrap_or(0)
    }

    /// The next four, the least significant one first.
    pub fn word(&self) -> u32 {
        u32::from_le_bytes([0; 4].map(|_: u8| self.byte()))
    }

    /// A number below `end`, or 0 if that is 0. It takes one byte where that is enough.
    pub fn below(&self, end: u64) -> u64 {
        let number = match end {
            0..=0x100 => u64::from(self.byte()),
            _ => u64::from(self.word()),
        };
        number.checked_rem(end).unwrap_or(0)
    }

    /// One of `all`.
    pub fn pick<'a, T>(&self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len() as u64) as usize)
    }

    /// Yes or no.
    pub fn coin(&self) -> bool {
        self.byte() & 1 != 0
    }
}

/// Runs every input of `folder`; one that fails is named.
pub fn replay(folder: &str, run: impl Fn(&[u8])) {
    let mut inputs: Vec<_> = (std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "no inputs in {folder}");
    for path in inputs {
        println!("{}", path.display());
        run(&std::fs::read(path).unwrap());
    }
}
