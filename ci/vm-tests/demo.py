#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""demo.py COMMAND: runs it on a terminal of its own as a person would, who waits until both disks
have IOPS and types q. Says in a line each what was seen; what the terminal showed goes to stderr.
"""

import os
import pty
import re
import select
import subprocess
import sys
import termios

DISKS = "hiops0n1", "hiops1d0"
# A whole screen drawn by moves of the cursor: each of these is room between two words.
MOVES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


def has_iops(shown):
    """Both disks have had a line with more than no I/O."""
    text = MOVES.sub(b" ", shown).decode(errors="replace")
    return all(re.search(rf"{disk}\s+[1-9]\d*", text) for disk in DISKS)


def main(command):
    person, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (30, 110))
    before = termios.tcgetattr(terminal)
    demo = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal,
                            start_new_session=True)
    shown, asked = b"", False
    try:
        while demo.poll() is None:
            if not (ready := select.select([person], [], [], 1)[0]):
                continue
            shown += os.read(ready[0], 1 << 16)
            if not asked and has_iops(shown):
                print("both drives have IOPS", flush=True)
                os.write(person, b"q")
                asked = True
    finally:
        sys.stderr.buffer.write(shown)
        demo.terminate()
    if asked and demo.returncode == 0:
        print("q ends it with status 0")
    if termios.tcgetattr(terminal) == before:
        print("the terminal is as it was")


if __name__ == "__main__":
    main(sys.argv[1:])
