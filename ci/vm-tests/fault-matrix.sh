#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Faults under a load that knows what it has written, on each kind of drive, in each way that a disk
# can be set (ci/faults/matrix.py). HIOPS_FAULTS: which rows.
# host
# image: n.img 64M
# image: s.img 64M
# image: t.img 64M
drives=''
for drive in n s; do
	drives+=" -blockdev driver=file,node-name=$drive-f,filename=$DIR/$drive.img"
	drives+=" -blockdev driver=blkdebug,node-name=$drive,image=$drive-f"
	drives+=",config=ci/vm-tests/bad-sectors.conf"
done
# As good as the others, fifty times a second.
drives+=" -object throttle-group,id=slow,x-iops-total=50"
drives+=" -blockdev driver=throttle,throttle-group=slow,node-name=t"
drives+=",file.driver=file,file.filename=$DIR/t.img"
# Each row looks at missed_interrupts.
export HIOPS_MISSES=counted
exec ci/vm --kernel "$KERNEL" --timeout 3600 \
	--qemu "$drives -device nvme,serial=fault-n,drive=n,addr=4" \
	--qemu "-device ich9-ahci,id=hba,addr=5 -device ide-hd,serial=fault-s,drive=s,bus=hba.0" \
	--qemu "-device nvme,serial=fault-t,drive=t,addr=6" -- \
	env HIOPS_FAULTS="${HIOPS_FAULTS:-}" python3 ci/faults/matrix.py
