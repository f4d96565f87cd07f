#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Drives whose names or numbers are known for something, each by what its disk says and does not
# say:
#   e  an NVMe controller with the number of an old QEMU's
#   f  an HBA of Intel's; drives that call themselves a Samsung 850, a SuperSSpeed S238, an
#      ST380013AS, and QEMU's own
# image: qi.img 64M
# image: qs.img 64M
# image: qt.img 64M
# image: qm.img 64M
# image: qq.img 64M
# vm: --timeout 900 --cpus 1
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
modprobe sd_mod

# About DISK FILE: what the disk says there.
about() { cat "/sys/block/$1/$2"; }
# logged NAMES: how often the log names them as a device's quirks.
logged() { dmesg | grep -cF "(quirks): $1"; }
verified() {
	expect "verify-$1" fio --name=v --filename="/dev/$1" --direct=1 --ioengine=libaio \
		--iodepth=16 --rw=randwrite --bsrange=512-512k \
		--blockalign=512 --size=8M --verify=crc32c --verify_fatal=1 --fsync=50 --minimal
}

expect bind-intel-id "$BIND" 00:0e.0 hiops_nvme
NAMES='identify_cns disable_write_zeroes bogus_nid'
same quirks-nvme "$(about hiops0n1 hiops/quirks)" "$NAMES"
same logged-nvme "$(logged "$NAMES")" 1
same no-write-zeroes "$(about hiops0n1 queue/write_zeroes_max_bytes)" 0
# Of serial number and model, as the identifiers are not believed.
same wwid "$(about hiops0n1 wwid | cut -d- -f1,2)" \
	"nvme.8086-$(printf qi | od -An -tx1 | tr -d ' ')"
verified hiops0n1
expect none-intel-id "$BIND" 00:0e.0 none

expect bind-ahci "$BIND" 00:0f.0 hiops_ahci
same disks "$(cd /dev && echo hiops0d*)" "hiops0d0 hiops0d1 hiops0d2 hiops0d3"
same quirks-samsung "$(about hiops0d0 hiops/quirks)" 'pcs noncqtrim zeroaftertrim'
same quirks-notrim "$(about hiops0d1 hiops/quirks)" 'pcs notrim'
same quirks-maxsec "$(about hiops0d2 hiops/quirks)" 'pcs maxsec1024'
same quirks-unlisted "$(about hiops0d3 hiops/quirks)" pcs
# What the HBA is known for once, and each disk's own with its name.
same logged-ahci "$(dmesg | grep -F 0000:00:0f.0 | sed -n 's/.*0f\.0: \(.*known for\)/\1/p')" \
	"known for, and spared (quirks): pcs
hiops0d0: known for, and spared (quirks): noncqtrim zeroaftertrim
hiops0d1: known for, and spared (quirks): notrim
hiops0d2: known for, and spared (quirks): maxsec1024"
# What 64 ranges hold; nothing; what every drive survives.
same trim-trusted "$(about hiops0d0 queue/discard_max_hw_bytes)" $((64 * 65535 * 512))
same trim-broken "$(about hiops0d1 queue/discard_max_hw_bytes)" 0
same trim-unlisted "$(about hiops0d3 queue/discard_max_hw_bytes)" $((128 << 20))
same longest-maxsec "$(about hiops0d2 queue/max_hw_sectors_kb)" 512
same longest-unlisted "$(about hiops0d3 queue/max_hw_sectors_kb)" 32767
same fua "$(cat /sys/block/hiops0d*/queue/fua | paste -sd' ')" '0 0 0 0'
expect discard blkdiscard -o 1M -l 4M /dev/hiops0d0
expect no-discard sh -c '! blkdiscard -o 1M -l 4M /dev/hiops0d1'
for disk in hiops0d0 hiops0d1 hiops0d2; do verified "$disk"; done
same no-trouble "$(count hiops0d0 errors)$(count hiops0d1 errors)$(count hiops0d2 errors)" 000
expect none-ahci "$BIND" 00:0f.0 none
rmmod hiops
refused fua-out-of-range "" modprobe -v hiops ahci_fua=2
plan
