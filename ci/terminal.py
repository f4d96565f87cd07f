#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""terminal.py SOCKET PID: makes this terminal that of a machine, whose console is at SOCKET.

Process PID starts the machine: as long as it runs, the socket may yet come. From the machine's
first word on each key is the machine's, and q is ^C. Status 0 when the machine has closed it.
"""

import os
import select
import socket
import sys
import termios
import time
import tty


def connected(path, pid):
    """The socket, or None where `pid` has ended before there was one."""
    while os.path.exists(f"/proc/{pid}"):
        console = socket.socket(socket.AF_UNIX)
        try:
            console.connect(path)
            return console
        except OSError:
            console.close()
            time.sleep(0.1)
    return None


def relay(console, keys, screen):
    """Carries bytes both ways; True when the console has ended, False when the keys have."""
    kept = None
    try:
        while True:
            ready, _, _ = select.select([console] if kept is None else [console, keys], [], [])
            if console in ready:
                said = console.recv(1 << 16)
                if not said:
                    return True
                # Not before: until then ^C is for whoever boots the machine.
                if kept is None:
                    kept = termios.tcgetattr(keys)
                    tty.setraw(keys)
                while said:
                    said = said[os.write(screen, said):]
            if keys in ready:
                typed = os.read(keys, 4096)
                if not typed:
                    return False
                console.sendall(typed.replace(b"q", b"\x03"))
    except ConnectionError:
        return True
    finally:
        if kept is not None:
            termios.tcsetattr(keys, termios.TCSADRAIN, kept)


def main(path, pid):
    console = connected(path, pid)
    return 0 if console is None or relay(console, 0, 1) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
