// SPDX-License-Identifier: (MIT OR Apache-2.0) AND GPL-2.0-only
/*
 * Counts, inside the kernel, what takes watched CPUs away: by thing, and by who started it.
 *
 * Each CPU has a stack of what is open on it, as explain has; a thing counts for the time in which nothing else
 * was on top of it. Rows lie in memory that the reader maps: to read them costs no call and wakes nobody.
 *
 * A CPU's rows and stack are changed on that CPU alone, by programs that interrupts may nest: room is taken
 * before it is filled, and counts are added in one step. Programs are not entered twice on a CPU: the kernel
 * counts what it left out then, and the reader shows it.
 */
#include "kernel.h"
#include "layout.h"
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set by the loader; by tests as they run. */
#ifndef SETTING
#define SETTING const volatile
#endif
SETTING u32 rows_each = 0;
SETTING u32 is_realtime = 0;
/* The number of the control group hierarchy of version 1 that names tasks, plus 1; 0: version 2. */
SETTING u32 subsystem = 0;
/* What is named where a receiver is to call what was queued for it. */
SETTING u64 calls_a_queue = 0;
/* The CPUs that are watched, by place, in order. */
SETTING u32 watched_count = 0;
SETTING u32 watched_cpus[WATCHED_MAX] = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, CPUS_MAX);
	__type(key, u32);
	__type(value, struct cpu_choice);
} choices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct row);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WATCHED_MAX);
	__type(key, u32);
	__type(value, struct cpu_losses);
} losses SEC(".maps");

struct frame {
	struct key key;
	/* What tells it from the others that are open. */
	u64 id;
	u64 since;
	/* What its CPU had accounted when it began. */
	u64 accounted;
	/* Its own time before its task lost the CPU. */
	u64 before;
	u32 row;
	u32 half;
};

struct cpu_state {
	/* The time of all that has ended here. */
	u64 accounted;
	u32 depth;
	u32 pad;
	struct frame frames[FRAMES];
	struct cause raised[SOFTIRQS];
	/* The last call that this CPU queued for another one. */
	u64 queued_function;
	u64 queued_for;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_state);
} states SEC(".maps");

/* Interrupts of a kind on their way to a watched CPU. */
struct sent {
	u32 busy;
	u8 has_first;
	u8 has_last;
	u8 is_left;
	u8 pad;
	struct cause first;
	struct cause last;
};

enum ipi {
	IPI_RESCHEDULE,
	IPI_CALL_ONE,
	IPI_CALL_SEVERAL,
	IPI_WORK,
	IPI_KINDS,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WATCHED_MAX * IPI_KINDS);
	__type(key, u32);
	__type(value, struct sent);
} sents SEC(".maps");

struct started {
	struct cause cause;
	u32 stack;
	u32 pad;
};

/* Timers and work items by address, tasks by their number: who started them last. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct started);
} starts SEC(".maps");

struct away_key {
	u32 cpu;
	u32 pid;
};

struct away {
	u32 count;
	u32 pad;
	struct frame frames[AWAY_FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 512);
	__type(key, struct away_key);
	__type(value, struct away);
} aways SEC(".maps");

/* How many stacks of who starts a function were taken: there is an entry once a watched CPU ran it. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, u32);
} stacks_taken SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 1024);
	__uint(key_size, sizeof(u32));
	__uint(value_size, 32 * sizeof(u64));
} stacks SEC(".maps");

static __always_inline struct cpu_state *state_of_this_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&states, &zero);
}

/* The choice of a CPU; NULL if it is not watched. */
static __always_inline struct cpu_choice *watched(u32 cpu)
{
	struct cpu_choice *choice = bpf_map_lookup_elem(&choices, &cpu);

	return choice && choice->place ? choice : NULL;
}

static __always_inline void lose(u32 place, bool is_overflow)
{
	u32 index = place - 1;
	struct cpu_losses *lost = bpf_map_lookup_elem(&losses, &index);

	if (lost)
		__sync_fetch_and_add(is_overflow ? &lost->overflows : &lost->unnamed, 1);
}

static __always_inline u64 mixed(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ (hash >> 29);
}

static __always_inline u64 hash_of(const struct key *key)
{
	const u64 *words = (const u64 *)key;
	u64 hash = 1;

#pragma unroll
	for (int i = 0; i < sizeof(*key) / sizeof(u64); i++)
		hash = mixed(hash, words[i]);
	return hash ? hash : 1;
}

/* The row of a key among `count` from `start` on; -1 if there is no room. */
static __noinline int find_row(const struct key *key, u32 start, u32 count)
{
	struct row *row;
	u64 hash, was;
	u32 index;

	if (!key || !count)
		return -1;
	hash = hash_of(key);
	for (u32 i = 0; i < PROBES; i++) {
		index = start + ((u32)hash + i) % count;
		row = bpf_map_lookup_elem(&rows, &index);
		if (!row)
			return -1;
		if (row->hash == hash)
			return index;
		if (row->hash)
			continue;
		was = __sync_val_compare_and_swap(&row->hash, 0, hash);
		if (was && was != hash)
			continue;
		if (!was) {
			row->key = *key;
			__sync_fetch_and_add(&row->ready, 1);
		}
		return index;
	}
	return -1;
}

/*
 * The row of a key in a half of a CPU's rows; without its cause if there is no room for it, and one of all such things
 * if there is none for that.
 */
static __noinline int row_of(const struct key *key, u32 place, u32 half)
{
	u32 each = rows_each, start, index;
	struct row *row;
	int found;

	if (!key)
		return -1;
	start = ((place - 1) * 2 + (half & 1)) * (each + MORE_ROWS);
	found = find_row(key, start, each);
	if (found >= 0)
		return found;
	lose(place, false);
	/* Tasks have too many names. */
	if (key->thing.source != TASK) {
		struct key plain = { .thing = key->thing };

		found = find_row(&plain, start + each, PLAIN_ROWS);
		if (found >= 0)
			return found;
	}
	index = start + each + PLAIN_ROWS + (key->thing.source & (SOURCES - 1));
	row = bpf_map_lookup_elem(&rows, &index);
	if (!row)
		return -1;
	if (!row->hash) {
		row->key.thing.source = key->thing.source;
		row->hash = 1;
		row->ready = 1;
	}
	return index;
}

static __always_inline u32 bucket_of(u64 ns)
{
	u32 bucket = 0;

	if (ns >> 32)
		return BUCKETS - 1;
	if (ns >> 16) {
		bucket += 16;
		ns >>= 16;
	}
	if (ns >> 8) {
		bucket += 8;
		ns >>= 8;
	}
	if (ns >> 4) {
		bucket += 4;
		ns >>= 4;
	}
	if (ns >> 2) {
		bucket += 2;
		ns >>= 2;
	}
	return bucket + (ns >> 1 ? 1 : 0);
}

static __noinline int account(u32 index, u64 own)
{
	struct row *row = bpf_map_lookup_elem(&rows, &index);

	if (!row)
		return 0;
	__sync_fetch_and_add(&row->own_ns, own);
	__sync_fetch_and_add(&row->buckets[bucket_of(own) & (BUCKETS - 1)], 1);
	if (own > row->longest_ns)
		row->longest_ns = own;
	return 0;
}

static __always_inline u64 id_of(u32 source, u64 number)
{
	return (u64)source << 56 | (number & 0x00ffffffffffffffULL);
}

static __always_inline u64 cgroup_of(struct task_struct *task)
{
	struct cgroup_subsys_state *group = NULL;
	struct css_set *groups;

	if (!subsystem)
		return bpf_get_current_cgroup_id();
	groups = task->cgroups;
	bpf_probe_read_kernel(&group, sizeof(group), &groups->subsys[(subsystem - 1) & 31]);
	return BPF_CORE_READ(group, cgroup, kn, id);
}

/* What this CPU is doing: what is on top, or its task. */
static __noinline int initiator(struct cpu_state *state, struct cause *by)
{
	struct task_struct *task;
	u32 depth;

	if (!state || !by)
		return 0;
	by->cpu = bpf_get_smp_processor_id();
	by->called = 0;
	depth = state->depth;
	if (depth) {
		struct frame *frame = &state->frames[(depth - 1) & (FRAMES - 1)];

		if (frame->key.thing.source != TASK) {
			by->source = frame->key.thing.source;
			by->number = frame->key.thing.number;
			by->function = frame->key.thing.function;
			by->cgroup = frame->key.cause.cgroup;
			__builtin_memcpy(by->comm, frame->key.cause.comm, NAME);
			return 0;
		}
	}
	by->source = TASK;
	by->number = 0;
	by->function = 0;
	task = bpf_get_current_task_btf();
	by->cgroup = task->pid ? cgroup_of(task) : 0;
	/* The program's name, which its threads have in common. */
	bpf_probe_read_kernel_str(by->comm, NAME, task->group_leader->comm);
	return 0;
}

/* The stack of who starts a function, plus 1, if it is among the first. */
static __always_inline u32 stack_of(void *context, u64 function)
{
	u32 *taken = bpf_map_lookup_elem(&stacks_taken, &function);
	s64 stack;

	if (!taken || *taken >= STACKS_EACH)
		return 0;
	__sync_fetch_and_add(taken, 1);
	stack = bpf_get_stackid(context, &stacks, 0);
	return stack < 0 ? 0 : (u32)stack + 1;
}

static __always_inline void want_stacks(u64 function)
{
	u32 none = 0;

	if (!bpf_map_lookup_elem(&stacks_taken, &function))
		bpf_map_update_elem(&stacks_taken, &function, &none, BPF_NOEXIST);
}

/* Something begins on this CPU. */
static __noinline int begin(struct cpu_state *state, const struct key *key, u64 id, u32 stack)
{
	struct cpu_choice *choice;
	struct frame *frame;
	struct row *row;
	u32 depth;
	int index;

	if (!state || !key)
		return 0;
	choice = watched(bpf_get_smp_processor_id());
	depth = state->depth;
	if (depth >= FRAMES) {
		if (choice)
			lose(choice->place, true);
		depth = 0;
	}
	state->depth = depth + 1;
	barrier();
	frame = &state->frames[depth & (FRAMES - 1)];
	frame->key = *key;
	frame->id = id;
	frame->before = 0;
	frame->row = 0;
	if (choice) {
		frame->half = choice->half;
		index = row_of(key, choice->place, choice->half);
		if (index >= 0) {
			u32 place = index;

			frame->row = place + 1;
			row = bpf_map_lookup_elem(&rows, &place);
			if (row) {
				__sync_fetch_and_add(&row->count, 1);
				if (stack && !row->stack)
					row->stack = stack;
			}
		}
	}
	frame->since = bpf_ktime_get_ns();
	frame->accounted = state->accounted;
	return 0;
}

/* Ends what is on top; returns its own time. */
static __noinline u64 pop(struct cpu_state *state, u64 now)
{
	struct frame *frame;
	u64 all, above, own;
	u32 depth;

	if (!state)
		return 0;
	depth = state->depth;
	if (!depth)
		return 0;
	frame = &state->frames[(depth - 1) & (FRAMES - 1)];
	all = now > frame->since ? now - frame->since : 0;
	above = state->accounted - frame->accounted;
	own = all > above ? all - above : 0;
	state->accounted += own;
	own += frame->before;
	barrier();
	state->depth = depth - 1;
	return own;
}

/* The time of something that has ended, in its row. */
static __noinline int end_frame(struct cpu_state *state, u32 at, u64 own)
{
	struct cpu_choice *choice = watched(bpf_get_smp_processor_id());
	struct frame *frame;
	int index;

	if (!state || !choice)
		return 0;
	frame = &state->frames[at & (FRAMES - 1)];
	if (!frame->row)
		return 0;
	index = frame->row - 1;
	if (frame->half != choice->half)
		/* The rows were changed meanwhile. */
		index = row_of(&frame->key, choice->place, choice->half);
	if (index >= 0)
		account(index, own);
	return 0;
}

/* Something ends on this CPU; what was on top of it has ended, too, and no event said when. */
static __noinline int end(struct cpu_state *state, u64 id)
{
	u64 now = bpf_ktime_get_ns(), own;
	u32 depth, i, at;

	if (!state)
		return 0;
	depth = state->depth;
	for (i = 0; i < FRAMES; i++) {
		if (i >= depth)
			return 0;
		at = depth - 1 - i;
		if (state->frames[at & (FRAMES - 1)].id == id)
			break;
	}
	if (i == FRAMES)
		return 0;
	state->depth = depth - i;
	own = pop(state, now);
	end_frame(state, depth - 1 - i, own);
	return 0;
}

/* Takes who started a timer, work item or task; whether it is known. */
static __always_inline bool take_start(u64 what, struct cause *cause, u32 *stack, bool is_once)
{
	struct started *started = bpf_map_lookup_elem(&starts, &what);

	if (!started || started->cause.how == UNKNOWN)
		return false;
	*cause = started->cause;
	*stack = started->stack;
	if (is_once)
		started->cause.how = UNKNOWN;
	return true;
}

static __always_inline int start(void *context, u64 what, u8 how, u64 function)
{
	struct cpu_state *state = state_of_this_cpu();
	struct started started = {};

	if (!state)
		return 0;
	started.cause.how = how;
	initiator(state, &started.cause);
	if (function)
		started.stack = stack_of(context, function);
	bpf_map_update_elem(&starts, &what, &started, BPF_ANY);
	return 0;
}

/* Interrupts of devices. */

SEC("tp_btf/irq_handler_entry")
int irq_handler_entry(u64 *ctx)
{
	struct irqaction *action = (void *)ctx[1];
	struct cpu_state *state = state_of_this_cpu();
	struct key key = {};

	if (!state)
		return 0;
	key.thing.source = DEVICE;
	key.thing.number = ctx[0];
	bpf_probe_read_kernel_str(key.thing.name, NAME, action->name);
	return begin(state, &key, id_of(DEVICE, ctx[0]), 0);
}

SEC("tp_btf/irq_handler_exit")
int irq_handler_exit(u64 *ctx)
{
	return end(state_of_this_cpu(), id_of(DEVICE, ctx[0]));
}

/* Interrupts of the processor. */

static __always_inline bool take_sent(u32 place, u32 ipi, struct cause *cause)
{
	u32 index = (place - 1) * IPI_KINDS + ipi;
	struct sent *sent = bpf_map_lookup_elem(&sents, &index);
	bool is_known;

	if (!sent || __sync_val_compare_and_swap(&sent->busy, 0, 1))
		return false;
	is_known = sent->has_first;
	if (is_known)
		*cause = sent->first;
	sent->first = sent->last;
	sent->has_first = sent->has_last;
	sent->is_left = sent->has_last;
	sent->has_last = 0;
	barrier();
	__sync_fetch_and_and(&sent->busy, 0);
	return is_known;
}

static __always_inline int processor_entry(u32 interrupt, s64 ipi)
{
	struct cpu_state *state = state_of_this_cpu();
	struct cpu_choice *choice = watched(bpf_get_smp_processor_id());
	struct key key = {};

	if (!state)
		return 0;
	key.thing.source = PROCESSOR;
	key.thing.number = interrupt;
	if (choice && ipi >= 0)
		take_sent(choice->place, ipi, &key.cause);
	return begin(state, &key, id_of(PROCESSOR, interrupt), 0);
}

#define PROCESSOR_INTERRUPT(event, interrupt, ipi)                              \
	SEC("tp_btf/" #event "_entry")                                          \
	int event##_entry(u64 *ctx)                                             \
	{                                                                       \
		return processor_entry(interrupt, ipi);                         \
	}                                                                       \
	SEC("tp_btf/" #event "_exit")                                           \
	int event##_exit(u64 *ctx)                                              \
	{                                                                       \
		return end(state_of_this_cpu(), id_of(PROCESSOR, interrupt));   \
	}

PROCESSOR_INTERRUPT(local_timer, LOCAL_TIMER, -1)
PROCESSOR_INTERRUPT(reschedule, RESCHEDULE, IPI_RESCHEDULE)
PROCESSOR_INTERRUPT(call_function, CALL_FUNCTION, IPI_CALL_SEVERAL)
PROCESSOR_INTERRUPT(call_function_single, CALL_FUNCTION_SINGLE, IPI_CALL_ONE)
PROCESSOR_INTERRUPT(irq_work, IRQ_WORK, IPI_WORK)
PROCESSOR_INTERRUPT(thermal_apic, THERMAL, -1)

SEC("tp_btf/ipi_entry")
int ipi_entry(u64 *ctx)
{
	struct cpu_state *state = state_of_this_cpu();
	struct cpu_choice *choice = watched(bpf_get_smp_processor_id());
	struct key key = {};

	if (!state)
		return 0;
	key.thing.source = PROCESSOR;
	key.thing.number = REASON;
	bpf_probe_read_kernel_str(key.thing.name, NAME, (void *)ctx[0]);
	if (choice && key.thing.name[0] == 'R')
		take_sent(choice->place, IPI_RESCHEDULE, &key.cause);
	if (choice && key.thing.name[0] == 'F' && !take_sent(choice->place, IPI_CALL_SEVERAL, &key.cause))
		take_sent(choice->place, IPI_CALL_ONE, &key.cause);
	if (choice && key.thing.name[0] == 'I')
		take_sent(choice->place, IPI_WORK, &key.cause);
	return begin(state, &key, id_of(PROCESSOR, ctx[0]), 0);
}

SEC("tp_btf/ipi_exit")
int ipi_exit(u64 *ctx)
{
	return end(state_of_this_cpu(), id_of(PROCESSOR, ctx[0]));
}

/* Raw: the verifier lets no program read a function that is an argument otherwise. */
SEC("raw_tp/csd_queue_cpu")
int csd_queue_cpu(u64 *ctx)
{
	struct cpu_state *state = state_of_this_cpu();

	if (state && watched(ctx[0])) {
		state->queued_for = ctx[0] + 1;
		state->queued_function = ctx[2];
	}
	return 0;
}

/* An interrupt is sent to a watched CPU. */
static __noinline int send(struct cpu_state *state, u32 place, u32 ipi, struct cause *cause)
{
	u32 index = (place - 1) * IPI_KINDS + (ipi & 3);
	struct sent *sent = bpf_map_lookup_elem(&sents, &index);

	/* Two CPUs send at the same moment: one of them is named. */
	if (!state || !cause || !sent || __sync_val_compare_and_swap(&sent->busy, 0, 1))
		return 0;
	if (!sent->has_first || sent->is_left) {
		sent->first = *cause;
		sent->has_first = 1;
	} else {
		sent->last = *cause;
		sent->has_last = 1;
	}
	sent->is_left = 0;
	barrier();
	__sync_fetch_and_and(&sent->busy, 0);
	return 0;
}

static __always_inline u64 called(struct cpu_state *state, u32 cpu, u64 callsite, u64 callback)
{
	bool is_queue = callback == calls_a_queue;

	if (callback && is_queue && state->queued_for == (u64)cpu + 1) {
		state->queued_for = 0;
		return state->queued_function;
	}
	return callback && !is_queue ? callback : callsite;
}

SEC("tp_btf/ipi_send_cpu")
int ipi_send_cpu(u64 *ctx)
{
	struct cpu_choice *choice = watched(ctx[0]);
	struct cpu_state *state = state_of_this_cpu();
	struct cause cause = {};
	u32 ipi;

	if (!choice || !state)
		return 0;
	cause.how = SENT;
	initiator(state, &cause);
	cause.called = called(state, ctx[0], ctx[1], ctx[2]);
	ipi = ctx[2] ? IPI_CALL_ONE : IPI_RESCHEDULE;
	if (ctx[0] == bpf_get_smp_processor_id())
		ipi = IPI_WORK;
	return send(state, choice->place, ipi, &cause);
}

SEC("tp_btf/ipi_send_cpumask")
int ipi_send_cpumask(u64 *ctx)
{
	struct cpu_state *state = state_of_this_cpu();
	const u64 *mask = (const u64 *)ctx[0];
	struct cause cause = {};
	u32 known = CPUS_MAX;
	bool is_made = false;
	u64 bits = 0;

	if (!state)
		return 0;
	for (u32 place = 0; place < WATCHED_MAX && place < watched_count; place++) {
		u32 to = watched_cpus[place];

		/* They are in order, so that each word is read once. */
		if (to / 64 != known) {
			known = to / 64;
			bpf_probe_read_kernel(&bits, sizeof(bits), mask + known);
		}
		if (!(bits & (1ULL << (to % 64))))
			continue;
		if (!is_made) {
			cause.how = SENT;
			initiator(state, &cause);
			is_made = true;
		}
		cause.called = called(state, to, ctx[1], ctx[2]);
		send(state, place + 1, IPI_CALL_SEVERAL, &cause);
	}
	return 0;
}

SEC("tp_btf/nmi_handler")
int nmi_handler(u64 *ctx)
{
	struct cpu_state *state = state_of_this_cpu();
	struct cpu_choice *choice = watched(bpf_get_smp_processor_id());
	struct key key = {};
	u64 took = ctx[1];
	struct row *row;
	int index;
	u32 place;

	if (!state || !choice)
		return 0;
	key.thing.source = NMI;
	key.thing.function = ctx[0];
	index = row_of(&key, choice->place, choice->half);
	place = index;
	row = index < 0 ? NULL : bpf_map_lookup_elem(&rows, &place);
	if (row) {
		__sync_fetch_and_add(&row->count, 1);
		account(place, took);
	}
	state->accounted += took;
	return 0;
}

/* Softirqs. */

SEC("tp_btf/softirq_raise")
int softirq_raise(u64 *ctx)
{
	struct cpu_state *state = state_of_this_cpu();
	struct cause cause = {};
	u32 vector = ctx[0];

	if (!state || !watched(bpf_get_smp_processor_id()))
		return 0;
	cause.how = RAISED;
	initiator(state, &cause);
	state->raised[vector & (SOFTIRQS - 1)] = cause;
	return 0;
}

SEC("tp_btf/softirq_entry")
int softirq_entry(u64 *ctx)
{
	struct cpu_state *state = state_of_this_cpu();
	u32 vector = ctx[0];
	struct cause *raised;
	struct key key = {};

	if (!state)
		return 0;
	key.thing.source = SOFTIRQ;
	key.thing.number = vector;
	raised = &state->raised[vector & (SOFTIRQS - 1)];
	if (raised->how) {
		key.cause = *raised;
		raised->how = UNKNOWN;
	}
	return begin(state, &key, id_of(SOFTIRQ, vector), 0);
}

SEC("tp_btf/softirq_exit")
int softirq_exit(u64 *ctx)
{
	return end(state_of_this_cpu(), id_of(SOFTIRQ, ctx[0]));
}

/*
 * A function that a structure names, as a number: newer kernels know that the field is a pointer, and let no program
 * reckon with it.
 */
static __always_inline u64 function_at(const void *field)
{
	u64 function = 0;

	bpf_probe_read_kernel(&function, sizeof(function), field);
	return function;
}

/* Timers. */

static __always_inline int expire_entry(u32 source, u64 timer, u64 function)
{
	struct cpu_state *state = state_of_this_cpu();
	struct key key = {};
	u32 stack = 0;

	if (!state)
		return 0;
	key.thing.source = source;
	key.thing.function = function;
	take_start(timer, &key.cause, &stack, false);
	if (watched(bpf_get_smp_processor_id()))
		want_stacks(function);
	return begin(state, &key, id_of(source, 0), stack);
}

SEC("tp_btf/timer_start")
int timer_start(u64 *ctx)
{
	struct timer_list *timer = (void *)ctx[0];

	return start(ctx, ctx[0], ARMED, function_at(&timer->function));
}

SEC("tp_btf/timer_expire_entry")
int timer_expire_entry(u64 *ctx)
{
	struct timer_list *timer = (void *)ctx[0];

	return expire_entry(TIMER, ctx[0], function_at(&timer->function));
}

SEC("tp_btf/timer_expire_exit")
int timer_expire_exit(u64 *ctx)
{
	return end(state_of_this_cpu(), id_of(TIMER, 0));
}

SEC("tp_btf/hrtimer_start")
int hrtimer_start(u64 *ctx)
{
	struct hrtimer *timer = (void *)ctx[0];

	return start(ctx, ctx[0], ARMED, function_at(&timer->function));
}

SEC("tp_btf/hrtimer_expire_entry")
int hrtimer_expire_entry(u64 *ctx)
{
	struct hrtimer *timer = (void *)ctx[0];

	return expire_entry(HRTIMER, ctx[0], function_at(&timer->function));
}

SEC("tp_btf/hrtimer_expire_exit")
int hrtimer_expire_exit(u64 *ctx)
{
	return end(state_of_this_cpu(), id_of(HRTIMER, 0));
}

/* Work items. */

SEC("tp_btf/workqueue_queue_work")
int workqueue_queue_work(u64 *ctx)
{
	struct pool_workqueue *queue = (void *)ctx[1];
	struct work_struct *work = (void *)ctx[2];
	int cpu = queue->pool->cpu;

	/* One that is bound to no CPU may come to any. */
	if (cpu >= 0 && !watched(cpu))
		return 0;
	return start(ctx, ctx[2], QUEUED, function_at(&work->func));
}

SEC("tp_btf/workqueue_execute_start")
int workqueue_execute_start(u64 *ctx)
{
	struct work_struct *work = (void *)ctx[0];
	struct cpu_state *state = state_of_this_cpu();
	struct key key = {};
	u32 stack = 0;

	if (!state || !watched(bpf_get_smp_processor_id()))
		return 0;
	key.thing.source = WORK;
	key.thing.function = function_at(&work->func);
	take_start(ctx[0], &key.cause, &stack, true);
	want_stacks(key.thing.function);
	return begin(state, &key, id_of(WORK, (u32)bpf_get_current_pid_tgid()), stack);
}

SEC("tp_btf/workqueue_execute_end")
int workqueue_execute_end(u64 *ctx)
{
	return end(state_of_this_cpu(), id_of(WORK, (u32)bpf_get_current_pid_tgid()));
}

/* Tasks. */

SEC("tp_btf/sched_waking")
int sched_waking(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];

	if (!watched(task->thread_info.cpu))
		return 0;
	return start(ctx, (u32)task->pid, WOKEN, 0);
}

static __always_inline bool is_of_a_task(u32 source)
{
	return source == SOFTIRQ || source == TIMER || source == WORK;
}

/* The task that loses the CPU: what it was in the middle of goes on when it has the CPU again. */
static __noinline int leave(struct cpu_state *state, u32 cpu, u32 pid, u64 now)
{
	struct away_key away_key = { .cpu = cpu, .pid = pid };
	struct away *away = NULL;
	bool is_asked = false;

	if (!state)
		return 0;
	for (u32 i = 0; i < FRAMES; i++) {
		u32 depth = state->depth;
		struct frame *frame;
		u64 own;

		if (!depth)
			return 0;
		frame = &state->frames[(depth - 1) & (FRAMES - 1)];
		if (frame->key.thing.source == TASK)
			break;
		own = pop(state, now);
		if (!is_of_a_task(frame->key.thing.source))
			continue;
		if (!is_asked) {
			static const struct away none;

			is_asked = true;
			bpf_map_update_elem(&aways, &away_key, &none, BPF_ANY);
			away = bpf_map_lookup_elem(&aways, &away_key);
		}
		if (away && away->count < AWAY_FRAMES) {
			struct frame *kept = &away->frames[away->count & (AWAY_FRAMES - 1)];

			*kept = *frame;
			kept->before = own;
			away->count++;
		}
	}
	/* Below all of them is the task. */
	end_frame(state, 0, pop(state, now));
	state->depth = 0;
	return 0;
}

/* What the task was in the middle of goes on. */
static __noinline int resume(struct cpu_state *state, u32 cpu, u32 pid)
{
	struct away_key away_key = { .cpu = cpu, .pid = pid };
	struct away *away = bpf_map_lookup_elem(&aways, &away_key);

	if (!state || !away)
		return 0;
	for (u32 i = 0; i < AWAY_FRAMES; i++) {
		u32 count = away->count, depth = state->depth;
		struct frame *frame;

		if (!count || depth >= FRAMES)
			break;
		away->count = count - 1;
		state->depth = depth + 1;
		barrier();
		frame = &state->frames[depth & (FRAMES - 1)];
		*frame = away->frames[(count - 1) & (AWAY_FRAMES - 1)];
		frame->since = bpf_ktime_get_ns();
		frame->accounted = state->accounted;
	}
	bpf_map_delete_elem(&aways, &away_key);
	return 0;
}

SEC("tp_btf/sched_switch")
int sched_switch(u64 *ctx)
{
	struct task_struct *previous = (void *)ctx[1], *next = (void *)ctx[2];
	u32 cpu = bpf_get_smp_processor_id(), stack;
	struct cpu_choice *choice = watched(cpu);
	struct cpu_state *state = state_of_this_cpu();
	struct key key = {};

	if (!state || (!choice && !is_realtime))
		return 0;
	leave(state, cpu, previous->pid, bpf_ktime_get_ns());
	if (next->pid && choice) {
		key.thing.source = TASK;
		key.thing.number = next->flags & PF_KTHREAD ? 1 : 0;
		bpf_probe_read_kernel_str(key.thing.name, NAME, next->comm);
		take_start((u32)next->pid, &key.cause, &stack, true);
		begin(state, &key, id_of(TASK, (u32)next->pid), 0);
	}
	return resume(state, cpu, next->pid);
}
