#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What watches a machine, on a real one's output: hiopsctl metrics is what promtool takes, a real
# node_exporter and Prometheus load it with the alert rules, and have a value for each expression of
# the dashboard; nvme-list is nvme-cli's in keys and types; sos takes the plugin's files along.
# host
if [ "${1:-}" != guest ]; then
	. ci/lib.sh
	. ci/report.sh
	if ! bin=$("$CI/hiopsctl") || ! W=$("$CI/env-watchers"); then
		not_ok build "hiopsctl does not build, or Prometheus and sos can't be had"
		plan
		exit
	fi
	truncate -s 64M "$DIR/a.img" "$DIR/s.img"
	machine() {
		ci/vm --kernel "$KERNEL" --cpus 1 --timeout 1800 \
			--qemu "-drive file=$DIR/a.img,format=raw,if=none,id=a" \
			--qemu "-device nvme,serial=watched,drive=a,addr=4" \
			--qemu "-drive file=$DIR/s.img,format=raw,if=none,id=s" \
			--qemu "-device ich9-ahci,id=hba,addr=6" \
			--qemu "-device ide-hd,serial=sata-0,drive=s,bus=hba.0" \
			-- "$REPO/ci/vm-tests/watched.sh" guest "$bin" "$W" | tee "$DIR/out"
	}
	retell machine '' machine
	for n in 1 2; do
		sed -n "/^== metrics $n/,/^== end/p" "$DIR/out" | grep -v '^==' >"$DIR/$n.prom"
	done
	watching() { "$CI/in-root" python3 -B "$CI/watching.py" "$@"; }
	promtool_metrics() { "$CI/in-root" "$W/usr/bin/promtool" check metrics <"$DIR/2.prom"; }
	check promtool-metrics promtool_metrics
	check names watching unprinted "$DIR/2.prom" tools/watch/{grafana.json,alerts.yml}
	check prometheus ci/watch-it "$W" "$DIR/1.prom" "$DIR/2.prom"
	plan
	exit
fi

. ci/vm-tests/guest-lib.sh
# Where sos looks for programs: it has a PATH of its own.
BIN=/usr/local/sbin W=$3
mkdir -p $BIN
cp "$2" tools/hiops-{bind,bind-all,trace,users} $BIN/
export PATH=$BIN:$PATH
PCI=0000:00:04.0
# shape: keys, in their order, and types of each device.
shape() { jq -c '.Devices[] | to_entries | map([.key, (.value | type)])'; }
until_true 30 test -b /dev/nvme0n1
nvme list -o json >/run/real
same in-tree-alike "$(hiopsctl nvme-list -o json | jq -c .)" "$(jq -c . /run/real)"
expect bind hiops-bind $PCI hiops_nvme
expect bind-sata hiops-bind 0000:00:06.0 hiops_ahci
hiopsctl nvme-list -o json >/run/ours
same keys-and-types "$(shape </run/ours)" "$(shape </run/real)"
but_paths() { jq -c '.Devices[] | del(.DevicePath, .GenericPath)'; }
same values-alike "$(but_paths </run/ours)" "$(but_paths </run/real)"
same path "$(jq -r '.Devices[].DevicePath' /run/ours)" /dev/hiops0n1
expect generic-path-takes-commands nvme id-ctrl "$(jq -r '.Devices[].GenericPath' /run/ours)"

metrics() {
	echo "== metrics $1"
	hiopsctl metrics
	echo '== end'
}
load() {
	fio --name=load --filename=/dev/hiops0n1:/dev/hiops1d0 --size=8M --rw=randrw --direct=1 \
		--numjobs=4 --number_ios=500 --output="$OUT.fio"
}
expect load load
metrics 1
expect more-load load
metrics 2
says build-info "hiops_build_info{version=\"$(modinfo -F version hiops)\",hiopsctl=" \
	hiopsctl metrics

# sos, with the plugin among its own.
python=$W/usr/lib/python3/dist-packages
cp tools/watch/sos-hiops.py "$python/sos/report/plugins/hiops.py"
export PYTHONPATH=$python LD_LIBRARY_PATH=$W/usr/lib/x86_64-linux-gnu
mkdir -p /run/sos /etc/hiops
echo "$PCI hiops_nvme" >/etc/hiops/devices
expect sos python3 -B "$W/usr/bin/sos" report --batch --only-plugins hiops --tmp-dir /run/sos \
	--build --label watched
at=$(echo /run/sos/sosreport-*/)
took() { # NAME FILE TEXT
	says "sos-$1" "$3" cat "$at$2"
}
took devices etc/hiops/devices "$PCI hiops_nvme"
took status sos_commands/hiops/hiopsctl_status hiops0n1
took nvme-list sos_commands/hiops/hiopsctl_nvme-list_-o_json '"DevicePath": "/dev/hiops0n1"'
took report sos_commands/hiops/hiopsctl_report '<serial-'
took smart-log sos_commands/hiops/nvme_smart-log_.dev.hiops0n1 critical_warning
took smartctl sos_commands/hiops/smartctl_--all_-d_sat_.dev.hiops1d0 sata-0
took stats "$(cd "$at" && find sys -path '*/hiops/stats' | grep hiops0n1)" completed_coop
expect sos-without-resets sh -c "! find $at -name reset_controller | grep ."
expect sos-no-exception sh -c "! find $at -name '*plugin_errors*' | grep ."
expect give-back hiops-bind $PCI none
plan
