# SPDX-License-Identifier: GPL-2.0
"""naps RESULT.json...: what precompletion is worth, from results of `bench/run precompletion`.

Of one 4 KiB read at a time, in real time: the mean above what the device takes, p99 above it, CPU
time; and how much of the mean between sleeping and polling it out is saved.
"""

import record
import table

# The way that all others are held against, and the load that shows what polling it out would save,
# without and with neighbours.
ASLEEP = "asleep"
POLLED = "iopoll-1"
# One reader that waits, however it does.
READERS = "psync-1", "uring-1", POLLED, "hybrid-1"


def split(load):
    """("psync-1", "hog") of "psync-1+hog"."""
    name, _, beside = load.partition("+")
    return name, beside


def way(row):
    """How the row's reader waited, in words."""
    driver, _, name = row["driver"].partition(" ")
    name = name or "interrupt"
    name = {"psync-1": name, "uring-1": f"io_uring, {name}", POLLED: "polled out",
            "hybrid-1": "io_uring, hybrid"}[split(row["load"])[0]]
    return f"{driver}: {name}"


def share(rows, mean):
    """What of the time between sleeping and polling a reader saves that takes `mean`; None where
    nothing says what either takes."""
    def of(load, word):
        return next((row["mean_us"] for row in rows if split(row["load"])[0] == load
                     and row["driver"].startswith("hiops_") and word in row["driver"]), None)

    asleep, polled = of("psync-1", ASLEEP), of(POLLED, "")
    if asleep is None or polled is None or asleep <= polled:
        return None
    return (asleep - mean) / (asleep - polled)


def lines(result):
    """[cells] of each reader of a result."""
    device = result["latency_ns"] / 1000
    readers = [row for row in result["rows"] if split(row["load"])[0] in READERS]
    for row in readers:
        beside = split(row["load"])[1]
        alike = [other for other in readers if split(other["load"])[1] == beside]
        part = share(alike, row["mean_us"])
        above = [f"{row[key] / result['scale'] - device:.1f}" for key in ("mean_us", "p99_us")]
        yield [f"{device:g}", beside or "-", way(row), *above,
               f"{row['cpu_ns_per_io'] / result['scale'] / 1000:.2f}",
               "" if row["neighbour"] is None else f"{row['neighbour']:.3f}",
               "" if part is None else f"{part:.2f}"]


def table_of(results):
    """All of them in one table."""
    return table.markdown(HEADER, (cells for one in results for cells in lines(one)))


HEADER = ["device, µs", "beside", "reader", "mean above it", "p99 above it", "CPU a read, µs",
          "neighbour", "of the difference"]


def options(parser):
    parser.add_argument("result", nargs="+", help="JSON of bench/results")


def run(args):
    print(table_of(map(record.load, args.result)), end="")
