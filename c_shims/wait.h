/* SPDX-License-Identifier: GPL-2.0 */
/* The VFS wait hook: where a thread waits for its I/O. */
#ifndef HIOPS_WAIT_H
#define HIOPS_WAIT_H

#include <linux/blk-mq.h>
#include <linux/jump_label.h>
#include <linux/types.h>

/*
 * Whether any queue has prediction on: a no-op in the text while none has.
 * Counted; sleep.
 */
struct hiops_key {
	struct static_key_false key;
};
extern struct hiops_key hiops_predicts;
void hiops_predicts_get(void);
void hiops_predicts_put(void);

/* Hooks io_schedule() and io_schedule_timeout(), or drops them again. Counted; sleep. */
int hiops_hook_get(void);
/* Whether they are still there. */
bool hiops_hook_put(void);

/*
 * Returns when threads that slept on their way through the hook have left this
 * module's text. Sleeps.
 */
void hiops_hook_left(void);

/*
 * The thread that waits for rq, as its address; 0 where that is not certain. Not
 * for a request of HIOPS_REQ_NO_SLEEP.
 */
u64 hiops_waiter_of(struct request *rq);
/* The running thread, as its address. Any context. */
u64 hiops_this_thread(void);
/* Bios may end here and now. */
bool hiops_may_drain(void);
/* The running thread was woken. */
bool hiops_is_awake(void);
/*
 * Rests for a moment: whether the running thread was not woken meanwhile, and
 * nobody is more urgent.
 */
bool hiops_pause(void);
/* The running thread may let others run without going to sleep. */
bool hiops_may_yield(void);
/*
 * Rests for a moment: whether nobody is more urgent than the running thread, which
 * naps no more and is not asleep yet.
 */
bool hiops_pause_awake(void);
/*
 * Waits until *over is true, for so many ticks at most, as a thread does that has passed through
 * the hook: whether it is. Whoever sets it wakes the thread. is_tracked: the thread's I/O is in
 * the table of waiters.
 */
bool hiops_io_wait(const bool *over, long ticks, bool is_tracked);
/* Nothing that the running thread waits for is plugged. */
bool hiops_may_nap(void);
/* Nothing but the idle thread runs on this CPU. */
bool hiops_on_idle_cpu(void);
/* The running thread, by the number that it has machine-wide. */
u32 hiops_this_pid(void);
/* The thread of that number runs on this CPU or is ready to. With preemption off. */
bool hiops_is_ready_here(u32 pid);
/* The thread of that number is SCHED_IDLE, or nicer than the running one. */
bool hiops_counts_for_less(u32 pid);
/* Wakes a thread that slept a moment ago. With preemption off since then. */
void hiops_wake(u64 thread);

/*
 * What a thread does that came to sleep: that; or that with no timer, as it is
 * woken when its time-out is over; or let others run and stay ready; or go on, as
 * it was woken.
 */
static const u32 HIOPS_SLEEP = 1;
static const u32 HIOPS_SLEEP_WATCHED = 2;
static const u32 HIOPS_YIELD = 3;
static const u32 HIOPS_GO_ON = 4;
/* Or sleep until hiops_wait.until_ns, unless it is woken before. */
static const u32 HIOPS_NAP = 5;

struct hiops_wait {
	/* By the monotonic clock. */
	u64 until_ns;
	u32 next;
	/* From a nap, before its time. */
	bool woken;
};

/* Implemented in Rust. */
bool hiops_sleep_begin(u64 thread, long timeout);
void hiops_sleep_end(u64 thread);
bool hiops_wait_wanted(u64 thread);
void *hiops_wait_enter(u64 thread, long timeout, struct hiops_wait *wait);
void hiops_wait_leave(void *place, u64 thread, const struct hiops_wait *wait);

#endif
