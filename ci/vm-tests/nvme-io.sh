#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One NVMe drive served by hiops: identity, data, a file system, the tools, the edges of its range.
# image: a.img 1G
# kernels: stock oldest
# long: debug
# vm: --timeout 900 --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a,discard=unmap"
# vm: --qemu "-device nvme,serial=io-0,drive=a,addr=4"
. ci/vm-tests/nvme-lib.sh
D=/dev/hiops0n1
S=/sys/block/hiops0n1

expect bind "$BIND" "$PCI" hiops_nvme
expect disk test -b $D
same size "$(blockdev --getsize64 $D)" $((1 << 30))
same serial "$(tr -d ' ' <$S/serial)" io-0
same model "$(sed 's/ *$//' $S/model)" "QEMU NVMe Ctrl"
same nsid "$(cat $S/nsid)" 1
expect firmware grep -q . $S/firmware_rev
expect wwid grep -q . $S/wwid
same parent "$(basename "$(readlink $S/device)")" "$PCI"
same no-elevator "$(sed -n 's/.*\[\(.*\)\].*/\1/p' $S/queue/scheduler)" none
same write-cache "$(cat $S/queue/write_cache)" "write back"
same fua "$(cat $S/queue/fua)" 1
expect discard test "$(cat $S/queue/discard_max_bytes)" -gt 0
expect write-zeroes test "$(cat $S/queue/write_zeroes_max_bytes)" -gt 0

# Data: random offsets and sizes, many in flight, read back and compared.
expect fio-verify fio --name=v --filename=$D --direct=1 --ioengine=libaio --iodepth=32 --numjobs=4 \
	--rw=randwrite --size="$(on_debug 4M 16M)" \
	--offset_increment=32M --bsrange=512-1M --blockalign=512 --verify=crc32c --verify_fatal=1 \
	--do_verify=1 --fsync=64 --group_reporting --minimal
expect fio-buffered fio --name=b --filename=$D --ioengine=psync --rw=randrw \
	--size="$(on_debug 2M 8M)" --bsrange=512-64k --blockalign=512 \
	--verify=crc32c --verify_fatal=1 --end_fsync=1 --minimal
# Every count of what ended adds up, and nothing failed.
sums() {
	awk '{ v[$1] = $2 }
		END {
			ended = v["completed_irq"] + v["completed_lazy"]
			ended += v["completed_coop"] + v["completed_poll"]
			wrong = v["errors"] + v["timeouts"] + v["resets"]
			whole = v["completed"] > 0 && v["submitted"] == v["completed"]
			exit !(whole && v["completed"] == ended && wrong == 0)
		}' $S/hiops/stats
}
expect stats-add-up until_true 5 sums

# Discarded and zeroed ranges.
expect blkdiscard blkdiscard -o 1M -l 4M $D
head -c 4M /dev/urandom | dd of=$D bs=1M seek=8 oflag=direct status=none
expect zero-out blkdiscard -z -o 8M -l 4M $D
same zeroes "$(dd if=$D bs=1M skip=8 count=4 iflag=direct status=none | tr -d '\0' | wc -c)" 0

# The edges: the last block is there, what is past it is refused and hurts nobody.
expect last-block dd if=$D of=/dev/null bs=512 skip=$(((1 << 30) / 512 - 1)) count=1 iflag=direct
same past-the-end \
	"$(dd if=$D bs=512 skip=$(((1 << 30) / 512)) count=1 iflag=direct 2>/dev/null | wc -c)" 0
refused write-past-the-end "No space left" dd if=/dev/zero of=$D bs=512 seek=$(((1 << 30) / 512)) \
	count=1 oflag=direct

# A file system.
mkfs.ext4 -qF $D
mount $D /mnt
expect copy cp -r docs ci /mnt/
(cd /mnt && find . -type f -print0 | sort -z | xargs -0 sha256sum) >/run/sums
sync
echo 3 >/proc/sys/vm/drop_caches
same checksums "$(cd /mnt && sha256sum --quiet -c /run/sums 2>&1)" ""
expect fstrim fstrim /mnt
umount /mnt
expect fsck fsck.ext4 -fn $D

# The tools.
expect id-ctrl sh -c "nvme id-ctrl $D | grep -q 'sn *: io-0'"
expect id-ns sh -c "nvme id-ns $D | grep -q 'nsze *: 0x200000'"
expect smart-log sh -c "nvme smart-log $D | grep -qiE 'data[ _]units[ _]written'"
expect get-feature nvme get-feature -f 7 $D
expect smartctl sh -c "smartctl -a -d nvme $D | grep -q 'Serial Number: *io-0'"
expect smartctl-health sh -c "smartctl -H -d nvme $D | grep -q PASSED"
# A command that the drive refuses is the tool's to see, and nobody else's; one that would take the
# queues away is not sent.
if nvme admin-passthru $D -o 0xc5 >"$OUT" 2>&1; then
	not_ok unknown-admin "it worked"
else
	ok unknown-admin
fi
if nvme admin-passthru $D -o 0x00 --cdw10=1 >"$OUT" 2>&1; then
	not_ok delete-queue "it worked"
else
	ok delete-queue
fi
if setpriv --reuid=nobody --clear-groups nvme id-ctrl $D >"$OUT" 2>&1; then
	not_ok unprivileged "it worked"
else
	ok unprivileged
fi
expect alive-after dd if=$D of=/dev/null bs=1M count=8 iflag=direct

refused rmmod-while-open "in use" sh -c "exec 8<$D; rmmod hiops"
expect none "$BIND" "$PCI" none
expect gone absent $D
expect rmmod rmmod hiops
plan
