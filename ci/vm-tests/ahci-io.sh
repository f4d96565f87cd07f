#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One SATA drive served by hiops: identity, data with queued and other commands mixed, a file
# system, an unbind under I/O, the way back to the in-tree driver.
# image: s.img 256M
# kernels: stock oldest
# long: debug
# vm: --timeout 900 --qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s,discard=unmap"
# vm: --qemu "-device ich9-ahci,id=hba,addr=6 -device ide-hd,serial=sata-0,drive=s,bus=hba.0"
. ci/vm-tests/nvme-lib.sh
PCI=0000:00:06.0
D=/dev/hiops0d0
S=/sys/block/hiops0d0
fio() { command fio --verify_state_save=0 --filename=$D --direct=1 --minimal "$@"; }
all_over() { [ "$(count hiops0d0 submitted)" = "$(count hiops0d0 completed)" ]; }

# What udev would load for the in-tree driver's disk.
modprobe sd_mod
expect bind "$BIND" "$PCI" hiops_ahci
expect disk test -b $D
same size "$(blockdev --getsize64 $D)" $((256 << 20))
same serial "$(tr -d ' ' <$S/serial)" sata-0
same model "$(sed 's/ *$//' $S/model)" 'QEMU HARDDISK'
same parent "$(basename "$(readlink $S/device)")" "$PCI"
same no-elevator "$(sed -n 's/.*\[\(.*\)\].*/\1/p' $S/queue/scheduler)" none
same write-cache "$(cat $S/queue/write_cache)" 'write back'
# More outstanding than the drive has slots; flushes, which are not queued, between them.
expect fio-verify fio --name=v --ioengine=libaio --iodepth=64 --numjobs=2 --rw=randwrite \
	--size="$(on_debug 2M 16M)" --offset_increment=32M --bsrange=512-256k \
	--blockalign=512 --verify=crc32c --verify_fatal=1 --fsync=32
expect fio-uring fio --name=u --ioengine=io_uring --iodepth=128 --rw=randrw --bs=4k \
	--size="$(on_debug 1M 8M)" --verify=crc32c --verify_fatal=1
expect fio-psync fio --name=p --ioengine=psync --rw=randread --bs=512 --numjobs=8 --thread \
	--number_ios="$(on_debug 50 500)"
expect over until_true 5 all_over
same no-trouble "$(count hiops0d0 errors)$(count hiops0d0 timeouts)$(count hiops0d0 resets)" 000
expect deferred test "$(count hiops0d0 fifo_deferred)" -gt 0
expect discard blkdiscard -o 1M -l 4M $D
expect polled put poll $S/hiops/mode
expect fio-polled fio --name=q --ioengine=psync --rw=randread --bs=4k --numjobs=4 --thread \
	--number_ios="$(on_debug 50 500)"
expect hybrid put hybrid $S/hiops/mode
mkfs.ext4 -qF $D 64M
mount $D /mnt
expect copy cp -r tools /mnt/
umount /mnt
expect fsck fsck.ext4 -fn $D
# Taken away under I/O, and given back.
fio --name=b --ioengine=libaio --iodepth=32 --rw=randrw --bs=4k --offset=128M --time_based \
	--runtime=120 >/dev/null 2>&1 &
fio=$!
before=$(count hiops0d0 completed)
busy() { [ "$(count hiops0d0 completed)" -gt $((before + 200)) ]; }
expect busy until_true 60 busy
echo "$PCI" >/sys/bus/pci/drivers/hiops_ahci/unbind
expect gone absent $D
expect fio-ends until_true 60 ended $fio
expect again "$BIND" "$PCI" hiops_ahci
expect reads dd if=$D of=/dev/null bs=64k count=16 iflag=direct
expect back bind_plainly "$PCI" ahci
in_tree() { compgen -G '/dev/sd?'; }
expect in-tree until_true 60 in_tree
mount "$(in_tree)" /mnt
expect same-files diff -r tools /mnt/tools
umount /mnt
expect rmmod rmmod hiops
plan
