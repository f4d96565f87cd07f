# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What the NVMe tests share. Sourced inside the machine; the drive under test is at 0000:00:04.0
# unless a test says otherwise.
. ci/vm-tests/guest-lib.sh

PCI=0000:00:04.0
# hiops-bind starts dozens of processes, for each of which an emulated machine takes long. What it
# does is tested by nvme-bind and the main job; elsewhere the kernel's own files do.
BIND=bind_plainly

# The disk of a PCI function, whoever drives that.
disk_of() {
	local disk
	for disk in /sys/block/*; do
		case $(readlink -f "$disk") in
		*/"$1"/*)
			basename "$disk"
			return
			;;
		esac
	done
	return 1
}

driver_of() { basename "$(readlink "/sys/bus/pci/devices/$1/driver")"; }

# bind_plainly ADDRESS DRIVER|none
bind_plainly() {
	[[ $1 == *:*:* ]] || set -- "0000:$1" "$2"
	local function=/sys/bus/pci/devices/$1 module=$2
	case $2 in hiops_*) module=hiops ;; esac
	[ "$2" = none ] || [ -e "/sys/bus/pci/drivers/$2" ] || modprobe "$module" || return
	[ ! -e "$function/driver" ] || echo "$1" >"$function/driver/unbind" || return
	if [ "$2" = none ]; then
		echo >"$function/driver_override"
		return
	fi
	echo "$2" >"$function/driver_override" &&
		echo "$1" >"/sys/bus/pci/drivers/$2/bind" || return
	# hiops has its disks when its probe returns; the in-tree driver looks for them afterwards.
	[ "$2" != nvme ] || until_true 60 compgen -G '/dev/nvme*n1'
}

# Everything that udev would do in a real machine.
start_udev() {
	/lib/systemd/systemd-udevd --daemon
	udevadm trigger --action=add --subsystem-match=block
	udevadm settle
}
