#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Unbinding under I/O: every request ends, nothing hangs, the disk goes, the drive works on
# elsewhere.
# image: a.img 256M
# kernels: stock
# long: debug
# vm: --timeout 900 --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a"
# vm: --qemu "-device nvme,serial=ub,drive=a,addr=4"
. ci/vm-tests/nvme-lib.sh
sysfs=/sys/bus/pci/drivers/hiops_nvme
D=/dev/hiops0n1

expect bind "$BIND" "$PCI" hiops_nvme
head -c 8M /dev/urandom >/run/data
expect write dd if=/run/data of=$D bs=1M seek=128 oflag=direct
# On the debug kernel once: a round takes minutes there.
for round in $(on_debug 1 '1 2'); do
	for engine in libaio psync; do
		# Runs until its disk is gone.
		fio --name=u --filename=$D --direct=1 --ioengine=$engine --iodepth=32 --numjobs=4 \
			--rw=randrw --size=64M --bsrange=512-128k --blockalign=512 \
			--time_based --runtime=120 --minimal >/run/fio 2>&1 &
		fio=$!
		before=$(count hiops0n1 completed)
		busy() { [ "$(count hiops0n1 completed)" -gt $((before + 200)) ]; }
		until_true 60 busy || not_ok "busy-$round-$engine" "no I/O"
		echo "$PCI" >$sysfs/unbind &
		unbind=$!
		expect "unbound-$round-$engine" until_true 60 absent \
			/sys/bus/pci/devices/"$PCI"/driver
		wait $unbind
		expect "ended-$round-$engine" until_true 60 ended "$fio"
		wait $fio
		expect "gone-$round-$engine" absent $D
		expect "again-$round-$engine" "$BIND" "$PCI" hiops_nvme
	done
done
# With a file system on it, which survives.
mkfs.ext4 -qF $D 64M
mount $D /mnt
cp /run/data /mnt/data
sync
echo "$PCI" >$sysfs/unbind
expect unbound-mounted until_true 60 absent $D
umount /mnt
expect rebind-in-tree "$BIND" "$PCI" nvme
expect data-in-tree cmp -n $((8 << 20)) /run/data <(dd if=/dev/nvme0n1 bs=1M skip=128 count=8 \
	iflag=direct status=none)
# Its journal is replayed, and then nothing is amiss.
fsck.ext4 -p /dev/nvme0n1 >"$OUT" 2>&1
expect fsck fsck.ext4 -fn /dev/nvme0n1
mount /dev/nvme0n1 /mnt
expect file cmp /run/data /mnt/data
umount /mnt
# A node that is open for longer than its controller is there: it leads nowhere, and keeps the
# module.
expect node-bind "$BIND" "$PCI" hiops_nvme
exec 7</dev/hiops0
expect node-unbind "$BIND" "$PCI" none
expect node-gone absent /dev/hiops0
leads_nowhere() {
	python3 -c "
import errno, fcntl
for cmd in 0x4e40, 0x4e44, 0x4e46, 0xc0484e41, 0xc0504e47, 0:
    try:
        fcntl.ioctl(7, cmd, bytearray(80))
        raise SystemExit(f'{cmd:#x} was done')
    except OSError as error:
        assert error.errno == errno.ENODEV, error"
}
expect node-nowhere leads_nowhere
refused module-in-use 'in use' rmmod hiops
exec 7<&-
expect rmmod rmmod hiops
plan
