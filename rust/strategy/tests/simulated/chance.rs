// SPDX-License-Identifier: GPL-2.0
//! Times that vary.

use testkit::Dice;

/// `mean`, give or take `most`, the less the likelier.
pub fn about(dice: &mut Dice, mean: u64, most: u64) -> u64 {
    mean - most + dice.roll(most + 1) + dice.roll(most + 1)
}
