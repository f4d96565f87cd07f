# SPDX-License-Identifier: GPL-2.0
"""What packages are made of: the version of a tree, the source of DKMS, others' crates, pages."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import vendored

TREE = Path(__file__).parent.parent
PAGES = TREE / "tools/man"
# Files of a disk that every disk has, of whatever driver.
OF_ANY_DISK = {"serial", "model", "firmware_rev", "wwid", "nsid", "port_no", "hiops"}
NUMBER = re.search(r"\((.*?)\)", (TREE / "debian/changelog").read_text()).group(1)


def run(*command, cwd, **env):
    """What it prints."""
    kept = {name: value for name, value in os.environ.items() if name != "HIOPS_VERSION"}
    return subprocess.run(command, cwd=cwd, env=kept | env, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


class Version(unittest.TestCase):
    """ci/version of a small tree."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = Path(folder.name)
        for name in ("c_shims", "rust", "kunit", "tools", "ci", "debian", "docs"):
            (self.tree / name).mkdir()
        for name in ("Kbuild", "Cargo.toml", "Cargo.lock", "tools/tool"):
            (self.tree / name).write_text("first\n")
        shutil.copy(TREE / "ci/version", self.tree / "ci")
        shutil.copy(TREE / "debian/changelog", self.tree / "debian")

    def git(self, *command):
        me = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        return run("git", *me, *command, cwd=self.tree, GIT_CONFIG_GLOBAL="/dev/null")

    def commit(self, name, text):
        (self.tree / name).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-qm", text)
        return self.git("rev-parse", "HEAD")[:8]

    def version(self):
        return run("ci/version", cwd=self.tree)

    def test_without_git_it_is_of_what_is_there(self):
        first = self.version()
        self.assertRegex(first, rf"^{re.escape(NUMBER)}\+git0\.[0-9a-f]{{8}}$")
        (self.tree / "tools/tool").write_text("second\n")
        self.assertNotEqual(self.version(), first)

    def test_it_names_the_last_commit_that_changed_what_is_built(self):
        self.git("init", "-q", ".")
        first = self.commit("Kbuild", "one\n")
        self.assertEqual(self.version(), f"{NUMBER}+git1.{first}")
        self.commit("docs/page", "docs\n")
        self.assertEqual(self.version(), f"{NUMBER}+git1.{first}")
        second = self.commit("tools/tool", "two\n")
        self.assertEqual(self.version(), f"{NUMBER}+git2.{second}")

    def test_what_is_not_committed_has_a_name_of_its_own(self):
        self.git("init", "-q", ".")
        clean = f"{NUMBER}+git1.{self.commit('Kbuild', 'one')}"
        (self.tree / "tools/tool").write_text("three\n")
        changed = self.version()
        self.assertRegex(changed, rf"^{re.escape(clean)}\.[0-9a-f]{{8}}$")
        (self.tree / "tools/new").write_text("new\n")
        self.assertNotIn(self.version(), (changed, clean))

    def test_a_shallow_clone_does_not_count(self):
        self.git("init", "-q", ".")
        self.commit("Kbuild", "one\n")
        last = self.commit("Kbuild", "two\n")
        self.git("clone", "-q", "--depth=1", f"file://{self.tree}", "clone")
        self.assertEqual(run("ci/version", cwd=self.tree / "clone"), f"{NUMBER}+git0.{last}")

    def test_a_guest_is_told(self):
        self.assertEqual(run("ci/version", cwd=self.tree, HIOPS_VERSION="told"), "told")


class DkmsSource(unittest.TestCase):
    def test_it_is_what_the_module_is_built_of(self):
        with tempfile.TemporaryDirectory() as folder:
            run("tools/dkms-source", folder, cwd=TREE, HIOPS_VERSION="1")
            files = {str(path.relative_to(folder)) for path in Path(folder).rglob("*")}
            self.assertEqual((Path(folder) / "version").read_text(), "1\n")
        kbuild = (TREE / "Kbuild").read_text()
        for crate in re.findall(r"\(call crate,(\w+),", kbuild):
            self.assertIn(f"rust/{crate}/{crate}.rs", files)
        for name in ("dkms.conf", "preflight", "build-for", "symbols", "c_shims/params.c"):
            self.assertIn(name, files)
        of_tests = re.compile(r"(^|/)(tests|corpus|fuzz|testkit|kunit|mock)(/|\.rs$|$)")
        self.assertEqual([name for name in files if of_tests.search(name)], [])


def crate(folder, name, licence, **files):
    """An unpacked crate NAME-VERSION."""
    at = Path(folder) / name
    (at / "src").mkdir(parents=True)
    package, version = name.rsplit("-", 1)
    (at / "Cargo.toml").write_text(f'[package]\nname = "{package}"\nversion = "{version}"\n'
                                   f'license = "{licence}"\nauthors = ["A. U. Thor <a@b>"]\n')
    (at / "src/lib.rs").write_text("pub fn f() {}\n")
    for file, text in files.items():
        (at / file.replace("_", "-")).write_text(text)
    return at


class Vendored(unittest.TestCase):
    """ci/vendored.py."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def told(self):
        """What debian/copyright would have of the crates there."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            vendored.copyright(self.folder, TREE / "debian/licences")
        return out.getvalue()

    def test_a_licence_as_debian_puts_it(self):
        for given, wanted, names in (
                ("MIT", "MIT", {"MIT"}),
                ("MIT/Apache-2.0", "MIT or Apache-2.0", {"MIT", "Apache-2.0"}),
                ("(MIT OR Apache-2.0) AND Unicode-3.0", "MIT or Apache-2.0, and Unicode-3.0",
                 {"MIT", "Apache-2.0", "Unicode-3.0"})):
            self.assertEqual(vendored.licence("a", {"license": given}), (wanted, names))

    def test_what_may_not_be_linked_is_refused(self):
        for given in ("Apache-2.0", "MIT AND Apache-2.0", "GPL-3.0-only", "(MIT", "MIT AND", ""):
            with self.assertRaisesRegex(SystemExit, "some-crate is under"):
                vendored.licence("some-crate", {"license": given})
        with self.assertRaisesRegex(SystemExit, "none that is named"):
            vendored.licence("some-crate", {})

    def test_each_crate_has_a_paragraph_and_each_licence_its_text(self):
        crate(self.folder, "one-1.0.0", "MIT OR Apache-2.0",
              LICENSE_MIT="Copyright (c) 2015 Some One <one@example.org>\nThe above copyright")
        crate(self.folder, "two-2.0.0", "Zlib")
        told = self.told()
        self.assertIn("Files: vendor/one-1.0.0/*\nCopyright:\n 2015 Some One <one@example.org>\n"
                      "License: MIT or Apache-2.0\n", told)
        self.assertIn("Files: vendor/two-2.0.0/*\nCopyright:\n A. U. Thor\nLicense: Zlib\n", told)
        for name, text in (("MIT", "Permission is hereby"), ("Zlib", "This software is provided"),
                           ("Apache-2.0", "On Debian systems")):
            self.assertIn(f"\nLicense: {name}\n {text}", told)

    def test_a_licence_without_its_text_is_told(self):
        crate(self.folder, "one-1.0.0", "0BSD")
        with self.assertRaisesRegex(SystemExit, "the text of 0BSD is wanted"):
            self.told()

    def test_what_is_for_other_systems_keeps_its_name(self):
        lock, used = Path(self.folder) / "lock", Path(self.folder) / "used"
        lock.write_text("".join(f'[[package]]\nname = "{name}"\nversion = "1.0.0"\n'
                                f'checksum = "{name}"\n' for name in ("here", "windows")))
        used.write_text("hiopsctl v0.1.0 (/tree)\nhere v1.0.0\n")
        crates = Path(self.folder) / "vendor"
        for name in ("here-1.0.0", "windows-1.0.0", "tests-1.0.0"):
            crate(crates, name, "MIT")
        vendored.prune(lock, used, crates)
        self.assertEqual({at.name for at in crates.iterdir()}, {"here-1.0.0", "windows-1.0.0"})
        self.assertIn("pub fn", (crates / "here-1.0.0/src/lib.rs").read_text())
        self.assertNotIn("pub fn", (crates / "windows-1.0.0/src/lib.rs").read_text())
        self.assertEqual(json.loads((crates / "windows-1.0.0/.cargo-checksum.json").read_text()),
                         {"files": {}, "package": "windows"})


class Pages(unittest.TestCase):
    def entries(self, page):
        """What has an entry of its own there."""
        return set(re.findall(r"^\.T[PQ]\n\.B ([a-z_]+)$", (PAGES / page).read_text(), re.M))

    def test_every_switch_and_parameter_has_an_entry(self):
        sysfs = (TREE / "rust/kglue/sysfs.rs").read_text()
        params = (TREE / "c_shims/params.c").read_text()
        known = set(re.findall(r'c_str!\("([a-z_]+)"\)', sysfs)) - OF_ANY_DISK
        known |= set(re.findall(r"^HIOPS_(?:PARAM|CHOICE)\((\w+),", params, re.M))
        self.assertGreater(len(known), 50)
        self.assertEqual(known - self.entries("hiops-switches.7"), set())

    def test_a_default_is_the_modules(self):
        page = (PAGES / "hiops-switches.7").read_text()
        params = (TREE / "c_shims/params.c").read_text()
        defaults = dict(re.findall(r"^\t\.(\w+) = (\d+),", params, re.M))
        for name in re.findall(r"^HIOPS_PARAM\((\w+),", params, re.M):
            wanted = rf"\.B {name}\n[^.]*\({defaults.get(name, '0')}\)\n"
            self.assertRegex(page, wanted, name)

    def test_groff_has_nothing_against_them(self):
        for page in sorted(PAGES.glob("*.[1-9]")):
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z", page.name], cwd=PAGES,
                                  text=True, capture_output=True)
            # One that stands for another says so.
            if not re.search(r"^\.so ", page.read_text(), re.M):
                self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)

    def test_what_they_refer_to_is_there(self):
        pages = {page.name for page in PAGES.glob("*.[1-9]")} | {"hiopsctl.8"}
        for page in PAGES.glob("*.[1-9]"):
            for name, section in re.findall(r"\b(hiops[a-z-]*) ?\((\d)\)", page.read_text()):
                self.assertIn(f"{name}.{section}", pages, page.name)


if __name__ == "__main__":
    unittest.main()
