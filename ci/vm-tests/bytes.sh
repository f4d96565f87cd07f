#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A disk's bytes, read and written through /dev/<disk>_bytes: of a RAM disk, of NVMe and of SATA
# drives; what is right, what is refused, and users while a disk is reset, frozen and taken away.
# kernels: stock debug
# vm: --timeout 1800
# vm: --qemu '-drive file=$DIR/nvme.img,format=raw,if=none,id=n0,cache=unsafe'
# vm: --qemu '-device nvme,drive=n0,serial=b,addr=4,logical_block_size=4k,physical_block_size=4k'
# vm: --qemu '-drive file=$DIR/sata.img,format=raw,if=none,id=d0,cache=unsafe'
# vm: --qemu '-device ich9-ahci,id=ahci0,addr=5 -device ide-hd,drive=d0,bus=ahci0.0,serial=bytes'
# image: nvme.img 8M
# image: sata.img 8M
. ci/vm-tests/nvme-lib.sh
stat() { count "$DISK" "$1"; }
is() { [ "$(($1))" -ne 0 ]; }
use() { # DISK: what follows is about it
	DISK=$1 D=/dev/$1 B=/dev/$1_bytes H=/sys/block/$1/hiops
}
py() { python3 -B ci/vm-tests/bytes.py "$@"; }
check() {
	local queue=/sys/block/$DISK/queue
	py check "$B" "$D" "$(cat "$queue/logical_block_size")" "$TIMES" \
		"$(cat "$queue/atomic_write_unit_max_bytes")"
}
fill() { # with what tells blocks and bytes apart
	head -c "$(blockdev --getsize64 "$D")" /dev/urandom >"$OUT.data" &&
		dd if="$OUT.data" of="$D" bs=1M oflag=direct status=none
}
# begin COUNT: as many readers, and two writers, at work on the disk; over: ends them, and tells in
# HEARD what they have done; lost: the same, as the disk has gone, which ends each of them.
begin() {
	rm -f "$ENOUGH" "$OUT.told"
	py users "$B" "$D" "$1" "$ENOUGH" >"$OUT.told" 2>&1 &
	USERS=$!
	until_true 120 grep -q ready "$OUT.told"
}
over() {
	touch "$ENOUGH"
	lost
}
lost() {
	until_true 120 ended "$USERS"
	HEARD=$(tail -n 1 "$OUT.told")
	echo "users: $HEARD" >&2
}
# some_more COUNT: the disk has had as many more commands.
some_more() {
	local target=$(($(stat completed) + $1))
	reached() { [ "$(stat completed)" -ge "$target" ]; }
	until_true 120 reached
}
all_over() { is "$(stat submitted) == $(stat completed)"; }
# right NAME [GONE]: what the users that have ended tell: nothing is wrong, and to GONE of them the
# disk was no more.
right() {
	expect "$1" grep -Eq "^${2:+ENODEV=$2 }reads=[1-9][0-9]* writes=[1-9][0-9]* wrong=0\$" \
		<<<"$HEARD"
}

# In make test-long 8 threads make 20,000 reads and as many writes.
TIMES=$(on_debug 50 "${HIOPS_LONG:+2500}")
TIMES=${TIMES:-500}
ROUNDS=$(seq "$(on_debug 1 2)")
# Whether this is short: on the debug kernel, which takes ten times as long, outside make test-long.
is_short() { [ -z "${HIOPS_LONG:-}" ] && [ "${HIOPS_VM_KERNEL:-stock}" = debug ]; }
# checked NAME: whatever can be said of a disk that works.
checked() {
	expect "$1-fill" fill
	expect "$1-not-there" absent "$B"
	expect "$1-is-off" reads "$H/bytes" 0
	refused "$1-no-number" 'nvalid argument' put 2 "$H/bytes"
	expect "$1-on" put 1 "$H/bytes"
	expect "$1-on-again" put 1 "$H/bytes"
	expect "$1-is-on" reads "$H/bytes" 1
	expect "$1-there" test -c "$B"
	same "$1-mode" "$(command stat -c %a "$B")" 660
	expect "$1-check" check
	expect "$1-all-over" all_over
	exec 9<"$B"
	refused "$1-busy" 'usy' put 0 "$H/bytes"
	exec 9<&-
	expect "$1-off" put 0 "$H/bytes"
	expect "$1-gone" absent "$B"
	expect "$1-no-file" py no-file "$D" "$D"
	expect "$1-on-once-more" put 1 "$H/bytes"
}

# RAM, of 512 and of 4096 bytes.
expect load modprobe hiops ram_disks=2 ram_size_mb=8 ram_latency_us=300 ram_queues=2 ram_tags=8 \
	ram_channels=4
use hiops_ram0
checked ram
for mode in $(on_debug hybrid 'irq poll hybrid'); do
	for lazy in $(on_debug 1 '0 1'); do
		put "$mode" "$H/mode"
		put "$lazy" "$H/lazy"
		begin 4
		some_more "$(on_debug 50 200)"
		over
		right "ram-$mode-$lazy"
	done
done
put plain "$H/strategy"
begin 4
some_more "$(on_debug 50 100)"
over
right ram-plain
put coop "$H/strategy"

# What does not wait itself is read by itself, and has workers that write.
for how in '' --fixedbufs=1,--registerfiles=1 --sqthread_poll=1 --hipri=1; do
	expect "uring$how" fio --name=u --filename="$B" --size=60000 --bs=300 --rw=randrw \
		--ioengine=io_uring --iodepth=16 --verify=crc32c --verify_state_save=0 ${how//,/ }
done

# A partition, whose bytes are of a file that it is asked for.
expect partition sfdisk -q --wipe always "$D" <<<'start=2051, size=2000'
part_there() { [ -b "${D}p1" ]; }
expect partition-there until_true 60 part_there
expect partition-file py file "${D}p1" "$D" 512 "$TIMES"
expect no-partition sfdisk -q --delete "$D"

# Others than the owner and the group are refused.
refused others 'ermission denied' setpriv --reuid=65534 --regid=65534 --clear-groups dd if=$B \
	of=/dev/null bs=1 count=1
# Who reads bytes has the disk open, and keeps nobody from it.
exec 9<"$B"
refused keeps-the-module 'in use' rmmod hiops
expect mkfs mkfs.ext4 -qF "$D"
expect mount mount "$D" /mnt
# Who writes has it alone with others that do.
refused writer-of-a-mounted-disk 'usy' dd if=/dev/zero of="$B" bs=1 count=1
magic() { dd if="$B" bs=1 skip=$((1024 + 56)) count=2 status=none | od -An -tx1 | tr -d ' '; }
same superblock "$(magic)" 53ef
expect umount umount /mnt
exec 9<&-
exec 9<>"$B"
tells 32 mount-of-a-written-disk "an't open" mount "$D" /mnt
refused swap-of-a-written-disk 'usy' mkswap "$D"
exec 9<&-
expect read-only blockdev --setro "$D"
refused read-only-write 'ead-only' dd if=/dev/zero of="$B" bs=1 count=1
expect read-write blockdev --setrw "$D"
expect fill-again fill

# More readers than there are tags, and on the stock kernel than buffers; the block layer's own
# requests beside them.
begin "$(on_debug 12 100)"
expect beside-blocks fio --name=b --rw=randread --bs=4k --ioengine=libaio --iodepth=64 \
	--filename="$D" --direct=1 --size="$(on_debug 128k 4M)" --output="$OUT.fio"
some_more "$(on_debug 100 500)"
over
right crowd
is_short || expect beyond-buffers fio --name=u --filename="$B" --size=600000 --bs=300 --rw=randrw \
	--ioengine=io_uring --iodepth=800 --verify=crc32c --output="$OUT.fio"
expect crowd-all-over all_over
# Frozen, as for another elevator; and reset.
modprobe -q mq-deadline
begin 8
for round in $ROUNDS; do
	expect "freeze-$round" put mq-deadline "/sys/block/$DISK/queue/scheduler"
	some_more 50
	expect "thaw-$round" put none "/sys/block/$DISK/queue/scheduler"
	some_more 50
	expect "reset-$round" put 1 "$H/reset_controller"
	some_more 50
done
over
right changed
expect changed-all-over all_over
expect changed-no-errors is "$(stat errors) == 0"
# A CPU that goes takes nobody's command along.
begin 4
expect cpu-off put 0 /sys/devices/system/cpu/cpu1/online
some_more 50
expect cpu-on put 1 /sys/devices/system/cpu/cpu1/online
some_more 50
over
right cpu
expect off put 0 "$H/bytes"
expect rmmod rmmod hiops

# A block of 4096 bytes; on from the start.
expect load-4k modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=20 ram_block_size=4096 \
	bytes=1
expect from-the-start test -c "$B"
put 0 "$H/bytes"
is_short || checked ram-4k
expect rmmod-4k rmmod hiops
expect gone-with-the-disk absent "$B"

# One that can leave out what nobody wants: not believed without data that shows it.
moved() { # NAME BYTES: so many cross the link for 128 of a block
	put reset "$H/stats"
	dd if="$B" bs=128 skip=5000 count=1 iflag=skip_bytes status=none |
		cmp -s - <(dd if="$OUT.data" bs=128 skip=5000 count=1 iflag=skip_bytes status=none)
	same "$1" "$? $(stat bytes_wanted) $(stat bytes_moved)" "0 128 $2"
}
for holes in $(on_debug 1 '1 2'); do
	expect "load-holes-$holes" modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=20 \
		ram_block_size=4096 ram_holes=$holes bytes=1
	expect "holes-$holes-unknown" logged 'as none of the first 1024 shows'
	expect "holes-$holes-off" put 0 "$H/bytes"
	expect "holes-$holes-fill" fill
	expect "holes-$holes-on" put 1 "$H/bytes"
	if [ $holes = 1 ]; then
		expect holes-right logged 'reads of bytes leave out what nobody wants'
		moved holes-moved 128
	else
		expect holes-wrong logged 'and does it wrong: reads of bytes move whole blocks'
		moved no-holes-moved 4096
	fi
	expect "holes-$holes-check" check
	is_short || expect "holes-$holes-uring" fio --name=h --filename="$B" --size=600000 \
		--bs=300 --rw=randrw --ioengine=io_uring --iodepth=16 --verify=crc32c \
		--output="$OUT.fio"
	expect "rmmod-holes-$holes" rmmod hiops
done

# As many as eight disks a controller is for NVMe; of RAM disks each is one.
refused bytes-parameter 'nvalid argument' modprobe hiops bytes=2

# A device that loses answers: reads are tried again, and none is lost.
expect load-loser modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=20 ram_drop=50 \
	ram_timeout_ms=1000 bytes=1
expect loser-fill fill
put reset "$H/stats"
begin 4
some_more "$(on_debug 100 200)"
over
right loser
expect loser-resets is "$(stat resets) > 0"
expect loser-retried is "$(stat retried) > 0"
expect loser-no-errors is "$(stat errors) == 0"
expect loser-all-over all_over
expect rmmod-loser rmmod hiops
# One that is stuck with some until it is asked.
if ! is_short; then
	expect load-sticker modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=20 \
		ram_stick=50 ram_timeout_ms=1000 bytes=1
	expect sticker-fill fill
	put reset "$H/stats"
	begin 4
	some_more "$(on_debug 100 200)"
	over
	right sticker
	expect sticker-aborts is "$(stat aborts) > 0"
	expect sticker-well is "$(stat resets) + $(stat errors) == 0"
	expect rmmod-sticker rmmod hiops
fi
# One that fails everything for now.
expect load-wreck modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=20 ram_fail=1 bytes=1
put reset "$H/stats"
refused wreck-fails 'nput/output error' dd if="$B" of=/dev/null bs=100 count=1
same wreck-tries "$(stat errors) $(stat retried) $(stat submitted) $(stat completed)" '1 5 1 1'
expect rmmod-wreck rmmod hiops

# NVMe, by DMA.
expect bind $BIND $PCI hiops_nvme
use "$(disk_of $PCI)"
checked nvme
for round in $ROUNDS; do
	begin 8
	some_more 50
	expect "nvme-reset-$round" put 1 "$H/reset_controller"
	some_more 50
	expect "nvme-function-reset-$round" put 1 "/sys/bus/pci/devices/$PCI/reset"
	some_more 50
	over
	right "nvme-reset-right-$round"
done
expect nvme-all-over all_over
expect nvme-no-errors is "$(stat errors) == 0"
# Who reads bytes is seen; a tool does not take the drive away.
if ! is_short; then
	exec 9<"$B"
	refused nvme-in-use "/dev/$DISK is open in" tools/hiops-bind $PCI none
	exec 9<&-
fi
# Unbound under readers: each learns of it, and nobody hangs; the node is gone.
begin 8
some_more 50
expect nvme-unbind $BIND $PCI none
lost
right nvme-unbound 10
expect nvme-node-gone absent "$B"
expect bind-again $BIND $PCI hiops_nvme
use "$(disk_of $PCI)"
expect nvme-on-again put 1 "$H/bytes"
is_short || expect nvme-check-again check
expect nvme-leave $BIND $PCI none

# SATA.
if is_short; then
	expect rmmod-short rmmod hiops
	plan
	exit
fi
PCI=0000:00:05.0
expect sata-bind $BIND $PCI hiops_ahci
there() { DISK=$(disk_of $PCI); }
expect sata-disk until_true 60 there
use "$DISK"
checked sata
begin 8
some_more 50
expect sata-reset put 1 "$H/reset_controller"
some_more 50
over
right sata-reset-right
expect sata-all-over all_over
begin 8
some_more 50
expect sata-delete put 1 "$H/delete"
expect sata-gone until_true 60 absent "$B"
lost
right sata-deleted 10
expect sata-leave $BIND $PCI none
expect rmmod-last rmmod hiops
plan
