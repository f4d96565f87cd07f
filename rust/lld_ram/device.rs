// SPDX-License-Identifier: GPL-2.0
//! What all queues of the device share, and what it is made of.

use crate::blocks::Blocks;
use crate::link::Link;
use crate::Latency;
use cell::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use hal::{Error, Segment};

/// The most queues that a device has.
pub const MAX_QUEUES: u16 = 64;
/// The most data segments of one command, and the most ranges of a discard.
pub const MAX_SEGMENTS: u16 = 64;

/// A clock, a timer and memory. Clones are handles of the same.
///
/// Everything here may be called from any context, and neither sleeps nor waits.
pub trait Backing: Clone + Send + Sync + 'static {
    /// What the device's queues share.
    fn device(&self) -> &Device;
    /// A monotonic clock, in nanoseconds.
    fn now_ns(&self) -> u64;
    /// Interrupt for `queue` at `at_ns`, or as soon as may be after it; of several calls the last
    /// counts.
    fn arm(&self, queue: u16, at_ns: u64);
    /// Copies from byte `at` of the medium to `to`. The range was checked against
    /// [`Config::bytes`].
    fn read(&self, at: u64, to: Segment);
    /// Copies `from` to byte `at` of the medium, likewise.
    fn write(&self, at: u64, from: Segment);
    /// Fills `len` bytes from byte `at` of the medium with zeroes, likewise.
    fn zero(&self, at: u64, len: u64);
}

/// What it makes of holes in a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holes {
    /// None may be there.
    No,
    /// They don't go over the link.
    Left,
    /// As [`Holes::Left`], for tests: but what is behind one is read where the hole is.
    Shifted,
}

/// How the device takes commands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// At any time, as NVMe does: see [`Config::channels`], [`Config::latency`] and
    /// [`Config::link_mb_s`].
    Queue,
    /// Blocks, one at a time, of which these are the times: channels and latencies don't count, and
    /// there is no link beside the one of these.
    Blocks(Blocks),
}

/// What the device is like.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Queues that it offers, 1 to [`MAX_QUEUES`].
    pub queues: u16,
    /// Tags of each queue, 1 to 4,096.
    pub tags: u16,
    /// How each queue takes its commands in, and how long it is busy with them.
    pub interface: Interface,
    /// Channels of each queue, 1 to 4,096.
    pub channels: u16,
    /// How long a channel is busy with one command.
    pub latency: Latency,
    /// And with one that changes the medium, if that is another time: a write, a discard, zeroes.
    pub write_latency: Option<Latency>,
    /// What all channels of all queues share for the data, in 1,000,000 bytes a second, when the
    /// medium is done with a command; 0: data takes no time.
    pub link_mb_s: u32,
    /// Reads may have holes.
    pub holes: Holes,
    /// For what is drawn at random.
    pub seed: u64,
    /// The medium's size in bytes, a multiple of the block, at least one block.
    pub bytes: u64,
    /// Bytes of a block, as a power of two: 9 to 12.
    pub block_shift: u8,
}

impl Config {
    /// Whether such a device can be.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a field is out of its range.
    pub fn check(&self) -> Result<(), Error> {
        let block =
            (1u64 << 9..=1 << 12).contains(&1u64.checked_shl(self.block_shift.into()).unwrap_or(0));
        if let Interface::Blocks(blocks) = &self.interface {
            blocks.check()?;
            if self.link_mb_s != 0 {
                return Err(Error::Invalid);
            }
        }
        let good = (1..=MAX_QUEUES).contains(&self.queues)
            && (1..=4096).contains(&self.tags)
            && (1..=4096).contains(&self.channels)
            && block
            && self.bytes != 0
            && self.bytes.trailing_zeros() >= u32::from(self.block_shift);
        good.then_some(()).ok_or(Error::Invalid)
    }
}

/// One way to misbehave, for one in so many commands; 0: never.
#[derive(Debug)]
pub struct Fault {
    one_in: AtomicU32,
    count: AtomicU32,
}

impl Fault {
    const fn never() -> Self {
        Self {
            one_in: AtomicU32::new(0),
            count: AtomicU32::new(0),
        }
    }

    /// From now on for one in `n` commands.
    pub fn one_in(&self, n: u32) {
        self.count.store(0, Ordering::Relaxed);
        self.one_in.store(n, Ordering::Relaxed);
    }

    /// Whether it is this command's turn.
    #[inline]
    pub(crate) fn fires(&self) -> bool {
        let one_in = self.one_in.load(Ordering::Relaxed);
        one_in != 0 && self.counts(one_in)
    }

    #[cold]
    fn counts(&self, one_in: u32) -> bool {
        let n = self.count.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        n.checked_rem(one_in) == Some(0)
    }
}

/// How the device misbehaves. All off to begin with; may be changed at any time.
#[derive(Debug)]
pub struct Faults {
    /// Takes so long that others overtake it.
    pub reorder: Fault,
    /// Takes [`Faults::delay_ns`] longer.
    pub delay: Fault,
    /// How much longer.
    pub delay_ns: AtomicU64,
    /// Reports it failed, though it may be tried again.
    pub fail: Fault,
    /// Never reports it.
    pub drop: Fault,
    /// Does not finish it until it is told to abort it.
    pub hang: Fault,
    /// Reports it twice.
    pub duplicate: Fault,
    /// Before it reports it, reports one that was not issued.
    pub lie: Fault,
}

/// What all queues share.
pub struct Device {
    pub(crate) config: Config,
    /// How it misbehaves.
    pub faults: Faults,
    pub(crate) link: Link,
    running: AtomicBool,
    gone: AtomicBool,
    /// By queue: for when the timer is set, in nanoseconds; all ones: it is not.
    armed: [AtomicU64; MAX_QUEUES as usize],
}

impl Device {
    /// A device that does not run yet.
    ///
    /// # Errors
    /// As [`Config::check`].
    pub fn new(config: Config) -> Result<Self, Error> {
        config.check()?;
        Ok(Self {
            config,
            faults: Faults {
                reorder: Fault::never(),
                delay: Fault::never(),
                delay_ns: AtomicU64::new(0),
                fail: Fault::never(),
                drop: Fault::never(),
                hang: Fault::never(),
                duplicate: Fault::never(),
                lie: Fault::never(),
            },
            link: Link::new(config.link_mb_s),
            running: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            armed: [const { AtomicU64::new(u64::MAX) }; MAX_QUEUES as usize],
        })
    }

    /// Pulls it out, or puts it back in.
    pub fn set_gone(&self, gone: bool) {
        self.gone.store(gone, Ordering::Release);
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn runs(&self) -> bool {
        self.running.load(Ordering::Acquire) && !self.is_gone()
    }

    pub(crate) fn run(&self, running: bool) {
        self.running.store(running, Ordering::Release);
    }

    /// The timer of `queue` is needed at `at_ns`: whether it has to be set for that. AcqRel: who
    /// finds it unset sees, or is seen by, the drain that the last timer led to.
    #[inline]
    pub(crate) fn needs_timer(&self, queue: u16, at_ns: u64) -> bool {
        let at_ns = at_ns.max(MASKED + 1);
        (self.armed.get(usize::from(queue)))
            .is_some_and(|armed| armed.fetch_min(at_ns, Ordering::AcqRel) > at_ns)
    }

    /// The timer of `queue` fired, and is not set any more.
    #[inline]
    pub(crate) fn fired(&self, queue: u16) {
        if let Some(armed) = self.armed.get(usize::from(queue)) {
            let unset = |at| (at != MASKED).then_some(u64::MAX);
            let _ = armed.fetch_update(Ordering::AcqRel, Ordering::Relaxed, unset);
        }
    }

    /// The timer of `queue` is not set for anything from now on, or is again.
    pub(crate) fn mask(&self, queue: u16, masked: bool) {
        if let Some(armed) = self.armed.get(usize::from(queue)) {
            armed.store(if masked { MASKED } else { u64::MAX }, Ordering::SeqCst);
        }
    }
}

/// As the time for which a timer is set: earlier than any at which it could be needed, so that it
/// is never set.
const MASKED: u64 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config {
            queues: 1,
            tags: 1,
            interface: Interface::Queue,
            channels: 1,
            latency: Latency::Fixed(0),
            write_latency: None,
            link_mb_s: 0,
            holes: Holes::No,
            seed: 0,
            bytes: 512,
            block_shift: 9,
        }
    }

    #[test]
    fn bounds() {
        assert!(config().check().is_ok());
        let with = |change: &dyn Fn(&mut Config)| {
            let mut config = config();
            change(&mut config);
            config.check().is_ok()
        };
        assert!(!with(&|c| c.queues = 0));
        assert!(with(&|c| c.queues = MAX_QUEUES));
        assert!(!with(&|c| c.queues = MAX_QUEUES + 1));
        assert!(!with(&|c| c.tags = 0));
        assert!(with(&|c| c.tags = 4096));
        assert!(!with(&|c| c.tags = 4097));
        assert!(!with(&|c| c.channels = 0));
        assert!(!with(&|c| c.bytes = 0));
        assert!(!with(&|c| c.bytes = 513));
        assert!(!with(&|c| c.block_shift = 8));
        assert!(!with(&|c| c.block_shift = 12));
        assert!(!with(&|c| c.block_shift = 255));
        assert!(with(&|c| (c.block_shift, c.bytes) = (12, 4096)));
        assert!(with(&|c| c.interface = Interface::Blocks(Blocks::CHOSEN)));
        let none = Blocks {
            most: 0,
            ..Blocks::CHOSEN
        };
        assert!(!with(&|c| c.interface = Interface::Blocks(none)));
        assert!(!with(
            &|c| (c.interface, c.link_mb_s) = (Interface::Blocks(Blocks::CHOSEN), 1)
        ));
    }

    #[test]
    fn faults_strike_one_in_so_many() {
        let fault = Fault::never();
        assert!(!(0..100).any(|_| fault.fires()));
        fault.one_in(3);
        assert_eq!((0..9).filter(|_| fault.fires()).count(), 3);
        fault.one_in(1);
        assert!((0..9).all(|_| fault.fires()));
    }

    #[test]
    fn the_earliest_bell_counts() {
        let device = Device::new(config()).unwrap();
        assert!(device.needs_timer(0, 100));
        assert!(!device.needs_timer(0, 100));
        assert!(!device.needs_timer(0, 200));
        assert!(device.needs_timer(0, 50));
        device.fired(0);
        assert!(device.needs_timer(0, 200));
        assert!(!device.needs_timer(MAX_QUEUES, 0));
    }

    #[test]
    fn a_silent_bell_is_not_set() {
        let device = Device::new(config()).unwrap();
        device.mask(0, true);
        assert!(!device.needs_timer(0, 100));
        device.fired(0);
        assert!(!device.needs_timer(0, 50));
        device.mask(0, false);
        assert!(device.needs_timer(0, 200));
    }
}
