// SPDX-License-Identifier: GPL-2.0
//! What is to go wrong with one device, and the switch of each fault: a number with a bound, or one
//! of a few words.

use cell::sync::{AtomicU32, Ordering};
use core::fmt;
use hal::{CmdError, Error, Failure, RetryHint};

/// Most of what is counted, and of microseconds that a completion is late.
const MOST: u32 = 1_000_000_000;

/// What [`Faults::fail_as`] may be, and what each is.
const KINDS: &[&str] = &["medium", "link", "aborted", "busy"];

/// The faults of one device, each with its switch.
pub struct Faults {
    /// How many of the next completions are lost: their commands stay the device's until a reset.
    pub drop: Knob,
    /// By how many microseconds completions are reported late.
    pub delay_us: Knob,
    /// How many of the next completions come twice: the second answers nothing, and counts as a
    /// violation.
    pub duplicate: Knob,
    /// Which completion, counted from now, says that its command has failed; 0: none.
    pub fail_nth: Knob,
    /// Why that one has failed: `medium`, which is final; `link`, `aborted`, `busy`, which may be
    /// retried.
    pub fail_as: Knob,
    /// The device sees no doorbell any more.
    pub deaf: Knob,
    /// It reports a fatal status, and sees no command, until it is reset.
    pub cfs: Knob,
    /// Its registers read as all ones, and writes go nowhere, as if it were pulled.
    pub all_ones: Knob,
    /// Commands that were issued to the ports of an HBA and that they have not seen.
    pub(crate) unheard: Unheard,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            drop: Knob::number(MOST),
            delay_us: Knob::number(MOST),
            duplicate: Knob::number(MOST),
            fail_nth: Knob::number(MOST),
            fail_as: Knob::word(KINDS),
            deaf: Knob::number(1),
            cfs: Knob::number(1),
            all_ones: Knob::number(1),
            unheard: Unheard::default(),
        }
    }
}

impl Faults {
    /// Whether the device sees no doorbell.
    #[inline]
    pub(crate) fn is_deaf(&self) -> bool {
        self.deaf.is_on() || self.cfs.is_on()
    }

    /// How a command fails that is made to.
    pub(crate) fn failure(&self) -> Failure {
        match self.fail_as.get() {
            0 => CmdError::Medium.permanent(),
            1 => CmdError::Path.retryable(),
            2 => CmdError::Aborted.retryable(),
            _ => Failure {
                error: CmdError::NotReady,
                retry: RetryHint::After(1),
            },
        }
    }
}

/// Most ports of an HBA.
const PORTS_MAX: usize = 32;

/// Commands issued to each port of an HBA that it has not seen: see [`crate::ahci`].
pub(crate) struct Unheard(pub(crate) [PortUnheard; PORTS_MAX]);

/// The bits of its registers `PxSACT` and `PxCI` for them.
#[derive(Default)]
pub(crate) struct PortUnheard {
    pub(crate) sact: AtomicU32,
    pub(crate) ci: AtomicU32,
}

impl Default for Unheard {
    fn default() -> Self {
        Self(core::array::from_fn(|_| PortUnheard::default()))
    }
}

/// A switch that any context may read and turn. Its value orders nothing else.
pub struct Knob {
    value: AtomicU32,
    most: u32,
    /// What the values are called, from 0 on; empty: they are numbers.
    words: &'static [&'static str],
}

impl Knob {
    /// One of `0..=most`, at 0.
    fn number(most: u32) -> Self {
        Self {
            value: AtomicU32::new(0),
            most,
            words: &[],
        }
    }

    /// One of `words`, at the first.
    fn word(words: &'static [&'static str]) -> Self {
        Self {
            value: AtomicU32::new(0),
            // CAST: a few.
            most: (words.len() as u32).saturating_sub(1),
            words,
        }
    }

    /// What an operator has written. [`Error::Invalid`]: it is nothing that this can be.
    pub fn set(&self, text: &str) -> Result<(), Error> {
        let text = text.trim();
        let value = match self.words {
            [] => text.parse().ok(),
            // CAST: a few.
            words => (words.iter().position(|&word| word == text)).map(|at| at as u32),
        };
        let value = value.filter(|&value| value <= self.most);
        self.put(value.ok_or(Error::Invalid)?);
        Ok(())
    }

    /// Its value; of a word, which one.
    #[inline]
    pub fn get(&self) -> u32 {
        self.value.load(Ordering::Relaxed)
    }

    /// Whether it is on.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.get() != 0
    }

    pub(crate) fn put(&self, value: u32) {
        self.value.store(value, Ordering::Relaxed);
    }

    /// Counts one off. What there was before; 0: nothing.
    #[inline]
    pub(crate) fn count_off(&self) -> u32 {
        if !self.is_on() {
            return 0;
        }
        let one_less = |value: u32| value.checked_sub(1);
        (self.value)
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .unwrap_or(0)
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.get();
        match self.words.get(value as usize) {
            Some(word) => f.write_str(word),
            None => write!(f, "{value}"),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn numbers_are_taken_up_to_the_bound() {
        let knob = Knob::number(10);
        for (text, value) in [("0", 0), ("1", 1), (" 10\n", 10)] {
            assert_eq!(knob.set(text), Ok(()));
            assert_eq!((knob.get(), knob.to_string()), (value, value.to_string()));
        }
        for text in ["11", "-1", "", "x", "4294967296", "1 1", "0x1"] {
            assert_eq!(knob.set(text), Err(Error::Invalid), "{text}");
        }
        assert_eq!(knob.get(), 10, "as it was");
    }

    #[test]
    fn words_are_taken_whole() {
        let knob = Knob::word(&["one", "other"]);
        assert_eq!(knob.to_string(), "one");
        assert_eq!(knob.set("other\n"), Ok(()));
        assert_eq!((knob.get(), knob.to_string()), (1, "other".to_string()));
        for text in ["oth", "0", "others", ""] {
            assert_eq!(knob.set(text), Err(Error::Invalid), "{text}");
        }
    }

    #[test]
    fn what_is_counted_off_ends_at_nothing() {
        let knob = Knob::number(10);
        assert_eq!(knob.count_off(), 0);
        knob.put(2);
        assert_eq!(
            [knob.count_off(), knob.count_off(), knob.count_off()],
            [2, 1, 0]
        );
        assert!(!knob.is_on());
    }
}
