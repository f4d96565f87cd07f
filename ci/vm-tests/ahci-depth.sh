#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# 256 random writes in flight on a SATA drive with 32 slots: they wait in hiops' FIFO, no thread
# sleeps for a tag, and kblockd has nothing to do. By counters and by a trace, which sees both as
# soon as the disk's queue is no deeper than the drive's, and on the in-tree driver.
# image: s.img 256M
# kernels: stock
# vm: --timeout 900 --qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s,discard=unmap"
# vm: --qemu "-device ich9-ahci,id=hba,addr=6 -device ide-hd,serial=sata-0,drive=s,bus=hba.0"
. ci/vm-tests/nvme-lib.sh
PCI=0000:00:06.0
WRITES=4096
T=/sys/kernel/tracing

EVENTS='block/block_rq_tag_wait block/block_rq_requeue workqueue/workqueue_execute_start'
put 8192 $T/buffer_size_kb
for event in $EVENTS; do expect "${event#*/}" put 1 "$T/events/$event/enable"; done

# deep NAME DISK: the writes, 256 at a time; then SLEEPS and RUNS are what the trace saw: threads
# that found no tag and slept, and what kblockd did for a queue.
deep() {
	put 0 $T/trace
	expect "$1" fio --name=deep --filename="/dev/$2" --direct=1 --ioengine=libaio \
		--iodepth=256 --iodepth_batch=256 --iodepth_batch_complete_min=256 \
		--rw=randwrite --bs=4k --size=64M --number_ios=$WRITES --minimal
	cp $T/trace /run/trace
	same "$1-whole-trace" "$(grep -c 'LOST' /run/trace)" 0
	SLEEPS=$(grep -c ' block_rq_tag_wait: ' /run/trace)
	RUNS=$(grep -cE ' block_rq_requeue: | function blk_mq_(run|requeue)_work' /run/trace)
}

# What udev would load for the in-tree driver's disk.
modprobe sd_mod
expect bind "$BIND" "$PCI" hiops_ahci
put reset /sys/block/hiops0d0/hiops/stats
deep deep hiops0d0
deferred=$(count hiops0d0 fifo_deferred)
same no-sleep "$SLEEPS" 0
same no-kblockd "$RUNS" 0
# How many is the device's speed.
expect waited-in-the-fifo test "$deferred" -gt 0
seen="hiops_ahci: $deferred of $WRITES deferred in the FIFO, $SLEEPS sleeps for a tag"
seen+=", $RUNS runs of kblockd"
expect cut put 32 /sys/block/hiops0d0/queue/nr_requests
deep shallow hiops0d0
expect shallow-sleeps test "$SLEEPS" -gt 0
expect back bind_plainly "$PCI" ahci
in_tree() {
	DISK=$(basename \
		"$(compgen -G "/sys/bus/pci/devices/$PCI/ata*/host*/target*/*/block/sd?")") &&
		[ -b "/dev/$DISK" ]
}
expect in-tree until_true 60 in_tree
deep ahci "$DISK"
expect "seen ($seen; ahci: $SLEEPS and $RUNS)" test "$RUNS" -gt 0
for event in $EVENTS; do put 0 "$T/events/$event/enable"; done
expect rmmod rmmod hiops
plan
