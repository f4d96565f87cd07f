// SPDX-License-Identifier: GPL-2.0
/*
 * mark start|stop REGION: tells plugin/count.c that a region (0 to 1048575) begins or ends here.
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

int main(int argc, char **argv)
{
	/* nopl imm(%rax,%rax,8); ret. The immediate is part of the instruction, so the code is made here. */
	unsigned char code[] = { 0x0f, 0x1f, 0x84, 0xc0, 0, 0, 0, 0, 0xc3 };
	char *end = NULL;
	unsigned long region = argc == 3 ? strtoul(argv[2], &end, 0) : 0;
	bool start = argc == 3 && !strcmp(argv[1], "start");
	uint32_t imm = MAGIC | (start ? START : STOP) | (uint32_t)region;
	void (*call)(void);
	void *page;

	if (argc != 3 || (!start && strcmp(argv[1], "stop")) || end == argv[2] || *end || region > 0xfffff) {
		fprintf(stderr, "usage: mark start|stop REGION\n");
		return 2;
	}
	page = mmap(NULL, sizeof(code), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED) {
		perror("mark: mmap");
		return 1;
	}
	memcpy(code + 4, &imm, sizeof(imm));
	memcpy(page, code, sizeof(code));
	if (mprotect(page, sizeof(code), PROT_READ | PROT_EXEC)) {
		perror("mark: mprotect");
		return 1;
	}
	memcpy(&call, &page, sizeof(call));
	call();
	return 0;
}
