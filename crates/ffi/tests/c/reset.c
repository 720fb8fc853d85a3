/* Timers that are used again: with another function, with the periods that they had, and all of them taken out at
 * once; each also while a run is under way. */
#include "check.h"

#include <pthread.h>
#include <sys/wait.h>

enum { TIMERS = 200 };

static qc_machine *machine;
static atomic_uint first_runs, second_runs, entered, may_leave;
static int first_argument, second_argument;

static void first(void *argument, const qc_run *run) {
    (void)run;
    CHECK(argument == &first_argument);
    atomic_fetch_add(&first_runs, 1);
}

static void second(void *argument, const qc_run *run) {
    (void)run;
    CHECK(argument == &second_argument);
    atomic_fetch_add(&second_runs, 1);
}

static void stay(void *argument, const qc_run *run) {
    (void)argument;
    (void)run;
    atomic_fetch_add(&entered, 1);
    await(&may_leave, 1);
}

/* The first run changes what the next one calls. */
static void becomes_second(void *argument, const qc_run *run) {
    first(argument, run);
    EXPECT(1, qc_timer_is_running(run->timer));
    EXPECT(0, qc_timer_set_function(run->timer, second, &second_argument));
    EXPECT(0, qc_timer_arm_after(run->timer, MS));
    CHECK(argument == &first_argument);
}

static void another_function(void) {
    qc_timer timer = QC_TIMER_INIT;
    EXPECT(QC_ERROR_STATE, qc_timer_set_function(&timer, second, NULL));
    EXPECT(QC_OK, qc_timer_init(&timer, machine, first, &first_argument, QC_TIMER_TICK));
    EXPECT(QC_ERROR_ADDRESS, qc_timer_set_function(&timer, NULL, NULL));
    EXPECT(QC_ERROR_ADDRESS, qc_timer_set_function(NULL, second, NULL));
    EXPECT(0, qc_timer_arm_periodic(&timer, qc_machine_now(machine) + 3600 * SECOND, SECOND));
    EXPECT(1, qc_timer_set_function(&timer, second, &second_argument));
    EXPECT(0, qc_timer_is_pending(&timer)); /* and its periods are over */
    EXPECT(0, qc_timer_arm_after(&timer, MS));
    await(&second_runs, 1);
    EXPECT(0, qc_timer_cancel_sync(&timer));
    EXPECT(0, qc_timer_set_function(&timer, becomes_second, &first_argument));
    EXPECT(0, qc_timer_arm_after(&timer, 0));
    await(&second_runs, 2);
    EXPECT(0, qc_timer_cancel_sync(&timer));
    CHECK(atomic_load(&first_runs) == 1 && atomic_load(&second_runs) == 2);
}

static void another_function_while_it_runs(void) {
    qc_timer timer = QC_TIMER_INIT;
    EXPECT(QC_OK, qc_timer_init(&timer, machine, stay, NULL, QC_TIMER_TICK));
    EXPECT(0, qc_timer_arm_periodic(&timer, qc_machine_now(machine), MS));
    await(&entered, 1);
    EXPECT(QC_ERROR_BUSY, qc_timer_set_function(&timer, second, &second_argument));
    EXPECT(0, qc_timer_arm_after(&timer, 0)); /* what it calls is as before */
    EXPECT(QC_ERROR_BUSY, qc_timer_set_function(&timer, second, &second_argument));
    EXPECT(0, qc_timer_arm_after(&timer, 0));
    atomic_store(&may_leave, 1);
    await(&entered, 2);
    qc_result set = qc_timer_set_function(&timer, second, &second_argument);
    while (set == QC_ERROR_BUSY) {
        nap(MS);
        set = qc_timer_set_function(&timer, second, &second_argument);
    }
    EXPECT(0, set);
    EXPECT(0, qc_timer_arm_after(&timer, 0));
    await(&second_runs, 3);
    EXPECT(0, qc_timer_cancel_sync(&timer));
    CHECK(atomic_load(&entered) == 2);
}

static atomic_uint changes_left;

/* Whatever is armed when: a run has a function and its own argument. */
static void *arm_all_the_time(void *timer) {
    while (atomic_load(&changes_left) > 0)
        CHECK(qc_timer_arm_after(timer, 0) >= 0);
    return NULL;
}

static void functions_and_arguments_go_together(unsigned rounds) {
    qc_timer timer = QC_TIMER_INIT;
    atomic_store(&changes_left, rounds);
    EXPECT(QC_OK, qc_timer_init(&timer, machine, first, &first_argument, QC_TIMER_TICK));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, arm_all_the_time, &timer) == 0);
    while (atomic_load(&changes_left) > 0) {
        unsigned left = atomic_fetch_sub(&changes_left, 1);
        qc_result set = left % 2 ? qc_timer_set_function(&timer, first, &first_argument)
                                 : qc_timer_set_function(&timer, second, &second_argument);
        CHECK(set == 0 || set == 1 || set == QC_ERROR_BUSY);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(qc_timer_cancel_sync(&timer) >= 0);
}

static void go_on_with_periods(void *argument, const qc_run *run) {
    (void)argument;
    if (atomic_fetch_add(&first_runs, 1) < 2)
        EXPECT(0, qc_timer_arm_again(run->timer));
    else
        EXPECT(QC_ERROR_BUSY, qc_timer_cancel(run->timer));
}

static void periods_go_on(void) {
    qc_timer timer = QC_TIMER_INIT;
    uint64_t span = 0, period = 1800 * SECOND;
    EXPECT(QC_ERROR_STATE, qc_timer_arm_again(&timer));
    EXPECT(QC_OK, qc_timer_init(&timer, machine, go_on_with_periods, NULL, QC_TIMER_TICK));
    EXPECT(0, qc_timer_arm_after(&timer, SECOND * 3600));
    EXPECT(QC_ERROR_STATE, qc_timer_arm_again(&timer));
    EXPECT(1, qc_timer_is_pending(&timer));
    EXPECT(1, qc_timer_arm_periodic(&timer, qc_machine_now(machine) + 7200 * SECOND, period));
    EXPECT(1, qc_timer_arm_again(&timer));
    EXPECT(1, qc_timer_due_in(&timer, &span));
    CHECK(span <= period && span > period - 300 * SECOND);
    EXPECT(1, qc_timer_cancel(&timer));
    EXPECT(0, qc_timer_arm_again(&timer));
    EXPECT(1, qc_timer_cancel(&timer));
    atomic_store(&first_runs, 0);
    EXPECT(0, qc_timer_arm_periodic(&timer, qc_machine_now(machine), 2 * MS));
    await(&first_runs, 3);
    CHECK(qc_timer_cancel_sync(&timer) == 0 && atomic_load(&first_runs) == 3);
}

static qc_timer many[TIMERS];
static unsigned told[TIMERS];

static void tell(void *argument, qc_timer *timer) {
    CHECK(argument == told && timer >= many && timer < many + TIMERS);
    EXPECT(0, qc_timer_is_pending(timer));
    told[timer - many]++;
}

static void arm_again_when_told(void *argument, qc_timer *timer) {
    EXPECT(0, qc_timer_arm_after(timer, 3600 * SECOND));
    ++*(unsigned *)argument;
}

static void cancel_others(void *argument, const qc_run *run) {
    (void)run;
    *(qc_result *)argument = qc_machine_cancel_timers(machine, NULL, NULL, NULL);
    atomic_fetch_add(&entered, 1);
}

static void all_at_once(void) {
    unsigned count = 0;
    for (unsigned at = 0; at < TIMERS; at++) {
        EXPECT(QC_OK, qc_timer_init(&many[at], machine, first, &first_argument, at % 3));
        uint64_t moment = qc_machine_now(machine) + (at + 1) * 3600 * SECOND;
        EXPECT(0, at % 2 ? qc_timer_arm_at(&many[at], moment) : qc_timer_arm_periodic(&many[at], moment, SECOND));
    }
    EXPECT(QC_ERROR_CPUS, qc_machine_cancel_timers(machine, "x", NULL, NULL));
    EXPECT(0, qc_machine_cancel_timers(machine, "", tell, told));
    EXPECT(TIMERS, qc_machine_cancel_timers(machine, NULL, tell, told));
    for (unsigned at = 0; at < TIMERS; at++)
        CHECK(told[at] == 1);
    EXPECT(0, qc_machine_cancel_timers(machine, NULL, tell, told));
    /* What is armed in the call that tells stays. */
    for (unsigned at = 0; at < TIMERS; at++)
        EXPECT(0, qc_timer_arm_after(&many[at], 3600 * SECOND));
    EXPECT(TIMERS, qc_machine_cancel_timers(machine, "0-8191", arm_again_when_told, &count));
    CHECK(count == TIMERS && qc_timer_is_pending(&many[0]) == 1);
    /* In a callback: its own timer runs, so it is not pending, and its periods go on. */
    static qc_timer timer;
    static qc_result found = -1;
    atomic_store(&entered, 0);
    EXPECT(QC_OK, qc_timer_init(&timer, machine, cancel_others, &found, QC_TIMER_TICK));
    EXPECT(0, qc_timer_arm_periodic(&timer, qc_machine_now(machine), MS));
    await(&entered, 2);
    CHECK(qc_timer_cancel_sync(&timer) >= 0 && found == 0);
    for (unsigned at = 0; at < TIMERS; at++)
        EXPECT(0, qc_timer_is_pending(&many[at]));
}

static void in_a_forked_child(void) {
    static qc_timer timer;
    EXPECT(QC_OK, qc_timer_init(&timer, machine, first, &first_argument, QC_TIMER_TICK));
    EXPECT(0, qc_timer_arm_after(&timer, 3600 * SECOND));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        EXPECT(QC_ERROR_FORKED, qc_timer_set_function(&timer, second, &second_argument));
        EXPECT(QC_ERROR_FORKED, qc_timer_arm_again(&timer));
        EXPECT(0, qc_machine_cancel_timers(machine, NULL, NULL, NULL));
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    EXPECT(1, qc_timer_cancel_sync(&timer));
}

int main(int argument_count, char **arguments) {
    unsigned share = percent(argument_count, arguments);
    EXPECT(QC_OK, qc_machine_start(NULL, &machine));
    another_function();
    another_function_while_it_runs();
    functions_and_arguments_go_together(200 * share);
    periods_go_on();
    all_at_once();
    in_a_forked_child();
    EXPECT(QC_OK, qc_machine_shutdown(machine));
    puts("reset: done");
    return 0;
}
