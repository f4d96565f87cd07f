// SPDX-License-Identifier: GPL-2.0
/*
 * A QEMU TCG plugin that counts what a guest executes between two marks: instructions (kernel
 * and user), accesses to device registers, and, with profile=on, instructions, entries and what
 * orders or reads a clock by translated block, which a reader adds up to functions with the guest's
 * /proc/kallsyms.
 *
 * A guest marks by executing a NOP with an immediate, `0f 1f 84 c0 imm32` (see ../mark.c):
 * MARK_MAGIC in the top byte, the kind in the next four bits, the region's number in the rest.
 *
 * Arguments: out=FILE, profile=on. For each stop of a region a line of "name=value" words in FILE:
 *   region=N kernel=I user=I idle=I vcpu0=I ... mmio:DEVICE=READS,WRITES ...
 * where idle is the idle tasks' part of kernel; and before it, with profile=on, for every block:
 *   block region=N addr=0x... insns=I runs=R locked=L mfence=M rdtsc=T
 * where locked are instructions with a lock prefix, and xchg with memory, which needs none. (A
 * kernel with one CPU has overwritten the prefixes of its C code.)
 *
 * A block is counted when it is entered; one that a fault ends early still counts whole.
 *
 * Whoever executes a HLT is the idle task. What it executes lies between a switch of tasks and the
 * HLT, and between the instruction behind the HLT and the next switch or HLT; not the interrupt
 * that ends the HLT, which runs between the HLT and the instruction behind it.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu-plugin.h"

#define MARK_MAGIC 0xa5u
#define MARK_START 1u
#define MARK_STOP 2u
#define MARK_LEN 8u

#define DEVICES 32u
/* The places of a kernel where an idle CPU halts. */
#define HALTS 8u
/* A power of two, above the number of kernel blocks that a boot and a measurement translate. */
#define BLOCKS (1u << 18)

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;
QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
					   char **argv);

struct device {
	const char *name;
	uint64_t reads, writes;
};

struct vcpu {
	uint64_t kernel, user;
	/* Instructions of the idle task; up to where they are told; whether it executes now. */
	uint64_t idle, told;
	bool idles;
	struct device devices[DEVICES];
};

struct block {
	uint64_t insns, runs, locked, mfence, rdtsc;
};

static struct qemu_plugin_scoreboard *vcpus;
static _Atomic uint64_t behind_halt[HALTS]; /* addresses of the instructions behind them; 0: none */
static struct qemu_plugin_scoreboard *blocks; /* NULL: no profile */
static uint64_t block_addr[BLOCKS];	      /* 0: free; slot 0 takes what found no place */
static pthread_mutex_t block_lock = PTHREAD_MUTEX_INITIALIZER;

/* The counters as they were at the last start mark; `lock` guards these and the output. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *out;
static struct vcpu *at_start;
static struct block *blocks_at_start;
static uint32_t open_region;
static atomic_bool region_is_open;

/* The plugin's three looks at the idle task, as data of on_idle(). */
enum { IDLE_SWITCH, IDLE_HALT, IDLE_RESUME };

static bool is_kernel(uint64_t vaddr)
{
	return vaddr >> 63;
}

/* The sum over all vCPUs of one block's counters. */
static struct block block_sum(uint32_t slot)
{
	struct block sum = { 0 };

	for (int i = 0; i < qemu_plugin_num_vcpus(); i++) {
		const struct block *b = qemu_plugin_scoreboard_find(blocks, (unsigned int)i);

		sum.insns += b[slot].insns;
		sum.runs += b[slot].runs;
		sum.locked += b[slot].locked;
		sum.mfence += b[slot].mfence;
		sum.rdtsc += b[slot].rdtsc;
	}
	return sum;
}

static void start(uint32_t region)
{
	int n = qemu_plugin_num_vcpus();

	at_start = realloc(at_start, sizeof(*at_start) * (size_t)n);
	if (!at_start)
		abort();
	for (int i = 0; i < n; i++)
		at_start[i] = *(struct vcpu *)qemu_plugin_scoreboard_find(vcpus, (unsigned int)i);
	if (blocks)
		for (uint32_t i = 0; i < BLOCKS; i++)
			blocks_at_start[i] = block_sum(i);
	open_region = region;
	region_is_open = true;
}

static void print_blocks(uint32_t region)
{
	for (uint32_t i = 0; i < BLOCKS; i++) {
		struct block now = block_sum(i), then = blocks_at_start[i];

		if (now.runs != then.runs)
			fprintf(out, "block region=%u addr=0x%lx insns=%lu runs=%lu locked=%lu "
				"mfence=%lu rdtsc=%lu\n", region, block_addr[i],
				now.insns - then.insns, now.runs - then.runs,
				now.locked - then.locked, now.mfence - then.mfence,
				now.rdtsc - then.rdtsc);
	}
}

/* A device's counts since the start, summed over the vCPUs; each has its own order of devices. */
static void print_devices(int n)
{
	struct device sum[DEVICES] = { 0 };

	for (int i = 0; i < n; i++) {
		const struct vcpu *now = qemu_plugin_scoreboard_find(vcpus, (unsigned int)i);

		for (unsigned int d = 0; d < DEVICES && now->devices[d].name; d++) {
			unsigned int s = 0;
			const char *name = now->devices[d].name;

			while (s < DEVICES - 1 && sum[s].name && sum[s].name != name)
				s++;
			sum[s].name = name;
			sum[s].reads += now->devices[d].reads - at_start[i].devices[d].reads;
			sum[s].writes += now->devices[d].writes - at_start[i].devices[d].writes;
		}
	}
	for (unsigned int s = 0; s < DEVICES && sum[s].name; s++) {
		if (!sum[s].reads && !sum[s].writes)
			continue;
		fputs(" mmio:", out);
		for (const char *c = sum[s].name; *c; c++)
			fputc(*c > ' ' && *c != '=' ? *c : '_', out);
		fprintf(out, "=%" PRIu64 ",%" PRIu64, sum[s].reads, sum[s].writes);
	}
}

static void stop(uint32_t region)
{
	int n = qemu_plugin_num_vcpus();
	uint64_t kernel = 0, user = 0, idle = 0;

	if (!region_is_open || region != open_region) {
		fprintf(out, "error region=%" PRIu32 " stopped but not started\n", region);
		fflush(out);
		return;
	}
	region_is_open = false;
	if (blocks)
		print_blocks(region);
	for (int i = 0; i < n; i++) {
		const struct vcpu *now = qemu_plugin_scoreboard_find(vcpus, (unsigned int)i);

		kernel += now->kernel - at_start[i].kernel;
		user += now->user - at_start[i].user;
		idle += now->idle - at_start[i].idle;
	}
	fprintf(out, "region=%u kernel=%lu user=%lu idle=%lu", region, kernel, user, idle);
	for (int i = 0; i < n; i++) {
		const struct vcpu *now = qemu_plugin_scoreboard_find(vcpus, (unsigned int)i);

		fprintf(out, " vcpu%d=%" PRIu64, i,
			now->kernel + now->user - at_start[i].kernel - at_start[i].user);
	}
	print_devices(n);
	fputc('\n', out);
	fflush(out);
}

static void on_mark(unsigned int vcpu, void *data)
{
	uint32_t imm = (uint32_t)(uintptr_t)data;
	uint32_t kind = imm >> 20 & 0xf, region = imm & 0xfffff;

	(void)vcpu;
	pthread_mutex_lock(&lock);
	if (kind == MARK_START)
		start(region);
	else if (kind == MARK_STOP)
		stop(region);
	pthread_mutex_unlock(&lock);
}

static void on_idle(unsigned int vcpu, void *data)
{
	struct vcpu *v = qemu_plugin_scoreboard_find(vcpus, vcpu);
	uint64_t now = v->kernel + v->user;
	uintptr_t what = (uintptr_t)data;

	/* Since the switch the idle task has come to its HLT, unless a HLT lies in between. */
	if (what == IDLE_HALT || (what == IDLE_SWITCH && v->idles))
		v->idle += now - v->told;
	v->idles = what == IDLE_RESUME;
	v->told = now;
}

static void on_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	const struct qemu_plugin_hwaddr *addr;
	struct device *d, *end;
	const char *name;

	(void)data;
	/*
	 * Nothing is looked up outside a region. It is not only for speed: an access that changes
	 * the machine's memory map, as PCI enumeration does, makes QEMU 10.0's look-up fail.
	 */
	if (!is_kernel(vaddr) || !atomic_load_explicit(&region_is_open, memory_order_relaxed))
		return;
	addr = qemu_plugin_get_hwaddr(info, vaddr);
	if (!addr || !qemu_plugin_hwaddr_is_io(addr))
		return;
	name = qemu_plugin_hwaddr_device_name(addr);
	d = ((struct vcpu *)qemu_plugin_scoreboard_find(vcpus, vcpu))->devices;
	end = d + DEVICES - 1; /* the last one takes what found no place */
	while (d < end && d->name && d->name != name)
		d++;
	if (!d->name)
		d->name = name;
	if (qemu_plugin_mem_is_store(info))
		d->writes++;
	else
		d->reads++;
}

/* A mark's immediate, or 0. */
static uint32_t mark_of(const uint8_t *code, size_t len)
{
	uint32_t imm;

	if (len != MARK_LEN || memcmp(code, "\x0f\x1f\x84\xc0", 4))
		return 0;
	memcpy(&imm, code + 4, sizeof(imm));
	return imm >> 24 == MARK_MAGIC ? imm : 0;
}

/* mov disp32(%rsi), %rsp: a thread takes another's stack, in __switch_to_asm() and nowhere else. */
static bool is_switch(const uint8_t *code, size_t len)
{
	return len == 7 && !memcmp(code, "\x48\x8b\xa6", 3);
}

static bool is_halt(const uint8_t *code, size_t len)
{
	return len == 1 && code[0] == 0xf4;
}

/*
 * Linux touches device registers with plain moves between a register and memory (88 to 8b)
 * only, so the other instructions need no memory callback, which is what costs time here.
 */
static bool may_touch_device(const uint8_t *code, size_t len)
{
	size_t i = 0;

	if (i < len && code[i] == 0x66)
		i++;
	if (i < len && (code[i] & 0xf0) == 0x40)
		i++;
	/* A ModRM of 11xxxxxx names two registers; a SIB or ModRM base of rsp is the stack. */
	if (i + 1 >= len || (code[i] & 0xfc) != 0x88 || code[i + 1] >> 6 == 3)
		return false;
	return !((code[i + 1] & 7) == 4 && i + 2 < len && code[i + 2] == 0x24);
}

static bool is_prefix(uint8_t byte)
{
	switch (byte) {
	case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65: /* segments */
	case 0x66: case 0x67: /* sizes */
	case 0xf0: case 0xf2: case 0xf3: /* lock, repeat */
		return true;
	default:
		return false;
	}
}

/* Whether an instruction has a lock prefix; `at` becomes the place of its opcode. */
static bool has_lock(const uint8_t *code, size_t len, size_t *at)
{
	bool lock = false;

	for (*at = 0; *at < len && is_prefix(code[*at]); ++*at)
		lock |= code[*at] == 0xf0;
	if (*at < len && (code[*at] & 0xf0) == 0x40) /* REX */
		++*at;
	return lock;
}

/* Adds an instruction to what a run of its block counts. */
static void weigh(struct block *b, const uint8_t *code, size_t len)
{
	size_t at;
	bool lock = has_lock(code, len, &at);

	if (at + 1 >= len)
		return;
	code += at;
	len -= at;
	/* xchg locks by itself where its ModRM names memory. */
	if (lock || ((code[0] & 0xfe) == 0x86 && code[1] >> 6 != 3))
		b->locked++;
	else if (code[0] == 0x0f && code[1] == 0x31)
		b->rdtsc++;
	else if (len == 3 && !memcmp(code, "\x0f\xae\xf0", 3))
		b->mfence++;
	else if (len == 3 && !memcmp(code, "\x0f\x01\xf9", 3)) /* rdtscp */
		b->rdtsc++;
}

/* The counters' slot of the block at `vaddr`. */
static uint32_t block_slot(uint64_t vaddr)
{
	uint32_t slot = (uint32_t)(vaddr * 0x9e3779b97f4a7c15u >> 46), tries;

	pthread_mutex_lock(&block_lock);
	for (tries = 0; tries < 64; tries++, slot = (slot + 1) & (BLOCKS - 1)) {
		if (slot && !block_addr[slot])
			block_addr[slot] = vaddr;
		if (slot && block_addr[slot] == vaddr)
			break;
	}
	pthread_mutex_unlock(&block_lock);
	return tries < 64 ? slot : 0;
}

/* Notes where the HLT at `vaddr`, which ends its block, is left. */
static void note_halt(uint64_t vaddr)
{
	for (size_t i = 0; i < HALTS; i++) {
		uint64_t none = 0;

		if (atomic_compare_exchange_strong(&behind_halt[i], &none, vaddr + 1) ||
		    none == vaddr + 1)
			return;
	}
}

static bool is_behind_halt(uint64_t vaddr)
{
	for (size_t i = 0; i < HALTS; i++)
		if (behind_halt[i] == vaddr)
			return true;
	return false;
}

static void watch_idle(struct qemu_plugin_insn *insn, uint64_t vaddr, const uint8_t *code,
		       size_t len)
{
	uintptr_t what;

	if (is_switch(code, len))
		what = IDLE_SWITCH;
	else if (is_halt(code, len))
		what = IDLE_HALT;
	else if (is_behind_halt(vaddr))
		what = IDLE_RESUME;
	else
		return;
	if (what == IDLE_HALT)
		note_halt(vaddr);
	qemu_plugin_register_vcpu_insn_exec_cb(insn, on_idle, QEMU_PLUGIN_CB_NO_REGS, (void *)what);
}

/* Has each run of the block add what is in `run` to the counters of the block at `vaddr`. */
static void profile(struct qemu_plugin_tb *tb, uint64_t vaddr, const struct block *run)
{
	const struct {
		size_t offset;
		uint64_t n;
	} adds[] = {
		{ offsetof(struct block, insns), run->insns },
		{ offsetof(struct block, runs), run->runs },
		{ offsetof(struct block, locked), run->locked },
		{ offsetof(struct block, mfence), run->mfence },
		{ offsetof(struct block, rdtsc), run->rdtsc },
	};
	size_t at = block_slot(vaddr) * sizeof(struct block);

	for (size_t i = 0; i < sizeof(adds) / sizeof(adds[0]); i++)
		if (adds[i].n)
			qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
				tb, QEMU_PLUGIN_INLINE_ADD_U64,
				(qemu_plugin_u64){ blocks, at + adds[i].offset }, adds[i].n);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	uint64_t vaddr = qemu_plugin_tb_vaddr(tb);
	size_t n = qemu_plugin_tb_n_insns(tb), len;
	struct block run = { .insns = n, .runs = 1 };
	bool kernel = is_kernel(vaddr);

	(void)id;
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
		tb, QEMU_PLUGIN_INLINE_ADD_U64,
		(qemu_plugin_u64){ vcpus, kernel ? offsetof(struct vcpu, kernel) :
						   offsetof(struct vcpu, user) }, n);
	for (size_t i = 0; i < n; i++, vaddr += len) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t code[16];

		len = qemu_plugin_insn_data(insn, code, sizeof(code));
		uint32_t mark = kernel ? 0 : mark_of(code, len);

		if (mark)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark,
							       QEMU_PLUGIN_CB_NO_REGS,
							       (void *)(uintptr_t)mark);
		if (kernel && may_touch_device(code, len))
			qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS,
							 QEMU_PLUGIN_MEM_RW, NULL);
		if (kernel)
			watch_idle(insn, vaddr, code, len);
		weigh(&run, code, len);
	}
	if (blocks && kernel)
		profile(tb, qemu_plugin_tb_vaddr(tb), &run);
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	const char *path = NULL;

	(void)info;
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4)) {
			path = argv[i] + 4;
		} else if (!strcmp(argv[i], "profile=on")) {
			blocks = qemu_plugin_scoreboard_new(sizeof(struct block) * BLOCKS);
			blocks_at_start = calloc(BLOCKS, sizeof(*blocks_at_start));
		} else {
			fprintf(stderr, "count: what is %s? I know out= and profile=on\n", argv[i]);
			return -1;
		}
	}
	out = path ? fopen(path, "w") : NULL;
	if (!out || (blocks && !blocks_at_start)) {
		fprintf(stderr, "count: out=FILE is missing, or can't be written\n");
		return -1;
	}
	vcpus = qemu_plugin_scoreboard_new(sizeof(struct vcpu));
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
