// SPDX-License-Identifier: GPL-2.0
//! What the block layer itself knows of a disk: `stat` and `inflight` in `/sys/block/DISK`
//! (Documentation/block/stat.rst).

use crate::root::Root;
use serde::Serialize;

/// Bytes of a sector, whatever the disk's blocks are.
const SECTOR: u64 = 512;

/// Counts since the disk came.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BlockStat {
    pub(crate) reads: u64,
    pub(crate) read_bytes: u64,
    pub(crate) writes: u64,
    pub(crate) written_bytes: u64,
    /// The sum over all requests of the milliseconds that they took.
    pub(crate) in_queue_ms: u64,
}

/// Requests that are with the driver now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Inflight {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
}

impl BlockStat {
    /// Reads the file's one line.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let fields: Vec<u64> = text
            .split_whitespace()
            .map_while(|f| f.parse().ok())
            .collect();
        let field = |at: usize| fields.get(at).copied();
        Some(Self {
            reads: field(0)?,
            read_bytes: field(2)?.saturating_mul(SECTOR),
            writes: field(4)?,
            written_bytes: field(6)?.saturating_mul(SECTOR),
            in_queue_ms: field(10)?,
        })
    }

    /// That of `disk`.
    pub(crate) fn of(root: &Root, disk: &str) -> Option<Self> {
        Self::parse(&root.text(&format!("/sys/block/{disk}/stat"))?)
    }
}

impl Inflight {
    /// That of `disk`.
    pub(crate) fn of(root: &Root, disk: &str) -> Option<Self> {
        let text = root.text(&format!("/sys/block/{disk}/inflight"))?;
        let mut fields = text.split_whitespace().map(str::parse);
        Some(Self {
            reads: fields.next()?.ok()?,
            writes: fields.next()?.ok()?,
        })
    }

    /// Both kinds.
    pub(crate) fn all(self) -> u64 {
        self.reads.saturating_add(self.writes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_kernel_puts_them() {
        let line = "  11 1 16 2 33 3 24 4 0 50 60 0 0 0 0 7 8\n";
        let stat = BlockStat::parse(line).unwrap();
        assert_eq!((stat.reads, stat.read_bytes), (11, 16 * 512));
        assert_eq!((stat.writes, stat.written_bytes), (33, 24 * 512));
        assert_eq!(stat.in_queue_ms, 60);
        assert_eq!(BlockStat::parse("1 2 3"), None);
        assert_eq!(BlockStat::parse(""), None);
    }
}
