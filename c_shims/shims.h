/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kernel offers only as inline functions or macros, as functions that
 * Rust can call. bindgen reads this file at build time; kglue alone uses it.
 */
#ifndef HIOPS_SHIMS_H
#define HIOPS_SHIMS_H

#include "config.h"

#include <linux/blk-mq.h>
#include <linux/blk-mq-dma.h>
#include <linux/blkdev.h>
#include <linux/pr.h>
#include <linux/timer.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "blk.h"
#include "bytes.h"
#include "costs.h"
#include "hwmon.h"
#include "params.h"
#include "pci.h"
#include "wait.h"

#endif
