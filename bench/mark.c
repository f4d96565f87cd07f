// SPDX-License-Identifier: GPL-2.0
/*
 * mark REGION COMMAND [ARG...]: runs COMMAND between a start and a stop mark of REGION
 * (0 to 1048575), which plugin/count.c sees, and exits with COMMAND's status.
 * A mark is the NOP `0f 1f 84 c0 imm32`; it does nothing on any x86-64 machine.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAGIC 0xa5000000u
#define START 0x100000u
#define STOP 0x200000u

/* A page of code whose first `off` bytes are in use: adds "mark imm; ret". */
static void (*emit(unsigned char *page, size_t off, uint32_t imm))(void)
{
	static const unsigned char nop[] = { 0x0f, 0x1f, 0x84, 0xc0 };
	unsigned char *code = page + off;
	void (*call)(void);

	memcpy(code, nop, sizeof(nop));
	memcpy(code + 4, &imm, sizeof(imm));
	code[8] = 0xc3;
	memcpy(&call, &code, sizeof(call));
	return call;
}

int main(int argc, char **argv)
{
	void (*start)(void), (*stop)(void);
	unsigned long region;
	unsigned char *page;
	char *end = NULL;
	int status;
	pid_t pid;

	region = argc > 2 ? strtoul(argv[1], &end, 0) : 0;
	if (argc < 3 || *end || end == argv[1] || region > 0xfffff) {
		fprintf(stderr, "usage: mark REGION COMMAND [ARG...]\n");
		return 125;
	}
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED) {
		perror("mark: mmap");
		return 125;
	}
	start = emit(page, 0, MAGIC | START | (uint32_t)region);
	stop = emit(page, 64, MAGIC | STOP | (uint32_t)region);
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC)) {
		perror("mark: mprotect");
		return 125;
	}

	start();
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		perror("mark");
		return 125;
	}
	stop();
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
