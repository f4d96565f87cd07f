// SPDX-License-Identifier: GPL-2.0
//! Scatter gather lists (Base 2.0 section 4.1.2): a command's data as segments of any address and
//! length.
//!
//! One segment is a data block descriptor in the command itself; more are in a list, to which a
//! last-segment descriptor points.

use crate::lists::List;
use hal::{CmdError, Platform, Segment};

/// Descriptor type Data Block, in the top byte of the second word.
const DATA_BLOCK: u64 = 0x00 << 56;
/// Descriptor type Last Segment.
const LAST_SEGMENT: u64 = 0x30 << 56;
/// Bytes of a descriptor.
pub(crate) const BYTES: usize = 16;

/// The descriptor of data that is one segment.
#[inline]
pub(crate) fn in_command(only: Segment, align: u64) -> Result<[u64; 2], CmdError> {
    data_block(only, align)
}

/// The command's descriptor of `bytes` of data in `first`, `second` and what `rest` yields, with a
/// descriptor each in `list`. Segments begin and end where no bit of `align` is set.
///
/// [`CmdError::Invalid`]: misaligned, not `bytes` long, or more segments than the list holds.
/// [`CmdError::NotReady`]: there is no page for so long a list.
pub(crate) fn build<P: Platform>(
    first: Segment,
    second: Segment,
    rest: &mut impl Iterator<Item = Result<Segment, CmdError>>,
    bytes: u32,
    align: u64,
    list: &mut List<'_, P>,
) -> Result<[u64; 2], CmdError> {
    let mut count = 0usize;
    // What is left of so many bytes after one more.
    let mut add = |left: u32, segment: Segment| {
        list.write_pair(count, data_block(segment, align)?)?;
        count = count.wrapping_add(1);
        left.checked_sub(segment.len).ok_or(CmdError::Invalid)
    };
    let mut left = add(bytes, first)?;
    left = add(left, second)?;
    while left != 0 {
        left = add(left, rest.next().ok_or(CmdError::Invalid)??)?;
    }
    // At most a list's bytes, far below 32 bits.
    let length = count.wrapping_mul(BYTES) as u64;
    Ok([list.bus()?, length | LAST_SEGMENT])
}

#[inline]
fn data_block(segment: Segment, align: u64) -> Result<[u64; 2], CmdError> {
    if (segment.addr | u64::from(segment.len)) & align != 0 {
        return Err(CmdError::Invalid);
    }
    Ok([segment.addr, u64::from(segment.len) | DATA_BLOCK])
}
