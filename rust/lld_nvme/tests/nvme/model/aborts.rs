// SPDX-License-Identifier: GPL-2.0
//! Commands that it does not finish, and Abort.

use super::queues::Completion;
use super::State;

/// Command Abort Requested.
const ABORTED: u16 = 0x0007;
/// The command was not aborted.
const NOT_ABORTED: u64 = 1;

/// I/O commands that it has taken and does not finish.
#[derive(Debug, Default)]
pub struct Stuck {
    /// So many of the next I/O commands are.
    pub next: usize,
    /// Those that are, with their completion queues.
    pub held: Vec<(u16, Completion)>,
    /// It aborts none of them.
    pub for_good: bool,
}

impl State {
    /// Whether the completion of an I/O command is kept back.
    pub fn keeps(&mut self, cq: u16, completion: Completion) -> bool {
        let keeps = completion.sq_id != 0 && self.stuck.next != 0;
        if keeps {
            self.stuck.next -= 1;
            self.stuck.held.push((cq, completion));
        }
        keeps
    }

    /// Abort of the command that dword 10 names: the completion comes before Abort's own.
    pub fn abort(&mut self, dword10: u32) -> Result<u64, u16> {
        let name = (dword10 as u16, (dword10 >> 16) as u16);
        let held = &mut self.stuck.held;
        let at = held
            .iter()
            .position(|(_, held)| (held.sq_id, held.cid) == name);
        match at.filter(|_| !self.stuck.for_good) {
            None => Ok(NOT_ABORTED),
            Some(at) => {
                let (cq, mut completion) = self.stuck.held.remove(at);
                completion.status = ABORTED;
                completion.result = 0;
                self.finish(cq, completion);
                Ok(0)
            }
        }
    }
}
