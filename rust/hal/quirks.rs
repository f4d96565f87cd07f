// SPDX-License-Identifier: GPL-2.0
//! What is known of devices that do not do what they say: who made one, and what it is spared.
//!
//! A driver keeps its own set of quirks ([`crate::quirk_set`]) and its own table of who has which.
//! It learns who the device is before it touches it ([`PciIds`]), and more when the device names
//! itself. The layer above learns the names ([`crate::Controller::quirks`]), and what it has to
//! keep to before the controller is made: how far the device reaches, and how it may interrupt
//! ([`Messages`]).

/// Who made a PCI function, from its configuration space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PciIds {
    /// Vendor ID.
    pub vendor: u16,
    /// Device ID, which the vendor gives.
    pub device: u16,
    /// Subsystem vendor ID: who built the card, or the machine.
    pub subvendor: u16,
    /// Subsystem ID, which that one gives.
    pub subdevice: u16,
    /// Revision ID.
    pub revision: u8,
}

/// Which message-signalled interrupts a device can be trusted with, beside its pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// MSI.
    pub msi: bool,
    /// MSI-X.
    pub msix: bool,
    /// More than one, of whatever kind.
    pub many: bool,
}

impl Messages {
    /// All that it offers.
    pub const ALL: Self = Self {
        msi: true,
        msix: true,
        many: true,
    };
    /// None: it keeps to its pin.
    pub const NONE: Self = Self {
        msi: false,
        msix: false,
        many: false,
    };
}

/// Declares a set of quirks, each with the name that an operator reads.
///
/// ```
/// hal::quirk_set! {
///     /// What these drives are spared.
///     pub struct Quirks {
///         /// Commands are not queued.
///         NO_QUEUE = "noqueue",
///         /// Nothing is discarded.
///         NO_DISCARD = "nodiscard",
///     }
/// }
/// let both = Quirks::NO_QUEUE.with(Quirks::NO_DISCARD);
/// assert!(both.has(Quirks::NO_DISCARD) && !both.without(Quirks::NO_QUEUE).has(Quirks::NO_QUEUE));
/// let mut names = Vec::new();
/// both.each(&mut |name| names.push(name));
/// assert_eq!(names, ["noqueue", "nodiscard"]);
/// ```
#[macro_export]
macro_rules! quirk_set {
    (
        $(#[$about:meta])*
        $vis:vis struct $Set:ident {
            $($(#[$doc:meta])* $QUIRK:ident = $name:literal,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $vis struct $Set(u64);

        const _: () = {
            #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
            enum Place {
                $($QUIRK,)+
            }

            #[allow(dead_code)]
            impl $Set {
                $($(#[$doc])* $vis const $QUIRK: Self = Self(1 << Place::$QUIRK as u32);)+

                /// No quirk.
                $vis const NONE: Self = Self(0);

                /// All names, in the order of their bits.
                $vis const NAMES: &'static [&'static str] = &[$($name,)+];

                /// These and `others`.
                $vis const fn with(self, others: Self) -> Self {
                    Self(self.0 | others.0)
                }

                /// These without `others`.
                $vis const fn without(self, others: Self) -> Self {
                    Self(self.0 & !others.0)
                }

                /// Whether all of `others` are among these.
                #[inline]
                $vis const fn has(self, others: Self) -> bool {
                    self.0 & others.0 == others.0
                }

                /// The set as a word, to be kept in an atomic.
                $vis const fn bits(self) -> u64 {
                    self.0
                }

                /// The set that [`Self::bits`] gave.
                $vis const fn from_bits(bits: u64) -> Self {
                    Self(bits)
                }

                /// Tells the names to `named`, in the order of the declaration.
                $vis fn each(self, named: &mut dyn FnMut(&'static str)) {
                    for (at, name) in (0u32..).zip(Self::NAMES) {
                        if self.0.wrapping_shr(at) & 1 != 0 {
                            named(name);
                        }
                    }
                }
            }
        };
    };
}
