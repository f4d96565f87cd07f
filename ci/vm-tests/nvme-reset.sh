#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The function is reset by others, by its own file in sysfs, with I/O and administrative commands
# under way: all of it comes to its end, and nothing fails.
# image: a.img 256M
# vm: --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a"
# vm: --qemu "-device nvme,serial=rst0,drive=a,max_ioqpairs=4,addr=4"
# image: b.img 16M
# vm: --qemu "-drive file=$DIR/b.img,format=raw,if=none,id=b,throttling.bps-write=8192"
# vm: --qemu "-device nvme,serial=rst1,drive=b,max_ioqpairs=1,addr=5"
# kernels: stock
. ci/vm-tests/nvme-lib.sh
D=/dev/hiops0n1
function=/sys/bus/pci/devices/$PCI

expect bind "$BIND" "$PCI" hiops_nvme
head -c 4M /dev/urandom >/run/data
expect write dd if=/run/data of=$D bs=64k oflag=direct
expect can-be-reset grep -qw flr "$function/reset_method"

# until_enough COMMAND...: again and again, until it fails or there were resets enough.
until_enough() { while [ ! -e "$ENOUGH" ]; do "$@" || return; done; }

# Reads and writes of threads that wait and of one that does not, beside the tool's commands.
until_enough fio --name=s --filename=$D --direct=1 --ioengine=psync --rw=randrw --bs=4k \
	--offset=64M --size=1M --numjobs=4 --offset_increment=4M --thread \
	--loops=2 --verify=crc32c --output=/run/psync.txt &
psync=$!
until_enough fio --name=a --filename=$D --direct=1 --ioengine=io_uring --iodepth=32 --rw=randread \
	--bs=4k --offset=96M --size=64M \
	--number_ios=2000 --output=/run/uring.txt &
uring=$!
until_enough nvme id-ctrl $D >/run/admin &
admin=$!
done_more() { [ "$(count hiops0n1 completed)" -gt "$1" ]; }
expect load until_true 60 done_more 100
for round in 1 2 3 4 5; do
	expect "reset-$round" put 1 "$function/reset"
	before=$(count hiops0n1 completed)
	expect "goes-on-$round" until_true 60 done_more $((before + 200))
done
touch "$ENOUGH"
expect admin wait "$admin"
expect psync wait "$psync"
expect uring wait "$uring"
same no-error "$(count hiops0n1 errors)" 0
same no-time-out "$(count hiops0n1 timeouts)" 0
expect reads-again cmp -n $((4 << 20)) /run/data $D

# Programs whose memory does not come hold up nobody: neither other tools nor a reset nor a removal.
begin_stuck() {
	coproc STUCK { exec python3 ci/vm-tests/stuck.py $D "$1" 2>&1; }
	exec {let_go}>&"${STUCK[1]}" {told}<&"${STUCK[0]}"
	answers "stuck-$2" stuck
}
answers() {
	local answer=
	read -r -t 120 -u "$told" answer
	same "$1" "$answer" "$2"
}
begin_stuck argument on-argument
expect tool-beside-argument nvme id-ctrl $D
echo >&"$let_go"
# All zeroes: Delete I/O Submission Queue, which does not pass.
answers ended-on-argument 'ended EACCES'
wait "$STUCK_PID"
begin_stuck data on-data
expect tool-beside nvme id-ctrl $D
expect reset-beside put 1 "$function/reset"
expect read-beside cmp -n $((4 << 20)) /run/data $D
echo >&"$let_go"
answers ended-on-data 'ended 0'
wait "$STUCK_PID"
begin_stuck data at-the-end

# A reset waits for no tool's command that takes long: here a format, after a write that the drive
# takes a minute to get over.
slow=0000:00:05.0
expect bind-slow "$BIND" $slow hiops_nvme
F=/dev/hiops1n1
expect slow-write dd if=/run/data of=$F bs=512k count=1 oflag=direct
nvme format $F --lbaf=0 --force --timeout=600000 >/run/format 2>&1 &
format=$!
in_format() { grep -q hiops "/proc/$format/stack"; }
expect format-begun until_true 60 in_format
expect reset-slow put 1 /sys/bus/pci/devices/$slow/reset
if wait $format; then
	not_ok format-given-up "it ended before the reset"
else
	ok format-given-up
fi
expect read-slow dd if=$F of=/dev/null bs=4k count=8 iflag=direct
same size-slow "$(blockdev --getsize64 $F)" $((16 << 20))
expect unbind-slow "$BIND" $slow none

expect unbind "$BIND" "$PCI" nvme
expect in-tree-reads cmp -n $((4 << 20)) /run/data /dev/nvme0n1
echo >&"$let_go"
answers ended-at-the-end 'ended 0'
plan
