/* Ten million arms and cancels leave no memory behind, and neither do a hundred thousand runs. */
#include "check.h"

enum { TIMERS = 1000 };

static qc_timer timers[TIMERS];
static atomic_uint runs;

static void count(void *argument, const qc_run *run) {
    (void)argument;
    (void)run;
    atomic_fetch_add(&runs, 1);
}

/* Resident, in bytes. */
static long resident(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long total, pages;
    CHECK(file != NULL && fscanf(file, "%ld %ld", &total, &pages) == 2);
    CHECK(fclose(file) == 0);
    return pages * sysconf(_SC_PAGESIZE);
}

static void arm_and_cancel(qc_machine *machine, unsigned long pairs) {
    uint64_t seed = 99;
    uint64_t now = qc_machine_now(machine);
    for (unsigned long pair = 0; pair < pairs; pair++) {
        qc_timer *timer = &timers[pair % TIMERS];
        if (pair % 100 == 0)
            now = qc_machine_now(machine);
        EXPECT(0, qc_timer_arm_at(timer, now + SECOND + next_random(&seed) % (3600 * SECOND)));
        EXPECT(1, qc_timer_cancel(timer));
    }
}

static void run_all(unsigned rounds) {
    for (unsigned round = 0; round < rounds; round++) {
        unsigned before = atomic_load(&runs);
        for (unsigned at = 0; at < TIMERS; at++)
            EXPECT(0, qc_timer_arm_after(&timers[at], 0));
        await(&runs, before + TIMERS);
        for (unsigned at = 0; at < TIMERS; at++)
            EXPECT(0, qc_timer_cancel_sync(&timers[at]));
    }
}

int main(int argument_count, char **arguments) {
    unsigned share = percent(argument_count, arguments);
    qc_machine *machine = NULL;
    EXPECT(QC_OK, qc_machine_start(NULL, &machine));
    for (unsigned at = 0; at < TIMERS; at++)
        EXPECT(QC_OK, qc_timer_init(&timers[at], machine, count, NULL, at % 3));
    arm_and_cancel(machine, 10000);
    run_all(2);
    long before = resident();
    arm_and_cancel(machine, 100000ul * share);
    run_all(share);
    long after = resident();
    printf("memory: %ld KiB before, %ld KiB after\n", before / 1024, after / 1024);
    CHECK(after - before < 1024 * 1024);
    EXPECT(QC_OK, qc_machine_shutdown(machine));
    return 0;
}
