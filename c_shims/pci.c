// SPDX-License-Identifier: GPL-2.0
/* What the PCI half of kglue needs and the kernel's headers only have inline. */
#include <linux/dma-mapping.h>

#include "pci.h"

/* The address bits that a bounce buffer keeps: a controller's pages must stay its pages. */
void hiops_dma_set_min_align_mask(struct device *dev, unsigned int mask)
{
	dma_set_min_align_mask(dev, mask);
}
