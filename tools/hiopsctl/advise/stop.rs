// SPDX-License-Identifier: GPL-2.0
//! The signals that end a measurement early: it ends what it has begun first, and gives the drive
//! back.

use crate::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether a program has ended, or is to end.
const LOOK: Duration = Duration::from_millis(20);

/// Whether somebody wants it to end.
#[derive(Debug)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// From now on ^C, a lost terminal and `kill` only say so.
    ///
    /// # Errors
    /// The kernel takes no handler.
    pub(crate) fn new() -> Result<Self, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            flag::register(signal, Arc::clone(&stop))
                .map_err(|error| Failure::io("signals can't be handled", &error))?;
        }
        Ok(Self(stop))
    }

    /// # Errors
    /// It is to end.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.0.load(Ordering::Relaxed) {
            let way_out = "the drive is as it was; run it again, it takes no part results";
            return Err(Failure::new("it was interrupted", way_out));
        }
        Ok(())
    }

    /// Waits for `child`, and calls `look` now and then meanwhile.
    ///
    /// # Errors
    /// It is to end: `child` was killed, and is gone.
    pub(crate) fn wait(
        &self,
        child: &mut Child,
        mut look: impl FnMut(),
    ) -> Result<ExitStatus, Failure> {
        loop {
            let ended = child.try_wait();
            match ended.map_err(|error| Failure::io("a program can't be waited for", &error))? {
                Some(status) => return Ok(status),
                None => std::thread::sleep(LOOK),
            }
            look();
            if let Err(stopped) = self.check() {
                // It reads only: nothing is lost with it. What it has open is closed with it.
                drop(child.kill());
                drop(child.wait());
                return Err(stopped);
            }
        }
    }
}

/// `command` with its outputs kept, and out of a terminal's reach: ^C there is for this program,
/// which then ends the others in their order.
pub(crate) fn apart(command: &mut Command) -> &mut Command {
    use std::os::unix::process::CommandExt;
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
}
