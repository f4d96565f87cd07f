#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The RAM disk that takes commands in blocks, one at a time: however it answers, and however it is
# looked at, what was written is read, few doorbells are for many commands, and where it loses, is
# stuck with, doubles or invents answers, or is reset, nothing is lost and nothing ends twice.
# kernels: stock
# long: debug
# vm: --timeout 900 --cpus 2
. ci/vm-tests/guest-lib.sh
D=/dev/hiops_ram0
H=/sys/block/hiops_ram0/hiops
stat() { count hiops_ram0 "$1"; }
fio() { command fio --verify_state_save=0 --filename=$D --direct=1 --output="$OUT" "$@"; }
is() { [ "$(($1))" -ne 0 ]; }
load() { modprobe hiops ram_disks=1 ram_size_mb=16 ram_protocol=blocks "$@"; }
over() { is "$(stat submitted) == $(stat completed)"; }
verified() {
	fio --name=v --rw=randwrite --bs=4k --ioengine=io_uring --iodepth=64 --verify=crc32c \
		--size=2M --end_fsync=1 "$@"
}
# Threads, of which each waits for its own.
threads() {
	fio --name=t --rw=randrw --bsrange=512-64k --blockalign=512 --ioengine=psync --numjobs=8 \
		--thread --size=1M --offset_increment=1M --verify=crc32c "$@"
}

# Nonsense is refused by name.
for bad in ram_protocol=fast ram_protocol=2; do
	refused "refused-$bad" 'nvalid argument' modprobe hiops ram_disks=1 $bad
done
for bad in ram_blocks_most=0:'1 to 64' ram_blocks_most=65:'1 to 64' \
	ram_blocks_answers=3:'0 to 2' ram_blocks_full=2:'0 to 1' \
	ram_blocks_read_mb_s=0:'1 to 1000000' ram_blocks_write_mb_s=1000001:'1 to 1000000' \
	ram_blocks_fetch_ns=1000000001:'0 to 1000000000'; do
	refused "refused-${bad%:*}" 'nvalid argument' load "${bad%:*}"
	expect "told-${bad%:*}" logged "${bad%:*} is out of range: ${bad#*:}\$"
done
for other in ram_latency_max_us ram_write_latency_us ram_link_mb_s; do
	refused "refused-$other" 'nvalid argument' load $other=50
	expect "told-$other" logged "$other=50 is for ram_protocol=queue: blocks have"
done

# However it answers, and whether it waits for full blocks.
for answers in 0 1 2; do
	for full in 0 1; do
		name=$answers-$full
		expect "load-$name" load ram_blocks_answers=$answers ram_blocks_full=$full \
			ram_queues=2
		for mode in irq poll hybrid; do
			expect "mode-$name-$mode" put $mode $H/mode
			expect "verify-$name-$mode" verified
			expect "threads-$name-$mode" threads
		done
		expect "over-$name" until_true 60 over
		expect "well-$name" is \
			"$(stat errors) + $(stat timeouts) + $(stat resets) == 0"
		expect "rmmod-$name" rmmod hiops
	done
done
expect protocol-is-queue modprobe hiops
expect protocol-reads reads /sys/module/hiops/parameters/ram_protocol queue
expect rmmod-none rmmod hiops

# A page is a command. While the device has the first one of a read it gathers the others, however
# slow this machine is.
expect load-pages load ram_blocks_fetch_ns=50000000
expect protocol-is-blocks reads /sys/module/hiops/parameters/ram_protocol blocks
expect a-page-at-most reads /sys/block/hiops_ram0/queue/max_hw_sectors_kb 4
expect pages-counted put reset $H/stats
expect pages-read dd if=$D of=/dev/null bs=1M count=4 iflag=direct status=none
expect pages is "$(stat submitted) == 1024"
expect few-doorbells is "$(stat doorbell_writes) * 8 < $(stat submitted)"
expect rmmod-pages rmmod hiops
# The elevator's order is kept above it.
expect load-elevator load
expect elevator put mq-deadline /sys/block/hiops_ram0/queue/scheduler
expect elevator-verify verified
expect elevator-threads threads

# A reset, in the middle of it.
fio --name=r --rw=randwrite --bs=4k --ioengine=io_uring --iodepth=64 --verify=crc32c --size=8M \
	--loops=4 &
job=$!
before=$(stat submitted)
moves() { is "$(stat submitted) > $before + 100"; }
for round in 1 2 3; do
	expect "moves-$round" until_true 60 moves
	expect "reset-$round" put 1 $H/reset_controller
	before=$(stat submitted)
done
expect reset-verified wait $job
expect reset-over until_true 60 over
expect reset-no-errors is "$(stat errors) == 0"
expect rmmod-reset rmmod hiops

# A block that never comes back: late, reset, tried again.
dmesg -C
expect load-loser load ram_drop=50 ram_timeout_ms=1000
expect loser-verify verified --size=512k
expect loser-resets is "$(stat timeouts) > 0 && $(stat resets) > 0"
expect loser-no-errors is "$(stat errors) == 0"
expect loser-over until_true 60 over
expect rmmod-loser rmmod hiops
# One that comes back once it is asked to give up what it is stuck with.
expect load-sticker load ram_stick=50 ram_timeout_ms=1000
expect sticker-verify verified --size=512k
expect sticker-no-errors is "$(stat timeouts) > 0 && $(stat errors) == 0"
expect sticker-over until_true 60 over
expect rmmod-sticker rmmod hiops
# Answers twice, out of order, and to what was not asked.
expect load-liar load ram_duplicate=200 ram_reorder=3 ram_blocks_answers=1
expect liar-verify verified --size=1M
expect liar-over until_true 60 over
expect rmmod-liar rmmod hiops
dmesg -C
expect load-inventor load ram_lie=10
fio --name=v --rw=randread --bs=4k --ioengine=libaio --iodepth=16 --size=4M --continue_on_error=all
expect inventor-told logged \
	'hiops_ram0: it reports completions of commands that it does not have: resetting it'
expect inventor-over until_true 60 over
expect rmmod-inventor rmmod hiops
plan
