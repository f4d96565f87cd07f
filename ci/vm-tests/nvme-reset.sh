#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The function is reset by others, by its own file in sysfs, with I/O and administrative commands
# under way, or by the PCI core's error recovery: all of it comes to its end, and nothing fails,
# unless that recovery does.
# image: a.img 256M
# vm: --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a"
# vm: --qemu "-device nvme,serial=rst0,drive=a,max_ioqpairs=4,addr=4"
# image: b.img 16M
# vm: --qemu "-drive file=$DIR/b.img,format=raw,if=none,id=b,throttling.bps-write=8192"
# vm: --qemu "-device nvme,serial=rst1,drive=b,max_ioqpairs=1,addr=5"
# image: c.img 16M
# vm: --qemu "-device pcie-root-port,id=rp6,chassis=1,slot=1,addr=6,x-speed=2_5"
# vm: --qemu "-drive file=$DIR/c.img,format=raw,if=none,id=c"
# vm: --qemu "-device nvme,serial=rst2,drive=c,max_ioqpairs=1,bus=rp6"
# image: d.img 16M
# vm: --qemu "-device pcie-root-port,id=rp7,chassis=2,slot=2,addr=7"
# vm: --qemu "-drive file=$DIR/d.img,format=raw,if=none,id=d"
# vm: --qemu "-device nvme,serial=rst3,drive=d,max_ioqpairs=1,bus=rp7"
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
expect in-tree-reads cmp -n $((4 << 20)) /run/data "/dev/$(disk_of "$PCI")"
echo >&"$let_go"
answers ended-at-the-end 'ended 0'

# A fatal error of the link to a drive, and the PCI core's recovery of it. QEMU's port with a slow
# link comes back from the reset of that link, the other one does not.
expect can-inject modprobe aer_inject
put 0 /sys/bus/pci/drivers_autoprobe
# behind SLOT: the function that is there.
behind() { basename "/sys/bus/pci/devices/0000:00:$1.0"/0000:*:00.0; }
# What the driver has of the command register: memory, mastering.
command_of() { od -An -tu1 -j4 -N1 "/sys/bus/pci/devices/$1/config" | tr -d ' '; }
# fatal NUMBER: the port in that slot reports a data link protocol error.
fatal() {
	# One record of the kernel's, 32 bytes: bus, device, function; its status; nothing else.
	local slot rest
	slot=$(printf %o "$1") rest=$(printf '\\0%.0s' {1..27})
	printf %b "\\0\\0$slot\\0\\0\\020$rest" >/dev/aer_inject
}
# found_off SLOT: the function there is found anew, with memory decoding off, as one is that is put
# in while the machine runs.
found_off() {
	local function
	function=/sys/bus/pci/devices/0000:00:$1.0/$(behind "$1")
	printf '\0\0' | dd of="$function/config" bs=1 seek=4 conv=notrunc status=none
	put 1 "$function/remove"
	put 1 /sys/bus/pci/rescan
	[ "$(command_of "$(behind "$1")")" = 0 ]
}
recovery() { logged "pcieport 0000:00:$1.0: .*device recovery $2"; }
expect back-found found_off 06
back=$(behind 06)
expect back-bind "$BIND" "$back" hiops_nvme
B=/dev/$(disk_of "$back")
expect back-write dd if=/run/data of="$B" bs=64k count=16 oflag=direct
same back-command $(($(command_of "$back") & 6)) 6
expect back-error fatal 6
expect back-recovery until_true 60 recovery 06 successful
same back-command-again $(($(command_of "$back") & 6)) 6
expect back-reads timeout 60 cmp -n $((1 << 20)) /run/data "$B"
same back-no-error "$(count "${B#/dev/}" errors)" 0
expect back-unbind "$BIND" "$back" none

lost=$(behind 07)
expect lost-bind "$BIND" "$lost" hiops_nvme
L=/dev/$(disk_of "$lost")
fio --name=l --filename="$L" --direct=1 --ioengine=libaio --iodepth=8 --rw=randwrite --bs=4k \
	--time_based --runtime=300 --output=/run/lost.txt &
fio=$!
lost_busy() { [ "$(count "${L#/dev/}" completed)" -gt 200 ]; }
expect lost-busy until_true 60 lost_busy
expect lost-error fatal 7
expect lost-recovery until_true 60 recovery 07 failed
expect lost-ends until_true 60 ended $fio
if wait $fio; then not_ok lost-fails "nothing has failed"; else ok lost-fails; fi
same lost-size "$(blockdev --getsize64 "$L")" 0
expect lost-told logged "hiops_nvme $lost: .*the recovery of its bus has failed"
expect lost-unbind "$BIND" "$lost" none
put 1 /sys/bus/pci/drivers_autoprobe
plan
