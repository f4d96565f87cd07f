# SPDX-License-Identifier: GPL-2.0
"""One boot of the timed machine, with a drive of a model that keeps data for each side: what a
store or a program is measured in (memcached.py, kv_bytes.py, programs.py). Result in
bench/results/, by the machine's clock.
"""

import os
import shlex
import subprocess
import tempfile

import account
import counting
import models
import record
import timed
import timed_result
import yardstick
from drives import HERE
from errors import Failed
from matrix import COSTS
from stage import Stage

# What boots it begins with.
BEGINS = (os.path.join(HERE, "..", "ci", "vm"), "--timed", "--cpus", "1", "--timeout",
          str(timed.LIMIT))
# A drive that keeps what it is given.
STORE = "store=1"


def plugin(scratch, options=""):
    """QEMU's argument of the counting plugin, whose counts go into `scratch`; the `options` begin
    with a comma."""
    out = os.path.join(scratch, "counts").replace(",", ",,")
    return ["--qemu", f"-plugin '{HERE.replace(',', ',,')}/.build/libcount.so{options},out={out}'"]


def command(args, model, scratch, slots, words):
    """What boots the machine, with a drive in each of `slots` {side: PCI slot}; `words` are
    main.py's in it."""
    boot = [*BEGINS, *plugin(scratch)]
    if not args.unheld:
        boot += ["--qemu", shlex.join(yardstick.arguments(model))]
    for slot in slots.values():
        boot += timed.drive(model, model.kind, slot, 1)
    places = ",".join(f"{side}=0000:00:{slot:x}.0" for side, slot in slots.items())
    boot += ["--", "python3", os.path.join(HERE, "main.py"), *words,
             "--counts", os.path.join(scratch, "counts"),
             "--places", places, "--model", model.name, "--set", STORE,
             "--json", os.path.join(scratch, "json")]
    return boot + (["--yardsticks"] if not args.unheld else [])


def result_of(model, command):
    """The result of the boot that `command`(scratch) says: the JSON in that folder."""
    os.makedirs(f"{HERE}/results", exist_ok=True)
    subprocess.run([os.path.join(HERE, "build")], check=True)
    with tempfile.TemporaryDirectory(dir=f"{HERE}/results") as scratch:
        with open(os.path.join(scratch, "counts"), "w"):
            pass  # the plugin's, which the guest may read before there is anything in it
        done = subprocess.run(command(scratch), env={**os.environ, **model.environment()})
        if done.returncode:
            raise Failed(f"the machine ended with status {done.returncode}; no result was written")
        return {"model": model.name, "device": model.device, "scale": models.SCALE,
                **record.load(os.path.join(scratch, "json"))}


def measured(args, slots, words):
    """The result of a boot; `words` and `slots` as command() has them."""
    model = models.varied(models.load(args.model), STORE)
    return result_of(model, lambda scratch: command(args, model, scratch, slots, words))


def save(name, args, result):
    """Puts the result into its place."""
    words = [name, "" if result["model"] == "tlc" else result["model"], args.label]
    path_of = os.path.join(HERE, "results", "-".join(filter(None, words)) + ".json")
    with open(path_of, "w") as out:
        out.write(timed_result.text_of(result))


def options(parser):
    """Those of every such measurement, outside."""
    parser.add_argument("--model", default="tlc", help="one of bench/models (tlc)")
    parser.add_argument("--label", default="", help="added to the result's name")
    parser.add_argument("--unheld", action="store_true", help="without the yardsticks")


def guest_options(parser):
    """Those that command() gives, inside."""
    parser.add_argument("--counts", required=True, help="the plugin's out= file")
    parser.add_argument("--places", required=True, help="SIDE=ADDRESS,...: each side's drive")
    parser.add_argument("--model", required=True)
    parser.add_argument("--set", default="")
    parser.add_argument("--yardsticks", action="store_true")
    parser.add_argument("--json", required=True, help="where the results go")


def prepared(args):
    """Inside, before anything is measured: (the Stage, {side: its drive's address})."""
    counting.quiet()
    model = models.varied(models.load(args.model), args.set)
    if args.yardsticks:
        yardstick.hold(yardstick.readings(model))
    stage = Stage(args.counts, account.Costs(*(model.guest_ns(key) for key in COSTS)))
    return stage, dict(one.split("=") for one in args.places.split(","))
