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

#include "costs.h"

#define HIOPS_TRIES 6
#define HIOPS_ROUNDS 8
/* Beside threads that compute a yield takes their slice: then fewer have to do. */
#define HIOPS_LONG_NS (4 * NSEC_PER_MSEC)
/* The timer expires after so long, and is waited for twice as long. */
#define HIOPS_TIMER_NS 20000

static u64 hiops_now(void)
{
	return ktime_get_ns();
}

static bool hiops_is_long(u64 since)
{
	return hiops_now() - since > HIOPS_LONG_NS;
}

static void hiops_note_least(u64 *least, u64 ns)
{
	if (ns && (!*least || ns < *least))
		*least = ns;
}

/* What the partner does with the next ping. */
enum hiops_step {
	HIOPS_ANSWERS,
	HIOPS_YIELDS,
	HIOPS_ENDS,
};

/*
 * The other one of two threads that do nothing but sleep, or yield. It looks at
 * the step once for each ping, so that it is never ahead of its partner.
 */
struct hiops_partner {
	struct completion ping;
	struct completion pong;
	enum hiops_step step;
};

static int hiops_partner_main(void *data)
{
	struct hiops_partner *partner = data;
	enum hiops_step step;

	for (;;) {
		wait_for_completion(&partner->ping);
		step = READ_ONCE(partner->step);
		if (step == HIOPS_ENDS)
			break;
		complete(&partner->pong);
		while (step == HIOPS_YIELDS) {
			yield();
			step = READ_ONCE(partner->step);
		}
	}
	/* Until it is stopped, its maker has no reference to it but this. */
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static void hiops_round(struct hiops_partner *partner)
{
	complete(&partner->ping);
	wait_for_completion(&partner->pong);
}

static void hiops_measure_threads(struct hiops_costs *costs)
{
	struct hiops_partner partner = { .step = HIOPS_ANSWERS };
	struct task_struct *task;
	u64 begin;
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
	begin = hiops_now();
	for (i = 0; i < HIOPS_TRIES && !hiops_is_long(begin); i++) {
		u64 since = hiops_now();

		for (j = 0; j < HIOPS_ROUNDS; j++)
			hiops_round(&partner);
		hiops_note_least(&costs->sleep_ns, (hiops_now() - since) /
						   (2 * HIOPS_ROUNDS));
	}
	WRITE_ONCE(partner.step, HIOPS_YIELDS);
	hiops_round(&partner);
	begin = hiops_now();
	for (i = 0; i < HIOPS_TRIES * HIOPS_ROUNDS && !hiops_is_long(begin);
	     i++) {
		u64 since = hiops_now();

		/* The partner yields, too: there and back again. */
		yield();
		hiops_note_least(&costs->yield_ns, (hiops_now() - since) / 2);
	}
	WRITE_ONCE(partner.step, HIOPS_ENDS);
	migrate_enable();
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
