// SPDX-License-Identifier: GPL-2.0
/* Attributes and their names; what they say is asked of Rust. */
#include <linux/err.h>
#include <linux/hwmon.h>

#include "hwmon.h"

#if IS_REACHABLE(CONFIG_HWMON)
static int ask(const void *data, u32 attr, int channel, long *value)
{
	struct hiops_hwmon *from = (struct hiops_hwmon *)data;

	switch (attr) {
	case hwmon_temp_label:
	case hwmon_temp_input:
		return from->read(from, HIOPS_HEAT_NOW, channel, value);
	case hwmon_temp_max:
		return from->read(from, HIOPS_HEAT_WARNING, channel, value);
	case hwmon_temp_crit:
		return from->read(from, HIOPS_HEAT_CRITICAL, channel, value);
	case hwmon_temp_alarm:
		return from->read(from, HIOPS_HEAT_ALARM, channel, value);
	default:
		return -EOPNOTSUPP;
	}
}

static umode_t is_visible(const void *data, enum hwmon_sensor_types type, u32 attr, int channel)
{
	long value;

	return ask(data, attr, channel, &value) ? 0 : 0444;
}

static int read_value(struct device *dev, enum hwmon_sensor_types type, u32 attr, int channel,
		      long *value)
{
	return ask(dev_get_drvdata(dev), attr, channel, value);
}

static int read_label(struct device *dev, enum hwmon_sensor_types type, u32 attr, int channel,
		      const char **text)
{
	static const char *const labels[] = {
		"Composite", "Sensor 1", "Sensor 2", "Sensor 3", "Sensor 4",
		"Sensor 5", "Sensor 6", "Sensor 7", "Sensor 8",
	};

	*text = labels[channel];
	return 0;
}

static const struct hwmon_ops ops = {
	.is_visible = is_visible,
	.read = read_value,
	.read_string = read_label,
};

#define SENSOR (HWMON_T_INPUT | HWMON_T_LABEL)
static const struct hwmon_channel_info *const channels[] = {
	HWMON_CHANNEL_INFO(temp,
			   SENSOR | HWMON_T_MAX | HWMON_T_CRIT | HWMON_T_ALARM,
			   SENSOR, SENSOR, SENSOR, SENSOR, SENSOR, SENSOR, SENSOR, SENSOR),
	NULL
};

static const struct hwmon_chip_info chip = {
	.ops = &ops,
	.info = channels,
};

struct device *hiops_hwmon_register(struct device *parent, struct hiops_hwmon *from)
{
	/* The in-tree driver's name, which monitoring knows. */
	return hwmon_device_register_with_info(parent, "nvme", from, &chip, NULL);
}

void hiops_hwmon_unregister(struct device *dev)
{
	hwmon_device_unregister(dev);
}
#else
struct device *hiops_hwmon_register(struct device *parent, struct hiops_hwmon *from)
{
	return NULL;
}

void hiops_hwmon_unregister(struct device *dev)
{
}
#endif
