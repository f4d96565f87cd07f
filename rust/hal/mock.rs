// SPDX-License-Identifier: GPL-2.0
//! A platform of ordinary memory, for tests on the host.
