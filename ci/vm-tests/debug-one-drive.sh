#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The tests that need one drive of a kind or none, on the debug kernel, one after the other in one machine: to boot it takes as long as most of them.
# Each can still be run alone there: ci/check-vm NAME@debug.
# image: a.img 1G
# image: s.img 256M
# kernels: debug
# instead of: kunit@debug ram@debug nvme-io@debug nvme-unbind@debug ahci-io@debug faults@debug
# vm: --timeout 1800 --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a,discard=unmap -device nvme,serial=io-0,drive=a,addr=4"
# vm: --qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s,discard=unmap -device ich9-ahci,id=hba,addr=6 -device ide-hd,serial=sata-0,drive=s,bus=hba.0"
set -uo pipefail
bad=0
for name in kunit ram nvme-io nvme-unbind ahci-io faults; do
	echo "$name begins at $SECONDS s" >&2
	results=0
	while read -r line; do
		case $line in
		'ok '*) echo "ok $name: ${line#ok }" ;;
		'not ok '*) echo "not ok $name: ${line#not ok }" ;;
		*) continue ;;
		esac
		results=$((results + 1))
		[ "${line#not}" = "$line" ] || bad=1
	done < <("ci/vm-tests/$name.sh" || echo "not ok ended: status $?")
	[ "$results" -gt 0 ] || { echo "not ok $name: it told no result"; bad=1; }
done
echo "the last one ended at $SECONDS s" >&2
exit "$bad"
