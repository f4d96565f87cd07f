/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HIOPS_PARAMS_H
#define HIOPS_PARAMS_H

#define HIOPS_DEFAULT_STRATEGY "coop"

/* The strategy that the module's parameter names; alive as long as the module. */
const char *hiops_strategy(void);

#endif
