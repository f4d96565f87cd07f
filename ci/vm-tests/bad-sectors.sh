#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Sectors that can be read or written no more (bad-sectors.conf), of a SATA drive whose slots are
# all taken and of an NVMe drive: the I/Os that touch them are tried six times, as neither drive
# says that this is of no use, and fail, each once; those that fail once are right in the end, as
# are all others; errors and tries are counted; and the drive goes on.
# image: bs.img 64M
# image: bn.img 64M
# vm: --timeout 900
# vm: --qemu "-blockdev driver=file,node-name=bs-f,filename=$DIR/bs.img"
# vm: --qemu "-blockdev driver=blkdebug,node-name=bs,image=bs-f,config=ci/vm-tests/bad-sectors.conf"
# vm: --qemu "-blockdev driver=file,node-name=bn-f,filename=$DIR/bn.img"
# vm: --qemu "-blockdev driver=blkdebug,node-name=bn,image=bn-f,config=ci/vm-tests/bad-sectors.conf"
# vm: --qemu "-device ich9-ahci,id=hba-bad,addr=c"
# vm: --qemu "-device ide-hd,serial=bad-s,drive=bs,bus=hba-bad.0"
# vm: --qemu "-device nvme,serial=bad-n,drive=bn,addr=d"
. ci/vm-tests/nvme-lib.sh

# What is to fail: lines "read OFFSET", "write OFFSET" of blocks of 4 KiB, sorted.
to_fail() {
	# Those that are not told to fail once.
	sed -nE 's/^(iotype|sector|once) = "(.*)"/\2/p' ci/vm-tests/bad-sectors.conf |
		paste -sd' ' | sed -E 's/(read|write) [0-9]+ on//g' | xargs -n 2 |
		while read -r what sector; do echo "$what $((sector * 512 & ~4095))"; done | sort
}
# What failed, as fio tells it, with the error ERROR.
failed() {
	sed -nE "s/.*io_u error on file .*: $1: (read|write) offset=([0-9]+),.*/\1 \2/p" \
		/run/fio.err | sort
}

# drive WHAT ADDRESS DRIVER DISK ERROR ONCE: so many of those that fail once are tried again.
drive() {
	local disk=$4 wrong
	wrong=$(to_fail | wc -l)
	expect "$1-bind" "$BIND" "$2" "$3"
	# One request each, so that none fails with its neighbour.
	put 2 "/sys/block/$disk/queue/nomerges"
	put reset "/sys/block/$disk/hiops/stats"
	# Each block is written with its offset in it, and read back if that worked. 61: ENODATA.
	fio --name=bad --filename="/dev/$disk" --direct=1 --ioengine=libaio --iodepth=64 \
		--rw=randwrite --bs=4k --size=16M --verify=pattern --verify_pattern=%o \
		--verify_fatal=1 --continue_on_error=io --ignore_error=EIO:61,EIO:61 \
		--error_dump=1 --output-format=json --output=/run/fio.json 2>/run/fio.err
	cp /run/fio.err "$OUT"
	same "$1-failed" "$(failed "$5")" "$(to_fail)"
	same "$1-nothing-else" "$(wc -l </run/fio.err)" "$wrong"
	ios=$(sed -nE 's/.*"total_ios" : ([0-9]+).*/\1/p' /run/fio.json | head -n 2 | paste -sd' ')
	same "$1-all-done" "$ios" "$((4096 - $(to_fail | grep -c write))) 4096"
	all_over() { [ "$(count "$disk" submitted)" = "$(count "$disk" completed)" ]; }
	expect "$1-over" until_true 5 all_over
	same "$1-counted" \
		"$(count "$disk" errors) $(count "$disk" timeouts) $(count "$disk" resets)" \
		"$wrong 0 0"
	# Five times more each, and those that failed once.
	same "$1-retried" "$(count "$disk" retried)" "$((5 * wrong + $6))"
	expect "$1-goes-on" fio --name=good --filename="/dev/$disk" --direct=1 --ioengine=libaio \
		--iodepth=64 --rw=randwrite --bsrange=512-64k --blockalign=512 \
		--offset=32M --size=8M --verify=crc32c --verify_fatal=1 --minimal
	same "$1-no-more" "$(count "$disk" errors)" "$wrong"
	expect "$1-unbind" "$BIND" "$2" none
}
# This HBA tells no more than that a command failed, of all that it had: the driver tells it each
# anew to find out which, and those that fail once are well then. NVMe drives tell that it was the
# medium.
drive sata 0000:00:0c.0 hiops_ahci hiops0d0 'Input\/output error' 0
drive nvme 0000:00:0d.0 hiops_nvme hiops0n1 'No data available' 2
expect rmmod rmmod hiops
plan
