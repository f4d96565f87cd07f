#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Reboot, poweroff, unbind and module unload tell the drive first (CC.SHN), also with I/O under way;
# what was synced before is there afterwards.
# host
# image: a.img 256M
# kernels: stock
set -uo pipefail
. ci/report.sh

# The drive's side of it is QEMU's trace.
vm() {
	rm -f "$DIR/trace"
	ci/vm --kernel "$KERNEL" --timeout 200 \
		--qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a" \
		--qemu "-device nvme,serial=rb,drive=a,addr=4" \
		--qemu "-trace enable=pci_nvme_mmio_shutdown_set -D $DIR/trace" \
		-- bash -c "tools/hiops-bind 00:04.0 hiops_nvme && $1" >"$DIR/out" 2>"$DIR/err"
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

# The guest's shell is to expand it.
# shellcheck disable=SC2016
load='fio --name=r --verify_state_save=0 --filename=/dev/hiops0n1 --direct=1 --ioengine=libaio \
		--iodepth=32 --numjobs=2 --rw=randwrite --offset=64M --size=64M \
		--time_based --runtime=100 >/dev/null 2>&1 &
	completed() { awk "\$1 == \"completed\" { print \$2 }" /sys/block/hiops0n1/hiops/stats; }
	until [ "$(completed)" -gt 1000 ]; do sleep 0.1; done'
for way in reboot poweroff; do
	vm "echo $way | dd of=/dev/hiops0n1 bs=512 conv=sync status=none
		$load; busybox $way -f; sleep 100"
	if grep -q 'guest ended before its command did' "$DIR/err"; then
		ok "$way-ends"
	else
		not_ok "$way-ends" "$(tail -n 3 "$DIR/err")"
	fi
	if [ "$(head -n 1 "$DIR/a.img" | tr -d '\0')" = "$way" ]; then
		ok "$way-keeps"
	else
		not_ok "$way-keeps" "what was written is not there"
	fi
	told "$way" 2
done
vm "tools/hiops-bind 00:04.0 none && tools/hiops-bind 00:04.0 hiops_nvme && rmmod hiops"
told unbind-and-rmmod 3
plan
