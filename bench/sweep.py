# SPDX-License-Identifier: GPL-2.0
"""sweep --json OUT RESULT.json...: where precompletion pays, from results of `bench/run sweep`: for
drives of so many microseconds, which differ by so many per cent.

Of one 4 KiB read at a time, in real time: what of the mean is saved, and what CPU time a read takes
beside a thread that sleeps until the interrupt.
"""

import record
import table

ASLEEP = "asleep"


def cells(result):
    """{way: what it is worth} of one result."""
    ways = {row["driver"].partition(" ")[2]: row for row in result["rows"]}
    asleep = ways[ASLEEP]
    return {way: {"saved_us": (asleep["mean_us"] - row["mean_us"]) / result["scale"],
                  "p99_saved_us": (asleep["p99_us"] - row["p99_us"]) / result["scale"],
                  "cpu_ratio": row["cpu_ns_per_io"] / asleep["cpu_ns_per_io"]}
            for way, row in ways.items() if way and way != ASLEEP}


def gathered(results):
    """All of them as rows: a device, a way, what that is worth there."""
    rows = [{"latency_ns": result["latency_ns"], "spread_percent": result["spread_percent"],
             "way": way, **cell}
            for result in results for way, cell in cells(result).items()]
    return sorted(rows, key=lambda row: (row["way"], row["latency_ns"], row["spread_percent"]))


def axes(rows):
    """(latencies, spreads), each in order."""
    return tuple(sorted({row[key] for row in rows}) for key in ("latency_ns", "spread_percent"))


def tables(rows):
    """A table for each way: a line for each latency, a column for each spread."""
    latencies, spreads = axes(rows)
    text = []
    for way in sorted({row["way"] for row in rows}):
        found = {(row["latency_ns"], row["spread_percent"]): row for row in rows
                 if row["way"] == way}
        header = [f"{way}: device, µs", *(f"{spread} %" for spread in spreads)]
        lines = ([f"{latency / 1000:g}", *(told(found.get((latency, spread)))
                                           for spread in spreads)] for latency in latencies)
        text.append(table.markdown(header, lines))
    return "\n".join(text)


def told(row):
    """A device's cell: what is saved, and at what price."""
    return "" if row is None else f"{row['saved_us']:+.1f} ({row['cpu_ratio']:.2f})"


def options(parser):
    parser.add_argument("--json", required=True, help="where all of them go, together")
    parser.add_argument("result", nargs="+", help="JSON of bench/results")


def run(args):
    rows = gathered(map(record.load, args.result))
    lines = ",\n".join(record.line(row) for row in rows)
    with open(args.json, "w") as out:
        out.write(f'{{"rows": [\n{lines}\n]}}\n')
    print(tables(rows), end="")
