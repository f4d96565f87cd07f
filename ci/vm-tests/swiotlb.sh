#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# All data goes through bounce buffers, as in confidential machines: a disk says how much is mapped
# at once, as the in-tree driver's does, and large I/O from huge pages, which would be one segment
# otherwise, goes on. There are 4 MiB of buffers, half of what is in flight here, as the drive is
# slow: what finds none waits for one, and nothing fails.
# image: a.img 256M
# image: s.img 256M
# vm: --timeout 1200 --memory 1G --append swiotlb=2048,force
# vm: --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a,throttling.bps-total=33554432"
# vm: --qemu "-device nvme,serial=bounced,drive=a,addr=4"
# vm: --qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s -device ich9-ahci,id=hba,addr=6"
# vm: --qemu "-device ide-hd,serial=sata-0,drive=s,bus=hba.0"
. ci/vm-tests/nvme-lib.sh
SATA=0000:00:06.0

disk_at() {
	for disk in /sys/block/*; do
		case $(readlink -f "$disk") in */"$1"/*) echo "${disk##*/}" ;; esac
	done
}
limit() { cat "/sys/block/$1/queue/max_hw_sectors_kb"; }
# large DISK RW: 1 MiB at a time from a huge page, 8 in flight.
large() {
	timeout 100 fio --verify_state_save=0 --name=h --filename="/dev/$1" --direct=1 \
		--ioengine=libaio --iodepth=8 --rw="$2" --bs=1M --size=64M --mem=shmhuge \
		--hugepage-size=2m "${@:3}"
}

expect huge-pages put 40 /proc/sys/vm/nr_hugepages
echo $((1 << 26)) >/proc/sys/kernel/shmmax
modprobe ahci
modprobe sd_mod

# What the in-tree drivers say.
expect in-tree-nvme "$BIND" $PCI nvme
wanted=$(limit nvme0n1)
expect in-tree-ahci "$BIND" $SATA ahci
until_true 60 disk_at $SATA
until_true 60 compgen -G "/sys/bus/pci/devices/$SATA/ata*/host*/target*/*/block/*"
sata=$(disk_at $SATA)
wanted_sata=$(limit "$sata")
expect some-limit test "$wanted" -lt 512

expect nvme "$BIND" $PCI hiops_nvme
same nvme-limit "$(limit hiops0n1)" "$wanted"
expect nvme-write large hiops0n1 write --verify=crc32c --verify_fatal=1
expect nvme-read large hiops0n1 randread
# Of tags it has more than enough for these: it was a buffer that they waited for.
expect nvme-waits test "$(count hiops0n1 fifo_deferred)" -gt 0
same nvme-errors "$(count hiops0n1 errors)$(count hiops0n1 resets)" 00
expect ahci "$BIND" $SATA hiops_ahci
same ahci-limit "$(limit hiops1d0)" "$wanted_sata"
expect ahci-write large hiops1d0 write --verify=crc32c --verify_fatal=1
expect ahci-read large hiops1d0 randread
same ahci-errors "$(count hiops1d0 errors)$(count hiops1d0 resets)" 00
for mode in irq poll; do
	echo $mode >/sys/block/hiops0n1/hiops/mode
	expect "nvme-$mode" large hiops0n1 randrw
done
expect none "$BIND" $PCI none
expect none-ahci "$BIND" $SATA none
expect rmmod rmmod hiops
plan
