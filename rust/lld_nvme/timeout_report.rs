// SPDX-License-Identifier: GPL-2.0
//! A controller, and a queue of it, when a command has timed out: what the log says, so that a
//! controller that is slow is told from a completion that was lost on its way.

use core::fmt;

use crate::cqe::Cqe;
use crate::regs::{CSTS_CFS, CSTS_RDY};

/// What the controller says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registers {
    pub(crate) csts: u32,
    pub(crate) cc: u32,
    /// The admin queue, if it has a command outstanding or was given up.
    pub(crate) admin: Option<QueueReport>,
}

impl Registers {
    fn verdict(&self) -> &'static str {
        match self.csts {
            u32::MAX => "it is gone",
            csts if csts & CSTS_CFS != 0 => "it reports a fatal status",
            csts if csts & CSTS_RDY == 0 => "it is not enabled: somebody has reset it",
            _ => "it says that it is well",
        }
    }
}

impl fmt::Display for Registers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (csts, cc) = (self.csts, self.cc);
        write!(f, "{}: CSTS {csts:#x}, CC {cc:#x}", self.verdict())?;
        match &self.admin {
            Some(admin) => write!(f, "; {admin}"),
            None => Ok(()),
        }
    }
}

/// A queue pair of which commands are outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueReport {
    /// Queue identifier; 0: the admin queue.
    pub(crate) qid: u16,
    /// The submission queue's tail as of the last doorbell.
    pub(crate) tail: u16,
    /// Where it had got to, by the last completion that was taken; `None`: there was none.
    pub(crate) fetched: Option<u16>,
    /// The next entry of the completion queue to be looked at, and its phase when it is new.
    pub(crate) head: u16,
    pub(crate) phase: bool,
    /// What is there.
    pub(crate) entry: Cqe,
}

/// The submission queue's head in `last`, the entry before `head`, if that was taken in the pass
/// whose new entries have `phase`; one that was never written is zeroes.
pub(crate) fn fetched(last: Cqe, head: u16, phase: bool) -> Option<u16> {
    let taken = phase ^ (head == 0);
    (last.0 != 0 && last.phase() == taken).then(|| last.sq_head())
}

impl QueueReport {
    fn verdict(&self) -> &'static str {
        if self.entry.phase() == self.phase {
            return "a completion is there that nobody has taken: its interrupt was lost";
        }
        match self.fetched {
            Some(fetched) if fetched == self.tail => {
                "all that it was told was fetched, no completion is there: it is late"
            }
            _ => "no completion is there: it is late, or has not heard of all that it was told",
        }
    }
}

impl fmt::Display for QueueReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (qid, verdict) = (self.qid, self.verdict());
        write!(f, "queue {qid}: {verdict}; tail {}, ", self.tail)?;
        match self.fetched {
            Some(fetched) => write!(f, "fetched up to {fetched}, ")?,
            None => f.write_str("none was answered before, ")?,
        }
        let (head, phase, entry) = (self.head, u8::from(self.phase), self.entry.0);
        write!(f, "head {head}, phase {phase}, entry {entry:#018x}")
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    const LATE: QueueReport = QueueReport {
        qid: 1,
        tail: 5,
        fetched: Some(5),
        head: 4,
        phase: true,
        entry: Cqe(0),
    };

    #[test]
    fn the_phase_tells_late_from_lost() {
        assert!(LATE
            .verdict()
            .contains("fetched, no completion is there: it is late"));
        let lost = QueueReport {
            entry: Cqe(1 << 48),
            ..LATE
        };
        assert!(lost.verdict().contains("interrupt was lost"));
        let second_pass = QueueReport {
            phase: false,
            entry: Cqe(1 << 48),
            ..LATE
        };
        assert!(second_pass.verdict().contains("it is late"));
        for fetched in [None, Some(4)] {
            let unheard = QueueReport { fetched, ..LATE };
            assert!(unheard.verdict().contains("has not heard"));
        }
    }

    #[test]
    fn the_status_comes_first() {
        let verdict = |csts| {
            let registers = Registers {
                csts,
                cc: 0x46_0001,
                admin: None,
            };
            registers.to_string()
        };
        assert_eq!(verdict(1), "it says that it is well: CSTS 0x1, CC 0x460001");
        assert!(verdict(3).contains("fatal"));
        assert!(verdict(0).contains("not enabled"));
        assert!(verdict(u32::MAX).contains("gone"));
    }

    #[test]
    fn the_line_has_all_of_it() {
        let registers = Registers {
            csts: 1,
            cc: 1,
            admin: Some(QueueReport { qid: 0, ..LATE }),
        };
        let line = registers.to_string();
        for part in [
            "CC 0x1; queue 0: all",
            "tail 5, fetched up to 5, head 4, phase 1, entry 0x0000000000000000",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
}
