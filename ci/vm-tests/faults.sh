#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The kernel's own fault injection: completions that get lost on their way to the block layer, memory that can't be had while a request is mapped.
# kernels: debug
# image: a.img 64M
# vm: --timeout 900 --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a -device nvme,serial=faults,drive=a,addr=4"
. ci/vm-tests/nvme-lib.sh
DEBUG=/sys/kernel/debug
mountpoint -q $DEBUG || mount -t debugfs debugfs $DEBUG

# One completion in ten vanishes between hiops and the block layer: its time-out ends it, nothing is reset.
expect load modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=20 ram_timeout_ms=1000
echo 10 >$DEBUG/fail_io_timeout/probability
echo 20 >$DEBUG/fail_io_timeout/times
echo 0 >$DEBUG/fail_io_timeout/verbose
echo 1 >/sys/block/hiops_ram0/io-timeout-fail
expect swallowed-io timeout 200 fio --name=f --verify_state_save=0 --filename=/dev/hiops_ram0 --direct=1 --rw=randwrite --bs=4k --ioengine=libaio --iodepth=16 --size=2M --verify=crc32c
echo 0 >/sys/block/hiops_ram0/io-timeout-fail
same swallowed-times "$(cat $DEBUG/fail_io_timeout/times)" 0
same swallowed-over "$(count hiops_ram0 completed)" "$(count hiops_ram0 submitted)"
same swallowed-resets "$(count hiops_ram0 resets)" 0
same swallowed-errors "$(count hiops_ram0 errors)" 0
expect rmmod rmmod hiops

# Lists of mapped pieces can't be had: the requests wait and are mapped later.
expect bind $BIND $PCI hiops_nvme
before=$(count hiops0n1 fifo_deferred)
echo 0 >$DEBUG/failslab/verbose
echo -1 >$DEBUG/failslab/times
echo Y >$DEBUG/failslab/ignore-gfp-wait
echo 30 >$DEBUG/failslab/probability
fio --name=f --verify_state_save=0 --filename=/dev/hiops0n1 --direct=1 --rw=randwrite --bs=64k --ioengine=libaio --iodepth=8 --size=16M --verify=crc32c --mem=malloc --iomem_align=4k >"$OUT" 2>&1
status=$?
echo 0 >$DEBUG/failslab/probability
same starved-io "$status" 0
if [ "$(count hiops0n1 fifo_deferred)" -gt "$before" ]; then ok starved-waited; else not_ok starved-waited "no request waited"; fi
same starved-over "$(count hiops0n1 completed)" "$(count hiops0n1 submitted)"
same starved-errors "$(count hiops0n1 errors)" 0
expect none "$BIND" "$PCI" none
expect rmmod-again rmmod hiops
