// SPDX-License-Identifier: GPL-2.0
/* What the PCI half of kglue needs and the kernel's headers only have inline. */
#include <linux/dma-mapping.h>
#include <linux/pci.h>

#include "pci.h"

/* The address bits that a bounce buffer keeps: a controller's pages must stay its pages. */
void hiops_dma_set_min_align_mask(struct device *dev, unsigned int mask)
{
	dma_set_min_align_mask(dev, mask);
}

/* The function has vfs virtual ones from now on: a macro where the kernel has none of them. */
int hiops_sriov_configure(struct pci_dev *dev, int vfs)
{
#ifdef CONFIG_PCI_IOV
	return pci_sriov_configure_simple(dev, vfs);
#else
	return -ENODEV;
#endif
}
