/* SPDX-License-Identifier: GPL-2.0 */
/* What this machine takes for what a thread or a device can do instead. */
#ifndef HIOPS_COSTS_H
#define HIOPS_COSTS_H

#include <linux/types.h>

/* In nanoseconds; 0: could not be measured. */
struct hiops_costs {
	/* A thread sleeps and is woken. */
	u64 sleep_ns;
	/* A thread yields and has its turn again. */
	u64 yield_ns;
	/* A timer's interrupt, from its entry to its exit. */
	u64 tick_ns;
};

/*
 * Measures them on this CPU. Some milliseconds, and a slice of each thread that
 * computes there; sleeps.
 */
void hiops_measure_costs(struct hiops_costs *costs);

#endif
