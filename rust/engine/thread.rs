// SPDX-License-Identifier: GPL-2.0
//! Which thread waits: the address of its record in the kernel, in as few bits as keep it exact.
//!
//! An address of x86-64 has 48 significant bits, or 57 where paging has five levels (Intel SDM
//! volume 1, section 3.3.7.1, "Canonical Addressing"); what is above repeats the highest of them. A
//! thread's record begins on a cache line, so the lowest 6 bits are 0. What is left is 51 bits.

/// A thread; two living ones are never equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread(u64);

impl Thread {
    /// The significant bits of an address.
    const ADDRESS_BITS: u32 = 57;
    /// Lowest bits of a record's address, which are 0: the smallest cache line's.
    const LINE_BITS: u32 = 6;
    /// Bits of a thread's number.
    pub(crate) const BITS: u32 = Self::ADDRESS_BITS - Self::LINE_BITS;

    /// The thread whose record is at `address`. `None`: that is not an address of which
    /// [`Self::address`] would give all bits back, so nobody could be woken by it.
    #[inline]
    pub fn at(address: u64) -> Option<Self> {
        let thread = Self::from_number((address >> Self::LINE_BITS) & ((1 << Self::BITS) - 1));
        (thread.0 != 0 && thread.address() == address).then_some(thread)
    }

    /// Where the thread's record is.
    #[inline]
    pub fn address(self) -> u64 {
        let top = self.0 << (u64::BITS - Self::BITS);
        // CAST: to and from a signed number, so that the shift repeats the highest bit.
        ((top as i64) >> (u64::BITS - Self::ADDRESS_BITS)) as u64
    }

    #[inline]
    pub(crate) fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// A number of [`Self::BITS`] bits; never 0 of a living thread.
    #[inline]
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Thread;

    #[test]
    fn an_address_comes_back_whole_with_four_and_with_five_levels_of_paging() {
        for address in [
            0xffff_8880_0123_4540,
            0xffff_ffff_ffff_ffc0,
            // Five levels: the direct map begins at 0xff11_0000_0000_0000.
            0xff11_0000_0000_0040,
            0xff1f_6d04_c184_0000,
            0xff00_0000_0000_0000,
            // Not the kernel's, but as good an address.
            0x40,
            0x00ff_ffff_ffff_ffc0,
        ] {
            let thread = Thread::at(address).unwrap();
            assert_eq!(thread.address(), address, "{address:#x}");
            assert!(thread.number() < 1 << Thread::BITS);
        }
    }

    #[test]
    fn what_would_not_come_back_is_no_thread() {
        for address in [
            0,
            // Within a cache line.
            0xff11_0000_0000_0001,
            0xff11_0000_0000_0060,
            // Not canonical: 58 bits and more.
            0x0100_0000_0000_0000,
            0xfe00_0000_0000_0040,
            // A tag in the upper byte, as other architectures have it.
            0xf4ff_8880_0123_4540,
        ] {
            assert_eq!(Thread::at(address), None, "{address:#x}");
        }
    }

    #[test]
    fn two_that_differ_above_48_bits_are_two() {
        assert_ne!(
            Thread::at(0xff11_0000_0000_0040),
            Thread::at(0xff12_0000_0000_0040)
        );
    }
}
