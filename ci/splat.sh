# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What counts as a kernel's complaint in its log.

SPLAT='BUG:|WARNING:|Oops:|kernel BUG at|Kernel panic|KASAN:|KFENCE:|UBSAN:|'
SPLAT+='general protection fault|unable to handle|'
SPLAT+='INFO: (possible|inconsistent|suspicious|trying to register|lockdep)|'
SPLAT+='suspicious RCU usage|invalid context at|scheduling while atomic|refcount_t:|'
SPLAT+='list_(add|del) corruption|Bad page|detected stall|blocked for more than|'
SPLAT+='DMA-API: .*(device driver|debugging out of memory)|segfault at .* in hiops|'
SPLAT+='rust_kernel: panicked|panicked at'
# hiops' own: an I/O that nobody ended until its time-out looked for it. Not for a test that looks
# at the counter of these itself, as some come of the fault that it makes (HIOPS_MISSES=counted).
[ "${HIOPS_MISSES:-}" = counted ] || SPLAT+='|noticed only at its deadline'

# splats LOG: prints each complaint with what follows it; true when there was one.
splats() {
	grep -aqE "$SPLAT" "$1" || return 1
	grep -aE -A 40 "$SPLAT" "$1" | tr -d '\r' | head -n 400
}
