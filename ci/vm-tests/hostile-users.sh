#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Users who mean harm, root and not: nonsense in parameters, attributes and ioctls, from several
# threads at once, while their drives are reset and taken away. Beside it, verified I/O on an NVMe
# and a SATA disk.
# image: a.img 64M
# image: b.img 16M
# image: s.img 64M
# image: t.img 16M
# vm: --timeout 600 --cpus 2 --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a"
# vm: --qemu "-device nvme,serial=well,drive=a,addr=4 -device ich9-ahci,id=hba,addr=6"
# vm: --qemu "-drive file=$DIR/b.img,format=raw,if=none,id=b,discard=unmap"
# vm: --qemu "-device nvme,serial=victim,drive=b,addr=7"
# vm: --qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s"
# vm: --qemu "-drive file=$DIR/t.img,format=raw,if=none,id=t,discard=unmap"
# vm: --qemu "-device ide-hd,serial=well-s,drive=s,bus=hba.0"
# vm: --qemu "-device ide-hd,serial=victim-s,drive=t,bus=hba.1"
. ci/vm-tests/nvme-lib.sh
VICTIM=0000:00:07.0 HBA=0000:00:06.0
WELL=(hiops0n1 hiops2d0)
nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }
said() { dmesg | sed '1,/users-begin/d'; }
echo users-begin >/dev/kmsg

# Parameters: with what is no number, or out of range, the module is not loaded.
taken=()
for parameter in mode=all lazy=-1 ram_seed=18446744073709551616 ram_disks=4294967296 \
	{mode,max_retries,poll_interval_us,predict,predict_window_us,nvme_timeout_ms}=4294967295 \
	{poll_queues,nvme_hmb_mb,ahci_fua,ram_disks}=4294967295; do
	if modprobe hiops "$parameter" 2>"$OUT"; then
		taken+=("$parameter")
		rmmod hiops
	fi
done
same parameters-nonsense "${taken[*]}" ''
expect load modprobe hiops
# None can be changed later.
same parameters-writable "$(find /sys/module/hiops/ -path '*/parameters/*' -perm /222)" ''

expect bind "$BIND" $PCI hiops_nvme
expect bind-victim "$BIND" $VICTIM hiops_nvme
expect bind-hba "$BIND" $HBA hiops_ahci
same disks "$(cd /sys/block && echo hiops*)" 'hiops0n1 hiops1n1 hiops2d0 hiops2d1'

# Attributes: nobody but root may write, everybody reads what they say; nonsense is refused.
same node "$(stat -c '%a %U' /dev/hiops0 /dev/hiops1)" "$(printf '600 root\n600 root')"
FILES=(/sys/block/hiops*/hiops/* /sys/block/hiops*/{serial,model,wwid})
same writable "$(nobody find "${FILES[@]}" -writable)" ''
expect readable nobody cat "${FILES[@]}"
tr '\0' 'x' </dev/zero | head -c 4095 >/run/long
taken=()
for file in /sys/block/hiops1n1/hiops/* /sys/block/hiops2d1/hiops/*; do
	for value in '' ' ' -1 2000000000 4294967297 18446744073709551617 1e3 0x1g 'irq irq' \
		"$(</run/long)"; do
		# An empty string is no write at all; one digit and more may be a number that is in
		# range.
		if { printf %s "$value" >"$file"; } 2>/dev/null && [ -n "$value" ]; then
			taken+=("$file=$value")
		fi
	done
	if { head -c 4096 /dev/zero >"$file"; } 2>/dev/null; then taken+=("$file=zeroes"); fi
done
same attributes-nonsense "${taken[*]:0:200}" ''

# Verified I/O beside all that follows.
well() {
	while [ ! -e "$ENOUGH" ]; do
		fio --name=w --filename=/dev/"$1" --direct=1 --ioengine=libaio --iodepth=8 \
			--rw=randrw --bsrange=512-64k --blockalign=512 --size=16M \
			--offset=$((RANDOM % 3))M --verify=crc32c \
			--verify_fatal=1 >"/run/$1" 2>&1 || return
	done
}
jobs_of=()
for disk in "${WELL[@]}"; do
	well "$disk" &
	jobs_of+=($!)
done

# Root on the victims, which are reset and taken away meanwhile.
NODES=(/dev/hiops1n1 /dev/hiops1n1 /dev/hiops1 /dev/hiops2d1)
python3 ci/vm-tests/hostile.py 18 1 "${NODES[@]}" >/run/root 2>&1 &
root=$!
nap 5
put 1 /sys/bus/pci/devices/$VICTIM/reset
nap 4
expect unbind "$BIND" $VICTIM none
nap 1
expect rebind "$BIND" $VICTIM hiops_nvme
cp /run/root "$OUT"
expect root wait $root
cat /run/root >&2
same root-answers "$(grep -c broken /run/root)" 0
expect root-reached grep -q "'0'.*'positive'" /run/root

# Somebody who may read the disks, and no more; what he tries leaves no line in the log.
chmod a+r /dev/hiops0n1 /dev/hiops1n1 /dev/hiops2d0 /dev/hiops2d1
before=$(said | wc -l)
NODES=(/dev/hiops0n1 /dev/hiops1n1 /dev/hiops2d0 /dev/hiops0)
expect nobody nobody python3 - 5 2 "${NODES[@]}" <ci/vm-tests/hostile.py
cp "$OUT" /run/nobody
cat /run/nobody >&2
same nobody-answers "$(grep -c broken /run/nobody)" 0
expect nobody-reached grep -q "'EACCES'" /run/nobody
same nobody-silent "$(($(said | wc -l) - before))" 0

touch "$ENOUGH"
for at in 0 1; do expect "well-${WELL[at]}" wait "${jobs_of[at]}"; done
same well-resets "$(count hiops0n1 resets)" 0
# The victims are well again once they are bound anew.
expect anew-none "$BIND" $VICTIM none
expect anew "$BIND" $VICTIM hiops_nvme
for disk in hiops1n1 hiops2d1; do
	expect "victim-$disk" fio --name=v --filename=/dev/$disk --direct=1 --ioengine=libaio \
		--iodepth=8 --rw=randwrite --bs=4k --size=4M --verify=crc32c --verify_fatal=1
done
# No address of the kernel's, hashed or not, and no flood.
cat "${FILES[@]}" >/run/files
ADDRESS='\b(0x)?f{2,4}[0-9a-f]{12,14}\b|\b0{8}[0-9a-f]{8}\b'
same pointers "$(said | cat - /run/files | grep -E "$ADDRESS" | head -n 3)" ''
expect few-lines test "$(said | grep -c hiops)" -lt 400

for pci in $PCI $VICTIM $HBA; do expect "none-$pci" "$BIND" $pci none; done
expect rmmod rmmod hiops
same nothing-left "$(compgen -G '/dev/hiops*')$(compgen -G '/sys/block/hiops*')" ''
plan
