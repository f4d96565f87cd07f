#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Debian's memcached keeps values on the bytes of an NVMe drive: each that comes back is compared,
# the page cache takes nothing, and when the drive is taken out it misses what was there, counts
# that, and goes on. Before it fio, which verifies what it has written in odd pieces.
# kernels: stock
# vm: --qemu '-drive file=$DIR/nvme.img,format=raw,if=none,id=n0,cache=unsafe'
# vm: --qemu '-device nvme,drive=n0,serial=m,addr=4'
# image: nvme.img 96M
. ci/vm-tests/nvme-lib.sh
PORT=11211
# memcached flushes in buffers of 2 MiB, and finds in memory what is in the last one.
VALUES=3000 LAST=2600
# told NAME: one of memcached's own counts. Without a new process, which takes seconds.
told() {
	local name value connection
	exec {connection}<>/dev/tcp/127.0.0.1/$PORT || return
	echo stats >&$connection
	while read -r -u $connection _ name value && [ -n "$name" ]; do
		[ "$name" != "$1" ] || echo "${value%$'\r'}"
	done
	exec {connection}>&-
}
# play VERB COUNT [FIRST]: HEARD is what it tells.
play() {
	python3 -B ci/vm-tests/memcached.py "$1" $PORT "$OUT.state" "${@:2}" >"$OUT.heard" || return
	HEARD=$(tail -n 1 "$OUT.heard")
	echo "$1: $(cat "$OUT.heard")" >&2
}
is() { [ "$(($1))" -ne 0 ]; }
# The page cache of all block devices, in KiB.
buffers() { awk '$1 == "Buffers:" {print $2}' /proc/meminfo; }
flushed() { [ "$(told extstore_objects_written)" -ge $((VALUES + LAST)) ]; }

expect bind $BIND $PCI hiops_nvme
DISK=$(disk_of $PCI) B=/dev/${DISK}_bytes
expect bytes put 1 "/sys/block/$DISK/hiops/bytes"
before=$(buffers)

for engine in psync io_uring; do
	expect "fio-$engine" fio --name=v --filename="$B" --size=300000 --bsrange=100-9000 \
		--bs_unaligned=1 --rw=randrw --ioengine=$engine --iodepth=16 --verify=crc32c \
		--verify_fatal=1
done

python3 -B docs/examples/on-a-device.py memcached -u root -l 127.0.0.1 -p $PORT -m 16 \
	-o "ext_page_size=8,ext_wbuf_size=2,ext_threads=16,ext_item_size=120,ext_item_age=0" \
	-o "ext_path=$B:64m" &
MEMCACHED=$!
expect memcached until_true 60 told pid
expect set play set $VALUES
# Other values, so that the last buffer is theirs.
expect set-last play set $LAST $VALUES
expect flushed until_true 60 flushed
reads=$(count "$DISK" completed) asked=$(told get_extstore)
expect mix play mix $VALUES
expect mix-all-right grep -q ' misses=0 wrong=0$' <<<"$HEARD"
expect get play get $VALUES
same get-all-right "$HEARD" "hits=$VALUES misses=0 wrong=0"
asked=$(($(told get_extstore) - asked)) reads=$(($(count "$DISK" completed) - reads))
echo "$asked gets of the store, $reads commands of the drive" >&2
# Nine of ten; those that were set meanwhile are still in a buffer.
expect gets-go-to-the-store is "$asked * 10 >= 2 * $VALUES * 9"
expect gets-go-to-the-drive is "$reads * 10 >= 2 * $VALUES * 9"
same none-is-missed "$(told miss_from_extstore)" 0
same none-is-damaged "$(told badcrc_from_extstore)" 0
same no-page-cache "$(buffers)" "$before"

# It is taken out.
expect pulled put 1 /sys/bus/pci/devices/$PCI/remove
expect gone until_true 60 absent "$B"
expect get-without play get $VALUES
expect none-is-wrong grep -q ' wrong=0$' <<<"$HEARD"
misses=${HEARD#*misses=} misses=${misses% *}
expect misses is "$misses * 10 >= $VALUES * 8"
# It counts one when its answer is sent.
told_of_all() { [ "$(told miss_from_extstore)" = "$misses" ]; }
expect misses-are-told until_true 10 told_of_all
same still-none-is-damaged "$(told badcrc_from_extstore)" 0
# What it is given now is there, until it goes to the drive.
expect set-again play set 300
expect get-again play get 300
expect again-none-is-wrong grep -q ' wrong=0$' <<<"$HEARD"
expect ends kill $MEMCACHED
wait $MEMCACHED
same status $? 0
expect rmmod rmmod hiops
plan
