/*
 * The program that counts, in a process: a kernel of a few CPUs whose events are lines of standard input.
 *
 *   CPU NS EVENT [NUMBER]...      an event, with its arguments
 *   CPU NS run PID NAME CGROUP    the task that the CPU runs from now on, a switch of tasks with its event
 *
 * At the end each row that is in use is a line; its numbers are described at `print_row`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../bpf/watch.bpf.c"

enum { CPUS = 8, THINGS = 64, TASKS = 16, ENTRIES = 64, ROWS_MAX = 4096 };

static u32 cpu;
static u64 now;

static struct row row_table[ROWS_MAX];
static struct cpu_choice choice_table[CPUS_MAX];
static struct cpu_losses loss_table[WATCHED_MAX];
static struct cpu_state state_table[CPUS];
static struct sent sent_table[WATCHED_MAX * IPI_KINDS];
static struct timer_list timer_table[THINGS];
static struct hrtimer hrtimer_table[THINGS];
static struct work_struct work_table[THINGS];
static struct irqaction action_table[THINGS];
static struct worker_pool pools[CPUS];
static struct pool_workqueue queues[CPUS];
static struct task_struct task_table[TASKS];
static u64 cgroup_table[TASKS];
static struct task_struct *running[CPUS];
static u32 stack_count;

/* Hash tables: keys and values in a row. */
struct table {
	void *map;
	u32 key_size, value_size, count;
	u8 used[ENTRIES];
	u64 keys[ENTRIES][2];
	u64 values[ENTRIES][sizeof(struct away) / sizeof(u64)];
};

static struct table tables[] = {
	{ &starts, sizeof(u64), sizeof(struct started) },
	{ &aways, sizeof(struct away_key), sizeof(struct away) },
	{ &stacks_taken, sizeof(u64), sizeof(u32) },
};

static struct table *table_of(void *map)
{
	for (u32 i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		if (tables[i].map == map)
			return &tables[i];
	abort();
}

static int place_of(struct table *table, const void *key)
{
	for (int i = 0; i < ENTRIES; i++)
		if (table->used[i] && !memcmp(table->keys[i], key, table->key_size))
			return i;
	return -1;
}

void *bpf_map_lookup_elem(void *map, const void *key)
{
	u32 index = *(const u32 *)key;

	if (map == &rows)
		return index < ROWS_MAX ? &row_table[index] : NULL;
	if (map == &choices)
		return index < CPUS_MAX ? &choice_table[index] : NULL;
	if (map == &losses)
		return index < WATCHED_MAX ? &loss_table[index] : NULL;
	if (map == &states)
		return &state_table[cpu];
	if (map == &sents)
		return index < WATCHED_MAX * IPI_KINDS ? &sent_table[index] : NULL;
	struct table *table = table_of(map);
	int place = place_of(table, key);

	return place < 0 ? NULL : table->values[place];
}

long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags)
{
	struct table *table = table_of(map);
	int place = place_of(table, key);

	if (place >= 0 && flags == BPF_NOEXIST)
		return -1;
	for (int i = 0; place < 0 && i < ENTRIES; i++)
		if (!table->used[i])
			place = i;
	if (place < 0)
		abort();
	table->used[place] = 1;
	memcpy(table->keys[place], key, table->key_size);
	memcpy(table->values[place], value, table->value_size);
	return 0;
}

long bpf_map_delete_elem(void *map, const void *key)
{
	struct table *table = table_of(map);
	int place = place_of(table, key);

	if (place >= 0)
		table->used[place] = 0;
	return 0;
}

__u64 bpf_ktime_get_ns(void)
{
	return now;
}

__u32 bpf_get_smp_processor_id(void)
{
	return cpu;
}

__u64 bpf_get_current_pid_tgid(void)
{
	return running[cpu]->pid;
}

__u64 bpf_get_current_cgroup_id(void)
{
	return cgroup_table[running[cpu] - task_table];
}

void *bpf_get_current_task_btf(void)
{
	return running[cpu];
}

long bpf_get_stackid(void *context, void *map, __u64 flags)
{
	(void)context, (void)map, (void)flags;
	return stack_count++;
}

long bpf_probe_read_kernel(void *to, __u32 size, const void *from)
{
	if (!from) {
		memset(to, 0, size);
		return -1;
	}
	memcpy(to, from, size);
	return 0;
}

long bpf_probe_read_kernel_str(void *to, __u32 size, const void *from)
{
	if (!from)
		return -1;
	strncpy(to, from, size - 1);
	return 0;
}

static struct task_struct *task_of(int pid)
{
	if (pid < 0 || pid >= TASKS)
		abort();
	return &task_table[pid];
}

/* What has a timer, a work item or a handler is told by its number; what it calls is that number and 1000. */
static void *thing_of(const char *event, u64 number)
{
	if (number >= THINGS)
		abort();
	if (!strncmp(event, "timer_", 6))
		return &timer_table[number];
	if (!strncmp(event, "hrtimer_", 8))
		return &hrtimer_table[number];
	return &work_table[number];
}

static void switch_to(int pid, const char *name, u64 cgroup)
{
	struct task_struct *next = task_of(pid);
	u64 arguments[4] = { 0, (u64)running[cpu], (u64)next };

	strncpy(next->comm, name, sizeof(next->comm) - 1);
	next->pid = pid;
	next->group_leader = next;
	next->flags = strchr(name, '/') ? PF_KTHREAD : 0;
	cgroup_table[pid] = cgroup;
	sched_switch(arguments);
	running[cpu] = next;
}

static const struct {
	const char *name;
	int (*program)(u64 *);
} programs[] = {
#define EVENT(name) { #name, name }
	EVENT(irq_handler_entry), EVENT(irq_handler_exit), EVENT(local_timer_entry), EVENT(local_timer_exit),
	EVENT(reschedule_entry), EVENT(reschedule_exit), EVENT(call_function_entry), EVENT(call_function_exit),
	EVENT(call_function_single_entry), EVENT(call_function_single_exit), EVENT(irq_work_entry),
	EVENT(irq_work_exit), EVENT(csd_queue_cpu), EVENT(ipi_send_cpu), EVENT(ipi_send_cpumask),
	EVENT(nmi_handler), EVENT(softirq_raise), EVENT(softirq_entry), EVENT(softirq_exit), EVENT(timer_start),
	EVENT(timer_expire_entry), EVENT(timer_expire_exit), EVENT(hrtimer_start), EVENT(hrtimer_expire_entry),
	EVENT(hrtimer_expire_exit), EVENT(workqueue_queue_work), EVENT(workqueue_execute_start),
	EVENT(workqueue_execute_end), EVENT(sched_waking),
};

static void event(const char *name, u64 *numbers)
{
	u64 arguments[4] = { numbers[0], numbers[1], numbers[2], numbers[3] };
	static u64 mask[CPUS_MAX / 64];

	if (!strncmp(name, "irq_handler_", 12)) {
		arguments[1] = (u64)&action_table[numbers[0] % THINGS];
	} else if (!strncmp(name, "timer_", 6) || !strncmp(name, "hrtimer_", 8) || !strncmp(name, "workqueue_execute", 17)) {
		arguments[0] = (u64)thing_of(name, numbers[0]);
	} else if (!strcmp(name, "workqueue_queue_work")) {
		/* The CPU of its pool, the item. */
		arguments[1] = (u64)&queues[numbers[0] % CPUS];
		arguments[2] = (u64)thing_of(name, numbers[1]);
	} else if (!strcmp(name, "sched_waking")) {
		/* The task, the CPU that it last ran on. */
		task_of(numbers[0])->pid = numbers[0];
		task_of(numbers[0])->thread_info.cpu = numbers[1];
		arguments[0] = (u64)task_of(numbers[0]);
	} else if (!strcmp(name, "ipi_send_cpumask")) {
		mask[0] = numbers[0];
		arguments[0] = (u64)mask;
	}
	for (u32 i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		if (!strcmp(programs[i].name, name)) {
			programs[i].program(arguments);
			return;
		}
	if (!strcmp(name, "half")) {
		/* The reader changes the half of a CPU. */
		choice_table[cpu].half = numbers[0];
		return;
	}
	fprintf(stderr, "no event %s\n", name);
	exit(2);
}

/* CPU half: source number function name; how source cpu number function called cgroup comm: count own longest stack */
static void print_row(u32 index, u32 each, const u32 *cpus)
{
	struct row *row = &row_table[index];
	const struct thing *thing = &row->key.thing;
	const struct cause *cause = &row->key.cause;
	u32 half = index / (each + MORE_ROWS);

	printf("%u.%u: %u %u %llu %.16s; ", cpus[half / 2], half % 2, thing->source, thing->number,
	       (unsigned long long)thing->function, thing->name);
	printf("%u %u %u %u %llu %llu %llu %.16s: ", cause->how, cause->source, cause->cpu, cause->number,
	       (unsigned long long)cause->function, (unsigned long long)cause->called,
	       (unsigned long long)cause->cgroup, cause->comm);
	printf("%llu %llu %llu %u", (unsigned long long)row->count, (unsigned long long)row->own_ns,
	       (unsigned long long)row->longest_ns, row->stack);
	for (u32 i = 0; i < BUCKETS; i++)
		if (row->buckets[i])
			printf(" %u*2^%u", row->buckets[i], i);
	printf("\n");
}

/* Arguments: rows of each half, whether it is a kernel with PREEMPT_RT, the CPUs that are watched. */
int main(int count, char **words)
{
	u32 cpus[CPUS];
	char line[256], name[64], task[64];

	rows_each = atoi(words[1]);
	is_realtime = atoi(words[2]);
	calls_a_queue = 999;
	for (int i = 3; i < count; i++) {
		cpus[i - 3] = atoi(words[i]);
		choice_table[cpus[i - 3]].place = i - 2;
		watched_cpus[i - 3] = cpus[i - 3];
		watched_count = i - 2;
	}
	for (u32 i = 0; i < THINGS; i++) {
		timer_table[i].function = (void *)(u64)(1000 + i);
		hrtimer_table[i].function = (void *)(u64)(1000 + i);
		work_table[i].func = (void *)(u64)(1000 + i);
		action_table[i].name = "disk";
	}
	for (u32 i = 0; i < CPUS; i++) {
		pools[i].cpu = i;
		queues[i].pool = &pools[i];
		running[i] = &task_table[0];
	}
	task_table[0].group_leader = &task_table[0];
	strcpy(task_table[0].comm, "swapper");
	while (fgets(line, sizeof(line), stdin)) {
		u64 numbers[4] = { 0 };
		int pid;

		if (sscanf(line, "%u %llu run %d %63s %llu", &cpu, (unsigned long long *)&now, &pid, task,
			   (unsigned long long *)&numbers[0]) == 5)
			switch_to(pid, task, numbers[0]);
		else if (sscanf(line, "%u %llu %63s %llu %llu %llu %llu", &cpu, (unsigned long long *)&now, name,
				(unsigned long long *)&numbers[0], (unsigned long long *)&numbers[1],
				(unsigned long long *)&numbers[2], (unsigned long long *)&numbers[3]) >= 3)
			event(name, numbers);
	}
	for (u32 i = 0; i < (count - 3) * 2 * (rows_each + MORE_ROWS) && i < ROWS_MAX; i++)
		if (row_table[i].hash && row_table[i].ready)
			print_row(i, rows_each, cpus);
	for (int i = 3; i < count; i++)
		if (loss_table[i - 3].overflows || loss_table[i - 3].unnamed)
			printf("%u lost: %llu %llu\n", cpus[i - 3], (unsigned long long)loss_table[i - 3].overflows,
			       (unsigned long long)loss_table[i - 3].unnamed);
	return 0;
}
