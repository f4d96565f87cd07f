# SPDX-License-Identifier: GPL-2.0
"""agree ONE.json OTHER.json: do two runs of the same timed matrix agree, cell by cell?
agree ONE.json: do its two sides, which have the same driver (--drivers nvme,nvme)?

IOPS and p50 of an in-tree driver within 1 %, of hiops within 2 %; of two sides within 2 %. A line
for each cell that is further off, then the worst of each driver; status 1 if there is one.
"""

import record
import table
from errors import Wrong

KEYS = ("iops", "p50_us")
IN_TREE, HIOPS, SIDES = 0.01, 0.02, 0.02


def limit(driver):
    """How far two runs may be apart, as a part of the value."""
    return HIOPS if driver.startswith("hiops_") else IN_TREE


def differences(one, other):
    """[(part, driver, load, key, value, other value)] of all cells that both have."""
    there = {(row["load"], row["driver"]): row for row in other}
    found = []
    for row in one:
        twin = there.get((row["load"], row["driver"]))
        for key in KEYS if twin else ():
            part = abs(twin[key] / row[key] - 1)
            found.append((part, row["driver"], row["load"], key, row[key], twin[key]))
    return found


def line(found):
    part, driver, load, key, one, other = found
    return f"{100 * part:6.2f} %  {driver:<12}{load:<18}{key:<8}{one:>11.1f}{other:>11.1f}"


def options(parser):
    parser.add_argument("result", nargs="+", help="one JSON of bench/results, or two")


def run(args):
    rows = [table.real(record.load(path))["rows"] for path in args.result]
    if len(rows) > 2:
        raise Wrong("one result or two, not more")
    if len(rows) == 1:
        # The second side has a name of its own: nvme-2.
        both = table.pairs(rows[0])
        rows = [[{**cells[side], "driver": cells[0]["driver"]} for cells in both]
                for side in (0, 1)]
        found, bound = differences(*rows), lambda _: SIDES
    else:
        found, bound = differences(*rows), limit
    far = sorted((f for f in found if f[0] > bound(f[1])), reverse=True)
    print(*map(line, far), sep="\n", end="\n" * bool(far))
    for driver in dict.fromkeys(f[1] for f in found):
        print("worst:" + line(max(f for f in found if f[1] == driver)))
    print(f"{len(found) - len(far)} of {len(found)} figures agree")
    return 1 if far or not found else 0
