// SPDX-License-Identifier: GPL-2.0
//! The drive's volatile write cache: on or off, as the operator says (ACS-4 section 7.43.2).
//!
//! What was told of a cache that is off has to stay true: nobody flushes what has none. A drive may
//! have its cache on again after it lost power, or even a reset, so it is turned off again before
//! the first command of the data path.

use crate::command::SET_FEATURES;
use crate::fis::Taskfile;
use crate::identify::DriveId;
use crate::pass::{AtaCommand, Transfer};
use crate::port::{About, Port, State};
use crate::step::Step;
use hal::{Error, Mmio, Platform};

/// SET FEATURES: the subcommands.
const ON: u16 = 0x02;
const OFF: u16 = 0x82;
/// How long a drive may take to turn it off. TIMEOUT: it writes first what is in it, as by a flush.
const OFF_US: u64 = 30_000_000;

impl AtaCommand {
    /// Turns the cache on or off.
    fn turning_cache(on: bool) -> Self {
        Self {
            command: SET_FEATURES,
            features: if on { ON } else { OFF },
            ..Self::default()
        }
    }

    /// Whether it turns the drive's write cache on or off.
    pub fn turns_cache(&self) -> bool {
        // Of the features, 28-bit commands have the lower half.
        self.command == SET_FEATURES && matches!(self.features & 0xff, ON | OFF)
    }
}

impl<P: Platform, M: Mmio> Port<P, M> {
    /// See [`hal::Controller::set_write_cache`].
    pub(crate) fn set_write_cache(
        &self,
        state: &mut State,
        on: bool,
    ) -> Result<Result<(), &'static str>, Error> {
        let command = AtaCommand::turning_cache(on);
        let reply = self.pass(state, &command, &Transfer::Nothing, 0, &|| false)?;
        Ok(match reply.is_failure() {
            true => Err("the drive refuses that"),
            false => Ok(()),
        })
    }

    /// The drive that was just asked what it is, without a cache if the one `before` was told of as
    /// one without, and it is that. The command list runs, and nothing is with the device.
    pub(crate) fn as_promised(&self, before: &DriveId, now: About) -> Result<About, Error> {
        let cache_is_back = now.id.write_cache && !before.write_cache;
        if !cache_is_back || !now.id.but_for_cache(before).is_same(before) {
            return Ok(now);
        }
        let command = AtaCommand::turning_cache(false);
        let taskfile = Taskfile {
            command: command.command,
            features: command.features,
            ..Taskfile::default()
        };
        // One that refuses is not what was promised.
        self.unless_refused(self.own(Step::SetFeatures, taskfile, OFF_US))?;
        self.asked_again(now)
    }

    /// The drive `before`, which was told to change, as it is now.
    pub(crate) fn asked_again(&self, before: About) -> Result<About, Error> {
        let (id, _) = self.identity()?.map_err(|_| Error::Malformed)?;
        match id.but_for_cache(&before.id).is_same(&before.id) {
            true => Ok(About { id, ..before }),
            false => Err(Error::Malformed),
        }
    }
}

impl DriveId {
    /// This one, with what `other` says of its cache.
    fn but_for_cache(self, other: &Self) -> Self {
        Self {
            write_cache: other.write_cache,
            ..self
        }
    }
}
