#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The module's KUnit suites, which run in the debug kernel when it is loaded: each test counts. Elsewhere the kernel's command line filters them out:
# they take longer than the rest of a load.
# kernels: debug
. ci/vm-tests/guest-lib.sh
FILTER=/sys/module/kunit/parameters/filter_glob
printf '*' >$FILTER
dmesg -C
expect loads modprobe hiops
dmesg -t >"$OUT"
cp "$OUT" /run/kunit
# KTAP: a test is indented once more than its suite; "# SKIP" is no pass.
awk '
	/^ *KTAP version/ { next }
	/^    # Subtest: / { suite = $NF; next }
	/^    ok [0-9]+ / { name = $3; print (/# SKIP/ ? "not ok" : "ok") " " suite "." name (/# SKIP/ ? ": skipped" : ""); next }
	/^    not ok [0-9]+ / { print "not ok " suite "." $4 ": see the log" }
' /run/kunit
if ! grep -qE '^    ok [0-9]+ ' /run/kunit; then not_ok "suites run" "the log has no test's result"; fi
if grep -q '^ *not ok\|# SKIP' /run/kunit; then
	cat /run/kunit >&2
	BAD=1
fi
expect unloads rmmod hiops
printf none >$FILTER
