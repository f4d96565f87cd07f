#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A drive that is taken out under load: asked for (QMP device_del) and by surprise (gone before the kernel has let it go). Every request ends, the disk
# goes, and a drive that is put in again is served again.
# host
# image: a.img 256M
# kernels: stock debug
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
	busy() { [ "$(awk '$1 == "completed" { print $2 }' /sys/block/hiops0n1/hiops/stats)" -gt 500 ]; }
	expect "$how-busy" until_true 60 busy
	echo host: take it out
	if [ "$how" = surprise ]; then
		# The slot's driver waits 5 seconds after the button before it lets the drive go; it is gone before that.
		expect pressed until_true 60 sh -c "dmesg | grep -q 'Button press'"
		at=$(($(capability) + 24))
		# Slot Control, in one write: power controller off, power indicator off, the rest as it is.
		# shellcheck disable=SC2059  # the bytes are the format
		printf "\\x$(printf %x "$(config $at)")\\x$(printf %x $(($(config $((at + 1))) | 7)))" |
			dd of=$slot/config bs=2 count=1 seek=$at oflag=seek_bytes conv=notrunc status=none
	fi
	expect "$how-gone" until_true 60 absent $D
	expect "$how-fio-ends" until_true 60 sh -c "! kill -0 $fio"
	expect "$how-function-gone" until_true 60 sh -c "! grep -q 0x010802 /sys/bus/pci/devices/*/class"
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
	bridge=$([ $how = surprise ] && echo "-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off")
	ci/vm --kernel "$KERNEL" --timeout 600 --qmp "$DIR/qmp" --qemu "$bridge -blockdev driver=file,filename=$DIR/a.img,node-name=a \
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
