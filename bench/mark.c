// SPDX-License-Identifier: GPL-2.0
/*
 * mark start|stop REGION: tells plugin/count.c that a region (0 to 1048575) begins or ends here.
 * mark loop REGION: a region of 20,000,000 instructions, to see that they are counted.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mark.h"

#define LOOPS 10000000ul

int main(int argc, char **argv)
{
	const char *what = argc == 3 ? argv[1] : "";
	bool loop = !strcmp(what, "loop");
	struct marks marks;
	unsigned long region, n = LOOPS;
	char *end = NULL;

	region = argc == 3 ? strtoul(argv[2], &end, 0) : 0;
	if (argc != 3 || (!loop && strcmp(what, "start") && strcmp(what, "stop")) ||
	    end == argv[2] || *end || region >= MARK_REGIONS) {
		fprintf(stderr, "usage: mark start|stop|loop REGION\n");
		return 2;
	}
	if (!make_marks(&marks, (uint32_t)region)) {
		perror("mark: mmap");
		return 1;
	}
	if (strcmp(what, "stop"))
		marks.start();
	if (loop)
		__asm__ volatile("1: dec %0; jnz 1b" : "+r"(n) : : "cc");
	if (strcmp(what, "start"))
		marks.stop();
	return 0;
}
