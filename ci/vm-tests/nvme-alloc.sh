#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# An allocation that fails at some point of a probe, from the first one on, for as long as BUDGET seconds: each time the probe fails cleanly or comes up whole,
# and the drive can be bound the next time.
# image: a.img 64M
# kernels: debug
# vm: --timeout 1500 --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a"
# vm: --qemu "-device nvme,id=c,serial=alloc,addr=4,max_ioqpairs=2 -device nvme-ns,drive=a,bus=c,nsid=1"
. ci/vm-tests/nvme-lib.sh
DRIVER=/sys/bus/pci/drivers/hiops_nvme
BUDGET=240
FUNCTION=/sys/bus/pci/devices/$PCI

mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
for fault in failslab fail_page_alloc; do
	echo 0 >/sys/kernel/debug/$fault/verbose
	# Allocations that may wait fail too.
	echo N >/sys/kernel/debug/$fault/ignore-gfp-wait
done
echo 0 >/sys/kernel/debug/fail_page_alloc/min-order

expect bind "$BIND" "$PCI" hiops_nvme
echo "$PCI" >$DRIVER/unbind
# Enabled already, so that enabling it evaluates no ACPI method: the kernel's interpreter does not outlive failures of its own allocations.
echo 1 >"$FUNCTION/enable"
# Open already: opening allocates too.
exec 7>$DRIVER/bind 8>/proc/self/fail-nth
failed=0 bound=0 at=0 step=1 end=$((SECONDS + BUDGET))
while :; do
	at=$((at + step))
	# The shell itself does the writes: it is this task whose allocation fails, the at-th from here.
	echo $at >&8
	if echo "$PCI" >&7; then came=y; else came=; fi
	# What fails here was not reached by the probe, just as what is left over.
	read -r left </proc/self/fail-nth || left=1
	echo 0 >&8
	if [ "$came" ]; then
		# What a probe gets over is mostly the kernel's own and comes in runs; most of such a run is left out.
		bound=$((bound + 1)) step=5
		# What came up without that piece of memory works.
		[ ! -b /dev/hiops0n1 ] || dd if=/dev/hiops0n1 of=/dev/null bs=64k count=4 iflag=direct status=none || not_ok "read-after-$at" "it does not read"
		echo "$PCI" >$DRIVER/unbind
	else
		failed=$((failed + 1)) step=1
	fi
	[ ! -e /dev/hiops0n1 ] || { not_ok "left-behind-$at" "the disk is still there"; break; }
	# Not reached any more: the probe has no more allocations than that.
	[ "$left" = 0 ] || break
	[ "$SECONDS" -lt "$end" ] || break
done
echo "up to allocation $at: $failed probes failed, $bound came up all the same" >&2
expect probes-failed test "$failed" -ge 10
exec 7>&- 8>&-
echo 0 >"$FUNCTION/enable"
expect bind-afterwards "$BIND" "$PCI" hiops_nvme
expect read dd if=/dev/hiops0n1 of=/dev/null bs=64k count=16 iflag=direct
expect unbind "$BIND" "$PCI" none
expect rmmod rmmod hiops
