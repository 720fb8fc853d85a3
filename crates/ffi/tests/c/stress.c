/* Threads that arm and stop timers at random, theirs and others', for a while: every pending period ends once. */
#include "check.h"

#include <pthread.h>

enum { THREADS = 4, TIMERS = 256 };

struct counted {
    qc_timer timer;
    atomic_uint runs;
    atomic_uint inside;
};

static struct counted timers[TIMERS];
static qc_machine *machine;
static uint64_t until;

static void count(void *argument, const qc_run *run) {
    struct counted *counted = argument;
    CHECK(atomic_fetch_add(&counted->inside, 1) == 0); /* one run at a time */
    CHECK(run->now >= run->scheduled);
    if (atomic_fetch_add(&counted->runs, 1) % 4 == 0)
        CHECK(qc_timer_arm_after(run->timer, 300000) >= 0);
    CHECK(atomic_fetch_sub(&counted->inside, 1) == 1);
}

static void *work(void *argument) {
    uint64_t seed = 88172645463325252u + (uintptr_t)argument;
    while (qc_machine_now(machine) < until) {
        qc_timer *timer = &timers[next_random(&seed) % TIMERS].timer;
        uint64_t delay = next_random(&seed) % (4 * MS);
        uint64_t at = qc_machine_now(machine) + delay;
        switch (next_random(&seed) % 8) {
        case 0:
        case 1:
        case 2:
            CHECK(qc_timer_arm_at(timer, at) >= 0);
            break;
        case 3:
            CHECK(qc_timer_arm_periodic(timer, at, MS + delay) >= 0);
            break;
        case 4:
            CHECK(qc_timer_reduce(timer, at) >= 0);
            break;
        case 5:
            CHECK(qc_timer_mod_pending(timer, at) >= 0);
            break;
        case 6: {
            qc_result cancelled = qc_timer_cancel(timer);
            CHECK(cancelled >= 0 || cancelled == QC_ERROR_BUSY);
            break;
        }
        default:
            CHECK(qc_timer_cancel_sync(timer) >= 0);
        }
    }
    return NULL;
}

int main(int argument_count, char **arguments) {
    uint64_t share = percent(argument_count, arguments);
    EXPECT(QC_OK, qc_machine_start(NULL, &machine));
    for (unsigned at = 0; at < TIMERS; at++)
        EXPECT(QC_OK, qc_timer_init(&timers[at].timer, machine, count, &timers[at], at % 3));
    until = qc_machine_now(machine) + 2 * SECOND * share / 100;
    pthread_t threads[THREADS];
    for (uintptr_t at = 0; at < THREADS; at++)
        CHECK(pthread_create(&threads[at], NULL, work, (void *)at) == 0);
    for (unsigned at = 0; at < THREADS; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
    uint64_t runs = 0;
    for (unsigned at = 0; at < TIMERS; at++) {
        CHECK(qc_timer_cancel_sync(&timers[at].timer) >= 0);
        EXPECT(0, qc_timer_is_pending(&timers[at].timer));
        EXPECT(0, qc_timer_is_running(&timers[at].timer));
        runs += atomic_load(&timers[at].runs);
    }
    qc_stats stats = QC_STATS_INIT;
    EXPECT(QC_OK, qc_machine_stats(machine, &stats));
    printf("stress: %lu armed, %lu superseded, %lu cancelled, %lu ran\n", (unsigned long)stats.armed,
           (unsigned long)stats.superseded, (unsigned long)stats.cancelled, (unsigned long)runs);
    qc_stats one = QC_STATS_INIT;
    uint64_t armed = 0, ran_by = 0;
    uint32_t cpu = 0;
    for (; qc_machine_cpu_stats(machine, cpu, &one) == QC_OK; cpu++) {
        armed += one.armed;
        ran_by += one.lateness_count;
    }
    EXPECT(QC_ERROR_INVALID, qc_machine_cpu_stats(machine, cpu, &one));
    CHECK(armed == stats.armed && ran_by == stats.lateness_count);
    CHECK(runs > 0 && runs == stats.ran_here + stats.ran_elsewhere);
    CHECK(stats.armed == runs + stats.superseded + stats.cancelled);
    nap(10 * MS);
    for (unsigned at = 0; at < TIMERS; at++)
        runs -= atomic_load(&timers[at].runs);
    CHECK(runs == 0); /* nothing ran after the last cancel */
    EXPECT(QC_OK, qc_machine_shutdown(machine));
    return 0;
}
