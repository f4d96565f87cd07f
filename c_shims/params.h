/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HIOPS_PARAMS_H
#define HIOPS_PARAMS_H

#include <linux/types.h>

#define HIOPS_DEFAULT_STRATEGY "coop"

/* The module's parameters that are numbers, by their names; each as it was given. */
struct hiops_params {
	/* How completions are noticed: 0 irq, 1 poll, 2 hybrid. */
	u32 mode;
	u32 lazy;
	u32 coop;
	u32 bytes;
	u32 poll_interval_us;
	u32 predict;
	u32 predict_window_us;
	u32 poll_queues;
	u32 max_retries;
	u32 nvme_timeout_ms;
	u32 nvme_shared;
	u32 nvme_hmb_mb;
	u32 ahci_timeout_ms;
	u32 ahci_fua;
	u32 ram_disks;
	u32 ram_size_mb;
	u32 ram_latency_us;
	u32 ram_latency_max_us;
	u32 ram_write_latency_us;
	u32 ram_link_mb_s;
	u32 ram_holes;
	u32 ram_queues;
	u32 ram_tags;
	u32 ram_channels;
	u32 ram_block_size;
	/* How RAM disks take commands in: 0 queue, 1 blocks. */
	u32 ram_protocol;
	u32 ram_blocks_most;
	u32 ram_blocks_full;
	u32 ram_blocks_answers;
	u32 ram_blocks_fetch_ns;
	u32 ram_blocks_fetch_each_ns;
	u32 ram_blocks_process_ns;
	u32 ram_blocks_read_mb_s;
	u32 ram_blocks_write_mb_s;
	u32 ram_blocks_answer_ns;
	u32 ram_blocks_answer_each_ns;
	u32 ram_blocks_link_ns;
	u64 ram_seed;
	u32 ram_timeout_ms;
	u32 ram_fail;
	u32 ram_drop;
	u32 ram_stick;
	u32 ram_duplicate;
	u32 ram_lie;
	u32 ram_reorder;
};

/* Any context. */
struct hiops_params hiops_get_params(void);

/* The strategy that the module's parameter names; alive as long as the module. */
const char *hiops_strategy(void);

#endif
