/* What the kernel gives the program, for tests in a process: see ../../kernel.c. */
#ifndef QUIETCORE_TEST_HELPERS_H
#define QUIETCORE_TEST_HELPERS_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#define SEC(name)
#define __uint(name, value) int(*name)[(value) + 1]
#define __type(name, value) __typeof__(value) *name
#define __noinline __attribute__((noinline))
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define barrier() __asm__ __volatile__("" ::: "memory")
#define SETTING volatile

enum {
	BPF_MAP_TYPE_ARRAY,
	BPF_MAP_TYPE_PERCPU_ARRAY,
	BPF_MAP_TYPE_LRU_HASH,
	BPF_MAP_TYPE_STACK_TRACE,
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
};
/* An array of no length is none in C. */
enum { BPF_F_MMAPABLE = 1024 };

void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags);
long bpf_map_delete_elem(void *map, const void *key);
__u64 bpf_ktime_get_ns(void);
__u32 bpf_get_smp_processor_id(void);
__u64 bpf_get_current_pid_tgid(void);
__u64 bpf_get_current_cgroup_id(void);
void *bpf_get_current_task_btf(void);
long bpf_get_stackid(void *context, void *map, __u64 flags);
long bpf_probe_read_kernel(void *to, __u32 size, const void *from);
long bpf_probe_read_kernel_str(void *to, __u32 size, const void *from);

#endif
