#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# hiopsctl against a real sysfs: every command on RAM disks and an NVMe drive, what stat tells under
# fio against the counters' own files, a report without the secrets that were planted, bad input.
# host
SECRET=PLANTED-9X7
if [ "${1:-}" != guest ]; then
	. ci/lib.sh
	. ci/report.sh
	if ! bin=$("$CI/hiopsctl"); then
		not_ok build "hiopsctl does not build"
		plan
		exit
	fi
	truncate -s 64M "$DIR/a.img" "$DIR/s.img"
	exec ci/vm --kernel "$KERNEL" --cpus 1 --timeout 1800 \
		--append "rd.luks.key=$SECRET hiops_test_psk=$SECRET" \
		--qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a" \
		--qemu "-device nvme,serial=SERIAL$SECRET,drive=a,addr=4" \
		--qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s" \
		--qemu "-device ich9-ahci,id=hba,addr=6" \
		--qemu "-device ide-hd,serial=sata-0,drive=s,bus=hba.0" \
		-- "$REPO/ci/vm-tests/hiopsctl.sh" guest "$bin"
fi

. ci/vm-tests/guest-lib.sh
# As installed: the tools are found beside it.
BIN=/run/bin
mkdir $BIN
cp "$2" tools/hiops-{bind,bind-all,trace,users} $BIN/
ctl() { "$BIN/hiopsctl" "$@"; }
PCI=0000:00:04.0
D=hiops_ram0
H=/sys/block/$D/hiops
fio() { command fio --verify_state_save=0 --filename=/dev/$D --direct=1 --output="$OUT.fio" "$@"; }
usage() { # NAME COMMAND...
	local rc=0
	"${@:2}" >"$OUT" 2>&1 || rc=$?
	same "$1" "$rc" 2
}

tells 4 without-module 'hiops is not loaded' ctl status
refused stat-without-module 'hiops serves no disk' ctl stat
says metrics-without-module 'hiops_up 0' ctl metrics
expect load modprobe hiops mode=hybrid \
	ram_disks=2 ram_size_mb=32 ram_latency_us=200 ram_tags=8 ram_queues=2

same of-one-version "$(ctl --version)" "hiopsctl $(modinfo -F version hiops)"
P=/sys/module/hiops/parameters
same parameters "$(cat $P/{mode,strategy,lazy,ram_latency_us,ram_seed} | paste -sd' ')" \
	'hybrid coop 0 200 1'
same all-parameters "$(modinfo -F parm hiops | cut -d: -f1 | sort | paste -sd' ')" \
	"$(cd $P && printf '%s\n' * | sort | paste -sd' ')"
says status-parameters 'mode=hybrid' ctl status

# What is there, before and after the drive is handed over.
says list-nvme "$PCI" ctl list
echo "$PCI hiops_nvme serial=SERIAL$SECRET # the drive" >/run/devices
says check 'nothing wrong' ctl check /run/devices
printf '%s hiops_nvme serial=OTHER\n0000:00:19.0\n' "$PCI" >/run/wrong
refused check-serial "/run/wrong:1: $PCI has the serial number SERIAL$SECRET, not OTHER" \
	ctl check /run/wrong
refused check-gone '/run/wrong:2: there is no PCI function 0000:00:19.0' ctl check /run/wrong
refused bind-all-leaves-another 'is left alone: the drive there is not OTHER' \
	$BIN/hiops-bind-all <(head -n 1 /run/wrong)
expect bind-all $BIN/hiops-bind-all /run/devices
# What drive there is is known only once it is hiops': the HBA goes back to whom it was with.
SATA=0000:00:06.0
driver_of() { basename "$(readlink "/sys/bus/pci/devices/$1/driver")"; }
# With what udev would load for its disks.
modprobe -a ahci sd_mod
until_true 30 test "$(driver_of $SATA)" = ahci
refused bind-all-gives-back 'goes back to ahci: the drive there is not OTHER' \
	$BIN/hiops-bind-all <(echo "$SATA hiops_ahci serial=OTHER")
same given-back "$(driver_of $SATA)" ahci
expect bind-all-sata $BIN/hiops-bind-all <(echo "$SATA hiops_ahci serial=sata-0")
same bound-sata "$(driver_of $SATA)" hiops_ahci
says unbind-sata "$SATA is with ahci now" ctl unbind "$SATA"
says bound "$PCI is with hiops_nvme now: hiops0n1" ctl bind "$PCI"
mkfs.ext4 -q /dev/hiops0n1
mount /dev/hiops0n1 /mnt
says in-use '/mnt (ext4 on hiops0n1)' ctl list
refused unbind-in-use 'is mounted on /mnt' ctl unbind hiops0n1
refused unbind-in-use-json '"way_out":"umount it first"' ctl unbind hiops0n1 --json
umount /mnt
says unbind "$PCI is with nvme now: nvme0n1" ctl unbind hiops0n1
says bind-again "$PCI is with hiops_nvme now: hiops0n1" ctl bind "$PCI" hiops_nvme

says status hiops0n1 ctl status
expect status-json sh -c "$BIN/hiopsctl status --json | jq -e '.schema_version == 1 and .loaded and
	(.controllers | length) == 3'"

# Switches: as the files have them.
says get hybrid ctl get $D mode
says set 'mode is poll (was hybrid)' ctl set /dev/$D mode poll
expect is-set reads $H/mode poll
refused set-value "does not take 'fast': it takes irq, poll or hybrid" ctl set $D mode fast
refused set-range 'it takes microseconds, 1 to 10000' ctl set $D poll_interval_us 0
refused set-learned "can't be set: it can only be read" ctl set $D learned 1
refused set-unprivileged 'run it as root' setpriv --reuid=65534 --regid=65534 --clear-groups \
	"$BIN/hiopsctl" set $D mode irq
expect set-back ctl set $D mode 2
expect is-set-back reads $H/mode hybrid
refused set-nothing "does not take ''" ctl set $D mode ''
expect own-reset ctl set hiops0n1 reset_controller 1
says own-reset-counts 'resets 1' ctl get hiops0n1 stats
expect own-reset-is-no-news sh -c "! $BIN/hiopsctl status | grep 'hiops0n1 has had'"

# A stretch of I/O that begins after stat's first look and is over before its second: all counters
# have grown by what the files say.
before=$(cat $H/stats)
"$BIN/hiopsctl" stat --json -i 25 $D >/run/stat.json 2>"$OUT" &
stat=$!
# It has looked once, and sleeps.
until_true 20 grep -q nanosleep /proc/$stat/wchan /proc/$stat/stack || nap 5
fio --name=d --rw=randrw --bs=4k --ioengine=libaio --iodepth=32 --size=4M
after=$(cat $H/stats)
wait $stat
same stat-ended $? 0
expect deltas-are-those-of-sysfs python3 - "$before" "$after" <<'PY'
import json, sys
before, after = [dict(line.split() for line in text.splitlines()) for text in sys.argv[1:]]
[disk] = json.load(open("/run/stat.json"))["disks"]
longest = ("max_irq_ns", "max_tick_ns")
grown = {name: int(value) - (0 if name in longest else int(before[name]))
         for name, value in after.items()}
assert disk["delta"] == grown, (disk["delta"], grown)
assert disk["counters"] == {name: int(value) for name, value in after.items()}
assert grown["completed"] >= 1024, grown
assert abs(sum(disk["share"].values()) - 1) < 1e-9
PY

# And while it goes on: each look's delta is the difference of what it and the one before have read,
# between what the file said before and after.
(
	exec fio --name=w --filename=/dev/$D --direct=1 --rw=randrw --bs=4k --ioengine=psync \
		--numjobs=4 --thread --size=8M --time_based --runtime=3600 --output="$OUT.fio"
) &
load=$!
until_true 30 sh -c "[ \"\$(cat /sys/block/$D/inflight | tr -d ' 0')\" ]"
first=$(count $D completed)
ctl stat --json -i 1 -n 4 >/run/watch.json
last=$(count $D completed)
expect looks-add-up python3 - "$first" "$last" <<'PY'
import json, sys
first, last = map(int, sys.argv[1:])
looks = [{disk["disk"]: disk for disk in json.loads(line)["disks"]}["hiops_ram0"]
         for line in open("/run/watch.json")]
assert len(looks) == 4
for one, two in zip(looks, looks[1:]):
    for name, value in two["delta"].items():
        if name not in ("max_irq_ns", "max_tick_ns"):
            assert value == two["counters"][name] - one["counters"][name], name
    assert two["delta"]["completed"] > 0 and two["iops"] > 0
assert first <= looks[0]["counters"]["completed"] - looks[0]["delta"]["completed"]
assert looks[-1]["counters"]["completed"] <= last
PY
says stat-has-learnt "$D has learnt: sleep" ctl stat -i 1
# On a terminal: all drives in 80 columns, and q leaves the screen as it was.
expect screen python3 - "$BIN/hiopsctl" <<'PY'
import fcntl, os, pty, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "linux"
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
    os.execv(sys.argv[1], [sys.argv[1], "stat", "--watch", "-i", "1"])
before, said, typed = termios.tcgetattr(terminal)[:4], b"", False
while True:
    try:
        said += os.read(terminal, 65536)
    except OSError:
        break
    if not typed and all(name in said for name in (b"hiops0n1", b"hiops_ram1", b"ERRORS")):
        typed = os.write(terminal, b"q") == 1
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, said
assert said.startswith(b"\x1b[?1049h") and said.endswith(b"\x1b[?25h\x1b[?1049l"), said
PY
cat "$OUT" >&2
expect reader-goes bash -c "set -o pipefail; $BIN/hiopsctl stat --watch -i 0.2 | head -n 1"
kill $load
wait $load 2>/dev/null
# bpftrace takes minutes to begin; a read now and then, until it has seen two.
while sleep 1; do dd if=/dev/$D of=/dev/null bs=4k count=1 iflag=direct status=none; done &
load=$!
expect trace sh -c "timeout 900 $BIN/hiopsctl trace $D 2 --json >$OUT.trace"
kill $load
wait $load 2>/dev/null
expect trace-steps jq -se 'any(.[]; .step == "issue") and any(.[]; .step == "end")' "$OUT.trace"

# Metrics.
expect metrics ctl metrics -o /run/hiops.prom
submitted="hiops_submitted_total{disk=\"$D\",controller=\"$D\"}"
says metrics-submitted "$submitted $(count $D submitted)" cat /run/hiops.prom
says metrics-nvme "hiops_interrupts_total{controller=\"$PCI\"} $(count hiops0n1 interrupts)" \
	cat /run/hiops.prom

# smartd takes what it is told, and looks at the drive.
ctl smartd >/run/smartd.conf
says smartd '/dev/hiops0n1 -d nvme -a' cat /run/smartd.conf
says smartd-looks 'Device: /dev/hiops0n1, is SMART capable' smartd -q onecheck -c /run/smartd.conf

# The report: from places that every machine has, and from this one's.
hostname "host-$SECRET"
echo "hiops: host-$SECRET has SERIAL$SECRET, password=$SECRET, 10.1.2.3" >/dev/kmsg
expect report ctl report /run/report.txt
expect report-is-told grep -q 'has <serial-[0-9]*>, password=<value-[0-9]*>, <ip-' /run/report.txt
expect report-keeps-serials-apart grep -q '^serial <serial-' /run/report.txt
id=$(cat /etc/machine-id)
for text in "$SECRET" "$(tr -d '\n' <<<"$SECRET" | od -An -tx1 | tr -d ' ')" 10.1.2.3 \
	"${id:-no machine-id}" "$(cat /sys/block/hiops0n1/wwid)"; do
	expect "report-without $text" sh -c "! grep -qiF -- '$text' /run/report.txt"
done
for text in "== $PCI" 'completed_coop' "hiops_nvme $PCI" 'queue 0 interrupt_ns'; do
	says "report-has $text" "$text" cat /run/report.txt
done
refused report-again 'File exists' ctl report /run/report.txt

# The rest, and what is wrong with it.
for shell in bash zsh fish; do
	says "completions-$shell" HIOPSCTL_COMPLETE ctl completions $shell
done
# As bash asks, with its script: the disks that there are, a switch, what that takes.
completed() { # WORD...
	PATH=$BIN:$PATH bash -c '. <(hiopsctl completions bash)
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
		function=$(complete -p hiopsctl | sed "s/.* -F \([^ ]*\) .*/\1/")
		$function hiopsctl "${!#}" 2>/dev/null
		echo "${COMPREPLY[*]}"' bash "$@"
}
same completes-disks "$(completed hiopsctl set hi)" 'hiops0n1 hiops_ram0 hiops_ram1'
same completes-switches "$(completed hiopsctl set $D mo)" mode
same completes-values "$(completed hiopsctl set $D mode p)" poll
mkdir /run/man8
says man hiopsctl-stat.8 ctl man /run/man8
for command in get stat status trace; do
	refused "$command-no-disk" "'hiops7n1' is no disk of hiops: those are: hiops0n1" \
		ctl $command hiops7n1
done
refused bind-no-function 'there is no PCI function 0000:00:19.0' ctl bind 00:19.0
refused bind-ram 'is a RAM disk' ctl bind $D
refused man-no-folder 'is no folder' ctl man /run/none
refused check-no-file 'No such file' ctl check /run/none
refused metrics-no-folder 'its folder is not there' ctl metrics -o /run/none/x
usage no-command ctl
usage interval ctl stat -i 0
usage shell ctl completions csh
expect give-back ctl unbind "$PCI" none
expect rmmod rmmod hiops
plan
