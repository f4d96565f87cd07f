# SPDX-License-Identifier: GPL-2.0
"""session: records hiopsctl's list, bind, stat and unbind on a terminal in a virtual machine, into
docs/session.json. bench/run pages makes the README's moving picture of that (plot_session.py).

What is recorded is what script(1) saw there; the commands are bench/session-in-guest's.
"""

import json
import os
import subprocess
import tempfile

from drives import REPO
from errors import Failed

RECORD = os.path.join(REPO, "docs", "session.json")


def lines(output, timing):
    """[(seconds since the start, line)...] of script's two files: a line is there when its end
    is."""
    # script's own first line is no part of what the timing counts.
    _, _, rest = output.partition(b"\n")
    now, done, line, found = 0.0, 0, b"", []
    for entry in timing.split(b"\n"):
        if not entry:
            continue
        delay, size = entry.split()
        now, done = now + float(delay), done + int(size)
        *whole, line = (line + rest[done - int(size):done]).split(b"\n")
        found += [(now, one) for one in whole]
    if line:
        found.append((now, line))
    return [(round(at, 2), text_of(one)) for at, one in found]


def text_of(line):
    """A line as text; the picture knows no more of a terminal."""
    text = line.decode().rstrip("\r")
    if not text.isprintable():
        raise Failed(f"the recording has more than plain text: {text!r}")
    return text


def machine(folder):
    """What boots it and records there, with an NVMe and a SATA SSD."""
    control = subprocess.run([os.path.join(REPO, "ci", "hiopsctl")], check=True, text=True,
                             stdout=subprocess.PIPE).stdout.strip()
    boot = [os.path.join(REPO, "ci", "vm")]
    devices = {"nvme": "-device nvme,serial=nvme-ssd,drive=nvme,addr=5",
               "sata": "-device ich9-ahci,id=hba,addr=6 "
                       "-device ide-hd,serial=sata-ssd,drive=sata,bus=hba.0"}
    for drive, device in devices.items():
        medium = f"if=none,id={drive},driver=null-co,size=1T,read-zeroes=on"
        boot += ["--qemu", f"-drive {medium} {device}"]
    return [*boot, "--", "bench/session-in-guest", control, folder]


def options(parser):
    """It has none."""


def run(args):
    with tempfile.TemporaryDirectory(dir=REPO, prefix=".session-") as folder:
        if subprocess.run(machine(folder)).returncode:
            raise Failed("the session could not be recorded")
        read = {}
        for name in ("output", "timing"):
            with open(os.path.join(folder, name), "rb") as file:
                read[name] = file.read()
    rows = ",\n".join(json.dumps(line) for line in lines(**read))
    with open(RECORD, "w") as out:
        out.write(f"[\n{rows}\n]\n")
