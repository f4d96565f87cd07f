#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# hdparm, smartctl and udev's ata_id on a SATA drive served by hiops: what they say, what is refused
# and to whom, and I/O beside them.
# image: s.img 256M
# kernels: stock
# long: debug
# vm: --timeout 900 --qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s,discard=unmap"
# vm: --qemu "-device ich9-ahci,id=hba,addr=6 -device ide-hd,serial=sata-0,drive=s,bus=hba.0"
. ci/vm-tests/nvme-lib.sh
PCI=0000:00:06.0
D=/dev/hiops0d0
# told NAME TEXT: what the last `expect` ran said that.
told() { if grep -qE -- "$2" "$OUT"; then ok "$1"; else not_ok "$1" "it does not say '$2'"; fi; }
# ata PROTOCOL FLAGS COMMAND COUNT: an ATA PASS-THROUGH (16) of these bytes. sg CDB ...: see sg.py;
# `once` is a process of its own, run by `AS`.
ata() { printf '85%s%s000000%s00000000000040%s00' "$1" "$2" "$4" "$3"; }
AS=()
once() { "${AS[@]}" python3 - $D "$@" <ci/vm-tests/sg.py; }
coproc SG { exec python3 ci/vm-tests/sg.py $D; }
# A coprocess's own are not for subshells.
exec {to_sg}>&"${SG[1]}" {from_sg}<&"${SG[0]}"
sg() {
	local answer
	echo "$*" >&"$to_sg"
	read -r answer <&"$from_sg" && echo "$answer"
}
# Root without a capability; and somebody who may read the disk, and no more.
without() { setpriv --bounding-set="-$1" --inh-caps="-$1" "${@:2}"; }
somebody() { setpriv --reuid=nobody --clear-groups "$@"; }

# What udev would load for the in-tree driver's disk.
modprobe sd_mod
expect bind "$BIND" "$PCI" hiops_ahci
chmod a+r $D

# What the tools say: by ATA PASS-THROUGH of 16 and of 12 bytes, and by the older ioctls.
expect hdparm hdparm -I $D
told hdparm-model 'Model Number: *QEMU HARDDISK'
told hdparm-serial 'Serial Number: *sata-0'
expect hdparm-old hdparm -i $D
told hdparm-old-identity 'Model=QEMU HARDDISK, .*SerialNo=sata-0'
expect hdparm-geometry hdparm -g $D
told hdparm-cylinders 'geometry *= 256/64/32, sectors = 524288, start = 0'
expect hdparm-power hdparm -C $D
told hdparm-power-state 'active/idle'
for type in ata sat sat,12; do
	expect "smartctl-$type" smartctl -a -d $type $D
	told "smartctl-$type-serial" 'Serial Number: *sata-0'
	told "smartctl-$type-health" 'self-assessment test result: PASSED'
done
expect smartctl smartctl -H $D
told smartctl-health 'self-assessment test result: PASSED'
expect self-test smartctl -t short -d sat $D
expect self-test-log smartctl -l selftest -d ata $D
told self-tested '# *1 *Short offline'
expect ata-id /usr/lib/udev/ata_id --export $D
told ata-id-serial ID_SERIAL=QEMU_HARDDISK_sata-0

# IDENTIFY DEVICE; then with no data, data the other way, less or more than can be, in pieces, from
# and to where nothing is.
identify=$(ata 08 0e ec 01)
wrong=7205240000000000
first="good $(sg "$identify" 512 | cut -d' ' -f2)"
same identify "${first:0:9}" 'good 4000'
same no-data "$(sg "$identify")" $wrong
same wrong-way "$(sg "$identify" -512)" $wrong
same too-little "$(sg "$identify" 511)" $wrong
same odd "$(sg "$identify" 513)" $wrong
same most "$(sg "$identify" $((2 << 20)))" "$first"
same too-much "$(sg "$identify" $(((2 << 20) + 1)))" EINVAL
same in-pieces "$(sg "$identify" 512 iovec_count=1)" EINVAL
same no-version-3 "$(sg "$identify" 512 interface_id=81)" EINVAL
same no-command "$(sg "$identify" 512 cmdp=8)" EFAULT
same no-room "$(sg "$identify" 512 dxferp=8)" EFAULT
same no-room-for-sense "$(sg "$identify" 0 sbp=8)" EFAULT
# Registers that are wanted though nothing failed: CHECK POWER MODE says 0xff.
same registers "$(sg "$(ata 06 20 e5 00)")" 7201001d0000000e090c000000ff0000000000004050
same some-of-them "$(sg "$(ata 06 20 e5 00)" 0 mx_sb_len=4)" 7201001d
same none-of-them "$(sg "$(ata 06 20 e5 00)" 0 sbp=0)" ''
# What else of SCSI there is, and is not.
same inquiry "$(sg 120000002400 36)" 'good 000005025b0000024154412020202020'
same ready "$(sg 000000000000)" good
same pages "$(sg 120100002400 36)" 'good 0000000700808389b0b1b2'
same page-of-serial "$(sg 120180002400 36)" 'good 00800014736174612d30202020202020'
same page-of-names "$(sg 12018300ff00 255 | cut -c 1-21)" 'good 0083006002000014'
same page-of-ata "$(sg 120189023c00 572)" 'good 008902380000000068696f7073202020'
same page-of-limits "$(sg 1201b0004000 64)" 'good 00b0003c000000010000000000000000'
same page-of-none "$(sg 1201c0004000 64)" $wrong
same capacity "$(sg 25000000000000000000 8)" 'good 0007ffff00000200'
same long-capacity "$(sg 9e100000000000000000000000200000 32)" \
	'good 000000000007ffff0000020000008000'
same caching "$(sg 1a0008004000 64)" 'good 1f000008000800000000020008120400'
same control "$(sg 5a080a00000000004000 64)" 'good 00120000000000000a0a061000000000'
same saved "$(sg 1a00c8004000 64)" 7205390000000000
same sense "$(sg 030000001200 18)" 'good 700000000000000a0000000000000000'
same flush "$(sg 35000000000000000000)" good
same flush-16 "$(sg 91000000000000000000000000000000)" good
same scsi-read "$(sg 28000000000000000100 512)" 7205200000000000
# READ FPDMA QUEUED is the driver's own, whatever it is called. READ LOG EXT is not known to this
# drive.
same queued-read "$(sg "$(ata 18 0e 60 01)" 512)" $wrong
same queued-as-other "$(sg "$(ata 08 0e 60 01)" 512)" $wrong
same unknown "$(sg "$(ata 09 0e 2f 01)" 512)" 720b00000000000e090c010400000000000000000041

# Who may: raw I/O takes a capability, to be told what the disk is does not.
same no-raw-io "$(AS=(without sys_rawio) && once "$identify" 512)" EPERM
same raw-io-alone "$(AS=(without sys_admin) && once "$identify" 512)" "$first"
same somebody "$(AS=(somebody) && once "$identify" 512)" EPERM
if somebody smartctl -H -d ata $D >"$OUT" 2>&1; then
	not_ok somebodys-smartctl "it worked"
else
	ok somebodys-smartctl
fi
told refusal 'Permission denied'
# It fails over what it asks for besides.
somebody hdparm -i $D >"$OUT" 2>&1 || :
told somebodys-identity 'Model=QEMU HARDDISK'

# A partition's node does as its disk's, for who may send raw commands.
partitions() { sfdisk -q $D <<<'size=64M' && until_true 60 test -b ${D}p1 && chmod a+r ${D}p1; }
expect partitions partitions
expect partition-hdparm hdparm -I ${D}p1
told partition-serial 'Serial Number: *sata-0'
expect partition-smartctl smartctl -H -d sat ${D}p1
told partition-health 'self-assessment test result: PASSED'
if somebody hdparm -i ${D}p1 >"$OUT" 2>&1; then
	not_ok somebodys-partition "it worked"
else
	told somebodys-partition 'Inappropriate ioctl'
fi

# I/O beside them, which goes on, and is right.
write_and_verify() {
	until [ -e "$ENOUGH" ]; do
		fio --name=v --filename=$D --direct=1 --ioengine=libaio --iodepth=64 \
			--rw=randwrite --size="$(on_debug 2M 16M)" --bsrange=512-64k \
			--blockalign=512 \
			--verify=crc32c --verify_fatal=1 --fsync=32 --minimal || return
	done
}
# hdparm asks for a log that this drive does not have: errors of tools are not the I/O's.
SETTINGS=/sys/block/hiops0d0/hiops
# The drive's cache is turned off and on, its queue is shortened, turned off and on, and its link is
# to sleep, which this one's can't.
settings() {
	put 'write through' $SETTINGS/cache_type && reads $SETTINGS/cache_type 'write through' &&
		put 3 $SETTINGS/queue_depth && put 1 $SETTINGS/queue_depth &&
		reads $SETTINGS/queue_depth 1 &&
		put 'write back' $SETTINGS/cache_type && put 32 $SETTINGS/queue_depth &&
		reads /sys/block/hiops0d0/queue/write_cache 'write back' &&
		! put min_power $SETTINGS/link_power_management_policy &&
		reads $SETTINGS/link_power_management_policy max_performance
}
all_tools() {
	hdparm -I $D && smartctl -H -d ata $D && settings && [ "$(sg "$identify" 512)" = "$first" ]
}
recoveries() { dmesg | grep -c 'recovered from errors'; }
before=$(recoveries)
write_and_verify >/run/verified 2>&1 &
job=$!
for ((round = $(on_debug 2 10); round > 0; round--)); do all_tools >"$OUT" 2>&1 || break; done
same rounds-left $round 0
same recoveries "$(recoveries)" "$before"
touch "$ENOUGH"
expect fio-verify wait $job
same no-trouble "$(count hiops0d0 errors)$(count hiops0d0 timeouts)$(count hiops0d0 resets)" 000
# The disk is taken away while its files are written to.
turn() {
	while put 'write through' $SETTINGS/cache_type; do
		put 'write back' $SETTINGS/cache_type || return 0
	done
}
turn 2>/dev/null &
turner=$!
until_true 60 reads /sys/block/hiops0d0/hiops/cache_type 'write through'
expect none "$BIND" "$PCI" none
expect turner-ended until_true 60 ended $turner
expect rmmod rmmod hiops
plan
