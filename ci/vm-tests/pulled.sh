#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# An NVMe drive and a whole AHCI HBA that are taken out under load: asked for (QMP device_del) and
# by surprise (gone before the kernel hears of it). Every request ends, the disk goes, and what is
# put in again (where it was asked for) is served again. QEMU adds IDE drives to a bus at the start
# only: so an HBA that was put in has none, and is refused by name; one with its drive comes by a
# rescan of the PCI bus, after its removal; and a drive that comes to or leaves a port is played by
# the model of rust/lld_ahci/tests.
# Beside them is a drive of each kind that stays: what is written there is read back all the while,
# and nothing of it fails, is wrong, is tried again, or waits; not even where another drive of its
# HBA is taken off, and found again.
# host
# image: a.img 256M
# image: s.img 256M
# image: na.img 64M
# image: ns.img 64M
# image: off.img 64M
if [ "${1:-}" = guest ]; then
	. ci/vm-tests/nvme-lib.sh
	. ci/vm-tests/pull-lib.sh
	how=$2
	slot=/sys/bus/pci/devices/0000:00:05.0
	# pull HOW WHAT DRIVER DISK: under load. It is in $slot.
	pull() {
		local how=$1 what=$1-$2 disk=$4 fio other
		expect "$what-bind" "$BIND" "$(address)" "$3"
		fio --name=p --filename="/dev/$disk" --direct=1 --ioengine=libaio --iodepth=32 \
			--numjobs=2 --rw=randrw --bs=4k --size=64M --time_based --runtime=300 \
			--minimal \
			>/dev/null 2>&1 &
		fio=$!
		busy() { [ "$(count "$disk" completed)" -gt 500 ]; }
		expect "$what-busy" until_true 60 busy
		case $how in
		asked) echo "host: take out $2" ;;
		removed) expect "$what-pulled" put 1 "$slot/$(address)/remove" ;;
		*) expect "$what-pulled" pull_by_surprise ;;
		esac
		expect "$what-gone" until_true 60 absent "/dev/$disk"
		expect "$what-fio-ends" until_true 60 ended "$fio"
		expect "$what-function-gone" until_true 60 has_none
		# Far more than can have been under way.
		for other in $NEIGHBOURS; do
			expect "$what-$other-goes-on" goes_on "$other" 24
		done
	}
	# goes_on DISK I/OS: so many more end there.
	goes_on() {
		local from
		from=$(count "$1" completed)
		more() { [ $(($(count "$1" completed) - from)) -ge "$2" ]; }
		until_true 60 more "$@"
	}
	# back HOW WHAT DRIVER DISK: it is in again, and is served.
	back() {
		expect "$1-$2-back" until_true 60 has_function
		expect "$1-$2-bind-again" "$BIND" "$(address)" "$3"
		same "$1-$2-read-again" \
			"$(dd if="/dev/$4" bs=1M count=16 iflag=direct status=none | wc -c)" \
			$((16 << 20))
		expect "$1-$2-unbind" "$BIND" "$(address)" none
	}
	# Those that stay come first, and so have the lower numbers.
	NEIGHBOURS='hiops0n1 hiops1d0'
	expect neighbour-nvme "$BIND" 0000:00:07.0 hiops_nvme
	expect neighbour-sata "$BIND" 0000:00:08.0 hiops_ahci
	# shellcheck disable=SC2086  # a word for each
	python3 ci/vm-tests/neighbours.py "$ENOUGH" $NEIGHBOURS >"$OUT.neighbours" 2>&1 &
	neighbours=$!
	for disk in $NEIGHBOURS; do expect "$disk-begins" goes_on "$disk" 24; done

	# One drive of an HBA, by its file: what is dirty is written, all else ends.
	off=hiops1d1
	if [ "$how" = asked ]; then
		head -c 8M /dev/urandom >/run/dirty
		fio --name=o --filename=/dev/$off --direct=1 --ioengine=libaio --iodepth=32 \
			--rw=randrw --bs=4k --offset=16M --size=32M --time_based --runtime=300 \
			--minimal >/dev/null 2>&1 &
		fio=$!
		expect off-busy goes_on $off 500
		expect off-dirty dd if=/run/dirty of=/dev/$off bs=1M conv=notrunc status=none
		expect off-asked put 1 /sys/block/$off/hiops/delete
		expect off-gone until_true 60 absent /dev/$off
		expect off-fio-ends until_true 60 ended "$fio"
		for other in $NEIGHBOURS; do
			expect "off-$other-goes-on" goes_on "$other" 24
		done
		expect off-stays-away absent /sys/block/$off
		expect off-looked-for put 1 /sys/block/hiops1d0/hiops/rescan_controller
		expect off-back until_true 60 test -b /dev/$off
		expect off-was-written cmp -n $((8 << 20)) /run/dirty /dev/$off
	fi
	pull "$how" nvme hiops_nvme hiops2n1
	# By the slot's own way it is not put in again: QEMU presses the slot's button then, which
	# means out again five seconds later.
	if [ "$how" = asked ]; then
		echo 'host: put in nvme'
		back asked nvme hiops_nvme hiops2n1
	fi
	slot=/sys/bus/pci/devices/0000:00:06.0
	if [ "$how" = asked ]; then
		pull removed hba hiops_ahci hiops2d0
		put 1 /sys/bus/pci/rescan
		back removed hba hiops_ahci hiops2d0
	fi
	pull "$how" hba hiops_ahci hiops2d0
	if [ "$how" = asked ]; then
		echo 'host: put in hba'
		expect asked-hba-back until_true 60 has_function
		refused asked-hba-without-a-drive 'hiops_ahci does not take' tools/hiops-bind \
			"$(address)" hiops_ahci
		expect asked-hba-named sh -c \
			"dmesg | grep hiops_ahci | grep -q 'finding a drive to serve failed'"
	fi
	touch "$ENOUGH"
	wait "$neighbours"
	same "$how-neighbours-are-well" "$? $(cat "$OUT.neighbours")" '0 '
	for disk in $NEIGHBOURS; do
		counts=
		for name in errors retried timeouts resets; do counts+=$(count "$disk" $name); done
		same "$how-$disk-notices-nothing" "$counts" 0000
	done
	expect "$how-rmmod" rmmod hiops
	plan
	exit
fi

set -uo pipefail
qmp() { ci/in-root python3 ci/vm-tests/qmp.py "$DIR/qmp" "$@" >&2; }
# machine HOW: the guest's part, its drives put in and taken out as it says.
machine() {
	local how=$1 bridge='' cpus=2
	# Asked for, the firmware's way (ACPI); by surprise, the slot's own (pciehp).
	if [ $how = surprise ]; then
		bridge="-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off" cpus=1
	fi
	ci/vm --kernel "$KERNEL" --cpus $cpus --timeout 600 --qmp "$DIR/qmp" \
		--qemu "$bridge -blockdev driver=file,filename=$DIR/a.img,node-name=a" \
		--qemu "-device pcie-root-port,id=rp,chassis=1,slot=1,addr=5" \
		--qemu "-device nvme,id=nvme,bus=rp,serial=pull,drive=a" \
		--qemu "-blockdev driver=file,filename=$DIR/s.img,node-name=s" \
		--qemu "-device pcie-root-port,id=rp2,chassis=2,slot=2,addr=6" \
		--qemu "-device ich9-ahci,id=hba,bus=rp2" \
		--qemu "-device ide-hd,serial=pulled,drive=s,bus=hba.0" \
		--qemu "-drive file=$DIR/na.img,format=raw,if=none,id=na" \
		--qemu "-device nvme,serial=stays,drive=na,addr=7" \
		--qemu "-drive file=$DIR/ns.img,format=raw,if=none,id=ns" \
		--qemu "-device ich9-ahci,id=hba2,addr=8" \
		--qemu "-device ide-hd,serial=stays,drive=ns,bus=hba2.0" \
		--qemu "-drive file=$DIR/off.img,format=raw,if=none,id=off" \
		--qemu "-device ide-hd,serial=off,drive=off,bus=hba2.1" -- "$0" guest $how |
		while read -r line; do
			case $line in
			'host: take out '*) qmp device_del "{\"id\": \"${line##* }\"}" ;;
			'host: put in nvme')
				qmp device_add '{"driver": "nvme", "id": "nvme", "bus": "rp",
					"serial": "pull", "drive": "a"}'
				;;
			'host: put in hba')
				qmp device_add '{"driver": "ich9-ahci", "id": "hba", "bus": "rp2"}'
				;;
			*) echo "$line" ;;
			esac
		done
	return "${PIPESTATUS[0]}"
}
. ci/report.sh
for how in asked surprise; do retell "$how" '' machine "$how"; done
plan
