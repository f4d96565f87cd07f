#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""plot.py RESULT.json... OUT.svg: instructions per I/O, the two drivers side by side."""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def main():
    *paths, out = sys.argv[1:]
    bars = []
    for path in paths:
        with open(path) as text:
            result = json.load(text)
        for r in result["results"]:
            bars.append((f"{result['cpus']} vCPU\n{r['jobs']} job{'s' * (r['jobs'] > 1)}", r["drivers"],
                         [c["instructions"] for c in r["per_io"]]))
    figure, axes = plt.subplots(figsize=(6.4, 3.6))
    for i in (0, 1):
        places = [n + (i - 0.5) * 0.38 for n in range(len(bars))]
        drawn = axes.bar(places, [b[2][i] for b in bars], 0.36, label=bars[0][1][i])
        axes.bar_label(drawn, fmt="%.0f", fontsize=7)
    axes.set_xticks(range(len(bars)), [b[0] for b in bars])
    axes.set_ylabel("guest instructions per I/O")
    axes.set_title("512-byte random reads, fio psync", fontsize=10)
    axes.legend()
    figure.tight_layout()
    figure.savefig(out)


if __name__ == "__main__":
    main()
