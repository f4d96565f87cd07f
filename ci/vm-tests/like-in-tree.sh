#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What a disk says of itself in queue/ is what the in-tree driver's disk of the same drive says;
# where not, the difference and its reason are in the table below, and in docs/operator.md. Disks
# and partitions take the ioctls of tools as there, for each who may ask.
# image: a.img 512M
# image: s.img 256M
# image: b.img 128M
# image: d.img 128M
# image: f.img 128M
# vm: --timeout 1200 --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a,discard=unmap"
# vm: --qemu "-device nvme,serial=alike,drive=a,addr=4"
# vm: --qemu "-drive file=$DIR/b.img,format=raw,if=none,id=b,discard=unmap"
# vm: --qemu "-device nvme,id=fourk,serial=b,drive=b,addr=8,mdts=9"
# vm: --qemu "-set device.fourk.logical_block_size=4k -set device.fourk.physical_block_size=4k"
# vm: --qemu "-drive file=$DIR/d.img,format=raw,if=none,id=d,discard=unmap"
# vm: --qemu "-device nvme,serial=d,drive=d,addr=a,logical_block_size=16k,physical_block_size=16k"
# vm: --qemu "-drive file=$DIR/f.img,format=raw,if=none,id=f,discard=unmap"
# vm: --qemu "-device nvme-subsys,id=sub,fdp=on,fdp.nruh=4,fdp.nrg=1,fdp.runs=16M"
# vm: --qemu "-device nvme,id=fc,serial=f,subsys=sub,addr=b"
# vm: --qemu "-device nvme-ns,drive=f,bus=fc,nsid=1,shared=off,fdp.ruhs=0;1;2;3"
# vm: --qemu "-device nvme-subsys,id=many -device nvme,id=v,serial=v,subsys=many,addr=c"
# vm: --qemu "-set device.v.sriov_max_vfs=2 -set device.v.sriov_vq_flexible=4"
# vm: --qemu "-set device.v.sriov_vi_flexible=2"
# vm: --qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s,discard=unmap"
# vm: --qemu "-device ich9-ahci,id=hba,addr=6"
# vm: --qemu "-device ide-hd,serial=sata-0,drive=s,bus=hba.0,rotation_rate=1"
. ci/vm-tests/nvme-lib.sh
SATA=0000:00:06.0

# What may differ: the disk, the file, and how (hiops' value as against the in-tree driver's, 0
# meaning no limit where a file says so). A row of nvme is of all NVMe drives.
allowed='
nvme max_segments less
nvme max_discard_segments less
nvme max_integrity_segments 0,any
nvme-streams max_write_streams 0,any
nvme-streams write_stream_granularity 0,any
sata nr_requests more
sata async_depth more
sata scheduler [none] mq-deadline,none [mq-deadline]
sata max_segments more
sata max_segment_size more
sata dma_alignment less
sata discard_max_bytes less
sata discard_max_hw_bytes less
sata max_discard_segments more
'
# told DISK FILE: what each file of its queue says, a line each.
told() {
	local file line
	for file in "/sys/block/$1/queue/"* \
		"/sys/block/$1/"{alignment_offset,discard_alignment,range,ext_range} \
		"/sys/block/$1/"{removable,ro,size}; do
		[ -f "$file" ] && [ -r "$file" ] && read -r -a line <"$file" &&
			echo "${file##*/} ${line[*]}"
	done >"$2"
}
# compare KIND HIOPS IN-TREE
compare() {
	local file ours theirs how differ=0 row
	local -A told_there may_differ
	while read -r file theirs; do told_there[$file]=$theirs; done <"$3"
	while read -r row file how; do
		[ "$row" != "$1" ] && [ "$row" != "${1%-*}" ] || may_differ[$file]=$how
	done <<<"$allowed"
	while read -r file ours; do
		theirs=${told_there[$file]:-}
		echo "$1 $file: $ours, in tree $theirs" >&2
		how=${may_differ[$file]:-}
		case $how in
		'') [ "$ours" = "$theirs" ] ;;
		less) [ "$ours" -le "$theirs" ] ;;
		more) [ "$ours" -ge "$theirs" ] ;;
		*,any) [ "$ours" = "${how%,*}" ] ;;
		*) [ "$ours,$theirs" = "$how" ] ;;
		esac || { not_ok "$1-$file" "'$ours', in tree '$theirs'"; differ=1; }
	done <"$2"
	same "$1-files" "$(cut -d' ' -f1 "$2" | paste -sd' ')" \
		"$(cut -d' ' -f1 "$3" | paste -sd' ')"
	same "$1-alike" $differ 0
}

# answers FILE WORD...: what it says, and then how it takes each word, and what it says then.
answers() {
	local file=$1 word why
	cat "$file"
	for word in "${@:2}"; do
		why=$( (echo "$word" >"$file") 2>&1) && why=taken
		echo "$word: ${why##*: }, $(cat "$file")"
	done
}
policies=(max_performance medium_power med_power_with_dipm min_power_with_partial min_power)
policies+=(keep_firmware_settings MIN_POWER '')
# flushes DISK: whether what is written is flushed on demand.
flushes() {
	local before after
	read -r -a before <"/sys/block/$1/stat"
	dd if=/dev/zero "of=/dev/$1" bs=4k count=1 oflag=direct conv=fsync,notrunc status=none ||
		return
	read -r -a after <"/sys/block/$1/stat"
	echo $((after[15] > before[15]))
}
# view DISK: how queue/write_cache takes words, and whether that is heeded.
view() {
	local word
	for word in 'write through' 'write back' none 'write back' nonsense; do
		answers "/sys/block/$1/queue/write_cache" "$word"
		echo "flushes: $(flushes "$1")"
	done
}

# ioctls KIND DISK: how the disk, a partition, and one beyond the minors of a SCSI disk take the
# ioctls of tools: of root, of root with fewer rights, and of somebody who may read.
ioctls() {
	local last nodes who
	sfdisk -q --wipe always "/dev/$2" < <(echo label: gpt; printf 'size=1M\n%.0s' {1..17}) ||
		return
	last=/dev/$(basename "$(compgen -G "/sys/block/$2/$2*17")")
	nodes=("/dev/$2" "${last%17}1" "$last")
	until_true 60 test -b "$last" && chmod a+r "${nodes[@]}" || return
	for who in '' --bounding-set=-sys_admin --bounding-set=-sys_rawio --reuid=nobody; do
		# shellcheck disable=SC2086 # a word, or none
		setpriv $who --clear-groups python3 - "$1" "${nodes[@]}" <ci/vm-tests/ioctls.py |
			sed "s/^/${who#--}: /"
	done
	chmod a-r "${nodes[@]}"
}
# What may differ: hiops' I/O commands are for administrators, while in tree who may read a disk may
# have it read (by NVME_IOCTL_IO_CMD of a partition, too, and beyond it); and somebody who may send
# no command of that kind is told what becomes of one that there is none of.
OTHERWISE='(-sys_admin|=nobody): (0 read|. read:)|(-sys_rawio|=nobody): . no command'
modprobe sd_mod
expect in-tree-nvme "$BIND" $PCI nvme
until_true 60 disk_of $PCI
# heat: what monitoring is told of a controller's temperature: each file's name and what it says.
heat() {
	local file line
	for file in "/sys/bus/pci/devices/$PCI/"{,nvme/*/}hwmon*/{,hwmon*/}{name,temp*_*}; do
		[ ! -f "$file" ] || { read -r line <"$file" && echo "${file##*/} $line"; }
	done
}
theirs=$(heat | grep -v -e _min -e _max)
their_nvme=$(ioctls nvme "$(disk_of $PCI)")
told "$(disk_of $PCI)" /run/nvme.theirs
expect in-tree-ahci "$BIND" $SATA ahci
until_true 60 disk_of $SATA
told "$(disk_of $SATA)" /run/sata.theirs
their_sata=$(ioctls sata "$(disk_of $SATA)")
# The write cache, as a tool has turned it off and on.
cache() { reads "/sys/block/$1/queue/write_cache" "$2"; }
disk=$(disk_of $SATA)
path=$(readlink -f "/sys/block/$disk")
policy=$(echo "${path%%/target*}"/scsi_host/host*/link_power_management_policy)
their_policies=$(answers "$policy" "${policies[@]}")
their_view=$(view "$disk")
depths=(1 0 33 8 32 many '')
their_depth=$(answers "/sys/block/$disk/device/queue_depth" "${depths[@]}")
type=/sys/class/scsi_disk/$(basename "$(readlink -f "/sys/block/$disk/device")")/cache_type
their_type=$(answers "$type" 'write through' 'write back')
expect in-tree-cache-off hdparm -W0 "/dev/$disk"
expect in-tree-no-cache until_true 20 cache "$disk" 'write through'
expect in-tree-cache-on hdparm -W1 "/dev/$disk"
expect in-tree-cache until_true 20 cache "$disk" 'write back'
# In tree the block layer's view stays what it was said to be, whatever becomes of the cache.
expect in-tree-view put 'write through' "/sys/block/$disk/queue/write_cache"
expect in-tree-off-again hdparm -W0 "/dev/$disk"
expect in-tree-on-again hdparm -W1 "/dev/$disk"
expect in-tree-type until_true 20 reads "$type" 'write back'
same in-tree-view-stays "$(cat "/sys/block/$disk/queue/write_cache")" 'write through'
same in-tree-no-flushes "$(flushes "$disk")" 0

expect nvme "$BIND" $PCI hiops_nvme
same heat "$(heat | grep -v _max)" "$theirs"
told hiops0n1 /run/nvme.ours
alike() {
	local theirs ours
	theirs=$(grep -vE -e "$OTHERWISE" <<<"$2") ours=$(grep -vE -e "$OTHERWISE" <<<"$3")
	expect "$1-of-both" test "$(wc -l <<<"$theirs")" -gt 140
	same "$1" "$(diff <(echo "$theirs") <(echo "$ours"))" ''
}
our_nvme=$(ioctls nvme hiops0n1)
alike nvme-ioctls "$their_nvme" "$our_nvme"
compare nvme /run/nvme.ours /run/nvme.theirs
# Drives of other kinds: blocks of 4 and of 16 KiB, transfers of 2 MiB (mdts=9, QEMU's most), FDP.
other() { # KIND ADDRESS
	local address=0000:00:$2.0
	expect "in-tree-$1" "$BIND" "$address" nvme
	until_true 60 disk_of "$address"
	told "$(disk_of "$address")" "/run/$1.theirs"
	expect "$1" "$BIND" "$address" hiops_nvme
	told "$(disk_of "$address")" "/run/$1.ours"
	compare "$1" "/run/$1.ours" "/run/$1.theirs"
	expect "$1-none" "$BIND" "$address" none
}
other nvme-4k 08
same transfers "$(sed -n 's/^max_hw_sectors_kb //p' /run/nvme-4k.ours)" 2048
other nvme-16k 0a
other nvme-streams 0b
# virtual DRIVER: how sriov_numvfs takes numbers, and which functions there are then; those go with
# the last 0, and are nobody's.
virtual() {
	local at=/sys/bus/pci/devices/0000:00:0c.0 number why
	# It has no disk that could be waited for.
	"$BIND" 0000:00:0c.0 "$1" >/dev/null 2>&1
	[ "$(basename "$(readlink $at/driver)")" = "$1" ] || return
	echo 0 >$at/sriov_drivers_autoprobe
	for number in 1 2 0 3 2 nonsense; do
		why=$( (echo "$number" >$at/sriov_numvfs) 2>&1) && why=taken
		echo "$number: ${why##*: }, $(cat $at/sriov_numvfs)," \
			"$(cd $at && compgen -G 'virtfn*' | paste -sd' ')"
	done
	echo 0 >$at/sriov_numvfs
	"$BIND" 0000:00:0c.0 none
}
virtual nvme >/run/virtual
says virtual-in-tree '1: taken, 1, virtfn0' cat /run/virtual
same virtual "$(virtual hiops_nvme)" "$(cat /run/virtual)"
expect ahci "$BIND" $SATA hiops_ahci
disk=$(disk_of $SATA)
told "$disk" /run/sata.ours
our_sata=$(ioctls sata "$disk")
alike sata-ioctls "$their_sata" "$our_sata"
compare sata /run/sata.ours /run/sata.theirs
expect cache-off hdparm -W0 "/dev/$disk"
same no-cache "$(cat "/sys/block/$disk/queue/write_cache")" 'write through'
same no-fua "$(cat "/sys/block/$disk/queue/fua")" 0
expect cache-on hdparm -W1 "/dev/$disk"
same cache "$(cat "/sys/block/$disk/queue/write_cache")" 'write back'

# Link power management, which neither this controller nor QEMU's drives have.
hiops=/sys/block/$disk/hiops
same policies "$(answers "$hiops/link_power_management_policy" "${policies[@]}")" "$their_policies"
same policies-first "$(head -n 1 <<<"$their_policies")" max_performance
same policies-not "$(sed -n 2p <<<"$their_policies")" \
	'max_performance: Operation not supported, max_performance'
told_why() {
	logged 'its link does not become min_power: the controller has neither Partial nor'
}
expect policies-why told_why
expect no-policy-of-nvme absent /sys/block/hiops0n1/hiops/link_power_management_policy
expect no-cache-of-nvme absent /sys/block/hiops0n1/hiops/cache_type
# How many commands it is given at once.
same depth "$(answers "$hiops/queue_depth" "${depths[@]}")" "$their_depth"
same depth-first "$(head -n 1 <<<"$their_depth")" 32
expect no-depth-of-nvme absent /sys/block/hiops0n1/hiops/queue_depth
# The cache in the block layer's view.
same view "$(view "$disk")" "$their_view"
# The drive's own cache.
same cache-type "$(answers "$hiops/cache_type" 'write through' 'write back')" "$their_type"
nonsense='write back, no read (daft)'
same cache-type-nonsense "$(answers "$hiops/cache_type" write "$nonsense")" "write back
write: Invalid argument, write back
$nonsense: Invalid argument, write back"
drive_says() { grep -q "write-caching = *$1" <<<"$(hdparm -W "/dev/$disk")"; }
for word in 'write through' 'write back' 'write back' 'write through'; do
	expect "cache-type-$word" put "$word" "/sys/block/$disk/hiops/cache_type"
	same "queue-$word" "$(cat "/sys/block/$disk/queue/write_cache")" "$word"
	on=$([ "$word" = 'write through' ] || echo 1)
	expect "drive-$word" drive_says "${on:-0}"
	same "flushes-$word" "$(flushes "$disk")" "${on:-0}"
done
# What is off stays off when the port is reset.
expect reset put 1 "/sys/block/$disk/hiops/reset_controller"
expect reset-drive drive_says 0
same reset-cache "$(cat "$hiops/cache_type")" 'write through'
same reset-view "$(cat "/sys/block/$disk/queue/write_cache")" 'write through'
# Who has said that no flushes are needed has said so of the cache that was.
expect cache-back put 'write back' "/sys/block/$disk/hiops/cache_type"
for how in "hdparm -W1 /dev/$disk" "put 1 $hiops/rescan_controller" \
	"put write\ back $hiops/cache_type"; do
	expect view-through put 'write through' "/sys/block/$disk/queue/write_cache"
	same no-flushes "$(flushes "$disk")" 0
	expect "${how%% *}" eval "$how"
	expect "view-after-${how##*/}" until_true 20 cache "$disk" 'write back'
	same "flushes-after-${how##*/}" "$(flushes "$disk")" 1
done

# What is discarded is, and nothing else.
for disk in hiops0n1 "$disk"; do
	expect "$disk-pattern" fio --name=p --filename=/dev/$disk --direct=1 --rw=write --bs=64k \
		--size=16M --verify=pattern --verify_pattern=0x5a --do_verify=0
	expect "$disk-trim" fio --name=t --filename=/dev/$disk --direct=1 --ioengine=libaio \
		--iodepth=32 --iodepth_batch=32 --rw=randtrim --bs=4k --size=16M --io_size=4M
	same "$disk-errors" "$(count "$disk" errors)" 0
	expect "$disk-rest" python3 -c "
data = open('/dev/$disk', 'rb').read(16 << 20)
blocks = [data[at:at + 4096] for at in range(0, len(data), 4096)]
assert all(b in (b'\x5a' * 4096, bytes(4096)) for b in blocks)
assert blocks.count(b'\x5a' * 4096) == 3072"
done
# Many ranges of a discard are one command: XFS discards what it has freed in one plug. The files
# beside it stay.
mkdir -p /run/fs
merged() { local stat; read -r -a stat </sys/block/hiops0n1/stat && [ "${stat[12]}" -gt 0 ]; }
expect mkfs mkfs.xfs -f -q /dev/hiops0n1
expect mount mount -o discard /dev/hiops0n1 /run/fs
expect files python3 ci/vm-tests/small-files.py write /run/fs
sync -f /run/fs
expect merged until_true 60 merged
echo 3 >/proc/sys/vm/drop_caches
expect files-beside python3 ci/vm-tests/small-files.py read /run/fs
expect umount umount /run/fs
expect sound xfs_repair -n /dev/hiops0n1
same no-errors "$(count hiops0n1 errors)" 0
expect none "$BIND" $PCI none
expect none-ahci "$BIND" $SATA none
expect rmmod rmmod hiops
plan
