#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Namespaces that are formatted to another block size while I/O is under way, taken away and given
# back, all by nvme-cli: the disk is what the namespace is at every moment, and data is right.
# Likewise where another controller does that, of which this one tells by an event.
# image: a.img 256M
# image: b.img 128M
# vm: --timeout 1500 --qemu "-device nvme-subsys,id=sub"
# vm: --qemu "-device nvme,id=c,serial=format,subsys=sub,addr=4"
# vm: --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a,discard=unmap"
# vm: --qemu "-device nvme-ns,drive=a,bus=c,nsid=1,shared=off"
# vm: --qemu "-drive file=$DIR/b.img,format=raw,if=none,id=b,discard=unmap"
# vm: --qemu "-device nvme-ns,drive=b,bus=c,nsid=2,shared=on"
# vm: --qemu "-device nvme,id=other,serial=format,subsys=sub,addr=7"
. ci/vm-tests/nvme-lib.sh
A=/dev/hiops0n1
SIZE=$((256 << 20))

told() { if grep -qE -- "$2" "$OUT"; then ok "$1"; else not_ok "$1" "it does not say '$2'"; fi; }
# shape NAME BLOCK: block size and capacity of the first disk.
shape() {
	same "$1-block" "$(cat /sys/block/hiops0n1/queue/{logical,physical}_block_size | xargs)" \
		"$2 $2"
	same "$1-size" "$(blockdev --getsize64 $A) $(blockdev --getss $A)" "$SIZE $2"
}
# verified NAME BLOCK: data written and read back, in pieces of one block and of many.
verified() {
	expect "$1-io" fio --name=v --filename=$A --direct=1 --ioengine=libaio --iodepth=16 \
		--rw=randwrite --bsrange="$2"-64k --blockalign="$2" --size=24M \
		--verify=crc32c --verify_fatal=1
}
# formats: the namespace's formats of blocks of BYTES without metadata.
format_of() { nvme id-ns $A -o json | python3 -c "
import json, sys
formats = json.load(sys.stdin)['lbafs']
print(next(i for i, f in enumerate(formats) if f['ms'] == 0 and 1 << f['ds'] == $1))"; }
format() { nvme format $A --lbaf="$1" --force --timeout=120000; }

# One of the namespaces is shared with the other controller: it is left alone, unless that is
# wanted.
expect bind-without "$BIND" $PCI hiops_nvme
same left-alone "$(compgen -G '/sys/block/hiops0n*')" /sys/block/hiops0n1
expect told-why grep -q 'nvme_shared=1' <(dmesg)
expect unbind-without "$BIND" $PCI none
expect rmmod-without rmmod hiops
expect load modprobe hiops nvme_shared=1
expect bind "$BIND" $PCI hiops_nvme
small=$(format_of 512) large=$(format_of 4096)
shape begin 512
verified begin 512
# Without anything else under way, there and back.
expect to-large format "$large"
shape large 4096
verified large 4096
if dd if=$A of=/dev/null bs=512 count=1 iflag=direct status=none 2>"$OUT"; then
	not_ok half-a-block "it was read"
else
	ok half-a-block
fi
expect to-small format "$small"
shape small 512
verified small 512

# With reads, writes and discards under way on both disks. What comes in between in the wrong size
# fails, and nothing else does; what was read is zeroes or what was written.
busy() {
	while [ ! -e "$ENOUGH" ]; do
		fio --name=b --filename=$1 --direct=1 --ioengine=libaio --iodepth=32 --rw=randrw \
			--bs=4k --size=32M --offset="$2" --time_based --runtime=20 \
			--continue_on_error=all --output=/dev/null
	done
}
busy $A 64M &
jobs_of=$!
# Its bytes, too, apart from those: the blocks' size is another each time that they look.
expect bytes-on put 1 /sys/block/hiops0n1/hiops/bytes
python3 -B ci/vm-tests/bytes.py format ${A}_bytes $A $((128 << 20)) $((160 << 20)) 4 "$ENOUGH" \
	>/run/bytes 2>&1 &
bytes_of=$!
fio --name=n --filename=/dev/hiops0n2 --direct=1 --ioengine=libaio --iodepth=16 --rw=randwrite \
	--bs=8k --size=16M --verify=crc32c --verify_fatal=1 --loops=3 >/run/neighbour 2>&1 &
neighbour=$!
# nvme-cli then sets the size of the page cache's blocks, too, if nobody has claimed the disk, as
# those have that write bytes.
formatted() {
	local told
	told=$(format "$1" 2>&1) || [[ $told == *'failed to set block size'* ]] || return
	grep -q 'Success formatting' <<<"$told"
}
for round in 1 2 3; do
	expect "busy-large-$round" formatted "$large"
	shape "busy-large-$round" 4096
	expect "busy-small-$round" formatted "$small"
	shape "busy-small-$round" 512
done
touch "$ENOUGH"
wait $jobs_of
wait $bytes_of
echo "bytes: $(tail -n 1 /run/bytes)" >&2
expect bytes grep -Eq '^(EIO=[0-9]+ )?reads=[1-9][0-9]* writes=[1-9][0-9]*$' /run/bytes
expect bytes-off put 0 /sys/block/hiops0n1/hiops/bytes
expect neighbour wait $neighbour
verified after-busy 512
same resets "$(count hiops0n1 resets)" 0

# A file system in a format of 4 KiB.
expect fs-format format "$large"
mkdir -p /run/fs
expect mkfs mkfs.ext4 -q -F $A
expect mount mount $A /run/fs
expect copy cp -a ci/vm-tests /run/fs/
sync -f /run/fs && echo 3 >/proc/sys/vm/drop_caches
expect compare diff -r ci/vm-tests /run/fs/vm-tests
expect umount umount /run/fs
# One with metadata is not served, and can be had back.
metadata=$(nvme id-ns $A -o json | python3 -c "
import json, sys
print(next(i for i, f in enumerate(json.load(sys.stdin)['lbafs']) if f['ms'] != 0))")
# nvme-cli formats it, and then fails to set the block size of a disk that has none.
format "$metadata" >"$OUT" 2>&1 || :
told with-metadata 'Success formatting'
same no-capacity "$(blockdev --getsize64 $A)" 0
expect served-again format "$small"
shape served-again 512
verified served-again 512

# Sanitize and firmware: the device's answer, not a refusal of hiops'.
nvme sanitize $A --sanact=2 >"$OUT" 2>&1 || :
told sanitize-asked 'NVMe status|Invalid|not supported'
nvme fw-commit $A --slot=1 --action=3 >"$OUT" 2>&1 || :
told fw-commit-asked 'NVMe status|Invalid|not supported|Success'

# A namespace that goes and comes.
expect rescan python3 -c "import fcntl; fcntl.ioctl(open('$A'), 0x4e46)"
# A controller list of one, whose ID is 0; Namespace Attachment with SEL 1 detaches.
printf '\1\0\0\0' >/run/list && truncate -s 4096 /run/list
attachment() {
	nvme admin-passthru "$1" --opcode=0x15 --namespace-id=2 --cdw10="$2" --data-len=4096 \
		--input-file=/run/list --write
}
disks() { local all=(/sys/block/hiops0n*); echo "${all[*]}"; }
same two "$(disks)" '/sys/block/hiops0n1 /sys/block/hiops0n2'
# Also on the word of the disk that goes.
expect detach attachment /dev/hiops0n2 1
same one "$(disks)" /sys/block/hiops0n1
expect rescan-file put 1 /sys/block/hiops0n1/hiops/rescan_controller
expect attach attachment $A 0
same two-again "$(disks)" '/sys/block/hiops0n1 /sys/block/hiops0n2'
expect back-io fio --name=v --filename=/dev/hiops0n2 --direct=1 --rw=randwrite --bs=4k --size=4M \
	--verify=crc32c --verify_fatal=1
# By another controller of the subsystem: the event tells, before and after a reset.
expect other "$BIND" 0000:00:07.0 nvme
appears() { [ -e /sys/block/hiops0n2 ]; }
for round in told after-reset; do
	expect "$round-detach" attachment /dev/nvme0 1
	expect "$round-gone" until_true 60 absent /sys/block/hiops0n2
	expect "$round-attach" attachment /dev/nvme0 0
	expect "$round-there" until_true 60 appears
	put 1 /sys/bus/pci/devices/$PCI/reset
done
expect told-io fio --name=v --filename=/dev/hiops0n2 --direct=1 --rw=randwrite --bs=4k --size=4M \
	--verify=crc32c --verify_fatal=1
# The controller's own node.
C=/dev/hiops0
expect id-ctrl sh -c "nvme id-ctrl $C | grep -q '^sn .*format'"
expect smart-log nvme smart-log $C
expect node-detach nvme detach-ns $C --namespace-id=2 --controllers=0
same node-one "$(disks)" /sys/block/hiops0n1
expect node-attach nvme attach-ns $C --namespace-id=2 --controllers=0
same node-two "$(disks)" '/sys/block/hiops0n1 /sys/block/hiops0n2'
expect ns-rescan nvme ns-rescan $C
before=$(count hiops0n1 resets)
expect node-reset nvme reset $C
expect file-reset put 1 /sys/block/hiops0n1/hiops/reset_controller
same two-resets "$(($(count hiops0n1 resets) - before))" 2
expect other-none "$BIND" 0000:00:07.0 none
verified last 512
expect none "$BIND" $PCI none
expect rmmod rmmod hiops
plan
