// SPDX-License-Identifier: GPL-2.0
//! How long the device takes for a command.

/// How long a channel is busy with one command, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// Always the same.
    Fixed(u64),
    /// Anything from the first to the second, each as likely.
    Between(u64, u64),
    /// The first for most commands, the second for one in `one_in` of them: a disk that is busy
    /// with itself now and then.
    Spiky {
        /// Mostly.
        usual: u64,
        /// Now and then.
        rare: u64,
        /// How often.
        one_in: u32,
    },
}

impl Latency {
    /// The next command's.
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        match *self {
            Latency::Fixed(ns) => ns,
            Latency::Between(least, most) => {
                least.saturating_add(rng.below(most.saturating_sub(least).saturating_add(1)))
            }
            Latency::Spiky {
                usual,
                rare,
                one_in,
            } => match rng.below(u64::from(one_in.max(1))) {
                0 => rare,
                _ => usual,
            },
        }
    }
}

/// A small generator of numbers that look random and are the same for the same seed (xorshift64*).
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        // It must not be 0, and small seeds must not look alike.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Less than `bound`; 0 for a bound of 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next().checked_rem(bound).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn same_seed_same_numbers() {
        let rolls = |seed| {
            let mut rng = Rng::new(seed);
            (0..100).map(|_| rng.next()).collect::<Vec<_>>()
        };
        assert_eq!(rolls(7), rolls(7));
        assert_ne!(rolls(7), rolls(8));
        assert_ne!(rolls(0), rolls(1));
    }

    #[test]
    fn draws_stay_in_their_range() {
        let mut rng = Rng::new(1);
        assert_eq!(Latency::Fixed(0).draw(&mut rng), 0);
        assert_eq!(Latency::Between(5, 5).draw(&mut rng), 5);
        assert_eq!(Latency::Between(u64::MAX, 0).draw(&mut rng), u64::MAX);
        for _ in 0..1000 {
            assert!((10..=20).contains(&Latency::Between(10, 20).draw(&mut rng)));
        }
        let spiky = Latency::Spiky {
            usual: 1,
            rare: 1000,
            one_in: 10,
        };
        let rare = (0..10_000).filter(|_| spiky.draw(&mut rng) == 1000).count();
        assert!((700..1300).contains(&rare), "{rare}");
    }
}
