#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Faults under a load that knows what it has written, on each kind of drive, in each way that a disk can be set (ci/faults/matrix.py).
# image: n.img 64M
# image: s.img 64M
# vm: --timeout 900 --qemu "-blockdev driver=blkdebug,config=ci/vm-tests/bad-sectors.conf,node-name=n,image.driver=file,image.filename=$DIR/n.img"
# vm: --qemu "-blockdev driver=blkdebug,config=ci/vm-tests/bad-sectors.conf,node-name=s,image.driver=file,image.filename=$DIR/s.img"
# vm: --qemu "-device nvme,serial=fault-n,drive=n,addr=4 -device ich9-ahci,id=hba,addr=5 -device ide-hd,serial=fault-s,drive=s,bus=hba.0"
exec python3 ci/faults/matrix.py
