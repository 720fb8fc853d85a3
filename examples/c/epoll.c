/* An event loop that plays a CPU of its own: timers run in the loop's thread, and the loop sleeps in epoll until the
 * next one is due, somebody kicks, or there is input.
 *
 * A timer ticks ten times a second; lines from standard input are repeated; the program ends after two seconds or at
 * the end of its input, whichever is later.
 */
#include <quietcore.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define MS 1000000ull

struct ticker {
    qc_timer timer;
    unsigned ticks;
};

static void tick(void *argument, const qc_run *run) {
    struct ticker *ticker = argument;
    printf("tick %u on CPU %u, %llu us late\n", ++ticker->ticks, run->cpu,
           (unsigned long long)(run->now - run->scheduled) / 1000);
    if (ticker->ticks == 20)
        qc_timer_cancel(run->timer); /* ends the periods; says "busy", as this run is under way */
}

static void check(qc_result result, const char *what) {
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, qc_strerror(result));
        exit(1);
    }
}

/* The CPU that this thread runs on becomes the one that it plays. */
static qc_cpu *claim(qc_machine *machine) {
    qc_cpu *cpu = NULL;
    for (uint32_t number = 0; cpu == NULL && number < 1024; number++) {
        qc_result claimed = qc_cpu_claim(machine, number, QC_CPU_KICK_FD, &cpu);
        if (claimed != QC_ERROR_NO_LANE)
            check(claimed, "qc_cpu_claim");
    }
    return cpu;
}

static void watch(int epoll, int descriptor) {
    struct epoll_event event = { .events = EPOLLIN, .data.fd = descriptor };
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0 && descriptor != STDIN_FILENO) {
        perror("epoll_ctl");
        exit(1);
    }
}

int main(void) {
    qc_machine_options options = QC_MACHINE_OPTIONS_INIT;
    options.lanes = "0-1023"; /* those of them that this process may use */
    qc_machine *machine = NULL;
    check(qc_machine_start(&options, &machine), "qc_machine_start");
    qc_cpu *cpu = claim(machine);

    struct ticker ticker = { .ticks = 0 };
    check(qc_timer_init(&ticker.timer, machine, tick, &ticker, QC_TIMER_TICK), "qc_timer_init");
    check(qc_timer_arm_periodic(&ticker.timer, qc_machine_now(machine), 100 * MS), "qc_timer_arm_periodic");

    int epoll = epoll_create1(EPOLL_CLOEXEC);
    watch(epoll, qc_cpu_kick_fd(cpu));
    watch(epoll, STDIN_FILENO); /* refused for a plain file, which this example does not read */
    bool has_input = isatty(STDIN_FILENO);

    for (;;) {
        if (qc_cpu_turn(cpu, NULL) == 1)
            continue; /* more is due */
        if (ticker.ticks >= 20 && !has_input)
            break;
        uint64_t until;
        check(qc_cpu_enter_idle(cpu, &until), "qc_cpu_enter_idle");
        uint64_t now = qc_machine_now(machine);
        /* Round up: waking a millisecond early would be a turn for nothing. */
        int timeout = until == UINT64_MAX ? -1 : until <= now ? 0 : (int)((until - now + MS - 1) / MS);
        struct epoll_event events[8];
        int count = epoll_wait(epoll, events, 8, timeout);
        qc_cpu_exit_idle(cpu);
        for (int at = 0; at < count; at++) {
            char line[256];
            if (events[at].data.fd != STDIN_FILENO)
                continue; /* a kick: the next turn sees why */
            ssize_t length = read(STDIN_FILENO, line, sizeof line);
            if (length <= 0) {
                has_input = false;
                epoll_ctl(epoll, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
            } else if (write(STDOUT_FILENO, line, (size_t)length) < 0) {
                return 1;
            }
        }
    }
    check(qc_cpu_release(cpu), "qc_cpu_release");
    check(qc_machine_shutdown(machine), "qc_machine_shutdown");
    return close(epoll);
}
