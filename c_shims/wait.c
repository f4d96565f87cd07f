// SPDX-License-Identifier: GPL-2.0
/*
 * The VFS wait hook, by ftrace: a thread that waits for I/O of its own on a
 * hiops disk passes through hiops_wait_enter() before it sleeps and through
 * hiops_wait_leave() after it was woken; one that has just submitted here, and
 * is not tracked, sleeps without a timer (hiops_sleep_watched()). Every other
 * thread is left alone by the callback itself, so that it never has this
 * module's text on its stack, and so is one that makes a pause.
 */

#include <linux/blk-mq.h>
#include <linux/ftrace.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/jump_label.h>
#include <linux/mutex.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "wait.h"

/* As a thread submits (blk.c). */
DECLARE_PER_CPU(pid_t, hiops_submitter);

struct hiops_key hiops_predicts = { .key = STATIC_KEY_FALSE_INIT };

void hiops_predicts_get(void)
{
	static_branch_inc(&hiops_predicts.key);
}

void hiops_predicts_put(void)
{
	static_branch_dec(&hiops_predicts.key);
}

u64 hiops_waiter_of(struct request *rq)
{
	/* A kernel thread submits for others; so does an elevator, or a merge. */
	if (!in_task() || (current->flags & PF_KTHREAD) || rq->q->elevator)
		return 0;
	if (!rq->bio || rq->bio != rq->biotail || (rq->rq_flags & RQF_FLUSH_SEQ))
		return 0;
	if (!op_is_sync(rq->cmd_flags))
		return 0;
	/* Its sleep is the table's. */
	this_cpu_write(hiops_submitter, 0);
	return (u64)(uintptr_t)current;
}

u64 hiops_this_thread(void)
{
	return (u64)(uintptr_t)current;
}

bool hiops_may_drain(void)
{
	return !current->bio_list && !irqs_disabled();
}

bool hiops_is_awake(void)
{
	return task_is_running(current);
}

/* More of them than looks: a look at memory that the device writes disturbs it. */
#define HIOPS_RESTS 6

static void hiops_rest(void)
{
	int i;

	for (i = 0; i < HIOPS_RESTS; i++)
		cpu_relax();
}

bool hiops_pause(void)
{
	hiops_rest();
	return !task_is_running(current) && !need_resched();
}

bool hiops_pause_awake(void)
{
	hiops_rest();
	return !need_resched();
}

bool hiops_may_nap(void)
{
	return !current->plug;
}

bool hiops_may_yield(void)
{
	/*
	 * Of a real-time thread nobody expects it; a deadline thread would be
	 * throttled, an idle one hardly come again. What is plugged has to be
	 * submitted first, which a sleep does.
	 */
	return current->policy == SCHED_NORMAL && !current->plug;
}

bool hiops_on_idle_cpu(void)
{
	return is_idle_task(current);
}

u32 hiops_this_pid(void)
{
	return current->pid;
}

bool hiops_is_ready_here(u32 pid)
{
	struct task_struct *task;
	bool ready;

	rcu_read_lock();
	task = pid_task(find_pid_ns(pid, &init_pid_ns), PIDTYPE_PID);
	ready = task && task_is_running(task) &&
		task_cpu(task) == smp_processor_id();
	rcu_read_unlock();
	return ready;
}

bool hiops_counts_for_less(u32 pid)
{
	struct task_struct *task;
	bool less;

	rcu_read_lock();
	task = pid_task(find_pid_ns(pid, &init_pid_ns), PIDTYPE_PID);
	less = task && (task->policy == SCHED_IDLE ||
			task->static_prio > current->static_prio);
	rcu_read_unlock();
	return less;
}

void hiops_wake(u64 thread)
{
	wake_up_process((struct task_struct *)(uintptr_t)thread);
}

/*
 * Not what yield()'s kernel-doc warns of: nothing relies on what runs next, and
 * it is not done in a loop. The thread's I/O goes on by itself, and the caller
 * looks whether it is over, as after any wake-up; if not, it comes again, and
 * sleeps.
 */
static void hiops_yield(void)
{
	yield();
}

/*
 * What io_schedule_timeout() does, and io_schedule() with no timeout, but with
 * nothing plugged not through the hook again: that costs as much as a look.
 */
static long hiops_io_sleep(long timeout)
{
	int old_iowait = current->in_iowait;

	if (current->plug)
		return io_schedule_timeout(timeout);
	current->in_iowait = 1;
	timeout = schedule_timeout(timeout);
	current->in_iowait = old_iowait;
	return timeout;
}

/*
 * Sleeps as the caller has said, but until then at the latest. Awake it is
 * running, and goes back to its caller whatever has come: what woke it may be
 * what the caller waits for, and nobody would wake it again. Not inline, so that
 * tools/hiops-trace finds it.
 */
static noinline bool hiops_nap(u64 until_ns)
{
	ktime_t until = ns_to_ktime(min_t(u64, until_ns, KTIME_MAX));
	int old_iowait = current->in_iowait;
	int woken;

	current->in_iowait = 1;
	woken = schedule_hrtimeout_range(&until, 0, HRTIMER_MODE_ABS_PINNED);
	current->in_iowait = old_iowait;
	return woken;
}

/* What is left of a timeout that ends then: nobody learns of its end from here. */
static long hiops_left(long timeout, unsigned long until)
{
	return timeout == MAX_SCHEDULE_TIMEOUT ? timeout :
	       max_t(long, until - jiffies, 0);
}

/*
 * Built without sibling calls: after one, the caller of the original would not
 * be this module, and it would be redirected for ever.
 */
static long hiops_io_schedule_timeout(long timeout)
{
	struct hiops_wait wait = { .next = HIOPS_SLEEP };
	void *place = hiops_wait_enter(hiops_this_thread(), timeout, &wait);

	if (wait.next == HIOPS_SLEEP) {
		timeout = hiops_io_sleep(timeout);
	} else if (wait.next == HIOPS_SLEEP_WATCHED) {
		unsigned long until = jiffies + timeout;

		hiops_io_sleep(MAX_SCHEDULE_TIMEOUT);
		timeout = hiops_left(timeout, until);
	} else if (wait.next == HIOPS_NAP) {
		unsigned long until = jiffies + timeout;

		wait.woken = hiops_nap(wait.until_ns);
		timeout = hiops_left(timeout, until);
	} else if (wait.next == HIOPS_YIELD) {
		hiops_yield();
	}
	hiops_wait_leave(place, hiops_this_thread(), &wait);
	return timeout;
}

bool hiops_io_wait(const bool *over, long ticks, bool is_tracked)
{
	bool is_over;

	for (;;) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		/* Acquires what was written before. */
		is_over = smp_load_acquire(over);
		if (is_over || ticks <= 0)
			break;
		if (is_tracked)
			ticks = hiops_io_schedule_timeout(ticks);
		else
			ticks = hiops_io_sleep(ticks);
	}
	__set_current_state(TASK_RUNNING);
	return is_over;
}

#ifdef CONFIG_DYNAMIC_FTRACE_WITH_ARGS

/* For a thread that has an entry: that is all there is to it. */
static long hiops_sleep_watched(long timeout)
{
	unsigned long until = jiffies + timeout;

	hiops_io_sleep(MAX_SCHEDULE_TIMEOUT);
	hiops_sleep_end(hiops_this_thread());
	return hiops_left(timeout, until);
}

static void hiops_io_schedule(void)
{
	hiops_io_schedule_timeout(MAX_SCHEDULE_TIMEOUT);
}

/* What is hooked. */
static unsigned long hiops_hooked[] = {
	(unsigned long)io_schedule,
	(unsigned long)io_schedule_timeout,
};

/*
 * Shorter than this is a pause that somebody has to make, and nothing that ends
 * with I/O: balance_dirty_pages() slows writers down by up to HZ / 5. A thread
 * that waits for I/O with a time-out is to be seen alive, and comes back after
 * half of kernel.hung_task_timeout_secs, which is a second at least.
 */
#define HIOPS_SHORTEST_WAIT (HZ / 2)

/* The call to the tracer is at the function's beginning, behind its landing pad. */
static __always_inline bool hiops_is_timed(unsigned long ip)
{
	return ip - (unsigned long)io_schedule_timeout < 16;
}

/*
 * It calls nothing that it is hooked to, so it can't recurse, and needs no check
 * of that (FTRACE_OPS_FL_RECURSION), which costs as much as all the rest of it
 * in every thread that waits for anything. Preemption may be on; a thread that
 * is preempted here is waited for by unregister_ftrace_function(), as the ops
 * are a module's.
 */
static void notrace hiops_redirect(unsigned long ip, unsigned long parent_ip,
				   struct ftrace_ops *ops,
				   struct ftrace_regs *fregs)
{
	void *to = hiops_io_schedule;

	/* It waits for what it has just submitted, most likely: that needs no timer of its own. */
	if (this_cpu_read(hiops_submitter) == current->pid) {
		/* What is plugged has to be submitted first, which the original does. */
		if (!hiops_is_timed(ip) || current->plug)
			return;
		/* Now, and not where it sleeps: leaving the module waits for all entries. */
		if (hiops_sleep_begin(hiops_this_thread(),
				      ftrace_regs_get_argument(fregs, 0)))
			ftrace_regs_set_instruction_pointer(
				fregs, (unsigned long)hiops_sleep_watched);
		return;
	}
	if (!hiops_wait_wanted(hiops_this_thread()))
		return;
	if (within_module_mem_type(parent_ip, THIS_MODULE, MOD_TEXT))
		return;
	if (hiops_is_timed(ip)) {
		if ((long)ftrace_regs_get_argument(fregs, 0) <
		    HIOPS_SHORTEST_WAIT)
			return;
		to = hiops_io_schedule_timeout;
	}
	ftrace_regs_set_instruction_pointer(fregs, (unsigned long)to);
}

/* Permanent: kernel.ftrace_enabled=0 is refused while the hook is there, as with livepatch. */
static struct ftrace_ops hiops_hook = {
	.func = hiops_redirect,
	.flags = FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT,
};

static DEFINE_MUTEX(hiops_hook_lock);
static unsigned int hiops_hook_users;

static int hiops_hook_set(void)
{
	int ret = ftrace_set_filter_ips(&hiops_hook, hiops_hooked,
					ARRAY_SIZE(hiops_hooked), 0, 0);

	if (!ret)
		ret = register_ftrace_function(&hiops_hook);
	if (ret)
		ftrace_free_filter(&hiops_hook);
	return ret;
}

static void hiops_hook_clear(void)
{
	unregister_ftrace_function(&hiops_hook);
	ftrace_free_filter(&hiops_hook);
}

int hiops_hook_get(void)
{
	int ret = 0;

	mutex_lock(&hiops_hook_lock);
	if (!hiops_hook_users)
		ret = hiops_hook_set();
	if (!ret)
		hiops_hook_users++;
	mutex_unlock(&hiops_hook_lock);
	return ret;
}

bool hiops_hook_put(void)
{
	bool left;

	mutex_lock(&hiops_hook_lock);
	left = --hiops_hook_users;
	if (!left)
		hiops_hook_clear();
	mutex_unlock(&hiops_hook_lock);
	return left;
}

void hiops_hook_left(void)
{
	/*
	 * A thread in the hook does not sleep there any more, so it has left when
	 * it next schedules by itself.
	 */
	synchronize_rcu_tasks();
}

#else

int hiops_hook_get(void)
{
	return -EOPNOTSUPP;
}

bool hiops_hook_put(void)
{
	return false;
}

void hiops_hook_left(void)
{
}

#endif
