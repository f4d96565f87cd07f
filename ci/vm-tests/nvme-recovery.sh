#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A drive that stops answering: after its time the controller is reset and brought back, what was in
# flight is tried again, and nothing fails. The log says what the controller was doing.
# host
# image: a.img 256M
# kernels: stock
# long: debug
if [ "${1:-}" = guest ]; then
	. ci/vm-tests/nvme-lib.sh
	D=/dev/hiops0n1
	stat_of() { count hiops0n1 "$1"; }
	expect bind "$BIND" "$PCI" hiops_nvme
	head -c 4M /dev/urandom >/run/data
	expect write dd if=/run/data of=$D bs=64k oflag=direct
	# A command has 30 s by default, which nobody needs to wait for.
	same default-time "$(cat /sys/block/hiops0n1/queue/io_timeout)" 30000
	echo 4000 >/sys/block/hiops0n1/queue/io_timeout
	echo host: stop answering
	# The load outlasts however long that takes.
	fio --name=r --filename=$D --direct=1 --ioengine=libaio --iodepth=8 --rw=randread --bs=4k \
		--offset=64M --size=64M --number_ios=2000 \
		--output-format=json --output=/run/fio.json >/dev/null 2>&1 &
	fio=$!
	recovered() { [ "$(stat_of resets)" -ge 1 ]; }
	expect reset until_true 90 recovered
	echo host: answer again
	expect fio-ends until_true 90 ended "$fio"
	expect fio-is-well wait "$fio"
	same none-failed "$(stat_of errors)" 0
	expect some-retried test "$(stat_of retried)" -ge 1
	all_over() { [ "$(stat_of submitted)" = "$(stat_of completed)" ]; }
	expect all-over until_true 5 all_over
	expect time-outs test "$(stat_of timeouts)" -ge 1
	told() { logged "hiops_nvme .*$1"; }
	expect asked told 'no answer to a Read of .*: it is asked to abort that'
	# QEMU aborts no command of an I/O queue.
	expect told told 'it does not abort that: resetting it; what it was told is tried again'
	expect told-the-status told 'it says that it is well: CSTS 0x1, CC 0x46'
	expect told-the-queue told 'queue [0-9]*: .*it is late'
	# All that were late together are one reset.
	same a-reset-each "$(dmesg | grep -c ': resetting it')" "$(stat_of resets)"
	expect reads-again cmp -n $((4 << 20)) /run/data $D
	expect writes-again dd if=/run/data of=$D bs=64k seek=100 oflag=direct
	expect admin-again sh -c "nvme id-ctrl $D | grep -q rec0"
	# What the drive reports by itself, also after a reset: to the log and to programs.
	python3 -c "
import socket
events = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)
events.bind((0, 1))
open('/run/listens', 'w')
while b'NVME_AEN=0x02' not in (event := events.recv(65536)): pass
open('/run/uevent', 'wb').write(event.replace(b'\\0', b'\\n'))" &
	expect listens until_true 60 test -e /run/listens
	echo host: overheat
	expect warned until_true 60 told \
		'critical warning: its temperature is beyond a threshold (0x02'
	expect uevent until_true 60 grep -q "^DEVPATH=.*$PCI" /run/uevent
	expect unbind "$BIND" "$PCI" nvme
	expect in-tree-reads cmp -n $((4 << 20)) /run/data "/dev/$(disk_of "$PCI")"
	plan
	exit
fi

set -uo pipefail
qmp() { ci/in-root python3 ci/vm-tests/qmp.py "$DIR/qmp" "$@" >&2; }
# set_property PATH PROPERTY VALUE: of an object of QEMU's.
set_property() { qmp qom-set "{\"path\": \"$1\", \"property\": \"$2\", \"value\": $3}"; }
warn() { set_property /machine/peripheral/rec smart_critical_warning "$1"; }
limit() { set_property /objects/tg limits "{\"iops-total\": $1}"; }
ci/vm --kernel "$KERNEL" --timeout 600 --qmp "$DIR/qmp" \
	--qemu "-object throttle-group,id=tg" \
	--qemu "-blockdev driver=file,filename=$DIR/a.img,node-name=f" \
	--qemu "-blockdev driver=throttle,throttle-group=tg,file=f,node-name=a" \
	--qemu "-device nvme,id=rec,serial=rec0,drive=a,addr=4" -- "$0" guest |
	while read -r line; do
		case $line in
		'host: stop answering') limit 1 ;;
		'host: answer again') limit 0 ;;
		'host: overheat') warn 2 ;;
		*) echo "$line" ;;
		esac
	done
exit "${PIPESTATUS[0]}"
