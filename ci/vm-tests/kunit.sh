#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The module's KUnit suites, which run in the debug kernel when it is loaded: each test counts.
# Elsewhere the kernel's command line filters them out: they take longer than the rest of a load.
# The kernel's own tool reads what they told.
# kernels: debug
. ci/vm-tests/guest-lib.sh
FILTER=/sys/module/kunit/parameters/filter_glob
TOOL=$HIOPS_CACHE/kernel-$(cat /etc/hiops-kernel-release)/src/tools/testing/kunit/kunit.py
LOG=/run/kunit
printf '*' >$FILTER
# The suite of timers has allocations fail that may wait.
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
echo 0 >/sys/kernel/debug/failslab/verbose
echo N >/sys/kernel/debug/failslab/ignore-gfp-wait
dmesg -C
expect loads modprobe hiops
dmesg -t >$LOG
# Its status says whether all passed; what it found of each is in its report, as it was told.
python3 "$TOOL" parse --json=$LOG.json $LOG >"$OUT" 2>&1
whole=$?
retell "suites run" '' python3 ci/kunit_results.py $LOG.json
# A suite that does not end, or tells fewer results than it has tests, is none of a test.
if [ $whole -ne 0 ]; then
	not_ok "all suites pass" "$(grep -m 1 -E 'ERROR|Testing complete' "$OUT")"
else
	ok "all suites pass"
fi
all_ok || cat $LOG >&2
expect unloads rmmod hiops
echo Y >/sys/kernel/debug/failslab/ignore-gfp-wait
printf none >$FILTER
plan
