/* A loop on an isolated CPU: it polls a ring, never sleeps, and nothing foreign runs there.
 *
 * A producer thread fills the ring; housekeeping timers tick every millisecond. Both are on the other CPUs. Between two
 * polls the loop turns, so its own timers run, and no others do: at the end the library's own counts say so.
 *
 *     poll_loop [MILLISECONDS]
 */
#include <quietcore.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define MS 1000000ull

enum { SLOTS = 1024, HOUSEKEEPERS = 32, BURST = 32 };

/* One producer, one consumer. Each end has a cache line of its own. */
static struct {
    _Alignas(64) atomic_ulong filled; /* by the producer */
    _Alignas(64) atomic_ulong taken;  /* by the loop */
    unsigned long slots[SLOTS];
} ring;

static atomic_bool is_over;

struct housekeeper {
    qc_timer timer;
    atomic_ulong runs;
    atomic_ulong runs_on_isolated;
    uint32_t isolated;
};

static struct housekeeper housekeepers[HOUSEKEEPERS];

/* The loop's own timer: once in 10 ms. */
static struct {
    qc_timer timer;
    unsigned long runs;
} own;

static void check(qc_result result, const char *what) {
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, qc_strerror(result));
        exit(1);
    }
}

static void keep_house(void *argument, const qc_run *run) {
    struct housekeeper *housekeeper = argument;
    atomic_fetch_add(&housekeeper->runs, 1);
    if (run->cpu == housekeeper->isolated)
        atomic_fetch_add(&housekeeper->runs_on_isolated, 1);
}

static void count_own(void *argument, const qc_run *run) {
    (void)argument;
    (void)run;
    own.runs++;
}

/* Fills the ring with 0, 1, 2 and so on, and lets others run when it is full. */
static void *produce(void *argument) {
    for (unsigned long next = 0; !atomic_load_explicit(&is_over, memory_order_relaxed);) {
        if (next - atomic_load_explicit(&ring.taken, memory_order_acquire) == SLOTS) {
            sched_yield();
            continue;
        }
        ring.slots[next % SLOTS] = next;
        atomic_store_explicit(&ring.filled, ++next, memory_order_release);
    }
    return argument;
}

/* Takes at most a burst out of the ring; says how many that were. */
static unsigned poll_ring(unsigned long *taken, unsigned long *wrong) {
    unsigned long filled = atomic_load_explicit(&ring.filled, memory_order_acquire);
    unsigned count = 0;
    for (; count < BURST && *taken < filled; count++, (*taken)++)
        *wrong += ring.slots[*taken % SLOTS] != *taken;
    if (count > 0)
        atomic_store_explicit(&ring.taken, *taken, memory_order_release);
    return count;
}

/* The last CPU that this process may use, or -1 if it is the only one. Takes it out of the set. */
static int isolate_last(cpu_set_t *allowed) {
    if (sched_getaffinity(0, sizeof *allowed, allowed) != 0) {
        perror("sched_getaffinity");
        exit(1);
    }
    if (CPU_COUNT(allowed) < 2)
        return -1;
    int last = CPU_SETSIZE - 1;
    while (!CPU_ISSET(last, allowed))
        last--;
    CPU_CLR(last, allowed);
    return last;
}

static void run_on(pthread_t thread, const cpu_set_t *set) {
    if (pthread_setaffinity_np(thread, sizeof *set, set) != 0)
        fprintf(stderr, "a thread stays where it is: the system does not let it be bound\n");
}

/* Polls until the moment has come; returns how often there was nothing. */
static unsigned long loop(qc_machine *machine, qc_cpu *cpu, uint64_t end, unsigned long *wrong) {
    unsigned long taken = 0, empty = 0;
    do {
        empty += poll_ring(&taken, wrong) == 0;
        check(qc_cpu_turn(cpu, NULL), "qc_cpu_turn");
    } while (qc_machine_now(machine) < end);
    return empty;
}

/* Whether all was as it should be. */
static bool report(uint64_t others, const qc_stats *lane, unsigned long wrong, unsigned long empty) {
    unsigned long taken = atomic_load(&ring.taken), seen = 0;
    for (unsigned at = 0; at < HOUSEKEEPERS; at++)
        seen += atomic_load(&housekeepers[at].runs_on_isolated);
    printf("%lu items, %lu of them wrong; %lu polls found nothing\n", taken, wrong, empty);
    printf("%lu runs of the loop's own timer here, %llu of housekeeping elsewhere\n", own.runs,
           (unsigned long long)others);
    unsigned long long foreign = lane->ran_for_others + (lane->ran_here - own.runs);
    printf("foreign callbacks on the loop's CPU: %llu by the library's counts, %lu seen by themselves\n", foreign,
           seen);
    return wrong == 0 && taken > 0 && own.runs > 0 && others > 0 && foreign == 0 && seen == 0;
}

int main(int argument_count, char **arguments) {
    uint64_t length = (argument_count > 1 ? strtoull(arguments[1], NULL, 10) : 1000) * MS;
    cpu_set_t others, mine;
    int isolated = isolate_last(&others);
    if (isolated < 0) {
        printf("this process may use one CPU only: there is none to isolate\n");
        return 0;
    }
    CPU_ZERO(&mine);
    CPU_SET(isolated, &mine);
    char list[16];
    snprintf(list, sizeof list, "%d", isolated);
    qc_machine_options options = QC_MACHINE_OPTIONS_INIT;
    options.lanes = list; /* the helper thread of the machine plays all others */
    options.isolated = list;
    qc_machine *machine = NULL;
    check(qc_machine_start(&options, &machine), "qc_machine_start");

    for (unsigned at = 0; at < HOUSEKEEPERS; at++) {
        struct housekeeper *one = &housekeepers[at];
        one->isolated = (uint32_t)isolated;
        check(qc_timer_init(&one->timer, machine, keep_house, one, QC_TIMER_TICK), "qc_timer_init");
        check(qc_timer_arm_periodic(&one->timer, qc_machine_now(machine), MS), "qc_timer_arm_periodic");
    }
    pthread_t producer;
    if (pthread_create(&producer, NULL, produce, NULL) != 0)
        return 1;
    run_on(producer, &others);
    run_on(pthread_self(), &mine);

    qc_cpu *cpu = NULL;
    check(qc_cpu_claim(machine, (uint32_t)isolated, 0, &cpu), "qc_cpu_claim");
    check(qc_timer_init(&own.timer, machine, count_own, NULL, QC_TIMER_TICK | QC_TIMER_PINNED), "qc_timer_init");
    check(qc_timer_arm_periodic(&own.timer, qc_machine_now(machine), 10 * MS), "qc_timer_arm_periodic");
    unsigned long wrong = 0;
    unsigned long empty = loop(machine, cpu, qc_machine_now(machine) + length, &wrong);
    qc_stats lane = QC_STATS_INIT;
    check(qc_machine_cpu_stats(machine, (uint32_t)isolated, &lane), "qc_machine_cpu_stats");

    atomic_store(&is_over, true);
    pthread_join(producer, NULL);
    uint64_t kept = 0;
    for (unsigned at = 0; at < HOUSEKEEPERS; at++) {
        qc_timer_cancel(&housekeepers[at].timer); /* "busy" when it runs: its periods end all the same */
        kept += atomic_load(&housekeepers[at].runs);
    }
    qc_timer_cancel(&own.timer);
    check(qc_cpu_release(cpu), "qc_cpu_release");
    check(qc_machine_shutdown(machine), "qc_machine_shutdown");
    return report(kept, &lane, wrong, empty) ? 0 : 1;
}
