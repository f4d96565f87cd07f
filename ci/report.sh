# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# How a check tells its results: one line on stdout for each, which ci/test counts.
#   ok NAME
#   not ok NAME: why
# Sourced after lib.sh by the checks; a test that runs in a guest may source it alone.

ok() { printf 'ok %s\n' "$1"; }
not_ok() { printf 'not ok %s: %s\n' "$1" "${2:-failed}"; }

# check NAME COMMAND...: ok when COMMAND succeeds; its output is shown when it does not.
check() {
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then ok "$name"; else
		printf '%s\n' "$out" >&2
		not_ok "$name" "$(printf '%s' "$out" | tail -n 1 | cut -c1-160)"
	fi
}
