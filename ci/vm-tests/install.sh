#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# hiops-install for the running kernel, as `make install` does it: the module is found, the devices
# named for it are bound as at boot; and all of it away again.
# kernels: stock
# image: a.img 64M
# vm: --qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a"
# vm: --qemu "-device nvme,serial=install,drive=a,addr=4"
. ci/vm-tests/nvme-lib.sh
RELEASE=$(uname -r)
# A system with few modules, so that its index is soon made, and without the lab's own way to have
# hiops.ko there: what modprobe finds was installed.
MODULES=/lib/modules/$RELEASE
expect built cp "$MODULES/updates/hiops.ko" /run/hiops.ko
mkdir /run/modules
cp "$MODULES"/modules.{builtin,order} /run/modules/
mount --bind /run/modules "$(readlink -f "$MODULES")"
depmod
refused not-there "not found" modprobe hiops
setpriv --reuid=65534 --regid=65534 --clear-groups cp /run/hiops.ko /tmp/hiops.ko
refused unprivileged root setpriv --reuid=65534 --regid=65534 \
	--clear-groups tools/hiops-install /tmp/hiops.ko "$RELEASE"
refused other-release "no /lib/modules/7.9.9-other" tools/hiops-install /run/hiops.ko 7.9.9-other
refused too-old "older than 7.2" tools/hiops-install /run/hiops.ko 6.12.0-amd64

# What hiopsctl writes is tested by hiopsctl.sh.
cat >/run/hiopsctl <<'END'
#!/bin/sh
case $1 in
man) echo page >"$2/hiopsctl.8" && echo page >"$2/hiopsctl-list.8" ;;
completions) echo "completions of $2" ;;
esac
END
chmod +x /run/hiopsctl
SHARE=/usr/local/share
CTL=(/usr/local/sbin/hiopsctl "$SHARE"/man/man8/hiopsctl{,-list}.8
	"$SHARE/fish/vendor_completions.d/hiopsctl.fish"
	"$SHARE/bash-completion/completions/hiopsctl" "$SHARE/zsh/site-functions/_hiopsctl")
expect install tools/hiops-install /run/hiops.ko "$RELEASE" /run/hiopsctl
expect found modprobe hiops
expect unload rmmod hiops
PAGES=()
for page in tools/man/*; do PAGES+=("$SHARE/man/man${page##*.}/${page##*/}"); done
for file in /usr/local/sbin/hiops-{bind,bind-all,trace,users} /etc/udev/rules.d/60-hiops.rules \
	/etc/systemd/system/hiops-bind.service /etc/hiops/devices "${PAGES[@]}" "${CTL[@]}"; do
	expect "has $file" test -s "$file"
done
version=$(/usr/local/sbin/hiops-bind --version)
same tools-and-module-are-of-one-version "hiops-bind $(modinfo -F version hiops)" "$version"
printf '# a comment\n\n00:1f.9 hiops_nvme\n%s hiops_nvme\n' "$PCI" >>/etc/hiops/devices
# The way out, as if it stood on the kernel's command line.
sed 's/$/ hiops.disable=1/' /proc/cmdline >/run/cmdline
mount --bind /run/cmdline /proc/cmdline
says disabled hiops.disable=1 /usr/local/sbin/hiops-bind-all
printf '%s hiops_nvme -\n' "$PCI" >/run/listed
expect initramfs-disabled sh tools/system/claim /run/listed
says and-says-so 'no device is handed over: hiops.disable=1' dmesg
expect and-binds-nothing absent /dev/hiops0n1
umount /proc/cmdline
refused one-is-missing "00:1f.9" /usr/local/sbin/hiops-bind-all
expect and-the-other-is-bound test -b /dev/hiops0n1
expect as-the-service-does grep -q "ExecStart=.*hiops-bind-all" \
	/etc/systemd/system/hiops-bind.service
expect again tools/hiops-install /run/hiops.ko "$RELEASE"
expect keeps-the-list grep -q "^$PCI hiops_nvme" /etc/hiops/devices

refused serves "$PCI" tools/hiops-install --remove
expect still-there test -b /dev/hiops0n1
expect give-back hiops-bind "$PCI" nvme
expect remove tools/hiops-install --remove
for file in "$MODULES/updates/hiops.ko" /usr/local/sbin/hiops-bind \
	/etc/udev/rules.d/60-hiops.rules /etc/systemd/system/hiops-bind.service "${PAGES[@]}" \
	"${CTL[@]}"; do
	expect "without $file" absent "$file"
done
refused gone "not found" modprobe hiops
expect list-stays grep -q "^$PCI" /etc/hiops/devices
plan
