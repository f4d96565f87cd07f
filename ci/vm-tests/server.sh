#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A server with systemd, its packages and no compiler: seven disks' file systems, by UUID, by a
# link, on LVM, LUKS and RAID, lie on hiops from the boot on, with a signed module under lockdown,
# and on the in-tree drivers with the same data when they are to: another kernel, a wrong serial
# number, no packages, and in test-long hiops.disable=1. What looks at disks by their numbers
# (sg3_utils, LVM, multipath, sysstat, grub-probe) says the same of them under either driver.
# host
# begins first
# kernels: stock
A=0000:01:00.0 B=0000:00:05.0 C=0000:00:06.0 D=0000:00:07.0 HBA=0000:00:08.0
PLACES=(/data/ext4 /data/xfs /data/lvm /data/luks /data/raid /data/sata)

if [ "${1:-}" = inside ]; then
	HIOPS_VM_KERNEL=stock
	. ci/vm-tests/guest-lib.sh
	driver_of() { basename "$(readlink "/sys/bus/pci/devices/$1/driver")"; }
	# drivers_of PLACE: who serves the disks under what is mounted there.
	drivers_of() {
		local disk
		for disk in $(lsblk -snro NAME,TYPE "$(findmnt -nro SOURCE "$1")" |
			awk '$2 == "disk" { print $1 }' | sort -u); do
			driver_of "$(readlink -f "/sys/block/$disk" |
				grep -oE '[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]' | tail -n 1)"
		done | sort -u | paste -sd' '
	}
	# served WHAT NVME SATA: by whom each file system is, and that its data are there.
	served() {
		local place wanted
		for place in "${PLACES[@]}"; do
			wanted=$2
			case $place in /data/raid | /data/sata) wanted=$3 ;; esac
			same "$1${place#/data} is served" "$(drivers_of "$place")" "$wanted"
			expect "$1${place#/data} is whole" sha256sum --quiet -c "$place/sums"
		done
	}
	disk() { readlink -f "/dev/disk/by-path/pci-$1"; }
	# tools: what they say of the last SATA disk, its first partition and all file systems, with
	# what it is called left out.
	tools() {
		local g node tool part
		g=$(disk $HBA-ata-3) part=$(disk $HBA-ata-3-part1)
		for node in "$g" "$part"; do
			while read -r tool; do
				echo "== $tool"
				# libata answers REQUEST SENSE with a status alone.
				# shellcheck disable=SC2086 # words
				$tool "$node" >/run/said 2>&1 </dev/null
				echo "status $?"
				[ "$tool" = sg_requests ] || cat /run/said
			done <<-END
				sg_inq
				sg_vpd --page=sn
				sg_vpd --page=di
				sg_vpd --page=bdc
				sg_readcap
				sg_readcap --16
				sg_turs
				sg_requests
				sg_luns
				sg_sync --verbose
				sg_sat_identify
				sg_logs
				sg_start --start
				sg_reset --no-esc
				lsblk -dnro TYPE,RO
			END
		done | sed "s,${g}p\?,DISK,g"
		{
			pvcreate -t -ff -y "$g" 2>&1
			pvs --noheadings -o pv_name,vg_name -O pv_name -S vg_name=sata
		} | sed "s,${g}p\?,DISK,g"
		iostat -d "$g" | awk -v disk="${g##*/}" '$1 == disk { print "iostat knows it" }'
		! sar -dp 1 1 | grep -qw "Average.*${g##*/}" || echo "sar, too"
		multipath -ll
		multipath -c "$g" 2>/dev/null
		for part in "${PLACES[@]}"; do
			for tool in fs fs_uuid abstraction; do
				echo "$part: $(grub-probe -t $tool "$part" 2>&1)"
			done
		done
	}
	none_failed() {
		same "$1 no unit failed" "$(systemctl --failed --plain --no-legend |
			awk '{ print $1 }' | paste -sd' ')" ""
	}
	failed_unit() {
		same a-unit-failed "$(systemctl --failed --plain --no-legend |
			awk '{ print $1 }' | paste -sd' ')" hiops-bind.service
	}

	case $2 in
	set-up)
		for program in gcc rustc cargo; do
			expect "no $program" absent "$(command -v $program || echo /none)"
		done
		same without-a-module "$(driver_of $A) $(driver_of $HBA)" 'nvme ahci'
		says and-says-so 'module hiops does not load' cat /run/motd.d/hiops
		failed_unit
		a=$(disk $A-nvme-1) b=$(disk $B-nvme-1) c=$(disk $C-nvme-1) d=$(disk $D-nvme-1)
		e=$(disk $HBA-ata-1) f=$(disk $HBA-ata-2) g=$(disk $HBA-ata-3)
		# What a mount's number does not tell: both drives of a btrfs are the system's, and
		# the port before one of them.
		mkdir -p /efi
		expect btrfs mkfs.btrfs -q -f -d raid1 -m raid1 "$a" "$b"
		udevadm settle
		expect mount-btrfs mount "$a" /efi
		same under-btrfs "$(tools/hiops-users --under /efi | sort | paste -sd' ')" \
			"0000:00:04.0 /efi $B /efi $A /efi"
		says initramfs-without-them "$B holds /efi and stays with the in-tree driver" \
			/usr/libexec/hiops/devices "$3"
		refused btrfs-in-use "${b} is mounted on /efi" tools/hiops-bind $B none
		umount /efi
		wipefs -qa "$a" "$b"
		mkdir -p "${PLACES[@]}"
		expect ext4 mkfs.ext4 -q "$a"
		expect xfs mkfs.xfs -q "$b"
		expect lvm sh -c "vgcreate -q group $c && lvcreate -qy -l 100%FREE -n data group &&
			mkfs.ext4 -q /dev/group/data"
		echo secret >/etc/luks.key
		chmod 600 /etc/luks.key
		expect luks sh -c "cryptsetup luksFormat -q --key-file /etc/luks.key \
			--pbkdf pbkdf2 --pbkdf-force-iterations 1000 $d &&
			cryptsetup open --key-file /etc/luks.key $d secret &&
			mkfs.ext4 -q /dev/mapper/secret"
		expect raid sh -c "mdadm --create /dev/md/data --run --homehost=server --level=1 \
			--assume-clean --raid-devices=2 $e $f && udevadm settle &&
			mkfs.ext4 -q /dev/md/data &&
			mdadm --detail --scan >>/etc/mdadm/mdadm.conf"
		# As many partitions as have minors of their own on a SCSI disk, and two more.
		expect partitions sfdisk -q "$g" < <(echo label: gpt; echo size=200M
			printf 'size=1M\n%.0s' {2..16}; echo size=+)
		udevadm settle
		expect sata sh -c "vgcreate -q sata ${g}1 ${g}17 &&
			lvcreate -qy -l 100%FREE -n data sata && mkfs.ext4 -q /dev/sata/data"
		udevadm settle
		uuid() { blkid -o value -s UUID "$1"; }
		link=$(find /dev/disk/by-id -lname "*/${b##*/}" -name "*B-drive*" | sort |
			sed -n 1p)
		cat >>/etc/fstab <<-END
			UUID=$(uuid "$a") /data/ext4 ext4 defaults 0 2
			$link /data/xfs xfs defaults 0 2
			/dev/group/data /data/lvm ext4 defaults 0 2
			/dev/mapper/secret /data/luks ext4 defaults 0 2
			UUID=$(uuid /dev/md/data) /data/raid ext4 defaults 0 2
			/dev/sata/data /data/sata ext4 defaults 0 2
		END
		echo "secret UUID=$(uuid "$d") /etc/luks.key luks" >/etc/crypttab
		systemctl daemon-reload
		for place in "${PLACES[@]}"; do
			expect "mount $place" mount "$place"
			cp /usr/bin/bash /usr/bin/systemctl "$place/"
			sha256sum "$place"/{bash,systemctl} >"$place/sums"
		done
		served '' nvme ahci
		tools >/var/lib/tools
		for text in 'QEMU HARDDISK' 'iostat knows it' 'sar, too' 'DISK17 *sata' \
			'/data/sata: lvm'; do
			expect "tools-$text" grep -q "$text" /var/lib/tools
		done
		;;
	on-hiops)
		served '' hiops_nvme hiops_ahci
		none_failed at-boot
		expect claimed-first grep -q "$A is hiops' from the start" <<<"$(dmesg)"
		tools >/run/tools
		same tools "$(diff /var/lib/tools /run/tools)" ''
		same major "$(awk -v of="$(lsblk -dnro MAJ:MIN "$(disk $HBA-ata-3)")" \
			'/^Block/ { block = 1 } block && $1 == int(of) { print $2 }' \
			/proc/devices)" sdhiops
		expect never-in-tree sh -c '! dmesg | grep "nvme nvme[0-9]"'
		says check 'nothing wrong' hiopsctl check
		# Only what the firmware's key has signed is taken.
		says locked-down '[integrity]' cat /sys/kernel/security/lockdown
		same signed "$(modinfo -F signer hiops)" 'hiops test'
		refused unsigned 'Key was rejected' insmod /run/step/unsigned.ko
		refused and-told-before 'takes signed modules only: enrol a machine owner key' \
			tools/hiops-install --check "$3"
		# A drive that is pulled and comes back, which the host does.
		links() { udevadm info -q symlink "$(readlink -f "$1")" | tr ' ' '\n' | sort; }
		at=/dev/disk/by-path/pci-$A-nvme-1
		before=$(links $at)
		umount /data/ext4
		touch /run/step/unplug
		expect pulled until_true 60 absent /sys/bus/pci/devices/$A
		touch /run/step/plug
		again() { [ "$(driver_of $A)" = hiops_nvme ] && [ -b $at ]; }
		expect plugged-again until_true 60 again
		udevadm settle
		diskseq() { sed -E 's,(by-diskseq)/[0-9]+,\1,'; }
		same its-links "$(links $at | diskseq)" "$(diskseq <<<"$before")"
		expect mounted-again mount /data/ext4
		served again- hiops_nvme hiops_ahci
		none_failed after-that
		;;
	wrong)
		same b-goes-back "$(driver_of $B)" nvme
		for address in $A $C $D; do
			same "$address is served" "$(driver_of "$address")" hiops_nvme
		done
		for place in "${PLACES[@]}"; do
			expect "$place is whole" sha256sum --quiet -c "$place/sums"
		done
		for text in "$B is left alone: the drive there is not OTHER" \
			'there is no PCI function 0000:00:1e.7' "'000:0x:5.0' is not the address" \
			'0000:00:00.0 is not an NVMe controller'; do
			says "told: $text" "$text" cat /run/motd.d/hiops
		done
		failed_unit
		refused check-names-them '0000:00:1e.7' hiopsctl check
		;;
	disabled)
		served '' nvme ahci
		says and-says-so 'no device is handed over: hiops.disable=1' dmesg
		none_failed at-boot
		;;
	purged)
		served '' nvme ahci
		none_failed at-boot
		;;
	esac
	all_ok || journalctl -b --no-pager -u 'hiops*' -n 60 >&2
	plan
	exit
fi

set -uo pipefail
. ci/report.sh
. ci/lib.sh
STOCK=$(stock_release) OLDEST=$(oldest_release)
SERVER=$(ci/env-server) || exit
mkdir -p "$DIR/share"
# A key that the machine's firmware knows, as Secure Boot's or a machine owner's.
export HIOPS_SIGN_KEY=$DIR/key HIOPS_SIGN_CERT=$DIR/certificate
make_key() {
	ci/in-root openssl req -quiet -new -x509 -newkey rsa:2048 -nodes -subj '/CN=hiops test/' \
		-keyout "$HIOPS_SIGN_KEY" -out "$HIOPS_SIGN_CERT" &&
		ci/in-root virt-fw-vars --loglevel error --input /usr/share/OVMF/OVMF_VARS_4M.fd \
			--output "$DIR/firmware" \
			--add-db "$(cat /proc/sys/kernel/random/uuid)" "$HIOPS_SIGN_CERT"
}
make_key || { not_ok key "it could not be made"; plan; exit; }
FIRMWARE=(--qemu "-drive if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd"
	--qemu "-drive if=pflash,format=raw,file=$DIR/firmware")
ci/deb stock oldest >"$DIR/debs" || { not_ok packages "they could not be made"; plan; exit; }
ok lintian
# Module, tools and packages, and what DKMS would build, are of one version.
versions() {
	local deb ko at tool
	mkdir "$DIR/unpacked"
	while read -r deb; do
		at=$DIR/unpacked/${deb##*/}
		ci/in-root dpkg-deb -x "$deb" "$at"
		ci/in-root dpkg-deb -f "$deb" Version | sed 's/+linux.*//'
	done <"$DIR/debs"
	for ko in "$DIR"/unpacked/*/usr/lib/modules/*/updates/hiops.ko; do
		ci/in-root modinfo -F version "$ko"
	done
	for tool in "$DIR"/unpacked/hiops-tools_*/usr/sbin/hiops{ctl,-bind}; do
		"$tool" --version | cut -d' ' -f2
	done
	cat "$DIR"/unpacked/hiops-dkms_*/usr/src/hiops-*/version
	find "$DIR"/unpacked/hiops-dkms_*/usr/src -mindepth 1 -maxdepth 1 -printf '%f\n' |
		sed 's/^hiops-//'
}
versions >"$DIR/versions"
check "versions: one of all" test "$(wc -l <"$DIR/versions") $(uniq "$DIR/versions")" = \
	"11 $(ci/version)"
for file in "tools_*/usr/share/zsh/vendor-completions/_hiopsctl" "tools_*/usr/share/man/man5/"; do
	check "has hiops-$file" compgen -G "$DIR/unpacked/hiops-$file"
done
# An administrator has them from there, as from a web server.
xargs ci/repo "$DIR/repo" <"$DIR/debs" >&2 || { not_ok repo "it failed"; plan; exit; }
cp --sparse=always "$SERVER/server.img" "$DIR/server.img"
# administer NAME COMMAND: the administrator does that; what it says is in $DIR/said.
administer() {
	local rc=0
	ci/administer "$DIR/server.img" "$2" "$DIR"/repo/* >"$DIR/said" 2>&1 || rc=$?
	cat "$DIR/said" >&2
	if [ "$rc" = 0 ]; then ok "$1"; else not_ok "$1" "status $rc"; fi
}
# has NAME TEXT: the administrator was told so.
has() { check "$1" grep -qF -- "$2" "$DIR/said"; }

MACHINE=()
# device OPTIONS: of QEMU's; disk NAME: an image, for a device that may come and go.
device() { MACHINE+=(--qemu "-device $1"); }
disk() {
	truncate -s 400M "$DIR/$1.img"
	MACHINE+=(--qemu "-blockdev raw,node-name=$1,file.driver=file,file.filename=$DIR/$1.img")
}
for name in a b c d e f g; do disk $name; done
device pcie-root-port,id=port-a,chassis=1,addr=4
device nvme,bus=port-a,id=A,serial=A-drive,drive=a
device nvme,serial=B-drive,drive=b,addr=5
device nvme,serial=C-drive,drive=c,addr=6
device nvme,serial=D-drive,drive=d,addr=7
device ich9-ahci,id=hba,addr=8
device ide-hd,serial=E-drive,drive=e,bus=hba.0
device ide-hd,serial=F-drive,drive=f,bus=hba.1
device ide-hd,serial=G-drive,drive=g,bus=hba.2
# boot STEP RELEASE [OPTION...]
boot() {
	local what=$1 release=$2
	shift 2
	HIOPS_VM_LOG=$DIR/log retell "$what" "$what: " ci/server --share "$DIR/share" \
		--timeout 900 "${MACHINE[@]}" "$@" "$DIR/server.img" "$release" -- \
		ci/vm-tests/server.sh inside "$what" "$STOCK" "$OLDEST"
	# What comes next stands on it.
	[ "$RETOLD_OK" -gt 0 ] || { plan; exit; }
}
# The hands that pull a drive and put it back.
hands() {
	until [ -e "$DIR/share/unplug" ]; do sleep 1; done
	ci/in-root python3 -B ci/vm-tests/qmp.py "$DIR/qmp" device_del '{"id": "A"}'
	until [ -e "$DIR/share/plug" ]; do sleep 1; done
	ci/in-root python3 -B ci/vm-tests/qmp.py "$DIR/qmp" device_add \
		'{"driver": "nvme", "bus": "port-a", "id": "A", "serial": "A-drive", "drive": "a"}'
}
# Each boot tells of several things, since it takes minutes: the first also what becomes of drives
# that are listed for a kernel without a module. install.sh, too, shows that hiops.disable=1 is
# heeded.
FROM_REPO='-o Dir::Etc::SourceList=/run/hiops.sources -o Dir::Etc::SourceParts=-'
administer install "cat >/run/hiops.sources <<-END
	Types: deb
	URIs: file:/run/debs
	Suites: ./
	Trusted: yes
	END
	apt-get update -q $FROM_REPO
	apt-get install -qy $FROM_REPO hiops-tools hiops-modules-${STOCK#*-}
	cat >>/etc/hiops/devices <<-END
	$A                                # the driver is hiops_nvme
	${B#0000:} hiops_nvme serial=B-drive
	$C hiops_nvme
	$D hiops_nvme
	$HBA hiops_ahci
	END
	update-initramfs -u -k all"
has no-module-for-it "there is no module for $OLDEST"
boot set-up "$OLDEST"
hands >&2 &
hands=$!
cp "$(ci/module stock)" "$DIR/share/unsigned.ko"
boot on-hiops "$STOCK" --qmp "$DIR/qmp" "${FIRMWARE[@]}" \
	--append 'lockdown=integrity module.sig_enforce=1'
kill $hands 2>/dev/null
[ -z "${HIOPS_LONG:-}" ] || boot disabled "$STOCK" --append hiops.disable=1

# The module for that kernel, and what an operator may get wrong.
administer mistakes "sed -i s/serial=B-drive/serial=OTHER/ /etc/hiops/devices
	cat >>/etc/hiops/devices <<-END
	0000:00:1e.7 hiops_nvme
	000:0x:5.0 hiops_nvme
	$C hiops_nvme
	0000:00:00.0 hiops_nvme
	END
	apt-get install -qy --reinstall /run/debs/hiops-{tools,modules}*.deb"
check "each initramfs is renewed, once" test \
	"$(sed -n 's/^update-initramfs: Generating .*initrd.img-//p' "$DIR/said" | sort |
		paste -sd' ')" = "$(printf '%s\n' "$STOCK" "$OLDEST" | sort | paste -sd' ')"
boot wrong "$OLDEST"

administer purge "apt-get purge -qy 'hiops-*'"
administer nothing-is-left "! find / -xdev -iname '*hiops*' | grep . || exit
	for initramfs in /boot/initrd.img-*; do
		! lsinitramfs \$initramfs | grep hiops || exit
	done"
[ -z "${HIOPS_LONG:-}" ] || boot purged "$STOCK"
plan
