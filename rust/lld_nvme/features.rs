// SPDX-License-Identifier: GPL-2.0
//! Admin commands as submission queue entries (Base 2.0 section 5).

use crate::command::Sqe;
use crate::identify::Cns;

const DELETE_CQ: u64 = 0x04;
const CREATE_SQ: u64 = 0x01;
const CREATE_CQ: u64 = 0x05;
const DELETE_SQ: u64 = 0x00;
const GET_LOG_PAGE: u64 = 0x02;
const IDENTIFY: u64 = 0x06;
const ABORT: u64 = 0x08;
const SET_FEATURES: u64 = 0x09;
const ASYNC_EVENT: u64 = 0x0c;
const DOORBELL_BUFFER_CONFIG: u64 = 0x7c;

/// Feature Number of Queues (5.27.1.5).
const NUMBER_OF_QUEUES: u64 = 0x07;
/// Feature Asynchronous Event Configuration (5.27.1.8).
const EVENTS: u64 = 0x0b;
/// Feature Autonomous Power State Transition (5.27.1.9).
const POWER_STATES: u64 = 0x0c;
/// Feature Host Behavior Support (5.27.1.18).
const HOST_BEHAVIOR: u64 = 0x16;
/// Feature Host Memory Buffer (5.27.1.10).
const HOST_MEMORY_BUFFER: u64 = 0x0d;

/// EHM, and MR: the buffer is there; it is the one that was there before a reset.
const ENABLE_MEMORY: u64 = 1;
const MEMORY_RETURN: u64 = 1 << 1;

/// The queue is physically contiguous.
const CONTIGUOUS: u64 = 1;
/// The completion queue interrupts.
const INTERRUPTS: u64 = 1 << 1;
/// QPRIO of a submission queue: medium.
const MEDIUM: u64 = 2 << 1;

/// Identify (5.17) into the page at `to`.
pub(crate) fn identify(cns: Cns, nsid: u32, to: u64) -> Sqe {
    // CAST: the enum is a byte.
    let cns = u64::from(cns as u8);
    [IDENTIFY | (u64::from(nsid) << 32), 0, 0, to, 0, cns, 0, 0]
}

/// Abort (5.1) of command `cid` of submission queue `qid`.
pub(crate) fn abort(qid: u16, cid: u16) -> Sqe {
    let dword10 = u64::from(qid) | (u64::from(cid) << 16);
    [ABORT, 0, 0, 0, 0, dword10, 0, 0]
}

/// Asynchronous Event Request (5.2).
pub(crate) fn async_event() -> Sqe {
    [ASYNC_EVENT, 0, 0, 0, 0, 0, 0, 0]
}

/// Asynchronous Event Configuration: the controller reports what `events` says.
pub(crate) fn report(events: u32) -> Sqe {
    let dword10 = EVENTS | (u64::from(events) << 32);
    [SET_FEATURES, 0, 0, 0, 0, dword10, 0, 0]
}

/// Get Log Page `id` of the whole controller, its first `bytes` (a multiple of 4, up to a page),
/// into the page at `to`. Its events are reported again afterwards.
pub(crate) fn log_page(id: u8, bytes: usize, to: u64) -> Sqe {
    let dwords = (bytes / 4).saturating_sub(1) as u64;
    let every = u64::from(u32::MAX) << 32;
    let dword10 = u64::from(id) | (dwords << 16);
    [GET_LOG_PAGE | every, 0, 0, to, 0, dword10, 0, 0]
}

/// RAE: the events of the page go on being reported as if it had not been read.
const RETAIN_EVENT: u64 = 1 << 15;

/// Likewise, for one who wants to know how things are.
pub(crate) fn look_at_log(id: u8, bytes: usize, to: u64) -> Sqe {
    let mut sqe = log_page(id, bytes, to);
    sqe[5] |= RETAIN_EVENT;
    sqe
}

/// Asks for `pairs` I/O queue pairs.
pub(crate) fn number_of_queues(pairs: u16) -> Sqe {
    let wanted = u64::from(pairs.saturating_sub(1));
    let dword11 = (wanted << 16) | wanted;
    let dword10 = NUMBER_OF_QUEUES | (dword11 << 32);
    [SET_FEATURES, 0, 0, 0, 0, dword10, 0, 0]
}

/// Pairs that the answer to [`number_of_queues`] grants: the lesser of submission and completion
/// queues, both less one.
pub(crate) fn granted(result: u64) -> u16 {
    // CAST: bits 15:0 and 31:16.
    let (sq, cq) = (result as u16, (result >> 16) as u16);
    sq.min(cq).saturating_add(1)
}

/// Autonomous Power State Transition off; at `table` are 256 bytes of zeroes.
pub(crate) fn stay_awake(table: u64) -> Sqe {
    [SET_FEATURES, 0, 0, table, 0, POWER_STATES, 0, 0]
}

/// Bytes of the data structure of [`host_behavior`].
pub(crate) const HOST_BEHAVIOR_BYTES: usize = 512;

/// Its first dword: `ACRE` (byte 0), Command Retry Delays are made use of.
pub(crate) const RETRY_DELAYS: u32 = 1;

/// Host Behavior Support: what the host makes use of, as the data structure at `from` says.
pub(crate) fn host_behavior(from: u64) -> Sqe {
    [SET_FEATURES, 0, 0, from, 0, HOST_BEHAVIOR, 0, 0]
}

/// Host Memory Buffer: `pages` of memory are the controller's, in the `count` pieces of the list at
/// `list`; `again`: they are as it left them.
pub(crate) fn lend(pages: u32, list: u64, count: u32, again: bool) -> Sqe {
    let dword11 = ENABLE_MEMORY | if again { MEMORY_RETURN } else { 0 };
    let dword10 = HOST_MEMORY_BUFFER | (dword11 << 32);
    let low = u64::from(pages) | (list << 32);
    let high = (list >> 32) | (u64::from(count) << 32);
    [SET_FEATURES, 0, 0, 0, 0, dword10, low, high]
}

/// Doorbell Buffer Config (5.8).
pub(crate) fn doorbell_buffer(shadow: u64, events: u64) -> Sqe {
    [DOORBELL_BUFFER_CONFIG, 0, 0, shadow, events, 0, 0, 0]
}

/// Create I/O Completion Queue (5.5), interrupting on `vector` or never.
pub(crate) fn create_cq(qid: u16, entries: u16, at: u64, vector: Option<u16>) -> Sqe {
    let interrupts = vector.map_or(0, |vector| INTERRUPTS | (u64::from(vector) << 16));
    let dword11 = CONTIGUOUS | interrupts;
    let dword10 = sized(qid, entries) | (dword11 << 32);
    [CREATE_CQ, 0, 0, at, 0, dword10, 0, 0]
}

/// Create I/O Submission Queue (5.6), answered in the completion queue of the same number, and of
/// `medium` priority where the controller goes by that.
pub(crate) fn create_sq(qid: u16, entries: u16, at: u64, medium: bool) -> Sqe {
    let priority = if medium { MEDIUM } else { 0 };
    let dword11 = CONTIGUOUS | priority | (u64::from(qid) << 16);
    let dword10 = sized(qid, entries) | (dword11 << 32);
    [CREATE_SQ, 0, 0, at, 0, dword10, 0, 0]
}

/// Delete I/O Completion Queue (5.7).
pub(crate) fn delete_cq(qid: u16) -> Sqe {
    [DELETE_CQ, 0, 0, 0, 0, u64::from(qid), 0, 0]
}

fn sized(qid: u16, entries: u16) -> u64 {
    u64::from(qid) | (u64::from(entries.saturating_sub(1)) << 16)
}

/// Whether a command from outside may pass. Those may not that give the device memory to keep,
/// change the queues under the driver, or are not answered until something happens.
pub(crate) fn may_pass(sqe: &Sqe) -> bool {
    let (first, dword10) = (sqe[0] & 0xff, sqe[5] & 0xff);
    !match first {
        DELETE_SQ | CREATE_SQ | DELETE_CQ | CREATE_CQ | ASYNC_EVENT | DOORBELL_BUFFER_CONFIG => {
            true
        }
        SET_FEATURES => matches!(dword10, NUMBER_OF_QUEUES | HOST_MEMORY_BUFFER),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_numbers_are_zero_based() {
        assert_eq!(number_of_queues(1)[5], 7);
        assert_eq!(number_of_queues(3)[5], 0x0002_0002_0000_0007);
        assert_eq!(granted(0x0003_0007), 4);
        assert_eq!(granted(0xffff_ffff), u16::MAX);
        assert_eq!(create_cq(3, 256, 0x1000, Some(9))[5], 0x0009_0003_00ff_0003);
        assert_eq!(create_cq(3, 256, 0x1000, None)[5], 0x0000_0001_00ff_0003);
        assert_eq!(create_sq(3, 256, 0x1000, false)[5], 0x0003_0001_00ff_0003);
        assert_eq!(create_sq(3, 256, 0x1000, true)[5], 0x0003_0005_00ff_0003);
    }

    #[test]
    fn what_would_take_memory_or_queues_away_does_not_pass() {
        let sqe = |opcode, dword10| [opcode, 0, 0, 0, 0, dword10, 0, 0];
        for opcode in [0x00, 0x01, 0x04, 0x05, 0x0c, 0x7c] {
            assert!(!may_pass(&sqe(opcode, 0)));
        }
        assert!(!may_pass(&sqe(0x09, 0x07)) && !may_pass(&sqe(0x09, 0x0d)));
        assert!(may_pass(&sqe(0x09, 0x06)) && may_pass(&sqe(0x06, 1)) && may_pass(&sqe(0x02, 2)));
    }
}
