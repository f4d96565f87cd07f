#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# nvme-cli's I/O commands on a disk of hiops: what they write is there, what is refused and to whom,
# beside I/O of the disk's own, a reset, and a controller that has no queue left for them.
# image: a.img 64M
# image: b.img 16M
# vm: --timeout 600 --cpus 2 --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a,discard=unmap"
# vm: --qemu "-device nvme,serial=tools,drive=a,addr=4"
# vm: --qemu "-drive file=$DIR/b.img,format=raw,if=none,id=b"
# vm: --qemu "-device nvme,serial=few,drive=b,addr=7,max_ioqpairs=2"
. ci/vm-tests/nvme-lib.sh
D=/dev/hiops0n1

told() { if grep -qE -- "$2" "$OUT"; then ok "$1"; else not_ok "$1" "it does not say '$2'"; fi; }
# fails NAME TEXT COMMAND...: it does, and says that.
fails() {
	local what=$1 text=$2
	shift 2
	if "$@" >"$OUT" 2>&1; then not_ok "$what" "it worked"; else told "$what" "$text"; fi
}
# blocks N: how many blocks, less one, as nvme-cli wants it.
at() { echo "--start-block=$1 --block-count=$(($2 - 1)) --data-size=$(($2 * 512))"; }
# ioctl CODE ARGUMENT [DISK]: what an ioctl with that structure, of Python's struct, ends with.
ioctl() {
	python3 - "$@" <<'PY'
import ctypes, errno, fcntl, os, struct, sys
code, argument, disk = (sys.argv[1:] + ["/dev/hiops0n1"])[:3]
data = ctypes.create_string_buffer(b"s" * 4096, 4096)
argument = eval(argument, {"pack": struct.pack, "data": ctypes.addressof(data)})
try:
    argument = bytearray(argument)
    status = fcntl.ioctl(os.open(disk, os.O_RDONLY), int(code, 0), argument)
    print(status, data.raw[:4].decode("latin1"))
except OSError as error:
    print(errno.errorcode[error.errno])
PY
}

expect bind "$BIND" $PCI hiops_nvme
head -c 8192 /dev/urandom >/run/random
head -c 8192 /dev/zero >/run/zero

# What nvme-cli writes is there, for it and for everyone.
# shellcheck disable=SC2046 # options
{
	expect write nvme write $D $(at 40 16) --data=/run/random
	expect read nvme read $D $(at 40 16) --data=/run/back
	expect read-same cmp /run/random /run/back
	expect read-by-dd cmp -n 8192 /run/random <(dd if=$D bs=8192 count=1 skip=20480 \
		iflag=direct,skip_bytes status=none)
	expect compare nvme compare $D $(at 40 16) --data=/run/random
	fails compare-not 'COMPARE_FAILED|Compare Failure|0x4?285' nvme compare $D $(at 40 16) \
		--data=/run/zero
	expect verify nvme verify $D --start-block=40 --block-count=15
	expect flush nvme flush $D
	expect write-zeroes nvme write-zeroes $D --start-block=40 --block-count=7
	expect zeroes-compare nvme compare $D $(at 40 8) --data=/run/zero
	expect rest-compare nvme compare $D $(at 48 8) --data=<(tail -c 4096 /run/random)
	expect dsm nvme dsm $D --ad --slbs=48 --blocks=8
	expect io-passthru nvme io-passthru $D --opcode=2 --namespace-id=1 --data-len=4096 --read \
		--cdw10=40 --cdw12=7
	# As large as a command may be, and larger.
	hw=$(($(</sys/block/hiops0n1/queue/max_hw_sectors_kb) * 2))
	head -c $((hw * 512)) /dev/urandom >/run/large
	expect write-large nvme write $D $(at 1000 $hw) --data=/run/large
	expect read-large nvme read $D $(at 1000 $hw) --data=/run/back
	expect large-same cmp /run/large /run/back
	fails too-large 'Invalid argument' nvme read $D $(at 1000 $((hw + 1))) --data=/run/back
	# The device's own word: beyond the end.
	fails beyond 'LBA_RANGE|LBA Out of Range|0x4?80' nvme read $D $(at 131072 1) \
		--data=/run/back
	# Less data than the command says; another namespace; none of a controller's.
	fails short 'Invalid argument' nvme io-passthru $D --opcode=2 --namespace-id=1 \
		--data-len=512 --read --cdw10=0 --cdw12=1
	for nsid in 0 2 0xffffffff; do
		fails other-$nsid 'Invalid argument' nvme io-passthru $D --opcode=2 \
			--namespace-id=$nsid --data-len=512 --read
	done
	fails node 'nappropriate ioctl' nvme io-passthru /dev/hiops0 --opcode=0 --namespace-id=1
	# Not for everyone, and nothing is changed that may not be.
	chmod a+r $D
	fails unprivileged 'Permission denied' setpriv --reuid=nobody \
		--clear-groups nvme read $D $(at 0 1) --data=/dev/null
	expect setro blockdev --setro $D
	for command in "write $D $(at 0 1) --data=/run/zero" \
		"write-zeroes $D --start-block=0 --block-count=0" \
		"dsm $D --ad --slbs=0 --blocks=1" \
		"io-passthru $D --opcode=0x90 --namespace-id=1"; do
		fails "read-only-${command%% *}" 'Read-only file system' nvme $command
	done
	expect read-only-read nvme read $D $(at 0 1) --data=/run/back
	expect setrw blockdev --setrw $D
}

# The older structure: opcode, blocks; data, first block. Written, read, compared; others not.
user_io() { echo "pack('<BBHHHQQQIIHH4x', $1, 0, 0, $2, 0, 0, data, 8, 0, 0, 0, 0)"; }
same submit-write "$(ioctl 0x40304e42 "$(user_io 1 7)")" '0 ssss'
expect submit-there sh -c \
	"dd if=$D bs=4096 skip=1 count=1 iflag=direct status=none | tr -d s | cmp - /dev/null"
same submit-compare "$(ioctl 0x40304e42 "$(user_io 5 7)")" '0 ssss'
same submit-other "$(ioctl 0x40304e42 "$(user_io 0 0)")" EINVAL
same submit-too-large "$(ioctl 0x40304e42 "$(user_io 2 65535)")" EINVAL
same submit-node "$(ioctl 0x40304e42 "$(user_io 2 0)" /dev/hiops0)" ENOTTY
# io64 METADATA BYTES: a COMPARE by the ioctl with a result of 64 bits, with that much metadata.
io64() {
	local form='<BBHIIIQQIIQQQI12x'
	ioctl 0xc0504e48 "pack('$form', 5, 0, 0, 1, 0, 0, $1, data, $2, 4096, 8, 7, 0, 0)"
}
same io64 "$(io64 0 0)" '0 ssss'
same metadata "$(io64 data 64)" EINVAL

# Beside I/O of the disk's own, and with resets.
fio --name=v --filename=$D --direct=1 --ioengine=libaio --iodepth=16 --rw=randrw --bs=4k \
	--offset=8M --size=16M --verify=crc32c --verify_fatal=1 --loops=2 \
	>/run/fio 2>&1 &
fio=$!
rounds=0
while ! ended $fio && [ $rounds -lt 60 ]; do
	# shellcheck disable=SC2046 # options
	nvme compare $D $(at 1000 $hw) --data=/run/large >"$OUT" 2>&1 ||
		{ not_ok "beside-$rounds" "compare failed"; break; }
	[ $((rounds % 8)) != 3 ] || put 1 /sys/bus/pci/devices/$PCI/reset
	rounds=$((rounds + 1))
done
expect beside-io wait $fio
expect beside-rounds test $rounds -gt 2

# A partition's node does as its disk's: for administrators, and whoever can open it may identify.
P=${D}p1
partitions() { sfdisk -q $D <<<'start=10M, size=16M' && until_true 60 test -b $P && chmod a+r $P; }
nobody() { setpriv --reuid=nobody --clear-groups "$@"; }
expect partitions partitions
expect partition-smart-log nvme smart-log $P
told partition-temperature temperature
expect partition-id-ns nvme id-ns $P
told partition-size 'nsze *: 0x20000'
expect partition-smartctl smartctl -H -d nvme $P
told partition-health 'self-assessment test result: PASSED'
expect partition-read nvme io-passthru $P --opcode=2 --namespace-id=1 --data-len=512 --read
expect partition-nobodys-id-ns nobody nvme id-ns $P
fails partition-nobodys-smart-log 'Permission denied' nobody nvme smart-log $P
expect disk-nobodys-id-ctrl nobody nvme id-ctrl $D
fails disk-nobodys-smart-log 'Permission denied' nobody nvme smart-log $D

# A controller whose queues are all in use says so, and is well.
expect bind-few "$BIND" 0000:00:07.0 hiops_nvme
fails no-queue-left 'not supported' nvme flush /dev/hiops1n1
expect few-io dd if=/dev/hiops1n1 of=/dev/null bs=4096 count=16 iflag=direct status=none
expect none-few "$BIND" 0000:00:07.0 none
expect none "$BIND" $PCI none
expect rmmod rmmod hiops
plan
