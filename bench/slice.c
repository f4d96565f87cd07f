// SPDX-License-Identifier: GPL-2.0
/*
 * slice NS PROGRAM [ARG...]: the program with slices of so many nanoseconds (100,000 at least):
 * woken beside a thread whose slice is longer, it preempts that one (Linux 6.12 and later).
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* struct sched_attr, which not every libc has. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

int main(int argc, char **argv)
{
	struct attributes attributes = { .size = sizeof(attributes), .policy = SCHED_OTHER };
	char *end = "";

	if (argc > 2)
		attributes.runtime = strtoull(argv[1], &end, 10);
	if (argc < 3 || *end || attributes.runtime < 100000) {
		fprintf(stderr, "usage: slice NS PROGRAM [ARG...]\n");
		return 2;
	}
	if (syscall(SYS_sched_setattr, 0, &attributes, 0)) {
		perror("slice: sched_setattr");
		return 1;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
