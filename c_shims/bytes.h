/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A disk's bytes: the character device through which they are read, the block
 * layer's counter of what is under way, and copies to user memory.
 */
#ifndef HIOPS_BYTES_H
#define HIOPS_BYTES_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/types.h>
#include <linux/uio.h>

struct hiops_bytes_node;

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

/*
 * Counts an I/O of the disk's that the block layer does not know, which a freeze
 * waits for; false: the disk is dead. Sleeps while the disk is frozen.
 */
bool hiops_bytes_enter(struct gendisk *disk);
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
 * A read begins, and is over, in /proc/diskstats, unless that is off. What the first
 * answers is for the second. Any context.
 */
unsigned long hiops_bytes_begin_acct(struct gendisk *disk);
void hiops_bytes_end_acct(struct gendisk *disk, u32 sectors, unsigned long begun);

/*
 * Between these a page of user memory that is not there is a failure, and is not waited
 * for. Nest.
 */
void hiops_pagefault_disable(void);
void hiops_pagefault_enable(void);
/* Counts bytes as read by the calling thread. Any context. */
void hiops_account_read(size_t bytes);

/* Implemented in Rust: reads from pos on; so many bytes, or a negative errno. */
ssize_t hiops_bytes_read(struct gendisk *disk, loff_t pos, struct iov_iter *to);

#endif
