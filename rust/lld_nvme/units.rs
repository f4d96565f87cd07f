// SPDX-License-Identifier: GPL-2.0
//! Namespaces as disks: which are active (CNS 02h), what each is (CNS 00h, 03h), and which this
//! driver serves.

use crate::command::BLOCKS_MAX;
use crate::controller::NvmeController;
use crate::features;
use crate::identify::{Cns, Descriptors, NvmLimits, LIST_LEN};
use crate::namespace::NamespaceId;
use crate::quirks::Quirks;
use crate::regs::{self, VS};
use crate::state::About;
use crate::step::Step;
use cell::sync::Ordering;
use core::ops::RangeInclusive;
use hal::{DmaMem, Error, Mmio, Platform, Refused, Unit, UnitIds, UnitKind};

/// Most namespaces that are named; a device that lists more is not believed.
const UNITS_MAX: usize = 1024;
/// [`VS`] of the version that brought the active list, the descriptors, the limits by command set.
const VERSION_1_1: u32 = 0x0001_0100;
const VERSION_1_3: u32 = 0x0001_0300;
const VERSION_2_0: u32 = 0x0002_0000;
/// Why a shared namespace is not served: each of its controllers has a disk of it, so a file system
/// may be mounted twice. There is nothing here that makes one disk of them (multipath).
const SHARED: &str =
    "other controllers or ports may write it, too: load hiops with nvme_shared=1 to have it";
/// Log2 of the block sizes that are served, as far as the kernel can have them.
const BLOCK_SHIFTS: RangeInclusive<u8> = 9..=16;

impl<P: Platform, M: Mmio + Clone> NvmeController<P, M>
where
    P::Dma: Clone,
{
    /// Whether a namespace that other controllers or ports of its subsystem may write, too, is a
    /// disk; it is refused unless this says so. For [`hal::Controller::units`]; any context.
    pub fn serve_shared(&self, shared: bool) {
        self.shared.store(shared, Ordering::Relaxed);
    }

    /// Names every active namespace to `found`.
    pub(crate) fn each_unit(
        &self,
        about: &About,
        found: &mut dyn FnMut(Result<Unit, Refused>),
    ) -> Result<(), Error> {
        let version = self.quirk_set().version(regs::read(&self.mmio, VS)?);
        let limits = self.nvm_limits(version)?;
        let mut last = 0u32;
        let mut named = 0usize;
        while named < UNITS_MAX {
            let Some(listed) = self.active_after(last, version, about)? else {
                return Ok(());
            };
            for at in 0..LIST_LEN.min(UNITS_MAX.saturating_sub(named)) {
                let nsid = match listed {
                    Listed::Here => self.pages.read32(at.wrapping_mul(4)),
                    // Without a list every number may be one.
                    Listed::UpTo(end) => match last.checked_add(1) {
                        Some(next) if next <= end => next,
                        _ => 0,
                    },
                };
                if nsid == 0 {
                    return Ok(());
                }
                // Ascending, so the walk ends; and within what Identify Controller said.
                if nsid <= last || nsid > about.id.namespaces {
                    return Err(Error::Malformed);
                }
                last = nsid;
                named = named.wrapping_add(1);
                if let Some(unit) = self.unit(nsid, version, about, limits)? {
                    found(unit);
                }
            }
        }
        Ok(())
    }

    /// The list of active namespaces above `nsid`, in the first page. `None`: there is none above.
    fn active_after(
        &self,
        nsid: u32,
        version: u32,
        about: &About,
    ) -> Result<Option<Listed>, Error> {
        if version < VERSION_1_1 {
            return Ok(Some(Listed::UpTo(about.id.namespaces)));
        }
        // 0xfffffffe and above are no NSIDs to list from.
        if nsid >= u32::MAX - 1 {
            return Ok(None);
        }
        let to = self.pages.bus_addr();
        let list = features::identify(Cns::ActiveNamespaces, nsid, to);
        self.command(Step::ActiveNamespaces, list)?;
        Ok(Some(Listed::Here))
    }

    /// What namespace `nsid` is. `None`: it is not there after all.
    fn unit(
        &self,
        nsid: u32,
        version: u32,
        about: &About,
        limits: NvmLimits,
    ) -> Result<Option<Result<Unit, Refused>>, Error> {
        let view = match self.identify(Step::IdentifyNamespace, Cns::Namespace, nsid) {
            Ok(view) => view,
            Err(Error::Refused(_)) => {
                let why = "Identify Namespace failed";
                return Ok(Some(Err(Refused { id: nsid, why })));
            }
            Err(why) => return Err(why),
        };
        let id = NamespaceId::decode(&view);
        if id.blocks == 0 {
            return Ok(None);
        }
        let said = self.descriptors(nsid, version)?;
        // Some drives say of each namespace that it may be shared, and are alone: then it is not.
        let shared = id.may_be_shared && about.id.has_siblings;
        let why = refusal(&id, &said)
            .or_else(|| (shared && !self.shared.load(Ordering::Relaxed)).then_some(SHARED));
        Ok(Some(match why {
            Some(why) => Err(Refused { id: nsid, why }),
            None => Ok(self.describe(nsid, about, limits, &id, said.ids)),
        }))
    }

    /// The identification descriptors; none where the device has none.
    fn descriptors(&self, nsid: u32, version: u32) -> Result<Descriptors, Error> {
        let said = version >= VERSION_1_3 || self.cap.has_command_sets();
        if !said || self.quirk_set().has(Quirks::NO_NS_DESC_LIST) {
            return Ok(Descriptors::default());
        }
        match self.identify(Step::NamespaceDescriptors, Cns::NamespaceDescriptors, nsid) {
            Ok(view) => Ok(Descriptors::decode(&view)),
            Err(Error::Refused(_)) => Ok(Descriptors::default()),
            Err(why) => Err(why),
        }
    }

    /// Limits of commands without data; a device that has none refuses the question.
    fn nvm_limits(&self, version: u32) -> Result<NvmLimits, Error> {
        if version < VERSION_2_0 && !self.cap.has_command_sets() {
            return Ok(NvmLimits::default());
        }
        match self.identify(Step::NvmLimits, Cns::CommandSetController, 0) {
            Ok(view) => Ok(NvmLimits::decode(&view)),
            Err(Error::Refused(_)) => Ok(NvmLimits::default()),
            Err(why) => Err(why),
        }
    }

    fn describe(
        &self,
        nsid: u32,
        about: &About,
        limits: NvmLimits,
        id: &NamespaceId,
        named: UnitIds,
    ) -> Unit {
        let controller = &about.id;
        // Without a limit of its own, Write Zeroes keeps to that of a transfer: some devices apply
        // it.
        let zeroes = match limits.wzsl {
            0 => u64::from(about.limits.max_transfer),
            pages => u32::from(pages)
                .checked_add(u32::from(self.cap.page_shift_min()))
                .and_then(|shift| 1u64.checked_shl(shift))
                .unwrap_or(u64::MAX),
        };
        let zeroes = zeroes
            .checked_shr(u32::from(id.lbads))
            .unwrap_or(0)
            .min(u64::from(BLOCKS_MAX));
        let quirks = self.quirk_set();
        let discard = controller
            .has_discard
            .then(|| id.discard(limits, about.layout.max_ranges()));
        let by_discard = discard.filter(|_| about.layout.zeroes_by_discard);
        let ids = UnitIds {
            eui64: named.eui64.or(id.eui64),
            nguid: named.nguid.or(id.nguid),
            uuid: named.uuid,
            wwn: None,
        };
        // Some are slow across multiples of their largest transfer, and don't say so.
        let stripe = (quirks.has(Quirks::STRIPE_SIZE))
            .then(|| {
                about
                    .limits
                    .max_transfer
                    .checked_shr(u32::from(id.lbads))
                    .unwrap_or(0)
            })
            .filter(|blocks| blocks.is_power_of_two());
        Unit {
            kind: UnitKind::Namespace {
                vendor: controller.vendor,
            },
            id: nsid,
            block_shift: id.lbads,
            physical_shift: id.physical_shift(),
            blocks: id.blocks,
            write_cache: controller.write_cache,
            fua: controller.write_cache,
            discard,
            max_write_zeroes: match by_discard {
                Some(discard) => discard.max_blocks,
                None if quirks.has(Quirks::DISABLE_WRITE_ZEROES) => 0,
                // CAST: at most 65,536.
                None if controller.has_write_zeroes => zeroes as u32,
                None => 0,
            },
            shape: id.shape(stripe),
            read_only: id.write_protected,
            rotational: false,
            ids: match quirks.has(Quirks::BOGUS_NID) {
                true => UnitIds::default(),
                false => ids,
            },
            serial: controller.serial,
            model: controller.model,
            firmware: controller.firmware,
        }
    }
}

/// Where the next NSIDs are.
#[derive(Clone, Copy)]
enum Listed {
    /// In the first page.
    Here,
    /// Nowhere: all up to this one are tried.
    UpTo(u32),
}

/// Why a namespace is not served.
fn refusal(id: &NamespaceId, said: &Descriptors) -> Option<&'static str> {
    let most = |shift: u8| (i64::MAX as u64).checked_shr(u32::from(shift));
    if said.command_set != 0 {
        Some("its command set is not NVM (zoned or key value)")
    } else if id.metadata != 0 {
        Some("its format has metadata")
    } else if id.protected {
        Some("its format has protection information")
    } else if !BLOCK_SHIFTS.contains(&id.lbads) {
        Some("its logical blocks are smaller than 512 bytes or larger than 64 KiB")
    } else if most(id.lbads).is_none_or(|most| id.blocks > most) {
        Some("its capacity is impossible")
    } else {
        None
    }
}
