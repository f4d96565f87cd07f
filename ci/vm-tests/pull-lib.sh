# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# A function behind a PCI Express slot, and how it is taken out. Sourced inside the machine, after
# guest-lib.sh; `slot` is the folder of the slot's port in sysfs, and the function is on a bus of
# its own.

has_function() { compgen -G "$slot/0000:*:00.0"; }
has_none() { ! has_function; }
address() { basename $slot/0000:*:00.0; }
# A byte of the slot's configuration space; its PCI Express capability.
config() { od -An -tu1 -j"$1" -N1 $slot/config | tr -d ' '; }
capability() {
	local at
	at=$(config 52)
	until [ "$(config "$at")" = 16 ]; do at=$(config $((at + 1))); done
	echo "$at"
}

# pull_by_surprise: it is gone before the kernel hears of it, in a machine with one CPU, whose slots
# are the PCI Express driver's.
pull_by_surprise() {
	local at control
	at=$(($(capability) + 24))
	control=$(($(config $at) | $(config $((at + 1))) << 8))
	# Slot Control with power controller and power indicator off: QEMU takes it out before this
	# write returns. Then with power as it was: the slot's driver would take a slot without
	# power for one that it has emptied itself. It must not look in between: this machine has
	# one CPU, and nobody on it comes before this process.
	# shellcheck disable=SC2016  # the variables are perl's
	chrt -f 99 perl -e '
		sysopen(my $f, $ARGV[0], 2) or die $!;
		for (@ARGV[2, 3]) {
			sysseek($f, $ARGV[1], 0);
			syswrite($f, pack("v", $_)) == 2 or die $!
		}' $slot/config $at $((control | 0x700)) $control
}
