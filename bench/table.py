# SPDX-License-Identifier: GPL-2.0
"""The timed matrix as text: a line for each load and driver, with the ratio of their IOPS."""

# Characters of a driver's name, and of the way it is measured in.
DRIVER = 24
# key, heading, width, digits
COLUMNS = (("iops", "IOPS", 9, 0), ("ratio", "ratio", 7, 2), ("mean_us", "mean us", 9, 0),
           ("p50_us", "p50", 8, 0), ("p99_us", "p99", 8, 0), ("p999_us", "p99.9", 8, 0),
           ("p9999_us", "p99.99", 8, 0), ("cpu_ns_per_io", "CPU ns", 9, 0),
           ("neighbour", "neighb.", 8, 3), ("interrupts", "irqs", 6, 2),
           ("switches", "switch", 7, 2), ("registers", "regs", 7, 2))


def ratio(first, second):
    """The second cell's IOPS over the first's."""
    return second["iops"] / first["iops"]


def groups(rows):
    """The cells of each load, in the rows' order."""
    found = {}
    for row in rows:
        found.setdefault(row["load"], []).append(row)
    return found.values()


def pairs(rows):
    """[(first driver's cell, second's)] of each load, in the rows' order."""
    return [tuple(cells) for cells in groups(rows) if len(cells) == 2]


def markdown(header, lines):
    """A table's text in Markdown."""
    lines = [header, ["---"] * len(header), *lines]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def title(result):
    """What was measured."""
    kind = {"nvme": "NVMe", "sata": "SATA"}[result["kind"]]
    cpus = f"{result['cpus']} vCPU{'s' * (result['cpus'] > 1)}"
    switches = "".join(f", {key}={value}" for key, value in result["hiops"].items())
    return f"{result['model']}, {kind}, {cpus}{switches}"


def line(cell, first):
    """One driver's line; `first` names the load."""
    numbers = ""
    for key, _, width, digits in COLUMNS:
        value = cell.get(key)
        numbers += f"{'' if value is None else f'{value:.{digits}f}':>{width}}"
    return f"{cell['load'] if first else '':<18}{cell['driver']:<{DRIVER}}{numbers}"


def lines(result):
    """The whole table, with what it is of."""
    yield f"{title(result)}: {result['device']}"
    yield (f"The machine's time, {result['scale']} times as slow as the device's; "
           "CPU time and counts per I/O")
    headings = "".join(f"{heading:>{width}}" for _, heading, width, _ in COLUMNS)
    yield f"{'load':<18}{'driver':<{DRIVER}}{headings}"
    for first, *others in groups(result["rows"]):
        yield line(first, True)
        for other in others:
            yield line({**other, "ratio": ratio(first, other)}, False)
