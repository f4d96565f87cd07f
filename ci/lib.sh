# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What every script of the lab shares: where things lie, how progress is told,
# how something is built beside its place and renamed when whole.
# Sourced, never run. Messages go to stderr: stdout belongs to the caller.

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
CACHE=${HIOPS_CACHE:-${HOME:?"HOME is not set; set HIOPS_CACHE to a folder"}/.cache/hiops}
CI=$REPO/ci
# Debian release of the lab's root, and the tools inside it; of other kernels': ci/suites.sh.
SUITE=trixie
LLVM_SUFFIX=-19
KCC=x86_64-linux-gnu-gcc-14

say() { printf '%s\n' "hiops: $*" >&2; }
die() { printf '%s\n' "hiops: error: $*" >&2; exit 1; }

# The emulated CPU, without what makes the guest's kernel clear and copy memory by one instruction:
# QEMU emulates each byte of it, and counts it where time is counted in instructions. Not for who
# counts the instructions themselves, as that is one of them.
EMULATED_CPU=max,erms=off,fsrm=off,fsrs=off,fzrm=off,fsrc=off
# And for its kernel: on a busy host one clock seems to go wrong beside another. A timer would be
# taken for broken, and the TSC be given up for a clock of which each look is an access to a device.
CLOCKS='no_timer_check tsc=nowatchdog'

# What tools say where one of these is missing.
NO_SPACE='No space left on device|not enough free space|have enough free space'
NO_NETWORK='Could not resolve|Temporary failure resolving|Unable to connect|Failed to fetch|'
NO_NETWORK+='Could not connect|Network is unreachable|Connection failed'

# Seconds in words, for progress lines.
took() { printf '%dm%02ds' $(($1 / 60)) $(($1 % 60)); }

# step TEXT COMMAND...: tells what runs and how long it took; the output goes to a log that is shown
# on failure.
step() {
	local text=$1 log start next rc=0
	shift
	log=$(mktemp -t hiops-step.XXXXXX) ||
		die "no temporary file can be made: is ${TMPDIR:-/tmp} full?"
	start=$SECONDS next=60
	say "$text ..."
	"$@" >"$log" 2>&1 </dev/null &
	local job=$!
	# A sign of life each minute, with the newest line of the log.
	while sleep 0.2 && kill -0 "$job" 2>/dev/null; do
		if [ $((SECONDS - start)) -ge "$next" ]; then
			say "$text: $(took $((SECONDS - start))), $(tail -n 1 "$log" | cut -c1-100)"
			next=$((next + 60))
		fi
	done
	wait "$job" || rc=$?
	if [ "$rc" -ne 0 ]; then
		tail -n 40 "$log" >&2
		if grep -qE "$NO_SPACE" "$log"; then
			say "the disk is full: make room in $CACHE (df -h $CACHE), then run it" \
				"again"
		elif grep -qE "$NO_NETWORK" "$log"; then
			say "the download failed: check the network and any proxy, then run it" \
				"again"
		fi
		rm -f "$log"
		say "$text: failed after $(took $((SECONDS - start)))"
		return "$rc"
	fi
	rm -f "$log"
	say "$text: done in $(took $((SECONDS - start)))"
}

need_root() {
	[ "$(id -u)" -eq 0 ] || die "$1 needs root: run it as root or with sudo"
}

# make_cache: the cache folder, or the reason why there is none.
make_cache() {
	local what="the cache folder $CACHE can't be"
	mkdir -p "$CACHE" 2>/dev/null ||
		die "$what made: set HIOPS_CACHE to a folder that can be written"
	[ -w "$CACHE" ] || die "$what written: set HIOPS_CACHE to another, or run as root"
}

# need_space MIB: refuse early what would fill the disk half-way.
need_space() {
	local free
	free=$(df -Pm "$CACHE" | awk 'NR==2 {print $4}')
	[ "$free" -ge "$1" ] ||
		die "the disk is too full: $CACHE has $free MiB free, this step needs $1 MiB"
}

# locked NAME COMMAND...: one at a time among all runs that share the cache.
locked() {
	local name=$1 fd rc=0
	shift
	make_cache
	exec {fd}>"$CACHE/.lock-$name" || die "the lock $CACHE/.lock-$name can't be opened"
	if ! flock -n "$fd"; then
		say "waiting for another run that prepares $name"
		flock "$fd"
	fi
	"$@" || rc=$?
	exec {fd}>&-
	return "$rc"
}

# hash_of: a short key for what is read from stdin.
hash_of() { sha256sum | cut -c1-12; }

# packages_in LIST...: the packages that are named there.
packages_in() { cat "$@" | sed 's/#.*//' | tr -s ' \n' '\n' | grep -v '^$'; }

# make_root SUITE FOLDER [MIRROR] [OPTION...]: Debian, by mmdebstrap.
make_root() {
	mmdebstrap --mode=root --variant=minbase --architectures=amd64 \
		--keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
		--aptopt='Acquire::Retries "3"' --aptopt='APT::Install-Recommends "false"' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-include=/usr/share/doc/*/copyright' "$@"
}

# discard FOLDER: a bootstrap that was killed leaves its mounts behind. They go first, so that what
# is removed is the folder and nothing that was mounted in it.
discard() {
	local at
	while read -r at; do umount "$at"; done < <(
		awk -v below="$1/" 'index($2, below) == 1 {print $2}' /proc/mounts | sort -r
	)
	rm -rf --one-file-system "$1"
}

# apt_sources FOLDER TOOL [ARG...]: apt of the lab's root, with the sources.list and the lists that
# are in the folder: the root's stay as they are.
apt_sources() {
	local tmp=$1 tool=$2
	shift 2
	"$CI/in-root" "$tool" -q -o APT::Sandbox::User=root \
		-o Dir::Etc::sourcelist="$tmp/sources.list" \
		-o Dir::Etc::sourceparts=- -o Dir::State::lists="$tmp/lists" \
		-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Acquire::Retries=3 "$@"
}

# The packages of the lab's root, and the key under which it is cached.
root_packages() { packages_in "$CI/root-packages.list"; }
root_dir() {
	printf '%s/root-%s' "$CACHE" \
		"$( (echo "$SUITE"; root_packages; cat "$CI/root-pypi.list") | hash_of)"
}

# The stock kernel: the release that was resolved when the root was made; kernel_dir RELEASE: the
# folder of a kernel.
kernel_dir() { printf '%s/kernel-%s' "$CACHE" "$1"; }
stock_release() {
	local f
	f=$(root_dir)/etc/hiops-kernel-release
	[ -r "$f" ] || die "the lab is not prepared: run ci/env"
	cat "$f"
}
# supported: of the packages on stdin, the kernels that hiops supports, the oldest first; releases
# ROOT: those that the archive had when that root was made.
supported() {
	local release
	sed -nE 's/^linux-headers-(7\.[0-9.]+\+deb[0-9]+(-[a-z]+)?-amd64)$/\1/p' | sort -V |
		while read -r release; do
			if dpkg --compare-versions "${release%%+*}" ge 7.2; then echo "$release"; fi
		done
}
releases() { chroot "$1" apt-cache pkgnames linux-headers-7. | supported; }
# The newest kernel of the oldest of their series.
oldest_release() {
	local all
	all=$(releases "$(root_dir)" | grep -E '^[^-]*-amd64$')
	all=$(grep -F "$(sed -nE '1s/^([0-9]+\.[0-9]+\.).*/\1/p' <<<"$all")" <<<"$all")
	tail -n 1 <<<"$all"
}
# release_of stock|oldest|RELEASE
release_of() {
	case $1 in
	stock) stock_release ;;
	oldest) oldest_release ;;
	*) echo "$1" ;;
	esac
}
# built_by CC|RUSTC CONFIG: what made the kernel of that configuration, as it tells its version.
built_by() { sed -n "s/^CONFIG_$1_VERSION_TEXT=\"\(.*\)\"/\1/p" "$2"; }
# kernel_config RELEASE: the configuration of a kernel that is there. compilers_dir CONFIG: the root
# that has a kernel's C compiler (kernel_cc CONFIG) and its rustc. Rust's objects are those of one
# version of the compiler; C's may be of another that has the same major version.
kernel_config() { printf '%s/pkg/usr/src/linux-headers-%s/.config' "$(kernel_dir "$1")" "$1"; }
kernel_cc() { built_by CC "$1" | sed 's/ .*//'; }
compilers_dir() {
	local cc rustc
	cc=$(kernel_cc "$1") rustc=$(built_by RUSTC "$1")
	if [ "$cc" = "$KCC" ] && grep -qxF "$rustc" "$(root_dir)/etc/hiops-toolchain"; then
		root_dir
	else
		printf '%s/compilers-%s' "$CACHE" "$( (echo "$cc $rustc"
			packages_in "$CI/compilers-packages.list") | hash_of)"
	fi
}
debug_config_key() {
	cat "$REPO/kunit/debug.config" "$(root_dir)/etc/hiops-toolchain" | hash_of
}
# This tree's own corner of the cache: two checkouts don't meet.
tree_dir() { printf '%s/build/%s' "$CACHE" "$(printf '%s' "$REPO" | hash_of)"; }
debug_dir() { printf '%s/debug-%s' "$(kernel_dir "$(stock_release)")" "$(debug_config_key)"; }
