// SPDX-License-Identifier: GPL-2.0
/*
 * meter [options] FILE...: reads the FILEs, the clock and what has been done at the beginning and
 * at the end of a window of a load, so that all of it stands for the same stretch of time.
 *
 *   -o PREFIX   PREFIX.begin and PREFIX.end take what was read (required)
 *   -r REGION   the plugin's region that is marked as the window
 *   -d STAT     a disk's stat file in sysfs; several add up
 *   -f SECTORS  the window begins when so many have been moved since the start of meter
 *   -t SECTORS  and ends with so many
 *   -n NS       instead: it lasts so long,
 *   -w NS       and begins so much later: that a program starts disturbs the load
 *   -k PID      as it begins, that process gets a SIGUSR1
 *   -c COUNTER  a hog's file; several are told one by one
 *
 * Each output is lines "NAME VALUE": clock (ns), self (meter's own CPU time, ns), sectors, and
 * rounds for each counter; then an empty line and the FILEs as they were. "ready" on stdout says
 * that the sectors are counted from here.
 *
 * It runs in the class SCHED_FIFO: nothing comes between the readings of one edge.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "mark.h"

#define MANY 8
/* The files of an edge, together. */
#define TEXT (1u << 20)

struct edge {
	uint64_t clock, self, sectors, rounds[MANY];
	size_t len;
	char *text;
};

static int disks[MANY], counters[MANY];
static const volatile uint64_t *rounds[MANY];
static unsigned int n_disks, n_counters;
static int *files;
static unsigned int n_files;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t))
		fail("meter: clock");
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static int must_open(const char *path, int flags)
{
	int fd = open(path, flags);

	if (fd < 0)
		fail(path);
	return fd;
}

/* Sectors read and written so far: the third and the seventh number. */
static uint64_t sectors(void)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < n_disks; i++) {
		char text[512];
		ssize_t n = pread(disks[i], text, sizeof(text) - 1, 0);
		uint64_t in, out;

		if (n <= 0)
			fail("meter: a disk's stat");
		text[n] = 0;
		if (sscanf(text, "%*u %*u %" SCNu64 " %*u %*u %*u %" SCNu64, &in, &out) != 2)
			fail("meter: what is in a disk's stat");
		sum += in + out;
	}
	return sum;
}

static void read_files(struct edge *e)
{
	e->len = 0;
	for (unsigned int i = 0; i < n_files; i++) {
		off_t at = 0;
		ssize_t n;

		while ((n = pread(files[i], e->text + e->len, TEXT - e->len, at)) > 0) {
			at += n;
			e->len += (size_t)n;
		}
		if (n < 0)
			fail("meter: a file");
	}
}

static void read_counts(struct edge *e)
{
	e->sectors = n_disks ? sectors() : 0;
	for (unsigned int i = 0; i < n_counters; i++)
		e->rounds[i] = *rounds[i];
	e->self = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	e->clock = clock_ns(CLOCK_MONOTONIC);
}

static void save(const char *prefix, const char *which, const struct edge *e)
{
	char path[4096];
	FILE *out;

	snprintf(path, sizeof(path), "%s.%s", prefix, which);
	out = fopen(path, "w");
	if (!out)
		fail(path);
	fprintf(out, "clock %" PRIu64 "\nself %" PRIu64 "\nsectors %" PRIu64 "\n", e->clock,
		e->self, e->sectors);
	for (unsigned int i = 0; i < n_counters; i++)
		fprintf(out, "rounds %" PRIu64 "\n", e->rounds[i]);
	fputc('\n', out);
	if (fwrite(e->text, 1, e->len, out) != e->len || fclose(out))
		fail(path);
}

/*
 * Sleeps until `goal` sectors were moved since `base`. It looks seldom, for a look takes the CPU
 * from the load: each time half of what is left seems to be over; the last 0.5 % are let go.
 */
static void await(uint64_t base, uint64_t goal)
{
	uint64_t then = clock_ns(CLOCK_MONOTONIC), before = sectors() - base, wait = 1000000;

	for (;;) {
		uint64_t done = sectors() - base, now = clock_ns(CLOCK_MONOTONIC);

		if (done + goal / 200 >= goal)
			return;
		/* At the pace since the last look: the load may just have begun. */
		wait = 1000000;
		if (done > before)
			wait = (uint64_t)((double)(now - then) * (double)(goal - done) /
					  (double)(done - before) / 2);
		if (wait < 200000)
			wait = 200000;
		if (wait > 50000000)
			wait = 50000000;
		then = now;
		before = done;
		sleep_ns(wait);
	}
}

int main(int argc, char **argv)
{
	const struct sched_param first = { .sched_priority = 1 };
	uint64_t from = 0, to = 0, ns = 0, later = 0, base;
	pid_t told = 0;
	struct edge begin = { 0 }, end = { 0 };
	const char *prefix = NULL;
	struct marks marks;
	uint32_t region = 0;
	int option;

	while ((option = getopt(argc, argv, "o:r:d:f:t:n:w:k:c:")) != -1) {
		switch (option) {
		case 'o': prefix = optarg; break;
		case 'r': region = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'f': from = strtoull(optarg, NULL, 10); break;
		case 't': to = strtoull(optarg, NULL, 10); break;
		case 'n': ns = strtoull(optarg, NULL, 10); break;
		case 'w': later = strtoull(optarg, NULL, 10); break;
		case 'k': told = (pid_t)strtol(optarg, NULL, 10); break;
		case 'd':
			if (n_disks < MANY)
				disks[n_disks++] = must_open(optarg, O_RDONLY);
			break;
		case 'c':
			if (n_counters < MANY)
				counters[n_counters++] = must_open(optarg, O_RDONLY);
			break;
		default: return 2;
		}
	}
	if (!prefix || region >= MARK_REGIONS || (!ns && (!n_disks || from >= to))) {
		fprintf(stderr, "usage: meter -o PREFIX [-r REGION] [-d STAT]... "
				"(-n NS [-w NS] | -f SECTORS -t SECTORS) [-k PID] "
				"[-c COUNTER]... FILE...\n");
		return 2;
	}
	for (unsigned int i = 0; i < n_counters; i++) {
		rounds[i] = mmap(NULL, sizeof(*rounds[i]), PROT_READ, MAP_SHARED, counters[i], 0);
		if (rounds[i] == MAP_FAILED)
			fail("meter: a counter");
	}
	n_files = (unsigned int)(argc - optind);
	files = calloc(n_files + 1u, sizeof(*files));
	begin.text = calloc(1, TEXT);
	end.text = calloc(1, TEXT);
	if (!files || !begin.text || !end.text || !make_marks(&marks, region))
		fail("meter: memory");
	for (unsigned int i = 0; i < n_files; i++)
		files[i] = must_open(argv[optind + (int)i], O_RDONLY);
	/* Memory is touched, and each file made, once before it counts. */
	read_files(&begin);
	memcpy(end.text, begin.text, begin.len);
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		fail("meter: SCHED_FIFO");
	base = n_disks ? sectors() : 0;
	puts("ready");
	fflush(stdout);

	if (!ns)
		await(base, from);
	else if (later)
		sleep_ns(later);
	if (told)
		kill(told, SIGUSR1);
	read_files(&begin);
	marks.start();
	read_counts(&begin);
	if (ns)
		sleep_ns(ns);
	else
		await(base, to);
	read_counts(&end);
	marks.stop();
	read_files(&end);
	save(prefix, "begin", &begin);
	save(prefix, "end", &end);
	return 0;
}
