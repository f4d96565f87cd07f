// SPDX-License-Identifier: GPL-2.0
//! What a device says instead of the truth.

use crate::input::Input;

/// Most lies that are kept up at once.
const MOST: usize = 8;

/// How a register, or the word at a place in a page of data, is changed.
#[derive(Clone, Copy, Debug)]
struct Lie {
    /// Register, or byte in the page.
    offset: usize,
    /// So often it is right before.
    after: u8,
    /// So often it is wrong; 255: from then on.
    times: u8,
    /// These bits of it
    mask: u32,
    /// are these.
    value: u32,
}

impl Lie {
    fn told_by(input: &Input, offset: usize) -> Self {
        let (after, times) = (input.byte() & 7, input.byte());
        let mask = match input.byte() {
            bit @ 0..=31 => 1 << bit,
            byte @ 32..=35 => 0xff << ((byte - 32) * 8),
            _ => u32::MAX,
        };
        let value = match input.byte() & 3 {
            0 => 0,
            1 => u32::MAX,
            _ => input.word(),
        };
        Self {
            offset,
            after,
            times,
            mask,
            value,
        }
    }

    /// What is said instead of `truth`; `None`: that was the last lie.
    fn apply(&mut self, truth: u32) -> Option<u32> {
        match (self.after, self.times) {
            (1.., _) => {
                self.after -= 1;
                return Some(truth);
            }
            (0, 0) => return None,
            (0, 255) => {}
            (0, _) => self.times -= 1,
        }
        Some(truth & !self.mask | self.value & self.mask)
    }
}

/// The lies of a device: of registers, and of what it tells in pages of data of itself. It tells
/// the truth until it is told to lie.
#[derive(Debug, Default)]
pub struct Lies {
    registers: Vec<Lie>,
    pages: Vec<Lie>,
    /// It has lied, or may have: nothing that it said is to be relied on.
    pub is_liar: bool,
}

impl Lies {
    /// From now on it lies about one of `registers`, as `input` says.
    pub fn about_register(&mut self, registers: &[usize], input: &Input) {
        if let Some(&offset) = input.pick(registers) {
            push(&mut self.registers, Lie::told_by(input, offset));
            self.is_liar = true;
        }
    }

    /// From now on it lies about a word of the pages that it tells of itself, as `input` says.
    pub fn about_pages(&mut self, input: &Input) {
        let offset = input.below(0x400) as usize * 4;
        push(&mut self.pages, Lie::told_by(input, offset));
        self.is_liar = true;
    }

    /// It tells the truth from now on.
    pub fn end(&mut self) {
        self.registers.clear();
        self.pages.clear();
    }

    /// What the register at `offset` is said to be.
    pub(crate) fn register(&mut self, offset: usize, truth: u32) -> u32 {
        let mut said = truth;
        self.registers.retain_mut(|lie| {
            if lie.offset != offset {
                return true;
            }
            let told = lie.apply(said);
            said = told.unwrap_or(said);
            told.is_some()
        });
        said
    }

    /// What is said instead of this page.
    pub fn page(&mut self, bytes: &mut [u8]) {
        self.pages.retain_mut(|lie| {
            let Some(place) = bytes.get_mut(lie.offset..lie.offset + 4) else {
                return true;
            };
            let truth = u32::from_le_bytes([place[0], place[1], place[2], place[3]]);
            let told = lie.apply(truth);
            place.copy_from_slice(&told.unwrap_or(truth).to_le_bytes());
            told.is_some()
        });
    }
}

fn push(lies: &mut Vec<Lie>, lie: Lie) {
    if lies.len() == MOST {
        lies.remove(0);
    }
    lies.push(lie);
}
