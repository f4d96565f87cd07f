#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make demo on a terminal: it comes up, shows both drives and I/O on them, and q ends it.
# host
. ci/lib.sh
. ci/report.sh

says() { grep -q "$1" "$DIR/said" || { head -n 1 "$DIR/said"; return 1; }; }
! ci/demo </dev/null >"$DIR/said" 2>&1
check "without a terminal it says so" says 'needs a terminal'
python3 -B ci/vm-tests/demo.py ci/demo >"$DIR/demo" 2>&1 ||
	cat "$DIR/demo" >&2
for what in 'both drives have IOPS' 'q ends it with status 0' 'the terminal is as it was'; do
	check "$what" grep -qxF "$what" "$DIR/demo"
done
plan
