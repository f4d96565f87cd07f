#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# An allocation that fails at some point of a probe, from the first to the last of the probe, whatever the machine's speed: of those that a probe
# gets over (mostly the kernel's own, in runs) one in STRIDE; then again with the others, for as long as BUDGET seconds. Each time the probe fails cleanly or comes up whole, and the drive can be bound the next time.
# image: a.img 64M
# kernels: debug
# vm: --timeout 900 --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a"
# vm: --qemu "-device nvme,id=c,serial=alloc,addr=4,max_ioqpairs=1 -device nvme-ns,drive=a,bus=c,nsid=1"
. ci/vm-tests/nvme-lib.sh
DRIVER=/sys/bus/pci/drivers/hiops_nvme
STRIDE=13 BUDGET=60
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
# What the kernel itself does not outlive when its own allocations fail is done beforehand, or not at all:
# enabling the function evaluates ACPI methods; and message-signalled vectors are allocated, with their /proc/irq files, for each probe
# (a file that could not be made is warned about when it is removed), while the pin's interrupt is there already.
echo 1 >"$FUNCTION/enable"
echo 0 >"$FUNCTION/msi_bus"
# Open already: opening allocates too.
exec 7>$DRIVER/bind 8>/proc/self/fail-nth

# A probe (or the module's end) that hangs is told, with who waits for what and who runs where.
beat=/run/hiops-beat
: >$beat
watch() {
	local last=
	while sleep 100 >/dev/null 2>&1; do
		if [ "$(<$beat)" = "$last" ]; then
			echo "no end of $last" >/dev/kmsg
			for key in w l; do echo $key >/proc/sysrq-trigger; done
			not_ok hang "no end of $last"
			# What hangs in the kernel can't be killed.
			sleep 2
			echo 1 >/ctl/status
			busybox poweroff -f
		fi
		last=$(<$beat)
	done
}
watch 7>&- 8>&- &
watch=$!

failed=0 bound=0 at=1 pass=1 end=$((SECONDS + BUDGET))
while :; do
	echo "the probe whose allocation $at fails" >$beat
	# The shell itself does the writes: it is this task whose allocation fails, the at-th from here.
	echo $at >&8
	if echo "$PCI" >&7; then came=y; else came=; fi
	# What fails here was not reached by the probe, just as what is left over.
	read -r left </proc/self/fail-nth || left=1
	echo 0 >&8
	if [ "$came" ]; then
		bound=$((bound + 1))
		# What came up without that piece of memory works.
		[ ! -b /dev/hiops0n1 ] || dd if=/dev/hiops0n1 of=/dev/null bs=64k count=1 iflag=direct status=none || not_ok "read-after-$at" "it does not read"
		echo "$PCI" >$DRIVER/unbind
	else
		failed=$((failed + 1))
	fi
	[ ! -e /dev/hiops0n1 ] || { not_ok "left-behind-$at" "the disk is still there"; break; }
	last=$at
	at=$((at + (${#came} ? STRIDE : 1)))
	if [ "$left" != 0 ]; then
		# Not reached any more: the probe has no more allocations than that.
		echo "pass $pass ends before allocation $last at $SECONDS s: $failed probes failed, $bound came up all the same" >>/run/hiops-passes
		pass=$((pass + 1))
		at=$pass
	fi
	[ "$pass" = 1 ] || { [ "$SECONDS" -lt "$end" ] && [ "$pass" -le "$STRIDE" ]; } || break
done 2>/run/hiops-refused
cat /run/hiops-passes >&2
echo "in all $failed probes failed, $bound came up all the same" >&2
expect probes-failed test "$failed" -ge 10
exec 7>&- 8>&-
echo 0 >"$FUNCTION/enable"
echo 'the time afterwards' >$beat
expect bind-afterwards "$BIND" "$PCI" hiops_nvme
expect read dd if=/dev/hiops0n1 of=/dev/null bs=64k count=16 iflag=direct
expect unbind "$BIND" "$PCI" none
# Also what failed half-way holds the module no longer.
echo rmmod >$beat
expect rmmod rmmod hiops
kill $watch
