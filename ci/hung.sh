# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Ending what hangs, and telling what it was doing. Sourced after lib.sh.

# below PID: it, and all processes that come of it.
below() {
	local child
	echo "$1"
	for child in $(pgrep -P "$1" || true); do below "$child"; done
}

# threads_of PID: its threads' names, states, and where in the kernel they wait; of a test program,
# whose threads are named by their tests, the stacks, too: seen as it sees its own files.
threads_of() {
	local task
	for task in /proc/"$1"/task/*; do
		printf '  thread %s: %s %s\n' "${task##*/}" \
			"$(sed -nE 's/^(Name|State):\t//p' "$task/status" | paste -sd' ')" \
			"$(cat "$task/wchan")"
	done
	[[ $(readlink "/proc/$1/exe") != */deps/* ]] ||
		timeout 60 nsenter -t "$1" -m -r eu-stack -n 24 -p "$1" | sed "s/^/  /"
}

# end_hung PID: says on stderr what PID and the processes below it are doing, and ends them.
end_hung() {
	local pid all tries
	mapfile -t all < <(below "$1")
	for pid in "${all[@]}"; do
		# Some end by themselves meanwhile.
		[ -e "/proc/$pid/cmdline" ] || continue
		say "it hangs: $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c 1-160)"
		threads_of "$pid" >&2 || true
	done
	kill "${all[@]}" 2>/dev/null || true
	for ((tries = 0; tries < 50; tries++)); do
		kill -0 "${all[@]}" 2>/dev/null || return 0
		sleep 0.2
	done
	kill -KILL "${all[@]}" 2>/dev/null || true
}
