# SPDX-License-Identifier: GPL-2.0
"""What the forecast tells apart, on hiops_ram, for naps_ram: reads of two sizes in one thread, of
which one is over sooner than a sleep takes; and reads of which nobody knows when they are over.

A thread that sleeps is switched away from, one that spins is not.
"""

import dataclasses

import table

# Times are the guest's, four times real ones; as the module's parameters.
SIZES = {"ram_latency_us": 1, "ram_link_mb_s": 1600}
UNEVEN = {"ram_latency_us": 80, "ram_latency_max_us": 2000, "ram_seed": 7}
LEARNING, READS = 1000, 4000


@dataclasses.dataclass(frozen=True)
class Mix:
    """What is read of which device."""

    name: str
    device: dict
    reads: dict  # fio's options
    # The reader's CPU time says something: hiops_ram copies in whoever looks, and large reads long.
    is_cpu_told: bool


MIXES = (Mix("4 KiB, 1 µs", SIZES, {"bs": "4k"}, True),
         Mix("64 KiB, 10 µs", SIZES, {"bs": "64k"}, False),
         Mix("both by turns", SIZES, {"bssplit": "4k/50:64k/50"}, False),
         Mix("4 KiB, evenly 20 to 500 µs", UNEVEN, {"bs": "4k"}, True))


def row(mix, way, cell, counts, scale):
    """One of the table, of a cell of `naps_ram` and what hiops counted meanwhile."""
    return {"reads": mix.name, "way": way, "mean_us": cell["mean_us"] / scale,
            "cpu_us": cell["cpu_ns_per_io"] / scale / 1000 if mix.is_cpu_told else None,
            "switches": cell["switches"],
            **{key: counts[key] / counts["completed"] for key in
               ("naps", "naps_hit", "naps_late", "naps_vain")}}


def table_of(rows):
    """All of them."""
    def line(one):
        told = (one[key] for key in ("switches", "naps", "naps_vain"))
        cpu = "" if one["cpu_us"] is None else f"{one['cpu_us']:.2f}"
        return [one["reads"], one["way"], f"{one['mean_us']:.1f}", cpu,
                *(f"{value:.2f}" for value in told)]

    return table.markdown(HEADER, map(line, rows))


HEADER = ["reads", "reader", "mean, µs", "CPU a read, µs", "switches a read", "naps", "in vain"]
