#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A strategy that answers with dice (rust/strategy/random.rs), and is another one for a moment now
# and then, under load, on NVMe and SATA at once, in each mode, beside one thread that computes on
# each CPU, and in make test-long beside none and two: what is written is read back, nothing is lost
# or waits for a time-out.
# kernels: debug
# image: n.img 64M
# image: s.img 64M
# vm: --timeout 2700 --qemu "-drive file=$DIR/n.img,format=raw,if=none,id=n"
# vm: --qemu "-device nvme,serial=random-n,drive=n,addr=4"
# vm: --qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s"
# vm: --qemu "-device ich9-ahci,id=hba,addr=6 -device ide-hd,serial=random-s,drive=s,bus=hba.0"
. ci/vm-tests/nvme-lib.sh
DISKS='hiops0n1 hiops1d0'

expect bind-nvme "$BIND" "$PCI" hiops_nvme
expect bind-sata "$BIND" 0000:00:06.0 hiops_ahci
for disk in $DISKS; do expect "disk-$disk" test -b "/dev/$disk"; done

# verified DISK MODE: many small writes, by threads that wait and by io_uring, read back.
verified() {
	fio --filename="/dev/$1" --direct=1 --rw=randwrite --bsrange=512-16k --blockalign=512 \
		--size=256k --verify=crc32c --verify_fatal=1 --minimal \
		--name=waits --ioengine=psync --numjobs=8 --thread --offset_increment=1M \
		--name=many --ioengine=io_uring --iodepth=64 --numjobs=1 --offset=32M
}
# Each disk's strategy is another one for a moment, and random again.
changes() {
	local turn=0 disk
	while [ ! -e "$ENOUGH" ]; do
		for disk in $DISKS; do
			case $((turn % 3)) in
			0) put coop "/sys/block/$disk/hiops/strategy" ;;
			1) put plain "/sys/block/$disk/hiops/strategy" ;;
			esac || return 1
			put random "/sys/block/$disk/hiops/strategy" || return 1
		done
		turn=$((turn + 1))
		nap 0.2
	done
}

neighbours=()
counts=(1)
[ -z "${HIOPS_LONG:-}" ] || counts=(0 1 2)
for count in "${counts[@]}"; do
	for mode in irq poll hybrid; do
		for disk in $DISKS; do
			put $mode "/sys/block/$disk/hiops/mode"
			put random "/sys/block/$disk/hiops/strategy"
		done
		rm -f "$ENOUGH"
		changes &
		changes=$!
		verified hiops0n1 >"$OUT.n" 2>&1 &
		nvme=$!
		verified hiops1d0 >"$OUT.s" 2>&1
		same "sata-$mode-$count" $? 0
		wait $nvme
		same "nvme-$mode-$count" $? 0
		touch "$ENOUGH"
		wait $changes
		same "changes-$mode-$count" $? 0
	done
	for _ in $(seq "$(nproc)"); do
		(while :; do :; done) &
		neighbours+=($!)
	done
done
kill "${neighbours[@]}"
for disk in $DISKS; do
	expect "is-random-$disk" reads "/sys/block/$disk/hiops/strategy" random
	all_over() { [ "$(count "$disk" submitted)" = "$(count "$disk" completed)" ]; }
	expect "all-over-$disk" until_true 10 all_over
	same "no-trouble-$disk" "$(for what in errors timeouts resets missed_interrupts; do
		count "$disk" $what
	done | tr -d '\n')" 0000
done
plan
