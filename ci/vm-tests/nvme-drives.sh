#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Drives of many kinds, each bound alone, written, read back and compared:
#   4  four namespaces, one of them with metadata, which is refused by name while the others come up
#   5  blocks of 4096 bytes    6  transfers of two pages at most (mdts=1)    7  one I/O queue
#   8  no ioeventfd    9  a controller memory buffer    a  one interrupt vector
#   b  one vector and the pin only (no MSI-X)    10  blocks of 16384 bytes, and a file system
#   11  a zoned namespace, which is refused by name
# And, in the same machine, bad-sectors and quirks.
# instead of: bad-sectors@stock quirks@stock
# image: n1.img 128M
# image: n2.img 128M
# image: n3.img 128M
# image: n4.img 128M
# image: n5.img 128M
# image: k5.img 128M
# image: k6.img 128M
# image: k7.img 128M
# image: k8.img 128M
# image: k9.img 128M
# image: ka.img 128M
# image: kb.img 128M
# image: kg.img 512M
# image: kz.img 64M
# image: bs.img 64M
# image: bn.img 64M
# image: qi.img 64M
# image: qs.img 64M
# image: qt.img 64M
# image: qm.img 64M
# image: qq.img 64M
# vm: --timeout 900 --cpus 1
# vm: --qemu "-drive file=$DIR/n1.img,format=raw,if=none,id=n1"
# vm: --qemu "-drive file=$DIR/n2.img,format=raw,if=none,id=n2"
# vm: --qemu "-drive file=$DIR/n3.img,format=raw,if=none,id=n3"
# vm: --qemu "-drive file=$DIR/n4.img,format=raw,if=none,id=n4"
# vm: --qemu "-drive file=$DIR/n5.img,format=raw,if=none,id=n5"
# vm: --qemu "-device nvme,id=c4,serial=four,addr=4"
# vm: --qemu "-device nvme-ns,drive=n1,bus=c4,nsid=1 -device nvme-ns,drive=n2,bus=c4,nsid=2"
# vm: --qemu "-device nvme-ns,drive=n3,bus=c4,nsid=3,ms=8"
# vm: --qemu "-device nvme-ns,drive=n4,bus=c4,nsid=4,logical_block_size=4k,physical_block_size=4k"
# vm: --qemu "-device nvme-ns,drive=n5,bus=c4,nsid=7"
# vm: --qemu "-drive file=$DIR/k5.img,format=raw,if=none,id=k5"
# vm: --qemu "-device nvme,serial=k5,drive=k5,addr=5,logical_block_size=4k,physical_block_size=4k"
# vm: --qemu "-drive file=$DIR/k6.img,format=raw,if=none,id=k6"
# vm: --qemu "-device nvme,serial=k6,drive=k6,addr=6,mdts=1"
# vm: --qemu "-drive file=$DIR/k7.img,format=raw,if=none,id=k7"
# vm: --qemu "-device nvme,serial=k7,drive=k7,addr=7,max_ioqpairs=1"
# vm: --qemu "-drive file=$DIR/k8.img,format=raw,if=none,id=k8"
# vm: --qemu "-device nvme,serial=k8,drive=k8,addr=8,ioeventfd=off"
# vm: --qemu "-drive file=$DIR/k9.img,format=raw,if=none,id=k9"
# vm: --qemu "-device nvme,serial=k9,drive=k9,addr=9,cmb_size_mb=64"
# vm: --qemu "-drive file=$DIR/ka.img,format=raw,if=none,id=ka"
# vm: --qemu "-device nvme,serial=ka,drive=ka,addr=a,msix_qsize=1"
# vm: --qemu "-drive file=$DIR/kb.img,format=raw,if=none,id=kb"
# vm: --qemu "-device nvme,serial=kb,drive=kb,addr=b"
# vm: --qemu "-drive file=$DIR/kg.img,format=raw,if=none,id=kg"
# vm: --qemu "-device nvme,id=kg,serial=kg,drive=kg,addr=10"
# vm: --qemu "-set device.kg.logical_block_size=16k -set device.kg.physical_block_size=16k"
# vm: --qemu "-drive file=$DIR/kz.img,format=raw,if=none,id=kz"
# vm: --qemu "-device nvme,id=cz,serial=kz,addr=11"
# vm: --qemu "-device nvme-ns,drive=kz,bus=cz,nsid=1,zoned=on,zoned.zone_size=4M"
# vm: --qemu "-blockdev driver=file,node-name=bs-f,filename=$DIR/bs.img"
# vm: --qemu "-blockdev driver=blkdebug,node-name=bs,image=bs-f,config=ci/vm-tests/bad-sectors.conf"
# vm: --qemu "-blockdev driver=file,node-name=bn-f,filename=$DIR/bn.img"
# vm: --qemu "-blockdev driver=blkdebug,node-name=bn,image=bn-f,config=ci/vm-tests/bad-sectors.conf"
# vm: --qemu "-device ich9-ahci,id=hba-bad,addr=c"
# vm: --qemu "-device ide-hd,serial=bad-s,drive=bs,bus=hba-bad.0"
# vm: --qemu "-device nvme,serial=bad-n,drive=bn,addr=d"
# vm: --qemu "-drive file=$DIR/qi.img,format=raw,if=none,id=qi"
# vm: --qemu "-device nvme,serial=qi,drive=qi,addr=e,use-intel-id=on"
# vm: --qemu "-drive file=$DIR/qs.img,format=raw,if=none,id=qs,discard=unmap"
# vm: --qemu "-drive file=$DIR/qt.img,format=raw,if=none,id=qt,discard=unmap"
# vm: --qemu "-drive file=$DIR/qm.img,format=raw,if=none,id=qm,discard=unmap"
# vm: --qemu "-drive file=$DIR/qq.img,format=raw,if=none,id=qq,discard=unmap"
# vm: --qemu "-device ich9-ahci,id=q,addr=f"
# vm: --qemu "-device ide-hd,serial=qs,drive=qs,bus=q.0,model='Samsung SSD 850 PRO 1',ver=EXM04B6Q"
# vm: --qemu "-device ide-hd,serial=qt,drive=qt,bus=q.1,model='SuperSSpeed S238 64MB'"
# vm: --qemu "-device ide-hd,serial=qq,drive=qq,bus=q.3"
# vm: --qemu "-device ide-hd,serial=qm,drive=qm,bus=q.2,model=ST380013AS,ver=3.20"
. ci/vm-tests/nvme-lib.sh

# verified NAME DISK...: mixed sizes at random places of all disks at once, read back and compared.
verified() {
	local what=$1 disk jobs=()
	shift
	for disk in "$@"; do
		jobs+=(--name="${disk##*/}" --filename="$disk"
			--bsrange="$(blockdev --getss "$disk")-1M"
			--blockalign="$(blockdev --getss "$disk")")
	done
	expect "$what" fio --direct=1 --ioengine=libaio --iodepth=32 --rw=randwrite --size=16M \
		--verify=crc32c --verify_fatal=1 --fsync=100 --minimal "${jobs[@]}"
}
queues() { find /sys/block/hiops0n1/mq/ -mindepth 1 -maxdepth 1 -type d | wc -l; }

expect bind-namespaces "$BIND" 00:04.0 hiops_nvme
same namespaces "$(cd /dev && echo hiops0n*)" "hiops0n1 hiops0n2 hiops0n4 hiops0n7"
expect refused-by-name sh -c "dmesg | grep hiops_nvme | grep -q 'disk 3 is not served'"
same nsids "$(cat /sys/block/hiops0n*/nsid | paste -sd' ')" "1 2 4 7"
verified four-namespaces /dev/hiops0n1 /dev/hiops0n2 /dev/hiops0n4 /dev/hiops0n7
expect none-namespaces "$BIND" 00:04.0 none

kind() {
	expect "bind-$2" "$BIND" "00:$1.0" hiops_nvme
	verified "$2" /dev/hiops0n1
}
done_with() {
	same "counts-$2" \
		"$(grep -E '^(errors|timeouts|resets) ' /sys/block/hiops0n1/hiops/stats | xargs)" \
		"errors 0 timeouts 0 resets 0"
	expect "none-$2" "$BIND" "00:$1.0" none
}
kind 05 blocks-of-4096
same logical-4096 "$(blockdev --getss /dev/hiops0n1)" 4096
done_with 05 blocks-of-4096
kind 06 mdts-1
same transfer-mdts-1 "$(cat /sys/block/hiops0n1/queue/max_hw_sectors_kb)" 8
done_with 06 mdts-1
kind 07 one-queue
same queues-one-queue "$(queues)" 1
done_with 07 one-queue
kind 08 no-ioeventfd
done_with 08 no-ioeventfd
kind 09 controller-memory
done_with 09 controller-memory
kind 0a one-vector
same queues-one-vector "$(queues)" 1
done_with 0a one-vector
# No message-signalled interrupts for this one: what is left is the pin, whose level must not storm.
$BIND 00:0b.0 none
echo 0 >/sys/bus/pci/devices/0000:00:0b.0/msi_bus
kind 0b pin
expect pin-is-used sh -c "grep hiops_nvme /proc/interrupts | grep -q fasteoi"
done_with 0b pin
# Blocks of more than a page: file systems may have them, too.
kind 10 blocks-of-16384
same logical-16384 "$(blockdev --getss /dev/hiops0n1)" 16384
same transfer-16384 "$(cat /sys/block/hiops0n1/queue/max_hw_sectors_kb)" 512
expect mkfs-16384 mkfs.xfs -q -f -b size=16k -s size=16k /dev/hiops0n1
mkdir -p /run/large
expect mount-16384 mount /dev/hiops0n1 /run/large
cp /bin/bash /run/large/
expect synced-16384 sh -c 'sync -f /run/large && echo 3 >/proc/sys/vm/drop_caches'
expect same-16384 cmp /bin/bash /run/large/bash
expect umount-16384 umount /run/large
done_with 10 blocks-of-16384
# A zoned namespace is no ordinary disk.
says bind-zoned '00:11.0: disk 1 is not served: its command set is not NVM (zoned or key value)' \
	tools/hiops-bind 00:11.0 hiops_nvme
expect none-zoned tools/hiops-bind 00:11.0 none
expect rmmod rmmod hiops
for name in bad-sectors quirks; do retell $name '' ci/vm-tests/$name.sh; done
plan
