#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Threads that nap until shortly before their I/O is over, in the corners: killed, frozen, hardly
# ever run, moved, their CPU taken offline and their controller reset meanwhile; a device that is
# none too regular. By a clock that counts instructions, so the device is as regular as it says.
# vm: --icount --timeout 900
. ci/vm-tests/guest-lib.sh
A=/dev/hiops_ram0
H=/sys/block/hiops_ram0/hiops
is() { [ "$(($1))" -ne 0 ]; }
stat() { count hiops_ram0 "$1"; }
grew() { [ "$(stat submitted)" -gt "$1" ]; }
all_over() { [ "$(stat submitted)" = "$(stat completed)" ]; }
# By what was measured as the disk came, a sleep has a yield in it, and none takes a device's time.
costs_are_likely() {
	local -a cost
	read -ra cost <$H/learned
	local sleep=${cost[1]} yield=${cost[3]} tick=${cost[5]}
	is "yield < sleep && sleep < 1000000 && tick < 1000000"
}
naps() { echo $(($(stat naps_hit) + $(stat naps_late) + $(stat naps_vain) + $(stat naps_woken))); }
load() { modprobe hiops ram_disks=1 ram_size_mb=8 ram_queues=2 predict=1 "$@"; }
# Reads block after block, for ever.
read_on() {
	exec python3 -c 'import itertools, mmap, os, sys
disk, block = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 4096)
for n in itertools.count():
    os.preadv(disk, [block], n % 2048 * 4096)' $A
}
reads() { # COUNT
	dd if=$A of=/dev/null bs=4k count="$1" iflag=direct status=none
}

refused predict-2 'nvalid argument' modprobe hiops predict=2
expect predict-said logged 'predict=2 is out of range'
refused window-0 'nvalid argument' modprobe hiops predict_window_us=0
expect window-said logged 'predict_window_us=0 is out of range'

for mode in 0 1 2; do
	expect "load-$mode" load ram_latency_us=300 mode=$mode poll_interval_us=1000
	expect "costs-$mode" costs_are_likely
	expect "verified-$mode" fio --name=n --filename=$A --direct=1 --ioengine=psync \
		--rw=randwrite --bs=4k --size=8M --verify=crc32c
	expect "naps-$mode" is "$(stat naps_hit) * 10 > $(stat submitted) * 6"
	same "naps-sum-$mode" "$(naps)" "$(stat naps)"
	if [ $mode = 2 ]; then
		# Naps carry the queue: it does without its interrupt.
		expect naps-instead is "$(stat interrupts) * 4 < $(stat submitted)"
	fi
	expect "forecast-$mode" \
		grep -Eq '^read 4k 1 expected_ns 30[0-9]{4} spread_ns [0-9]{1,3} seen' $H/forecast

	# Somebody naps nearly all the time.
	read_on &
	reader=$!
	for round in {1..20}; do
		kill -STOP $reader
		kill -CONT $reader
		taskset -pc $((round % 2)) $reader >/dev/null
	done
	expect "moved-$mode" kill -0 $reader
	echo 0 >/sys/devices/system/cpu/cpu1/online
	before=$(stat submitted)
	expect "offline-$mode" until_true 60 grew $((before + 100))
	echo 1 >/sys/devices/system/cpu/cpu1/online
	chrt -i -p 0 $reader
	taskset -pc 0 $reader >/dev/null
	taskset -c 0 sh -c "while [ ! -e '$ENOUGH' ]; do :; done" &
	hog=$!
	before=$(stat submitted)
	expect "idle-class-$mode" until_true 120 grew $((before + 10))
	touch "$ENOUGH"
	wait $hog
	rm "$ENOUGH"
	for round in {1..5}; do
		put 1 $H/reset_controller
	done
	before=$(stat submitted)
	expect "reset-$mode" until_true 60 grew $((before + 100))
	# Switches, while somebody goes by them.
	for round in {1..10}; do
		for switch in predict/0 mode/poll predict/1 predict_window_us/1 mode/irq \
			strategy/plain strategy/coop predict_window_us/100 mode/hybrid; do
			put "${switch#*/}" "$H/${switch%/*}"
		done
	done
	before=$(stat submitted)
	expect "switched-$mode" until_true 60 grew $((before + 100))
	kill -9 $reader
	expect "killed-$mode" until_true 60 ended $reader
	for round in {1..20}; do
		read_on &
		nap 0.0$((50 + round))
		kill -9 $!
		wait $! 2>/dev/null
	done
	expect "all-over-$mode" until_true 10 all_over
	expect "no-errors-$mode" is "$(stat errors) + $(stat timeouts) == 0"
	expect "rmmod-$mode" until_true 10 rmmod hiops
done

# Reads that are evenly long or short: nobody knows, and nobody naps for long.
expect load-vague load ram_latency_us=20 ram_latency_max_us=500 ram_seed=7
expect vague reads 1000
put reset $H/stats
expect vague-still reads 1000
expect vague-no-naps is "$(stat naps_vain) + $(stat naps_late) < 50"
rmmod hiops

# Completions that are lost: the time-out comes as ever, and finds them.
expect load-losing load ram_latency_us=300 ram_drop=50 ram_timeout_ms=500
expect losing reads 500
expect lost-ones-found is "$(stat timeouts) + $(stat missed_interrupts) > 0"
expect lost-none-failed is "$(stat errors) == 0"
expect rmmod-losing until_true 10 rmmod hiops
plan
