// SPDX-License-Identifier: GPL-2.0
/*
 * Parameters that are words: the kernel crate of Linux 7.3 has numbers only
 * (rust/kernel/module_param.rs).
 */

#include <linux/moduleparam.h>

#include "params.h"

static char *hiops_strategy_name = HIOPS_DEFAULT_STRATEGY;
module_param_named(strategy, hiops_strategy_name, charp, 0444);
MODULE_PARM_DESC(strategy,
		 "who decides when doorbells are rung and completions taken: plain or coop");

const char *hiops_strategy(void)
{
	return hiops_strategy_name;
}
