#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What programs do that do not read and write 4 KiB past the page cache (bench/loads.py measures the
# same), on a drive of each kind, and all of the data verified: files on ext4 and XFS that are read
# cold, in memory that is a quarter of theirs, by reads and by faults; dirty pages; appends with an
# fsync after each; memory that goes to the swap; device mapper, encryption, md's RAID 0 and 1;
# mixes of a database, of messaging, of paging and of a log. The file systems are checked
# afterwards.
# image: n0.img 512M
# image: n1.img 512M
# image: s0.img 512M
# image: s1.img 512M
# vm: --timeout 1500 --qemu "-drive file=$DIR/n0.img,format=raw,if=none,id=n0"
# vm: --qemu "-device nvme,serial=n0,drive=n0,max_ioqpairs=2,addr=4"
# vm: --qemu "-drive file=$DIR/n1.img,format=raw,if=none,id=n1"
# vm: --qemu "-device nvme,serial=n1,drive=n1,max_ioqpairs=2,addr=5"
# vm: --qemu "-device ich9-ahci,id=hba,addr=6"
# vm: --qemu "-drive file=$DIR/s0.img,format=raw,if=none,id=s0"
# vm: --qemu "-device ide-hd,serial=s0,drive=s0,bus=hba.0"
# vm: --qemu "-drive file=$DIR/s1.img,format=raw,if=none,id=s1"
# vm: --qemu "-device ide-hd,serial=s1,drive=s1,bus=hba.1"
# kernels: stock
# long: debug
. ci/vm-tests/nvme-lib.sh
M=/run/m
# In the debug kernel a thread takes seconds to start.
FEW=$(on_debug 4 16) MANY=$(on_debug 16 64)
# MiB of the memory that a program has with its page cache, and of a file that it reads.
MEMORY=$(on_debug 16 32)
FILE=$((MEMORY * 4))
# Of all jobs together: reads of 4 KiB, and KiB that are appended.
READS=$(on_debug 1024 8192) SYNCED=$(on_debug 512 2048)
# The debug kernel has no control groups: there a file is out of memory when a load begins, few
# parts of it are read twice, and memory goes to the swap because it is asked to.
GROUP=$(on_debug none /sys/fs/cgroup/limited)
mkdir -p $M
if [ "$GROUP" != none ]; then
	mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
	put +memory /sys/fs/cgroup/cgroup.subtree_control
	mkdir -p "$GROUP"
fi
# room MIB: that is how much memory there is in the group.
room() { [ "$GROUP" = none ] || put "${1}M" "$GROUP/memory.max"; }
# limited MIB COMMAND...: with so much memory.
limited() {
	room "$1" || return
	(
		[ "$GROUP" = none ] || put "$BASHPID" "$GROUP/cgroup.procs" || exit
		shift
		"$@"
	)
}
# sectors DISK: so many were read there.
sectors() {
	local stat
	read -r -a stat <"/sys/block/$1/stat"
	echo "${stat[2]}"
}
# verified OPTIONS...: fio, and what it reads is what was written.
verified() {
	fio --name=v --thread --verify=crc32c --verify_fatal=1 --verify_interval=4k \
		--fallocate=none "$@"
}

# cold DISK MIB JOBS OPTIONS...: the file in $M is read in so much memory, which is less than the
# file has, and so most of it from the disk.
cold() {
	local disk=$1 mib=$2 jobs=$3 before
	shift 3
	before=$(sectors "$disk")
	limited "$mib" verified --filename=$M/file --size=${FILE}M --numjobs="$jobs" "$@" ||
		return
	before=$(($(sectors "$disk") - before))
	echo "$before sectors were read"
	[ $before -ge $((READS * 8 / 2)) ]
}
# files DISK FS MKFS...: what is done with files.
files() {
	local disk=$1 fs=$2 name jobs each dirty
	name=$kind-$fs
	shift 2
	expect "$name-mkfs" "$@" "/dev/$disk"
	expect "$name-mount" mount -t "$fs" "/dev/$disk" $M
	expect "$name-file" verified --filename=$M/file --size=${FILE}M --direct=1 --rw=write \
		--bs=64k --do_verify=0
	expect "$name-cold-in-order" cold "$disk" $MEMORY 1 --rw=read --bs=64k
	for jobs in "$FEW" "$MANY"; do
		each=$((READS / jobs))
		expect "$name-cold-$jobs" cold "$disk" $MEMORY "$jobs" --rw=randread \
			--bs=4k --norandommap --number_ios=$each
		# Each job maps all of it, and has page tables of its own, which are memory, too.
		expect "$name-fault-$jobs" cold "$disk" $((MEMORY + jobs * FILE / 512)) "$jobs" \
			--ioengine=mmap --rw=randread --bs=4k --norandommap --number_ios=$each
	done
	dirty="--filename=$M/dirty --size=$(on_debug 4 32)M --rw=randwrite --bs=4k"
	expect "$name-dirty" verified $dirty --do_verify=0
	expect "$name-sync" sync
	put 3 /proc/sys/vm/drop_caches
	expect "$name-synced" verified $dirty --verify_only
	for jobs in 1 "$FEW"; do
		expect "$name-fsync-$jobs" verified --directory=$M \
			--filename_format="a$jobs.\$jobnum" --rw=write --bs=4k \
			--size=$((SYNCED / jobs))k --numjobs="$jobs" --fsync=1
	done
	expect "$name-umount" umount $M
	case $fs in
	ext4) expect "$name-fsck" e2fsck -fn "/dev/$disk" ;;
	xfs) expect "$name-fsck" xfs_repair -n "/dev/$disk" ;;
	esac
}

# mixed NAME FILE JOBS KIB OPTIONS...: each job has a part of so many KiB to itself, and what it
# wrote is read while it goes on, and at the end.
mixed() {
	local name=$1 file=$2 jobs=$3
	local part="--size=$4k --offset_increment=$4k"
	shift 4
	expect "$kind-$name-$jobs" verified --filename="$file" --direct=1 --numjobs="$jobs" \
		--verify_backlog=16 $part "$@"
}
# Table 1 of "Fine Grained Linux I/O Subsystem Enhancements to Harness Solid State Storage".
mixes() {
	local file=/dev/$1 jobs few many
	for jobs in 1 "$FEW" "$MANY"; do
		few=$((SYNCED * 4 / jobs)) many=$((SYNCED * 16 / jobs))
		mixed oltp7 "$file" "$jobs" $few --rw=randrw --rwmixread=7 --bs=8k
		mixed oltp70 "$file" "$jobs" $few --rw=randrw --rwmixread=70 --bs=8k
		mixed messaging "$file" "$jobs" $few --rw=randrw --rwmixread=67 --bs=4k
		mixed paging "$file" "$jobs" $many --rw=rw --rwmixread=90 --bs=64k
		mixed log "$file" "$jobs" $many --rw=write --bs=64k
	done
}

KEY=$(printf '5a%.0s' {1..64})
# The debug kernel has no RAID 0.
RAIDS=(--chunk=64 --assume-clean)
read -r -a LEVELS <<<"$(on_debug 1 '0 1')"
# layered DISK DISK: what is made of disks.
layered() {
	local sectors node=/dev/md100 part=$((SYNCED * 4 / FEW)) target level
	local -A tables=([linear]="linear /dev/$1 0"
		[crypt]="crypt aes-xts-plain64 $KEY 0 /dev/$1 0")
	sectors=$(blockdev --getsz "/dev/$1")
	for target in linear crypt; do
		expect "$kind-$target" mapped "$target" "0 $sectors ${tables[$target]}"
		# shellcheck disable=SC2153  # mapped tells it
		mixed "$target" "$NODE" "$FEW" $part --rw=randrw --bs=4k
		expect "$kind-$target-gone" dmsetup remove "$target"
	done
	for level in "${LEVELS[@]}"; do
		expect "$kind-raid$level" mdadm -q --build $node --run --level="$level" \
			--raid-devices=2 "${RAIDS[$level]}" "/dev/$1" "/dev/$2"
		expect "$kind-raid$level-begun" dd if=/dev/zero of=$node bs=1M count=16 \
			oflag=direct
		mixed "raid$level" $node "$FEW" $part --rw=randrw --bs=4k
		expect "$kind-raid$level-gone" mdadm -q --stop $node
	done
	expect "$kind-raid1-alike" cmp -n $((16 << 20)) "/dev/$1" "/dev/$2"
}

# swapped DISK: four processes have a quarter of the memory that they touch.
swapped() {
	local before mib least
	mib=$(on_debug 32 256)
	before=$(sectors "$1")
	expect "$kind-mkswap" mkswap -q "/dev/$1"
	expect "$kind-swapon" swapon "/dev/$1"
	room $((mib / 4))
	expect "$kind-swap" python3 ci/vm-tests/touch.py "$GROUP" "$mib" 4 "$OUT.touched" 1000
	expect "$kind-swapoff" swapoff "/dev/$1"
	# What is asked to go stays until it is written, and may be wanted again before.
	least=$((mib * $(on_debug 256 1024)))
	expect "$kind-was-swapped" [ $(($(sectors "$1") - before)) -ge $least ]
}

modprobe -a dm_mod md_mod
for address in 4 5; do expect "bind-$address" "$BIND" "0000:00:0$address.0" hiops_nvme; done
expect bind-sata "$BIND" 0000:00:06.0 hiops_ahci
for drives in 'nvme hiops0n1 hiops1n1' 'sata hiops2d0 hiops2d1'; do
	read -r kind first second <<<"$drives"
	files "$first" ext4 mkfs.ext4 -qF
	files "$first" xfs mkfs.xfs -qf
	swapped "$first"
	mixes "$first"
	layered "$first" "$second"
	for disk in "$first" "$second"; do
		for what in errors timeouts resets; do
			same "$kind-$disk-no-$what" "$(count "$disk" $what)" 0
		done
	done
done
for address in 4 5 6; do expect "none-$address" "$BIND" "0000:00:0$address.0" none; done
expect rmmod until_true 10 rmmod hiops
plan
