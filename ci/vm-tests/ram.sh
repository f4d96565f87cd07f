#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The RAM disk: real I/O, its attributes, misuse, and a device that loses, doubles and invents
# completions.
# kernels: stock
# long: debug
# vm: --timeout 900
. ci/vm-tests/guest-lib.sh
D=/dev/hiops_ram0
H=/sys/block/hiops_ram0/hiops
stat() { count hiops_ram0 "$1"; }
fio() { command fio --verify_state_save=0 --filename=$D --direct=1 --output="$OUT" "$@"; }
is() { [ "$(($1))" -ne 0 ]; }

SIZE=1M
refused strategy-parameter 'nvalid argument' modprobe hiops strategy=best
expect strategy-said logged 'strategy=best is not known'
expect load modprobe hiops ram_disks=2 ram_size_mb=32 ram_latency_us=3000 ram_tags=8 \
	ram_channels=4 ram_queues=2
expect disks test -b $D -a -b /dev/hiops_ram1
exec 9<$D
refused refused-while-open 'in use' rmmod hiops
exec 9<&-

# The attributes.
expect serial reads /sys/block/hiops_ram0/serial RAM00000
expect model reads /sys/block/hiops_ram0/model 'hiops RAM device'
expect wwid grep -q . /sys/block/hiops_ram0/wwid
expect no-nsid absent /sys/block/hiops_ram0/nsid
for mode in irq poll hybrid; do
	expect "mode-$mode" put $mode $H/mode
	expect "mode-is-$mode" reads $H/mode $mode
done
refused mode-unknown 'nvalid argument' put fast $H/mode
refused strategy-unknown 'nvalid argument' put best $H/strategy
expect strategy-as-it-comes reads $H/strategy coop
# By the interrupt alone: no thread takes completions, none ends its own.
expect strategy-plain put plain $H/strategy
expect strategy-is-plain reads $H/strategy plain
expect strategy-of-the-controller reads /sys/block/hiops_ram0/hiops/strategy plain
expect plain-lazy put 1 $H/lazy
expect plain-reset put reset $H/stats
expect plain-io fio --name=p --rw=randwrite --bs=4k --ioengine=psync --numjobs=4 --thread \
	--size=256k --offset_increment=2M --verify=crc32c
expect plain-by-interrupts is \
	"$(stat completed_irq) > 0 && $(stat completed_irq) == $(stat completed)"
expect strategy-coop put coop $H/strategy
for switch in lazy coop; do
	expect $switch-0 put 0 $H/$switch
	expect $switch-is-0 reads $H/$switch 0
	expect $switch-1 put 1 $H/$switch
	refused $switch-2 'nvalid argument' put 2 $H/$switch
done
refused interval-range 'nvalid argument' put 10000000 $H/poll_interval_us
expect interval-is-32 reads $H/poll_interval_us 32
expect learned grep -Eq '^sleep_ns [1-9][0-9]* yield_ns [1-9][0-9]* tick_ns [1-9]' $H/learned
credit='(-|[0-9]+)'
expect learned-polling \
	grep -Eq "^queue 0 interrupt_ns .* polling $credit napping $credit\$" $H/learned
expect interval put 16 $H/poll_interval_us
expect interval-is-16 reads $H/poll_interval_us 16
refused stats-unknown 'nvalid argument' put all $H/stats
expect no-scheduler grep -q '\[none\]' /sys/block/hiops_ram0/queue/scheduler

# What swapon makes of the disk: it would not notice later.
expect synchronous-is-0 reads $H/synchronous 0
refused synchronous-2 'nvalid argument' put 2 $H/synchronous
expect synchronous put 1 $H/synchronous
expect synchronous-is-1 reads $H/synchronous 1
expect mkswap mkswap -q /dev/hiops_ram0
expect swapon swapon /dev/hiops_ram0
refused synchronous-swapped-on 'resource busy' put 0 $H/synchronous
expect synchronous-as-it-was reads $H/synchronous 1
expect swapoff swapoff /dev/hiops_ram0
expect synchronous-off put 0 $H/synchronous

# Many in flight, pieces of all sizes.
expect verify fio --name=v --rw=randwrite --bsrange=512-128k --blockalign=512 --ioengine=libaio \
	--iodepth=64 --verify=crc32c --size=2M
expect all-over is "$(stat submitted) == $(stat completed)"
by_threads="$(stat completed_lazy) + $(stat completed_coop)"
expect sum is "$(stat completed) == $(stat completed_irq) + $by_threads + $(stat completed_poll)"
# When I/O is over: what it takes is learnt, and whoever naps by that loses nothing. That somebody
# does is naps.sh's: by this machine's clock the device may be too irregular for it.
expect predict-is-0 reads $H/predict 0
refused predict-2 'nvalid argument' put 2 $H/predict
refused window-0 'nvalid argument' put 0 $H/predict_window_us
refused window-101 'nvalid argument' put 101 $H/predict_window_us
expect window-is-16 reads $H/predict_window_us 16
expect window put 100 $H/predict_window_us
expect no-forecast sh -c "! grep . $H/forecast"
expect predict put 1 $H/predict
# The one with dice is of debug kernels only.
for strategy in coop $(on_debug random ''); do
	expect "predict-$strategy" put "$strategy" $H/strategy
	for mode in irq poll hybrid; do
		expect "predict-$strategy-$mode" put $mode $H/mode
		expect "predict-$strategy-$mode-io" fio --name=n --rw=randwrite --bs=4k \
			--ioengine=psync --size=256k --verify=crc32c
		expect "predict-$strategy-$mode-uring" fio --name=n --rw=randwrite --bs=4k \
			--ioengine=io_uring --size=256k --verify=crc32c
	done
done
expect predict-coop-again put coop $H/strategy
expect forecast grep -Eq '^write 4k 1 expected_ns [1-9][0-9]* spread_ns [0-9]+ seen [1-9]' \
	$H/forecast
naps="$(stat naps_hit) + $(stat naps_late) + $(stat naps_vain) + $(stat naps_woken)"
expect naps is "$(stat naps) == $naps"
expect no-predict put 0 $H/predict

expect no-errors is "$(stat errors) + $(stat timeouts) + $(stat resets) == 0"
expect reset put reset $H/stats
requests="$(stat submitted) + $(stat completed)"
registers="$(stat doorbell_writes) + $(stat interrupts)"
expect zeroes is "$requests + $registers + $(stat max_irq_ns) == 0"
expect uring fio --name=u --rw=randrw --bs=4k --ioengine=io_uring --iodepth=128 --numjobs=2 \
	--size=$SIZE --offset_increment=8M --verify=crc32c
# A scheduler on top: its requests end one by one.
modprobe -q mq-deadline
expect scheduler put mq-deadline /sys/block/hiops_ram0/queue/scheduler
expect scheduled fio --name=s --rw=randwrite --bs=4k --ioengine=libaio --iodepth=64 \
	--verify=crc32c --size=$SIZE
expect no-scheduler-again put none /sys/block/hiops_ram0/queue/scheduler
expect at-the-end test "$(dd if=$D bs=4096 skip=8192 count=1 iflag=direct status=none | wc -c)" = 0
expect discard blkdiscard $D
expect discarded cmp -n 1048576 $D /dev/zero
expect write-zeroes blkdiscard -z $D
mkfs.ext4 -q $D
mount $D /mnt
cp /bin/bash /mnt/bash
refused refused-while-mounted 'in use' rmmod hiops
umount /mnt
expect fsck fsck.ext4 -fn $D
mount $D /mnt
expect file cmp /bin/bash /mnt/bash
umount /mnt
expect rmmod rmmod hiops

# Sixteen at once for two tags, each of which takes far longer than it takes to hand over all of
# them: fourteen have to wait.
expect load-slow modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=500000 ram_tags=2 \
	ram_queues=1
expect no-merges put 2 /sys/block/hiops_ram0/queue/nomerges
# With a scheduler they wait there, which has an order of its own; one may wait for whoever is
# issuing.
expect scheduler-slow put mq-deadline /sys/block/hiops_ram0/queue/scheduler
expect slow-scheduled fio --name=e --rw=write --bs=4k --ioengine=libaio --iodepth=8 \
	--iodepth_batch=8 --size=32k
expect not-deferred is "$(stat fifo_deferred) < 2"
expect scheduled-over is "$(stat submitted) == $(stat completed)"
expect no-scheduler-slow put none /sys/block/hiops_ram0/queue/scheduler
# Without, some wait longer for a tag than a request may take: that is said and counted, but the
# device does its best.
expect time-slow put 1000 /sys/block/hiops_ram0/queue/io_timeout
expect slow fio --name=d --rw=write --bs=4k --ioengine=libaio --iodepth=16 --iodepth_batch=16 \
	--size=64k
expect deferred is "$(stat fifo_deferred) > 0"
expect deferred-over is "$(stat submitted) == $(stat completed)"
expect waits-are-told logged 'some wait longer for a tag than'
expect waits-are-counted is "$(stat timeouts) > 0"
expect slow-is-well is "$(stat errors) + $(stat resets) == 0"
expect rmmod-slow rmmod hiops

# More queues than there are CPUs.
expect load-many-queues modprobe hiops ram_disks=1 ram_size_mb=8 ram_queues=64 \
	predict=1 predict_window_us=50
expect predict-at-first reads $H/predict 1
expect window-at-first reads $H/predict_window_us 50
expect a-queue-for-each-cpu is \
	"$(find /sys/block/hiops_ram0/mq -mindepth 1 -maxdepth 1 | wc -l) == $(nproc)"
expect verify-many-queues fio --name=v --rw=randwrite --bs=4k --ioengine=libaio --iodepth=8 \
	--verify=crc32c --size=$SIZE
expect rmmod-many-queues rmmod hiops

# 4096-byte blocks, no time at all.
expect load-4k modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=0 ram_block_size=4096
expect block-size reads /sys/block/hiops_ram0/queue/logical_block_size 4096
expect verify-4k fio --name=v --rw=randwrite --bsrange=4k-64k --blockalign=4k --ioengine=libaio \
	--iodepth=8 --verify=crc32c --size=$SIZE
expect rmmod-4k rmmod hiops

# Reads that take no time, writes that take a while: by the fastest of each, as a machine that is
# busy makes I/O slower, but never faster.
fastest() { # RW: in microseconds
	fio --name=f --rw="$1" --bs=4k --ioengine=psync --size=32k --output-format=json
	python3 -c "import json
print(json.load(open('$OUT'))['jobs'][0]['$1']['clat_ns']['min'] // 1000)"
}
expect load-writer modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=0 \
	ram_write_latency_us=200000
write_us=$(fastest write)
read_us=$(fastest read)
expect writes-take-so-long is "$write_us >= 200000"
expect reads-do-not is "$read_us < 200000"
expect verify-writer fio --name=v --rw=randwrite --bsrange=512-64k --blockalign=512 \
	--ioengine=libaio --iodepth=32 --verify=crc32c --size=2M
expect rmmod-writer rmmod hiops
# A megabyte a second, for two queues: two megabytes take two seconds at least, whoever reads them.
expect load-link modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=0 ram_queues=2 \
	ram_link_mb_s=1
now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }
from=$(now_ms)
expect link-read fio --name=l --rw=read --bs=100k --ioengine=psync --numjobs=2 --thread \
	--size=1000k --offset_increment=1M --cpus_allowed=0-1 --cpus_allowed_policy=split
took=$(($(now_ms) - from))
expect link-is-shared is "$took >= 2048"
expect rmmod-link rmmod hiops
expect load-fast-link modprobe hiops ram_disks=1 ram_size_mb=32 ram_latency_us=20 ram_queues=2 \
	ram_link_mb_s=200 ram_write_latency_us=100
for mode in irq poll hybrid; do
	expect "link-$mode" put $mode $H/mode
	expect "link-verify-$mode" fio --name=v --rw=randrw --bsrange=512-128k --blockalign=512 \
		--ioengine=libaio --iodepth=64 --numjobs=2 --offset_increment=8M --verify=crc32c \
		--size=$SIZE
done
expect link-over is "$(stat submitted) == $(stat completed)"
expect link-no-errors is "$(stat errors) + $(stat timeouts) + $(stat resets) == 0"
expect rmmod-fast-link rmmod hiops

# It reports some twice and invents others, and is reset for it; no data is wrong and none is lost
# by that alone.
expect load-liar modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=20 ram_duplicate=200 \
	ram_reorder=3
expect verify-liar fio --name=v --rw=randwrite --bs=4k --ioengine=libaio --iodepth=16 \
	--verify=crc32c --size=$SIZE
expect rmmod-liar rmmod hiops
dmesg -C
expect load-inventor modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=20 ram_lie=10 coop=0
fio --name=v --rw=randread --bs=4k --ioengine=libaio --iodepth=16 --size=4M --continue_on_error=all
expect inventor-reset is "$(stat resets) > 0"
expect inventor-told logged \
	'hiops_ram0: it reports completions of commands that it does not have: resetting it'
# A reset is not cooperation, whatever it ends.
expect inventor-alone is "$(stat completed_coop) == 0"
expect inventor-over is "$(stat submitted) == $(stat completed)"
expect rmmod-inventor rmmod hiops
# Likewise where nobody but the submitter, who asks for it, ever looks: no interrupt, no tick.
dmesg -C
expect load-polled-inventor modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=20 ram_lie=10 \
	ram_queues=2 poll_queues=1
put reset $H/stats
fio --name=v --rw=randread --bs=4k --ioengine=io_uring --hipri=1 --iodepth=16 --size=4M \
	--continue_on_error=all
expect polled-inventor-polled is "$(stat completed_poll) > 100"
inventor_was_reset() { is "$(stat resets) > 0"; }
expect polled-inventor-reset until_true 60 inventor_was_reset
expect polled-inventor-told logged \
	'hiops_ram0: it reports completions of commands that it does not have: resetting it'
over() { is "$(stat submitted) == $(stat completed)"; }
expect polled-inventor-over until_true 60 over
expect rmmod-polled-inventor rmmod hiops

# It loses some: they time out, the device is reset, and what it had is tried again, so nothing
# fails.
dmesg -C
expect load-loser modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=20 ram_drop=50 \
	ram_timeout_ms=1000
expect loser-verify fio --name=v --rw=randwrite --bs=4k --ioengine=libaio --iodepth=16 \
	--verify=crc32c --size=512k
expect loser-timeouts is "$(stat timeouts) > 0"
expect loser-resets is "$(stat resets) > 0"
expect loser-retried is "$(stat retried) > 0"
expect loser-no-errors is "$(stat errors) == 0"
expect loser-asked logged \
	'hiops_ram0: no answer to a .* of .* blocks at .* on disk 1: it is asked to abort that'
expect loser-told logged \
	'hiops_ram0: it does not abort that: resetting it; what it was told is tried again'
expect loser-back logged 'hiops_ram0: it is back'
# All that were late together are one reset.
expect loser-reset-once is "$(dmesg | grep -c ': resetting it') == $(stat resets)"
expect loser-over is "$(stat submitted) == $(stat completed)"
expect loser-aborts-none is "$(stat aborts) == 0"
expect rmmod-loser rmmod hiops

# It is stuck with some, and gives them up when it is asked to: that much is tried again, and no
# reset is needed.
dmesg -C
expect load-sticker modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=20 ram_stick=50 \
	ram_timeout_ms=1000
expect sticker-verify fio --name=v --rw=randwrite --bs=4k --ioengine=libaio --iodepth=16 \
	--verify=crc32c --size=512k
expect sticker-timeouts is "$(stat timeouts) > 0"
expect sticker-aborts is "$(stat aborts) > 0"
expect sticker-retried is "$(stat retried) == $(stat aborts)"
expect sticker-well is "$(stat resets) + $(stat errors) == 0"
# What was given up for another that was late at the same time was not missed.
expect sticker-none-missed is "$(stat missed_interrupts) == 0"
expect sticker-told logged 'hiops_ram0: nothing is late any more; what it aborted is tried again'
expect sticker-over is "$(stat submitted) == $(stat completed)"
expect rmmod-sticker rmmod hiops

# Where nothing is tried again, what it loses fails.
expect load-strict modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=20 ram_drop=50 \
	ram_timeout_ms=1000 max_retries=0
fio --name=v --rw=randread --bs=4k --ioengine=libaio --iodepth=16 --size=4M --io_size=1M \
	--continue_on_error=all
expect strict-errors is "$(stat errors) > 0"
expect strict-not-retried is "$(stat retried) == 0"
expect strict-over is "$(stat submitted) == $(stat completed)"
expect rmmod-strict rmmod hiops

# It fails some for now: they are tried again, however they are waited for, and nobody notices.
expect load-failer modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=20 ram_fail=7 \
	ram_queues=2 poll_queues=1
for mode in irq poll hybrid; do
	for lazy in 0 1; do
		expect "failer-$mode-$lazy" put $mode $H/mode
		expect "failer-lazy-$mode-$lazy" put $lazy $H/lazy
		put reset $H/stats
		expect "failer-sync-$mode-$lazy" fio --name=s --rw=randwrite --bs=4k \
			--ioengine=psync --numjobs=4 --offset_increment=1M --verify=crc32c \
			--size=256k
		expect "failer-async-$mode-$lazy" fio --name=a --rw=randwrite --bsrange=512-64k \
			--blockalign=512 --ioengine=libaio --iodepth=32 --verify=crc32c --size=$SIZE
		expect "failer-retried-$mode-$lazy" is "$(stat retried) > 0"
		expect "failer-well-$mode-$lazy" is \
			"$(stat errors) + $(stat timeouts) + $(stat resets) == 0"
		expect "failer-over-$mode-$lazy" is "$(stat submitted) == $(stat completed)"
	done
done
put reset $H/stats
expect failer-polled fio --name=p --rw=randwrite --bs=4k --ioengine=io_uring --hipri=1 --iodepth=8 \
	--verify=crc32c --size=256k
expect failer-polled-retried is "$(stat retried) > 0"
expect failer-polled-well is "$(stat errors) == 0"
# What is read ahead is not tried again: who needs it reads it.
mkfs.ext4 -q $D
mount $D /mnt
cp /bin/bash /mnt/bash
umount /mnt
mount $D /mnt
expect failer-file cmp /bin/bash /mnt/bash
umount /mnt
expect rmmod-failer rmmod hiops

# It fails all for now: each is tried six times, and then it has failed.
expect load-wreck modprobe hiops ram_disks=1 ram_size_mb=8 ram_latency_us=20 ram_fail=1
put reset $H/stats
refused wreck-fails 'Input/output error' dd if=$D of=/dev/null bs=4k count=1 iflag=direct
same wreck-tries "$(stat errors) $(stat retried) $(stat submitted) $(stat completed)" '1 5 1 1'
expect rmmod-wreck rmmod hiops

# It loses all: it comes up without a partition table, and goes.
expect load-mute timeout 60 modprobe hiops ram_disks=1 ram_size_mb=8 ram_drop=1 ram_timeout_ms=200 \
	max_retries=0
expect mute-there test -b $D
expect rmmod-mute timeout 60 rmmod hiops

# Parameters.
dmesg -C
refused too-many-disks 'nvalid argument' modprobe hiops ram_disks=65
expect too-many-told logged 'ram_disks=65 is out of range: 0 to 64'
for bad in ram_write_latency_us=10000001:10000000 ram_link_mb_s=1000001:1000000 \
	ram_link_mb_s=4294967295:1000000; do
	refused "refused-${bad%:*}" 'nvalid argument' modprobe hiops ram_disks=1 ${bad%:*}
	expect "told-${bad%:*}" logged "${bad%:*} is out of range: 0 to ${bad#*:}\$"
done
for parameter in ram_write_latency_us ram_link_mb_s; do
	refused "no-number-$parameter" 'nvalid argument' modprobe hiops $parameter=fast
done
expect greatest modprobe hiops ram_disks=1 ram_size_mb=1 ram_link_mb_s=1000000 \
	ram_write_latency_us=10000000
expect greatest-read dd if=$D of=/dev/null bs=64k count=4 iflag=direct
expect rmmod-greatest rmmod hiops
refused no-block 'nvalid argument' modprobe hiops ram_disks=1 ram_block_size=600
refused no-size 'nvalid argument' modprobe hiops ram_disks=1 ram_size_mb=0
refused no-queue 'nvalid argument' modprobe hiops ram_disks=1 ram_queues=65
refused too-many-retries 'nvalid argument' modprobe hiops max_retries=256
expect too-many-retries-told logged 'max_retries=256 is out of range: 0 to 255'
expect not-there test ! -d /sys/module/hiops
plan
