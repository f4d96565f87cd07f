// SPDX-License-Identifier: GPL-2.0
/*
 * A disk's bytes: the character device through which they are read and written.
 * What is done with the disk's queue is in bytes_queue.c.
 */

#include <linux/anon_inodes.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/task_io_accounting_ops.h>
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

/* A file that is open: the node's, or one that HIOPS_BYTES has made. */
struct hiops_bytes_open {
	struct hiops_bytes_node *node;
	/* The disk or the partition, opened as by any other, and what that is. */
	struct file *bdev_file;
	struct block_device *bdev;
	/* Whose exclusive claim this shares, or NULL. */
	struct file *claims;
};

/*
 * Opens the disk itself, as any other would: that asks for the caller's rights to it,
 * those of its cgroup among them, and is how others see that it is in use.
 */
static struct file *hiops_bytes_claim(struct hiops_bytes_node *node, dev_t dev, blk_mode_t mode,
				      void *holder)
{
	struct file *bdev_file = bdev_file_open_by_dev(dev, mode, holder, NULL);

	if (IS_ERR(bdev_file))
		return bdev_file;
	if (file_bdev(bdev_file)->bd_disk != node->disk) {
		bdev_fput(bdev_file);
		return ERR_PTR(-ENXIO);
	}
	if ((mode & BLK_OPEN_WRITE) && bdev_read_only(file_bdev(bdev_file))) {
		bdev_fput(bdev_file);
		return ERR_PTR(-EROFS);
	}
	return bdev_file;
}

/* The node has one opener more; NULL: it goes, or there is no memory. */
static struct hiops_bytes_open *hiops_bytes_begin_open(struct hiops_bytes_node *node)
{
	struct hiops_bytes_open *open = kzalloc(sizeof(*open), GFP_KERNEL);

	if (!open)
		return NULL;
	if (!hiops_bytes_count(node)) {
		kfree(open);
		return NULL;
	}
	get_device(&node->dev);
	open->node = node;
	return open;
}

static void hiops_bytes_end_open(struct hiops_bytes_open *open)
{
	if (!IS_ERR_OR_NULL(open->bdev_file))
		bdev_fput(open->bdev_file);
	if (open->claims)
		fput(open->claims);
	hiops_bytes_uncount(open->node);
	put_device(&open->node->dev);
	kfree(open);
}

static void hiops_bytes_set_up(struct file *file, struct hiops_bytes_open *open)
{
	open->bdev = file_bdev(open->bdev_file);
	file->private_data = open;
	/* The disk's page cache: not used, but kept true. */
	file->f_mapping = open->bdev_file->f_mapping;
	file->f_wb_err = filemap_sample_wb_err(file->f_mapping);
	/* All I/O is direct, asked for or not. */
	file->f_flags |= O_DIRECT;
	file->f_mode |= FMODE_CAN_ODIRECT | FMODE_NOWAIT;
	if (bdev_can_atomic_write(open->bdev))
		file->f_mode |= FMODE_CAN_ATOMIC_WRITE;
}

/*
 * Those that write have the disk for themselves, together, or with O_EXCL alone: no file
 * system is mounted from it meanwhile, nor was one.
 */
static int hiops_bytes_open(struct inode *inode, struct file *file)
{
	struct hiops_bytes_node *node =
		container_of(inode->i_cdev, struct hiops_bytes_node, cdev);
	struct hiops_bytes_open *open = hiops_bytes_begin_open(node);
	void *holder = NULL;
	blk_mode_t mode = 0;

	if (!open)
		return -ENXIO;
	if (file->f_mode & FMODE_READ)
		mode |= BLK_OPEN_READ;
	if (file->f_mode & FMODE_WRITE) {
		mode |= BLK_OPEN_WRITE;
		holder = node;
	}
	if (file->f_flags & O_EXCL)
		holder = file;
	open->bdev_file = hiops_bytes_claim(node, disk_devt(node->disk), mode, holder);
	if (IS_ERR(open->bdev_file)) {
		int ret = PTR_ERR(open->bdev_file);

		hiops_bytes_end_open(open);
		return ret;
	}
	hiops_bytes_set_up(file, open);
	return 0;
}

static int hiops_bytes_release(struct inode *inode, struct file *file)
{
	hiops_bytes_end_open(file->private_data);
	return 0;
}

static struct file *hiops_bytes_bdev_file(const struct file *file)
{
	const struct hiops_bytes_open *open = file->private_data;

	return open->bdev_file;
}

static struct block_device *hiops_bytes_bdev(const struct file *file)
{
	const struct hiops_bytes_open *open = file->private_data;

	return open->bdev;
}

/* Where the file's byte pos is on the disk, which may be another's than a partition's. */
static loff_t hiops_bytes_on_disk(const struct file *file, loff_t pos)
{
	return pos + ((loff_t)hiops_bytes_bdev(file)->bd_start_sect << SECTOR_SHIFT);
}

/* How much of count bytes from pos on there is; of a disk that has gone an errno. */
static ssize_t hiops_bytes_within(const struct file *file, loff_t pos, size_t count)
{
	struct block_device *bdev = hiops_bytes_bdev(file);
	loff_t size = bdev_nr_bytes(bdev);

	if (pos < size)
		return min_t(u64, count, size - pos);
	/* Its size is 0 by then. */
	return hiops_bytes_is_dead(bdev->bd_disk) ? -ENODEV : 0;
}

/*
 * An asynchronous caller that may not wait expects to be back before its I/O is over,
 * too: -EAGAIN, and it comes again in a thread that may.
 */
static bool hiops_bytes_is_hasty(struct kiocb *iocb)
{
	return (iocb->ki_flags & IOCB_NOWAIT) && !is_sync_kiocb(iocb);
}

/* How it is done, as far as reads and writes are alike. */
static u32 hiops_bytes_flags(const struct kiocb *iocb)
{
	u32 flags = 0;

	if (iocb->ki_flags & IOCB_NOWAIT)
		flags |= HIOPS_BYTES_NOWAIT;
	if (iocb->ki_flags & IOCB_HIPRI)
		flags |= HIOPS_BYTES_POLL;
	return flags;
}

/* Begins a read, or ends it as soon; -EAGAIN: it is to be read by a thread that waits. */
static ssize_t hiops_bytes_read_async(struct kiocb *iocb, struct iov_iter *to)
{
	struct gendisk *disk = hiops_bytes_bdev(iocb->ki_filp)->bd_disk;
	size_t count = iov_iter_count(to);
	struct hiops_bytes_kiocb *kiocb;
	ssize_t ret;

	if (count > HIOPS_BYTES_SPAN)
		return -EAGAIN;
	kiocb = hiops_bytes_hold(iocb, to);
	if (!kiocb)
		return -EAGAIN;
	ret = hiops_bytes_begin_read(disk, hiops_bytes_on_disk(iocb->ki_filp, iocb->ki_pos), count,
				     kiocb, hiops_bytes_flags(iocb));
	/* From here on the read is another's, if there is one. */
	if (ret == -EIOCBQUEUED)
		task_io_account_read(count);
	else
		hiops_bytes_drop(kiocb, to, count);
	return ret == -E2BIG ? -EAGAIN : ret;
}

/* What hiops_bytes_whole() answers where one command of bytes does not go as far. */
static noinline size_t hiops_bytes_whole_long(const struct kiocb *iocb, struct iov_iter *to)
{
	struct block_device *bdev = hiops_bytes_bdev(iocb->ki_filp);
	size_t within = bdev_logical_block_size(bdev) - 1;
	size_t count = iov_iter_count(to), whole = count & ~within;
	bool is_aligned;

	if (whole <= HIOPS_BYTES_SPAN || (iocb->ki_pos & within))
		return 0;
	iov_iter_truncate(to, whole);
	is_aligned = !(iov_iter_alignment(to) & bdev_dma_alignment(bdev));
	iov_iter_reexpand(to, count);
	return is_aligned ? whole : 0;
}

/*
 * So many bytes of to are whole blocks, and more than one command of bytes moves, which
 * the block layer can have go to where they are wanted; 0: none.
 */
static size_t hiops_bytes_whole(const struct kiocb *iocb, struct iov_iter *to)
{
	return iov_iter_count(to) > HIOPS_BYTES_SPAN ? hiops_bytes_whole_long(iocb, to) : 0;
}

/* Reads whole blocks by the block layer, in commands as long as the disk takes them. */
static ssize_t hiops_bytes_read_blocks(struct kiocb *iocb, struct iov_iter *to, size_t whole)
{
	struct file *bdev_file = hiops_bytes_bdev_file(iocb->ki_filp);
	size_t rest = iov_iter_count(to) - whole;
	struct kiocb blocks;
	ssize_t ret;

	init_sync_kiocb(&blocks, bdev_file);
	blocks.ki_flags |= IOCB_DIRECT | (iocb->ki_flags & IOCB_NOWAIT);
	blocks.ki_pos = iocb->ki_pos;
	iov_iter_truncate(to, whole);
	ret = bdev_file->f_op->read_iter(&blocks, to);
	iov_iter_reexpand(to, iov_iter_count(to) + rest);
	return ret;
}

/* The same for a caller that does not wait here. */
static ssize_t hiops_bytes_begin_blocks(struct kiocb *iocb, struct iov_iter *to)
{
	struct file *bdev_file = hiops_bytes_bdev_file(iocb->ki_filp);

	iocb->ki_flags |= IOCB_DIRECT;
	return bdev_file->f_op->read_iter(iocb, to);
}

static ssize_t hiops_bytes_read_some(struct kiocb *iocb, struct iov_iter *to)
{
	struct gendisk *disk = hiops_bytes_bdev(iocb->ki_filp)->bd_disk;
	size_t whole = hiops_bytes_whole(iocb, to);
	ssize_t done;

	if (whole)
		return hiops_bytes_read_blocks(iocb, to, whole);
	done = hiops_bytes_read(disk, hiops_bytes_on_disk(iocb->ki_filp, iocb->ki_pos), to,
				hiops_bytes_flags(iocb));
	if (done > 0)
		task_io_account_read(done);
	return done;
}

static ssize_t hiops_bytes_read_within(struct kiocb *iocb, struct iov_iter *to)
{
	size_t count = iov_iter_count(to);
	ssize_t done = 0, ret;

	if (!count)
		return 0;
	/* What is polled is so by way of a queue of bytes. */
	if (!is_sync_kiocb(iocb) && !(iocb->ki_flags & IOCB_HIPRI) &&
	    hiops_bytes_whole(iocb, to) == count)
		return hiops_bytes_begin_blocks(iocb, to);
	if (iocb->ki_filp->f_mapping->nrpages) {
		ret = kiocb_write_and_wait(iocb, count);
		if (ret)
			return ret;
	}
	if (!is_sync_kiocb(iocb)) {
		ret = hiops_bytes_read_async(iocb, to);
		if (ret != -EAGAIN || hiops_bytes_is_hasty(iocb))
			return ret;
	}
	do {
		ret = hiops_bytes_read_some(iocb, to);
		if (ret <= 0)
			break;
		iocb->ki_pos += ret;
		done += ret;
	} while (iov_iter_count(to) && !fatal_signal_pending(current));
	return done ? done : ret;
}

static ssize_t hiops_bytes_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	size_t count = iov_iter_count(to);
	ssize_t within = hiops_bytes_within(iocb->ki_filp, iocb->ki_pos, count);
	ssize_t ret;

	if (within <= 0)
		return within;
	iov_iter_truncate(to, within);
	ret = hiops_bytes_read_within(iocb, to);
	if (ret != -EIOCBQUEUED)
		iov_iter_reexpand(to, iov_iter_count(to) + count - within);
	return ret;
}

/* Of a read that was begun: the others have no queue, and end by themselves. */
static int hiops_bytes_iopoll(struct kiocb *iocb, struct io_comp_batch *iob, unsigned int flags)
{
	uintptr_t lane = (uintptr_t)READ_ONCE(iocb->private);

	if (lane)
		hiops_bytes_poll(hiops_bytes_bdev(iocb->ki_filp)->bd_disk, lane - 1);
	return 0;
}

/*
 * Writes the first of from, as far as one command goes. A page that is not there is
 * waited for before, and not while others wait for the caller.
 */
static ssize_t hiops_bytes_write_some(struct kiocb *iocb, struct iov_iter *from, u32 flags)
{
	struct gendisk *disk = hiops_bytes_bdev(iocb->ki_filp)->bd_disk;
	size_t count = iov_iter_count(from), most, ready;
	ssize_t done;

	do {
		most = min_t(size_t, count, HIOPS_BYTES_SPAN);
		ready = most - fault_in_iov_iter_readable(from, most);
		if (!ready || (ready < most && (flags & HIOPS_BYTES_UNTORN)))
			return -EFAULT;
		done = hiops_bytes_write(disk, hiops_bytes_on_disk(iocb->ki_filp, iocb->ki_pos),
					 from, ready, flags);
		/* What was copied only. */
		iov_iter_revert(from, count - iov_iter_count(from) - max_t(ssize_t, done, 0));
	} while (!done && !fatal_signal_pending(current));
	if (done > 0)
		task_io_account_write(done);
	return done ? done : -EINTR;
}

/* Begins a write, or not: -EAGAIN, and it is to be written by a thread that waits. */
static ssize_t hiops_bytes_write_async(struct kiocb *iocb, struct iov_iter *from, u32 flags)
{
	struct gendisk *disk = hiops_bytes_bdev(iocb->ki_filp)->bd_disk;
	loff_t pos = hiops_bytes_on_disk(iocb->ki_filp, iocb->ki_pos);
	size_t count = iov_iter_count(from);
	struct hiops_bytes_kiocb *kiocb;
	ssize_t ret;

	if (count > HIOPS_BYTES_SPAN)
		return -EAGAIN;
	kiocb = hiops_bytes_kiocb_new(iocb);
	if (!kiocb)
		return -EAGAIN;
	ret = hiops_bytes_begin_write(disk, pos, from, count, kiocb, flags);
	/* From here on the write is another's, if there is one. */
	if (ret == -EIOCBQUEUED)
		task_io_account_write(count);
	else
		hiops_bytes_drop(kiocb, from, count - iov_iter_count(from));
	return ret;
}

/* Others read the disk by its page cache: nothing old stays there. */
static void hiops_bytes_forget(struct address_space *mapping, loff_t pos, size_t count)
{
	if (mapping->nrpages)
		invalidate_inode_pages2_range(mapping, pos >> PAGE_SHIFT,
					      (pos + count - 1) >> PAGE_SHIFT);
}

/* Why this can't be written at all, as blkdev_write_iter() has it; 0: it can. */
static int hiops_bytes_refuse(struct kiocb *iocb, struct iov_iter *from)
{
	struct block_device *bdev = hiops_bytes_bdev(iocb->ki_filp);
	size_t count = iov_iter_count(from);
	int ret;

	if (bdev_read_only(bdev))
		return -EPERM;
	/* The end is the disk's, and nothing is beyond. */
	if (iocb->ki_flags & IOCB_APPEND)
		return -EINVAL;
	if (!(iocb->ki_flags & IOCB_ATOMIC))
		return 0;
	ret = generic_atomic_write_valid(iocb, from);
	if (ret)
		return ret;
	/* More than one command goes for would be torn between two. */
	if (count < bdev_atomic_write_unit_min_bytes(bdev) ||
	    count > bdev_atomic_write_unit_max_bytes(bdev) || count > HIOPS_BYTES_SPAN)
		return -EINVAL;
	return 0;
}

static ssize_t hiops_bytes_write_within(struct kiocb *iocb, struct iov_iter *from)
{
	struct block_device *bdev = hiops_bytes_bdev(iocb->ki_filp);
	struct address_space *mapping = iocb->ki_filp->f_mapping;
	bool flush = iocb_is_dsync(iocb) && bdev_write_cache(bdev);
	u32 flags = hiops_bytes_flags(iocb);
	ssize_t done = 0, ret;

	if (!iov_iter_count(from))
		return 0;
	ret = hiops_bytes_refuse(iocb, from);
	if (ret)
		return ret;
	if (iocb->ki_flags & IOCB_ATOMIC)
		flags |= HIOPS_BYTES_UNTORN;
	if (flush && bdev_fua(bdev)) {
		flags |= HIOPS_BYTES_FUA;
		flush = false;
	}
	if (!is_sync_kiocb(iocb)) {
		/* What is to be done afterwards takes a thread. */
		ret = mapping->nrpages || flush ? -EAGAIN :
		      hiops_bytes_write_async(iocb, from, flags);
		if (ret != -EAGAIN || hiops_bytes_is_hasty(iocb))
			return ret;
	}
	if (mapping->nrpages) {
		/* One that is in use stays: it is forgotten once more afterwards. */
		ret = kiocb_invalidate_pages(iocb, iov_iter_count(from));
		if (ret && ret != -EBUSY)
			return ret;
	}
	do {
		ret = hiops_bytes_write_some(iocb, from, flags);
		if (ret <= 0)
			break;
		hiops_bytes_forget(mapping, iocb->ki_pos, ret);
		iocb->ki_pos += ret;
		done += ret;
	} while (iov_iter_count(from) && !fatal_signal_pending(current));
	if (!done)
		return ret;
	return flush ? generic_write_sync(iocb, done) : done;
}

static ssize_t hiops_bytes_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	size_t count = iov_iter_count(from);
	ssize_t within = hiops_bytes_within(iocb->ki_filp, iocb->ki_pos, count);
	ssize_t ret;

	if (within < 0)
		return within;
	if (count && !within && !(iocb->ki_flags & IOCB_APPEND))
		return -ENOSPC;
	/* Of what is not to be torn nothing is left out: it is refused. */
	if (iocb->ki_flags & IOCB_ATOMIC)
		within = count;
	iov_iter_truncate(from, within);
	ret = hiops_bytes_write_within(iocb, from);
	if (ret != -EIOCBQUEUED)
		iov_iter_reexpand(from, iov_iter_count(from) + count - within);
	return ret;
}

static int hiops_bytes_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	return vfs_fsync_range(hiops_bytes_bdev_file(file), start, end, datasync);
}

static loff_t hiops_bytes_llseek(struct file *file, loff_t offset, int whence)
{
	return fixed_size_llseek(file, offset, whence, bdev_nr_bytes(hiops_bytes_bdev(file)));
}

/* What asks for no more than how the disk is: of linux/fs.h and linux/blkdev.h. */
static bool hiops_bytes_answers(unsigned int cmd)
{
	if (_IOC_TYPE(cmd) != 0x12)
		return false;
	/* By their numbers: those of 32-bit callers differ in the size of an answer. */
	switch (_IOC_NR(cmd)) {
	case _IOC_NR(BLKROGET):
	case _IOC_NR(BLKGETSIZE):
	case _IOC_NR(BLKSECTGET):
	case _IOC_NR(BLKSSZGET):
	case _IOC_NR(BLKBSZGET):
	case _IOC_NR(BLKGETSIZE64):
	case _IOC_NR(BLKIOMIN):
	case _IOC_NR(BLKIOOPT):
	case _IOC_NR(BLKALIGNOFF):
	case _IOC_NR(BLKPBSZGET):
	case _IOC_NR(BLKDISCARDZEROES):
	case _IOC_NR(BLKROTATIONAL):
	case _IOC_NR(BLKGETDISKSEQ):
		return true;
	}
	return false;
}

static long hiops_bytes_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct file *bdev_file = hiops_bytes_bdev_file(file);

	if (!hiops_bytes_answers(cmd))
		return -ENOTTY;
	return bdev_file->f_op->unlocked_ioctl(bdev_file, cmd, arg);
}

#ifdef CONFIG_COMPAT
static long hiops_bytes_compat_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct file *bdev_file = hiops_bytes_bdev_file(file);

	if (!hiops_bytes_answers(cmd))
		return -ENOTTY;
	return bdev_file->f_op->compat_ioctl(bdev_file, cmd, arg);
}
#endif

static void hiops_bytes_show_fdinfo(struct seq_file *to, struct file *file)
{
	seq_printf(to, "hiops_bytes:\t%pg\n", hiops_bytes_bdev(file));
}

static const struct file_operations hiops_bytes_fops = {
	.owner = THIS_MODULE,
	.open = hiops_bytes_open,
	.release = hiops_bytes_release,
	.read_iter = hiops_bytes_read_iter,
	.write_iter = hiops_bytes_write_iter,
	.iopoll = hiops_bytes_iopoll,
	.fsync = hiops_bytes_fsync,
	.llseek = hiops_bytes_llseek,
	.show_fdinfo = hiops_bytes_show_fdinfo,
	.unlocked_ioctl = hiops_bytes_ioctl,
#ifdef CONFIG_COMPAT
	.compat_ioctl = hiops_bytes_compat_ioctl,
#endif
	.splice_read = copy_splice_read,
	.splice_write = iter_file_splice_write,
};

static int hiops_bytes_is_holder(const void *holder, struct file *file, unsigned int fd)
{
	if (file != holder)
		return 0;
	get_file(file);
	return 1;
}

/*
 * Opens what bdev is for open, as the node's is opened; of a file that has it with O_EXCL
 * it has the claim, which lasts until both are closed. That file is looked for among the
 * caller's: it may be a device above this one that has the claim.
 */
static int hiops_bytes_share(struct hiops_bytes_open *open, struct block_device *bdev,
			     blk_mode_t mode)
{
	void *holder = NULL;

	if (mode & BLK_OPEN_EXCL) {
		struct file *claims = READ_ONCE(bdev->bd_holder);

		if (!iterate_fd(current->files, 0, hiops_bytes_is_holder, claims))
			return -EBUSY;
		open->claims = claims;
	} else if (mode & BLK_OPEN_WRITE) {
		holder = open->node;
	}
	mode &= BLK_OPEN_READ | BLK_OPEN_WRITE;
	open->bdev_file = hiops_bytes_claim(open->node, bdev->bd_dev, mode, holder);
	return PTR_ERR_OR_ZERO(open->bdev_file);
}

static struct file *hiops_bytes_make_file(struct hiops_bytes_open *open, blk_mode_t mode)
{
	int flags = mode & BLK_OPEN_WRITE ? (mode & BLK_OPEN_READ ? O_RDWR : O_WRONLY) : O_RDONLY;
	struct file *file = anon_inode_getfile("[hiops_bytes]", &hiops_bytes_fops, open, flags);

	if (IS_ERR(file))
		return file;
	hiops_bytes_set_up(file, open);
	/* As do_dentry_open() does once a file is opened. */
	file->f_iocb_flags = iocb_flags(file);
	file->f_mode |= FMODE_PREAD | FMODE_PWRITE;
	return file;
}

int hiops_bytes_file(struct hiops_bytes_node *node, struct block_device *bdev, blk_mode_t mode,
		     unsigned long flags)
{
	struct hiops_bytes_open *open;
	struct file *file;
	int fd;

	if (flags & ~(unsigned long)O_CLOEXEC)
		return -EINVAL;
	open = hiops_bytes_begin_open(node);
	if (!open)
		return -ENXIO;
	fd = hiops_bytes_share(open, bdev, mode);
	if (fd)
		goto fail;
	fd = get_unused_fd_flags(flags);
	if (fd < 0)
		goto fail;
	file = hiops_bytes_make_file(open, mode);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		fd = PTR_ERR(file);
		goto fail;
	}
	fd_install(fd, file);
	return fd;
fail:
	hiops_bytes_end_open(open);
	return fd;
}

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
	hiops_bytes_end_async();
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
