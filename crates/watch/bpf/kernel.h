/* SPDX-License-Identifier: (MIT OR Apache-2.0) AND GPL-2.0-only */
/* The fields of the kernel's structures that are read: by name, wherever a kernel has them. */
#ifndef QUIETCORE_KERNEL_H
#define QUIETCORE_KERNEL_H

#include <linux/types.h>
#include <stdbool.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

enum { PF_KTHREAD = 0x00200000 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct css_set {
	struct cgroup_subsys_state *subsys[1];
};

struct thread_info {
	u32 cpu;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	int pid;
	char comm[16];
	struct css_set *cgroups;
	struct task_struct *group_leader;
};

struct irqaction {
	const char *name;
};

struct timer_list {
	void *function;
};

struct hrtimer {
	void *function;
};

struct work_struct {
	void *func;
};

struct worker_pool {
	int cpu;
};

struct pool_workqueue {
	struct worker_pool *pool;
};

#pragma clang attribute pop

#endif
