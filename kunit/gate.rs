// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of the gate: whom it lets in.

use super::GateTo;
use crate::work::Pinned;
use hal::Error;
use kernel::prelude::*;

#[kunit_tests(hiops_gate)]
mod gate_suite {
    use super::*;

    #[test]
    fn it_lets_in_while_it_is_open() -> Result<(), Error> {
        let (gate, owner) = (GateTo::new()?, 5u8);
        assert!(gate.with(|owner: &u8| *owner).is_none());
        // SAFETY: the gate is closed before the owner goes.
        gate.open(unsafe { Pinned::new(&owner) });
        assert!(gate.with(|owner| *owner) == Some(5));
        gate.close();
        assert!(gate.with(|owner| *owner).is_none());
        Ok(())
    }
}
