// SPDX-License-Identifier: GPL-2.0
//! Names with values, in the order in which a file of sysfs has them.

use serde::{Serialize, Serializer};

/// An ordered map of a few entries.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pairs<V>(pub(crate) Vec<(String, V)>);

impl<V> Default for Pairs<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V: Copy> Pairs<V> {
    /// The value of `name`.
    pub(crate) fn get(&self, name: &str) -> Option<V> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| *value)
    }
}

impl<V: Serialize> Serialize for Pairs<V> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
