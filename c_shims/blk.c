// SPDX-License-Identifier: GPL-2.0
/*
 * The block layer's inline functions and macros, and the few of the core that
 * the block half needs.
 */

#include <linux/blk-mq.h>
#include <linux/blk-mq-dma.h>
#include <linux/blkdev.h>
#include <linux/bottom_half.h>
#include <linux/dma-mapping.h>
#include <linux/idr.h>
#include <linux/math64.h>
#include <linux/memremap.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched/mm.h>
#include <linux/swiotlb.h>

#include <asm/tsc.h>

#include "blk.h"

void hiops_preempt_disable(void)
{
	preempt_disable();
}

/*
 * The thread that has submitted to hiops last on this CPU, by its number, if the
 * table of waiters does not know it; 0: none. Only a hint: the thread may go to
 * another CPU.
 */
DEFINE_PER_CPU(pid_t, hiops_submitter);

void hiops_submit_begin(void)
{
	preempt_disable();
	this_cpu_write(hiops_submitter, current->pid);
}

void hiops_preempt_enable(void)
{
	preempt_enable();
}

static u64 __percpu *hiops_percpu(u64 *numbers)
{
	return (u64 __percpu __force *)(unsigned long)numbers;
}

u64 *hiops_percpu_alloc(unsigned int count)
{
	u64 __percpu *numbers = __alloc_percpu(count * sizeof(u64), __alignof__(u64));

	/* By way of a number: to some compilers percpu is an address space. */
	return (u64 *)(unsigned long __force)numbers;
}

void hiops_percpu_free(u64 *numbers)
{
	free_percpu(hiops_percpu(numbers));
}

u64 hiops_percpu_sum(u64 *numbers, unsigned int at)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(hiops_percpu(numbers), cpu)[at]);
	return sum;
}

void hiops_percpu_reset(u64 *numbers, unsigned int from, unsigned int count)
{
	int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(hiops_percpu(numbers), cpu) + from, 0, count * sizeof(u64));
}

bool hiops_stamps_agree(void)
{
	return tsc_khz && !check_tsc_unstable();
}

bool hiops_bh_off(void)
{
	if (in_hardirq() || irqs_disabled())
		return false;
	local_bh_disable();
	return true;
}

void hiops_bh_on(void)
{
	local_bh_enable();
}

u64 hiops_stamp_ns(u64 stamps)
{
	return tsc_khz ? mul_u64_u32_div(stamps, USEC_PER_SEC, tsc_khz) : 0;
}

unsigned int hiops_noio_save(void)
{
	return memalloc_noio_save();
}

void hiops_noio_restore(unsigned int flags)
{
	memalloc_noio_restore(flags);
}

bool hiops_never_unmaps(struct device *dev)
{
	/*
	 * Mapped directly, and coherent. A bounce buffer would change that: there is none for a
	 * device that reaches all memory, unless all of its data is to go through one.
	 */
	return !dma_need_unmap(dev) && dma_get_mask(dev) == DMA_BIT_MASK(64) &&
	       !dev->bus_dma_limit && !is_swiotlb_force_bounce(dev);
}

u64 hiops_map_single(struct request *rq, struct device *dev)
{
	const struct bio *bio = rq->bio;
	struct bio_vec bv;
	dma_addr_t addr;

	if (blk_rq_nr_phys_segments(rq) != 1 ||
	    (rq->rq_flags & RQF_SPECIAL_PAYLOAD))
		return HIOPS_MAP_ITERATE;
	bv = mp_bvec_iter_bvec(bio->bi_io_vec, bio->bi_iter);
	/* One segment that several bvecs make up, or memory of another device: for the iterator. */
	if (bv.bv_len != blk_rq_bytes(rq) || is_pci_p2pdma_page(bv.bv_page))
		return HIOPS_MAP_ITERATE;
	addr = dma_map_phys(dev, bvec_phys(&bv), bv.bv_len, rq_dma_dir(rq), 0);
	/* DMA debugging wants to see dma_mapping_error() called. */
	return dma_mapping_error(dev, addr) ? DMA_MAPPING_ERROR : addr;
}

void hiops_unmap_one(struct device *dev, u64 addr, u32 len, struct request *rq,
		     bool mmio)
{
	dma_unmap_phys(dev, addr, len, rq_dma_dir(rq), mmio ? DMA_ATTR_MMIO : 0);
}

u32 hiops_map_kind(const struct blk_dma_iter *iter,
		   struct dma_iova_state *state)
{
	u32 range = dma_use_iova(state) ? HIOPS_MAPPED_RANGE : 0;

	switch (iter->p2pdma.map) {
	case PCI_P2PDMA_MAP_BUS_ADDR:
		return HIOPS_MAPPED_BUS;
	case PCI_P2PDMA_MAP_THRU_HOST_BRIDGE:
		return HIOPS_MAPPED_MMIO | range;
	default:
		return range;
	}
}

void hiops_iova_destroy(struct device *dev, struct dma_iova_state *state,
			size_t len, struct request *rq, bool mmio)
{
	dma_iova_destroy(dev, state, len, rq_dma_dir(rq),
			 mmio ? DMA_ATTR_MMIO : 0);
}

void hiops_vec_next(const struct bio *bio, struct bvec_iter *at,
		    struct hiops_segment *seg)
{
	struct bio_vec bv = mp_bvec_iter_bvec(bio->bi_io_vec, *at);

	seg->addr = (u64)(uintptr_t)bvec_virt(&bv);
	seg->len = bv.bv_len;
	bvec_iter_advance_single(bio->bi_io_vec, at, bv.bv_len);
}

/* What marks a batch as ours; blk-mq itself is told by hiops when the batch is over. */
static void hiops_batch_over(struct io_comp_batch *iob)
{
}

struct request *hiops_add_to_batch(struct request *rq,
				   struct io_comp_batch *iob)
{
	if (blk_mq_add_to_batch(rq, iob, false, hiops_batch_over))
		return NULL;
	return rq;
}

bool hiops_fake_timeout(struct request *rq)
{
	return unlikely(blk_should_fake_timeout(rq->q));
}

bool hiops_is_dying(const struct request *rq)
{
	return blk_queue_dying(rq->q);
}

void hiops_requeue(struct request *rq, unsigned int delay_ms)
{
	struct request_queue *q = rq->q;

	/*
	 * It comes again by itself: one that was merged with another would
	 * leave its PDU's mark to the next request with its tag.
	 */
	rq->cmd_flags |= REQ_NOMERGE;
	/*
	 * And before all that waits in an elevator. A time-out that goes on
	 * beside this may undo it, which costs it its place and no more.
	 */
	rq->rq_flags |= RQF_DONTPREP;
	blk_mq_requeue_request(rq, !delay_ms);
	/*
	 * The work that is pending takes this request along. It must not be
	 * put off: others may be in a greater hurry.
	 */
	if (delay_ms && !delayed_work_pending(&q->requeue_work))
		blk_mq_delay_kick_requeue_list(q, delay_ms);
}

struct gendisk *hiops_alloc_disk(struct blk_mq_tag_set *set,
				 struct queue_limits *lim, void *queuedata)
{
	return blk_mq_alloc_disk(set, lim, queuedata);
}

void hiops_set_capacity_ro(struct gendisk *disk, sector_t sectors, bool ro)
{
	set_capacity(disk, sectors);
	set_disk_ro(disk, ro);
}

void hiops_limits_begin(struct gendisk *disk, struct queue_limits *lim)
{
	*lim = queue_limits_start_update(disk->queue);
}

int hiops_limits_end(struct gendisk *disk, struct queue_limits *lim)
{
	return queue_limits_commit_update(disk->queue, lim);
}

bool hiops_is_synchronous(struct gendisk *disk)
{
	return bdev_synchronous(disk->part0);
}

/*
 * Whether somebody holds the disk or a part of it whom the block layer tells nothing, as swap is,
 * md and device mapper; nobody is kept from doing so afterwards.
 */
static bool has_silent_holder(struct gendisk *disk)
{
	struct block_device *part;
	bool has = false;
	unsigned long n;

	rcu_read_lock();
	xa_for_each(&disk->part_tbl, n, part) {
		if (READ_ONCE(part->bd_holder) && !READ_ONCE(part->bd_holder_ops))
			has = true;
	}
	rcu_read_unlock();
	return has;
}

int hiops_set_synchronous(struct gendisk *disk, bool on)
{
	struct queue_limits lim;

	if (on == bdev_synchronous(disk->part0))
		return 0;
	if (has_silent_holder(disk))
		return -EBUSY;
	lim = queue_limits_start_update(disk->queue);
	lim.features &= ~BLK_FEAT_SYNCHRONOUS;
	if (on)
		lim.features |= BLK_FEAT_SYNCHRONOUS;
	return queue_limits_commit_update_frozen(disk->queue, &lim);
}

void hiops_resize(struct gendisk *disk, sector_t sectors, bool ro)
{
	set_capacity_and_notify(disk, sectors);
	set_disk_ro(disk, ro);
}

bool hiops_is_read_only(struct block_device *bdev)
{
	return bdev_read_only(bdev);
}

/* Each INIT_WORK is a lockdep class: work waits for that of lower ranks alone. */
void hiops_init_work(struct work_struct *work, work_func_t fn,
		     unsigned int rank)
{
	switch (rank) {
	case 0:
		INIT_WORK(work, fn);
		break;
	case 1:
		INIT_WORK(work, fn);
		break;
	case 2:
		INIT_WORK(work, fn);
		break;
	default:
		INIT_WORK(work, fn);
	}
}

struct workqueue_struct *hiops_alloc_wq(int number)
{
	/* Memory may be waiting for the very disk that recovers. */
	return alloc_workqueue("hiops%d", WQ_MEM_RECLAIM | WQ_UNBOUND, 1, number);
}

void hiops_timer_setup(struct timer_list *timer,
		       void (*fn)(struct timer_list *))
{
	timer_setup(timer, fn, 0);
}

struct module *hiops_this_module(void)
{
	return THIS_MODULE;
}

static DEFINE_IDA(hiops_numbers);

/* Two devices of one number can't be: a number is free when the disk's last user is gone. */
static DEFINE_IDA(hiops_disk_numbers);

int hiops_disk_number_get(void)
{
	return ida_alloc_max(&hiops_disk_numbers,
			     (MINORMASK + 1) / HIOPS_DISK_MINORS - 1,
			     GFP_KERNEL);
}

void hiops_disk_number_put(int number)
{
	ida_free(&hiops_disk_numbers, number);
}

/* LVM knows majors by how their names begin. */
#define HIOPS_MAJOR_NAME "sdhiops"

int hiops_major_get(void)
{
	return register_blkdev(0, HIOPS_MAJOR_NAME);
}

void hiops_major_put(int major)
{
	unregister_blkdev(major, HIOPS_MAJOR_NAME);
}

int hiops_number_get(void)
{
	return ida_alloc(&hiops_numbers, GFP_KERNEL);
}

void hiops_number_put(int number)
{
	ida_free(&hiops_numbers, number);
}
