// SPDX-License-Identifier: GPL-2.0
/*
 * What a thread that reads or writes a disk's bytes does with the disk's queue: the
 * block layer's counter of what is under way, and its other counts.
 */

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "bytes.h"

/* As blk_try_enter_queue() does. */
static bool hiops_bytes_try_enter(struct request_queue *q)
{
	bool entered;

	rcu_read_lock();
	entered = percpu_ref_tryget_live_rcu(&q->q_usage_counter);
	if (entered && blk_queue_pm_only(q)) {
		percpu_ref_put(&q->q_usage_counter);
		entered = false;
	}
	rcu_read_unlock();
	return entered;
}

/* As __bio_queue_enter() does. */
int hiops_bytes_enter(struct gendisk *disk, bool may_wait)
{
	struct request_queue *q = disk->queue;

	while (!hiops_bytes_try_enter(q)) {
		if (!may_wait)
			return hiops_bytes_is_dead(disk) ? -ENODEV : -EAGAIN;
		/* Pairs with blk_freeze_queue_start(): the counter is looked at first. */
		smp_rmb();
		wait_event(q->mq_freeze_wq,
			   (!q->mq_freeze_depth && !blk_queue_pm_only(q)) ||
			   hiops_bytes_is_dead(disk));
		if (hiops_bytes_is_dead(disk))
			return -ENODEV;
	}
#ifdef CONFIG_LOCKDEP
	rwsem_acquire_read(&q->io_lockdep_map, 0, 0, _RET_IP_);
	rwsem_release(&q->io_lockdep_map, _RET_IP_);
#endif
	return 0;
}

bool hiops_bytes_enter_too(struct gendisk *disk)
{
	return percpu_ref_tryget(&disk->queue->q_usage_counter);
}

void hiops_bytes_exit(struct gendisk *disk)
{
	percpu_ref_put(&disk->queue->q_usage_counter);
}

bool hiops_bytes_is_quiesced(const struct gendisk *disk)
{
	return blk_queue_quiesced(disk->queue);
}

bool hiops_bytes_is_dead(const struct gendisk *disk)
{
	return test_bit(GD_DEAD, &disk->state);
}

u32 hiops_bytes_timeout(const struct gendisk *disk)
{
	return READ_ONCE(disk->queue->rq_timeout);
}

u32 hiops_bytes_queue_of(const struct blk_mq_tag_set *set, unsigned int cpu)
{
	return set->map[HCTX_TYPE_DEFAULT].mq_map[cpu];
}

int hiops_bytes_errno(u8 status)
{
	return blk_status_to_errno((__force blk_status_t)status);
}

unsigned long hiops_bytes_begin_acct(struct gendisk *disk, bool is_write)
{
	/* 0: nothing is counted. */
	if (!blk_queue_io_stat(disk->queue))
		return 0;
	return bdev_start_io_acct(disk->part0, is_write ? REQ_OP_WRITE : REQ_OP_READ,
				  jiffies | 1);
}

void hiops_bytes_end_acct(struct gendisk *disk, bool is_write, u32 sectors, unsigned long begun)
{
	if (begun)
		bdev_end_io_acct(disk->part0, is_write ? REQ_OP_WRITE : REQ_OP_READ, sectors,
				 begun);
}

void hiops_pagefault_disable(void)
{
	pagefault_disable();
}

void hiops_pagefault_enable(void)
{
	pagefault_enable();
}
