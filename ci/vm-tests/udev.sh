#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What udev knows of a disk and its partitions under hiops is what it knows of them under the
# in-tree driver: every link of /dev/disk, every property of its own. SATA drives with a world-wide
# name and without; serial numbers and models with what nobody expects in one: blanks before and
# within, a tab, quotes, a slash, a byte that is no UTF-8, nothing at all. (QEMU's NVMe drives are
# known to have no world-wide names that are to be trusted: KUnit's hiops_names has those.)
# image: a.img 512M
# image: s.img 512M
# image: t.img 64M
# vm: --cpus 1 --timeout 900
# vm: --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a"
# vm: --qemu "-device 'nvme,serial=plain 1,drive=a,addr=4'"
# vm: --qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s -device ich9-ahci,id=hba,addr=7"
# vm: --qemu "-drive file=$DIR/t.img,format=raw,if=none,id=t"
# vm: --qemu "-device ide-hd,serial=s-0,drive=s,bus=hba.1,wwn=0x5000c500a1b2c3d4"
# vm: --qemu "-device ide-hd,serial=t-0,drive=t,bus=hba.3"
# vm: --qemu "-blockdev null-co,node-name=odd,size=67108864,read-zeroes=on"
# vm: --qemu "-device 'nvme,serial=  \"o"$'\xe9\t'"d,,'\\''\$x,drive=odd,share-rw=on,addr=5'"
# vm: --qemu "-device 'nvme,serial=a/b c\\\\  d,drive=odd,share-rw=on,addr=6'"
# vm: --qemu "-device 'ide-hd,serial=  \"o"$'\xe9\t'"d,,'\\''\$x,drive=odd,share-rw=on,bus=hba.0'"
# vm: --qemu -device
# vm: --qemu "'ide-hd,model= /\"M"$'\xe9\t'"  x,serial=a/b  c,drive=odd,share-rw=on,bus=hba.2'"
# vm: --qemu "-device 'ide-hd,model= ,serial= ,ver= ,drive=odd,share-rw=on,bus=hba.4'"
# vm: --qemu "-device 'ide-hd,serial= ,drive=odd,share-rw=on,bus=hba.5,wwn=0x5000c500a1b2c3d5'"
. ci/vm-tests/nvme-lib.sh
SATA=0000:00:07.0

# disk_at PLACE: the disk of that link of by-path.
disk_at() {
	local at
	at=$(readlink -f "/dev/disk/by-path/pci-$1") && [ -b "$at" ] && basename "$at"
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
# What is compared: each with its place.
declare -A AT=([nvme]=$PCI-nvme-1 [odd]=0000:00:05.0-nvme-1 [slash]=0000:00:06.0-nvme-1
	[sata]=$SATA-ata-2 [plain-sata]=$SATA-ata-4 [odd-sata]=$SATA-ata-1 [model-sata]=$SATA-ata-3
	[blank-sata]=$SATA-ata-5 [wwn-sata]=$SATA-ata-6)
# known BY: writes what is known of each disk to /run/NAME-BY.links and /run/NAME-BY.properties.
known() {
	local name disk
	udevadm settle
	for name in "${!AT[@]}"; do
		disk=$(disk_at "${AT[$name]}")
		expect "$name-$1-is-there" test -n "$disk"
		links "$disk" >"/run/$name-$1.links"
		properties "$disk" >"/run/$name-$1.properties"
		cat -v "/run/$name-$1.links" "/run/$name-$1.properties" >&2
	done
}
# alike NAME: it is the same under both drivers.
alike() {
	local what
	for what in links properties; do
		same "$1-$what" "$(diff "/run/$1-in-tree.$what" "/run/$1-hiops.$what")" ''
	done
}
# Files of a drive's identity, byte for byte.
told() { od -An -c "/sys/block/$(disk_at "$1")/$2" "/sys/block/$(disk_at "$1")/device/$2"; }
identities() {
	local name file
	for name in nvme odd slash; do
		for file in serial model firmware_rev wwid; do
			echo "$name $file: $(told "${AT[$name]}" $file 2>/dev/null)"
		done
	done
}
to_nobody() {
	local at
	for at in $PCI 0000:00:05.0 0000:00:06.0 $SATA; do "$BIND" $at none || return; done
}

modprobe sd_mod
mkdir -p /etc/udev/rules.d
cp tools/system/60-hiops.rules /etc/udev/rules.d/
disks_are_there() { [ -b /dev/nvme2n1 ] && [ -b /dev/sdf ]; }
until_true 60 disks_are_there || not_ok set-up "the in-tree drivers have no disk"
start_udev
for disk in $(disk_at "${AT[nvme]}") $(disk_at "${AT[sata]}"); do
	sfdisk -q "/dev/$disk" <<-'END'
		label: gpt
		size=200M, type=L, name="a name"
		type=L
	END
	udevadm settle
	part=$(nodes "$disk" | sed -n 's/ part1$//p')
	mkfs.ext4 -q -L "$disk-data" "/dev/$part"
done
known in-tree
their_identities=$(identities)
for link in by-id/nvme-nvme by-id/nvme-QEMU by-path by-diskseq by-label by-uuid by-partuuid \
	by-partlabel; do
	expect "nvme-in-tree-$link" grep -q "disk/$link" /run/nvme-in-tree.links
done
for link in ata-QEMU wwn-0x5000c500a1b2c3d4; do
	expect "sata-in-tree-$link" grep -q "disk/by-id/$link" /run/sata-in-tree.links
done
expect blank-in-tree grep -q disk/by-id/scsi- /run/blank-sata-in-tree.links

# The list of devices names each by its serial number, as hiopsctl shows it. The initramfs' script
# gives them over, in its own shell; one by another number stays.
cat >/run/devices <<-END
	$PCI hiops_nvme serial=plain?1
	0000:00:05.0 serial="o??d,'\$x   # blanks before it don't count
	0000:00:06.0 serial=a/b?c\\\\??e
	$SATA hiops_ahci serial=t-0
END
listed() { tools/hiops-bind-all --list /run/devices >/run/listed; }
driver() { basename "$(readlink "/sys/bus/pci/devices/$1/driver")"; }
drivers() { for at in $PCI 0000:00:05.0 0000:00:06.0 $SATA; do driver $at; done | paste -sd' '; }
expect listed listed
expect claim busybox sh tools/system/claim /run/listed
same claimed "$(drivers)" 'hiops_nvme hiops_nvme nvme hiops_ahci'
expect told logged '0000:00:06.0 is left alone: the drive there is not a/b?c'
# The same by the boot's other script: what is there stays, what is missing comes.
sed -i 's/??e$/??d/' /run/devices
expect bind-all tools/hiops-bind-all /run/devices
same bound "$(drivers)" 'hiops_nvme hiops_nvme hiops_nvme hiops_ahci'
known hiops
for what in "${!AT[@]}"; do alike "$what"; done
same identities "$(identities)" "$their_identities"
# docs/operator.md says so.
same no-transport "$(lsblk -dno TRAN /dev/hiops0n1 | tr -d ' ')" ''

# A disk's bytes are its group's, too, and gone with the switch.
for disk in $(disk_at "${AT[nvme]}") $(disk_at "${AT[sata]}"); do
	echo 1 >"/sys/block/$disk/hiops/bytes"
	udevadm settle
	same "$disk-bytes" "$(stat -c '%F %a %U:%G' "/dev/${disk}_bytes")" \
		'character special file 660 root:disk'
	echo 0 >"/sys/block/$disk/hiops/bytes"
	udevadm settle
	same "$disk-no-bytes" "$(find /dev -name '*_bytes')" ''
done

sed -i 's/"o??d/"o??e/' /run/devices
refused wrong-number "0000:00:05.0 goes back to nvme: the drive there is not \"o??e" \
	tools/hiops-bind-all /run/devices
same gone-back "$(drivers)" 'hiops_nvme nvme hiops_nvme hiops_ahci'

expect to-nobody to_nobody
udevadm settle
same links-gone "$(find /dev/disk -lname '*hiops*')" ''
plan
