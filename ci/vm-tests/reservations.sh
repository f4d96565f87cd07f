#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Persistent reservations (IOC_PR_*): QEMU's drives have none, so what is shown is how they are
# refused, beside the in-tree drivers in the same machine; who may ask at all; and that the disk is
# as before. What comes of reservations is tested on a model (rust/lld_nvme/tests/nvme).
# image: a.img 64M
# image: s.img 64M
# vm: --timeout 600 --cpus 1 --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a"
# vm: --qemu "-device nvme,serial=shared,drive=a,addr=4"
# vm: --qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s -device ich9-ahci,id=hba,addr=6"
# vm: --qemu "-device ide-hd,serial=sata-0,drive=s,bus=hba.0"
. ci/vm-tests/nvme-lib.sh
SATA=0000:00:06.0
D=/dev/hiops0n1
ask() { python3 ci/vm-tests/pr.py "$@"; }
nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }
# Of a drive that is taken away while somebody has it open.
left_open() {
	local disk=$1 fd
	exec {fd}<>"$disk"
	"$BIND" "$2" none >&2
	ask $fd register reserve-1 reservation keys-4 | paste -sd' '
	exec {fd}>&-
}

# With the in-tree drivers.
modprobe sd_mod
expect in-tree-nvme "$BIND" $PCI nvme
expect in-tree-disk until_true 60 disk_of $PCI
T=/dev/$(disk_of $PCI)
expect oncs sh -c "nvme id-ctrl /dev/nvme0 | tee /dev/stderr | grep -q '^oncs'"
oncs=$(nvme id-ctrl /dev/nvme0 | sed -nE 's/^oncs +: *(0x[0-9a-f]+).*/\1/p')
same no-reservations $((oncs & 0x20)) 0
ask "$T" >/run/nvme.theirs
cat /run/nvme.theirs >&2
chmod a+rw "$T"
theirs_nobody=$(nobody python3 ci/vm-tests/pr.py "$T" register reserve-1 reservation)
theirs_reader=$(PR_MODE=r nobody python3 ci/vm-tests/pr.py "$T" register reserve-1 clear \
	reservation keys-4)
sfdisk -q "$T" <<<',16M' >&2
expect in-tree-partition until_true 20 test -b "${T}p1"
theirs_partition=$(ask "${T}p1")
theirs_left=$(left_open "$T" $PCI)
printf "in tree: %s\n" "$theirs_nobody" "$theirs_reader" "$theirs_left" >&2
same in-tree-partition-refused "$(grep -vc EPERM <<<"$theirs_partition")" 0
expect in-tree-ahci "$BIND" $SATA ahci
expect in-tree-sata until_true 60 disk_of $SATA
ask "/dev/$(disk_of $SATA)" >/run/sata.theirs
cat /run/sata.theirs >&2

# With hiops.
expect bind "$BIND" $PCI hiops_nvme
ask $D >/run/nvme.ours
expect nvme-as-in-tree diff /run/nvme.theirs /run/nvme.ours
same nvme-refused "$(grep -c EINVAL /run/nvme.ours)" 20
chmod a+rw $D
same nobody "$(nobody python3 ci/vm-tests/pr.py $D register reserve-1 reservation)" "$theirs_nobody"
ours_reader=$(PR_MODE=r nobody python3 ci/vm-tests/pr.py $D register reserve-1 clear \
	reservation keys-4)
same reader "$ours_reader" "$theirs_reader"
expect partition-there until_true 20 test -b ${D}p1
same partition "$(ask ${D}p1)" "$theirs_partition"
# nvme-cli's own commands of reservations get the device's answer.
expect cli-refused sh -c \
	"nvme resv-report $D 2>&1 | tee /dev/stderr | grep -qiE 'invalid.*opcode|0x4?001'"
expect write dd if=/dev/urandom of=$D bs=1M count=8 seek=32 oflag=direct status=none
same counts \
	"$(grep -E '^(errors|timeouts|resets) ' /sys/block/hiops0n1/hiops/stats | paste -sd' ')" \
	"errors 0 timeouts 0 resets 0"
same left-open "$(left_open $D $PCI)" "$theirs_left"

# Disks of other kinds have none.
expect ahci "$BIND" $SATA hiops_ahci
ask "/dev/$(disk_of $SATA)" | tee /run/sata.ours >&2
same in-tree-sata-refused "$(grep -c " 2\$" /run/sata.theirs)" 18
same sata-refused "$(grep -c ENOTSUP /run/sata.ours)" 24
expect none-ahci "$BIND" $SATA none
expect rmmod rmmod hiops
expect ram modprobe hiops ram_disks=1 ram_size_mb=16
ask /dev/hiops_ram0 >/run/ram.ours
same ram-refused "$(cat /run/ram.ours)" "$(cat /run/sata.ours)"
expect rmmod-ram rmmod hiops
plan
