#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The machine sleeps and wakes up, and hibernates, under verified load on both kinds of drives:
# nothing is lost, nothing fails, and the drive is told each time. The image of a hibernation is
# written to, and read from, a drive of hiops' own. And under writeback to slow drives, alone and as
# a mirror of md's, and with memory that goes to the swap: the threads of all that are not frozen,
# and what they have under way is of CPUs that are taken down. And under records that are appended
# on ext4 and XFS with an fsync after each. In make test-long on four CPUs, too, and with the
# in-tree drivers beside it.
# host
# image: a.img 640M
# image: b.img 640M
# image: swap.img 1G
# image: slow-n.img 64M
# image: slow-s.img 64M
# image: mirror-n.img 64M
# image: mirror-s.img 64M
# kernels: stock
ROUNDS=${HIOPS_SUSPEND_ROUNDS:-2}
if [ "${1:-}" = guest ]; then
	nvme=$2 ahci=$3
	. ci/vm-tests/nvme-lib.sh
	for address in 4 7 8 9; do "$BIND" "0000:00:0$address.0" "$nvme" || exit; done
	modprobe sd_mod
	"$BIND" 0000:00:06.0 "$ahci" || exit
	# sata PORT: the disk there.
	sata() {
		local disk at port
		for disk in /sys/block/*; do
			at=$(readlink -f "$disk")
			case $at in */0000:00:06.0/*) ;; *) continue ;; esac
			port=$(cat "$disk/port_no" 2>/dev/null) || {
				port=${at##*/ata}
				port=$(cat "/sys/class/ata_port/ata${port%%/*}/port_no")
			}
			[ "$port" != $(($1 + 1)) ] || basename "$disk"
		done
	}
	all_sata() { [ "$(sata 0)" ] && [ "$(sata 1)" ] && [ "$(sata 2)" ]; }
	until_true 60 all_sata || exit
	disks="$(disk_of "$PCI") $(sata 0)"
	for disk in $disks; do
		# Of hiops' own.
		[ ! -e "/sys/block/$disk/hiops" ] || put 1 "/sys/block/$disk/hiops/bytes" || exit
		# File systems behind what the loads write, which leave the table alone.
		printf '%s\n' 128M,64M 192M,320M | sfdisk -q "/dev/$disk" &&
			mkfs.ext4 -q "/dev/${disk}p1" && mkfs.xfs -q "/dev/${disk}p2" || exit
		# What they need of the kernel is loaded now: modprobe's root does not come back.
		for part in p1 p2; do
			mount "/dev/$disk$part" /mnt && umount /mnt || exit
		done
	done
	slow="$(disk_of 0000:00:08.0) $(sata 1)"
	swap=$(disk_of 0000:00:07.0)
	mkswap -q "/dev/$swap" && swapon "/dev/$swap" &&
		cat "/sys/block/$swap/dev" >/sys/power/resume || exit
	mirrored="$(disk_of 0000:00:09.0) $(sata 2)"
	mdadm -q --create /dev/md0 --run --level=1 --assume-clean --raid-devices=2 --bitmap=none \
		"/dev/${mirrored% *}" "/dev/${mirrored#* }" >&2 || exit
	slow+=" md0"
	# Who has less memory than it needs, alone: the share's pages must not go.
	mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control && mkdir /sys/fs/cgroup/hungry &&
		echo 48M >/sys/fs/cgroup/hungry/memory.max || exit
	# The image is taken for the machine's own at once: no other kernel boots. It is as large as
	# it comes: to make it smaller memory of the root's would be given back, which wants the
	# share.
	echo test_resume >/sys/power/disk || exit
	# The machine's own root, which the host shares, does not come back from sleep: all that is
	# needed is in memory.
	root=/run/awake
	mkdir -p $root/{bin,dev,etc,proc,sys,run,tmp}
	# Where the loader finds what follows.
	cp /etc/ld.so.cache $root/etc/
	for tool in bash fio seq tr mktemp grep rm tail dd cmp ln sync mount umount mkdir \
		e2fsck xfs_repair; do
		tool=$(type -P $tool)
		cp "$tool" $root/bin/
		for file in $(ldd "$tool" | grep -o '/[^ ]*'); do
			mkdir -p "$root${file%/*}"
			cp -n "$file" "$root$file"
		done
	done
	cp "$0" $root/bin/test
	cp ci/report.sh $root/bin/
	for dir in dev proc sys; do mount --rbind /$dir $root/$dir; done
	exec env -i PATH=/usr/sbin:/usr/bin:/bin HIOPS_SUSPEND_ROUNDS="$ROUNDS" \
		HIOPS_SWAP="$swap" HIOPS_SLOW="$slow" DISKS="$disks" HIOPS_MIRRORED="$mirrored" \
		chroot $root /bin/bash /bin/test awake
fi

if [ "${1:-}" = awake ]; then
	# Results go by the log: the ports that a command's output takes do not come back either.
	. /bin/report.sh
	report_line() { echo "result: $1" >/dev/kmsg; }
	expect() {
		local what=$1
		shift
		if "$@" >/tmp/out 2>&1; then
			ok "$what"
		else
			not_ok "$what" "status $? of: $*: $(tr '\n' ' ' </tmp/out)"
		fi
	}
	# count DISK NAME: one of hiops' own; its files are not those of other drivers.
	count() {
		local name value
		while read -r name value; do
			[ "$name" != "$2" ] || echo "$value"
		done <"/sys/block/$1/hiops/stats"
	}
	# completed DISK: so many reads and writes; of a partition, too.
	completed() {
		local reads writes merged sectors time
		read -r reads merged sectors time writes merged <"/sys/class/block/$1/stat"
		echo $((reads + writes))
	}
	# load FILE OPTION...: four jobs there, and what they read is what they wrote.
	load() {
		local file=$1
		shift
		while [ ! -e /tmp/enough ]; do
			fio --name=load --filename="$file" --direct=1 --ioengine=psync --rw=randrw \
				--numjobs=4 --thread --verify=crc32c --verify_state_save=0 "$@" ||
				return
		done
	}
	blocks() { load "/dev/$1" --bs=4k --size=4M --offset=1M --offset_increment=4M; }
	# Its bytes: jobs that have blocks in common.
	bytes() {
		[ ! -e "/dev/$1_bytes" ] ||
			load "/dev/$1_bytes" --bs=300 --size=30000 --offset=32M \
				--offset_increment=30000
	}
	# more DISK COUNT: that many more I/Os are done, if its load has not failed.
	more() {
		local wanted=$(($(completed "$1") + $2))
		until [ "$(completed "$1")" -ge "$wanted" ]; do
			[ ! -e "/tmp/$1.failed" ] || { tail "/tmp/$1.failed"; return 1; }
		done
	}
	echo 0 >/sys/module/suspend/parameters/pm_test_delay
	# fall_asleep NAME LEVEL [SECONDS]: the machine sleeps as far as pm_test has it, and wakes
	# up so many seconds from now, by when it has to be asleep.
	fall_asleep() {
		# Without a test level it really sleeps, and its clock wakes it up.
		echo "$2" >/sys/power/pm_test
		echo 0 >/sys/class/rtc/rtc0/wakealarm
		[ "$2" != none ] || echo "+${3:-3}" >/sys/class/rtc/rtc0/wakealarm
		expect "$1" eval 'echo mem >/sys/power/state'
	}
	# dirty DISK: all of the pattern, there.
	dirty() { dd if=/tmp/pattern of="/tmp/$1.opened" bs=1M conv=notrunc; }
	# written DISK: pages are on their way there; once more, should all of them be there by now.
	written() {
		local reads writes end=$((SECONDS + 60)) again=$((SECONDS + 3))
		until read -r reads writes <"/sys/block/$1/inflight" && [ "$writes" -gt 0 ]; do
			[ "$SECONDS" -lt "$end" ] || { echo "$reads $writes"; return 1; }
			[ "$SECONDS" -lt "$again" ] || {
				dirty "$1"
				again=$((SECONDS + 3))
			}
		done
	}
	# holds DISK: what was written there.
	holds() { dd if="/dev/$1" bs=1M count=16 iflag=direct 2>/dev/null | cmp - /tmp/pattern; }
	# fs_of DISK: the kind and the partition of each of its file systems.
	fs_of() { printf '%s\n' "ext4 $1p1" "xfs $1p2"; }
	# append PART: records are appended to a file there, an fsync after each, and read again.
	append() {
		while [ ! -e /tmp/written ]; do
			fio --name=records --filename="/mnt/$1/records" --ioengine=psync \
				--rw=write --bs=300 --size=60000 --fsync=1 --verify=crc32c \
				--verify_state_save=0 || { : >"/tmp/$1.failed"; return 1; }
		done
	}
	# What the machine's clock wakes is not their subject: as far as its CPUs are taken down.
	records() {
		local disk level kind part
		local -A appends=()
		# shellcheck disable=SC2153 # it comes from the environment
		for disk in $DISKS; do
			while read -r kind part; do
				mkdir -p "/mnt/$part"
				expect "$part-mounted" mount -t "$kind" "/dev/$part" "/mnt/$part"
				append "$part" >"/tmp/$part.records" 2>&1 &
				appends[$part]=$!
			done < <(fs_of "$disk")
		done
		for level in devices processors devices processors; do
			for part in "${!appends[@]}"; do
				expect "$part-appends-$level" more "$part" 200
			done
			fall_asleep "sleep-under-fsync-$level" $level
		done
		: >/tmp/written
		for part in "${!appends[@]}"; do
			expect "$part-records" wait "${appends[$part]}"
			expect "$part-unmounted" umount "/mnt/$part"
		done
		for disk in $DISKS; do
			expect "$disk-ext4-sound" e2fsck -fn "/dev/${disk}p1"
			expect "$disk-xfs-sound" xfs_repair -n "/dev/${disk}p2"
		done
	}
	# Before the others: nobody has a disk's bytes while a partition is mounted.
	records
	jobs=()
	for disk in $DISKS; do
		for kind in blocks bytes; do
			{
				$kind "$disk" >"/tmp/$disk.$kind" 2>&1 || {
					tail -n 5 "/tmp/$disk.$kind" >"/tmp/$disk.failed"
				}
			} &
			jobs+=("$!")
		done
	done
	# By flushers on a CPU that is taken down, whenever pages are old enough.
	echo 0 >/sys/power/sync_on_suspend
	echo 2 >/sys/devices/virtual/workqueue/writeback/cpumask
	echo 100 >/proc/sys/vm/dirty_expire_centisecs
	echo 100 >/proc/sys/vm/dirty_writeback_centisecs
	for disk in $HIOPS_SLOW; do
		echo 32 >"/sys/block/$disk/queue/max_sectors_kb"
		# Open until the end: who closes it last waits for all that is dirty.
		exec {opened}<>"/dev/$disk"
		ln -s "/dev/fd/$opened" "/tmp/$disk.opened"
	done
	swapped() {
		local name value
		while read -r name value; do
			[ "$name" != pswpout ] || echo "$value"
		done </proc/vmstat
	}
	# swaps COUNT: so many pages more went there.
	swaps() {
		local wanted=$(($(swapped) + $1)) end=$((SECONDS + 60))
		until [ "$(swapped)" -ge "$wanted" ]; do
			[ "$SECONDS" -lt "$end" ] || return 1
		done
	}
	# Wants 96 MiB and has half. What is all zeroes would not be written.
	hungry() {
		echo "$BASHPID" >/sys/fs/cgroup/hungry/cgroup.procs || return
		while [ ! -e /tmp/sated ]; do
			dd if=/dev/urandom of=/dev/null bs=96M count=1 iflag=fullblock \
				2>/dev/null || return
		done
	}
	hungry &
	eater=$!
	for level in processors none; do
		dd if=/dev/urandom of=/tmp/pattern bs=1M count=16 2>/dev/null
		for disk in $HIOPS_SLOW; do
			expect "$disk-dirtied-$level" dirty "$disk"
		done
		for disk in $HIOPS_SLOW; do expect "$disk-written-$level" written "$disk"; done
		expect "swaps-$level" swaps 1000
		# What is under way comes to its end before.
		fall_asleep "sleep-under-writeback-$level" $level 30
	done
	: >/tmp/sated
	expect hungry wait $eater
	expect sync sync
	for disk in $HIOPS_SLOW; do expect "$disk-holds-it" holds "$disk"; done
	for round in $(seq "$ROUNDS"); do
		for level in devices none; do
			for disk in $DISKS; do
				expect "$disk-busy-$round-$level" more "$disk" 100
			done
			fall_asleep "sleep-$round-$level" $level
		done
		for disk in $DISKS; do expect "$disk-busy-$round-disk" more "$disk" 100; done
		expect "hibernation-$round" eval 'echo disk >/sys/power/state'
	done
	for disk in $DISKS; do expect "$disk-goes-on" more "$disk" 500; done
	: >/tmp/enough
	wait "${jobs[@]}"
	for disk in $DISKS; do expect "$disk-load" [ ! -e "/tmp/$disk.failed" ]; done
	expect image-was-written [ "$(completed "$HIOPS_SWAP")" -ge "$ROUNDS" ]
	for disk in $DISKS $HIOPS_SWAP $HIOPS_SLOW $HIOPS_MIRRORED; do
		[ -e "/sys/block/$disk/hiops" ] || continue
		for what in errors timeouts resets; do
			expect "$disk-no-$what" [ "$(count "$disk" $what)" = 0 ]
		done
	done
	plan
	# After a sleep QEMU does not end when the machine turns itself off, but it does at a reset.
	echo b >/proc/sysrq-trigger
	while :; do read -r -t 100 <>/tmp/nothing; done
fi

set -uo pipefail
. ci/report.sh
# 2 MB/s: what is under way takes a while.
slow=format=raw,if=none,throttling.bps-total=2000000
# sleeps WHAT CPUS NVME AHCI: all that on so many CPUs, with these drivers.
sleeps() {
	ci/vm --kernel "$KERNEL" --cpus "$2" --timeout $((600 + 100 * ROUNDS)) \
		--qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a" \
		--qemu "-device nvme,serial=slp0,drive=a,max_ioqpairs=4,addr=4" \
		--qemu "-device ich9-ahci,id=hba,addr=6" \
		--qemu "-drive file=$DIR/b.img,format=raw,if=none,id=b" \
		--qemu "-device ide-hd,serial=slp1,drive=b,bus=hba.0" \
		--qemu "-drive file=$DIR/swap.img,format=raw,if=none,id=swap" \
		--qemu "-device nvme,serial=slp2,drive=swap,addr=7" \
		--qemu "-drive $slow,file=$DIR/slow-n.img,id=sn" \
		--qemu "-device nvme,serial=slp3,drive=sn,addr=8" \
		--qemu "-drive $slow,file=$DIR/slow-s.img,id=ss" \
		--qemu "-device ide-hd,serial=slp4,drive=ss,bus=hba.1" \
		--qemu "-drive $slow,file=$DIR/mirror-n.img,id=mn" \
		--qemu "-device nvme,serial=slp5,drive=mn,addr=9" \
		--qemu "-drive $slow,file=$DIR/mirror-s.img,id=ms" \
		--qemu "-device ide-hd,serial=slp6,drive=ms,bus=hba.2" \
		--qemu "-trace enable=pci_nvme_mmio_shutdown_set -D $DIR/trace" \
		-- env HIOPS_SUSPEND_ROUNDS="$ROUNDS" "$0" guest "$3" "$4" >"$DIR/out" 2>"$DIR/err"
	cat "$DIR/err" >&2
	retell "$1" "$1" sed -nE 's/.*result: //p' "$HIOPS_VM_LOG"
}
sleeps '' 2 hiops_nvme hiops_ahci
# Each of four drives once by the in-tree driver, from which hiops took it; then by hiops, each
# time: before two sleeps under writeback, and four under fsync; in each round before two sleeps,
# before the image of a hibernation is made, and before it takes over.
want=$((4 * (1 + 2 + 4 + 4 * ROUNDS)))
told=$(grep -c pci_nvme_mmio_shutdown_set "$DIR/trace")
if [ "$told" = $want ]; then ok drive-told; else
	not_ok drive-told "$told times CC.SHN instead of $want"
fi
if [ -n "${HIOPS_LONG:-}" ]; then
	sleeps '4-cpus: ' 4 hiops_nvme hiops_ahci
	sleeps 'in-tree: ' 2 nvme ahci
fi
plan
