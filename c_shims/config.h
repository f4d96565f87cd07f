/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What hiops can't do without, or can't do with, in a kernel's configuration:
 * said here, as this is read before anything else is compiled. What it merely
 * does less well without (DYNAMIC_FTRACE_WITH_ARGS: the wait hook) is said when
 * it is loaded.
 */
#ifndef HIOPS_CONFIG_H
#define HIOPS_CONFIG_H

#ifdef CONFIG_PREEMPT_RT
/* Bios end with preemption off, where spin locks would sleep. */
#error "hiops does not work with CONFIG_PREEMPT_RT: take a kernel without it"
#endif
#ifndef CONFIG_64BIT
/* A word holds a thread or a sector, and what is noted beside it. */
#error "hiops needs CONFIG_64BIT: take a 64-bit kernel"
#endif
#ifndef CONFIG_BLOCK
#error "hiops needs CONFIG_BLOCK: turn on the block layer"
#endif
#ifndef CONFIG_PCI
#error "hiops needs CONFIG_PCI: turn on PCI support"
#endif
#ifndef CONFIG_PCI_MSI
/* Without messages a drive has one interrupt, and so one queue. */
#error "hiops needs CONFIG_PCI_MSI: turn on message signaled interrupts"
#endif
#ifndef CONFIG_SYSFS
/* Drives are bound, and disks looked after, by files there. */
#error "hiops needs CONFIG_SYSFS: turn on sysfs"
#endif
#ifndef CONFIG_HIGH_RES_TIMERS
/* Queues are polled every few microseconds: a timer of jiffies takes milliseconds. */
#error "hiops needs CONFIG_HIGH_RES_TIMERS: turn on high resolution timers"
#endif

#endif
