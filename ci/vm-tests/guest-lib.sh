# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What the tests share that run inside a machine: how results are told, how something is waited for.
# Sourced, never run.
set -uo pipefail

OUT=$(mktemp)
# Made by a test that tells others that it is over: of this run alone, as several tests may run in
# one machine.
ENOUGH=$OUT.enough

# As there, and when. The last line of a test is `plan`.
. ci/report.sh
ok() {
	report ok "$1" "${2:-}"
	echo "at $SECONDS s: $1" >&2
}
not_ok() {
	report 'not ok' "$1" "$2"
	echo "at $SECONDS s: not $1" >&2
	tail -n 20 "$OUT" >&2
}

# expect NAME COMMAND...: it works.
expect() {
	local what=$1
	shift
	if "$@" >"$OUT" 2>&1; then ok "$what"; else not_ok "$what" "status $? of: $*"; fi
}

# says NAME TEXT COMMAND...: it works, and what it says has TEXT in it; refused: likewise, but it
# fails with status 1.
says() { tells 0 "$@"; }
refused() { tells 1 "$@"; }
tells() {
	local wanted=$1 what=$2 text=$3 rc=0
	shift 3
	"$@" >"$OUT" 2>&1 || rc=$?
	if [ "$rc" != "$wanted" ]; then
		not_ok "$what" "status $rc instead of $wanted"
	elif ! grep -qF -- "$text" "$OUT"; then
		not_ok "$what" "it does not say '$text' but: $(head -n 1 "$OUT")"
	else
		ok "$what"
	fi
}

# same NAME IS WANTED
same() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "'$2' instead of '$3'"; fi; }

# on_debug YES NO: one for the debug kernel, which is ten times as slow, the other for the stock
# one.
on_debug() { if [ "${HIOPS_VM_KERNEL:-stock}" = debug ]; then echo "$1"; else echo "$2"; fi; }

# mapped NAME TABLE: a device-mapper device; NODE is its file (there is no udev that would make one
# with its name).
mapped() {
	dmsetup create "$1" --table "$2" || return
	NODE=/dev/dm-$(dmsetup info -c --noheadings -o minor "$1") && [ -b "$NODE" ]
}

# reads FILE VALUE: the file's one line is VALUE.
reads() {
	local line
	read -r line <"$1" && [ "$line" = "$2" ]
}
# put VALUE FILE
put() { echo "$1" >"$2"; }
# logged PATTERN: a line of the kernel's log has it. Read whole first: a grep that ends at its first
# match breaks the pipe, and with pipefail what was found would count as missing.
logged() { grep -q -- "$1" <<<"$(dmesg)"; }

# fio leaves no state files in the tree.
fio() { command fio --verify_state_save=0 "$@"; }

# count DISK NAME: one of hiops' counters, told without a new process.
count() {
	local name value
	while read -r name value; do
		[ "$name" != "$2" ] || echo "$value"
	done <"/sys/block/$1/hiops/stats"
}

# nap SECONDS: without a new process each time, which takes most of a second on the debug kernel.
# (Not `read -t`: where time is up before it waits, bash 5.2 leaves SIGCHLD blocked, and does not
# learn any more that a child has ended.)
nap() {
	if [ -z "${NAP:-}" ]; then
		mkfifo "$OUT.nap" "$OUT.woken"
		exec {NAP}<>"$OUT.nap" {WOKEN}<>"$OUT.woken"
		# Nobody's child: nobody waits for it. It ends with who has the pipe open.
		(perl -ne 'BEGIN { $| = 1 } select undef, undef, undef, $_; print "\n"' \
			<"$OUT.nap" >"$OUT.woken" 2>/dev/null {NAP}>&- {WOKEN}>&- &)
	fi
	echo "$1" >&"$NAP"
	read -r -u "$WOKEN"
}

# until_true SECONDS COMMAND...: waits for it, no longer than that.
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		nap 0.1
	done
}
absent() { [ ! -e "$1" ]; }
# ended PID: a process that is a child of this shell or not.
ended() { ! kill -0 "$1" 2>/dev/null; }
