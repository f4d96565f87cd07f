#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The function is reset by others, by its own file in sysfs, with I/O and administrative commands under way: all of it comes to its end, and nothing fails.
# image: a.img 256M
# vm: --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a -device nvme,serial=rst0,drive=a,max_ioqpairs=4,addr=4"
# kernels: stock
. ci/vm-tests/nvme-lib.sh
D=/dev/hiops0n1
function=/sys/bus/pci/devices/$PCI

expect bind "$BIND" "$PCI" hiops_nvme
head -c 4M /dev/urandom >/run/data
expect write dd if=/run/data of=$D bs=64k oflag=direct
expect can-be-reset grep -qw flr "$function/reset_method"

# until_enough COMMAND...: again and again, until it fails or there were resets enough.
until_enough() { while [ ! -e "$ENOUGH" ]; do "$@" || return; done; }

# Reads and writes of threads that wait and of one that does not, beside the tool's commands.
until_enough fio --name=s --filename=$D --direct=1 --ioengine=psync --rw=randrw --bs=4k --offset=64M --size=1M --numjobs=4 --offset_increment=4M --thread \
	--loops=2 --verify=crc32c --output=/run/psync.txt &
psync=$!
until_enough fio --name=a --filename=$D --direct=1 --ioengine=io_uring --iodepth=32 --rw=randread --bs=4k --offset=96M --size=64M \
	--number_ios=2000 --output=/run/uring.txt &
uring=$!
until_enough nvme id-ctrl $D >/run/admin &
admin=$!
done_more() { [ "$(count hiops0n1 completed)" -gt "$1" ]; }
expect load until_true 60 done_more 100
for round in 1 2 3 4 5; do
	expect "reset-$round" put 1 "$function/reset"
	before=$(count hiops0n1 completed)
	expect "goes-on-$round" until_true 60 done_more $((before + 200))
done
touch "$ENOUGH"
expect admin wait "$admin"
expect psync wait "$psync"
expect uring wait "$uring"
same no-error "$(count hiops0n1 errors)" 0
same no-time-out "$(count hiops0n1 timeouts)" 0
expect reads-again cmp -n $((4 << 20)) /run/data $D

expect unbind "$BIND" "$PCI" nvme
expect in-tree-reads cmp -n $((4 << 20)) /run/data /dev/nvme0n1
