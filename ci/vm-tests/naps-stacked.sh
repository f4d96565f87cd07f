#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Threads that nap below other layers: device mapper, encryption, ext4 and XFS, direct and through
# the page cache; while predict is switched, too; in make test-long beside polling, as well. By a
# clock that counts instructions.
# vm: --icount --timeout 900
# long: debug
. ci/vm-tests/guest-lib.sh
A=/dev/hiops_ram0
H=/sys/block/hiops_ram0/hiops
stat() { count hiops_ram0 "$1"; }
# Long beside what a sleep takes.
latency_us=$(on_debug 3000 300)
key=$(printf '0%.0s' {1..64})
mkdir -p /run/fs

# verified FILE OPTIONS...: what is written there, block after block, is read again.
verified() {
	local file=$1
	shift
	fio --name=v --filename="$file" --ioengine=psync --rw=randwrite --bs=4k --size=1M \
		--verify=crc32c --verify_fatal=1 "$@"
}
# Reads are napped for. While mkfs ran, threads were kept waiting for slices, and naps are given up
# for a while then: they are tried again.
napped() {
	before=$(stat naps)
	fio --name=r --filename=/run/fs/direct --ioengine=psync --rw=randread --bs=4k --size=1M \
		--direct=1 || return
	[ "$(stat naps)" -gt "$before" ]
}
# file_system NAME MKFS...: on NODE, in `mode`; whether the thread that waits is `submitter`, too.
file_system() {
	local fs=$1-$mode type=$1 switcher
	shift
	expect "mkfs-$fs" "$@" "$NODE"
	expect "mount-$fs" mount -t "$type" "$NODE" /run/fs
	expect "direct-$fs" verified /run/fs/direct --direct=1
	expect "cached-$fs" verified /run/fs/cached --invalidate=1 --end_fsync=1
	! $submitter || expect "napped-$fs" until_true 120 napped
	while [ ! -e "$ENOUGH" ]; do
		for predict in 0 1; do echo $predict >$H/predict; done
	done &
	switcher=$!
	expect "switched-$fs" verified /run/fs/switched --direct=1
	touch "$ENOUGH"
	wait $switcher
	rm "$ENOUGH"
	cp /run/fs/direct /run/fs/copy
	sync -f /run/fs
	echo 3 >/proc/sys/vm/drop_caches
	expect "same-$fs" cmp /run/fs/direct /run/fs/copy
	expect "umount-$fs" umount /run/fs
}

modes=(0)
[ -z "${HIOPS_LONG:-}" ] || modes=(0 2)
for mode in "${modes[@]}"; do
	expect "load-$mode" modprobe hiops ram_disks=1 ram_size_mb=320 ram_queues=2 predict=1 \
		mode=$mode poll_interval_us=$((latency_us * 3)) ram_latency_us="$latency_us"
	sectors=$(blockdev --getsz $A)
	expect "linear-$mode" mapped plain "0 $sectors linear $A 0"
	submitter=true
	file_system xfs mkfs.xfs -q -f
	expect "sound-xfs-$mode" xfs_repair -n "$NODE"
	dmsetup remove plain
	# By work queues, or in the thread that waits.
	how='' submitter=false
	if [ $mode = 0 ]; then
		how='2 no_read_workqueue no_write_workqueue' submitter=true
	fi
	expect "cipher-$mode" mapped secret "0 65536 crypt aes-cbc-essiv:sha256 $key 0 $A 0 $how"
	file_system ext4 mkfs.ext4 -q -F
	expect "sound-ext4-$mode" e2fsck -fn "$NODE"
	dmsetup remove secret
	same "naps-sum-$mode" $(($(stat naps_hit) + $(stat naps_late) + $(stat naps_vain) +
		$(stat naps_woken))) "$(stat naps)"
	same "no-errors-$mode" "$(stat errors)" 0
	expect "rmmod-$mode" until_true 10 rmmod hiops
done
plan
