// SPDX-License-Identifier: GPL-2.0
//! Controller registers (Base 2.0 section 3.1.3, doorbells: PCIe Transport 1.0 section 3.1.2),
//! decoded where they are declared.

use hal::{Error, Mmio};

/// Controller capabilities, 64 bits (3.1.3.1).
pub const CAP: usize = 0x00;
/// Version (3.1.3.2).
pub const VS: usize = 0x08;
/// Interrupt mask set: one bit a vector, pin and MSI only (3.1.3.3).
pub const INTMS: usize = 0x0c;
/// Interrupt mask clear (3.1.3.4).
pub const INTMC: usize = 0x10;
/// Controller configuration (3.1.3.5).
pub const CC: usize = 0x14;
/// Controller status (3.1.3.6).
pub const CSTS: usize = 0x1c;
/// Admin queue attributes (3.1.3.8).
pub const AQA: usize = 0x24;
/// Admin submission queue base, 64 bits (3.1.3.9).
pub const ASQ: usize = 0x28;
/// Admin completion queue base, 64 bits (3.1.3.10).
pub const ACQ: usize = 0x30;
/// Controller ready time-outs (3.1.3.17).
pub const CRTO: usize = 0x68;
/// The first doorbell; also the size of the part of the window that every controller has.
pub const DOORBELLS: usize = 0x1000;

/// What every register of an absent device reads as.
pub const ABSENT: u32 = u32::MAX;

/// `CC.EN`: the controller is to process commands.
pub const CC_EN: u32 = 1;
/// `CC.SHN` = 01b: a normal shutdown is coming.
pub const CC_SHN_NORMAL: u32 = 1 << 14;
/// `CC.SHN`, the field.
pub const CC_SHN: u32 = 3 << 14;
/// `CSTS.RDY`: the controller processes commands.
pub const CSTS_RDY: u32 = 1;
/// `CSTS.CFS`: it had a fatal error.
pub const CSTS_CFS: u32 = 1 << 1;
/// `CSTS.SHST`, the field.
pub const CSTS_SHST: u32 = 3 << 2;
/// `CSTS.SHST` = 10b: shutdown processing is complete.
pub const CSTS_SHST_DONE: u32 = 2 << 2;
/// `CSTS.PP`: it takes no commands for a while.
pub const CSTS_PP: u32 = 1 << 5;

/// Log2 of a submission queue entry's size, for `CC.IOSQES`.
pub const SQE_SHIFT: u8 = 6;
/// Log2 of a completion queue entry's size, for `CC.IOCQES`.
pub const CQE_SHIFT: u8 = 4;

/// The fields of [`CAP`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap(pub u64);

impl Cap {
    /// Reads and checks the register.
    pub fn read(mmio: &impl Mmio) -> Result<Self, Error> {
        let cap = mmio.read64(CAP);
        // A device that goes away between the halves leaves ones in one of them; MQES and CSS are
        // never all ones and zero together. CAST: the two halves.
        if cap as u32 == ABSENT || (cap >> 32) as u32 == ABSENT {
            return Err(Error::Gone);
        }
        Ok(Self(cap))
    }

    const fn field(self, shift: u32, bits: u32) -> u64 {
        self.0.wrapping_shr(shift) & 1u64.wrapping_shl(bits).wrapping_sub(1)
    }

    /// `MQES`: the most entries of an I/O queue, less one; at least 1 is required.
    pub const fn mqes(self) -> u16 {
        // CAST: 16 bits.
        self.field(0, 16) as u16
    }

    /// `TO`: how long `CSTS.RDY` may take to follow `CC.EN`, in microseconds.
    pub const fn timeout_us(self) -> u64 {
        self.field(24, 8).wrapping_mul(500_000)
    }

    /// `DSTRD`: bytes from one doorbell to the next, 4 and up.
    pub const fn stride(self) -> usize {
        // CAST: 4 bits; at most 4 << 15.
        4usize.wrapping_shl(self.field(32, 4) as u32)
    }

    /// `CSS` bit 0: the NVM command set.
    pub const fn has_nvm_command_set(self) -> bool {
        self.field(37, 1) != 0
    }

    /// `CSS` bit 6: one or more I/O command sets, chosen by `CC.CSS` = 110b.
    pub const fn has_command_sets(self) -> bool {
        self.field(43, 1) != 0
    }

    /// `MPSMIN`: log2 of the smallest memory page the controller takes, 12 to 27.
    pub const fn page_shift_min(self) -> u8 {
        // CAST: 4 bits.
        (self.field(48, 4) as u8).wrapping_add(12)
    }

    /// `MPSMAX`: log2 of the largest memory page.
    pub const fn page_shift_max(self) -> u8 {
        // CAST: 4 bits.
        (self.field(52, 4) as u8).wrapping_add(12)
    }

    /// `CRMS`: [`CRTO`] is there.
    pub const fn has_crto(self) -> bool {
        self.field(59, 2) != 0
    }
}

/// The value of [`CC`] that enables a controller with memory pages of `page_shift`.
pub const fn cc_enabled(page_shift: u8, command_sets: bool) -> u32 {
    let css = if command_sets { 6 } else { 0 };
    let mps = page_shift.saturating_sub(12) as u32;
    CC_EN | (css << 4) | (mps << 7) | ((SQE_SHIFT as u32) << 16) | ((CQE_SHIFT as u32) << 20)
}

/// Where the tail doorbell of submission queue `qid` is, counted from the first doorbell.
#[inline]
pub const fn sq_doorbell(qid: u16, stride: usize) -> usize {
    // At most 131,070 strides of at most 128 KiB.
    ((qid as usize) << 1).wrapping_mul(stride)
}

/// Where the head doorbell of completion queue `qid` is, counted from the first doorbell.
#[inline]
pub const fn cq_doorbell(qid: u16, stride: usize) -> usize {
    (((qid as usize) << 1) | 1).wrapping_mul(stride)
}

/// How many queue pairs (the admin pair included) have both doorbells within `bytes` of doorbells.
pub const fn pairs_within(bytes: usize, stride: usize) -> usize {
    match bytes.checked_div(stride.saturating_mul(2)) {
        Some(pairs) => pairs,
        None => 0,
    }
}

/// Reads a 32-bit register that is never all ones while the device is there.
pub fn read(mmio: &impl Mmio, register: usize) -> Result<u32, Error> {
    match mmio.read32(register) {
        ABSENT => Err(Error::Gone),
        value => Ok(value),
    }
}

/// The status as an answer: is it there, and well?
pub(crate) fn alive(mmio: &impl Mmio) -> Result<(), Error> {
    match read(mmio, CSTS)? {
        csts if csts & CSTS_CFS != 0 => Err(Error::Fatal),
        _ => Ok(()),
    }
}

/// Silences `vector`, where interrupts come by a pin; with MSI-X the mask must not be touched.
///
/// A message is an edge: whoever gets one and can't drain loses nothing. A pin is a level that
/// stays up as long as any completion queue has entries, so a handler that can't drain at once
/// (another context holds the drain token) would be called for ever, on the very CPU whose
/// interrupted thread holds it. Therefore a pin is masked when it fires and unmasked when a drain
/// ends.
pub(crate) fn mask(mmio: &impl Mmio, vector: u16) {
    mmio.write32(INTMS, bit(vector));
}

/// Lets `vector` interrupt again.
pub(crate) fn unmask(mmio: &impl Mmio, vector: u16) {
    mmio.write32(INTMC, bit(vector));
}

fn bit(vector: u16) -> u32 {
    1u32.checked_shl(u32::from(vector)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cap_fields_are_where_the_specification_has_them() {
        let cap = Cap(0x0800_0000_0000_0000
            | (0xa << 52)
            | (0x1 << 48)
            | (1 << 43)
            | (1 << 37)
            | (2 << 32)
            | (0x0f << 24)
            | 0x7ff);
        assert_eq!(cap.mqes(), 0x7ff);
        assert_eq!(cap.timeout_us(), 7_500_000);
        assert_eq!(cap.stride(), 16);
        assert!(cap.has_nvm_command_set() && cap.has_command_sets() && cap.has_crto());
        assert_eq!((cap.page_shift_min(), cap.page_shift_max()), (13, 22));
    }

    #[test]
    fn doorbells_alternate_by_the_stride() {
        assert_eq!([sq_doorbell(0, 4), cq_doorbell(0, 4)], [0, 4]);
        assert_eq!([sq_doorbell(3, 8), cq_doorbell(3, 8)], [48, 56]);
        assert_eq!(pairs_within(0x1000, 4), 512);
        assert_eq!(pairs_within(7, 4), 0);
        assert_eq!(pairs_within(16, 4), 2);
    }

    #[test]
    fn cc_carries_entry_sizes_and_page() {
        assert_eq!(cc_enabled(12, false), 0x0046_0001);
        assert_eq!(cc_enabled(13, true), 0x0046_00e1);
    }
}
