#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Reboot, poweroff, unbind and module unload tell the drives first, NVMe's by CC.SHN, SATA's by a
# flush and STANDBY IMMEDIATE, also with I/O under way; what was written before is there afterwards.
# host
# image: a.img 256M
# image: s.img 256M
# kernels: stock
set -uo pipefail
. ci/report.sh

# The drive's side of it is QEMU's trace.
vm() {
	rm -f "$DIR/trace"
	ci/vm --kernel "$KERNEL" --cpus 1 --timeout 400 \
		--qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a" \
		--qemu "-device nvme,serial=rb,drive=a,addr=4" \
		--qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s" \
		--qemu "-device ich9-ahci,id=hba,addr=6 -device ide-hd,drive=s,bus=hba.0" \
		--qemu "-trace enable=pci_nvme_mmio_shutdown_set -trace enable=ide_bus_exec_cmd" \
		--qemu "-D $DIR/trace" \
		-- bash -c "tools/hiops-bind 00:04.0 hiops_nvme &&
			tools/hiops-bind 00:06.0 hiops_ahci && $1" >"$DIR/out" 2>"$DIR/err"
}
# told NAME TIMES: once by the in-tree driver, from which hiops took it, and otherwise by hiops.
told() {
	local count
	count=$(grep -c pci_nvme_mmio_shutdown_set "$DIR/trace" 2>/dev/null)
	if [ "$count" = "$2" ]; then
		ok "$1-tells-the-drive"
	else
		not_ok "$1-tells-the-drive" \
			"$count times CC.SHN instead of $2: $(tail -n 3 "$DIR/err")"
	fi
}
# flushed NAME TIMES: so many times, and as the last thing of all, the SATA drive was told to flush
# and right after that to park. (The in-tree driver asks for the power mode between.) What is queued
# is not in the trace.
flushed() {
	local commands count
	commands=$(sed -n 's/.*ide_bus_exec_cmd.*cmd 0x\(..\).*/\1/p' "$DIR/trace" | paste -sd' ')
	count=$(grep -o 'ea e0' <<<"$commands" | wc -l)
	if [ "$count" = "$2" ] && [[ $commands == *'ea e0' ]]; then
		ok "$1-flushes-and-parks"
	else
		not_ok "$1-flushes-and-parks" \
			"$count times 'ea e0' instead of $2: $(tail -c 60 <<<"$commands")"
	fi
}

# The guest's shell is to expand it.
# shellcheck disable=SC2016
load='completed() { awk "\$1 == \"completed\" { print \$2 }" /sys/block/$1/hiops/stats; }
	for disk in hiops0n1 hiops1d0; do
		fio --name=r --verify_state_save=0 --filename=/dev/$disk --direct=1 \
			--ioengine=libaio --iodepth=32 --numjobs=2 --rw=randwrite --offset=64M \
			--size=64M --time_based --runtime=100 >/dev/null 2>&1 &
		until [ "$(completed $disk)" -gt 1000 ]; do sleep 0.1; done
	done'
for way in reboot poweroff; do
	vm "for disk in hiops0n1 hiops1d0; do
			echo $way | dd of=/dev/\$disk bs=512 conv=sync status=none
		done
		$load; busybox $way -f; sleep 100"
	if grep -q 'guest ended before its command did' "$DIR/err"; then
		ok "$way-ends"
	else
		not_ok "$way-ends" "$(tail -n 3 "$DIR/err")"
	fi
	for image in a s; do
		if [ "$(head -n 1 "$DIR/$image.img" | tr -d '\0')" = "$way" ]; then
			ok "$way-$image-keeps"
		else
			not_ok "$way-$image-keeps" "what was written is not there"
		fi
	done
	told "$way" 2
	flushed "$way" 1
done
vm "for bind in '04.0 none' '04.0 hiops_nvme' '06.0 none' '06.0 hiops_ahci'; do
		tools/hiops-bind 00:\$bind || exit
	done
	rmmod hiops"
told unbind-and-rmmod 3
flushed unbind-and-rmmod 2
plan
