/* One thing after the other: what each function returns, and what follows from it. */
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>

struct counted {
    qc_timer timer;
    atomic_uint runs;
    unsigned left;      /* arms itself again as often */
    uint64_t scheduled; /* of the last run */
    uint64_t early;
    uint64_t overruns;
};

static void count(void *argument, const qc_run *run) {
    struct counted *counted = argument;
    CHECK(run->timer == &counted->timer);
    if (run->now < run->scheduled)
        counted->early++;
    counted->scheduled = run->scheduled;
    counted->overruns += run->overruns;
    if (counted->left > 0) {
        counted->left--;
        EXPECT(0, qc_timer_arm_after(run->timer, 2 * MS));
    }
    atomic_fetch_add(&counted->runs, 1);
}

/* An error, and what is said of it. */
#define REFUSED(error, call, text)                                                    \
    do {                                                                              \
        EXPECT(error, call);                                                          \
        CHECK(strstr(qc_last_error(), text));                                         \
    } while (0)

static void refusals(void) {
    CHECK(strcmp(qc_last_error(), "") == 0);
    qc_timer zero = QC_TIMER_INIT;
    REFUSED(QC_ERROR_STATE, qc_timer_arm_after(&zero, MS), "qc_timer_init()");
    EXPECT(QC_ERROR_STATE, qc_timer_cancel(&zero));
    REFUSED(QC_ERROR_ADDRESS, qc_timer_cancel(NULL), "`timer` is NULL");
    EXPECT(QC_ERROR_ADDRESS, qc_timer_is_pending(NULL));
    EXPECT(QC_ERROR_ADDRESS, qc_timer_init(NULL, NULL, count, NULL, 0));
    EXPECT(QC_ERROR_ADDRESS, qc_timer_init(&zero, NULL, NULL, NULL, 0));
    EXPECT(QC_ERROR_INVALID, qc_timer_init(&zero, NULL, count, NULL, 64));
    EXPECT(QC_ERROR_INVALID, qc_timer_init(&zero, NULL, count, NULL, QC_TIMER_TICK | QC_TIMER_EXACT));
    EXPECT(QC_ERROR_INVALID, qc_timer_init(&zero, NULL, count, NULL, QC_TIMER_EXACT | QC_TIMER_DEFERRABLE));
    EXPECT(QC_ERROR_ADDRESS, qc_machine_start(NULL, NULL));
    EXPECT(QC_ERROR_ADDRESS, qc_machine_shutdown(NULL));
    EXPECT(QC_ERROR_ADDRESS, qc_run_release(NULL));
    EXPECT(QC_ERROR_ADDRESS, qc_machine_stats(NULL, NULL));
    EXPECT(QC_ERROR_ADDRESS, qc_machine_cpu_stats(NULL, 0, NULL));
    qc_machine *untouched = (qc_machine *)&zero;
    qc_machine_options options = QC_MACHINE_OPTIONS_INIT;
    options.cpus = "3-1";
    REFUSED(QC_ERROR_CPUS, qc_machine_start(&options, &untouched), "qc_machine_options.cpus");
    CHECK(strstr(qc_last_error(), "\"3-1\": "));
    options.cpus = NULL;
    options.tick = 1;
    REFUSED(QC_ERROR_INVALID, qc_machine_start(&options, &untouched), "a tick of 1ns");
    options.tick = 0;
    options.spare_lanes = 70000;
    REFUSED(QC_ERROR_INVALID, qc_machine_start(&options, &untouched), "spare_lanes is 70000");
    options.spare_lanes = 0;
    options.flags = QC_MACHINE_PIN_LANES;
    REFUSED(QC_ERROR_INVALID, qc_machine_start(&options, &untouched), "flags");
    options.flags = 4;
    REFUSED(QC_ERROR_INVALID, qc_machine_start(&options, &untouched), "flags");
    options.size = 1;
    REFUSED(QC_ERROR_SIZE, qc_machine_start(&options, &untouched), "sizeof(qc_machine_options)");
    CHECK(untouched == (qc_machine *)&zero);
    CHECK(strlen(qc_strerror(QC_ERROR_BUSY)) > 0 && strlen(qc_strerror(-12345)) > 0);
}

/* Programs that were compiled with an older or a newer header. */
static void versions(void) {
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", QC_VERSION_MAJOR, QC_VERSION_MINOR, QC_VERSION_PATCH);
    /* What follows the number says how it was built. */
    CHECK(strncmp(qc_version(), version, strlen(version)) == 0);
    struct {
        qc_machine_options options;
        uint64_t newer;
    } later = { QC_MACHINE_OPTIONS_INIT, 0 };
    later.options.size = sizeof later;
    qc_machine *machine = NULL;
    EXPECT(QC_OK, qc_machine_start(&later.options, &machine));
    EXPECT(QC_OK, qc_machine_shutdown(machine));
    later.newer = 1; /* something that this library does not know */
    EXPECT(QC_ERROR_SIZE, qc_machine_start(&later.options, &machine));
    qc_machine_options options = QC_MACHINE_OPTIONS_INIT;
    options.spare_lanes = 99999; /* beyond what the older structure has */
    options.size = offsetof(qc_machine_options, spare_lanes);
    EXPECT(QC_OK, qc_machine_start(&options, &machine));
    EXPECT(QC_OK, qc_machine_shutdown(machine));
    options.size = sizeof options.size;
    EXPECT(QC_OK, qc_machine_start(&options, &machine));
    qc_isolation isolation = { .size = sizeof isolation.size, .evacuated = 77 };
    EXPECT(QC_OK, qc_machine_set_isolated(machine, "", &isolation));
    CHECK(isolation.size == sizeof isolation.size && isolation.evacuated == 77);
    char text[64];
    size_t length = 0;
    EXPECT(QC_OK, qc_machine_openmetrics(machine, NULL, 0, &length));
    CHECK(length > sizeof text);
    EXPECT(QC_ERROR_INVALID, qc_machine_openmetrics(machine, text, sizeof text, NULL));
    CHECK(text[0] == '#' && strlen(text) == sizeof text - 1);
    EXPECT(QC_OK, qc_machine_stalls(machine, text, sizeof text, &length));
    CHECK(length == 1 && text[0] == 0); /* no lane, no stall */
    qc_stats stats = QC_STATS_INIT;
    EXPECT(QC_OK, qc_machine_stats(machine, &stats));
    CHECK(stats.size == sizeof stats && stats.lateness_count == 0); /* nothing has run */
    CHECK(stats.lateness_p50 == 0 && stats.lateness_p99 == 0);
    stats.size = offsetof(qc_stats, cancelled);
    stats.cancelled = 77;
    EXPECT(QC_OK, qc_machine_stats(machine, &stats));
    CHECK(stats.cancelled == 77 && stats.size == offsetof(qc_stats, cancelled));
    stats.size = sizeof stats.size;
    EXPECT(QC_OK, qc_machine_stats(machine, &stats));
    stats.size--;
    EXPECT(QC_ERROR_SIZE, qc_machine_stats(machine, &stats));
    EXPECT(QC_OK, qc_machine_shutdown(machine));
    EXPECT(QC_OK, qc_machine_shutdown(machine));
}

static void one_shot(uint32_t flags) {
    struct counted one = { .left = 0 };
    EXPECT(QC_OK, qc_timer_init(&one.timer, NULL, count, &one, flags));
    uint64_t at = qc_machine_now(NULL) + 5 * MS;
    EXPECT(0, qc_timer_arm_at(&one.timer, at));
    EXPECT(1, qc_timer_is_pending(&one.timer));
    await(&one.runs, 1);
    EXPECT(0, qc_timer_cancel_sync(&one.timer));
    CHECK(one.scheduled == at && one.early == 0);
    EXPECT(0, qc_timer_is_pending(&one.timer));
    EXPECT(0, qc_timer_is_running(&one.timer));
    EXPECT(0, qc_timer_arm_at(&one.timer, 0)); /* long over */
    await(&one.runs, 2);
}

/* Timers that are armed together: all run, those that were pending are counted, and one that is refused keeps
   none of the others from theirs. */
static void many(void) {
    enum { COUNT = 200 };
    static struct counted all[COUNT];
    qc_timer *timers[COUNT];
    uint64_t at[COUNT], start = qc_machine_now(NULL);
    for (unsigned i = 0; i < COUNT; i++) {
        EXPECT(QC_OK, qc_timer_init(&all[i].timer, NULL, count, &all[i], i % 3 ? QC_TIMER_TICK : QC_TIMER_EXACT));
        timers[i] = &all[i].timer;
        at[i] = start + 10000 * MS;
    }
    EXPECT(0, qc_timer_arm_many(timers, at, COUNT));
    for (unsigned i = 0; i < COUNT; i++)
        at[i] = start + (10 + i % 7) * MS;
    EXPECT(COUNT, qc_timer_arm_many(timers, at, COUNT));
    for (unsigned i = 0; i < COUNT; i++) {
        await(&all[i].runs, 1);
        CHECK(all[i].early == 0);
    }
    qc_timer none = QC_TIMER_INIT;
    timers[100] = &none;
    EXPECT(0, qc_timer_shutdown(&all[150].timer));
    EXPECT(QC_ERROR_STATE, qc_timer_arm_many(timers, at, COUNT));
    for (unsigned i = 0; i < COUNT; i++)
        await(&all[i].runs, i == 100 || i == 150 ? 1 : 2);
    EXPECT(QC_ERROR_SHUT_DOWN, qc_timer_arm_many(timers + 101, at, 99));
    EXPECT(0, qc_timer_arm_many(NULL, NULL, 0));
    EXPECT(QC_ERROR_ADDRESS, qc_timer_arm_many(NULL, at, 1));
    EXPECT(QC_ERROR_ADDRESS, qc_timer_arm_many(timers, NULL, 1));
    for (unsigned i = 0; i < COUNT; i++)
        CHECK(qc_timer_cancel_sync(&all[i].timer) >= 0);
}

/* It runs when the helper is awake for another one; or for what was cancelled, and so perhaps before that. */
static void deferrable(void) {
    struct counted lazy = { .left = 0 }, other = { .left = 0 };
    EXPECT(QC_OK, qc_timer_init(&lazy.timer, NULL, count, &lazy, QC_TIMER_TICK | QC_TIMER_DEFERRABLE));
    EXPECT(QC_OK, qc_timer_init(&other.timer, NULL, count, &other, QC_TIMER_TICK));
    EXPECT(0, qc_timer_arm_after(&lazy.timer, MS));
    EXPECT(0, qc_timer_arm_periodic(&other.timer, qc_machine_now(NULL) + 5 * MS, 5 * MS));
    await(&lazy.runs, 1);
    await(&other.runs, 1);
    CHECK(qc_timer_cancel_sync(&other.timer) >= 0);
    CHECK(lazy.early == 0);
}

/* What a timer is armed for, and how far that is. */
static void deadlines(void) {
    struct counted far = { .left = 0 };
    EXPECT(QC_OK, qc_timer_init(&far.timer, NULL, count, &far, QC_TIMER_COARSE));
    uint64_t at = 77, span = 78;
    EXPECT(0, qc_timer_deadline(&far.timer, &at));
    EXPECT(0, qc_timer_due_in(&far.timer, &span));
    CHECK(at == 77 && span == 78);
    uint64_t armed = qc_machine_now(NULL) + 3600 * SECOND + 7;
    EXPECT(0, qc_timer_arm_at(&far.timer, armed));
    EXPECT(1, qc_timer_deadline(&far.timer, &at));
    EXPECT(1, qc_timer_due_in(&far.timer, &span));
    CHECK(at == armed && span <= 3600 * SECOND + 7 && span > 3000 * SECOND);
    EXPECT(QC_ERROR_ADDRESS, qc_timer_deadline(&far.timer, NULL));
    EXPECT(QC_ERROR_ADDRESS, qc_timer_due_in(&far.timer, NULL));
    EXPECT(1, qc_timer_cancel_sync(&far.timer));
    EXPECT(0, qc_timer_deadline(&far.timer, &at));
    EXPECT(QC_ERROR_NO_LANE, qc_timer_arm_periodic_on(&far.timer, 0, armed, SECOND));
}

static void re_armed_in_its_callback(void) {
    struct counted chain = { .left = 9 };
    EXPECT(QC_OK, qc_timer_init(&chain.timer, NULL, count, &chain, QC_TIMER_TICK));
    EXPECT(0, qc_timer_arm_after(&chain.timer, MS));
    await(&chain.runs, 10);
    nap(10 * MS);
    EXPECT(0, qc_timer_cancel_sync(&chain.timer));
    CHECK(atomic_load(&chain.runs) == 10 && chain.early == 0);
}

static void periodic(void) {
    struct counted period = { .left = 0 };
    EXPECT(QC_OK, qc_timer_init(&period.timer, NULL, count, &period, QC_TIMER_TICK));
    uint64_t first = qc_machine_now(NULL) + 2 * MS;
    EXPECT(0, qc_timer_arm_periodic(&period.timer, first, 3 * MS));
    await(&period.runs, 5);
    CHECK(qc_timer_cancel_sync(&period.timer) >= 0);
    unsigned runs = atomic_load(&period.runs);
    CHECK(period.early == 0 && (period.scheduled - first) % (3 * MS) == 0);
    CHECK((period.scheduled - first) / (3 * MS) + 1 == runs + period.overruns);
    nap(10 * MS);
    CHECK(atomic_load(&period.runs) == runs);
}

/* What was missed while a callback took too long is counted, not made up for. */
static void take_long(void *argument, const qc_run *run) {
    struct counted *counted = argument;
    if (atomic_load(&counted->runs) == 0)
        nap(20 * MS);
    counted->overruns += run->overruns;
    counted->scheduled = run->scheduled;
    atomic_fetch_add(&counted->runs, 1);
}

static void overruns(void) {
    struct counted late = { .left = 0 };
    EXPECT(QC_OK, qc_timer_init(&late.timer, NULL, take_long, &late, QC_TIMER_TICK));
    uint64_t first = qc_machine_now(NULL) + 2 * MS;
    EXPECT(0, qc_timer_arm_periodic(&late.timer, first, 3 * MS));
    await(&late.runs, 3);
    CHECK(qc_timer_cancel_sync(&late.timer) >= 0);
    unsigned runs = atomic_load(&late.runs);
    CHECK(late.overruns >= 5); /* 20 ms have six periods of 3 ms, and the next run may begin on time */
    CHECK((late.scheduled - first) / (3 * MS) + 1 == runs + late.overruns);
}

/* Ten arms: three replaced, two cancelled, five run; nothing else happened on this machine. */
static void statistics(void) {
    qc_machine *machine = NULL;
    EXPECT(QC_OK, qc_machine_start(NULL, &machine));
    struct counted moved = { .left = 0 }, dropped = { .left = 0 }, runs = { .left = 4 };
    EXPECT(QC_OK, qc_timer_init(&moved.timer, machine, count, &moved, QC_TIMER_TICK));
    EXPECT(QC_OK, qc_timer_init(&dropped.timer, machine, count, &dropped, QC_TIMER_TICK));
    EXPECT(QC_OK, qc_timer_init(&runs.timer, machine, count, &runs, QC_TIMER_TICK));
    EXPECT(0, qc_timer_arm_after(&moved.timer, 3600 * SECOND));
    for (unsigned at = 0; at < 3; at++)
        EXPECT(1, qc_timer_arm_after(&moved.timer, (3600 + at) * SECOND));
    EXPECT(1, qc_timer_cancel(&moved.timer));
    EXPECT(0, qc_timer_arm_after(&dropped.timer, 3600 * SECOND));
    EXPECT(1, qc_timer_cancel(&dropped.timer));
    EXPECT(0, qc_timer_arm_after(&runs.timer, MS));
    await(&runs.runs, 5);
    EXPECT(0, qc_timer_cancel_sync(&runs.timer));
    qc_stats stats = QC_STATS_INIT;
    EXPECT(QC_OK, qc_machine_stats(machine, &stats));
    EXPECT(10, stats.armed);
    EXPECT(3, stats.superseded);
    EXPECT(2, stats.cancelled);
    EXPECT(5, stats.ran_here + stats.ran_elsewhere);
    EXPECT(5, stats.lateness_count);
    EXPECT(0, stats.waited);
    EXPECT(0, stats.kicks); /* there is no lane */
    CHECK(stats.lateness_p50 > 0 && stats.lateness_p50 <= stats.lateness_p99);
    CHECK(stats.settimes > 0 && stats.turns > 0);
    qc_stats one = QC_STATS_INIT;
    EXPECT(QC_OK, qc_machine_cpu_stats(machine, 0, &one));
    EXPECT(0, one.settimes); /* the machine's, not a CPU's */
    EXPECT(QC_OK, qc_machine_shutdown(machine));
}

static void verbs(void) {
    struct counted one = { .left = 0 };
    EXPECT(QC_OK, qc_timer_init(&one.timer, NULL, count, &one, QC_TIMER_COARSE));
    uint64_t far = qc_machine_now(NULL) + 3600 * SECOND;
    EXPECT(0, qc_timer_mod_pending(&one.timer, far));
    EXPECT(0, qc_timer_is_pending(&one.timer));
    EXPECT(0, qc_timer_reduce(&one.timer, far));
    EXPECT(1, qc_timer_mod_pending(&one.timer, far + SECOND));
    EXPECT(1, qc_timer_arm_at(&one.timer, far));
    EXPECT(1, qc_timer_cancel(&one.timer));
    EXPECT(0, qc_timer_cancel(&one.timer));
    EXPECT(0, qc_timer_arm_at(&one.timer, far));
    EXPECT(1, qc_timer_reduce(&one.timer, qc_machine_now(NULL) + MS));
    await(&one.runs, 1);
    CHECK(one.early == 0);
    EXPECT(QC_ERROR_NO_LANE, qc_timer_arm_on(&one.timer, 0, far)); /* there are none */
    EXPECT(QC_ERROR_NO_LANE, qc_timer_arm_on(&one.timer, 1u << 20, far)); /* nor such a CPU */
    EXPECT(0, qc_timer_arm_at(&one.timer, far));
    EXPECT(1, qc_timer_shutdown(&one.timer));
    EXPECT(QC_ERROR_SHUT_DOWN, qc_timer_arm_at(&one.timer, far));
    EXPECT(0, qc_timer_cancel_sync(&one.timer));
    EXPECT(QC_OK, qc_timer_init(&one.timer, NULL, count, &one, QC_TIMER_PINNED));
    EXPECT(QC_ERROR_NO_LANE, qc_timer_arm_at(&one.timer, far));
}

static atomic_uint entered, may_leave;

static void stay(void *argument, const qc_run *run) {
    struct counted *counted = argument;
    atomic_fetch_add(&entered, 1);
    EXPECT(1, qc_timer_is_running(run->timer));
    EXPECT(QC_ERROR_BUSY, qc_timer_cancel(run->timer));
    EXPECT(QC_ERROR_WOULD_BLOCK, qc_timer_cancel_sync(run->timer));
    await(&may_leave, 1);
    atomic_fetch_add(&counted->runs, 1);
}

static void *leave_soon(void *argument) {
    (void)argument;
    nap(20 * MS);
    atomic_store(&may_leave, 1);
    return NULL;
}

static void waiting(void) {
    struct counted one = { .left = 0 };
    EXPECT(QC_OK, qc_timer_init(&one.timer, NULL, stay, &one, QC_TIMER_TICK));
    EXPECT(0, qc_timer_arm_after(&one.timer, 0));
    await(&entered, 1);
    EXPECT(QC_ERROR_BUSY, qc_timer_cancel(&one.timer));
    EXPECT(0, qc_timer_arm_after(&one.timer, 0)); /* runs again unless it is cancelled */
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, leave_soon, NULL) == 0);
    EXPECT(1, qc_timer_cancel_sync(&one.timer));
    CHECK(atomic_load(&one.runs) == 1);
    CHECK(pthread_join(thread, NULL) == 0);
    nap(10 * MS);
    CHECK(atomic_load(&one.runs) == 1);
}

struct own {
    qc_timer timer;
    atomic_uint *ended;
};

static void end_itself(void *argument, const qc_run *run) {
    struct own *own = argument;
    atomic_uint *ended = own->ended;
    EXPECT(QC_OK, qc_run_release(run));
    memset(own, 0xa5, sizeof *own);
    free(own);
    atomic_fetch_add(ended, 1);
}

static void memory_freed_in_the_callback(void) {
    atomic_uint ended = 0;
    for (unsigned at = 0; at < 100; at++) {
        struct own *own = calloc(1, sizeof *own);
        CHECK(own != NULL);
        own->ended = &ended;
        EXPECT(QC_OK, qc_timer_init(&own->timer, NULL, end_itself, own, QC_TIMER_TICK));
        if (at % 2 == 0)
            EXPECT(0, qc_timer_arm_after(&own->timer, 0));
        else
            EXPECT(0, qc_timer_arm_periodic(&own->timer, qc_machine_now(NULL), MS));
    }
    await(&ended, 100);
}

static void in_a_forked_child(void) {
    struct counted one = { .left = 0 };
    EXPECT(QC_OK, qc_timer_init(&one.timer, NULL, count, &one, QC_TIMER_TICK));
    EXPECT(0, qc_timer_arm_after(&one.timer, 3600 * SECOND));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        EXPECT(QC_ERROR_FORKED, qc_timer_arm_after(&one.timer, 0));
        EXPECT(0, qc_timer_cancel(&one.timer));
        EXPECT(0, qc_timer_cancel_sync(&one.timer));
        qc_machine *own = NULL;
        EXPECT(QC_OK, qc_machine_start(NULL, &own));
        struct counted other = { .left = 0 };
        EXPECT(QC_OK, qc_timer_init(&other.timer, own, count, &other, QC_TIMER_TICK));
        EXPECT(0, qc_timer_arm_after(&other.timer, 0));
        await(&other.runs, 1);
        EXPECT(QC_OK, qc_machine_shutdown(own));
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    EXPECT(1, qc_timer_cancel_sync(&one.timer));
}

int main(int argument_count, char **arguments) {
    (void)percent(argument_count, arguments);
    refusals();
    versions();
    one_shot(QC_TIMER_COARSE);
    one_shot(QC_TIMER_TICK);
    one_shot(QC_TIMER_EXACT);
    many();
    deferrable();
    deadlines();
    re_armed_in_its_callback();
    periodic();
    overruns();
    statistics();
    verbs();
    waiting();
    memory_freed_in_the_callback();
    in_a_forked_child();
    qc_machine *machine = NULL;
    EXPECT(QC_OK, qc_machine_default(&machine));
    EXPECT(QC_ERROR_BUSY, qc_machine_install_default(machine));
    qc_stats stats = QC_STATS_INIT;
    EXPECT(QC_OK, qc_machine_stats(machine, &stats));
    CHECK(stats.armed > 0 && stats.ran_here + stats.ran_elsewhere > 100);
    CHECK(stats.armed == stats.ran_here + stats.ran_elsewhere + stats.cancelled + stats.superseded);
    EXPECT(QC_OK, qc_machine_shutdown(machine));
    CHECK(qc_machine_now(NULL) > 0);
    puts("basic: done");
    return 0;
}
