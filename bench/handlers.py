# SPDX-License-Identifier: GPL-2.0
"""The longest interrupt handler at 128 jobs (the paper's figure 8), by the kernel's tracepoints.

Runs in a guest whose clock counts instructions (ci/vm --icount): a nanosecond is an instruction.
Beside the handlers stand what else keeps a CPU to itself: hrtimer callbacks, and the wait hook's
passages with preemption off. bpftrace's own part is in all of them alike.
"""

import json
import os
import re
import signal
import subprocess
import sys

import counting
import record
from errors import Failed
from points import Point

JOBS, IOS = 128, 8192
# What the paper's steps are called here: (name, what is written to the disk's hiops/ files).
STEPS = (
    ("non-blocking", {"mode": "irq", "lazy": 0, "coop": 0}),
    ("+ lazy", {"mode": "irq", "lazy": 1, "coop": 0}),
    ("+ coop", {"mode": "irq", "lazy": 1, "coop": 1}),
    ("as it comes", {"mode": "hybrid", "lazy": 0, "coop": 1}),
)
PROGRAM = """
tracepoint:irq:irq_handler_entry /FILTER/ { @begun[cpu] = nsecs; }
tracepoint:irq:irq_handler_exit /@begun[cpu]/ {
    $d = nsecs - @begun[cpu];
    @irq_max = max($d); @irq_sum = sum($d); @irqs = count();
    delete(@begun[cpu]);
}
tracepoint:timer:hrtimer_expire_entry { @timer[cpu] = nsecs; @called[cpu] = args.function; }
tracepoint:timer:hrtimer_expire_exit /@timer[cpu]/ {
    @tick_max[ksym(@called[cpu])] = max(nsecs - @timer[cpu]);
    delete(@timer[cpu]);
}
"""
# A passage: the hook has preemption off. A wait begins with the hook, and is over with the system
# call. Interrupts within a passage, and softirqs behind them, are not part of it. (Nothing is
# deleted: what is not there would be an error each time, and its report a disturbance.)
HOOK = """
kprobe:hiops_io_schedule, kprobe:hiops_io_schedule_timeout { @waits[tid] = 1; }
kprobe:hiops_preempt_disable /@waits[tid]/ {
    @depth[tid] += 1;
    if (@depth[tid] == 1) { @begun_hook[tid] = nsecs; }
}
kprobe:hiops_preempt_enable /@depth[tid]/ {
    @depth[tid] -= 1;
    if (@depth[tid] == 0) { @hook_max = max(nsecs - @begun_hook[tid]); }
}
tracepoint:irq_vectors:local_timer_entry, tracepoint:irq:irq_handler_entry,
tracepoint:irq:softirq_entry /@depth[tid]/ {
    @nested[tid] += 1;
    if (@nested[tid] == 1) { @other[tid] = nsecs; }
}
tracepoint:irq_vectors:local_timer_exit, tracepoint:irq:irq_handler_exit,
tracepoint:irq:softirq_exit /@nested[tid]/ {
    @nested[tid] -= 1;
    if (@nested[tid] == 0) { @begun_hook[tid] += nsecs - @other[tid]; }
}
tracepoint:sched:sched_switch /@depth[args.prev_pid]/ {
    @depth[args.prev_pid] = 0; @nested[args.prev_pid] = 0;
}
tracepoint:raw_syscalls:sys_exit /@waits[tid]/ {
    @waits[tid] = 0; @depth[tid] = 0; @nested[tid] = 0;
}
"""


def irqs(drive):
    """The kernel's numbers of the function's interrupts."""
    with open("/proc/interrupts") as table:
        return [line.split(":")[0].strip() for line in table if f"-{drive.address} " in line]


def traced(counter, drive, hook):
    """One run under bpftrace: what it printed at its end, by name."""
    wanted = " || ".join(f"args.irq == {n}" for n in irqs(drive))
    program = PROGRAM.replace("FILTER", wanted) + (HOOK if hook else "")
    tracer = subprocess.Popen(["bpftrace", "-f", "json", "-e", program], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        first = tracer.stdout.readline()
        if "attached_probes" not in first:
            raise Failed(f"bpftrace: {(first + tracer.stderr.read()).strip()[-400:]}")
        _, iops, _ = counting.counted(counter, drive, Point(jobs=JOBS), IOS)
    finally:
        tracer.send_signal(signal.SIGINT)
        out, why = tracer.communicate()
    if tracer.returncode:
        raise Failed(f"bpftrace: status {tracer.returncode}: {why.strip()[-400:]}")
    found = {}
    for line in out.splitlines():
        data = json.loads(line).get("data") if line.startswith("{") else None
        if isinstance(data, dict):
            found.update({k.lstrip("@"): v for k, v in data.items()})
    ticks = {re.sub(r"\+0x.*", "", k): v for k, v in found.get("tick_max", {}).items()}
    handled = found.get("irqs", 0)
    ours = [v for k, v in ticks.items() if "hiops" in k or k.startswith("_R")]
    return {"irq_max_ns": found.get("irq_max", 0),
            "irq_mean_ns": found.get("irq_sum", 0) / max(handled, 1),
            "interrupts": handled / IOS, "tick_max_ns": max(ours, default=0),
            "hook_max_ns": found.get("hook_max", 0), "iops": iops}


class NoCounter(counting.Counter):
    """Without the plugin: the runs alone."""

    def result(self):
        return {"kernel": 0, "user": 0}, []

    def check(self):
        """There is nothing to check."""


def options(parser):
    counting.options(parser)


def run(args):
    counting.Counter = NoCounter
    counter, drives = counting.prepare(args)
    rows = []
    for drive in drives:
        ours = drive.driver.startswith("hiops")
        for step, switches in STEPS if ours else (("", {}),):
            for name, value in switches.items():
                with open(f"/sys/block/{drive.disk}/hiops/{name}", "w") as switch:
                    switch.write(str(value))
            rows.append({"driver": drive.driver, "step": step, **traced(counter, drive, ours)})
            print(f"hiops: {rows[-1]}", file=sys.stderr)
    record.save(args.json, jobs=JOBS, rows=rows)
    print(f"{os.cpu_count()} vCPU, {JOBS} jobs, 512-byte reads: instructions (ns of the counting "
          "clock)")
    print(f"{'driver':<12}{'step':<14}{'irq max':>10}{'irq mean':>10}{'irq/I/O':>9}{'tick max':>10}"
          f"{'hook max':>10}{'IOPS':>9}")
    for r in rows:
        print(f"{r['driver']:<12}{r['step']:<14}{r['irq_max_ns']:>10.0f}{r['irq_mean_ns']:>10.0f}"
              f"{r['interrupts']:>9.2f}{r['tick_max_ns']:>10.0f}{r['hook_max_ns']:>10.0f}"
              f"{r['iops']:>9.0f}")
