/* SPDX-License-Identifier: GPL-2.0 */
/* What programs that ask for values share: the clock, dice, what is in a value, latencies. */
#ifndef HIOPS_LOAD_H
#define HIOPS_LOAD_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Latencies to 1.6 %: 64 steps for each power of two. */
#define STEPS 64
#define POWERS 40

struct histogram {
	uint64_t counts[POWERS * STEPS];
};

static inline void fail(const char *what)
{
	perror(what);
	exit(1);
}

static inline uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A number below `below`; the dice are not 0. */
static inline uint32_t roll(uint64_t *dice, uint32_t below)
{
	*dice ^= *dice << 13;
	*dice ^= *dice >> 7;
	*dice ^= *dice << 17;
	return (uint32_t)((*dice >> 32) * below >> 32);
}

/* A word of a value: of each place, key and turn another; the first says which. */
static inline uint64_t word(uint32_t key, uint32_t turn, uint32_t at)
{
	uint64_t first = (uint64_t)turn << 32 | key;

	return at ? first * 0x9e3779b97f4a7c15u + at * 0xd6e8feb86659fd93u : first;
}

static inline void make(char *to, uint32_t bytes, uint32_t key, uint32_t turn)
{
	uint32_t at = 0, left = bytes;

	for (; left >= 8; left -= 8, at++) {
		uint64_t next = word(key, turn, at);

		memcpy(to + at * 8, &next, 8);
	}
	if (left) {
		uint64_t next = word(key, turn, at);

		memcpy(to + at * 8, &next, left);
	}
}

static inline void note(struct histogram *histogram, uint64_t ns)
{
	int power = 63 - __builtin_clzll(ns | STEPS);
	uint64_t step = ns >> (power - 6) & (STEPS - 1);
	size_t at = (size_t)(power - 6) * STEPS + step;

	if (ns >= STEPS && at < POWERS * STEPS)
		histogram->counts[at]++;
}

static inline uint64_t percentile(const struct histogram *histogram, double share)
{
	uint64_t all = 0, seen = 0;

	for (size_t i = 0; i < POWERS * STEPS; i++)
		all += histogram->counts[i];
	for (size_t i = 0; i < POWERS * STEPS; i++) {
		seen += histogram->counts[i];
		if (seen && (double)seen >= share * (double)all)
			return (STEPS + i % STEPS) << (i / STEPS);
	}
	return 0;
}

/* The last lines of such a program. */
static inline void tell_latencies(const struct histogram *histogram)
{
	printf("p50 %" PRIu64 "\np99 %" PRIu64 "\np999 %" PRIu64 "\n", percentile(histogram, 0.5),
	       percentile(histogram, 0.99), percentile(histogram, 0.999));
}

/* Says how many values were set, and waits for a line. */
static inline void tell_filled(uint32_t count)
{
	char line[16];

	printf("filled %" PRIu32 "\n", count);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

#endif
