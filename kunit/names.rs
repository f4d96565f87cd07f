// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of the names that disks go by, where drives share what should be one's alone.

use super::unit::unit;
use crate::blk::gendisk::Names;
use hal::{Unit, UnitIds};
use kernel::prelude::*;

/// A disk whose identifiers no other test's has; `serial` tells drives apart.
fn disk(serial: u8, ids: UnitIds) -> Unit {
    Unit {
        serial: [serial; 20],
        ids,
        ..unit()
    }
}

/// Identifiers of each kind.
fn kinds() -> [UnitIds; 3] {
    let none = UnitIds::default();
    [
        UnitIds {
            eui64: Some(*b"kunit-64"),
            ..none
        },
        UnitIds {
            nguid: Some(*b"kunit has a guid"),
            ..none
        },
        UnitIds {
            uuid: Some(*b"kunit has a uuid"),
            ..none
        },
    ]
}

/// Whether `names` are those of the disk itself.
fn are_own(names: &Result<Names, hal::Error>, unit: &Unit) -> Option<bool> {
    (names.as_ref().ok()).map(|names| *names.ids() == unit.ids)
}

#[kunit_tests(hiops_names)]
mod names_suite {
    use super::*;

    #[test]
    fn of_two_of_a_name_the_first_has_it() {
        for ids in kinds() {
            let (one, other) = (disk(1, ids), disk(2, ids));
            let first = Names::take(&one);
            let second = Names::take(&other);
            assert!(are_own(&first, &one) == Some(true));
            assert!(are_own(&second, &other) == Some(false));
            assert!(second.is_ok_and(|names| *names.ids() == UnitIds::default()));
        }
    }

    #[test]
    fn a_name_is_free_when_its_disk_has_gone() {
        for ids in kinds() {
            let (one, other) = (disk(1, ids), disk(2, ids));
            drop(Names::take(&one));
            assert!(are_own(&Names::take(&other), &other) == Some(true));
        }
    }

    /// A drive with two controllers, or one whose disk is still open as it comes again.
    #[test]
    fn a_disk_is_not_mistaken_for_itself() {
        for ids in kinds() {
            let one = disk(1, ids);
            let first = Names::take(&one);
            let again = Names::take(&one);
            assert!(are_own(&first, &one) == Some(true));
            assert!(are_own(&again, &one) == Some(true));
        }
    }

    #[test]
    fn two_namespaces_of_a_drive_do_not_share_a_name() {
        let [ids, ..] = kinds();
        let one = disk(1, ids);
        let other = Unit {
            id: one.id.wrapping_add(1),
            ..one
        };
        let first = Names::take(&one);
        assert!(are_own(&first, &one) == Some(true));
        assert!(are_own(&Names::take(&other), &other) == Some(false));
    }

    #[test]
    fn who_has_no_name_shares_none() {
        let (one, other) = (disk(1, UnitIds::default()), disk(2, UnitIds::default()));
        let first = Names::take(&one);
        assert!(are_own(&first, &one) == Some(true));
        assert!(are_own(&Names::take(&other), &other) == Some(true));
    }
}
