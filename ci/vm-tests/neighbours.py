# SPDX-License-Identifier: GPL-2.0
"""neighbours.py FILE DISK...: writes and reads back on each DISK until FILE is there. Says what was
wrong; status 1 where something was, or an I/O failed or has no end."""

import os
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults"))
import load  # noqa: E402

# This machine has a CPU or two, and others are to have some of it.
load.THREADS = 2

loads = [load.Load(disk, 0) for disk in sys.argv[2:]]
while not os.path.exists(sys.argv[1]):
    time.sleep(0.1)
bad = False
for one in loads:
    ended = one.stop(60)
    if not ended or not one.done or one.failed or one.wrong:
        bad = True
        print(f"{one.disk}: {one.done} done, {one.failed} failed, {one.wrong} wrong,"
              f" {'all' if ended else 'not all'} ended")
sys.exit(bad)
