#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# How long requests take, as the histograms of a disk have it, beside what fio has measured at the
# same time; that each request is in one of them, under the context that ended it; and that nothing
# is counted while nobody wants it. By a clock that counts instructions, so that a device that takes
# 300 microseconds does.
# vm: --icount --timeout 900
. ci/vm-tests/guest-lib.sh
FIO=$(mktemp)
D=/dev/hiops_ram0
H=/sys/block/hiops_ram0/hiops
is() { [ "$(($1))" -ne 0 ]; }
stat() { count hiops_ram0 "$1"; }
fio() { command fio --verify_state_save=0 --filename=$D --direct=1 --output="$FIO" "$@"; }
# column KIND CONTEXT: the sum of a column of a histogram.
column() {
	awk -v want="$2" 'NR == 1 { for (i = 2; i <= NF; i++) if ($i == want) at = i; next }
		$1 != "sum_ns" { sum += $at } END { print sum + 0 }' $H/latency_"$1"
}
counted() { # CONTEXT: of all kinds
	echo $(($(column read "$1") + $(column write "$1") + $(column other "$1")))
}
all() {
	local context sum=0
	for context in irq lazy coop poll nap; do sum=$((sum + $(counted $context))); done
	echo $sum
}
# beside KIND [MOST]: fio's percentiles in its JSON, up to that, fall in the bucket of the
# histogram's, or, as hiops takes less than what fio measures around it, in the one above; and means
# are as near.
beside() {
	python3 - "$FIO" "$1" $H/latency_"$1" "${2:-99.9}" <<'PY'
import json, sys
fio = json.load(open(sys.argv[1]))["jobs"]
lines = [line.split() for line in open(sys.argv[3])]
ends = [(float(end), sum(map(int, counts))) for end, *counts in lines[1:-1]]
sum_ns = sum(map(int, lines[-1][1:]))
every = sum(count for _, count in ends)
bounds = sorted(ns for power in range(25) for ns in (1000 << power, 1500 << power))
def bucket(ns):
    return next((at for at, end in enumerate(bounds) if ns < end), len(bounds))
lat = fio[0][sys.argv[2]]["lat_ns"]
assert every == sum(job[sys.argv[2]]["total_ios"] for job in fio), (every, ends)
for percentile, ns in sorted(lat["percentile"].items()):
    if float(percentile) not in (50, 90, 99, 99.9) or float(percentile) > float(sys.argv[4]):
        continue
    left = every * float(percentile) / 100
    for end, count in ends:
        left -= count
        if left <= 0:
            break
    mine = bounds.index(end)
    print(f"p{percentile[:4]}: fio {ns} ns, histogram below {end:.0f} ns")
    assert bucket(ns) - mine in (0, 1), (percentile, ns, end)
mean = sum_ns / every
print(f"mean: fio {lat['mean']:.0f} ns, histogram {mean:.0f} ns")
assert 0.8 * lat["mean"] < mean < lat["mean"], mean
PY
}
run() { # RW OPTION...
	local rw=$1
	shift
	fio --name=l --rw="$rw" --bs=4k --output-format=json --lat_percentiles=1 \
		--clat_percentiles=0 --percentile_list=50:90:99:99.9 "$@"
}

expect load modprobe hiops ram_disks=1 ram_size_mb=32 ram_latency_us=300 ram_queues=2 \
	ram_write_latency_us=1100 poll_queues=1
expect off-at-first reads $H/latency 0
expect empty-at-first test "$(cat $H/latency_read)" = "below_ns irq lazy coop poll nap
sum_ns 0 0 0 0 0"
refused two 'nvalid argument' put 2 $H/latency
refused no-reset 'nvalid argument' put 0 $H/latency_read
expect io-while-off run randrw --ioengine=psync --size=256k
same nothing-while-off "$(all)" 0
expect on put 1 $H/latency
expect is-on reads $H/latency 1
expect reset put reset $H/stats

# One thread, several, and a deep queue; by each way to notice a completion.
fits() { # NAME KIND [MOST]: as fio's, and every one under the context that has ended it
	expect "as-fio-$1" beside "$2" "${3:-99.9}"
	cat "$OUT" >&2
	for context in irq lazy poll; do
		same "$context-$1" "$(counted $context)" "$(stat completed_$context)"
	done
	same "coop-$1" "$(($(counted coop) + $(counted nap)))" "$(stat completed_coop)"
	same "all-$1" "$(all)" "$(stat completed)"
	expect "reset-$1" put reset $H/stats
	same "zeroed-$1" "$(all)" 0
}
expect irq put irq $H/mode
expect lazy-0 put 0 $H/lazy
expect one-thread run randread --ioengine=psync --size=1M
fits one-thread read
expect lazy-1 put 1 $H/lazy
expect threads run randwrite --ioengine=psync --size=128k --thread --numjobs=8 \
	--offset_increment=1M --group_reporting
fits threads write
expect hybrid put hybrid $H/mode
expect deep run randread --ioengine=io_uring --iodepth=16 --size=1M
# fio looks at several that have come together one after the other.
fits deep read 90
expect hipri run randread --ioengine=io_uring --hipri=1 --iodepth=4 --size=512k
fits hipri read
# A thread that naps by what is foretold has a column of its own.
expect predict put 1 $H/predict
expect naps run randread --ioengine=psync --size=2M
expect napped is "$(counted nap) > 0"
fits naps read
expect no-predict put 0 $H/predict

# What is under way as it is turned off and on again is not counted with another's time.
expect flush blkdiscard --length 64k $D
expect other is "$(column other irq) + $(column other lazy) + $(column other coop) > 0"
expect write-only put reset $H/latency_other
same reset-of-a-kind "$(column other irq) $(column other lazy) $(column other coop)" '0 0 0'
expect off put 0 $H/latency
before=$(all)
expect io-while-off-again run randrw --ioengine=psync --size=256k
same nothing-while-off-again "$(all)" "$before"
expect on-again put 1 $H/latency
expect io-while-on-again run randread --ioengine=psync --size=64k
same counted-while-on-again "$(all)" "$((before + 16))"
expect rmmod rmmod hiops
plan
