#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# hiops' own faults on demand, with NVMe and SATA, under a load that knows what it has written
# (ci/faults/injected.py). HIOPS_FAULTS: which rows.
# host
# kernels: debug
# image: n.img 64M
# image: s.img 64M
drives=''
for drive in n s; do
	drives+=" -drive file=$DIR/$drive.img,format=raw,if=none,id=$drive"
done
exec ci/vm --kernel "$KERNEL" --timeout 3600 \
	--qemu "$drives -device nvme,serial=inject-n,drive=n,addr=4" \
	--qemu "-device ich9-ahci,id=hba,addr=5" \
	--qemu "-device ide-hd,serial=inject-s,drive=s,bus=hba.0" -- \
	env HIOPS_FAULTS="${HIOPS_FAULTS:-}" python3 ci/faults/injected.py
