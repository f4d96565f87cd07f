/* SPDX-License-Identifier: GPL-2.0 */
/* A device's temperatures, as the kernel's hardware monitoring shows them. */
#ifndef HIOPS_HWMON_H
#define HIOPS_HWMON_H

#include <linux/device.h>

/* Channel 0 is the device as a whole; the others are its sensors. */
static const int HIOPS_HEAT_CHANNELS = 9;

enum hiops_heat {
	HIOPS_HEAT_NOW,
	HIOPS_HEAT_WARNING,
	HIOPS_HEAT_CRITICAL,
	HIOPS_HEAT_ALARM,
};

/* What is asked: a value, or an errno where there is none. Sleeps. */
struct hiops_hwmon {
	int (*read)(struct hiops_hwmon *from, enum hiops_heat what, int channel, long *value);
};

/* NULL: a kernel without. From then on until unregister, which waits for readers. */
struct device *hiops_hwmon_register(struct device *parent, struct hiops_hwmon *from);
void hiops_hwmon_unregister(struct device *dev);

#endif
