// SPDX-License-Identifier: GPL-2.0
//! Reservation Report (Base 2.0 section 7.4): who is registered, and who holds the reservation.

use crate::command::Sqe;
use crate::reservation::{access, sqe, KEY_BYTES, REPORT};
use hal::{Access, DmaMem};

/// EDS, in dword 11: host identifiers have 128 bits.
const EXTENDED: u64 = 1;

/// Which of its two forms a report has: by the length of host identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// 64 bits.
    Short,
    /// 128 bits.
    Extended,
}

impl Form {
    /// Bytes of the header, and as many of each registered controller.
    const fn bytes(self) -> usize {
        match self {
            Self::Short => 24,
            Self::Extended => 64,
        }
    }

    /// Where a registered controller's key is.
    const fn key_at(self) -> usize {
        match self {
            Self::Short => 16,
            Self::Extended => 8,
        }
    }

    /// Whether `status` says that the host's identifier is of the other length: Host Identifier
    /// Inconsistent Format.
    pub(crate) const fn is_other(status: u16) -> bool {
        status & 0x7ff == 0x018
    }
}

/// Bytes in which a report of `places` registered controllers fits, whatever its form.
pub(crate) const fn report_bytes(places: usize) -> usize {
    (places.saturating_add(1)).saturating_mul(Form::Extended.bytes())
}

/// Reservation Report of namespace `nsid` into `bytes`, a multiple of 4.
pub(crate) fn report(nsid: u32, bytes: usize, form: Form) -> Sqe {
    // CAST: no longer than a transfer, which has 20 bits.
    let dword10 = ((bytes / 4).saturating_sub(1) as u64) & 0xffff_ffff;
    let dword11 = match form {
        Form::Extended => EXTENDED,
        Form::Short => 0,
    };
    sqe(REPORT, nsid, dword10 | (dword11 << 32))
}

/// A report ("Reservation Status data structure"), in memory that the device has written, of
/// [`report_bytes`]: it is no longer than that, whatever it says.
pub(crate) struct Report<D> {
    memory: D,
    form: Form,
    /// GEN.
    pub(crate) generation: u32,
    /// REGCTL: how many controllers are registered, in the report or not.
    pub(crate) controllers: u16,
    /// RTYPE.
    access: Option<Access>,
}

impl<D: DmaMem> Report<D> {
    pub(crate) fn decode(memory: D, form: Form) -> Self {
        let mut header = [0; 8];
        memory.read_bytes(0, &mut header);
        let [g0, g1, g2, g3, kind, low, high, _] = header;
        Self {
            memory,
            form,
            generation: u32::from_le_bytes([g0, g1, g2, g3]),
            controllers: u16::from_le_bytes([low, high]),
            access: access(kind),
        }
    }

    /// How many the report has room for.
    fn places(&self) -> usize {
        let bytes = self.form.bytes();
        (self.memory.len().saturating_sub(bytes))
            .checked_div(bytes)
            .unwrap_or(0)
    }

    /// All that are registered are in it.
    pub(crate) fn is_whole(&self) -> bool {
        usize::from(self.controllers) <= self.places()
    }

    /// The registered controllers that are in it: whether each holds the reservation, and its key.
    fn registered(&self) -> impl Iterator<Item = (bool, u64)> + '_ {
        let there = usize::from(self.controllers).min(self.places());
        let bytes = self.form.bytes();
        (1..=there).map(move |at| {
            // The header is as long as each of them.
            let base = at.saturating_mul(bytes);
            let (mut status, mut key) = ([0], [0; KEY_BYTES]);
            // RCSTS.
            self.memory.read_bytes(base.saturating_add(2), &mut status);
            self.memory
                .read_bytes(base.saturating_add(self.form.key_at()), &mut key);
            (status != [0], u64::from_le_bytes(key))
        })
    }

    /// The keys that are in it.
    pub(crate) fn keys(&self) -> impl Iterator<Item = u64> + '_ {
        self.registered().map(|(_, key)| key)
    }

    /// How the namespace is reserved, and the first holder's key, 0: there is none. Where nobody is
    /// registered nobody has reserved it.
    pub(crate) fn holder(&self) -> (Option<Access>, u64) {
        let holder = self.registered().find(|(holds, _)| *holds);
        let access = self.access.filter(|_| self.controllers != 0);
        (access, holder.map_or(0, |(_, key)| key))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    use hal::mock::{MockDma, MockPlatform};
    use hal::Platform;

    #[test]
    fn a_report_is_asked_for_in_dwords_less_one() {
        assert_eq!(report_bytes(0), 64);
        assert_eq!(report_bytes(63), 4096);
        assert_eq!(report_bytes(usize::MAX), usize::MAX);
        let dwords = |bytes, form| report(1, bytes, form)[5];
        assert_eq!(dwords(64, Form::Extended), 0x1_0000_000f);
        assert_eq!(dwords(64, Form::Short), 0xf);
        assert_eq!(dwords(1 << 20, Form::Short), (1 << 18) - 1);
    }

    /// A report in so many bytes that says so many, each with its number as its key; the one
    /// numbered `holder` holds.
    fn said(form: Form, bytes: usize, controllers: u16, holder: u64) -> Report<MockDma> {
        let memory = MockPlatform::new().dma(bytes).unwrap();
        memory.write32(0, 0xdead_beef);
        memory.write32(4, 3 | (u32::from(controllers) << 8));
        let each = form.bytes();
        for (n, base) in (1u64..).zip((each..=bytes - each).step_by(each)) {
            memory.write32(base, u32::from(n == holder) << 16);
            memory.write64(base + form.key_at(), n);
        }
        Report::decode(memory, form)
    }

    #[test]
    fn as_many_are_read_as_there_are_and_there_is_room_for() {
        for form in [Form::Short, Form::Extended] {
            let each = form.bytes();
            // Those said, bytes of memory: those read, and whether these are all.
            for (controllers, bytes, read, whole) in [
                (0, each, 0, true),
                (0, 4096, 0, true),
                (1, each, 0, false),
                (1, 2 * each - 4, 0, false),
                (1, 2 * each, 1, true),
                (2, 2 * each, 1, false),
                (63, 64 * each, 63, true),
                (64, 64 * each, 63, false),
                (u16::MAX, 3 * each, 2, false),
                (u16::MAX, 0xffff * each, 0xfffe, false),
                (u16::MAX, 0x1_0000 * each, 0xffff, true),
            ] {
                let report = said(form, bytes, controllers, 2);
                let text = std::format!("{form:?} {controllers} {bytes}");
                assert!(report.keys().eq(1..=read), "{text}");
                assert_eq!(report.is_whole(), whole, "{text}");
                assert_eq!(report.generation, 0xdead_beef);
                assert_eq!(report.controllers, controllers);
                let key = if read >= 2 { 2 } else { 0 };
                let kind = Access::WriteExclusiveRegistrants;
                let access = (controllers != 0).then_some(kind);
                assert_eq!(report.holder(), (access, key), "{text}");
            }
        }
    }

    #[test]
    fn a_type_that_is_none_is_no_reservation() {
        for kind in [0, 7, 0xff] {
            let memory = MockPlatform::new().dma(128).unwrap();
            memory.write32(4, kind | (1 << 8));
            let report = Report::decode(memory, Form::Extended);
            assert_eq!(report.holder(), (None, 0));
        }
    }
}
