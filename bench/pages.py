# SPDX-License-Identifier: GPL-2.0
"""pages [PAGE...]: fills in the tables of Markdown pages from docs/timed/*.json, in real units, and
draws PICTURES; with pages named, only these.

A table stands between two comments; what is between them is the result's, nobody writes there:

  <!-- table NAME -->                     every load of a result
  <!-- ratios NAME... -->                 the ratios of IOPS in several results, of the loads
                                         that all of them have
  <!-- short NAME... -->                 the same of the loads of SHORT
  <!-- summary NVME-NAME SATA-NAME -->    some loads of both kinds
  <!-- naps NAME... -->                   what threads gain that nap (bench/naps.py)
  <!-- classes NAME -->                   what the forecast tells apart (bench/naps_classes.py)
  <!-- jump NAME -->                     what becomes of naps after a jump (bench/naps_jump.py)
  <!-- ways NAME -->                      what the second of hiops' ways has of what the first has
  <!-- sweep NAME -->                     on which devices (bench/sweep.py)
  <!-- layers NAME -->                    what each layer takes of a read (bench/layers.py)
  <!-- memcached NAME -->                 memcached on drives (bench/memcached.py)
  <!-- kv NAME -->                        a store, packed and padded (bench/kv_bytes.py)
  <!-- programs NAME -->                  RocksDB and others (bench/programs.py)
  <!-- waits NAME -->                     who waits for what (bench/waits.py)
  <!-- blocks NAME TABLE -->              a device that takes blocks (bench/blocks.py)
  <!-- end -->
"""

import os
import re

import blocks
import kv_bytes
import layers
import memcached
import naps
import naps_classes
import naps_jump
import plot_front
import plot_session
import programs
import record
import session
import sweep
import table
import waits

REPO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
RESULTS = os.path.join(REPO, "docs", "timed")
PAGES = [os.path.join(REPO, name)
         for name in ("README.md", "docs/blocks.md", "docs/memcached.md", "docs/results.md",
                      "docs/results-tables.md")]
# Pictures of the pages that need no library.
PICTURES = {
    os.path.join(RESULTS, "front.svg"): lambda: plot_front.draw(
        *(record.load(os.path.join(RESULTS, f"timed-{model}-1cpu.json"))
          for model in ("tlc", "sata"))),
    os.path.join(REPO, "docs", "session.svg"): lambda: plot_session.draw(
        record.load(session.RECORD)),
}
# Kinds of tables that the results of a program of its own are told by.
PROGRAMS = {"blocks": blocks, "kv": kv_bytes, "layers": layers, "memcached": memcached,
            "programs": programs, "waits": waits}
KINDS = "table", "ratios", "short", "summary", "naps", "classes", "jump", "ways", "sweep", *PROGRAMS
MARKED = re.compile(rf"(<!-- ({'|'.join(KINDS)}) ([\w. -]+?) -->\n).*?(<!-- end -->)", re.DOTALL)
LATENCIES = {"p50_us": "p50, µs", "p99_us": "p99, µs", "p999_us": "p99.9, µs"}
# The loads of a summary, in words.
SUMMARY = {"psync-1": "1 thread", "psync-16": "16 threads", "psync-64": "64 threads",
           "uring-32": "io_uring, 32 in flight",
           "psync-1+hog": "1 thread, beside one that computes",
           "psync-16+hog": "16 threads, beside it",
           "uring-64+hog": "io_uring, 64 in flight, beside it"}
# Those that tell most of it.
SHORT = ("psync-1", "psync-4", "psync-16", "psync-32", "psync-64", "psync-256", "uring-1",
         "uring-32", "uring-128", "mix-16", "write-fsync", "psync-1+hog", "psync-16+hog",
         "psync-64+hog", "uring-32+hog", "two-disks-16")


def load(name):
    """A result, in real units."""
    return table.real(record.load(os.path.join(RESULTS, f"{name}.json")))


def short(microseconds):
    """A time of as many digits as say something."""
    return f"{microseconds:,.{0 if microseconds >= 100 else 1}f}"


def ratios_of(result):
    """{load: ratio as text}."""
    pairs = table.pairs(result["rows"])
    return {first["load"]: f"{table.ratio(first, second):.2f}" for first, second in pairs}


def whole(result):
    """Every load of a result."""
    pairs = table.pairs(result["rows"])

    def both(pair, key, told):
        return " / ".join(told(cell[key]) for cell in pair)

    def line(pair):
        first, second = pair
        beside = "" if first["neighbour"] is None else both(pair, "neighbour", "{:.2f}".format)
        return [first["load"], *(f"{cell['iops']:,.0f}" for cell in pair),
                f"{table.ratio(first, second):.2f}",
                *(both(pair, key, short) for key in LATENCIES),
                both(pair, "cpu_ns_per_io", lambda ns: f"{ns / 1000:.2f}"), beside]

    header = ["load", *(f"{cell['driver']}: IOPS" for cell in pairs[0]), "ratio",
              *LATENCIES.values(), "CPU an I/O, µs", "neighbour"]
    return table.markdown(header, map(line, pairs))


def side_by_side(results, among=None):
    """The ratios of several results, of the loads that all of them have; of those `among` them."""
    columns = [ratios_of(result) for result in results]
    names = [load for load in columns[0]
             if all(load in column for column in columns) and load in (among or columns[0])]
    header = ["load", *(table.title(result) for result in results)]
    return table.markdown(header, ([n, *(column[n] for column in columns)] for n in names))


def by_ways(result):
    """What the second of hiops' ways has of what the first has, of each load."""
    keys = {"IOPS": "iops", "mean": "mean_us", "p99": "p99_us", "CPU time an I/O": "cpu_ns_per_io",
            "neighbour": "neighbour"}

    def line(cells):
        first, second = (cell for cell in cells if " " in cell["driver"])
        return [first["load"], *("" if first[key] is None else f"{second[key] / first[key]:.2f}"
                                 for key in keys.values())]

    return table.markdown(["load", *keys], map(line, table.groups(result["rows"])))


def summary(*results):
    """SUMMARY's loads, each result's two drivers side by side."""
    columns = [{pair[0]["load"]: pair for pair in table.pairs(result["rows"])}
               for result in results]

    def cells(pair):
        told = [", ".join([f"{cell['iops']:,.0f}", short(cell["p50_us"]), short(cell["p99_us"])])
                for cell in pair]
        return [*told, f"{table.ratio(*pair):.2f}"]

    header = ["load"]
    for column in columns:
        first, second = next(iter(column.values()))
        header += [f"{first['driver']}: IOPS, p50, p99", second["driver"], "IOPS ratio"]
    lines = ([words, *(text for column in columns for text in cells(column[name]))]
             for name, words in SUMMARY.items())
    return table.markdown(header, lines)


def filled(page):
    """The text of a page with its tables as the results have them."""
    def fill(match):
        names = match[3].split()
        if match[2] == "table":
            text = whole(load(*names))
        elif match[2] == "ratios":
            text = side_by_side([load(name) for name in names])
        elif match[2] == "short":
            text = side_by_side([load(name) for name in names], SHORT)
        elif match[2] == "naps":
            text = naps.table_of(map(load, names))
        elif match[2] == "classes":
            text = naps_classes.table_of(load(*names)["rows"])
        elif match[2] == "jump":
            text = naps_jump.table_of(load(*names)["rows"])
        elif match[2] == "ways":
            text = by_ways(load(*names))
        elif match[2] in PROGRAMS:
            result = record.load(os.path.join(RESULTS, f"{names[0]}.json"))
            text = PROGRAMS[match[2]].markdown(result, *names[1:])
        elif match[2] == "sweep":
            text = sweep.tables(load(*names)["rows"])
        else:
            text = summary(*map(load, names))
        return match[1] + text + match[4]

    return MARKED.sub(fill, page)


def options(parser):
    parser.add_argument("page", nargs="*", help="Markdown; those of the docs")


def run(args):
    for path in args.page or PAGES:
        with open(path) as text:
            page = text.read()
        with open(path, "w") as out:
            out.write(filled(page))
    for path, draw in PICTURES.items() if not args.page else ():
        picture = draw()
        with open(path, "w") as out:
            out.write(picture)
