# SPDX-License-Identifier: GPL-2.0
"""The crates that a source package brings with it.

    vendored.py unpack LOCK CACHE FOLDER    crates of that Cargo.lock, from cargo's archives
    vendored.py prune LOCK USED FOLDER      leaves those of that Cargo.lock; one that cargo tree
                                            has not told of in USED, as it is for other systems,
                                            keeps its name alone
    vendored.py copyright FOLDER LICENCES   paragraphs for debian/copyright

Cargo does the first, too (cargo vendor), but waits for all that build with the same archives.
"""

import hashlib
import json
import re
import shutil
import sys
import tarfile
import tomllib
from pathlib import Path

# What may be linked with GPL-2.0-only. Each has its text in debian/licences.
FREE = {"0BSD", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "ISC", "MIT", "Unicode-3.0",
        "Unlicense", "Zlib"}
# What some may be had under as well. Debian has the text.
BESIDE = {"Apache-2.0"}
COPYRIGHT = re.compile(r"^\W*copyright (?:\(c\) |© )?(\d{4}.*?|[^,.]* contributors)\s*$", re.I)


def fail(why):
    sys.exit(f"vendored.py: {why}")


def locked(lock):
    """(NAME-VERSION, checksum) of what comes from a registry."""
    return [(f"{package['name']}-{package['version']}", package["checksum"])
            for package in tomllib.loads(Path(lock).read_text())["package"]
            if "checksum" in package]


def sums(crate, package):
    """What cargo wants to know of an unpacked crate: none of its files is looked at."""
    (crate / ".cargo-checksum.json").write_text(json.dumps({"files": {}, "package": package}))


def unpack(lock, cache, folder):
    for name, wanted in locked(lock):
        archive = next(Path(cache).glob(f"*/{name}.crate"), None)
        if not archive:
            fail(f"{cache} has no {name}: ci/cargo fetch gets it")
        if hashlib.sha256(archive.read_bytes()).hexdigest() != wanted:
            fail(f"{archive} is not the one that {lock} names")
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="data")
        # What cargo has made the other of, to be read by people; it looks like a patch's rest.
        (Path(folder) / name / "Cargo.toml.orig").unlink(missing_ok=True)
        sums(Path(folder) / name, wanted)


def prune(lock, used, folder):
    # "NAME vVERSION", and where it lies if it is no crate of a registry's.
    told = {"{}-{}".format(*re.match(r"(\S+) v(\S+)", line).groups())
            for line in Path(used).read_text().splitlines() if line}
    stay = dict(locked(lock))
    for crate in Path(folder).iterdir():
        if crate.name in told and crate.name in stay:
            continue
        manifest = (crate / "Cargo.toml").read_text()
        shutil.rmtree(crate)
        if crate.name in stay:
            (crate / "src").mkdir(parents=True)
            (crate / "Cargo.toml").write_text(manifest)
            (crate / "src/lib.rs").write_text("// For other systems; left out here.\n")
            sums(crate, stay[crate.name])


def words(expression):
    """The tokens of a licence expression; a slash is the older way to say OR. Of alternatives the
    one with an exception is not taken."""
    expression = expression.replace("/", " OR ")
    expression = re.sub(r"\S+ WITH \S+ OR | OR \S+ WITH \S+", "", expression)
    return re.findall(r"[()]|[^\s()]+", expression)


def parse(tokens):
    """(whether it may be linked, as debian/copyright puts it, names) of a licence expression."""
    def one():
        token = tokens.pop(0)
        if token != "(":
            return token in FREE, token, {token}
        inner = several()
        if not tokens or tokens.pop(0) != ")":
            raise ValueError
        return inner

    def several():
        free, text, names = one()
        while tokens and tokens[0] in ("AND", "OR"):
            both = tokens.pop(0) == "AND"
            other, more, others = one()
            free = free and other if both else free or other
            # Of "and" and "or" the latter comes first there, unless a comma is before it.
            text += f", and {more}" if both else f" or {more}"
            names |= others
        return free, text, names

    done = several()
    if tokens:
        raise ValueError
    return done


def licence(crate, manifest):
    """(as debian/copyright puts it, names), of a crate that may be linked."""
    expression = manifest.get("license", "none that is named")
    try:
        free, text, names = parse(words(expression))
    except (IndexError, ValueError):
        free = False
    if not free:
        fail(f"{crate} is under {expression}, which hiopsctl can't be linked with, or which"
             " ci/vendored.py does not know")
    return text, names


def holders(crate, manifest):
    """Who has the copyright, as its files or its authors tell."""
    found = set()
    for path in sorted(crate.iterdir()):
        if not re.match(r"(licen[cs]e|copy)", path.name, re.I) or not path.is_file():
            continue
        for line in path.read_text(errors="replace").splitlines():
            who = COPYRIGHT.match(line)
            if who:
                found.add(who.group(1))
    authors = [re.sub(r"\s*<.*?>", "", author) for author in manifest.get("authors", [])]
    return sorted(found) or sorted(authors) or [f"the developers of {manifest['name']}"]


def paragraph(text):
    return "".join(f" {line.rstrip()}\n" if line.strip() else " .\n" for line in text.splitlines())


def copyright(folder, licences):
    used = set()
    for crate in sorted(Path(folder).iterdir()):
        manifest = tomllib.loads((crate / "Cargo.toml").read_text())["package"]
        text, names = licence(crate.name, manifest)
        used |= names
        print(f"\nFiles: vendor/{crate.name}/*\nCopyright:")
        print("".join(f" {holder}\n" for holder in holders(crate, manifest)), end="")
        print(f"License: {text}")
    for name in sorted(used):
        if name in BESIDE:
            text = ("On Debian systems its complete text is in\n"
                    f"/usr/share/common-licenses/{name}.")
        elif (path := Path(licences) / name).exists():
            text = path.read_text()
        else:
            fail(f"the text of {name} is wanted in {path}")
        print(f"\nLicense: {name}\n{paragraph(text)}", end="")


if __name__ == "__main__":
    {"unpack": unpack, "prune": prune, "copyright": copyright}[sys.argv[1]](*sys.argv[2:])
