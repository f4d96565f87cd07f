// SPDX-License-Identifier: GPL-2.0
/*
 * A disk's bytes: the character device through which they are read, the block
 * layer's counter of what is under way, and copies to user memory.
 */

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/task_io_accounting_ops.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "bytes.h"

/* As many as there are numbers for disks. */
#define HIOPS_BYTES_NODES (MINORMASK + 1)

struct hiops_bytes_node {
	struct device dev;
	struct cdev cdev;
	/* A reference: the disk's number is no other disk's while it is there. */
	struct gendisk *disk;
	/* Under the lock: files that are open, and that no more are opened. */
	unsigned int openers;
	bool gone;
};

static dev_t hiops_bytes_first;
static DEFINE_IDA(hiops_bytes_minors);
static DEFINE_MUTEX(hiops_bytes_lock);

static char *hiops_bytes_devnode(const struct device *dev, umode_t *mode)
{
	if (mode)
		*mode = 0660;
	return NULL;
}

static const struct class hiops_bytes_class = {
	.name = "hiops_bytes",
	.devnode = hiops_bytes_devnode,
};

static bool hiops_bytes_count(struct hiops_bytes_node *node)
{
	bool there;

	mutex_lock(&hiops_bytes_lock);
	there = !node->gone;
	if (there)
		node->openers++;
	mutex_unlock(&hiops_bytes_lock);
	return there;
}

static void hiops_bytes_uncount(struct hiops_bytes_node *node)
{
	mutex_lock(&hiops_bytes_lock);
	node->openers--;
	mutex_unlock(&hiops_bytes_lock);
}

/*
 * Opens the disk itself, as any reader would: that asks for the caller's rights to
 * it, those of its cgroup among them, and is how others see that it is in use.
 */
static struct file *hiops_bytes_claim(struct hiops_bytes_node *node)
{
	struct file *bdev_file;

	bdev_file = bdev_file_open_by_dev(disk_devt(node->disk), BLK_OPEN_READ, NULL, NULL);
	if (!IS_ERR(bdev_file) && file_bdev(bdev_file)->bd_disk != node->disk) {
		bdev_fput(bdev_file);
		return ERR_PTR(-ENXIO);
	}
	return bdev_file;
}

static int hiops_bytes_open(struct inode *inode, struct file *file)
{
	struct hiops_bytes_node *node =
		container_of(inode->i_cdev, struct hiops_bytes_node, cdev);
	struct file *bdev_file;

	/* Bytes can't be written. */
	if (file->f_mode & FMODE_WRITE)
		return -EROFS;
	if (!hiops_bytes_count(node))
		return -ENXIO;
	bdev_file = hiops_bytes_claim(node);
	if (IS_ERR(bdev_file)) {
		hiops_bytes_uncount(node);
		return PTR_ERR(bdev_file);
	}
	file->private_data = bdev_file;
	/* There is no page cache: what asks for O_DIRECT has it anyway. */
	file->f_mode |= FMODE_CAN_ODIRECT;
	return 0;
}

static int hiops_bytes_release(struct inode *inode, struct file *file)
{
	bdev_fput(file->private_data);
	hiops_bytes_uncount(container_of(inode->i_cdev, struct hiops_bytes_node, cdev));
	return 0;
}

static ssize_t hiops_bytes_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct block_device *bdev = file_bdev(iocb->ki_filp->private_data);
	ssize_t done = hiops_bytes_read(bdev->bd_disk, iocb->ki_pos, to);

	if (done > 0)
		iocb->ki_pos += done;
	return done;
}

static loff_t hiops_bytes_llseek(struct file *file, loff_t offset, int whence)
{
	struct block_device *bdev = file_bdev(file->private_data);

	return fixed_size_llseek(file, offset, whence, bdev_nr_bytes(bdev));
}

static const struct file_operations hiops_bytes_fops = {
	.owner = THIS_MODULE,
	.open = hiops_bytes_open,
	.release = hiops_bytes_release,
	.read_iter = hiops_bytes_read_iter,
	.splice_read = copy_splice_read,
	.llseek = hiops_bytes_llseek,
};

int hiops_bytes_begin(void)
{
	int ret = alloc_chrdev_region(&hiops_bytes_first, 0, HIOPS_BYTES_NODES, "hiops_bytes");

	if (ret)
		return ret;
	ret = class_register(&hiops_bytes_class);
	if (ret)
		unregister_chrdev_region(hiops_bytes_first, HIOPS_BYTES_NODES);
	return ret;
}

void hiops_bytes_end(void)
{
	class_unregister(&hiops_bytes_class);
	unregister_chrdev_region(hiops_bytes_first, HIOPS_BYTES_NODES);
	ida_destroy(&hiops_bytes_minors);
}

static void hiops_bytes_free(struct device *dev)
{
	struct hiops_bytes_node *node = container_of(dev, struct hiops_bytes_node, dev);

	ida_free(&hiops_bytes_minors, MINOR(dev->devt));
	put_disk(node->disk);
	kfree(node);
}

struct hiops_bytes_node *hiops_bytes_show(struct gendisk *disk)
{
	struct hiops_bytes_node *node = kzalloc(sizeof(*node), GFP_KERNEL);
	int minor;

	if (!node)
		return NULL;
	minor = ida_alloc_max(&hiops_bytes_minors, HIOPS_BYTES_NODES - 1, GFP_KERNEL);
	if (minor < 0) {
		kfree(node);
		return NULL;
	}
	get_device(disk_to_dev(disk));
	node->disk = disk;
	device_initialize(&node->dev);
	node->dev.class = &hiops_bytes_class;
	node->dev.parent = disk_to_dev(disk);
	node->dev.release = hiops_bytes_free;
	node->dev.devt = MKDEV(MAJOR(hiops_bytes_first), minor);
	cdev_init(&node->cdev, &hiops_bytes_fops);
	node->cdev.owner = THIS_MODULE;
	if (dev_set_name(&node->dev, "%s_bytes", disk->disk_name) ||
	    cdev_device_add(&node->cdev, &node->dev)) {
		put_device(&node->dev);
		return NULL;
	}
	return node;
}

bool hiops_bytes_hide(struct hiops_bytes_node *node, bool has_to)
{
	mutex_lock(&hiops_bytes_lock);
	node->gone = has_to || !node->openers;
	mutex_unlock(&hiops_bytes_lock);
	if (!node->gone)
		return false;
	cdev_device_del(&node->cdev, &node->dev);
	put_device(&node->dev);
	return true;
}

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
bool hiops_bytes_enter(struct gendisk *disk)
{
	struct request_queue *q = disk->queue;

	while (!hiops_bytes_try_enter(q)) {
		/* Pairs with blk_freeze_queue_start(): the counter is looked at first. */
		smp_rmb();
		wait_event(q->mq_freeze_wq,
			   (!q->mq_freeze_depth && !blk_queue_pm_only(q)) ||
			   hiops_bytes_is_dead(disk));
		if (hiops_bytes_is_dead(disk))
			return false;
	}
#ifdef CONFIG_LOCKDEP
	rwsem_acquire_read(&q->io_lockdep_map, 0, 0, _RET_IP_);
	rwsem_release(&q->io_lockdep_map, _RET_IP_);
#endif
	return true;
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

unsigned long hiops_bytes_begin_acct(struct gendisk *disk)
{
	/* 0: nothing is counted. */
	if (!blk_queue_io_stat(disk->queue))
		return 0;
	return bdev_start_io_acct(disk->part0, REQ_OP_READ, jiffies | 1);
}

void hiops_bytes_end_acct(struct gendisk *disk, u32 sectors, unsigned long begun)
{
	if (begun)
		bdev_end_io_acct(disk->part0, REQ_OP_READ, sectors, begun);
}

void hiops_pagefault_disable(void)
{
	pagefault_disable();
}

void hiops_pagefault_enable(void)
{
	pagefault_enable();
}

void hiops_account_read(size_t bytes)
{
	task_io_account_read(bytes);
}
