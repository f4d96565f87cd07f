#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Faults under a load that knows what it has written, on each kind of drive, in each way that a disk can be set (ci/faults/matrix.py).
# HIOPS_FAULTS: which rows.
# host
# image: n.img 64M
# image: s.img 64M
drives=''
for drive in n s; do
	drives+=" -blockdev driver=blkdebug,config=ci/vm-tests/bad-sectors.conf,node-name=$drive,image.driver=file,image.filename=$DIR/$drive.img"
done
exec ci/vm --kernel "$KERNEL" --timeout 3600 \
	--qemu "$drives -device nvme,serial=fault-n,drive=n,addr=4 -device ich9-ahci,id=hba,addr=5 -device ide-hd,serial=fault-s,drive=s,bus=hba.0" -- \
	env HIOPS_FAULTS="${HIOPS_FAULTS:-}" python3 ci/faults/matrix.py
