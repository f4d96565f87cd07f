/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The block layer's inline functions and macros, and the few of the core that
 * the block half needs.
 */
#ifndef HIOPS_BLK_H
#define HIOPS_BLK_H

#include <linux/blk-mq.h>
#include <linux/blk-mq-dma.h>
#include <linux/blkdev.h>
#include <linux/timer.h>
#include <linux/types.h>
#include <linux/workqueue.h>

/* Macros with a cast, which bindgen cannot read. */
static const u32 HIOPS_FEAT_WRITE_CACHE = (__force u32)BLK_FEAT_WRITE_CACHE;
static const u32 HIOPS_FEAT_FUA = (__force u32)BLK_FEAT_FUA;
static const u32 HIOPS_FEAT_ROTATIONAL = (__force u32)BLK_FEAT_ROTATIONAL;
static const u32 HIOPS_FEAT_ATOMIC_WRITES = (__force u32)BLK_FEAT_ATOMIC_WRITES;
static const u32 HIOPS_FLAG_WRITE_CACHE_DISABLED = (__force u32)BLK_FLAG_WRITE_CACHE_DISABLED;
static const u32 HIOPS_REQ_FUA = (__force u32)REQ_FUA;
static const u32 HIOPS_REQ_NOUNMAP = (__force u32)REQ_NOUNMAP;
static const u32 HIOPS_REQ_FAILFAST = (__force u32)REQ_FAILFAST_MASK;
static const u32 HIOPS_REQ_NO_SLEEP = (__force u32)(REQ_NOWAIT | REQ_POLLED);
static const u32 HIOPS_RQF_SCHED_TAGS = (__force u32)RQF_SCHED_TAGS;
static const u8 HIOPS_STS_OK = (__force u8)BLK_STS_OK;
static const u8 HIOPS_STS_RESOURCE = (__force u8)BLK_STS_RESOURCE;
static const u8 HIOPS_STS_NOTSUPP = (__force u8)BLK_STS_NOTSUPP;
static const u8 HIOPS_STS_TIMEOUT = (__force u8)BLK_STS_TIMEOUT;
static const u8 HIOPS_STS_NOSPC = (__force u8)BLK_STS_NOSPC;
static const u8 HIOPS_STS_TRANSPORT = (__force u8)BLK_STS_TRANSPORT;
static const u8 HIOPS_STS_TARGET = (__force u8)BLK_STS_TARGET;
static const u8 HIOPS_STS_RESV_CONFLICT = (__force u8)BLK_STS_RESV_CONFLICT;
static const u8 HIOPS_STS_MEDIUM = (__force u8)BLK_STS_MEDIUM;
static const u8 HIOPS_STS_PROTECTION = (__force u8)BLK_STS_PROTECTION;
static const u8 HIOPS_STS_IOERR = (__force u8)BLK_STS_IOERR;
static const u8 HIOPS_STS_INVAL = (__force u8)BLK_STS_INVAL;
static const u8 HIOPS_STS_OFFLINE = (__force u8)BLK_STS_OFFLINE;
static const unsigned int HIOPS_HZ = HZ;
static const u32 HIOPS_MAX_BLOCK = BLK_MAX_BLOCK_SIZE;

void hiops_preempt_disable(void);
/* As hiops_preempt_disable, by a thread that submits: should it sleep, see wait.c. */
void hiops_submit_begin(void);
void hiops_preempt_enable(void);

/*
 * `count` numbers on each CPU by itself, all 0: added to from any context, without an exchange
 * (this_cpu_add in kglue). NULL: there is no memory.
 */
u64 *hiops_percpu_alloc(unsigned int count);
void hiops_percpu_free(u64 *numbers);
/* The sum of all CPUs of the number `at`, which is one of them. */
u64 hiops_percpu_sum(u64 *numbers, unsigned int at);
/* `count` of them, from `from` on, are 0 from now on. */
void hiops_percpu_reset(u64 *numbers, unsigned int from, unsigned int count);
/* Whether the time stamp counter is the same on all CPUs, and its speed is known. */
bool hiops_stamps_agree(void);

/* Bottom halves off, where that can be: false in a hard interrupt, which needs it not. */
bool hiops_bh_off(void);
void hiops_bh_on(void);
u64 hiops_stamp_ns(u64 stamps);
unsigned int hiops_noio_save(void);
void hiops_noio_restore(unsigned int flags);

/* A piece of a request's data. */
struct hiops_segment {
	u64 addr;
	u32 len;
};

/*
 * What hiops_map_single answers for data that blk-mq's iterator has to map: not a bus address, nor
 * DMA_MAPPING_ERROR.
 */
#define HIOPS_MAP_ITERATE 0xfffffffffffffffeULL

/* Whether nothing that is mapped for dev is to be unmapped, whatever is mapped. */
bool hiops_never_unmaps(struct device *dev);
/* The bus address of all of the request's data, if that is one segment. */
u64 hiops_map_single(struct request *rq, struct device *dev);
void hiops_unmap_one(struct device *dev, u64 addr, u32 len, struct request *rq,
		     bool mmio);
/*
 * What the iterator, which has just mapped something, goes through: another device's memory by its
 * bus address, or through the host bridge; and whether all of it is one range of the IOMMU.
 */
#define HIOPS_MAPPED_BUS 1u
#define HIOPS_MAPPED_MMIO 2u
#define HIOPS_MAPPED_RANGE 4u
u32 hiops_map_kind(const struct blk_dma_iter *iter,
		   struct dma_iova_state *state);
void hiops_iova_destroy(struct device *dev, struct dma_iova_state *state,
			size_t len, struct request *rq, bool mmio);

/* The piece of a bio's data at `at`, as the CPU sees it; `at` is moved past it. */
void hiops_vec_next(const struct bio *bio, struct bvec_iter *at,
		    struct hiops_segment *seg);

/* Puts a request that is over into the batch: NULL; or it has to end by itself: the request. */
struct request *hiops_add_to_batch(struct request *rq,
				   struct io_comp_batch *iob);
bool hiops_fake_timeout(struct request *rq);
/* Whether the request's queue is going away. */
bool hiops_is_dying(const struct request *rq);
/* Gives a request back to blk-mq, which submits it anew in delay_ms, or earlier. Any context. */
void hiops_requeue(struct request *rq, unsigned int delay_ms);

struct gendisk *hiops_alloc_disk(struct blk_mq_tag_set *set,
				 struct queue_limits *lim, void *queuedata);
void hiops_set_capacity_ro(struct gendisk *disk, sector_t sectors, bool ro);

/* A disk's limits: taken, with the right to change them; and given back. */
void hiops_limits_begin(struct gendisk *disk, struct queue_limits *lim);
int hiops_limits_end(struct gendisk *disk, struct queue_limits *lim);
/* Whether swap on the disk waits for each page, as of one that is faster than a thread. */
bool hiops_is_synchronous(struct gendisk *disk);
/* Has it be so, or not; -EBUSY: a part of it may be swapped on, and would not notice. */
int hiops_set_synchronous(struct gendisk *disk, bool on);
/* Sets capacity and write protection of a disk that is shown: user space is told. */
void hiops_resize(struct gendisk *disk, sector_t sectors, bool ro);

void hiops_init_work(struct work_struct *work, work_func_t fn,
		     unsigned int rank);
struct workqueue_struct *hiops_alloc_wq(int number);
void hiops_timer_setup(struct timer_list *timer,
		       void (*fn)(struct timer_list *));
struct module *hiops_this_module(void);

/* Whether nothing on the disk may be changed. */
bool hiops_is_read_only(struct block_device *bdev);

/* Controller numbers: the lowest free one, or a negative errno. */
int hiops_number_get(void);
void hiops_number_put(int number);
/* Minors of a disk of hiops' own major: as the block layer's "sd" has. */
#define HIOPS_DISK_MINORS 16
/* Numbers of such disks: as above. */
int hiops_disk_number_get(void);
void hiops_disk_number_put(int number);
/* That major, or a negative errno. */
int hiops_major_get(void);
void hiops_major_put(int major);

#endif
