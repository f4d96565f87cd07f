#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The machine is killed while ext4, XFS, raw blocks and bytes of both kinds of drives are written
# and made durable. Then each drive's log is cut at random places, its cache forgets there what was
# not flushed, and all that was acknowledged before is looked for (ci/crash).
# HIOPS_CRASH_CUTS: places for each drive; HIOPS_CRASH_SEED: where they are.
# host
CUTS=${HIOPS_CRASH_CUTS:-1}
# What a writer has acknowledged at least when the machine is killed.
ENOUGH_ACKED=32
# Each drive, and its file system, if it has one.
DRIVES=('hiops0n1 ext4' 'hiops1n1 xfs' 'hiops2d0 ext4' 'hiops2d1 xfs' 'hiops3n1 bytes')

if [ "${1:-}" = load ]; then
	. ci/vm-tests/nvme-lib.sh
	"$BIND" 0000:00:04.0 hiops_nvme && "$BIND" 0000:00:05.0 hiops_nvme &&
		"$BIND" 0000:00:06.0 hiops_ahci && "$BIND" 0000:00:07.0 hiops_nvme || exit
	for drive in "${DRIVES[@]}"; do
		read -r disk fs <<<"$drive"
		folder=/run/crash/$disk
		if [ "$fs" = bytes ]; then
			folder=bytes
			put 1 "/sys/block/$disk/hiops/bytes" || exit
		else
			mkdir -p "$folder"
			mount -t "$fs" "/dev/$disk" "$folder" || exit
		fi
		flush=()
		# QEMU's NVMe drive takes FUA for nothing: there only a flush is worth a promise.
		[[ $disk == *d* ]] || flush=(--flush)
		python3 ci/crash/load.py "/dev/$disk" "$folder" "${flush[@]}" &
	done
	wait
	exit
fi
if [ "${1:-}" = check ]; then
	. ci/vm-tests/nvme-lib.sh
	"$BIND" "$PCI" hiops_nvme || exit
	modprobe -a loop ext4 xfs
	for drive in "${DRIVES[@]}"; do
		read -r disk fs <<<"$drive"
		shift
		looked_at() {
			python3 ci/crash/check.py /dev/hiops0n1 "$fs" "/run/crash/$disk" <<<"$1"
		}
		retell "$disk" '' looked_at "$1"
	done
	plan
	exit
fi

set -uo pipefail
. ci/report.sh
SEED=${HIOPS_CRASH_SEED:-$RANDOM}
SIZE=320M
writes=blklogwrites,log-sector-size=512,log-super-update-interval=1
files=()
for drive in "${DRIVES[@]}"; do
	read -r disk fs <<<"$drive"
	truncate -s $SIZE "$DIR/$disk.base"
	case $fs in
	ext4) ci/in-root mkfs.ext4 -q -F "$DIR/$disk.base" 304M ;;
	bytes) truncate -s $SIZE "$DIR/$disk.base" ;;
	xfs) ci/in-root mkfs.xfs -q -f -d "file,name=$DIR/$disk.base,size=304m" ;;
	esac >&2 || exit
	cp --sparse=always "$DIR/$disk.base" "$DIR/$disk.img"
	truncate -s $SIZE "$DIR/$disk.img"
	: >"$DIR/$disk.log"
	files+=("-blockdev driver=file,filename=$DIR/$disk.img,node-name=img-$disk"
		"-blockdev driver=file,filename=$DIR/$disk.log,node-name=log-$disk"
		"-blockdev driver=$writes,file=img-$disk,log=log-$disk,node-name=$disk")
done

# Killed like a machine whose power fails, once every writer has made something durable.
kill_it() {
	: >"$DIR/killed"
	pkill -KILL -f "^[^ ]*qemu-system-x86_64 .*$DIR/"
}
declare -A acked=()
ci/vm --kernel "$KERNEL" --timeout 300 --qemu "${files[*]}" \
	--qemu "-device nvme,serial=crash0,drive=hiops0n1,addr=4" \
	--qemu "-device nvme,serial=crash1,drive=hiops1n1,addr=5" \
	--qemu "-device ich9-ahci,id=hba,addr=6" \
	--qemu "-device ide-hd,serial=crash2,drive=hiops2d0,bus=hba.0" \
	--qemu "-device ide-hd,serial=crash3,drive=hiops2d1,bus=hba.1" \
	--qemu "-device nvme,serial=crash4,drive=hiops3n1,addr=7" \
	-- "$0" load 2>"$DIR/err" |
	while read -r _ what disk writer count; do
		if [ "$what" != acked ]; then
			not_ok load "$disk $writer $count"
			kill_it
			continue
		fi
		[ "$count" -lt $ENOUGH_ACKED ] || acked[$disk-$writer]=1
		[ ${#acked[@]} -lt 10 ] || kill_it
	done

if [ ! -e "$DIR/killed" ]; then
	# Whoever runs this looks here for QEMU's own failures.
	cat "$DIR/err" >&2
	not_ok load "the machine ended by itself"
	plan
	exit 1
fi

# shellcheck source=ci/splat.sh
. ci/splat.sh
if complaints=$(splats "$HIOPS_VM_LOG"); then not_ok load "$complaints"; fi

# The drives that lost power, side by side on one.
place=0 cuts=()
for drive in "${DRIVES[@]}"; do
	read -r disk fs <<<"$drive"
	ci/in-root python3 -B ci/crash/cuts.py "$DIR/$disk.log" "$DIR/$disk.base" "$DIR/cuts.img" \
		$place "$CUTS" "$SEED-$disk" >"$DIR/$disk.cuts" ||
		not_ok cuts "$disk"
	cuts+=("$(cat "$DIR/$disk.cuts")")
	place=$((place + CUTS))
done
printf '%s\n' "${cuts[@]}" >&2
retell "the drives" '' ci/vm --kernel "$KERNEL" --timeout $((300 + 60 * CUTS)) \
	--qemu "-drive file=$DIR/cuts.img,format=raw,if=none,id=a" \
	--qemu "-device nvme,serial=cuts,drive=a,addr=4" -- "$0" check "${cuts[@]}"
plan
