/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of QEMU's plugin interface (version 4, QEMU 9.1 and later) that count.c uses.
 * Distributions do not package QEMU's own header, so these few declarations are our own;
 * names and types are fixed by the functions that the QEMU program exports.
 */
#ifndef HIOPS_QEMU_PLUGIN_H
#define HIOPS_QEMU_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QEMU_PLUGIN_EXPORT __attribute__((visibility("default")))
#define QEMU_PLUGIN_VERSION 4

typedef uint64_t qemu_plugin_id_t;
/* What a memory callback is told about one access; only QEMU looks inside. */
typedef uint32_t qemu_plugin_meminfo_t;

struct qemu_plugin_tb;         /* a translated block, valid while it is translated */
struct qemu_plugin_insn;       /* one instruction of it */
struct qemu_plugin_hwaddr;     /* what an address means to the machine; valid in a callback */
struct qemu_plugin_scoreboard; /* one element for each vCPU, growing with their number */

typedef struct {
	const char *target_name;
	struct {
		int min;
		int cur;
	} version;
	bool system_emulation;
	struct {
		int smp_vcpus;
		int max_vcpus;
	} system;
} qemu_info_t;

/* A 64-bit counter inside each element of a scoreboard. */
typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} qemu_plugin_u64;

enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64, QEMU_PLUGIN_INLINE_STORE_U64 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };

typedef void (*qemu_plugin_tb_cb_t)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*qemu_plugin_insn_cb_t)(unsigned int vcpu, void *data);
typedef void (*qemu_plugin_mem_cb_t)(unsigned int vcpu, qemu_plugin_meminfo_t info,
				     uint64_t vaddr, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_tb_cb_t cb);
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *tb,
						       enum qemu_plugin_op op,
						       qemu_plugin_u64 counter, uint64_t imm);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_insn_cb_t cb,
					    enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_plugin_mem_cb_t cb,
				      enum qemu_plugin_cb_flags flags, enum qemu_plugin_mem_rw rw,
				      void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t idx);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *dest, size_t len);

struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *addr);
/* The name of the memory region; equal names are the same pointer. */
const char *qemu_plugin_hwaddr_device_name(const struct qemu_plugin_hwaddr *addr);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int vcpu);
int qemu_plugin_num_vcpus(void);

#endif
