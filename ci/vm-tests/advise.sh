#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# hiopsctl advise on emulated drives: --ab measures an NVMe and a SATA drive and gives them back,
# reads only, keeps others off meanwhile, refuses a mounted drive, and hands back at ^C.
# host
# kernels: none
# long: stock
if [ "${1:-}" != guest ]; then
	. ci/lib.sh
	. ci/report.sh
	if ! bin=$("$CI/hiopsctl"); then
		not_ok build "hiopsctl does not build"
		plan
		exit
	fi
	truncate -s 64M "$DIR/a.img" "$DIR/b.img" "$DIR/s.img"
	exec ci/vm --kernel "$KERNEL" --cpus 2 --timeout 2400 \
		--qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a" \
		--qemu "-device nvme,serial=nvme-a,drive=a,addr=4" \
		--qemu "-drive file=$DIR/b.img,format=raw,if=none,id=b" \
		--qemu "-device nvme,serial=nvme-b,drive=b,addr=5" \
		--qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s" \
		--qemu "-device ich9-ahci,id=hba,addr=6" \
		--qemu "-device ide-hd,serial=sata-0,drive=s,bus=hba.0" \
		-- "$REPO/ci/vm-tests/advise.sh" guest "$bin"
fi

. ci/vm-tests/guest-lib.sh
# As installed: the tools are found beside it.
BIN=/run/bin
mkdir $BIN
cp "$2" tools/hiops-{bind,users} $BIN/
ctl() { "$BIN/hiopsctl" "$@"; }
NVME=0000:00:04.0
MOUNTED=0000:00:05.0
SATA=0000:00:06.0
driver_of() { basename "$(readlink "/sys/bus/pci/devices/$1/driver")"; }
driven() { [ "$(driver_of "$1")" = "$2" ]; }
disk_of() { # ADDRESS
	ctl list --json | jq -re --arg at "$1" '.controllers[] | select(.address == $at) |
		.disks[0].name'
}
modprobe -a nvme ahci sd_mod
for address in $NVME $MOUNTED $SATA; do until_true 60 disk_of $address; done
n=$(disk_of $NVME) m=$(disk_of $MOUNTED) s=$(disk_of $SATA)
# Something on it that is not all alike, and can be mounted.
for disk in "$n" "$m" "$s"; do
	dd if=/dev/urandom of="/dev/$disk" bs=1M status=none 2>/dev/null
	mkfs.ext4 -qF "/dev/$disk"
done
sum() { dd if="/dev/$(disk_of "$1")" bs=1M iflag=direct status=none | sha256sum; }
nvme_sum=$(sum $NVME) sata_sum=$(sum $SATA)

# Under load, and without.
says advises "$n: no difference: nothing was read or written" ctl advise -i 1
command fio --name=load --filename="/dev/$s" --readonly --rw=randread --bs=4k --direct=1 \
	--ioengine=psync --numjobs=4 --thread --time_based --runtime=3600 --output="$OUT.fio" &
load=$!
until_true 60 sh -c "[ \"\$(tr -d ' 0' </sys/block/$s/inflight)\" ]"
# QEMU's disk says that it rotates.
echo 0 >"/sys/block/$s/queue/rotational"
says advises-sata "$s: yes: SATA" ctl advise -i 2
says advises-who "fio ($load)" ctl advise -i 1
kill $load
wait $load 2>/dev/null

# A drive in use is refused, and stays what it is.
mount "/dev/$m" /mnt
mkdir /run/pages
refused mounted "$MOUNTED is not touched: /dev/$m is mounted on /mnt" \
	ctl advise --ab "$m" --pages /run/pages
same mounted-stays "$(driver_of $MOUNTED)" nvme
expect mounted-not-loaded absent /sys/module/hiops
expect mounted-writes dd if=/dev/zero of=/mnt/file bs=4k count=1 oflag=direct status=none
umount /mnt
refused unprivileged 'run it as root' \
	setpriv --reuid=65534 --regid=65534 --clear-groups "$BIN/hiopsctl" advise --ab "$n" \
	--pages /tmp
same mounted-left-no-page "$(ls -A /run/pages)" ''

# ^C, while hiops has it: nobody else can mount it until then, and it goes back.
"$BIN/hiopsctl" advise --ab "$n" --runs 3 --seconds 1 --pages /run/pages >"$OUT.ab" 2>&1 &
ab=$!
until_true 600 driven $NVME hiops_nvme
until_true 120 grep -q "hiops_nvme, run 1 of" "$OUT.ab"
expect hiops-has-it driven $NVME hiops_nvme
refused not-mounted-meanwhile "Can't open blockdev" sh -c "mount -o ro /dev/hiops0n1 /mnt || exit 1"
refused not-bound-meanwhile 'is open in' $BIN/hiops-bind $NVME nvme
kill -INT $ab
wait $ab
same interrupted-status $? 1
says interrupted 'hiopsctl: it was interrupted' cat "$OUT.ab"
same interrupted-back "$(driver_of $NVME)" nvme
expect no-fio-left sh -c '! pgrep -x fio'
same interrupted-left-no-page "$(ls -A /run/pages)" ''
same interrupted-sum "$(sum $NVME)" "$nvme_sum"

# To the end.
measure() { # NAME ADDRESS DRIVER SUM
	local name=$1 address=$2 driver=$3 disk scheduler
	disk=$(disk_of "$address")
	scheduler=$(cat "/sys/block/$disk/queue/scheduler")
	expect "$name" ctl advise --ab "$disk" --runs 3 --seconds 1 --pages /run/pages
	cat "$OUT" >&2
	says "$name-answers" 'Is hiops worth it for reads of this drive?' \
		cat "/run/pages/hiops-advise-$disk.txt"
	expect "$name-page" jq -e '(.loads | length) == 5 and .runs == 3 and
		all(.loads[]; .in_tree.iops.median > 0 and .hiops.iops.median > 0 and
			.in_tree_again.iops.median > 0 and .hiops.cpu_us_per_io.median > 0)' \
		"/run/pages/hiops-advise-$disk.json"
	expect "$name-picture" python3 -c 'import sys, xml.etree.ElementTree as tree
assert len(tree.parse(sys.argv[1]).getroot()) > 20' "/run/pages/hiops-advise-$disk.svg"
	same "$name-back" "$(driver_of "$address")" "$driver"
	disk=$(disk_of "$address")
	same "$name-scheduler" "$(cat "/sys/block/$disk/queue/scheduler")" "$scheduler"
	same "$name-sum" "$(sum "$address")" "$4"
}
measure nvme $NVME nvme "$nvme_sum"
measure sata $SATA ahci "$sata_sum"
# None of it has met the other drive.
same mounted-driver "$(driver_of $MOUNTED)" nvme
expect mounted-again mount "/dev/$m" /mnt
umount /mnt
expect rmmod rmmod hiops
plan
