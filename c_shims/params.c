// SPDX-License-Identifier: GPL-2.0
/*
 * The module's parameters, and its version. The kernel crate of Linux 7.3 has numbers only, and
 * none that can be read in /sys/module/hiops/parameters (rust/macros/module.rs).
 */

#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "params.h"

MODULE_VERSION(HIOPS_VERSION);

static char *hiops_strategy_name = HIOPS_DEFAULT_STRATEGY;
module_param_named(strategy, hiops_strategy_name, charp, 0444);
MODULE_PARM_DESC(strategy,
		 "who decides when doorbells are rung and completions taken: plain or coop");

const char *hiops_strategy(void)
{
	return hiops_strategy_name;
}

static struct hiops_params params = {
	.mode = 2,
	.coop = 1,
	.poll_interval_us = 32,
	.predict_window_us = 16,
	.max_retries = 5,
	.nvme_timeout_ms = 30000,
	.nvme_hmb_mb = 128,
	.ahci_timeout_ms = 30000,
	.ram_size_mb = 64,
	.ram_latency_us = 10,
	.ram_queues = 1,
	.ram_tags = 64,
	.ram_channels = 64,
	.ram_block_size = 512,
	.ram_blocks_most = 32,
	.ram_blocks_fetch_ns = 3000,
	.ram_blocks_fetch_each_ns = 100,
	.ram_blocks_process_ns = 2000,
	.ram_blocks_read_mb_s = 1600,
	.ram_blocks_write_mb_s = 1000,
	.ram_blocks_answer_ns = 1000,
	.ram_blocks_answer_each_ns = 50,
	.ram_blocks_link_ns = 100,
	.ram_seed = 1,
	.ram_timeout_ms = 30000,
};

struct hiops_params hiops_get_params(void)
{
	return params;
}

/* A parameter that is a word, or the number of it. */
struct choice {
	u32 *chosen;
	unsigned int count;
	const char *const *words;
};

static int set_choice(const char *value, const struct kernel_param *param)
{
	const struct choice *choice = param->arg;
	int word = __sysfs_match_string(choice->words, choice->count, value);
	u32 number;

	if (word < 0) {
		if (kstrtou32(value, 0, &number) || number >= choice->count)
			return -EINVAL;
		word = number;
	}
	*choice->chosen = word;
	return 0;
}

static int get_choice(char *page, const struct kernel_param *param)
{
	const struct choice *choice = param->arg;

	return sysfs_emit(page, "%s\n", choice->words[*choice->chosen]);
}

static const struct kernel_param_ops choice_ops = {
	.set = set_choice,
	.get = get_choice,
};

/* The words in the order of their numbers. */
#define HIOPS_CHOICE(name, ...)                                               \
	static const char *const name##_words[] = { __VA_ARGS__ };            \
	static struct choice name##_choice = {                                \
		.chosen = &params.name,                                       \
		.count = ARRAY_SIZE(name##_words),                            \
		.words = name##_words,                                        \
	};                                                                    \
	module_param_cb(name, &choice_ops, &name##_choice, 0444);             \
	__MODULE_PARM_TYPE(name, "string")

HIOPS_CHOICE(mode, "irq", "poll", "hybrid");
MODULE_PARM_DESC(mode, "how completions are noticed at first: irq, poll or hybrid; or 0, 1, 2");

#define HIOPS_PARAM(name, type, says)                          \
	module_param_named(name, params.name, type, 0444);     \
	MODULE_PARM_DESC(name, says)

HIOPS_PARAM(lazy, uint, "whether threads end the I/O that they sleep for: 0 or 1");
HIOPS_PARAM(coop, uint, "whether whoever passes by takes completions: 0 or 1");
HIOPS_PARAM(bytes, uint, "whether /dev/<disk>_bytes is there from the start: 0 or 1");
HIOPS_PARAM(poll_interval_us, uint, "microseconds between two polls: 1 to 10000");
HIOPS_PARAM(predict, uint, "whether threads wake shortly before their I/O is over: 0 or 1");
HIOPS_PARAM(predict_window_us, uint,
	    "microseconds that they then look for it at most: 1 to 100");
HIOPS_PARAM(poll_queues, uint,
	    "queues for polled I/O beside the others, of each controller: 0 to 64");
HIOPS_PARAM(max_retries, uint, "how often a request is tried again: 0 to 255");
HIOPS_PARAM(nvme_timeout_ms, uint, "how long an NVMe command may take: 1000 to 3600000");
HIOPS_PARAM(nvme_shared, uint,
	    "whether namespaces that others may write, too, are disks: 0 or 1");
HIOPS_PARAM(nvme_hmb_mb, uint, "MiB of memory that an NVMe controller may borrow: 0 to 4096");
HIOPS_PARAM(ahci_timeout_ms, uint, "how long a SATA command may take: 1000 to 3600000");
HIOPS_PARAM(ahci_fua, uint, "whether SATA drives that have FUA are told to use it: 0 or 1");
HIOPS_PARAM(ram_disks, uint, "RAM disks to make: 0 to 64");
HIOPS_PARAM(ram_size_mb, uint, "MiB of each: 1 to 1048576");
HIOPS_PARAM(ram_latency_us, uint, "microseconds for a command: 0 to 10000000");
HIOPS_PARAM(ram_latency_max_us, uint, "if more than ram_latency_us: draw from between the two");
HIOPS_PARAM(ram_write_latency_us, uint,
	    "microseconds for a write, discard or zeroes, if not 0: 0 to 10000000");
HIOPS_PARAM(ram_link_mb_s, uint,
	    "MB/s of the link that all channels share, 0: no limit: 0 to 1000000");
HIOPS_PARAM(ram_holes, uint,
	    "whether reads may leave bytes out, 2, for tests: wrongly: 0 to 2");
HIOPS_PARAM(ram_queues, uint, "queues of each: 1 to 64");
HIOPS_PARAM(ram_tags, uint, "tags of each queue: 1 to 4096");
HIOPS_PARAM(ram_channels, uint, "commands that a queue serves at once: 1 to 4096");
HIOPS_PARAM(ram_block_size, uint, "bytes of a block: 512, 1024, 2048 or 4096");
HIOPS_CHOICE(ram_protocol, "queue", "blocks");
MODULE_PARM_DESC(ram_protocol,
		 "how they take commands in: queue, at any time; or blocks, one at a time");
HIOPS_PARAM(ram_blocks_most, uint, "commands of a block at most: 1 to 64");
HIOPS_PARAM(ram_blocks_full, uint, "whether only full blocks are taken in, or after 10 ms: 0 or 1");
HIOPS_PARAM(ram_blocks_answers, uint,
	    "how a block is answered: 0 at once, 1 singly, 2 singly by an engine of its own");
HIOPS_PARAM(ram_blocks_fetch_ns, uint, "nanoseconds to fetch a block: 0 to 1000000000");
HIOPS_PARAM(ram_blocks_fetch_each_ns, uint, "and for each command of it");
HIOPS_PARAM(ram_blocks_process_ns, uint, "nanoseconds to process a command");
HIOPS_PARAM(ram_blocks_read_mb_s, uint, "MB/s of the data of reads: 1 to 1000000");
HIOPS_PARAM(ram_blocks_write_mb_s, uint, "MB/s of the data of writes: 1 to 1000000");
HIOPS_PARAM(ram_blocks_answer_ns, uint, "nanoseconds of a transfer of answers");
HIOPS_PARAM(ram_blocks_answer_each_ns, uint, "and for each answer of it");
HIOPS_PARAM(ram_blocks_link_ns, uint,
	    "nanoseconds that an answer by an engine of its own takes of the data's");
HIOPS_PARAM(ram_seed, ullong, "for what is drawn at random");
HIOPS_PARAM(ram_timeout_ms, uint, "how long a command may take: 100 to 3600000");
HIOPS_PARAM(ram_fail, uint, "for tests: fail one command in so many, which may be tried again");
HIOPS_PARAM(ram_drop, uint, "for tests: lose one completion in so many");
HIOPS_PARAM(ram_stick, uint,
	    "for tests: finish one command in so many only when it is aborted");
HIOPS_PARAM(ram_duplicate, uint, "for tests: report one in so many twice");
HIOPS_PARAM(ram_lie, uint, "for tests: report one in so many that was not issued");
HIOPS_PARAM(ram_reorder, uint, "for tests: have one in so many overtaken");
