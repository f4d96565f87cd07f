// SPDX-License-Identifier: GPL-2.0
//! Dice for tests.

/// Numbers that look random and are the same for the same seed (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound.max(1)
    }

    /// `mean`, give or take `most`, the less the likelier.
    pub fn about(&mut self, mean: u64, most: u64) -> u64 {
        mean - most + self.below(most + 1) + self.below(most + 1)
    }
}
