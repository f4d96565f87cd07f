// SPDX-License-Identifier: GPL-2.0
/*
 * Asynchronous reads and writes of a disk's bytes: their kiocbs, and the memory that is
 * read to, which stays where it is until they are over, so that any context may fill it.
 */

#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/irqflags.h>
#include <linux/llist.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/workqueue.h>

#include "bytes.h"

/* What one command moves is in so many pages, wherever it begins. */
#define HIOPS_BYTES_PAGES (DIV_ROUND_UP(HIOPS_BYTES_SPAN, PAGE_SIZE) + 1)

struct hiops_bytes_kiocb {
	struct kiocb *iocb;
	/* In the first page. */
	size_t offset;
	unsigned int nr_pages;
	/* They are a process' own, and pinned; else somebody else keeps them. */
	bool is_pinned;
	struct llist_node clean;
	struct page *pages[HIOPS_BYTES_PAGES];
};

/* Those of reads that are over, some of whose pages are clean. */
static LLIST_HEAD(hiops_bytes_clean);

/* As many are submitted in a row, mostly. */
#define HIOPS_BYTES_SPARES 32

/*
 * Those of each CPU that are not in use, as bio_alloc_cache has bios: kmalloc() and kfree()
 * take 190 instructions, of 7,000 that a read is. With interrupts off.
 */
struct hiops_bytes_spares {
	unsigned int count;
	struct hiops_bytes_kiocb *kiocbs[HIOPS_BYTES_SPARES];
};

static DEFINE_PER_CPU(struct hiops_bytes_spares, hiops_bytes_spares);

/* One of them, or NULL. */
static struct hiops_bytes_kiocb *hiops_bytes_take_spare(void)
{
	struct hiops_bytes_kiocb *kiocb = NULL;
	struct hiops_bytes_spares *spares;
	unsigned long flags;

	local_irq_save(flags);
	spares = this_cpu_ptr(&hiops_bytes_spares);
	if (spares->count)
		kiocb = spares->kiocbs[--spares->count];
	local_irq_restore(flags);
	return kiocb;
}

/* Puts kiocb to them; false: there are enough. */
static bool hiops_bytes_put_spare(struct hiops_bytes_kiocb *kiocb)
{
	struct hiops_bytes_spares *spares;
	unsigned long flags;
	bool has_room;

	local_irq_save(flags);
	spares = this_cpu_ptr(&hiops_bytes_spares);
	has_room = spares->count < HIOPS_BYTES_SPARES;
	if (has_room)
		spares->kiocbs[spares->count++] = kiocb;
	local_irq_restore(flags);
	return has_room;
}

/* Those of all CPUs are freed, once none is put any more. */
static void hiops_bytes_free_spares(void)
{
	struct hiops_bytes_spares *spares;
	int cpu;

	for_each_possible_cpu(cpu) {
		spares = per_cpu_ptr(&hiops_bytes_spares, cpu);
		while (spares->count)
			kfree(spares->kiocbs[--spares->count]);
	}
}

static void hiops_bytes_let_go(struct hiops_bytes_kiocb *kiocb)
{
	if (kiocb->is_pinned)
		unpin_user_pages(kiocb->pages, kiocb->nr_pages);
	if (!hiops_bytes_put_spare(kiocb))
		kfree(kiocb);
}

static void hiops_bytes_dirty(struct hiops_bytes_kiocb *kiocb)
{
	unsigned int i;

	for (i = 0; i < kiocb->nr_pages; i++)
		set_page_dirty_lock(kiocb->pages[i]);
}

static void hiops_bytes_dirty_all(struct work_struct *work)
{
	struct hiops_bytes_kiocb *kiocb, *next;

	llist_for_each_entry_safe(kiocb, next, llist_del_all(&hiops_bytes_clean), clean) {
		hiops_bytes_dirty(kiocb);
		hiops_bytes_let_go(kiocb);
	}
}

static DECLARE_WORK(hiops_bytes_dirty_work, hiops_bytes_dirty_all);

void hiops_bytes_end_async(void)
{
	flush_work(&hiops_bytes_dirty_work);
	hiops_bytes_free_spares();
}

struct hiops_bytes_kiocb *hiops_bytes_kiocb_new(struct kiocb *iocb)
{
	struct hiops_bytes_kiocb *kiocb = hiops_bytes_take_spare();

	if (!kiocb)
		kiocb = kmalloc(sizeof(*kiocb), GFP_KERNEL);
	if (!kiocb)
		return NULL;
	kiocb->iocb = iocb;
	kiocb->nr_pages = 0;
	kiocb->is_pinned = false;
	return kiocb;
}

struct hiops_bytes_kiocb *hiops_bytes_hold(struct kiocb *iocb, struct iov_iter *to)
{
	size_t count = iov_iter_count(to);
	struct hiops_bytes_kiocb *kiocb = hiops_bytes_kiocb_new(iocb);
	struct page **pages;
	ssize_t held;

	if (!kiocb)
		return NULL;
	pages = kiocb->pages;
	kiocb->is_pinned = iov_iter_extract_will_pin(to);
	held = iov_iter_extract_pages(to, &pages, count, HIOPS_BYTES_PAGES, 0, &kiocb->offset);
	if (held > 0)
		kiocb->nr_pages = DIV_ROUND_UP(kiocb->offset + held, PAGE_SIZE);
	if (held != count) {
		/* In several pieces, or not there: not for this. */
		iov_iter_revert(to, max_t(ssize_t, held, 0));
		hiops_bytes_let_go(kiocb);
		return NULL;
	}
	/* As bio_set_pages_dirty(): no lock of theirs can be had where the read ends. */
	if (kiocb->is_pinned)
		hiops_bytes_dirty(kiocb);
	return kiocb;
}

void hiops_bytes_drop(struct hiops_bytes_kiocb *kiocb, struct iov_iter *iter, size_t count)
{
	iov_iter_revert(iter, count);
	hiops_bytes_let_go(kiocb);
}

void hiops_bytes_fill(struct hiops_bytes_kiocb *kiocb, const void *from, size_t len)
{
	size_t offset = kiocb->offset, part;
	struct page **page = kiocb->pages;

	for (; len; from += part, len -= part, page++) {
		part = min_t(size_t, len, PAGE_SIZE - offset);
		memcpy_to_page(*page, offset, from, part);
		offset = 0;
	}
}

/* Whether writeback has been at one of them since: as bio_check_pages_dirty() asks. */
static bool hiops_bytes_is_clean(const struct hiops_bytes_kiocb *kiocb)
{
	unsigned int i;

	if (!kiocb->is_pinned)
		return false;
	for (i = 0; i < kiocb->nr_pages; i++)
		if (!PageDirty(kiocb->pages[i]))
			return true;
	return false;
}

void hiops_bytes_complete(struct hiops_bytes_kiocb *kiocb, long ret)
{
	struct kiocb *iocb = kiocb->iocb;

	if (hiops_bytes_is_clean(kiocb)) {
		if (llist_add(&kiocb->clean, &hiops_bytes_clean))
			schedule_work(&hiops_bytes_dirty_work);
	} else {
		hiops_bytes_let_go(kiocb);
	}
	if (ret > 0)
		iocb->ki_pos += ret;
	iocb->ki_complete(iocb, ret);
}

void hiops_bytes_polled_on(struct hiops_bytes_kiocb *kiocb, unsigned int lane)
{
	WRITE_ONCE(kiocb->iocb->private, (void *)(uintptr_t)(lane + 1));
}
