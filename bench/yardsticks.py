# SPDX-License-Identifier: GPL-2.0
"""Is the timed machine right?

Boots it once for each model, and the first model's once more with two vCPUs, and holds
bench/yardstick.py's known lengths against it. Status 0 when all are right.
"""

import os
import shlex
import subprocess

import models
import yardstick

DEFAULT = ("tlc", "lowlat", "sata", "instant")
HERE = os.path.dirname(os.path.abspath(__file__))


def boot(model, cpus):
    """The status of the yardsticks in a boot of the timed machine with `model`."""
    return subprocess.run(
        [os.path.join(HERE, "..", "ci", "vm"), "--timed", "--cpus", str(cpus), "--timeout", "900",
         "--qemu", shlex.join(yardstick.arguments(model)), "--", "python3",
         os.path.join(HERE, "main.py"), "yardstick", "--model", model.name, "--idle",
         "nvme,ahci,hiops_nvme,hiops_ahci"],
        env={**os.environ, **model.environment()}).returncode


def options(parser):
    parser.add_argument("model", nargs="*", default=DEFAULT, help=f"({' '.join(DEFAULT)})")


def run(args):
    wanted = [models.load(name) for name in args.model]
    subprocess.run([os.path.join(HERE, "build")], check=True)
    status = 0
    for model, cpus in [(model, 1) for model in wanted] + [(wanted[0], 2)]:
        print(f"== {model.name}, {cpus} vCPU: {model.device}", flush=True)
        status = boot(model, cpus) or status
    return status
