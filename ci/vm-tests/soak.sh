#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Every switch turned at random under load: fio with 64 jobs that verify, io_uring, ext4 and memory
# pressure, on a RAM disk and an NVMe drive at once. Nothing is lost, nothing is wrong, and what was
# submitted is completed. HIOPS_SOAK_S seconds of it (default 30 on each kernel; `make soak` takes
# more), with RAM disks that take commands as HIOPS_SOAK_PROTOCOL says (queue, or blocks).
# host
# image: a.img 256M
# kernels: stock
# long: debug
if [ -n "${HIOPS_VM_KERNEL:-}" ]; then
	. ci/vm-tests/nvme-lib.sh
	SECONDS_OF_IT=${1:-30} PROTOCOL=${2:-queue}
	RAM=/dev/hiops_ram0 NVME=/dev/hiops0n1 EXT4=/dev/hiops_ram1
	DISKS='hiops_ram0 hiops_ram1 hiops0n1'
	TURNED=$OUT.turned
	expect load modprobe hiops ram_disks=2 ram_size_mb=64 ram_latency_us=20 ram_queues=2 \
		ram_protocol="$PROTOCOL"
	expect bind "$BIND" "$PCI" hiops_nvme
	as_it_comes() {
		reads "$1/strategy" coop && reads "$1/mode" hybrid && reads "$1/lazy" 0 &&
			reads "$1/coop" 1
	}
	for disk in $DISKS; do
		expect "begins-$disk" as_it_comes "/sys/block/$disk/hiops"
	done

	# Each job takes seconds to start on the debug kernel: fewer where the time is short.
	jobs=64
	[ "$SECONDS_OF_IT" -ge 300 ] || jobs=$(on_debug 16 64)
	# Once, and again where the machine is so slow that too few switches were turned meanwhile.
	again() {
		while :; do
			"$@" >>"/run/$1.out" 2>&1 || return
			[ ! -e "$TURNED" ] || return 0
		done
	}
	psync_jobs() {
		fio --name=jobs --filename=$RAM --direct=1 --ioengine=psync --rw=randrw \
			--rwmixread=50 --bsrange=512-16k --blockalign=512 --size=512k \
			--offset_increment=1M --numjobs=$jobs --thread --verify=crc32c \
			--verify_fatal=1 --time_based --runtime="$SECONDS_OF_IT" --loops=1000000 \
			--minimal
	}
	io_uring_jobs() {
		fio --name=uring --filename=$NVME --direct=1 --ioengine=io_uring --iodepth=32 \
			--rw=randwrite --bs=4k --size=16M --offset_increment=32M --numjobs=2 \
			--thread --verify=crc32c --verify_fatal=1 --time_based \
			--runtime="$SECONDS_OF_IT" --loops=1000000 --minimal
	}
	# Who naps first pays for it; it is paid before there is load.
	nap 0
	again psync_jobs &
	psync=$!
	again io_uring_jobs &
	uring=$!
	mkfs.ext4 -q $EXT4 && mount $EXT4 /mnt
	files() {
		local round=0
		while [ ! -e "$ENOUGH" ]; do
			round=$((round + 1))
			cp /bin/bash "/mnt/$((round % 8))" && sync -d "/mnt/$((round % 8))" &&
				echo 1 >/proc/sys/vm/drop_caches &&
				cmp /bin/bash "/mnt/$((round % 8))" || return 1
			echo $round >"$OUT.files"
		done
	}
	files >/run/files.out 2>&1 &
	files=$!
	# Most of what is free, taken and given back.
	pressure() {
		local free round=0
		while [ ! -e "$ENOUGH" ]; do
			free=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
			head -c "$((free * 3 / 4))k" /dev/zero >/run/pressure
			sleep 1
			rm -f /run/pressure
			echo $((round += 1)) >"$OUT.pressure"
		done
	}
	pressure &
	pressure=$!
	RANDOM=1 turns=0
	# Who turns isn't to starve behind those who do I/O.
	renice -n -10 $$ >/dev/null
	one_of() { shift $((RANDOM % $#)); echo "$1"; }
	while kill -0 $psync 2>/dev/null; do
		for disk in $DISKS; do
			switches=/sys/block/$disk/hiops
			case $((RANDOM % 7)) in
			0) one_of irq poll hybrid >"$switches/mode" ;;
			1) one_of 0 1 >"$switches/lazy" ;;
			2) one_of 0 1 >"$switches/coop" ;;
			3) one_of 8 16 32 128 1000 >"$switches/poll_interval_us" ;;
			4) one_of plain coop "$(on_debug random plain)" >"$switches/strategy" ;;
			5) one_of 0 1 >"$switches/predict" ;;
			6) one_of 1 16 100 >"$switches/predict_window_us" ;;
			esac || not_ok "turn-$turns" "$disk: a switch is refused"
			turns=$((turns + 1))
		done
		[ "$turns" -lt 12 ] || : >"$TURNED"
		nap 0.0$((RANDOM % 9 + 1))
	done
	: >"$TURNED"
	wait $psync
	same jobs "$?" 0
	wait $uring
	same uring "$?" 0
	touch "$ENOUGH"
	wait $files
	same files "$?" 0
	wait $pressure
	# How many rounds is the machine's speed; there was one at least of each.
	expect files-rounds grep -q . "$OUT.files"
	expect pressure-rounds grep -q . "$OUT.pressure"
	# How many there are is the machine's speed; each disk's were turned several times.
	expect turned test "$turns" -ge 12
	all_ok || tail -n 20 /run/*.out >&2
	umount /mnt
	expect fsck fsck.ext4 -fn $EXT4
	for disk in $DISKS; do
		idle() { [ "$(count "$disk" submitted)" = "$(count "$disk" completed)" ]; }
		expect "all-over-$disk" until_true 10 idle
		expect "no-trouble-$disk" test \
			"$(count "$disk" errors)$(count "$disk" timeouts)$(count "$disk" resets)" \
			= 000
		tr '\n' ' ' <"/sys/block/$disk/hiops/stats" >&2
		echo "$turns turns" >&2
	done
	expect unbind "$BIND" "$PCI" none
	expect rmmod rmmod hiops
	plan
	exit
fi

set -uo pipefail
exec ci/vm --kernel "$KERNEL" --memory 1G --timeout $((${HIOPS_SOAK_S:-30} * 3 + 400)) \
	--qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a" \
	--qemu "-device nvme,serial=soak,drive=a,addr=4,max_ioqpairs=2" \
	-- "$0" "${HIOPS_SOAK_S:-30}" "${HIOPS_SOAK_PROTOCOL:-queue}"
