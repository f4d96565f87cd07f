#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The kernel's own fault injection: bios that fail before they get to a disk, completions that get
# lost on their way to the block layer, memory that can't be had while a request is mapped.
# kernels: debug
# image: a.img 64M
# image: s.img 64M
# vm: --timeout 900 --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a"
# vm: --qemu "-device nvme,serial=faults,drive=a,addr=4"
# vm: --qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s -device ich9-ahci,id=hba,addr=6"
# vm: --qemu "-device ide-hd,serial=faults-s,drive=s,bus=hba.0"
. ci/vm-tests/nvme-lib.sh
DEBUG=/sys/kernel/debug
SATA=0000:00:06.0
mountpoint -q $DEBUG || mount -t debugfs debugfs $DEBUG

# swallow DISK: one completion in ten vanishes between hiops and the block layer: its time-out ends
# it, nothing is reset.
swallow() {
	local disk=$1
	echo 10 >$DEBUG/fail_io_timeout/probability
	echo 20 >$DEBUG/fail_io_timeout/times
	echo 0 >$DEBUG/fail_io_timeout/verbose
	echo 1 >"/sys/block/$disk/io-timeout-fail"
	expect "swallowed-io-$disk" timeout 200 fio --name=f --verify_state_save=0 \
		--filename="/dev/$disk" --direct=1 --rw=randwrite --bs=4k --ioengine=libaio \
		--iodepth=16 --size=2M --verify=crc32c
	echo 0 >"/sys/block/$disk/io-timeout-fail"
	same "swallowed-times-$disk" "$(cat $DEBUG/fail_io_timeout/times)" 0
	same "swallowed-over-$disk" "$(count "$disk" completed)" "$(count "$disk" submitted)"
	same "swallowed-resets-$disk" "$(count "$disk" resets)" 0
	same "swallowed-errors-$disk" "$(count "$disk" errors)" 0
}

# refuse DISK: bios that fail as they are submitted. hiops is not told, and nothing else fails.
refuse() {
	local disk=$1 before bad=0
	before=$(count "$disk" submitted)
	echo 100 >$DEBUG/fail_make_request/probability
	echo 4 >$DEBUG/fail_make_request/times
	echo 0 >$DEBUG/fail_make_request/verbose
	echo 1 >"/sys/block/$disk/make-it-fail"
	for _ in 1 2 3 4; do
		if ! dd if="/dev/$disk" of=/dev/null bs=4k count=1 iflag=direct 2>"$OUT" &&
			grep -q 'Input/output error' "$OUT"; then
			bad=$((bad + 1))
		fi
	done
	same "refused-fail-$disk" "$bad" 4
	same "refused-untold-$disk" "$(count "$disk" submitted)" "$before"
	same "refused-times-$disk" "$(cat $DEBUG/fail_make_request/times)" 0
	expect "refused-no-more-$disk" dd if="/dev/$disk" of=/dev/null bs=4k count=1 iflag=direct
	# Some of those that are under way with others.
	echo 20 >$DEBUG/fail_make_request/probability
	echo 20 >$DEBUG/fail_make_request/times
	command fio --name=f --filename="/dev/$disk" --direct=1 --rw=randread --bs=4k \
		--ioengine=libaio --iodepth=16 --size=2M --continue_on_error=io \
		--output-format=json >"$OUT" 2>&1
	echo 0 >"/sys/block/$disk/make-it-fail"
	same "refused-some-$disk" \
		"$(sed -nE 's/.*"total_err" : ([0-9]+).*/\1/p' "$OUT" | head -n 1)" 20
	same "refused-over-$disk" "$(count "$disk" completed)" "$(count "$disk" submitted)"
	same "refused-errors-$disk" "$(count "$disk" errors)" 0
}

expect load modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=20 ram_timeout_ms=1000
swallow hiops_ram0
refuse hiops_ram0
expect rmmod rmmod hiops

expect bind $BIND $PCI hiops_nvme
expect bind-sata $BIND $SATA hiops_ahci
for disk in hiops0n1 hiops1d0; do
	echo 2000 >/sys/block/$disk/queue/io_timeout
	swallow $disk
	refuse $disk
done
expect none-sata "$BIND" "$SATA" none

# Lists of mapped pieces can't be had: the requests wait and are mapped later.
before=$(count hiops0n1 fifo_deferred)
echo 0 >$DEBUG/failslab/verbose
echo -1 >$DEBUG/failslab/times
echo Y >$DEBUG/failslab/ignore-gfp-wait
echo 30 >$DEBUG/failslab/probability
fio --name=f --verify_state_save=0 --filename=/dev/hiops0n1 --direct=1 --rw=randwrite --bs=64k \
	--ioengine=libaio --iodepth=8 --size=16M --verify=crc32c --mem=malloc \
	--iomem_align=4k >"$OUT" 2>&1
status=$?
echo 0 >$DEBUG/failslab/probability
same starved-io "$status" 0
if [ "$(count hiops0n1 fifo_deferred)" -gt "$before" ]; then
	ok starved-waited
else
	not_ok starved-waited "no request waited"
fi
same starved-over "$(count hiops0n1 completed)" "$(count hiops0n1 submitted)"
same starved-errors "$(count hiops0n1 errors)" 0
expect none "$BIND" "$PCI" none
expect rmmod-again rmmod hiops
plan
