/* SPDX-License-Identifier: (MIT OR Apache-2.0) AND GPL-2.0-only */
/* What the program and its reader share; `src/layout.rs` says the same in Rust. All of it is words of 64 bits. */
#ifndef QUIETCORE_LAYOUT_H
#define QUIETCORE_LAYOUT_H

#include "kernel.h"

enum {
	CPUS_MAX = 4096,
	WATCHED_MAX = 512,
	SOURCES = 8,
	/* More rows, for things that find no room: without their causes; and one for each source. */
	PLAIN_ROWS = 64,
	MORE_ROWS = PLAIN_ROWS + SOURCES,
	BUCKETS = 32,
	PROBES = 16,
	FRAMES = 16,
	AWAY_FRAMES = 4,
	/* Ten today; a power of two, so that any number has a place. */
	SOFTIRQS = 16,
	NAME = 16,
	STACKS_EACH = 4,
};

/* What kind of thing takes a CPU away. */
enum source {
	DEVICE,
	PROCESSOR,
	SOFTIRQ,
	NMI,
	TIMER,
	HRTIMER,
	WORK,
	TASK,
};

/* How it was started. */
enum how {
	UNKNOWN,
	ARMED,
	SENT,
	RAISED,
	WOKEN,
	QUEUED,
};

/* The processor's interrupts, in the order of `src/layout.rs`. */
enum processor_interrupt {
	LOCAL_TIMER,
	RESCHEDULE,
	CALL_FUNCTION,
	CALL_FUNCTION_SINGLE,
	IRQ_WORK,
	THERMAL,
	/* Named by a reason. */
	REASON,
};

/* A thing: the number of a device's interrupt, of a processor's, of a softirq; 1 for a thread of the kernel. */
struct thing {
	u32 source;
	u32 number;
	u64 function;
	char name[NAME];
};

/* Who started it: what that CPU was doing, and the task on whose behalf. */
struct cause {
	u8 how;
	u8 source;
	u16 cpu;
	u32 number;
	u64 function;
	/* What an interrupt's receiver is to call, or what sent it. */
	u64 called;
	u64 cgroup;
	char comm[NAME];
};

struct key {
	struct thing thing;
	struct cause cause;
};

/* What is counted of a key. A row is in use when `hash` is not 0, and complete when `ready` is 1. */
struct row {
	u64 hash;
	struct key key;
	u64 count;
	u64 own_ns;
	u64 longest_ns;
	u32 ready;
	/* Plus 1; 0 is none. */
	u32 stack;
	u32 buckets[BUCKETS];
};

/* Whether a CPU is watched, as its place among those that are, plus 1; and which half of its rows is in use. */
struct cpu_choice {
	u32 place;
	u32 half;
};

/* What went wrong on a watched CPU. */
struct cpu_losses {
	/* Things whose begin or end is not known, as too many were open. */
	u64 overflows;
	/* Things that found no row of their own. */
	u64 unnamed;
};

#endif
