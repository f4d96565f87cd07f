/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HIOPS_PCI_H
#define HIOPS_PCI_H

#include <linux/device.h>

struct pci_dev;

void hiops_dma_set_min_align_mask(struct device *dev, unsigned int mask);
int hiops_sriov_configure(struct pci_dev *dev, int vfs);

#endif
