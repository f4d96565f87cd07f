# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What QEMU does wrong once in some hundred machines of several CPUs, by what is left of them. None
# of it is the guest's doing, so a test that it hits is run once more.

# lost_end CPUS: whether QEMU has lost the end of an interrupt, by what its monitor told twice of
# each CPU (`info registers -a`, `info lapic N`): the same CPU halts both times and has an interrupt
# in service (ISR), which Linux ends before it handles it. Nothing but IPIs gets through to it, and
# the guest hangs.
lost_end() {
	awk '
		/^CPU#/ { cpu = substr($1, 5) + 0; look += cpu == 0 }
		/^RIP=/ { halts[look, cpu] = / HLT=1/ }
		/^dumping/ { cpu = $NF + 0 }
		/^ISR/ && $2 != "(none)" { serves[look, cpu] = 1 }
		END {
			for (cpu = 0; cpu < 32; cpu++)
				for (looks = 0; halts[looks + 1, cpu] && serves[looks + 1, cpu];)
					if (++looks == 2)
						exit 0
			exit 1
		}' "$1"
}

# stale_breakpoint LOG: whether a guest's kernel died of a breakpoint (int3, cc) that its memory did
# not have any more. Linux has one for a moment where it changes code that runs, and takes it away
# before it forgets it; QEMU's CPU ran what it had translated before.
stale_breakpoint() {
	tr -d '\r' <"$1" | awk '
		/Oops: int3/ { died = 1 }
		# The byte at RIP is in brackets; the one that was run is before it.
		died && match($0, /Code: .* <[0-9a-f][0-9a-f]>/) {
			stale = substr($0, RSTART + RLENGTH - 7, 2) != "cc"
			exit
		}
		END { exit !stale }'
}
