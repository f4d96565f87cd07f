#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Records that are appended on ext4 and XFS, with an fsync after each, and memory that goes to the
# swap, on a drive of each kind: while their controllers are reset nothing fails and nothing is
# lost. Where a drive is taken out, in order (its function removed) or by surprise, the fsyncs fail,
# the file systems shut down, and who has memory on the drive dies of it; nothing hangs, the module
# can be removed, and all that was acknowledged is there when the drive is. The other drive's
# programs notice nothing.
# Below the swap is device mapper's linear target: `swapoff` opens what it is told, and the kernel
# opens no disk that has gone.
# host
# image: n.img 640M
# image: s.img 640M
# kernels: none
# long: stock debug
if [ "${1:-}" = guest ] || [ "${1:-}" = check ]; then
	. ci/vm-tests/nvme-lib.sh
	. ci/vm-tests/pull-lib.sh
	declare -A SLOTS=([nvme]=/sys/bus/pci/devices/0000:00:05.0
		[sata]=/sys/bus/pci/devices/0000:00:06.0)
	declare -A DRIVERS=([nvme]=hiops_nvme [sata]=hiops_ahci)
	# Who has a page to write to a drive that has gone tries for half a minute before the kernel
	# kills it for want of memory.
	LONG=300
	# bound KIND: DISKS[KIND] is there, and its partitions are.
	declare -A DISKS=()
	bound() {
		local slot=${SLOTS[$1]}
		until_true "$LONG" has_function && "$BIND" "$(address)" "${DRIVERS[$1]}" &&
			DISKS[$1]=$(disk_of "$(address)")
	}
	parts() { until_true "$LONG" test -b "/dev/${DISKS[$1]}p3"; }
	folder_of() { echo "/run/$1-$2"; }
	# mounted KIND: what has been written there is in its journals.
	mounted() {
		local fs part=1
		for fs in ext4 xfs; do
			mkdir -p "$(folder_of "$1" $fs)"
			mount -t $fs "/dev/${DISKS[$1]}p$part" "$(folder_of "$1" $fs)" || return
			part=$((part + 1))
		done
	}
	unmounted() {
		local fs
		for fs in ext4 xfs; do
			until_true "$LONG" umount "$(folder_of "$1" $fs)" || return
		done
	}
	sound() { e2fsck -fn "/dev/${DISKS[$1]}p1" && xfs_repair -n "/dev/${DISKS[$1]}p2"; }
	# kept KIND FS ROUND COUNT...: the records of that round that were acknowledged.
	kept() {
		local folder
		folder=$(folder_of "$1" "$2")/$3
		shift 3
		python3 ci/vm-tests/records.py read "$folder" "$@"
	}
fi

if [ "${1:-}" = check ]; then
	for kind in nvme sata; do
		expect "$kind-bind-after" bound $kind
		expect "$kind-parts-after" parts $kind
		expect "$kind-mount-after" mounted $kind
		while read -r _ _ on fs round counts; do
			# shellcheck disable=SC2086  # a word for each writer
			[ "$on" != $kind ] ||
				expect "$kind-$fs-$round-kept" kept $kind "$fs" "$round" $counts
		done <<<"$2"
		expect "$kind-umount-after" unmounted $kind
		expect "$kind-fsck-after" sound $kind
	done
	plan
	exit
fi

if [ "${1:-}" = guest ]; then
	WRITERS=4 TOUCHERS=4
	# Memory that is touched, and what of it there is; the debug kernel has no control groups.
	MIB=$(on_debug 32 96)
	GROUP=$(on_debug none /sys/fs/cgroup/limited)
	if [ "$GROUP" != none ]; then
		mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
		put +memory /sys/fs/cgroup/cgroup.subtree_control
		mkdir -p "$GROUP"
		put $((MIB / 3))M "$GROUP/memory.max"
	fi
	# sum FILE: of what its lines count.
	sum() {
		local line all=0
		while read -r line; do all=$((all + line)); done <"$1"
		echo $all
	}
	at_least() { [ "$(sum "$1")" -ge "$2" ]; }
	# goes_on FILE COUNT: so many more.
	goes_on() { until_true "$LONG" at_least "$1" $(($(sum "$1") + $2)); }

	prepare() {
		sfdisk -q --wipe always "/dev/${DISKS[$1]}" < <(
			printf '%s\n' 'label: gpt' size=144M size=304M size=160M
		) && parts "$1" && mkfs.ext4 -qF "/dev/${DISKS[$1]}p1" &&
			mkfs.xfs -qf "/dev/${DISKS[$1]}p2"
	}
	swap_on() {
		local part=/dev/${DISKS[$1]}p3
		# shellcheck disable=SC2153  # mapped tells it
		mapped "swap-$1" "0 $(blockdev --getsz "$part") linear $part 0" &&
			mkswap -q "$NODE" && swapon -p 5 "$NODE"
	}
	swap_off() {
		local node
		node=/dev/dm-$(dmsetup info -c --noheadings -o minor "swap-$1") &&
			until_true "$LONG" swapoff "$node" &&
			until_true "$LONG" dmsetup remove "swap-$1"
	}

	# What runs: KIND-FS and swap. Each has files of its own in this round's folder.
	declare -A RUNS=()
	# writes KIND: on both of its file systems.
	writes() {
		local fs folder
		for fs in ext4 xfs; do
			folder=$(folder_of "$1" $fs)/$ROUND
			mkdir -p "$folder"
			python3 ci/vm-tests/records.py write "$folder" $WRITERS \
				"$HERE/$1-$fs.told" "$HERE/enough-$1" >"$HERE/$1-$fs.said" 2>&1 &
			RUNS[$1-$fs]=$!
		done
	}
	touches() {
		python3 ci/vm-tests/touch.py "$GROUP" "$MIB" $TOUCHERS "$HERE/swap.told" \
			"$HERE/enough-swap" >"$HERE/swap.said" 2>&1 &
		RUNS[swap]=$!
	}
	begin() {
		ROUND=$1 HERE=/run/$1
		mkdir "$HERE"
	}
	# busy WHAT...: each has done something.
	busy() {
		local what
		for what; do
			until_true "$LONG" test -s "$HERE/$what.told" &&
				goes_on "$HERE/$what.told" 50 || return
		done
	}
	# all_say WHAT COUNT PATTERN: that many lines say so, and nothing else is said.
	all_say() {
		cat "$HERE/$1.said"
		[ "$(grep -cE "$3" "$HERE/$1.said")" = "$2" ] &&
			[ "$(wc -l <"$HERE/$1.said")" = "$2" ]
	}
	# ends_well WHAT: nothing has failed there.
	ends_well() {
		wait "${RUNS[$1]}" || { cat "$HERE/$1.said"; return 1; }
		case $1 in
		swap) all_say swap $TOUCHERS ': ok$' ;;
		*) all_say "$1" $WRITERS 'failed: nothing$' ;;
		esac
	}
	# counts_of KIND FS [LOST]: what each writer there has seen acknowledged, but for the last
	# LOST. ext4's fsync may succeed for nothing where the journal is aborted meanwhile, whoever
	# drives the disk: the abort commits what runs, and jbd2_complete_transaction() does not
	# ask how a transaction ended that is over. The next fsync fails.
	counts_of() {
		local count
		while read -r count; do
			[ "$count" -lt "${3:-0}" ] || count=$((count - ${3:-0}))
			echo -n "$count "
		done <"$HERE/$1-$2.told"
	}
	declare -A LOST=([ext4]=1 [xfs]=0)
	# cold KIND: nothing of its file systems is in memory.
	cold() { unmounted "$1" && sound "$1" && mounted "$1"; }
	# all_kept NAME KIND [taken]
	all_kept() {
		local fs counts
		for fs in ext4 xfs; do
			counts=$(counts_of "$2" $fs ${3:+"${LOST[$fs]}"})
			# shellcheck disable=SC2086  # a word for each writer
			expect "$1-$2-$fs-kept" kept "$2" $fs "$ROUND" $counts
		done
	}

	# The controllers are reset, NVMe's by its function's file, too.
	resets() {
		local kind what round
		begin resets
		for kind in nvme sata; do
			expect "resets-$kind-swapon" swap_on $kind
			writes $kind
		done
		touches
		expect resets-busy busy swap nvme-ext4 nvme-xfs sata-ext4 sata-xfs
		for round in 1 2 3; do
			expect "resets-nvme-$round" put 1 "$(slot=${SLOTS[nvme]}; echo \
				"$slot/$(address)/reset")"
			for kind in sata nvme; do
				expect "resets-$kind-own-$round" put 1 \
					"/sys/block/${DISKS[$kind]}/hiops/reset_controller"
			done
			for what in "${!RUNS[@]}"; do
				expect "resets-$what-goes-on-$round" goes_on "$HERE/$what.told" 20
			done
		done
		touch "$HERE"/enough-{nvme,sata,swap}
		for what in "${!RUNS[@]}"; do expect "resets-$what-well" ends_well "$what"; done
		RUNS=()
		for kind in nvme sata; do
			expect "resets-$kind-fsck" cold $kind
			all_kept resets $kind
			expect "resets-$kind-swapoff" swap_off $kind
			same "resets-$kind-errors" "$(count "${DISKS[$kind]}" errors)" 0
		done
	}

	# fsyncs_fail KIND FS: those of every writer; is_down KIND FS: it takes no new file.
	fsyncs_fail() {
		wait "${RUNS[$1-$2]}"
		all_say "$1-$2" $WRITERS 'failed: fsync E[A-Z]+$'
	}
	is_down() { ! touch "$(folder_of "$1" "$2")/new"; }
	# killed: each by what has gone: a page that can't be read, or no room any more for another.
	# With room for all, who happens to have all of its pages in memory keeps them, and they
	# are right.
	killed() {
		local how='SIGBUS|SIGKILL'
		wait "${RUNS[swap]}"
		[ "$GROUP" != none ] || how='SIGBUS|ok'
		all_say swap $TOUCHERS ": ($how)\$" && grep -q SIGBUS "$HERE/swap.said"
	}
	# taken HOW KIND OTHER...: that drive is taken out; the others stay.
	taken() {
		local how=$1 kind=$2 other fs what disk slot
		local others=("${@:3}")
		begin "$how-$kind"
		disk=${DISKS[$kind]} slot=${SLOTS[$kind]}
		expect "$ROUND-swapon" swap_on "$kind"
		for other in "$kind" "${others[@]}"; do writes "$other"; done
		touches
		expect "$ROUND-busy" busy "${!RUNS[@]}"
		case $how in
		removed) expect "$ROUND" put 1 "$slot/$(address)/remove" ;;
		surprise) expect "$ROUND" pull_by_surprise ;;
		esac
		expect "$ROUND-gone" until_true "$LONG" absent "/dev/$disk"
		[ "$GROUP" != none ] || touch "$HERE/enough-swap"
		for what in "$kind-ext4" "$kind-xfs" swap; do
			expect "$ROUND-$what-ends" until_true "$LONG" ended "${RUNS[$what]}"
		done
		for fs in ext4 xfs; do
			expect "$ROUND-$fs-fails" fsyncs_fail "$kind" $fs
			expect "$ROUND-$fs-is-down" is_down "$kind" $fs
		done
		expect "$ROUND-killed" killed
		for other in "${others[@]}"; do
			for fs in ext4 xfs; do
				expect "$ROUND-$other-$fs-goes-on" goes_on \
					"$HERE/$other-$fs.told" 20
			done
			touch "$HERE/enough-$other"
			for fs in ext4 xfs; do
				expect "$ROUND-$other-$fs-well" ends_well "$other-$fs"
			done
		done
		RUNS=()
		expect "$ROUND-umount" unmounted "$kind"
		expect "$ROUND-swapoff" swap_off "$kind"
		expect "$ROUND-function-gone" until_true "$LONG" has_none
		if [ "$how" = removed ]; then
			put 1 /sys/bus/pci/rescan
			expect "$ROUND-bind" bound "$kind"
			expect "$ROUND-parts" parts "$kind"
			expect "$ROUND-mount" mounted "$kind"
			all_kept "$ROUND" "$kind" taken
			expect "$ROUND-fsck" cold "$kind"
		else
			for fs in ext4 xfs; do
				echo "host: acked $kind $fs $ROUND" \
					"$(counts_of "$kind" $fs "${LOST[$fs]}")"
			done
		fi
	}

	modprobe dm_mod
	for kind in nvme sata; do
		expect "$kind-bind" bound $kind
		expect "$kind-prepare" prepare $kind
		expect "$kind-mount" mounted $kind
	done
	if [ "$2" = resets ]; then
		resets
		taken removed nvme sata
		taken removed sata nvme
		for kind in nvme sata; do expect "$kind-umount" unmounted $kind; done
	else
		taken surprise nvme sata
		taken surprise sata
	fi
	expect rmmod until_true 60 rmmod hiops
	plan
	exit
fi

set -uo pipefail
. ci/report.sh
# machine CPUS ARGUMENT...: the guest's part.
machine() {
	local cpus=$1 bridge='-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off'
	shift
	ci/vm --kernel "$KERNEL" --cpus "$cpus" --timeout 1500 \
		--qemu "$bridge -drive file=$DIR/n.img,format=raw,if=none,id=n" \
		--qemu "-device pcie-root-port,id=rp,chassis=1,slot=1,addr=5" \
		--qemu "-device nvme,bus=rp,serial=taken-n,drive=n,max_ioqpairs=2" \
		--qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s" \
		--qemu "-device pcie-root-port,id=rp2,chassis=2,slot=2,addr=6" \
		--qemu "-device ich9-ahci,id=hba,bus=rp2" \
		--qemu "-device ide-hd,serial=taken-s,drive=s,bus=hba.0" -- "$0" "$@" |
		while read -r line; do
			case $line in
			'host: '*) echo "$line" >>"$DIR/acked" ;;
			*) echo "$line" ;;
			esac
		done
	return "${PIPESTATUS[0]}"
}
retell resets '' machine 2 guest resets
# By surprise: see pull-lib.sh. The debug kernel does not drive such slots, as it has no
# PCI_MMCONFIG, and would hear of it by the time-outs of commands only.
if [ "$KERNEL" != debug ]; then
	: >"$DIR/acked"
	retell surprise '' machine 1 guest surprise
	retell check '' machine 2 check "$(cat "$DIR/acked")"
fi
plan
