# SPDX-License-Identifier: GPL-2.0
"""Who waited for what, inside the guest that bench/run waits boots: by bpftrace, while a load runs
on a disk of hiops'.

Rows go to the JSON: how often threads of a name waited in a place of the kernel, and how often the
hook there found that it was for I/O of their own.
"""

import json
import re
import signal
import subprocess
import sys

import account
import counting
import loads
import models
import record
import sides
from errors import Failed
from matrix import COSTS
from stage import Stage, WORK

# What waits for I/O calls io_schedule() or io_schedule_timeout(), where the hook is; a thread that
# has I/O of its own under way goes on in hiops_io_schedule_timeout() in their place. Other sleeps
# that nothing but their end ends (TASK_UNINTERRUPTIBLE, 2) may be for I/O, too, by another thread:
# a completion, a log.
PROGRAM = """
kprobe:io_schedule, kprobe:io_schedule_timeout { @waits[comm, kstack(9)] = count(); }
kprobe:hiops_io_schedule_timeout { @own[comm, kstack(9)] = count(); }
tracepoint:sched:sched_switch /(args.prev_state & 2) && !curtask->in_iowait/ {
    @others[comm, kstack(9)] = count();
}
"""
READY = "ready\n"
BEGUN = f"{WORK}/begun"
# What stands on a stack on every such wait, or only says how a program came to the kernel.
COMMON = re.compile(r"^(hiops_)?io_schedule(_timeout)?$|^_*schedule|^__traceiter|^bpf_|^ftrace_"
                    r"|^kretprobe|^arch_rethook|^trampoline|^__bpf|^perf_|^do_syscall|^x64_sys"
                    r"|^__x64_sys|^entry_|^asm_|^ret_from|^kthread$|^\[|^0x|^__se_sys|^_*preempt")
# So many functions tell where it is.
DEEP = 3


def place(stack):
    """Where a stack is, innermost first: the functions that tell it. Its lines come with "\\n"
    between them."""
    names = (re.sub(r"\+.*", "", line.strip()) for line in stack.split(r"\n"))
    return " < ".join([name for name in names if name and not COMMON.match(name)][:DEEP])


def counts(out):
    """{"waits", "own", "others": {(thread's name, place): how often}} of what bpftrace printed."""
    found = {"waits": {}, "own": {}, "others": {}}
    for line in out.splitlines():
        data = json.loads(line).get("data") if line.startswith("{") else None
        for name, stacks in data.items() if isinstance(data, dict) else ():
            sums = found.get(name.lstrip("@"))
            for key, times in stacks.items() if sums is not None else ():
                comm, _, stack = key.partition(",")
                # fio's and others' threads are numbered.
                where = re.sub(r"[/:].*|\d+$", "", comm), place(stack)
                sums[where] = sums.get(where, 0) + times
    return found


def rows_of(load, found):
    """The rows of a load."""
    for (comm, where), times in found["waits"].items():
        yield {"load": load, "thread": comm, "place": where, "waits": times,
               "own": found["own"].get((comm, where), 0)}
    for (comm, where), times in found["others"].items():
        yield {"load": load, "thread": comm, "place": where, "others": times}


def traced(run):
    """What bpftrace told at its end, of what happened meanwhile."""
    # Its child begins when all probes are there, which takes seconds.
    with open(BEGUN, "w", encoding="ascii") as script:
        script.write("echo ready\nexec sleep infinity\n")
    tracer = subprocess.Popen(["bpftrace", "-f", "json", "-e", PROGRAM, "-c", f"/bin/sh {BEGUN}"],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        if READY not in iter(lambda: tracer.stdout.readline() or READY[:-1], READY[:-1]):
            raise Failed(f"bpftrace: {tracer.stderr.read().strip()[-400:]}")
        run()
    finally:
        tracer.send_signal(signal.SIGINT)
        out, why = tracer.communicate()
    if tracer.returncode:
        raise Failed(f"bpftrace: status {tracer.returncode}: {why.strip()[-400:]}")
    return out


def options(parser):
    parser.add_argument("--counts", required=True, help="the plugin's out= file")
    parser.add_argument("--side", required=True, help="ADDRESS=DRIVER: the drive")
    parser.add_argument("--loads", required=True)
    parser.add_argument("--hiops", default="")
    parser.add_argument("--model", required=True, help="the device model that QEMU was told of")
    parser.add_argument("--json", required=True, help="where the results go")


def run(args):
    counting.quiet()
    model = models.load(args.model)
    side = sides.Side(args.side, "hiops",
                      dict(word.split("=", 1) for word in args.hiops.split()))
    stage = Stage(args.counts, account.Costs(*(model.guest_ns(key) for key in COSTS)))
    rows = []
    for load in loads.chosen(args.loads):
        out = traced(lambda load=load: stage.run(load, side.disks))
        new = list(rows_of(load.name, counts(out)))
        rows += new
        print(f"hiops: {load.name}: {sum(row.get('waits', 0) for row in new)} waits, "
              f"{sum(row.get('own', 0) for row in new)} for I/O of their own", file=sys.stderr)
        record.save(args.json, rows=rows)
