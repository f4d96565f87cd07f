// SPDX-License-Identifier: GPL-2.0
//! A disk's file operations.
//!
//! `kernel::block::mq::GenDisk` (Linux 7.2 and 7.3) has a table of its own, with none of them.

use core::slice;
use kernel::bindings;
use kernel::error::code::*;
use kernel::ffi::{c_int, c_uint, c_ulong};
use kernel::prelude::*;

use crate::blk::gendisk::{DiskShared, GenDisk};
use crate::blk::ioctl::{OfDisk, SG_IO};
use crate::compat::{zeroed, PASS_COMPAT_IOCTL};
use crate::shims;
use crate::shims::HIOPS_BYTES;

/// The table, as a static that the kernel may point to.
pub(crate) struct Table(pub(crate) bindings::block_device_operations);

// SAFETY: it is never written.
unsafe impl Sync for Table {}

/// The same for every disk of hiops. `owner` keeps the module loaded while a disk is open.
pub(crate) static TABLE: Table = Table(bindings::block_device_operations {
    owner: (&raw const bindings::__this_module).cast_mut(),
    ioctl: Some(ioctl),
    compat_ioctl: Some(compat_ioctl),
    getgeo: Some(getgeo),
    free_disk: Some(free_disk),
    get_unique_id: Some(get_unique_id),
    // What it points to is opaque in the kernel crate's bindings.
    pr_ops: (&raw const crate::blk::pr::TABLE.0).cast(),
    ..zeroed()
});

/// # Safety
/// Called by the block layer for a disk of ours that is open.
unsafe extern "C" fn ioctl(
    bdev: *mut bindings::block_device,
    mode: bindings::blk_mode_t,
    cmd: c_uint,
    arg: c_ulong,
) -> c_int {
    // SAFETY: the disk is open, hence alive.
    let (disk, read_only) = unsafe {
        let disk = GenDisk::from_raw((*bdev).bd_disk);
        (disk, shims::hiops_is_read_only(bdev))
    };
    if cmd == HIOPS_BYTES {
        // SAFETY: open, in the calling thread, by the caller's promise.
        let opened = unsafe { disk.shared().bytes.open(bdev, mode, arg) };
        return opened.unwrap_or_else(|error| error.to_errno());
    }
    let is_partition = disk.is_partition(bdev);
    match carry_out(disk.shared(), read_only, is_partition, cmd, arg) {
        Ok(result) => result,
        Err(error) => error.to_errno(),
    }
}

/// Hands an ioctl to the disk's controller, if that is still there.
fn carry_out(
    disk: &DiskShared,
    read_only: bool,
    is_partition: bool,
    cmd: u32,
    arg: usize,
) -> Result<i32> {
    let ioctl = (disk.gate.with(|owner| owner.ioctls())).ok_or(ENODEV)?;
    let of = OfDisk {
        unit: disk.unit.id,
        read_only,
        is_partition,
        number: disk.number.as_ref().map_or(0, |number| number.get()),
    };
    ioctl(&disk.gate, Some(of), cmd, arg)
}

/// # Safety
/// Called by the block layer for a disk of ours that is open, on behalf of a 32-bit program.
unsafe extern "C" fn compat_ioctl(
    bdev: *mut bindings::block_device,
    mode: bindings::blk_mode_t,
    cmd: c_uint,
    arg: c_ulong,
) -> c_int {
    // The arguments of all others are the same for 32-bit programs.
    match PASS_COMPAT_IOCTL {
        // SAFETY: by the caller's promise.
        Some(pass) if cmd != SG_IO => unsafe { pass(bdev, mode, cmd, arg) },
        _ => ENOIOCTLCMD.to_errno(),
    }
}

/// `struct hd_geometry` (uapi/linux/hdreg.h), which the kernel crate has no bindings of.
#[repr(C)]
struct Geometry {
    heads: u8,
    sectors: u8,
    cylinders: u16,
    start: c_ulong,
}

/// HDIO_GETGEO: the cylinders of 1 MiB that the in-tree drivers tell, of which there are at most
/// 65,535. The block layer fills in the start.
///
/// # Safety
/// Called by the block layer for a disk of ours that is open, with a geometry to be written.
unsafe extern "C" fn getgeo(
    disk: *mut bindings::gendisk,
    geometry: *mut bindings::hd_geometry,
) -> c_int {
    // SAFETY: the disk is alive, the geometry the caller's, in the kernel's memory.
    let (disk, told) = unsafe { (GenDisk::from_raw(disk), &mut *geometry.cast::<Geometry>()) };
    told.heads = 64;
    told.sectors = 32;
    told.cylinders = u16::try_from(disk.sectors() >> 11).unwrap_or(u16::MAX);
    0
}

/// # Safety
/// Called by the block layer when the last reference to a disk of ours is gone.
unsafe extern "C" fn free_disk(disk: *mut bindings::gendisk) {
    // SAFETY: `Disk::new` leaked it into the disk, the last reference to which is gone.
    drop(unsafe { KBox::from_raw(GenDisk::from_raw(disk).data()) });
}

/// # Safety
/// Called by the block layer for a disk of ours, with room for 16 bytes at `id`.
unsafe extern "C" fn get_unique_id(
    disk: *mut bindings::gendisk,
    id: *mut u8,
    kind: bindings::blk_unique_id,
) -> c_int {
    // SAFETY: the disk is alive, `id` has room for 16 bytes.
    let (disk, id) = unsafe { (GenDisk::from_raw(disk), slice::from_raw_parts_mut(id, 16)) };
    let ids = disk.shared().names.ids();
    let copy = |from: &[u8], to: &mut [u8]| {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        from.len() as c_int
    };
    match kind {
        bindings::blk_unique_id_BLK_UID_EUI64 => match (&ids.nguid, &ids.eui64) {
            (Some(nguid), _) => copy(nguid, id),
            (None, Some(eui64)) => copy(eui64, id),
            _ => EINVAL.to_errno(),
        },
        bindings::blk_unique_id_BLK_UID_NAA => match ids.wwn {
            Some(wwn) => copy(&wwn.to_be_bytes(), id),
            None => EINVAL.to_errno(),
        },
        _ => EINVAL.to_errno(),
    }
}
