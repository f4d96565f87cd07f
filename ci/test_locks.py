# SPDX-License-Identifier: GPL-2.0
"""The fuzzer's Cargo.lock, which only ci/fuzz uses, says of the tree's crates what they use now."""

import tomllib
import unittest
from pathlib import Path

RUST = Path(__file__).parent.parent / "rust"


def toml(path):
    return tomllib.loads(path.read_text())


class Locks(unittest.TestCase):
    def test_the_fuzzer_builds_with_its_lock(self):
        ours = [p for p in toml(RUST / "fuzz/Cargo.lock")["package"] if "source" not in p]
        self.assertGreater(len(ours), 5)
        for package in ours:
            crate = toml(RUST / package["name"] / "Cargo.toml")
            uses = set(crate.get("dependencies", {}))
            for target in crate.get("target", {}).values():
                uses |= set(target.get("dependencies", {}))
            self.assertEqual(
                sorted(uses),
                package.get("dependencies", []),
                f"{package['name']}: cd rust/fuzz; cargo update --workspace",
            )


if __name__ == "__main__":
    unittest.main()
