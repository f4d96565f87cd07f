/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A disk's bytes: the character device through which they are read and written, and
 * what is done with the disk's queue.
 */
#ifndef HIOPS_BYTES_H
#define HIOPS_BYTES_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/types.h>
#include <linux/uio.h>

struct hiops_bytes_node;

/*
 * For users: ioctl(fd, HIOPS_BYTES, flags) of an open disk or partition gives a file of its
 * bytes, with the rights and the claim of the one that it is asked of. Of the flags there
 * is O_CLOEXEC.
 */
#define HIOPS_BYTES 0xbb00 /* _IO(0xbb, 0) */

/* The numbers and the class of all nodes; 0, or a negative errno. Sleep. */
int hiops_bytes_begin(void);
void hiops_bytes_end(void);

/*
 * Shows /dev/<disk>_bytes, for a disk that is shown itself. NULL: there is no
 * memory, or no number. Sleeps.
 */
struct hiops_bytes_node *hiops_bytes_show(struct gendisk *disk);
/*
 * Takes it away. false: it is open, and stays, unless it has to go; files that
 * are open then lead nowhere. Sleeps.
 */
bool hiops_bytes_hide(struct hiops_bytes_node *node, bool has_to);
/* What HIOPS_BYTES answers, of a file of the disk's that is open so. Sleeps. */
int hiops_bytes_file(struct hiops_bytes_node *node, struct block_device *bdev, blk_mode_t mode,
		     unsigned long flags);

/*
 * Counts an I/O of the disk's that the block layer does not know, which a freeze
 * waits for; -ENODEV: the disk is dead. Sleeps while the disk is frozen, if it may;
 * else -EAGAIN.
 */
int hiops_bytes_enter(struct gendisk *disk, bool may_wait);
/*
 * Counts one more if there are any, be the disk frozen or dying; false: there is none.
 * Any context.
 */
bool hiops_bytes_enter_too(struct gendisk *disk);
/* It is over. Any context. */
void hiops_bytes_exit(struct gendisk *disk);

/* Nothing may be given to the driver. With preemption off, as who quiesces waits for that. */
bool hiops_bytes_is_quiesced(const struct gendisk *disk);
/* The disk goes away: nothing is tried again. */
bool hiops_bytes_is_dead(const struct gendisk *disk);
/* In ticks, how long a command may take. */
u32 hiops_bytes_timeout(const struct gendisk *disk);
/* The queue that the CPU's I/O goes to, of those that interrupt. */
u32 hiops_bytes_queue_of(const struct blk_mq_tag_set *set, unsigned int cpu);
int hiops_bytes_errno(u8 status);

/*
 * A command begins, and is over, in /proc/diskstats, unless that is off. What the
 * first answers is for the second. Any context.
 */
unsigned long hiops_bytes_begin_acct(struct gendisk *disk, bool is_write);
void hiops_bytes_end_acct(struct gendisk *disk, bool is_write, u32 sectors, unsigned long begun);

/*
 * Between these a page of user memory that is not there is a failure, and is not waited
 * for. Nest.
 */
void hiops_pagefault_disable(void);
void hiops_pagefault_enable(void);

/* The most bytes that one command moves. */
#define HIOPS_BYTES_SPAN 8192

/* How bytes are read and written: waiting for none but the device, */
#define HIOPS_BYTES_NOWAIT 1
/* so that they are durable at the end, on a disk that has FUA, */
#define HIOPS_BYTES_FUA 2
/* all with one command, or not at all, */
#define HIOPS_BYTES_UNTORN 4
/* and the caller polls. */
#define HIOPS_BYTES_POLL 8

/*
 * Implemented in Rust: read or write from pos on, as far as one command goes; so many
 * bytes, or a negative errno. 0: at the end of the disk; or nothing is written, as
 * some of the count bytes are in a page that is not there.
 */
ssize_t hiops_bytes_read(struct gendisk *disk, loff_t pos, struct iov_iter *to, u32 flags);
ssize_t hiops_bytes_write(struct gendisk *disk, loff_t pos, struct iov_iter *from, size_t count,
			  u32 flags);

/* An asynchronous read or write, and of a read the memory that it reads to. */
struct hiops_bytes_kiocb;

/*
 * Holds the memory that to is of, and goes beyond it. NULL: there is no memory, or it
 * is in several pieces, or not there. Sleeps.
 */
struct hiops_bytes_kiocb *hiops_bytes_hold(struct kiocb *iocb, struct iov_iter *to);
/* The same for a write, of which no memory is held. */
struct hiops_bytes_kiocb *hiops_bytes_kiocb_new(struct kiocb *iocb);
/* Undoes either, of count bytes that iter has gone on. Sleeps. */
void hiops_bytes_drop(struct hiops_bytes_kiocb *kiocb, struct iov_iter *iter, size_t count);
/* Data is there, no more than is held. Any context. */
void hiops_bytes_fill(struct hiops_bytes_kiocb *kiocb, const void *from, size_t len);
/* It is over: so many bytes, or a negative errno. Any context. */
void hiops_bytes_complete(struct hiops_bytes_kiocb *kiocb, long ret);
/* It is under way on that queue, from which its caller will poll it. Before it is. */
void hiops_bytes_polled_on(struct hiops_bytes_kiocb *kiocb, unsigned int lane);
/* Frees what reads and writes have left, all of which are over. Sleeps. */
void hiops_bytes_end_async(void);

/*
 * Implemented in Rust: begins a read of count bytes from pos on, which takes kiocb over;
 * then -EIOCBQUEUED. 0: at the end of the disk. -E2BIG: one command does not go as far.
 * -EAGAIN: it has to wait, and may not.
 */
ssize_t hiops_bytes_begin_read(struct gendisk *disk, loff_t pos, size_t count,
			       struct hiops_bytes_kiocb *kiocb, u32 flags);
/*
 * Implemented in Rust: the same for a write of from, of whole blocks. -EAGAIN: it is for a
 * thread that waits; some of from may be taken.
 */
ssize_t hiops_bytes_begin_write(struct gendisk *disk, loff_t pos, struct iov_iter *from,
				size_t count, struct hiops_bytes_kiocb *kiocb, u32 flags);
/* Implemented in Rust: looks for completions on that queue, while I/O is under way. */
void hiops_bytes_poll(struct gendisk *disk, unsigned int lane);

#endif
