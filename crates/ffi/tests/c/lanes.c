/* CPUs that are driven by threads of the program: turns, kicks, pinned timers, and what is refused. */
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static qc_machine *machine;
static uint32_t own_cpu;

static struct {
    qc_timer timer;
    atomic_uint runs;
    pthread_t thread; /* of the last run */
    uint32_t cpu;
} one;

static qc_cpu *lane;

static void count(void *argument, const qc_run *run) {
    (void)argument;
    one.thread = pthread_self();
    one.cpu = run->cpu;
    if (lane != NULL && one.cpu == own_cpu && pthread_equal(pthread_self(), one.thread)) {
        qc_result turned = qc_cpu_turn(lane, NULL);
        CHECK(turned == QC_ERROR_WOULD_BLOCK || turned == QC_ERROR_WRONG_THREAD);
    }
    atomic_fetch_add(&one.runs, 1);
}

/* Turns and waits as a program with an event loop does, until the timer has run. */
static void play_until(unsigned runs, short expected) {
    struct pollfd kick = { .fd = qc_cpu_kick_fd(lane), .events = POLLIN };
    CHECK(kick.fd >= 0);
    short seen = 0;
    while (atomic_load(&one.runs) < runs) {
        qc_result more = qc_cpu_turn(lane, NULL);
        CHECK(more >= 0);
        if (more == 1 || atomic_load(&one.runs) >= runs)
            continue;
        uint64_t end = 0;
        CHECK(qc_cpu_enter_idle(lane, &end) >= 0);
        uint64_t now = qc_machine_now(machine);
        int wait = end == UINT64_MAX ? 60000 : end <= now ? 0 : (int)((end - now + MS - 1) / MS);
        CHECK(poll(&kick, 1, wait) >= 0);
        seen |= kick.revents;
        EXPECT(QC_OK, qc_cpu_exit_idle(lane));
    }
    CHECK((seen & expected) == expected);
}

static void *from_another_thread(void *argument) {
    nap(30 * MS); /* the lane waits by then */
    EXPECT(QC_ERROR_WRONG_THREAD, qc_cpu_turn(lane, NULL));
    EXPECT(QC_ERROR_WRONG_THREAD, qc_cpu_release(lane));
    EXPECT(0, qc_timer_arm_on(&one.timer, own_cpu, qc_machine_now(machine)));
    return argument;
}

/* The machine is the parent's: a loop that goes on in the child is told so. */
static void in_a_forked_child(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        uint64_t until = 0;
        qc_stats stats = { .size = sizeof stats };
        bool is_refused = qc_cpu_turn(lane, NULL) == QC_ERROR_FORKED &&
                          qc_cpu_enter_idle(lane, &until) == QC_ERROR_FORKED &&
                          qc_cpu_park(lane) == QC_ERROR_FORKED && qc_cpu_exit_idle(lane) == QC_OK &&
                          qc_machine_stats(machine, &stats) == QC_ERROR_FORKED;
        _exit(is_refused ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argument_count, char **arguments) {
    (void)percent(argument_count, arguments);
    qc_machine_options options = QC_MACHINE_OPTIONS_INIT;
    options.lanes = "0-1023"; /* as many of them as this process may use */
    EXPECT(QC_OK, qc_machine_start(&options, &machine));
    EXPECT(QC_ERROR_NO_LANE, qc_cpu_claim(machine, 1u << 20, 0, &lane));
    EXPECT(QC_ERROR_INVALID, qc_cpu_claim(machine, 0, 8, &lane));
    EXPECT(QC_ERROR_ADDRESS, qc_cpu_claim(machine, 0, 0, NULL));
    EXPECT(QC_OK, qc_cpu_release(NULL));
    qc_result claimed = QC_ERROR_NO_LANE;
    for (own_cpu = 1024; claimed == QC_ERROR_NO_LANE && own_cpu > 0;)
        claimed = qc_cpu_claim(machine, --own_cpu, QC_CPU_KICK_FD, &lane);
    EXPECT(QC_OK, claimed);
    qc_cpu *second = NULL;
    EXPECT(QC_ERROR_BUSY, qc_cpu_claim(machine, own_cpu, 0, &second));
    EXPECT(QC_ERROR_STATE, qc_cpu_park(lane));
    EXPECT(QC_ERROR_STATE, qc_cpu_block_end(lane));

    EXPECT(QC_OK, qc_timer_init(&one.timer, machine, count, NULL, QC_TIMER_TICK | QC_TIMER_PINNED));
    EXPECT(0, qc_timer_arm_after(&one.timer, 3 * MS));
    play_until(1, 0);
    CHECK(pthread_equal(one.thread, pthread_self()) && one.cpu == own_cpu);

    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, from_another_thread, NULL) == 0);
    play_until(2, POLLIN);
    CHECK(pthread_join(thread, NULL) == 0 && pthread_equal(one.thread, pthread_self()));

    /* Periods that are this lane's, though its timer could run anywhere. */
    EXPECT(QC_OK, qc_timer_init(&one.timer, machine, count, NULL, QC_TIMER_TICK));
    EXPECT(0, qc_timer_arm_periodic_on(&one.timer, own_cpu, qc_machine_now(machine), 2 * MS));
    play_until(5, 0);
    CHECK(pthread_equal(one.thread, pthread_self()) && one.cpu == own_cpu);
    CHECK(qc_timer_cancel(&one.timer) >= 0);
    atomic_store(&one.runs, 2);

    /* While the lane is busy with something long, others run what they can. */
    EXPECT(QC_OK, qc_timer_init(&one.timer, machine, count, NULL, QC_TIMER_TICK));
    EXPECT(0, qc_timer_arm_after(&one.timer, 3 * MS));
    EXPECT(QC_OK, qc_cpu_block_begin(lane));
    EXPECT(QC_ERROR_STATE, qc_cpu_block_begin(lane));
    await(&one.runs, 3);
    CHECK(!pthread_equal(one.thread, pthread_self()));
    EXPECT(QC_OK, qc_cpu_block_end(lane));
    EXPECT(0, qc_timer_cancel(&one.timer));

    EXPECT(QC_OK, qc_cpu_release(lane));
    lane = NULL;
    EXPECT(QC_OK, qc_cpu_claim(machine, own_cpu, 0, &lane));
    EXPECT(QC_ERROR_STATE, qc_cpu_kick_fd(lane));
    EXPECT(0, qc_timer_arm_after(&one.timer, 2 * MS));
    while (atomic_load(&one.runs) < 4) {
        CHECK(qc_cpu_turn(lane, NULL) >= 0);
        if (atomic_load(&one.runs) < 4)
            EXPECT(QC_OK, qc_cpu_park(lane));
    }
    EXPECT(QC_OK, qc_cpu_release(lane));

    qc_isolation isolation = QC_ISOLATION_INIT;
    EXPECT(QC_OK, qc_machine_set_isolated(machine, "", &isolation));
    CHECK(isolation.size == sizeof isolation && isolation.still_running == 0);
    EXPECT(QC_OK, qc_machine_set_isolated(machine, "", NULL));
    EXPECT(QC_ERROR_ADDRESS, qc_machine_set_isolated(machine, NULL, NULL));
    EXPECT(QC_ERROR_CPUS, qc_machine_set_isolated(machine, "4000", &isolation));
    EXPECT(QC_OK, qc_cpu_claim(machine, own_cpu, 0, &lane));
    in_a_forked_child();
    EXPECT(QC_OK, qc_machine_shutdown(machine));
    EXPECT(QC_ERROR_SHUT_DOWN, qc_cpu_turn(lane, NULL));
    EXPECT(QC_ERROR_SHUT_DOWN, qc_cpu_park(lane));
    EXPECT(QC_OK, qc_cpu_release(lane));
    EXPECT(QC_ERROR_SHUT_DOWN, qc_machine_set_isolated(machine, "", NULL));
    EXPECT(QC_ERROR_SHUT_DOWN, qc_cpu_claim(machine, own_cpu, 0, &lane));
    puts("lanes: done");
    return 0;
}
