#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What is checked of tools/watch beside promtool's own checks.

watching.py panels DASHBOARD          what is wrong with the dashboard itself, a line each
watching.py types PYPI DASHBOARD      what Grafana's own types, in that folder, do not keep of it
watching.py rules DASHBOARD           its expressions as recording rules, for promtool
watching.py unprinted PRINTED FILE... metrics of hiops that are named there and not printed, and of
                                      a dashboard those that are printed and not shown
watching.py machine FOLDER EACH       makes a machine of files for hiopsctl (HIOPS_ROOT), a drive of
                                      hiops that has done EACH of what is counted
watching.py ask URL DASHBOARD         its expressions put to a Prometheus, until each has a value
"""

import importlib
import json
import os
import re
import sys
import time
import urllib.parse
import urllib.request

# What Grafana puts in their places.
VARIABLES = {"$__rate_interval": "1m", "$__range": "1h", "$instance": ".*",
             "$controller": ".*", "$disk": ".*"}
WIDTH = 24
ASK_S = 120


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def filled(expr, intervals=None):
    """An expression without Grafana's variables."""
    for name, value in {**VARIABLES, **(intervals or {})}.items():
        expr = expr.replace(name, value)
    return expr


def targets(dashboard):
    """(title of the panel, expression) of all."""
    return [(panel["title"], target["expr"])
            for panel in dashboard["panels"] for target in panel.get("targets", [])]


def overlap(one, other):
    return (one["x"] < other["x"] + other["w"] and other["x"] < one["x"] + one["w"]
            and one["y"] < other["y"] + other["h"] and other["y"] < one["y"] + one["h"])


def misplaced(panels):
    """Panels that lie on others, or beyond the page."""
    places = [(panel["title"], panel["gridPos"]) for panel in panels]
    for n, (title, at) in enumerate(places):
        if at["x"] < 0 or at["x"] + at["w"] > WIDTH or min(at["w"], at["h"]) < 1:
            yield f"{title}: it is beyond the page"
        for other, there in places[:n]:
            if overlap(at, there):
                yield f"{title}: it lies on {other}"


def faults(dashboard):
    """What Grafana would not say, or show as an empty panel."""
    panels = dashboard["panels"]
    for key in ("title", "uid", "schemaVersion"):
        if not dashboard.get(key):
            yield f"it has no {key}"
    idents = [panel["id"] for panel in panels]
    if len(set(idents)) != len(idents):
        yield "two panels have one id"
    yield from misplaced(panels)
    known = {variable["name"] for variable in dashboard["templating"]["list"]}
    for panel in panels:
        title, own = panel["title"], panel.get("targets", [])
        if panel["type"] != "row" and not own:
            yield f"{title}: it asks for nothing"
        refs = [target["refId"] for target in own]
        if len(set(refs)) != len(refs):
            yield f"{title}: two expressions have one refId"
        for target in own:
            if target["datasource"]["uid"] != "${datasource}":
                yield f"{title}: its data source is one machine's own"
            left = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval", "__range"}
            for name in sorted(left - known):
                yield f"{title}: there is no variable {name}"


def lost(whole, kept, at=""):
    """What of `whole` is not in `kept`; what says nothing need not be."""
    if isinstance(whole, dict) and isinstance(kept, dict):
        for key, value in whole.items():
            if key in kept:
                yield from lost(value, kept[key], f"{at}.{key}")
            elif value not in (None, "", [], {}):
                yield f"{at}.{key} is not known"
    elif isinstance(whole, list) and isinstance(kept, list) and len(whole) == len(kept):
        for n, value in enumerate(whole):
            yield from lost(value, kept[n], f"{at}[{n}]")
    elif whole != kept:
        yield f"{at} is {kept!r} instead of {whole!r}"


def untyped(pypi, dashboard):
    """What Grafana's own types do not take, or do not keep."""
    sys.path.insert(0, pypi)
    types = importlib.import_module("grafana_foundation_sdk.models.dashboard")
    plugins = importlib.import_module("grafana_foundation_sdk.cog.plugins")
    encoder = importlib.import_module("grafana_foundation_sdk.cog.encoder")
    plugins.register_default_plugins()
    read = types.Dashboard.from_json(dashboard)
    return lost(dashboard, json.loads(encoder.JSONEncoder().encode(read)))


def rules(dashboard):
    """A rule file, which is JSON as it may be."""
    all_rules = [{"record": f"panel:{n}", "expr": filled(expr)}
                 for n, (_, expr) in enumerate(targets(dashboard))]
    return json.dumps({"groups": [{"name": "panels", "rules": all_rules}]})


def named(text):
    """The metrics of hiops that are named in a dashboard or in rules: not tags, nor alerts."""
    return set(re.findall(r"\bhiops_[a-z0-9_]+", text))


def printed(text):
    return set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))


def unprinted(have, path):
    """Names that would stay empty; of a dashboard also what it does not show."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    names = named(text)
    lines = [f"{path}: {name} is not printed" for name in sorted(names - have)]
    if path.endswith(".json"):
        lines += [f"{path}: {name} is not shown" for name in sorted(have - names)]
    return lines


def ask(url, expr):
    """What a Prometheus has for it now."""
    query = urllib.parse.urlencode({"query": expr})
    with urllib.request.urlopen(f"{url}/api/v1/query?{query}", timeout=30) as answer:
        return json.load(answer)["data"]["result"]


def ask_all(url, dashboard):
    """Until all have a value; what has none by then."""
    intervals = {"$__rate_interval": "5m"}
    left = dict.fromkeys(targets(dashboard))
    end = time.monotonic() + ASK_S
    while left and time.monotonic() < end:
        left = {key: None for key in left if not ask(url, filled(key[1], intervals))}
        if left:
            time.sleep(0.5)
    return [f"{title}: no value for {expr}" for title, expr in left]


def machine(folder, each):
    """What the kernel would say of an NVMe drive that hiops has."""
    address, name = "0000:01:00.0", "hiops0n1"
    device = f"sys/devices/pci0000:00/{address}"
    disk = f"{device}/block/{name}"
    contexts = "irq lazy coop poll"
    counted = ("fifo_deferred interrupts doorbell_writes errors retried timeouts resets "
               "resets_asked max_irq_ns max_tick_ns ticks turns missed_interrupts aborts swept "
               "naps naps_hit naps_late naps_vain naps_woken bytes_reads bytes_writes "
               "bytes_merged bytes_wanted bytes_moved")
    stats = {"submitted": 4 * each, "completed": 4 * each}
    stats |= {f"completed_{context}": each for context in contexts.split()}
    stats |= dict.fromkeys(counted.split(), each)
    files = {
        "proc/sys/kernel/osrelease": "7.3.4", "sys/module/hiops/version": "1",
        f"{device}/class": "0x010802", f"{disk}/size": "2048", f"{disk}/inflight": "3 4",
        f"{disk}/model": "M", f"{disk}/hiops/strategy": "coop", f"{disk}/hiops/mode": "hybrid",
        f"{disk}/hiops/learned": "sleep_ns 4100 yield_ns 900 tick_ns 2000\n"
                                 "queue 0 interrupt_ns 1900 polled 1 polling 50000 napping -",
        f"{disk}/hiops/stats": "\n".join(f"{key} {value}" for key, value in stats.items()),
    }
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
            file.write(text + "\n")
    for path, to in {f"{device}/driver": "../../../bus/pci/drivers/hiops_nvme",
                     f"sys/bus/pci/devices/{address}": f"../../../../{device}",
                     f"sys/block/{name}": f"../../{disk}"}.items():
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.islink(path):
            os.symlink(to, path)


def main(what, *args):
    if what == "panels":
        lines = list(faults(load(args[0])))
    elif what == "types":
        lines = list(untyped(args[0], load(args[1])))
    elif what == "machine":
        machine(args[0], int(args[1]))
        return 0
    elif what == "rules":
        print(rules(load(args[0])))
        return 0
    elif what == "unprinted":
        with open(args[0], encoding="utf-8") as file:
            have = printed(file.read())
        lines = [line for path in args[1:] for line in unprinted(have, path)]
    elif what == "ask":
        lines = ask_all(args[0], load(args[1]))
    else:
        sys.exit(__doc__)
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
