# SPDX-License-Identifier: GPL-2.0
"""Device models of the timed machine: bench/models/, checked, and what QEMU is told of them.

Their figures are real time. The machine's is SCALE times as slow: its clock is one instruction a
nanosecond, a core of today does about four. So all that is no instruction takes four times as
long, too, and what a model's user sees is in proportion. JSON has the machine's units; what people
read has real ones (table.real()): times divided by SCALE, IOPS multiplied by it.
"""

import dataclasses
import os
import tomllib

from errors import Wrong

SCALE = 4
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models")
# A drive's size: it takes as much of the host's memory as has been written to one that keeps it.
SIZE = 4 << 30
# What one AHCI port has, and one NCQ drive: QEMU offers no other number.
SATA_SLOTS = 32

# The numbers of a model: key -> (least, most). Above a second nothing is a drive's latency any
# more, above a millisecond nothing a register access.
NUMBERS = {
    "queue_slots": (2, 2048),
    "latency_ns": (0, 10**9),
    "write_latency_ns": (0, 10**9),
    "flush_latency_ns": (0, 10**9),
    "spread_percent": (0, 100),
    "tail_permille": (0, 1000),
    "tail_ns": (0, 10**9),
    "channels": (0, 1024),
    "link_mb_s": (0, 10**6),
    "store": (0, 1),
    "block_bytes": (512, 4096),
    "bit_buckets": (0, 1),
    "register_read_ns": (0, 10**6),
    "register_write_ns": (0, 10**6),
    "interrupt_ns": (0, 10**6),
}
TEXTS = ("name", "device", "source", "kind")
KINDS = ("nvme", "sata")


class BadModel(Wrong):
    """A model that is not there, or that has nonsense in it; the text names file and key."""


@dataclasses.dataclass(frozen=True)
class Model:
    """One device model, in real time."""

    name: str
    device: str             # what it stands for
    source: str             # where its figures are from
    kind: str               # nvme or sata: how it is attached unless the user says otherwise
    queue_slots: int        # commands that a queue holds
    latency_ns: int         # of a read that nothing disturbs
    write_latency_ns: int
    flush_latency_ns: int
    spread_percent: int     # a command's latency differs by up to so much, evenly distributed
    tail_permille: int      # so many of 1000 commands, at random, take tail_ns longer
    tail_ns: int
    channels: int           # commands served at once, others wait; 0: all
    link_mb_s: int          # then their data goes over a link, one at a time; 0: at once
    store: int              # 1: the drive keeps what is written; 0: it reads as zeroes
    block_bytes: int        # 512 or 4096: a logical block of an NVMe drive
    bit_buckets: int        # 1: an NVMe drive leaves out what a read's SGL says (bench/qemu)
    register_read_ns: int   # of the machine around it: a read that waits for the device,
    register_write_ns: int  # a posted write,
    interrupt_ns: int       # an interrupt's entry and exit

    def changed(self, **values):
        """The model with other `values`, for what is compared with it."""
        return dataclasses.replace(self, **values)

    def drive(self, name, seed=1):
        """The argument of QEMU's -drive for the drive `name`; `seed` begins its random numbers."""
        ns = {key: SCALE * getattr(self, key)
              for key in ("latency_ns", "write_latency_ns", "flush_latency_ns", "tail_ns")}
        options = {"if": "none", "id": name, "driver": "null-co", "size": SIZE,
                   "read-zeroes": "on", **ns, "spread_percent": self.spread_percent,
                   "tail_permille": self.tail_permille, "channels": self.channels, "seed": seed}
        if self.link_mb_s:
            options["link_mb_s"] = self.link_mb_s // SCALE
        if self.store:
            # What is discarded reads as zeroes, which the drive promises.
            options |= {"store": "on", "discard": "unmap"}
        return ",".join(f"{key.replace('_', '-')}={value}" for key, value in options.items())

    def nvme(self):
        """What a -device nvme gets with it. Without ioeventfd: its doorbells are the machine's
        time, not the host's."""
        words = [f"mqes={self.queue_slots - 1}", "ioeventfd=off"]
        if self.block_bytes != 512:
            words += [f"{which}_block_size={self.block_bytes}" for which in ("logical", "physical")]
        if self.bit_buckets:
            words.append("bit-buckets=on")
        return ",".join(words)

    def environment(self):
        """The VT_* variables of a boot with this model's machine around it."""
        return {"VT_READ_NS": str(SCALE * self.register_read_ns),
                "VT_WRITE_NS": str(SCALE * self.register_write_ns),
                "VT_IRQ_NS": str(SCALE * self.interrupt_ns)}

    def guest_ns(self, key):
        """One of its times as the guest's clock shows it."""
        return SCALE * getattr(self, key)

    def mean_ns(self):
        """What a read takes on average, alone on the drive, by the guest's clock."""
        return SCALE * (self.latency_ns + self.tail_ns * self.tail_permille / 1000)


def known(folder=FOLDER):
    """The names of all models."""
    return sorted(file[:-5] for file in os.listdir(folder) if file.endswith(".toml"))


def number(path, table, key):
    """The value of `key`, a whole number within its bounds."""
    least, most = NUMBERS[key]
    value = table[key]
    # A bool is an int to Python, and no number to a reader.
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadModel(f"{path}: {key}: a whole number is needed, not {value!r}")
    if not least <= value <= most:
        raise BadModel(f"{path}: {key}: {value} is not from {least} to {most}")
    return value


def text(path, table, key):
    """The value of `key`, words."""
    value = table[key]
    if not isinstance(value, str) or not value.strip():
        raise BadModel(f"{path}: {key}: words are needed, not {value!r}")
    return " ".join(value.split())


def parse(path, table):
    """The Model that the file `path` describes by `table`."""
    wanted = (*TEXTS, *NUMBERS)
    for key in table:
        if key not in wanted:
            raise BadModel(f"{path}: {key}: there is no such key; known: {', '.join(wanted)}")
    for key in wanted:
        if key not in table:
            raise BadModel(f"{path}: {key}: is missing")
    model = Model(**{key: text(path, table, key) for key in TEXTS},
                  **{key: number(path, table, key) for key in NUMBERS})
    stem = os.path.basename(path).removesuffix(".toml")
    if model.name != stem:
        raise BadModel(f"{path}: name: {model.name!r} is not the file's, {stem!r}")
    if model.kind not in KINDS:
        raise BadModel(f"{path}: kind: {model.kind!r} is none of {', '.join(KINDS)}")
    if model.kind == "sata" and model.queue_slots != SATA_SLOTS:
        raise BadModel(f"{path}: queue_slots: a SATA drive has {SATA_SLOTS}, "
                       f"not {model.queue_slots}")
    if (model.tail_permille == 0) != (model.tail_ns == 0):
        raise BadModel(f"{path}: tail_ns: a tail needs both tail_permille and tail_ns")
    if model.block_bytes not in (512, 4096):
        raise BadModel(f"{path}: block_bytes: {model.block_bytes} is neither 512 nor 4096")
    if model.kind == "sata" and (model.block_bytes, model.bit_buckets) != (512, 0):
        raise BadModel(f"{path}: block_bytes, bit_buckets: a SATA drive has 512 and 0")
    if model.link_mb_s % SCALE:
        raise BadModel(f"{path}: link_mb_s: {model.link_mb_s} is no multiple of {SCALE}")
    return model


def load(name, folder=FOLDER):
    """The model `name`, checked."""
    names = known(folder)
    if name not in names:
        raise BadModel(f"there is no model {name!r} in {folder}; known: {', '.join(names)}")
    path = os.path.join(folder, name + ".toml")
    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as why:
        raise BadModel(f"{path}: this is no TOML: {why}") from None
    except OSError as why:
        raise BadModel(f"{path}: {why.strerror}") from None
    return parse(path, table)


def varied(model, words):
    """The model with the values that `words`, KEY=NUMBER,..., give instead of its own."""
    table = dataclasses.asdict(model)
    path = f"{model.name} with {words}"
    for word in filter(None, words.split(",")):
        key, _, value = word.partition("=")
        if key not in NUMBERS or not value.isdecimal():
            raise BadModel(f"{path}: {word} is no KEY=NUMBER; known: {', '.join(NUMBERS)}")
        table[key] = int(value)
    # A tail of which nothing is left.
    if not (table["tail_permille"] and table["tail_ns"]):
        table["tail_permille"] = table["tail_ns"] = 0
    return parse(f"{model.name}.toml", table)


def options(parser):
    parser.add_argument("model", nargs="*", help="(all)")


def run(args):
    for name in args.model or known():
        print(f"{name}: {load(name).device}")
