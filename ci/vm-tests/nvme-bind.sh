#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tools/hiops-bind: what it refuses, and that nothing is changed then.
# image: a.img 512M
# vm: --cpus 1 --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a"
# vm: --qemu "-device nvme,serial=bind0,drive=a,addr=4 -device virtio-rng-pci,addr=6"
. ci/vm-tests/nvme-lib.sh
BIND=tools/hiops-bind

until_true 20 test -b /dev/nvme0n1 || not_ok set-up "the in-tree driver has no disk"
echo ',200M,L
,,L' | sfdisk -q /dev/nvme0n1
until_true 10 test -b /dev/nvme0n1p2

refused no-arguments usage "$BIND"
says help usage "$BIND" --help
refused no-root "needs root" setpriv --reuid=nobody --clear-groups "$BIND" "$PCI" hiops_nvme
refused bad-address "is not the address" "$BIND" 00:4 hiops_nvme
refused no-such-function "no PCI function" "$BIND" 0000:7f:00.0 hiops_nvme
refused bad-driver-name "not the name of a driver" "$BIND" "$PCI" ../nvme
refused no-such-driver "does not load" "$BIND" "$PCI" no_such_driver
refused other-class "is not an NVMe controller" "$BIND" 00:06.0 hiops_nvme

mkfs.ext4 -q /dev/nvme0n1p1
mount /dev/nvme0n1p1 /mnt
refused mounted "is mounted on /mnt" "$BIND" "$PCI" hiops_nvme
umount /mnt
unshare --mount --propagation private \
	sh -c 'mount /dev/nvme0n1p1 /mnt; touch /run/there; exec sleep 1000' &
pid=$!
until_true 10 test -e /run/there
refused mounted-in-another-namespace "is mounted on /mnt" "$BIND" "$PCI" hiops_nvme
kill $pid
wait $pid 2>/dev/null

mkswap -q /dev/nvme0n1p2
swapon /dev/nvme0n1p2
refused swapped-on "is swapped on" "$BIND" "$PCI" hiops_nvme
swapoff /dev/nvme0n1p2

if modprobe -q dm-mod && [ -x /sbin/dmsetup ]; then
	echo "0 2048 linear /dev/nvme0n1p1 0" | dmsetup create --noudevsync held
	refused held-by-dm "is held by held" "$BIND" "$PCI" hiops_nvme
	dmsetup remove --noudevsync held
fi

losetup /dev/loop0 /dev/nvme0n1p1 2>/dev/null ||
	{ modprobe loop && losetup /dev/loop0 /dev/nvme0n1p1; }
refused behind-a-loop-device "is behind /dev/loop0" "$BIND" "$PCI" hiops_nvme
losetup -d /dev/loop0

exec 9</dev/nvme0n1p1
refused open "is open in" "$BIND" "$PCI" hiops_nvme
refused open-none "is open in" "$BIND" "$PCI" none
exec 9<&-
same untouched "$(driver_of "$PCI") $(cat /sys/bus/pci/devices/"$PCI"/driver_override)" \
	"nvme (null)"

# A module that can't be loaded as asked leaves the disk where it is.
echo "options hiops ram_size_mb=0 ram_disks=1" >/etc/modprobe.d/hiops-test.conf
refused bad-parameter "could not insert" "$BIND" "$PCI" hiops_nvme
rm /etc/modprobe.d/hiops-test.conf
same still-untouched "$(driver_of "$PCI")" nvme

# The initramfs' part, where nvme is built in and has had the drive since before.
claim() { # DRIVER SERIAL
	echo "$PCI $1 $2" >/run/devices
	sh tools/system/claim /run/devices
}
expect claim-another claim hiops_nvme bind1
same not-another "$(driver_of "$PCI")" nvme
expect another-is-said logged "$PCI is left alone: the drive there is not bind1"
expect claim-other-class claim hiops_ahci -
same not-other-class "$(driver_of "$PCI")" nvme
echo "install hiops false" >/etc/modprobe.d/hiops-test.conf
expect claim-with-no-module claim hiops_nvme bind0
rm /etc/modprobe.d/hiops-test.conf
same not-with-no-module "$(driver_of "$PCI") $(cat /sys/bus/pci/devices/"$PCI"/driver_override)" \
	"nvme (null)"
expect claim claim hiops_nvme bind0
same claimed "$(driver_of "$PCI")" hiops_nvme
expect claimed-disk until_true 10 test -b /dev/hiops0n1p2
expect claim-again claim hiops_nvme bind0
expect claimed-back "$BIND" "$PCI" nvme

expect bind "$BIND" 00:04.0 hiops_nvme
same bound "$(driver_of "$PCI")" hiops_nvme
expect disk-is-there test -b /dev/hiops0n1
expect partitions-are-there test -b /dev/hiops0n1p2
expect bind-again "$BIND" "$PCI" hiops_nvme
exec 9</dev/hiops0n1
refused open-at-hiops "is open in" "$BIND" "$PCI" nvme
exec 9<&-
expect give-back "$BIND" "$PCI" nvme
same given-back "$(driver_of "$PCI")" nvme
expect in-tree-disk test -b /dev/nvme0n1p2
expect none "$BIND" "$PCI" none
expect unbound absent /sys/bus/pci/devices/"$PCI"/driver
same override-cleared "$(cat /sys/bus/pci/devices/"$PCI"/driver_override)" "(null)"
expect from-none "$BIND" "$PCI" hiops_nvme
expect from-none-disk test -b /dev/hiops0n1

# What docs/maturity.md says of an unsigned module; 12288 is O and E.
same tainted "$(($(cat /proc/sys/kernel/tainted) & 12288))" 12288
says taint-of-the-module '(OE)' grep '^hiops ' /proc/modules
says taint-is-told 'hiops: loading out-of-tree module taints kernel' dmesg
says taint-is-told-unsigned 'hiops: module verification failed: signature and/or' dmesg

plan
