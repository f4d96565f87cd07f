#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A drive that is taken out under load: asked for (QMP device_del) and by surprise (gone before the kernel hears of it).
# Every request ends, the disk goes, and a drive that is put in again (where it was asked for) is served again.
# host
# image: a.img 256M
if [ "${1:-}" = guest ]; then
	. ci/vm-tests/nvme-lib.sh
	D=/dev/hiops0n1
	how=$2
	# The drive is behind the slot, on a bus of its own.
	drive() { basename "$(dirname "$(grep -l 0x010802 /sys/bus/pci/devices/*/class | head -n 1)")"; }
	slot=/sys/bus/pci/devices/0000:00:05.0
	# A byte of the slot's configuration space; its PCI Express capability.
	config() { od -An -tu1 -j"$1" -N1 $slot/config | tr -d ' '; }
	capability() {
		local at
		at=$(config 52)
		until [ "$(config "$at")" = 16 ]; do at=$(config $((at + 1))); done
		echo "$at"
	}
	expect "$how-bind" "$BIND" "$(drive)" hiops_nvme
	fio --name=p --filename=$D --direct=1 --ioengine=libaio --iodepth=32 --numjobs=2 --rw=randrw --bs=4k --size=64M --time_based --runtime=300 --minimal >/dev/null 2>&1 &
	fio=$!
	busy() { [ "$(count hiops0n1 completed)" -gt 500 ]; }
	expect "$how-busy" until_true 60 busy
	if [ "$how" = asked ]; then
		echo host: take it out
	else
		at=$(($(capability) + 24))
		control=$(($(config $at) | $(config $((at + 1))) << 8))
		# Slot Control with power controller and power indicator off: QEMU takes the drive out before this write returns. Then with power as it was:
		# the slot's driver would take a slot without power for one that it has emptied itself. It must not look in between:
		# this machine has one CPU, and nobody on it comes before this process.
		# shellcheck disable=SC2016  # the variables are perl's
		expect "$how-pulled" chrt -f 99 perl -e 'sysopen(my $f, $ARGV[0], 2) or die $!;
			for (@ARGV[2, 3]) { sysseek($f, $ARGV[1], 0); syswrite($f, pack("v", $_)) == 2 or die $! }' $slot/config $at $((control | 0x700)) $control
	fi
	expect "$how-gone" until_true 60 absent $D
	expect "$how-fio-ends" until_true 60 ended "$fio"
	expect "$how-function-gone" until_true 60 sh -c "! grep -q 0x010802 /sys/bus/pci/devices/*/class"
	# By the slot's own way it is not put in again: QEMU presses the slot's button then, which means out again five seconds later.
	if [ "$how" = surprise ]; then
		expect "$how-rmmod" rmmod hiops
		exit
	fi
	echo host: put it in
	expect "$how-back" until_true 60 sh -c "grep -q 0x010802 /sys/bus/pci/devices/*/class"
	expect "$how-bind-again" "$BIND" "$(drive)" hiops_nvme
	same "$how-read-again" "$(dd if=$D bs=1M count=16 iflag=direct status=none | wc -c)" $((16 << 20))
	expect "$how-unbind" "$BIND" "$(drive)" none
	expect "$how-rmmod" rmmod hiops
	exit
fi

set -uo pipefail
qmp() { ci/in-root python3 ci/vm-tests/qmp.py "$DIR/qmp" "$@" >&2; }
bad=0
for how in asked surprise; do
	# Asked for, the firmware's way (ACPI); by surprise, the slot's own (pciehp).
	bridge='' cpus=2
	if [ $how = surprise ]; then bridge="-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off" cpus=1; fi
	ci/vm --kernel "$KERNEL" --cpus $cpus --timeout 600 --qmp "$DIR/qmp" --qemu "$bridge -blockdev driver=file,filename=$DIR/a.img,node-name=a \
		-device pcie-root-port,id=rp,chassis=1,slot=1,addr=5 -device nvme,id=nv,bus=rp,serial=pull,drive=a" -- "$0" guest $how |
		while read -r line; do
			case $line in
			'host: take it out') qmp device_del '{"id": "nv"}' ;;
			'host: put it in') qmp device_add '{"driver": "nvme", "id": "nv", "bus": "rp", "serial": "pull", "drive": "a"}' ;;
			*) echo "$line" ;;
			esac
		done
	[ "${PIPESTATUS[0]}" = 0 ] || bad=1
done
exit "$bad"
