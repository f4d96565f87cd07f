#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""main.py COMMAND [ARG...]: the one way in to what of bench/ is written in Python.

bench/run starts those that are for people, bench/in-guest and bench/timed the others, in a guest.
Of each, main.py COMMAND --help tells the options. A command is a module with options(parser), which
adds them, and run(args), which returns the status, or None for 0.
"""

import argparse
import importlib
import subprocess
import sys

from errors import Failed, Wrong

# What tells of results, on the host; the rest is in a guest.
ON_THE_HOST = {"advise": "advise", "agree": "agree", "barriers": "barriers", "blocks": "blocks",
               "disk": "disk", "histograms": "histograms", "kv-bytes": "kv_bytes",
               "layers": "layers", "memcached": "memcached", "models": "models", "naps": "naps",
               "pages": "pages", "plot": "plot", "plot-blocks": "plot_blocks",
               "plot-front": "plot_front", "plot-memcached": "plot_memcached",
               "plot-session": "plot_session", "plot-sweep": "plot_sweep",
               "plot-timed": "plot_timed", "programs": "programs", "programs-data": "programs_data",
               "read-path": "read_path", "session": "session", "sweep": "sweep", "timed": "timed",
               "timed-result": "timed_result", "waits": "waits", "yardsticks": "yardsticks"}
COMMANDS = {**ON_THE_HOST, "advised": "advised", "blocks-ram": "blocks_ram",
            "extstore": "extstore", "functions": "functions", "handlers": "handlers",
            "histogrammed": "histogrammed", "idle": "idle", "interval": "interval",
            "keyvalue": "keyvalue", "kv-store": "kv_store", "latency": "latency",
            "layered": "layered", "matrix": "matrix", "measure": "measure",
            "naps-jump": "naps_jump", "naps-ram": "naps_ram",
            "programs-guest": "programs_guest", "waited": "waited", "yardstick": "yardstick"}


class Arguments(argparse.ArgumentParser):
    """Tells what is wrong in the project's way."""

    def error(self, message):
        raise Wrong(f"{message} ({self.prog} --help tells the options)")


def parser(name):
    """The command's options, and the module that has it."""
    module = importlib.import_module(COMMANDS[name])
    options = Arguments(prog=f"bench/run {name}", description=module.__doc__,
                        formatter_class=argparse.RawDescriptionHelpFormatter)
    module.options(options)
    return options, module


def main(words):
    """The status: 2 for arguments that are none, 1 where something failed."""
    try:
        if not words or words[0] not in COMMANDS:
            raise Wrong(f"there is no command {' '.join(words[:1])}: {', '.join(COMMANDS)}")
        options, module = parser(words[0])
        return module.run(options.parse_args(words[1:])) or 0
    except Wrong as why:
        print(f"hiops: error: {why}", file=sys.stderr)
        return 2
    except (Failed, OSError, subprocess.SubprocessError) as why:
        print(f"hiops: error: {why}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
