#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What is read of an NVMe drive's bytes past holes is what is there, over PCI: with SGL bit buckets,
# which none of Debian's QEMU has, but that of bench/qemu.
# kernels: none
# long: stock
# vm: --timed --cpus 1 --timeout 1200
# vm: --qemu '-drive if=none,id=n0,driver=null-co,size=8M,read-zeroes=on,store=on,latency-ns=40000'
# vm: --qemu '-device nvme,drive=n0,serial=buckets,addr=4,ioeventfd=off,bit-buckets=on'
# vm: --qemu '-global nvme.logical_block_size=4k -global nvme.physical_block_size=4k'
. ci/vm-tests/nvme-lib.sh
expect modprobe modprobe hiops
expect bind $BIND $PCI hiops_nvme
DISK=$(disk_of $PCI) D=/dev/$DISK B=/dev/${DISK}_bytes H=/sys/block/$DISK/hiops
head -c 8M /dev/urandom >"$OUT.data"
expect fill dd if="$OUT.data" of="$D" bs=1M oflag=direct status=none
expect on put 1 "$H/bytes"
expect right logged 'reads of bytes leave out what nobody wants'
put reset "$H/stats"
one() {
	dd if="$B" bs=128 skip=5000 count=1 iflag=skip_bytes status=none |
		cmp - <(dd if="$OUT.data" bs=128 skip=5000 count=1 iflag=skip_bytes status=none)
}
expect one one
same moved "$(count "$DISK" bytes_wanted) $(count "$DISK" bytes_moved)" '128 128'
expect check python3 -B ci/vm-tests/bytes.py check "$B" "$D" 4096 100 \
	"$(cat "/sys/block/$DISK/queue/atomic_write_unit_max_bytes")"
expect uring fio --name=u --filename="$B" --size=600000 --bs=300 --rw=randrw --ioengine=io_uring \
	--iodepth=16 --verify=crc32c --output="$OUT.fio"
same no-errors "$(count "$DISK" errors)" 0
expect off put 0 "$H/bytes"
expect leave $BIND $PCI none
expect rmmod rmmod hiops
plan
