// SPDX-License-Identifier: GPL-2.0
/*
 * hog FILE normal|idle|nice: a neighbour that computes until it is killed. The first 8 bytes of
 * FILE count its rounds, ROUND instructions each, so its progress can be read exactly at any time.
 * idle: in the class SCHED_IDLE; nice: as politely as an ordinary thread can be, nice 19.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* Two instructions a turn. */
#define ROUND 2000

int main(int argc, char **argv)
{
	const char *class = argc == 3 ? argv[2] : "";
	const struct sched_param none = { 0 };
	volatile uint64_t *rounds;
	int fd;

	if (strcmp(class, "normal") && strcmp(class, "idle") && strcmp(class, "nice")) {
		fprintf(stderr, "usage: hog FILE normal|idle|nice\n");
		return 2;
	}
	fd = open(argv[1], O_RDWR);
	rounds = mmap(NULL, sizeof(*rounds), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (rounds == MAP_FAILED) {
		perror(argv[1]);
		return 1;
	}
	if ((!strcmp(class, "idle") && sched_setscheduler(0, SCHED_IDLE, &none)) ||
	    (!strcmp(class, "nice") && setpriority(PRIO_PROCESS, 0, 19))) {
		perror("hog: its scheduling class");
		return 1;
	}
	for (;;) {
		uint64_t n = ROUND / 2;

		__asm__ volatile("1: dec %0; jnz 1b" : "+r"(n) : : "cc");
		*rounds += 1;
	}
}
