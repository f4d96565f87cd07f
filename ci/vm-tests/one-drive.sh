#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The tests that need one drive of a kind or none, one after the other in one machine: to boot the
# debug kernel takes as long as most of them. Each can still be run alone: ci/check-vm NAME@KERNEL.
# image: a.img 1G
# image: s.img 256M
# image: l.img 64M
# kernels: stock oldest debug
# instead of: nvme-io@stock nvme-unbind@stock ahci-io@stock ahci-tools@stock
# instead of: ahci-depth@stock soak@stock install@stock ram@stock
# instead of: kunit@debug ram@debug nvme-io@debug nvme-unbind@debug ahci-io@debug ahci-tools@debug
# instead of: faults@debug nvme-alloc@debug soak@debug nvme-io@oldest ahci-io@oldest
# vm: --timeout 2700 --memory 1G
# vm: --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a,discard=unmap"
# vm: --qemu "-device nvme,serial=io-0,drive=a,addr=4"
# vm: --qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s,discard=unmap"
# vm: --qemu "-device ich9-ahci,id=hba,addr=6 -device ide-hd,serial=sata-0,drive=s,bus=hba.0"
# vm: --qemu "-drive file=$DIR/l.img,format=raw,if=none,id=l"
# vm: --qemu "-device nvme,id=c,serial=alloc,addr=7,max_ioqpairs=1"
# vm: --qemu "-device nvme-ns,drive=l,bus=c,nsid=1"
set -uo pipefail
. ci/report.sh
# One drive of a kind: that of nvme-alloc is nobody's until then.
spare=/sys/bus/pci/devices/0000:00:07.0
echo nobody >$spare/driver_override
[ ! -e $spare/driver ] || echo 0000:00:07.0 >$spare/driver/unbind
# install comes last: it leaves few modules in the system.
for name in kunit ram nvme-io nvme-unbind ahci-io ahci-tools ahci-depth faults nvme-alloc soak \
	install; do
	test=ci/vm-tests/$name.sh
	grep -qE "^# (kernels${HIOPS_LONG:+|long}):.* $HIOPS_VM_KERNEL" "$test" || continue
	echo "$name begins at $SECONDS s" >&2
	retell "$name" "$name: " "$test"
done
echo "the last one ended at $SECONDS s" >&2
plan
