// SPDX-License-Identifier: GPL-2.0
/*
 * mark start|stop REGION: tells plugin/count.c that a region (0 to 1048575) begins or ends here.
 * mark loop REGION: a region of 20,000,000 instructions, to see that they are counted.
 * A mark is the NOP `0f 1f 84 c0 imm32`; it does nothing on any x86-64 machine.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAGIC 0xa5000000u
#define START 0x100000u
#define STOP 0x200000u

#define LOOPS 10000000ul

/* What executes a mark; the immediate is part of the instruction, so the code is made here. */
static void (*mark(unsigned char *page, size_t at, uint32_t imm))(void)
{
	/* nopl imm(%rax,%rax,8); ret */
	unsigned char code[] = { 0x0f, 0x1f, 0x84, 0xc0, 0, 0, 0, 0, 0xc3 };
	void (*call)(void);

	memcpy(code + 4, &imm, sizeof(imm));
	page += at;
	memcpy(page, code, sizeof(code));
	memcpy(&call, &page, sizeof(call));
	return call;
}

int main(int argc, char **argv)
{
	const char *what = argc == 3 ? argv[1] : "";
	bool loop = !strcmp(what, "loop");
	void (*start)(void), (*stop)(void);
	unsigned long region, n = LOOPS;
	unsigned char *page;
	char *end = NULL;

	region = argc == 3 ? strtoul(argv[2], &end, 0) : 0;
	if (argc != 3 || (!loop && strcmp(what, "start") && strcmp(what, "stop")) || end == argv[2] || *end ||
	    region > 0xfffff) {
		fprintf(stderr, "usage: mark start|stop|loop REGION\n");
		return 2;
	}
	page = mmap(NULL, 128, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED) {
		perror("mark: mmap");
		return 1;
	}
	start = mark(page, 0, MAGIC | START | (uint32_t)region);
	stop = mark(page, 64, MAGIC | STOP | (uint32_t)region);
	if (mprotect(page, 128, PROT_READ | PROT_EXEC)) {
		perror("mark: mprotect");
		return 1;
	}
	if (strcmp(what, "stop"))
		start();
	if (loop)
		__asm__ volatile("1: dec %0; jnz 1b" : "+r"(n) : : "cc");
	if (strcmp(what, "start"))
		stop();
	return 0;
}
