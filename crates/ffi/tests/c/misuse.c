/* What a program must not do and the library can notice: it is refused, and everything goes on as it was. */
#include "check.h"

#include <pthread.h>
#include <string.h>

static void count(void *argument, const qc_run *run) {
    (void)run;
    atomic_fetch_add((atomic_uint *)argument, 1);
}

/* A timer that is pending is its machine's. It runs once, as it was armed, and so does another one. */
static void init_of_a_pending_timer(void) {
    static qc_timer timer, other;
    static atomic_uint runs, other_runs, never;
    EXPECT(QC_OK, qc_timer_init(&timer, NULL, count, &runs, QC_TIMER_TICK));
    EXPECT(0, qc_timer_arm_after(&timer, 20 * MS));
    EXPECT(QC_ERROR_BUSY, qc_timer_init(&timer, NULL, count, &never, QC_TIMER_TICK));
    EXPECT(QC_ERROR_BUSY, qc_timer_init_exact(&timer, NULL, count, &never, 0));
    EXPECT(1, qc_timer_arm_after(&timer, 30 * MS));
    EXPECT(QC_OK, qc_timer_init(&other, NULL, count, &other_runs, QC_TIMER_TICK));
    EXPECT(0, qc_timer_arm_after(&other, MS));
    await(&runs, 1);
    await(&other_runs, 1);
    EXPECT(0, qc_timer_cancel_sync(&timer));
    EXPECT(QC_OK, qc_timer_init(&timer, NULL, count, &runs, QC_TIMER_EXACT));
    EXPECT(0, qc_timer_cancel_sync(&other));
    CHECK(atomic_load(&runs) == 1 && atomic_load(&never) == 0);
}

/* After the end of its machine no queue has it. */
static void init_after_the_end(void) {
    qc_machine *machine = NULL;
    static qc_timer timer;
    static atomic_uint runs;
    EXPECT(QC_OK, qc_machine_start(NULL, &machine));
    EXPECT(QC_OK, qc_timer_init(&timer, machine, count, &runs, QC_TIMER_TICK));
    EXPECT(0, qc_timer_arm_after(&timer, 3600 * SECOND));
    EXPECT(QC_OK, qc_machine_shutdown(machine));
    EXPECT(QC_OK, qc_timer_init(&timer, NULL, count, &runs, QC_TIMER_TICK));
    EXPECT(0, qc_timer_arm_after(&timer, MS));
    await(&runs, 1);
    EXPECT(0, qc_timer_cancel_sync(&timer));
}

/* A timer is where it was initialised: its machine knows no other place. */
static void a_copy_is_no_timer(void) {
    static atomic_uint runs;
    qc_timer timer = QC_TIMER_INIT;
    EXPECT(QC_OK, qc_timer_init(&timer, NULL, count, &runs, QC_TIMER_TICK));
    qc_timer copy = timer;
    EXPECT(QC_ERROR_STATE, qc_timer_arm_after(&copy, MS));
    EXPECT(QC_ERROR_STATE, qc_timer_is_pending(&copy));
    EXPECT(QC_OK, qc_timer_init(&copy, NULL, count, &runs, QC_TIMER_TICK));
    EXPECT(0, qc_timer_cancel_sync(&copy));
    EXPECT(0, qc_timer_cancel_sync(&timer));
}

static void *use_of_another_threads_lane(void *lane) {
    EXPECT(QC_ERROR_WRONG_THREAD, qc_cpu_turn(lane, NULL));
    EXPECT(QC_ERROR_WRONG_THREAD, qc_cpu_release(lane));
    return NULL;
}

/* What was released is not touched: valgrind and the sanitizer look on. */
static void release_of_a_released_lane(void) {
    qc_machine_options options = QC_MACHINE_OPTIONS_INIT;
    options.lanes = "0-1023"; /* as many of them as this process may use */
    qc_machine *machine = NULL;
    EXPECT(QC_OK, qc_machine_start(&options, &machine));
    qc_cpu *lane = NULL;
    qc_result claimed = QC_ERROR_NO_LANE;
    for (uint32_t cpu = 0; claimed == QC_ERROR_NO_LANE && cpu < 1024; cpu++)
        claimed = qc_cpu_claim(machine, cpu, 0, &lane);
    EXPECT(QC_OK, claimed);
    pthread_t other;
    CHECK(pthread_create(&other, NULL, use_of_another_threads_lane, lane) == 0);
    CHECK(pthread_join(other, NULL) == 0);
    CHECK(qc_cpu_turn(lane, NULL) >= 0);
    EXPECT(QC_OK, qc_cpu_release(lane));
    uint64_t until = 0;
    EXPECT(QC_ERROR_WRONG_THREAD, qc_cpu_release(lane));
    EXPECT(QC_ERROR_WRONG_THREAD, qc_cpu_turn(lane, NULL));
    EXPECT(QC_ERROR_WRONG_THREAD, qc_cpu_enter_idle(lane, &until));
    EXPECT(QC_OK, qc_machine_shutdown(machine));
}

/* An address at which nothing of its kind can be. */
static void misaligned(void) {
    static _Alignas(16) char bytes[512];
    void *odd = bytes + 1;
    size_t size = sizeof(qc_stats);
    memcpy(odd, &size, sizeof size);
    EXPECT(QC_ERROR_ADDRESS, qc_timer_init(odd, NULL, count, NULL, QC_TIMER_TICK));
    EXPECT(QC_ERROR_ADDRESS, qc_machine_start(NULL, odd));
    EXPECT(QC_ERROR_ADDRESS, qc_machine_start(odd, odd));
    EXPECT(QC_ERROR_ADDRESS, qc_machine_default(odd));
    EXPECT(QC_ERROR_ADDRESS, qc_machine_shutdown(odd));
    EXPECT(QC_ERROR_ADDRESS, qc_machine_set_isolated(NULL, "", odd));
    CHECK(qc_machine_now(odd) == 0);
    EXPECT(QC_ERROR_ADDRESS, qc_machine_stats(NULL, odd));
    EXPECT(QC_ERROR_ADDRESS, qc_machine_stats(odd, odd));
    EXPECT(QC_ERROR_ADDRESS, qc_cpu_claim(NULL, 0, 0, odd));
    EXPECT(QC_ERROR_ADDRESS, qc_run_release(odd));
}

int main(int argument_count, char **arguments) {
    (void)percent(argument_count, arguments);
    init_of_a_pending_timer();
    init_after_the_end();
    a_copy_is_no_timer();
    release_of_a_released_lane();
    misaligned();
    return 0;
}
