# SPDX-License-Identifier: GPL-2.0
"""The timed matrix as text: a line for each load and driver, with the ratio of their IOPS."""

# Characters of a driver's name, and of the way it is measured in.
DRIVER = 24
# key, heading, width, digits
COLUMNS = (("iops", "IOPS", 9, 0), ("ratio", "ratio", 7, 2), ("mean_us", "mean us", 9, 1),
           ("p50_us", "p50", 9, 1), ("p99_us", "p99", 9, 1), ("p999_us", "p99.9", 9, 1),
           ("p9999_us", "p99.99", 9, 1), ("cpu_ns_per_io", "CPU ns", 9, 0),
           ("neighbour", "neighb.", 8, 3), ("interrupts", "irqs", 6, 2),
           ("switches", "switch", 7, 2), ("registers", "regs", 7, 2))

# What of a cell is a time, beside its distribution; models.SCALE says how the machine's relate to
# real ones.
TIMES = ("mean_us", "p50_us", "p99_us", "p999_us", "p9999_us", "cpu_ns_per_io", "elapsed_ns",
         "busy_ns")


def real_cell(cell, scale):
    """A cell in real units, of one whose times are `scale` times as long."""
    real = dict(cell)
    for key in TIMES:
        if real.get(key) is not None:
            real[key] /= scale
    if "iops" in real:
        real["iops"] *= scale
    if "cdf_us" in real:
        real["cdf_us"] = [[percent, us / scale] for percent, us in real["cdf_us"]]
    return real


def real(result):
    """A result in real units; its JSON has those of the machine's clock. What tells no scale has
    real ones already."""
    scale = result.get("scale", 1)
    if scale == 1:
        return result
    return {**result, "scale": 1, "rows": [real_cell(row, scale) for row in result["rows"]]}


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
    without = "" if result.get("hiops_is_loaded", True) else ", hiops is not loaded"
    return f"{result['model']}, {kind}, {cpus}{switches}{without}"


def line(cell, first):
    """One driver's line; `first` names the load."""
    numbers = ""
    for key, _, width, digits in COLUMNS:
        value = cell.get(key)
        numbers += f"{'' if value is None else f'{value:.{digits}f}':>{width}}"
    return f"{cell['load'] if first else '':<18}{cell['driver']:<{DRIVER}}{numbers}"


def lines(result):
    """The whole table, in real units, with what it is of."""
    yield f"{title(result)}: {result['device']}"
    yield (f"Real time: by the machine's clock all takes {result['scale']} times as long; "
           "CPU time and counts per I/O")
    result = real(result)
    headings = "".join(f"{heading:>{width}}" for _, heading, width, _ in COLUMNS)
    yield f"{'load':<18}{'driver':<{DRIVER}}{headings}"
    for first, *others in groups(result["rows"]):
        yield line(first, True)
        for other in others:
            yield line({**other, "ratio": ratio(first, other)}, False)
