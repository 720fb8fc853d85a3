/* One timer, many threads that arm and cancel it at the same moment: exactly one of them meets it idle, exactly one
 * takes it out, and a period that was let run runs once. */
#include "check.h"

#include <pthread.h>

enum { THREADS = 4 };

static qc_machine *machine;
static qc_timer timer;
static pthread_barrier_t barrier;
static atomic_uint runs, met_idle, took_out;
static unsigned rounds;

static void count(void *argument, const qc_run *run) {
    (void)argument;
    (void)run;
    atomic_fetch_add(&runs, 1);
}

static void meet(void) {
    int met = pthread_barrier_wait(&barrier);
    CHECK(met == 0 || met == PTHREAD_BARRIER_SERIAL_THREAD);
}

static void *work(void *argument) {
    uintptr_t number = (uintptr_t)argument;
    for (unsigned round = 0; round < rounds; round++) {
        meet();
        qc_result armed = qc_timer_arm_at(&timer, qc_machine_now(machine) + 3600 * SECOND + number);
        CHECK(armed == 0 || armed == 1);
        atomic_fetch_add(&met_idle, armed == 0);
        meet();
        if (number == 0)
            CHECK(atomic_load(&met_idle) == round + 1);
        qc_result cancelled = qc_timer_cancel(&timer);
        CHECK(cancelled == 0 || cancelled == 1);
        atomic_fetch_add(&took_out, cancelled == 1);
        meet();
        if (number == 0)
            CHECK(atomic_load(&took_out) == round + 1 && atomic_load(&runs) == 0);
    }
    /* Due at once: the arms of a round end in as many runs as found it idle. */
    for (unsigned round = 0; round < rounds; round++) {
        meet();
        qc_result armed = qc_timer_arm_after(&timer, 0);
        CHECK(armed == 0 || armed == 1);
        atomic_fetch_add(&met_idle, armed == 0);
        meet();
        if (number == 0)
            await(&runs, atomic_load(&met_idle) - rounds);
    }
    return NULL;
}

int main(int argument_count, char **arguments) {
    rounds = 40 * percent(argument_count, arguments);
    EXPECT(QC_OK, qc_machine_start(NULL, &machine));
    EXPECT(QC_OK, qc_timer_init(&timer, machine, count, NULL, QC_TIMER_EXACT));
    CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    pthread_t threads[THREADS];
    for (uintptr_t at = 0; at < THREADS; at++)
        CHECK(pthread_create(&threads[at], NULL, work, (void *)at) == 0);
    for (unsigned at = 0; at < THREADS; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
    CHECK(qc_timer_cancel_sync(&timer) == 0);
    printf("race: %u rounds twice, %u runs\n", rounds, atomic_load(&runs));
    CHECK(atomic_load(&runs) == atomic_load(&met_idle) - rounds && atomic_load(&runs) >= rounds);
    EXPECT(QC_OK, qc_machine_shutdown(machine));
    return 0;
}
