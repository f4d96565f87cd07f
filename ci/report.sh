# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# How results are told, by everything that has any: KTAP, version 1 (the kernel's
# Documentation/dev-tools/ktap.rst), on stdout. ci/report.py writes the same lines.
#   ok N NAME [# WHAT]
#   not ok N NAME # WHY
#   1..N                the plan. It comes last, as TAP allows: how many there are is seldom known
#                       before. So whoever tells no plan has not come to its end
#   1..0 # SKIP WHY     there is nothing to tell here, and that is no failure
# Sourced, in the lab and in a guest; it needs nothing but bash and a file for what was told.

# A line for each result, whatever process of the script has told it: subshells and background jobs
# count like the script itself.
TOLD=$(mktemp -t hiops-told.XXXXXX) || exit

# report VERDICT NAME [TEXT]: the one place where a result's line is written.
report() {
	local mine="$1 $BASHPID" name=${2//[#$'\n']/ } text=${3//$'\n'/ } told n
	printf '%s\n' "$mine" >>"$TOLD"
	# Its place in the file is its number: two processes at once have two places. No new process
	# for it, which takes most of a second on the debug kernel.
	mapfile -t told <"$TOLD"
	n=${#told[@]}
	while [ "${told[n - 1]}" != "$mine" ]; do n=$((n - 1)); done
	[ "$n" -gt 1 ] || report_line 'KTAP version 1'
	report_line "$1 $n $name${text:+ # $text}"
}
report_line() { printf '%s\n' "$1"; }
ok() { report ok "$1" "${2:-}"; }
not_ok() { report 'not ok' "$1" "${2:-failed}"; }

# check NAME COMMAND...: ok when COMMAND succeeds; its output is shown when it does not.
check() {
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then ok "$name"; else
		printf '%s\n' "$out" >&2
		not_ok "$name" "$(printf '%s' "$out" | tail -n 1 | cut -c1-160)"
	fi
}

# count_of VERDICT: how many there are so far.
count_of() {
	local told line n=0
	mapfile -t told <"$TOLD"
	for line in "${told[@]}"; do [ "${line% *}" != "$1" ] || n=$((n + 1)); done
	echo "$n"
}
# all_ok: none that is not.
all_ok() { ! grep -q '^not ok' "$TOLD"; }

# plan [WHY]: all is told; WHY: why nothing was. The last command: its status, and so the script's,
# is whether all were ok.
plan() {
	local told rc=0
	mapfile -t told <"$TOLD"
	[ ${#told[@]} -gt 0 ] || report_line 'KTAP version 1'
	report_line "1..${#told[@]}${1:+ # SKIP $1}"
	all_ok || rc=1
	rm -f "$TOLD"
	return "$rc"
}

# with_status COMMAND...: what COMMAND says, and in a last line "# status N" how it ended: who reads
# that need not `wait "$!"` for it. (Of a substitution that ends at that very moment, bash 5.2 tells
# the status -1: once in 10,000 times.) Where that line is missing, it was killed.
with_status() {
	trap 'printf "\n# status %d\n" "$?"' EXIT
	("$@")
}

# retell NAME PREFIX COMMAND...: COMMAND's results, told as one's own as they come, with PREFIX
# before their names; RETOLD_OK and RETOLD_BAD are how many. One more is not ok, with NAME, where it
# ends without a plan, tells another number than planned, or fails and does not say of what. Where
# SILENCE_S is set, one that says nothing for so long is ended (hung.sh), which is a result, too.
retell() {
	local name=$1 prefix=$2 line what planned='' skipped='' why='' rc=137 from teller got
	local result='^(ok|not ok) [0-9]+ ([^#]*)(# (.*))?$' whole='^1\.\.([0-9]+)( # SKIP (.*))?$'
	shift 2
	RETOLD_OK=0 RETOLD_BAD=0
	exec {from}< <(with_status "$@")
	teller=$!
	while true; do
		got=0
		IFS= read -r -u "$from" ${SILENCE_S:+-t "$SILENCE_S"} line || got=$?
		if [ "$got" -gt 128 ]; then
			end_hung "$teller"
			why="it said nothing for $SILENCE_S s, and was ended"
			break
		fi
		[ "$got" -eq 0 ] || [ -n "$line" ] || break
		line=${line%$'\r'}
		if [[ $line =~ $result ]]; then
			what=$prefix${BASH_REMATCH[2]% } line=${BASH_REMATCH[4]}
			if [ "${BASH_REMATCH[1]}" = ok ] && [[ $line != SKIP* ]]; then
				ok "$what" "$line"
				RETOLD_OK=$((RETOLD_OK + 1))
			else
				not_ok "$what" "$line"
				RETOLD_BAD=$((RETOLD_BAD + 1))
			fi
		elif [[ $line =~ $whole ]]; then
			planned=${BASH_REMATCH[1]} skipped=${BASH_REMATCH[3]}
		elif [[ $line =~ ^#\ status\ ([0-9]+)$ ]]; then
			rc=${BASH_REMATCH[1]}
		fi
	done
	exec {from}<&-
	if [ -n "$why" ]; then
		:
	elif [ -z "$planned" ]; then
		why="it did not come to its end: $((RETOLD_OK + RETOLD_BAD)) results"
		[ "$rc" -eq 0 ] || why+=", status $rc"
	elif [ "$planned" -ne $((RETOLD_OK + RETOLD_BAD)) ]; then
		why="it told $((RETOLD_OK + RETOLD_BAD)) results of $planned"
	elif [ "$rc" -ne 0 ] && [ "$RETOLD_BAD" -eq 0 ]; then
		why="it ended with status $rc"
	elif [ "$planned" -eq 0 ] && [ -z "$skipped" ]; then
		why="it told no result"
	fi
	if [ -n "$why" ]; then
		not_ok "$name" "$why"
		RETOLD_BAD=$((RETOLD_BAD + 1))
	elif [ -n "$skipped" ]; then
		report_line "# $name is not run: $skipped"
	fi
}
