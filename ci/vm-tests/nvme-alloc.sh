#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# An allocation that fails at some point of a probe: the probe fails cleanly or comes up whole, and
# the drive can be bound the next time. The points are taken from the first to the last in an order
# of which every beginning is spread evenly; one at which the probe fails, which most likely is
# hiops' own, is followed by its neighbours. So many seconds of it as its argument says (default
# 40), or all there are.
# image: l.img 64M
# kernels: debug
# vm: --timeout 900 --qemu "-drive file=$DIR/l.img,format=raw,if=none,id=l"
# vm: --qemu "-device nvme,id=c,serial=alloc,addr=7,max_ioqpairs=1"
# vm: --qemu "-device nvme-ns,drive=l,bus=c,nsid=1"
. ci/vm-tests/nvme-lib.sh
PCI=0000:00:07.0
DRIVER=/sys/bus/pci/drivers/hiops_nvme
BUDGET=${1:-40}
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
# What the kernel itself does not outlive when its own allocations fail is done beforehand, or not
# at all: enabling the function evaluates ACPI methods; and message-signalled vectors are allocated,
# with their /proc/irq files, for each probe (a file that could not be made is warned about when it
# is removed), while the pin's interrupt is there already.
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

failed=0 bound=0
# probe AT: binds the drive, with the allocation AT of it failing; `left`: how many it was short of
# it, 0 if that one failed. Unbinds it.
probe() {
	local came
	echo "the probe whose allocation $1 fails" >$beat
	# The shell itself does the writes: it is this task whose allocation fails, the AT-th from
	# here.
	echo "$1" >&8
	if echo "$PCI" >&7; then came=y; else came=; fi
	# What fails here was not reached by the probe, just as what is left over.
	read -r left </proc/self/fail-nth || left=1
	echo 0 >&8
	if [ "$came" ]; then
		bound=$((bound + 1))
		# What came up without that piece of memory works.
		[ ! -b /dev/hiops0n1 ] || dd if=/dev/hiops0n1 of=/dev/null bs=64k count=1 \
			iflag=direct status=none || not_ok "read-after-$1" "it does not read"
		echo "$PCI" >$DRIVER/unbind
	else
		failed=$((failed + 1))
		near+=($(($1 + 1)) $(($1 - 1)))
	fi
	[ ! -e /dev/hiops0n1 ] || { not_ok "left-behind-$1" "the disk is still there"; exit; }
}
declare -A seen=([0]=1)
near=() order=()
exec 6>&2 2>/run/hiops-refused
# One that fails at no point tells how many there are.
probe 1000000
points=$((1000000 - left))
# The golden section of them, and again of what is left: each next point falls into one of the
# widest gaps.
step=$((points * 618 / 1000)) at=0
common() {
	local a=$1 b=$2 c
	while [ "$b" -gt 0 ]; do c=$((a % b)) a=$b b=$c; done
	[ "$a" -gt 1 ]
}
while common "$points" "$step"; do step=$((step + 1)); done
for ((i = 0; i < points; i++)); do
	at=$(((at + step) % points))
	order+=($((at + 1)))
done
end=$((SECONDS + BUDGET)) turn=0
next=0
while [ "$next" -lt "$points" ] &&
	{ [ "$SECONDS" -lt "$end" ] || [ "$failed" -lt 5 ] || [ "$bound" -lt 5 ]; }; do
	# One of the order, two of the neighbours.
	turn=$(((turn + 1) % 3))
	if [ "$turn" != 0 ] && [ "${#near[@]}" -gt 0 ]; then
		at=${near[0]}
		near=("${near[@]:1}")
	else
		at=${order[next]}
		next=$((next + 1))
	fi
	[ -z "${seen[$at]:-}" ] || continue
	seen[$at]=1
	probe "$at"
done
exec 2>&6 6>&-
echo "of $points allocations of a probe $((${#seen[@]} - 1)) were made to fail:" \
	"$failed probes failed, $bound came up all the same" >&2
expect probes-failed test "$failed" -ge 5
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
plan
