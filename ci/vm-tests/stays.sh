#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What one sets, stays: on a server with systemd a drive is enabled, and is hiops' from the next
# boot's initramfs on, with its file system and the switch that was saved; it is disabled, and is
# nvme's again. hiopsctl doctor says each time what is wrong, and that nothing is. The timer writes
# the counters meanwhile.
# host
# kernels: none
# long: stock
A=0000:00:04.0

if [ "${1:-}" = inside ]; then
	HIOPS_VM_KERNEL=stock
	. ci/vm-tests/guest-lib.sh
	OLDEST=$3
	METRICS=/var/lib/prometheus/node-exporter/hiops.prom
	driver_of() { basename "$(readlink "/sys/bus/pci/devices/$1/driver")"; }
	disk() { basename "$(readlink -f "/dev/disk/by-path/pci-$A-nvme-1")"; }
	images() { stat -c '%n %i %y' /boot/initrd.img-* && sha256sum /etc/hiops/devices; }
	whole() { expect "$1" sha256sum --quiet -c /data/sums; }
	# It has run, and well.
	settled() {
		[ "$(systemctl show -P ActiveState "$1")" = inactive ] &&
			[ "$(systemctl show -P Result "$1")" = success ]
	}
	lacks="there is no module for kernel $OLDEST: a boot of it falls back to nvme and ahci"

	case $2 in
	enable)
		same at-first "$(driver_of $A)" nvme
		says sound 'Nothing is wrong' hiopsctl doctor
		mkdir /data
		expect mkfs mkfs.ext4 -q "/dev/$(disk)"
		udevadm settle
		echo "UUID=$(blkid -o value -s UUID "/dev/$(disk)") /data ext4 defaults 0 2" \
			>>/etc/fstab
		systemctl daemon-reload
		expect mount mount /data
		cp /usr/bin/bash /data
		sha256sum /data/bash >/data/sums
		says enable "$A (serial number A-drive) goes to hiops_nvme at every boot" \
			hiopsctl enable "/dev/disk/by-path/pci-$A-nvme-1"
		expect its-line grep -qx "$A hiops_nvme serial=A-drive" /etc/hiops/devices
		before=$(images)
		says enable-again 'is listed already' hiopsctl enable nvme0
		same and-nothing-is-made-anew "$(images)" "$before"
		# A drive and a module: 64 and 4.
		tells 68 doctor "$A is with 'nvme', not as /etc/hiops/devices" hiopsctl doctor
		said=$(cat "$OUT")
		expect doctor-kernel grep -qF "$lacks" <<<"$said"
		umount /data
		says bind "$A is with hiops_nvme now: hiops0n1" hiopsctl bind nvme0n1
		says save 'poll_interval_us is 77' \
			hiopsctl set hiops0 poll_interval_us 77 --save
		expect set reads /sys/block/hiops0n1/hiops/poll_interval_us 77
		# An initramfs that is made without the list is found: 8 beside the module's 4.
		sed -i s/A-drive/B-drive/ /etc/hiops/devices
		tells 12 stale 'has another list of devices than today' hiopsctl doctor
		sed -i s/B-drive/A-drive/ /etc/hiops/devices
		;;
	enabled)
		same at-boot "$(driver_of $A)" hiops_nvme
		expect from-the-start grep -q "$A is hiops' from the start" <<<"$(dmesg)"
		same mounted "$(findmnt -nro SOURCE /data)" /dev/hiops0n1
		whole whole
		expect switch reads /sys/block/hiops0n1/hiops/poll_interval_us 77
		# As it is where nobody has installed what reads it.
		expect no-reader systemctl start --no-block hiops-metrics.service
		expect no-reader-fails until_true 60 systemctl is-failed hiops-metrics.service
		journal=$(journalctl -b --no-pager -u hiops-metrics)
		expect no-reader-is-told grep -q 'its folder is not there: install' <<<"$journal"
		mkdir -p "${METRICS%/*}"
		expect timer systemctl enable --now hiops-metrics.timer
		# Nothing of it is there before its first quarter of a minute is over.
		expect metrics until_true 60 grep -q '^hiops_build_info{' "$METRICS"
		expect of-the-disk grep -q '^hiops_[a-z_]*{.*disk="hiops0n1"' "$METRICS"
		# It goes on: what is taken away comes again.
		rm "$METRICS"
		expect metrics-again until_true 60 test -s "$METRICS"
		expect metrics-end until_true 60 settled hiops-metrics.service
		tells 4 doctor "$lacks" hiopsctl doctor
		same doctor-says-no-more "$(wc -l <"$OUT")" 1
		umount /data
		expect unbind hiopsctl unbind hiops0
		expect bind hiopsctl bind "/dev/disk/by-path/pci-$A-nvme-1"
		expect switch-again reads /sys/block/hiops0n1/hiops/poll_interval_us 77
		says disable "$A is left to the in-tree driver from the next boot on" \
			hiopsctl disable "$(echo /dev/disk/by-id/nvme-*A-drive_1)"
		says sound 'Nothing is wrong' hiopsctl doctor
		;;
	disabled)
		same at-boot "$(driver_of $A)" nvme
		same mounted "$(findmnt -nro SOURCE /data)" "/dev/$(disk)"
		whole whole
		says sound 'Nothing is wrong' hiopsctl doctor
		says disable-again 'is not listed; nothing is changed' hiopsctl disable $A
		;;
	esac
	all_ok || { journalctl -b --no-pager -u 'hiops*' -n 40; cat /etc/hiops/*; } >&2
	plan
	exit
fi

set -uo pipefail
. ci/report.sh
. ci/lib.sh
STOCK=$(stock_release) OLDEST=$(oldest_release)
SERVER=$(ci/env-server) || exit
mkdir -p "$DIR/share"
ci/deb stock >"$DIR/debs" || { not_ok packages "they could not be made"; plan; exit; }
cp --sparse=always "$SERVER/server.img" "$DIR/server.img"
mapfile -t debs <"$DIR/debs"
check install ci/administer "$DIR/server.img" \
	"cd /run/debs && apt-get install -qy ./hiops-tools_*.deb ./hiops-modules-$STOCK*.deb" \
	"${debs[@]}"
truncate -s 400M "$DIR/a.img"
drive=(--qemu "-blockdev raw,node-name=a,file.driver=file,file.filename=$DIR/a.img"
	--qemu "-device nvme,serial=A-drive,drive=a,addr=4")
for step in enable enabled disabled; do
	HIOPS_VM_LOG=$DIR/log retell "$step" "$step: " ci/server --share "$DIR/share" \
		--timeout 1800 "${drive[@]}" "$DIR/server.img" "$STOCK" -- \
		ci/vm-tests/stays.sh inside "$step" "$OLDEST"
	# What comes next stands on it.
	[ "$RETOLD_OK" -gt 0 ] || break
done
plan
