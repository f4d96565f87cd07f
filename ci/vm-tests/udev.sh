#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What udev knows of a disk and its partitions under hiops is what it knows of them under the
# in-tree driver: every link of /dev/disk, every property of its own. SATA drives with a world-wide
# name and without. (QEMU's NVMe drives are known to have none that is to be trusted: KUnit's
# hiops_names has those.)
# image: a.img 512M
# image: s.img 512M
# image: t.img 64M
# vm: --timeout 900
# vm: --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a"
# vm: --qemu "-device 'nvme,serial=plain 1,drive=a,addr=4'"
# vm: --qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s -device ich9-ahci,id=hba,addr=7"
# vm: --qemu "-drive file=$DIR/t.img,format=raw,if=none,id=t"
# vm: --qemu "-device ide-hd,serial=s-0,drive=s,bus=hba.1,wwn=0x5000c500a1b2c3d4"
# vm: --qemu "-device ide-hd,serial=t-0,drive=t,bus=hba.3"
. ci/vm-tests/nvme-lib.sh
SATA=0000:00:07.0

# disk_at ADDRESS PATTERN: the disk of that function whose serial number is that.
disk_at() {
	local at serial
	for at in /sys/block/*; do
		case $(readlink -f "$at") in */"$1"/*) ;; *) continue ;; esac
		serial=$(udevadm info -q property --property=ID_SERIAL_SHORT --value "$at")
		[ "$serial" != "$2" ] || basename "$at"
	done
}
# nodes DISK: it and its partitions, with what each is called behind the disk's name.
nodes() {
	local at
	for at in /sys/class/block/"$1"*; do
		at=${at##*/}
		echo "$at part${at#"$1"}"
	done | sed -E 's/part(p?)([0-9]*)$/part\2/'
}
# links DISK: lines "LINK PARTITION". The number of a disk's appearance is another each time.
links() {
	local node part
	udevadm settle
	while read -r node part; do
		udevadm info -q symlink "/dev/$node" | tr ' ' '\n' | sed "s/^\$/none/;s/\$/ $part/"
	done <<<"$(nodes "$1")" | sed -E 's,by-diskseq/[0-9]+,by-diskseq/N,' | sort
}
# properties DISK: lines "PARTITION NAME=VALUE", but for a disk's number.
properties() {
	local node part
	while read -r node part; do
		udevadm info -q property "/dev/$node" |
			sed -n "/^ID_PART_ENTRY_DISK=/d;s/^ID_/$part &/p"
	done <<<"$(nodes "$1")" | sort
}
# known NAME ADDRESS SERIAL: writes what is known of that disk to /run/NAME.links and
# /run/NAME.properties.
known() {
	local disk
	udevadm settle
	disk=$(disk_at "$2" "$3")
	expect "$1-is-there" test -n "$disk"
	links "$disk" >"/run/$1.links"
	properties "$disk" >"/run/$1.properties"
	cat "/run/$1.links" "/run/$1.properties" >&2
}
# alike NAME: it is the same under both drivers.
alike() {
	local what
	for what in links properties; do
		same "$1-$what" "$(diff "/run/$1-in-tree.$what" "/run/$1-hiops.$what")" ''
	done
}
both() { "$BIND" "$PCI" "$1" && "$BIND" $SATA "$2"; }

modprobe sd_mod
mkdir -p /etc/udev/rules.d
cp tools/system/60-hiops.rules /etc/udev/rules.d/
until_true 60 test -b /dev/nvme0n1 -a -b /dev/sdb ||
	not_ok set-up "the in-tree drivers have no disk"
start_udev
for disk in $(disk_at "$PCI" 'plain 1') $(disk_at $SATA s-0); do
	sfdisk -q "/dev/$disk" <<-'END'
		label: gpt
		size=200M, type=L, name="a name"
		type=L
	END
	udevadm settle
	part=$(nodes "$disk" | sed -n 's/ part1$//p')
	mkfs.ext4 -q -L "$disk-data" "/dev/$part"
done
known nvme-in-tree "$PCI" 'plain 1'
known sata-in-tree $SATA s-0
known plain-sata-in-tree $SATA t-0
for link in by-id/nvme-nvme by-id/nvme-QEMU by-path by-diskseq by-label by-uuid by-partuuid \
	by-partlabel; do
	expect "nvme-in-tree-$link" grep -q "disk/$link" /run/nvme-in-tree.links
done
for link in ata-QEMU wwn-0x5000c500a1b2c3d4; do
	expect "sata-in-tree-$link" grep -q "disk/by-id/$link" /run/sata-in-tree.links
done

expect to-hiops both hiops_nvme hiops_ahci
known nvme-hiops "$PCI" 'plain 1'
known sata-hiops $SATA s-0
known plain-sata-hiops $SATA t-0
for what in nvme sata plain-sata; do alike $what; done
# docs/operator.md says so.
same no-transport "$(lsblk -dno TRAN /dev/hiops0n1 | tr -d ' ')" ''

expect to-nobody both none none
udevadm settle
same links-gone "$(find /dev/disk -lname '*hiops*')" ''
plan
