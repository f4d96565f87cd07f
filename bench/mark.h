/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What tells plugin/count.c that a region begins or ends: the NOP `0f 1f 84 c0 imm32`.
 * It does nothing on any x86-64 machine.
 */
#ifndef HIOPS_MARK_H
#define HIOPS_MARK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define MARK_MAGIC 0xa5000000u
#define MARK_START 0x100000u
#define MARK_STOP 0x200000u
#define MARK_REGIONS 0x100000u

/* The two marks of one region, to be called. */
struct marks {
	void (*start)(void);
	void (*stop)(void);
};

/* The immediate is part of the instruction, so the code is made here. */
static inline void (*make_mark(unsigned char *at, uint32_t imm))(void)
{
	/* nopl imm(%rax,%rax,8); ret */
	unsigned char code[] = { 0x0f, 0x1f, 0x84, 0xc0, 0, 0, 0, 0, 0xc3 };
	void (*call)(void);

	memcpy(code + 4, &imm, sizeof(imm));
	memcpy(at, code, sizeof(code));
	memcpy(&call, &at, sizeof(call));
	return call;
}

/* False, with errno, when there is no memory for them. */
static inline bool make_marks(struct marks *marks, uint32_t region)
{
	unsigned char *page = mmap(NULL, 128, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return false;
	marks->start = make_mark(page, MARK_MAGIC | MARK_START | region);
	marks->stop = make_mark(page + 64, MARK_MAGIC | MARK_STOP | region);
	return !mprotect(page, 128, PROT_READ | PROT_EXEC);
}

#endif
