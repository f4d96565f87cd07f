// SPDX-License-Identifier: GPL-2.0
//! The physical region descriptor table (AHCI 1.3.1 section 4.2.3.3): where a command's data is.

use crate::memory::Table;
use hal::{CmdError, DmaMem, Segment};

/// Entries of a slot's table: what a page holds beside the command FIS and the ranges of a TRIM.
pub(crate) const ENTRIES: usize = 216;
/// Bytes of an entry.
pub(crate) const BYTES: usize = 16;
/// Most bytes of an entry's data (`DBC`, 22 bits).
pub(crate) const ENTRY_MAX: u32 = 1 << 22;
/// What an address and a length must not have: data is moved in words of 16 bits.
pub(crate) const ALIGN: u32 = 1;

/// No entry's data crosses 4 GiB, as libata has it (`AHCI_DMA_BOUNDARY`, Linux 7.3): there are HBAs
/// that carry no address bit from the lower half to the upper.
pub(crate) const BOUNDARY: u64 = 0xffff_ffff;

/// `DBC` of `len` bytes, 1 to [`ENTRY_MAX`].
#[inline]
pub(crate) const fn count(len: u32) -> u32 {
    len.wrapping_sub(1)
}

/// An entry, if `segment` can be one; `below` is the first address that the HBA does not reach, 0
/// for none.
#[inline]
fn entry(segment: Segment, below: u64) -> Result<[u64; 2], CmdError> {
    let odd = (segment.addr as u32 | segment.len) & ALIGN != 0;
    let end = segment.addr.checked_add(u64::from(segment.len));
    let far = match below {
        0 => end.is_none(),
        below => end.is_none_or(|end| end > below),
    };
    if odd || far || segment.len == 0 || segment.len > ENTRY_MAX {
        return Err(CmdError::Invalid);
    }
    Ok([segment.addr, u64::from(count(segment.len)) << 32])
}

/// Writes `bytes` of `data` to `table`. Returns how many entries they take.
///
/// [`CmdError::Invalid`]: the segments are odd, too many, out of reach, or not `bytes` in sum.
#[inline]
pub(crate) fn build<D: DmaMem>(
    mut data: impl Iterator<Item = Result<Segment, CmdError>>,
    bytes: u32,
    below: u64,
    table: &Table<'_, D>,
) -> Result<u16, CmdError> {
    let mut left = bytes;
    let mut entries = 0u16;
    while left != 0 {
        let mut segment = data.next().ok_or(CmdError::Invalid)??;
        left = left.checked_sub(segment.len).ok_or(CmdError::Invalid)?;
        // An IOMMU may have made one range of all of the data: more than an entry says.
        while segment.len > ENTRY_MAX {
            let part = Segment {
                len: ENTRY_MAX,
                ..segment
            };
            add(part, &mut entries, below, table)?;
            let next = segment.addr.checked_add(u64::from(ENTRY_MAX));
            segment = Segment {
                addr: next.ok_or(CmdError::Invalid)?,
                len: segment.len.wrapping_sub(ENTRY_MAX),
            };
        }
        add(segment, &mut entries, below, table)?;
    }
    Ok(entries)
}

#[inline(always)]
fn add<D: DmaMem>(
    segment: Segment,
    entries: &mut u16,
    below: u64,
    table: &Table<'_, D>,
) -> Result<(), CmdError> {
    let index = usize::from(*entries);
    if index >= ENTRIES {
        return Err(CmdError::Invalid);
    }
    table.write_entry(index, entry(segment, below)?);
    *entries = entries.wrapping_add(1);
    Ok(())
}

/// Writes the one entry of a TRIM's ranges, `bytes` of them.
pub(crate) fn point_to_ranges<D: DmaMem>(table: &Table<'_, D>, bytes: u32) {
    let entry = [table.ranges_bus(), u64::from(count(bytes)) << 32];
    table.write_entry(0, entry);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_of_an_entry() {
        let at = |addr, len| entry(Segment { addr, len }, 0);
        assert_eq!(at(0x1000, 512), Ok([0x1000, 511 << 32]));
        assert_eq!(at(2, 2), Ok([2, 1 << 32]));
        assert_eq!(at(0, ENTRY_MAX), Ok([0, 0x3f_ffff << 32]));
        for bad in [
            (0, 0),
            (0, ENTRY_MAX + 2),
            (1, 2),
            (0, 1),
            (u64::MAX - 1, 2),
        ] {
            assert_eq!(at(bad.0, bad.1), Err(CmdError::Invalid), "{bad:?}");
        }
        let low = |addr, len| entry(Segment { addr, len }, 1 << 32);
        assert!(low(0xffff_fe00, 512).is_ok());
        assert_eq!(low(0xffff_fe02, 512), Err(CmdError::Invalid));
        assert_eq!(low(1 << 32, 512), Err(CmdError::Invalid));
    }
}
