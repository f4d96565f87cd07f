#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Threads that wait: whose I/O is ended by whom, and the corners in which a waiter is killed, kept
# from running, moved, nested in another's wait or left behind.
# vm: --timeout 900
. ci/vm-tests/guest-lib.sh
A=/dev/hiops_ram0 B=/dev/hiops_ram1
H=/sys/block/hiops_ram0/hiops
all_over() {
	[ "$(count hiops_ram0 submitted)" = "$(count hiops_ram0 completed)" ] &&
		[ "$(count hiops_ram1 submitted)" = "$(count hiops_ram1 completed)" ]
}
grew() { [ "$(count hiops_ram0 "$1")" -gt "$2" ]; }
# In uninterruptible sleep, which a waiter for I/O is in.
asleep() { grep -q '^State:.D' "/proc/$1/status"; }
slow() {
	rmmod hiops
	modprobe hiops ram_disks=2 ram_size_mb=32 ram_queues=2 ram_latency_us="$1" mode=0 lazy=1
}
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
hooked() {
	grep -q io_schedule /sys/kernel/debug/tracing/enabled_functions \
		/sys/kernel/tracing/enabled_functions 2>/dev/null
}
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null

# The hooks are there only while a disk is.
expect load modprobe hiops
expect no-hook-without-a-disk sh -c '! grep -q hiops /sys/kernel/tracing/enabled_functions'
rmmod hiops
expect load-disks modprobe hiops ram_disks=2 ram_size_mb=96 ram_queues=2 ram_latency_us=300 mode=0 \
	lazy=1
expect hooks hooked
sysctl -qw kernel.ftrace_enabled=0 2>/dev/null
same ftrace-stays "$(cat /proc/sys/kernel/ftrace_enabled)" 1

# A thread that sleeps ends its own; one that does not is served by who drains.
echo 0 >$H/coop
echo reset >$H/stats
expect sleepers fio --name=s --filename=$A --direct=1 --ioengine=psync --rw=randread --bs=4k \
	--numjobs=8 --thread --number_ios=200
expect lazy grew completed_lazy 800
echo reset >$H/stats
expect aio fio --name=a --filename=$A --direct=1 --ioengine=libaio --iodepth=16 --rw=randread \
	--bs=4k --number_ios=1000
expect by-the-drainer grew completed_irq 900
# The steps of an I/O that its owner ends, as the tool tells them.
if [ "${HIOPS_VM_KERNEL:-stock}" = stock ]; then
	timeout 480 tools/hiops-trace hiops_ram0 20 >/run/trace 2>&1 &
	trace=$!
	expect trace-begins until_true 240 grep -q context /run/trace
	fio --name=t --filename=$A --direct=1 --ioengine=psync --rw=randread --bs=4k --numjobs=4 \
		--thread --number_ios=20 >/dev/null
	expect trace-ends wait $trace
	for step in 'issue R[A-Z]* of 8 sectors' 'hand-over to fio/' 'sleep' 'woken' \
		'end of that at .* status 0'; do
		expect "trace-$step" grep -q "$step" /run/trace
	done
	issues=$(grep -c ' issue ' /run/trace)
	# The other CPU may issue one at the moment of the last.
	expect trace-issues sh -c "[ $issues -ge 20 ] && [ $issues -le 21 ]"
	unseen=$(sed -n 's/ were not seen to end$//p' /run/trace)
	same trace-each-issue-ends \
		"$(($(grep -c ' end of that at ' /run/trace) + ${unseen:-0}))" "$issues"
fi
echo 0 >$H/lazy
echo reset >$H/stats
expect not-lazy fio --name=n --filename=$A --direct=1 --ioengine=psync --rw=randread --bs=4k \
	--number_ios=200
same lazy-is-off "$(count hiops_ram0 completed_lazy)" 0
echo 1 >$H/lazy
echo 1 >$H/coop

# Several bios to a read, buffered reads, two disks at once.
expect several-bios fio --name=b --filename=$A --direct=1 --ioengine=psync --rw=randrw --bs=4M \
	--size=32M --verify=crc32c
expect buffered fio --name=f --filename=$A --ioengine=psync --rw=randrw --bs=64k --size=16M \
	--verify=crc32c --invalidate=1
expect striped mapped both "0 131072 striped 2 16 $A 0 $B 0"
expect two-disks fio --name=t --filename="$NODE" --direct=1 --ioengine=psync --rw=randrw --bs=64k \
	--size=2M --numjobs=8 --thread --offset_increment=2M --verify=crc32c
dmsetup remove both
# end_io that must find an atomic context: a cipher without work queues, file systems with their
# own.
key=$(printf '0%.0s' {1..64})
expect cipher mapped secret "0 65536 crypt aes-cbc-essiv:sha256 $key 0 $A 0 \
2 no_read_workqueue no_write_workqueue"
expect crypt fio --name=c --filename="$NODE" --direct=1 --ioengine=psync --rw=randrw --bs=4k \
	--size=4M --numjobs=4 --thread --offset_increment=4M --verify=crc32c
dmsetup remove secret
mkdir -p /run/tree /mnt/fs
cp /bin/bash /bin/ls /run/tree/
# Compressed where the kernel reads that: it is unpacked in the end_io, or by a work queue when that
# must not sleep.
case $(uname -r) in *debug*) form=-T0 ;; *) form=-zlz4 ;; esac
expect erofs-make mkfs.erofs "$form" /run/erofs /run/tree
dd if=/run/erofs of=$A bs=64k conv=fsync status=none
expect erofs-mount mount -t erofs $A /mnt/fs
expect erofs cmp /bin/bash /mnt/fs/bash
umount /mnt/fs
expect f2fs-make mkfs.f2fs -f -q $B
expect f2fs-mount mount -t f2fs $B /mnt/fs
expect f2fs sh -c 'cp /bin/bash /mnt/fs && sync && echo 3 >/proc/sys/vm/drop_caches &&
	cmp /bin/bash /mnt/fs/bash'
umount /mnt/fs
expect all-over until_true 10 all_over

# A slow device: waiters that are killed, frozen out, moved, or overtaken.
slow 1000000
dd if=$A of=/dev/null bs=4k count=2 iflag=direct status=none &
victim=$!
expect killed-asleep until_true 10 asleep $victim
kill -9 $victim
expect killed-gone until_true 10 sh -c "! kill -0 $victim"
expect killed-over until_true 10 all_over
dd if=$A of=/dev/null bs=4k count=4 iflag=direct status=none &
moved=$!
until_true 10 asleep $moved
expect moved taskset -pc 1 $moved
taskset -pc 0 $moved >/dev/null
echo 0 >/sys/devices/system/cpu/cpu1/online
expect moved-ends wait $moved
dd if=$A of=/dev/null bs=4k count=2 iflag=direct status=none &
offline=$!
until_true 10 asleep $offline
echo 1 >/sys/devices/system/cpu/cpu1/online
expect offline-ends wait $offline
# A waiter that may not run: what came for it is taken over. Its CPU belongs to whoever is more
# urgent, for ever: the scheduler's server for others is off. The device is so slow that a busy host
# gets that far before it answers.
slow 5000000
server=/sys/kernel/debug/sched/fair_server/cpu1/runtime
read -r runtime <$server
echo 0 >$server
before=$(count hiops_ram0 submitted) swept=$(count hiops_ram0 swept)
dd if=$A of=/dev/null bs=4k count=1 iflag=direct status=none &
starved=$!
expect starved-submitted until_true 10 grew submitted "$before"
expect starved-asleep until_true 10 asleep $starved
taskset -c 1 chrt -f 50 sh -c "while [ ! -e '$ENOUGH' ]; do :; done" &
hog=$!
taskset -pc 1 $starved >/dev/null
chrt -i -p 0 $starved
# It was not done before it was starved.
outstanding() { [ "$(count hiops_ram0 submitted)" -gt "$(count hiops_ram0 completed)" ]; }
expect starved-in-time outstanding
expect taken-over until_true 60 grew swept "$swept"
touch "$ENOUGH"
wait $hog
echo "$runtime" >$server
expect starved-ends wait $starved
# A thread with I/O of its own outstanding sleeps for something else, and for that in the hook: it
# does not keep the module.
slow 100000
before=$(count hiops_ram0 submitted)
# A device that is not ours, and holds its I/O.
expect held mapped held '0 8192 zero'
dmsetup suspend --noflush --nolockfs held
python3 - "$NODE" <<'PY' &
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
context = ctypes.c_ulong(0)
SETUP, SUBMIT = 206, 209
assert libc.syscall(SETUP, 4, ctypes.byref(context)) == 0
class Iocb(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64), ("key", ctypes.c_uint32),
                ("rw_flags", ctypes.c_uint32), ("opcode", ctypes.c_uint16),
                ("prio", ctypes.c_int16), ("fd", ctypes.c_uint32), ("buf", ctypes.c_uint64),
                ("nbytes", ctypes.c_uint64), ("offset", ctypes.c_int64), ("r", ctypes.c_uint64),
                ("flags", ctypes.c_uint32), ("resfd", ctypes.c_uint32)]
page = mmap.mmap(-1, 4096)
where = ctypes.addressof(ctypes.c_char.from_buffer(page))
disk = os.open("/dev/hiops_ram0", os.O_RDONLY | os.O_DIRECT)
one = Iocb(opcode=0, fd=disk, buf=where, nbytes=4096)
submitted = (ctypes.POINTER(Iocb) * 1)(ctypes.pointer(one))
assert libc.syscall(SUBMIT, context, 1, submitted) == 1
os.close(disk)
slow = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
os.preadv(slow, [page], 0)
PY
left=$!
expect left-submitted until_true 20 grew submitted "$before"
expect left-asleep until_true 20 asleep $left
expect left-over until_true 10 all_over
# Its file is closed; the last reference to the disk goes with its I/O.
expect rmmod-with-a-sleeper until_true 10 rmmod hiops
expect still-asleep kill -0 $left
dmsetup resume held
expect left-ends wait $left
dmsetup remove held
# Right after the last I/O, and again.
for round in 1 2 3; do
	modprobe hiops ram_disks=1 ram_latency_us=50
	fio --name=l --filename=$A --direct=1 --ioengine=psync --rw=randread --bs=512 --numjobs=32 \
		--thread --number_ios=20 >/dev/null 2>&1
	expect "rmmod-after-io-$round" until_true 10 rmmod hiops
done
plan
