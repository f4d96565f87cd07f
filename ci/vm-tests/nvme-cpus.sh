#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# More CPUs than queues: 8 over 3, and as many queues as CPUs beside it. Every CPU does I/O and is
# interrupted by its own queue's vector.
# image: a.img 256M
# image: b.img 256M
# vm: --timeout 900 --cpus 8
# vm: --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a"
# vm: --qemu "-device nvme,serial=three,drive=a,addr=4,max_ioqpairs=3"
# vm: --qemu "-drive file=$DIR/b.img,format=raw,if=none,id=b"
# vm: --qemu "-device nvme,serial=many,drive=b,addr=5"
. ci/vm-tests/nvme-lib.sh

each_cpu() {
	expect "$1" fio --name=v --filename=/dev/hiops0n1 --direct=1 --ioengine=libaio --iodepth=8 \
		--numjobs=8 --cpus_allowed=0-7 --cpus_allowed_policy=split \
		--rw=randwrite --size=8M --offset_increment=16M --bsrange=512-256k \
		--blockalign=512 --verify=crc32c --verify_fatal=1 --group_reporting --minimal
	unused=$(awk '/ hiops_nvme-/ {
			n = 0
			for (i = 2; i <= 9; i++) n += $i
			if (n == 0) print "unused", $1
		}' /proc/interrupts)
	same "$1-vectors-used" "$(grep -c ' hiops_nvme-' /proc/interrupts) $unused" "$2 "
	cpus=$(cat /sys/block/hiops0n1/mq/*/cpu_list | tr -d ' ' | tr ',' '\n' | sort -n | xargs)
	same "$1-cpus" "$cpus" "0 1 2 3 4 5 6 7"
}
# A message for each queue, and one for administrative commands and events.
expect bind-three "$BIND" 00:04.0 hiops_nvme
each_cpu three-queues 4
expect none-three "$BIND" 00:04.0 none
expect bind-many "$BIND" 00:05.0 hiops_nvme
each_cpu eight-queues 9
# The managed vectors of a CPU that goes offline and comes back.
echo 0 >/sys/devices/system/cpu/cpu7/online
expect io-without-cpu-7 dd if=/dev/hiops0n1 of=/dev/null bs=64k count=64 iflag=direct
echo 1 >/sys/devices/system/cpu/cpu7/online
expect io-on-cpu-7 taskset -c 7 dd if=/dev/hiops0n1 of=/dev/null bs=64k count=64 iflag=direct
expect none-many "$BIND" 00:05.0 none
plan
