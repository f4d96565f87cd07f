#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# fstrim of a file system with 10,000 holes: few commands, and what lies around the holes stays. XFS
# takes 100 free extents at a time: on NVMe those are one command, as in tree, on SATA and the RAM
# disk two of up to 64 ranges, where libata has one for each. There are some for the rest, too; the
# RAM disk's are of one MiB.
# image: a.img 512M
# image: s.img 512M
# vm: --timeout 1200 --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a,discard=unmap"
# vm: --qemu "-device nvme,serial=a,drive=a,addr=4"
# vm: --qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s,discard=unmap"
# vm: --qemu "-device ich9-ahci,id=hba,addr=6 -device ide-hd,serial=s,drive=s,bus=hba.0"
. ci/vm-tests/nvme-lib.sh
NVME=0000:00:04.0 SATA=0000:00:06.0
HERE=ci/vm-tests
mkdir -p /run/m

# discards DISK: commands that the disk has got so far.
discards() { awk '{print $12}' "/sys/block/$1/stat"; }

# in_parts FOLDER: all of its 512 MiB. Of a whole allocation group, which has 128, XFS leaves out
# most free extents that are equally long.
in_parts() {
	local from
	for from in 0 100 200 300 400; do
		fstrim -o ${from}M -l 100M "$1" || return
	done
}
# fill FOLDER: but for the last MiB.
fill() {
	local left
	left=$(stat -fc '%a*%S' "$1") && fallocate -l $((left - (1 << 20))) "$1/rest"
}
remount() { umount /run/m && mount "/dev/$1" /run/m; }

# trimmed NAME DISK: COMMANDS of an fstrim, the file system and its data checked.
trimmed() {
	local before
	expect "$1-mkfs" mkfs.xfs -qfK "/dev/$2"
	expect "$1-mount" mount "/dev/$2" /run/m
	expect "$1-file" python3 -B $HERE/holes.py write /run/m/file
	expect "$1-full" fill /run/m
	expect "$1-holes" python3 -B $HERE/holes.py punch /run/m/file
	# What was freed just now is left out.
	expect "$1-again" remount "$2"
	before=$(discards "$2")
	expect "$1-fstrim" in_parts /run/m
	COMMANDS=$(($(discards "$2") - before))
	expect "$1-data" python3 -B $HERE/holes.py read /run/m/file
	expect "$1-umount" umount /run/m
	expect "$1-fsck" xfs_repair -n "/dev/$2"
	echo "hiops: $1: $COMMANDS commands" >&2
}
# few NAME MOST: those were no more.
few() {
	if [ "$COMMANDS" -gt 0 ] && [ "$COMMANDS" -le "$2" ]; then
		ok "$1-few" "$COMMANDS commands"
	else
		not_ok "$1-few" "$COMMANDS commands instead of $2 at most"
	fi
}

modprobe sd_mod
for drive in "nvme $NVME nvme 120" "sata $SATA ahci 220"; do
	read -r kind address driver most <<<"$drive"
	expect "$kind-in-tree" "$BIND" "$address" "$driver"
	expect "$kind-disk" until_true 60 disk_of "$address"
	trimmed "$kind-in-tree" "$(disk_of "$address")"
	expect "$kind-bind" "$BIND" "$address" "hiops_$driver"
	trimmed "$kind" "$(disk_of "$address")"
	few "$kind" "$most"
done
modprobe -r hiops
expect ram-disk modprobe hiops ram_disks=1 ram_size_mb=512
trimmed ram hiops_ram0
few ram 270
plan
