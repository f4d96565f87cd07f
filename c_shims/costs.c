// SPDX-License-Identifier: GPL-2.0
/*
 * What this machine takes for a sleep, a yield and a timer's interrupt. Each is
 * measured several times, and the least counts: what else runs can only add.
 * In C, as the kernel crate of Linux 7.3 has no threads and no completions that
 * two threads pass to and fro.
 */

#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>

#include "blk.h"
#include "costs.h"

#define HIOPS_TRIES 6
#define HIOPS_ROUNDS 8
/* The timer expires after so long, and is waited for twice as long. */
#define HIOPS_TIMER_NS 20000

static u64 hiops_now(void)
{
	return hiops_stamp_ns(hiops_stamp());
}

static void hiops_note_least(u64 *least, u64 ns)
{
	if (ns && (!*least || ns < *least))
		*least = ns;
}

/* The other one of two threads that do nothing but sleep, or yield. */
struct hiops_partner {
	struct completion ping;
	struct completion pong;
	bool yields;
};

static int hiops_partner_main(void *data)
{
	struct hiops_partner *partner = data;

	while (!kthread_should_stop()) {
		wait_for_completion(&partner->ping);
		complete(&partner->pong);
		while (READ_ONCE(partner->yields))
			yield();
	}
	return 0;
}

static void hiops_round(struct hiops_partner *partner)
{
	complete(&partner->ping);
	wait_for_completion(&partner->pong);
}

static void hiops_measure_threads(struct hiops_costs *costs)
{
	struct hiops_partner partner = { .yields = false };
	struct task_struct *task;
	int i, j;

	init_completion(&partner.ping);
	init_completion(&partner.pong);
	task = kthread_create(hiops_partner_main, &partner, "hiops_costs");
	if (IS_ERR(task))
		return;
	/* Both on one CPU, for as long as this takes. */
	migrate_disable();
	kthread_bind(task, smp_processor_id());
	wake_up_process(task);
	hiops_round(&partner);
	for (i = 0; i < HIOPS_TRIES; i++) {
		u64 since = hiops_now();

		for (j = 0; j < HIOPS_ROUNDS; j++)
			hiops_round(&partner);
		hiops_note_least(&costs->sleep_ns, (hiops_now() - since) /
						   (2 * HIOPS_ROUNDS));
	}
	WRITE_ONCE(partner.yields, true);
	hiops_round(&partner);
	for (i = 0; i < HIOPS_TRIES * HIOPS_ROUNDS; i++) {
		u64 since = hiops_now();

		/* The partner yields, too: there and back again. */
		yield();
		hiops_note_least(&costs->yield_ns, (hiops_now() - since) / 2);
	}
	WRITE_ONCE(partner.yields, false);
	migrate_enable();
	/* It may wait for one more round. */
	complete(&partner.ping);
	kthread_stop(task);
}

struct hiops_alarm {
	struct hrtimer timer;
	bool rung;
};

static enum hrtimer_restart hiops_ring(struct hrtimer *timer)
{
	struct hiops_alarm *alarm =
		container_of(timer, struct hiops_alarm, timer);

	WRITE_ONCE(alarm->rung, true);
	return HRTIMER_NORESTART;
}

/* The longest gap that a thread sees in its time is the interrupt's. */
static u64 hiops_measure_tick(void)
{
	struct hiops_alarm alarm = { .rung = false };
	u64 since, last, now, gap = 0;

	hrtimer_setup_on_stack(&alarm.timer, hiops_ring, CLOCK_MONOTONIC,
			       HRTIMER_MODE_REL_PINNED_HARD);
	preempt_disable();
	hrtimer_start(&alarm.timer, ns_to_ktime(HIOPS_TIMER_NS),
		      HRTIMER_MODE_REL_PINNED_HARD);
	since = last = hiops_now();
	do {
		now = hiops_now();
		gap = max(gap, now - last);
		last = now;
	} while (!READ_ONCE(alarm.rung) && now - since < 2 * HIOPS_TIMER_NS);
	now = hiops_now();
	gap = max(gap, now - last);
	preempt_enable();
	hrtimer_cancel(&alarm.timer);
	destroy_hrtimer_on_stack(&alarm.timer);
	return alarm.rung ? gap : 0;
}

void hiops_measure_costs(struct hiops_costs *costs)
{
	int i;

	*costs = (struct hiops_costs){};
	hiops_measure_threads(costs);
	for (i = 0; i < HIOPS_TRIES; i++)
		hiops_note_least(&costs->tick_ns, hiops_measure_tick());
}
