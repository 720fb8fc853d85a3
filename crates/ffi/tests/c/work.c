/* Work: it runs on the lane that it is bound to, once for each time that it was queued while it did not wait,
 * and not after it was cancelled or freed. The lanes have threads of the library. */
#include "check.h"

#include <pthread.h>
#include <sched.h>

static qc_machine *machine;
static atomic_uint runs, entered, may_leave;
static int expected_argument;
static qc_work *within;

static void count(void *argument) {
    CHECK(argument == &expected_argument);
    CHECK(sched_getcpu() == 0);
    atomic_fetch_add(&runs, 1);
}

static void stay(void *argument) {
    (void)argument;
    atomic_fetch_add(&entered, 1);
    await(&may_leave, 1);
    atomic_fetch_add(&runs, 1);
}

/* What a lane must not do: wait for itself. */
static void waits_for_itself(void *argument) {
    (void)argument;
    EXPECT(QC_ERROR_WOULD_BLOCK, qc_work_flush(within));
    EXPECT(QC_ERROR_WOULD_BLOCK, qc_work_cancel_sync(within));
    EXPECT(QC_ERROR_WOULD_BLOCK, qc_work_free(within));
    atomic_fetch_add(&runs, 1);
}

static void runs_when_it_is_queued(void) {
    qc_work *work = NULL;
    EXPECT(QC_ERROR_ADDRESS, qc_work_new(machine, 0, NULL, NULL, &work));
    EXPECT(QC_ERROR_ADDRESS, qc_work_new(machine, 0, count, NULL, NULL));
    EXPECT(QC_ERROR_NO_LANE, qc_work_new(machine, 4000, count, NULL, &work));
    CHECK(work == NULL);
    EXPECT(QC_OK, qc_work_new(machine, 0, count, &expected_argument, &work));
    EXPECT(0, qc_work_is_pending(work));
    EXPECT(QC_OK, qc_work_flush(work));
    CHECK(atomic_load(&runs) == 0);
    for (unsigned run = 1; run <= 100; run++) {
        EXPECT(1, qc_work_queue(work));
        EXPECT(QC_OK, qc_work_flush(work));
        CHECK(atomic_load(&runs) == run);
    }
    EXPECT(QC_OK, qc_work_free(work));
    EXPECT(QC_OK, qc_work_free(NULL));
    EXPECT(QC_ERROR_ADDRESS, qc_work_queue(NULL));
}

static void waits_once_however_often_it_is_queued(void) {
    qc_work *busy, *work, *behind;
    atomic_store(&runs, 0);
    EXPECT(QC_OK, qc_work_new(machine, QC_CPU_ANY, stay, NULL, &busy));
    EXPECT(1, qc_work_queue(busy));
    await(&entered, 1);
    /* The only lane is busy. */
    EXPECT(QC_OK, qc_work_new(machine, 0, count, &expected_argument, &work));
    EXPECT(1, qc_work_queue(work));
    EXPECT(0, qc_work_queue(work));
    EXPECT(1, qc_work_is_pending(work));
    EXPECT(1, qc_work_cancel(work));
    EXPECT(0, qc_work_cancel(work));
    EXPECT(1, qc_work_queue(work));
    EXPECT(1, qc_work_cancel_sync(work));
    EXPECT(1, qc_work_queue(work));
    atomic_store(&may_leave, 1);
    EXPECT(0, qc_work_cancel_sync(busy));
    EXPECT(QC_OK, qc_work_flush(work));
    CHECK(atomic_load(&runs) == 2);
    /* Freed while it waits, it does not run. */
    atomic_store(&may_leave, 0);
    EXPECT(1, qc_work_queue(busy));
    await(&entered, 2);
    EXPECT(1, qc_work_queue(work));
    EXPECT(QC_OK, qc_work_free(work));
    EXPECT(QC_OK, qc_work_new(machine, 0, count, &expected_argument, &behind));
    EXPECT(1, qc_work_queue(behind));
    atomic_store(&may_leave, 1);
    EXPECT(QC_OK, qc_work_free(busy));
    EXPECT(QC_OK, qc_work_flush(behind));
    CHECK(atomic_load(&runs) == 4);
    EXPECT(QC_OK, qc_work_free(behind));
}

static void a_lane_does_not_wait_for_itself(void) {
    atomic_store(&runs, 0);
    EXPECT(QC_OK, qc_work_new(machine, 0, waits_for_itself, NULL, &within));
    EXPECT(1, qc_work_queue(within));
    EXPECT(QC_OK, qc_work_flush(within));
    CHECK(atomic_load(&runs) == 1);
    EXPECT(QC_OK, qc_work_free(within));
}

int main(void) {
    alarm(60);
    qc_machine_options options = QC_MACHINE_OPTIONS_INIT;
    options.lanes = "0";
    options.flags = QC_MACHINE_LANE_THREADS | QC_MACHINE_PIN_LANES;
    options.stall_after = UINT64_MAX; /* or a spare thread, on any CPU, takes over from a lane that is late */
    EXPECT(QC_OK, qc_machine_start(&options, &machine));
    runs_when_it_is_queued();
    waits_once_however_often_it_is_queued();
    a_lane_does_not_wait_for_itself();
    qc_work *late;
    EXPECT(QC_OK, qc_work_new(machine, 0, count, &expected_argument, &late));
    EXPECT(QC_OK, qc_machine_shutdown(machine));
    EXPECT(QC_ERROR_SHUT_DOWN, qc_work_queue(late));
    EXPECT(QC_OK, qc_work_free(late));
    puts("work: done");
    return 0;
}
