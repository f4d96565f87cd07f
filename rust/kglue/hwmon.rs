// SPDX-License-Identifier: GPL-2.0
//! A controller's temperatures for the operator's monitoring: the kernel's hwmon, with the in-tree
//! driver's names. The kernel crate has no hwmon (Linux 7.3); `c_shims/hwmon.c` has its tables.

use core::ptr::NonNull;
use hal::{Error, Temperature};
use kernel::bindings;
use kernel::device::Device;
use kernel::error::from_err_ptr;
use kernel::ffi::{c_int, c_long};
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

use crate::blk::ioctl::Gate;
use crate::errno::to_errno;
use crate::platform::now_ms;
use crate::platform::raw_device;
use crate::shims;

/// For how long an answer is good, in milliseconds: a monitor reads all the files at once.
const FRESH_MS: u64 = 1_000;

/// # Invariants
/// `hwmon` is the first field (`repr(C)`), so a pointer to it is one to the whole.
#[repr(C)]
#[pin_data]
struct Shared {
    hwmon: shims::hiops_hwmon,
    gate: Arc<Gate>,
    /// The last answer, and when it came.
    #[pin]
    last: Mutex<Option<(u64, Temperature)>>,
}

/// A device of the hwmon core's.
///
/// # Invariants
/// It is registered: `hiops_hwmon_register()` has made it.
#[repr(transparent)]
struct Registered(NonNull<bindings::device>);

#[allow(clashing_extern_declarations, reason = "bindgen's is unsafe to call")]
#[allow(
    improper_ctypes,
    reason = "of the kernel's structure only the address goes"
)]
// Safe to call: it asks for a device that is registered, which the type's invariant says, and is as
// its header says it: see the constant below.
unsafe extern "C" {
    /// Shows its temperatures no more; a reader is waited for. Sleeps.
    safe fn hiops_hwmon_unregister(device: Registered);
}

const _: [unsafe extern "C" fn(*mut bindings::device); 1] = [shims::hiops_hwmon_unregister];

/// Temperatures that are shown; they go with the drop.
///
/// # Invariants
/// `device` was registered with `_shared`.
pub(crate) struct Thermometer {
    /// Until the drop.
    device: Option<Registered>,
    _shared: Pin<KBox<Shared>>,
}

// SAFETY: any thread that drops it may unregister the device.
unsafe impl Send for Thermometer {}
// SAFETY: nothing is done with a shared one.
unsafe impl Sync for Thermometer {}

impl Thermometer {
    /// Those of the controller behind `gate`, whose device is `parent`; `None`: it has none, or the
    /// kernel has no use for them. Sleeps.
    pub(crate) fn new(gate: Arc<Gate>, parent: &Device) -> Result<Option<Self>, Error> {
        let init = pin_init!(Shared {
            hwmon: shims::hiops_hwmon { read: Some(read) },
            gate,
            last <- new_mutex!(None, "hiops_heat"),
        });
        let shared = KBox::pin_init(init, GFP_KERNEL).map_err(|_| Error::NoMemory)?;
        if shared.value(shims::hiops_heat_HIOPS_HEAT_NOW, 0).is_err() {
            return Ok(None);
        }
        let hwmon = (&raw const shared.hwmon).cast_mut();
        // SAFETY: the core takes a reference of the parent; the other is valid until the drop,
        // which unregisters the device.
        let device = unsafe { shims::hiops_hwmon_register(raw_device(parent), hwmon) };
        let device = from_err_ptr(device).map_err(crate::errno::from_errno)?;
        // INVARIANT: just registered.
        Ok(NonNull::new(device).map(|device| Self {
            device: Some(Registered(device)),
            _shared: shared,
        }))
    }
}

impl Drop for Thermometer {
    fn drop(&mut self) {
        if let Some(device) = self.device.take() {
            hiops_hwmon_unregister(device);
        }
    }
}

impl Shared {
    /// What an attribute says. Sleeps.
    fn value(&self, what: shims::hiops_heat, channel: c_int) -> Result<c_long, Error> {
        let temperature = self.temperature()?;
        let sensor = usize::try_from(channel).map_err(|_| Error::Unsupported)?;
        let value = match (what, sensor.checked_sub(1)) {
            (shims::hiops_heat_HIOPS_HEAT_NOW, None) => Some(temperature.composite),
            (shims::hiops_heat_HIOPS_HEAT_NOW, Some(at)) => {
                temperature.sensors.get(at).copied().flatten()
            }
            (shims::hiops_heat_HIOPS_HEAT_WARNING, None) => temperature.warning,
            (shims::hiops_heat_HIOPS_HEAT_CRITICAL, None) => temperature.critical,
            (shims::hiops_heat_HIOPS_HEAT_ALARM, None) => Some(i32::from(temperature.alarm)),
            _ => None,
        };
        // CAST: 32 bits fit.
        value.map(|value| value as c_long).ok_or(Error::Unsupported)
    }

    fn temperature(&self) -> Result<Temperature, Error> {
        let mut last = self.last.lock();
        if let Some((_, temperature)) =
            last.filter(|(at, _)| now_ms().saturating_sub(*at) < FRESH_MS)
        {
            return Ok(temperature);
        }
        let temperature = self
            .gate
            .with(|owner| owner.temperature())
            .unwrap_or(Err(Error::Gone))?;
        let temperature = temperature.ok_or(Error::Unsupported)?;
        *last = Some((now_ms(), temperature));
        Ok(temperature)
    }
}

/// # Safety
/// Called with the `hwmon` of a [`Shared`] that is alive, and a place for the value.
unsafe extern "C" fn read(
    from: *mut shims::hiops_hwmon,
    what: shims::hiops_heat,
    channel: c_int,
    value: *mut c_long,
) -> c_int {
    // SAFETY: by the caller's promise, and the invariant of `Shared`.
    let (shared, value) = unsafe { (&*from.cast::<Shared>(), &mut *value) };
    match shared.value(what, channel) {
        Ok(read) => {
            *value = read;
            0
        }
        Err(error) => to_errno(error).to_errno(),
    }
}
