// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of the gate: whom it lets in, and what lockdep is told of it.

use super::Gate;
use crate::aim::Stays;
use crate::blk::owner::Owner;
use hal::Error;
use kernel::prelude::*;

#[kunit_tests(hiops_gate)]
mod gate_suite {
    use super::*;

    #[test]
    fn gates_of_all_kinds_are_of_one_lock_class() -> Result<(), Error> {
        // Else lockdep complains of the second kind that is locked.
        assert!(Gate::<u8>::new()?.is_closing());
        assert!(Gate::<dyn Owner>::new()?.is_closing());
        Ok(())
    }

    #[test]
    fn it_lets_in_while_it_is_open() -> Result<(), Error> {
        let (gate, owner) = (Gate::new()?, 5u8);
        assert!(gate.with(|owner: &u8| *owner).is_none());
        // SAFETY: the gate is closed before the owner goes.
        gate.open(unsafe { Stays::new(&owner) });
        assert!(gate.with(|owner| *owner) == Some(5));
        gate.close();
        assert!(gate.with(|owner| *owner).is_none());
        Ok(())
    }
}
