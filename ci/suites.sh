# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Debian's suites that have kernels, as they are today: the lab's root knows those kernels only that
# were there when it was made. Sourced after lib.sh, never run.

SUITES=("$SUITE-backports" forky sid)
SUITES_DIR=$CACHE/suites
# ... COMMAND: apt-get or apt-cache that knows these suites and nothing else.
IN_SUITES=("$CI/in-root" env "APT_CONFIG=$SUITES_DIR/apt.conf")

# Whether lists may be past their date, as a snapshot's are: what this machine's apt is told of it.
check_date() { apt-config dump Acquire::Check-Valid-Until; }

# Makes the lists of their packages anew, from the lab's own mirror.
update_suites() {
	local suite sources
	sources=$(root_dir)/etc/apt/sources.list
	mkdir -p "$SUITES_DIR"/{lists,archives}/partial
	for suite in "${SUITES[@]}"; do
		sed -nE "s/^(deb .*) $SUITE (main.*)$/\1 $suite \2/p" "$sources"
	done >"$SUITES_DIR/sources.list"
	[ -s "$SUITES_DIR/sources.list" ] || die "no mirror of Debian's $SUITE in $sources"
	cat >"$SUITES_DIR/apt.conf" <<-END
		Dir::Etc::SourceList "$SUITES_DIR/sources.list";
		Dir::Etc::SourceParts "-";
		Dir::State::Lists "$SUITES_DIR/lists";
		Dir::Cache "$SUITES_DIR";
		APT::Update::Error-Mode "any";
		APT::Sandbox::User "root";
		Acquire::Languages "none";
		Acquire::Retries "3";
		$(check_date)
	END
	"${IN_SUITES[@]}" apt-get -q update
}

# version_in PACKAGE WHERE...: the newest that WHERE, an environment for apt-cache, knows.
version_in() { "${@:2}" apt-cache madison "$1" | awk -F' *[|] *' 'NR == 1 {print $2}'; }

# suite_with CC RUSTC: the first of them with both compilers; RUSTC is what rustc tells of itself.
suite_with() {
	local cc=${1#x86_64-linux-gnu-} version
	version=$(cut -d' ' -f2 <<<"$2")
	"${IN_SUITES[@]}" apt-cache madison "$cc" rustc |
		sed -nE 's,^ *([^ ]+) [|] +([^ ]+) [|] .* ([^ /]+)/main .*,\1 \2 \3,p' |
		awk -v version="$version" '
			$1 != "rustc" {has[$3] = 1}
			$1 == "rustc" && index($2, version "+") == 1 {rust[$3] = 1}
			END {for (suite in rust) if (suite in has) print suite}' | sort | sed -n 1p
}
