# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What cargo test says, as results. Sourced after report.sh and hung.sh.

# Seconds after which one that says nothing hangs. The longest test takes two minutes; on a busy
# machine it takes ten to build all of them, of which cargo says nothing.
CARGO_SILENCE_S=${CARGO_SILENCE_S:-1200}

# cargo_results PREFIX COMMAND...: a result for each test that COMMAND, a cargo test, runs, with
# PREFIX before its name; everything else it says goes to stderr. One that ends before its tests
# do, or fails and no test has, is a result that is not ok; so is each test that hangs.
cargo_results() {
	local prefix=$1 unit='' line bad=0 begun=0 over=0 rc=137 from teller got
	local -A slow=()
	shift
	exec {from}< <(with_status "$@" 2>&1)
	teller=$!
	while true; do
		got=0
		IFS= read -r -u "$from" -t "$CARGO_SILENCE_S" line || got=$?
		if [ "$got" -gt 128 ]; then
			end_hung "$teller"
			[ "${#slow[@]}" -gt 0 ] || slow["${unit}a test"]=1
			for line in "${!slow[@]}"; do
				not_ok "$prefix: $line" \
					"nothing was said for $CARGO_SILENCE_S s: it hangs"
			done
			bad=1
			break
		fi
		[ "$got" -eq 0 ] || break
		if [[ $line =~ ^test\ (.*)\ \.\.\.\ (ok|FAILED|ignored)(,.*)?$ ]]; then
			line=$unit${BASH_REMATCH[1]}
			unset "slow[$line]"
			line=$prefix:\ $line
			case ${BASH_REMATCH[2]} in
			ok) ok "$line" ;;
			FAILED) not_ok "$line" "see above" ;;
			ignored) not_ok "$line" "a skipped test is no test" ;;
			esac
			[ "${BASH_REMATCH[2]}" = ok ] || bad=$((bad + 1))
			continue
		elif [[ $line =~ ^#\ status\ ([0-9]+)$ ]]; then
			rc=${BASH_REMATCH[1]}
			continue
		fi
		printf '%s\n' "$line" >&2
		if [[ $line =~ ^\ +Running\ .*/([^/]*)-[0-9a-f]+\)$ ]]; then
			unit=${BASH_REMATCH[1]}::
		elif [[ $line =~ ^\ +Doc-tests\ (.*) ]]; then
			unit=${BASH_REMATCH[1]}::doc::
		elif [[ $line =~ ^error(\[|:) ]] && [ "$bad" -eq 0 ]; then
			not_ok "$prefix: cargo" "$line"
			bad=1
		elif [[ $line =~ ^test\ (.*)\ has\ been\ running\ for\ over ]]; then
			slow[$unit${BASH_REMATCH[1]}]=1
		elif [[ $line =~ ^running\ [0-9]+\ test ]]; then
			begun=$((begun + 1))
		elif [[ $line =~ ^test\ result: ]]; then
			over=$((over + 1))
		fi
	done
	exec {from}<&-
	if [ "$bad" -eq 0 ] && { [ "$rc" -ne 0 ] || [ "$begun" -ne "$over" ]; }; then
		not_ok "$prefix: cargo" "status $rc, $over of $begun programs came to their end"
	fi
}
