/* A loop that never sleeps, as packet loops do: one call per turn of the loop costs some nanoseconds when nothing is
 * due. Every "packet" arms a timeout; nearly all are cancelled by their "answer", those that were lost run out.
 */
#include <quietcore.h>

#include <stdio.h>
#include <stdlib.h>

#define MS 1000000ull

enum { FLOWS = 1024 };

struct flow {
    qc_timer timeout;
    int is_lost; /* this packet has no answer */
    unsigned long lost;
};

static struct flow flows[FLOWS];

static void run_out(void *argument, const qc_run *run) {
    struct flow *flow = argument;
    (void)run;
    flow->lost++;
}

static void check(qc_result result, const char *what) {
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, qc_strerror(result));
        exit(1);
    }
}

int main(void) {
    qc_machine_options options = QC_MACHINE_OPTIONS_INIT;
    options.lanes = "0-1023";
    qc_machine *machine = NULL;
    check(qc_machine_start(&options, &machine), "qc_machine_start");
    qc_cpu *cpu = NULL;
    for (uint32_t number = 0; cpu == NULL && number < 1024; number++) {
        qc_result claimed = qc_cpu_claim(machine, number, 0, &cpu);
        if (claimed != QC_ERROR_NO_LANE)
            check(claimed, "qc_cpu_claim");
    }
    for (unsigned at = 0; at < FLOWS; at++)
        check(qc_timer_init(&flows[at].timeout, machine, run_out, &flows[at], QC_TIMER_COARSE), "qc_timer_init");

    uint64_t now = qc_machine_now(machine), end = now + 1000 * MS;
    unsigned long sent = 0, answered = 0, turns = 0;
    unsigned seed = 1;
    for (; now < end; turns++) {
        check(qc_cpu_turn(cpu, NULL), "qc_cpu_turn");
        if (turns % 64 == 0)
            now = qc_machine_now(machine);
        seed = seed * 1664525u + 1013904223u;
        struct flow *flow = &flows[seed >> 22];
        if (qc_timer_is_pending(&flow->timeout) == 1) {
            if (!flow->is_lost)
                answered += qc_timer_cancel(&flow->timeout) == 1;
        } else {
            check(qc_timer_arm_at(&flow->timeout, now + 20 * MS), "qc_timer_arm_at");
            flow->is_lost = (seed & 0x3ff00) == 0; /* one in 1024 */
            sent++;
        }
    }
    unsigned long pending = 0, lost = 0;
    for (unsigned at = 0; at < FLOWS; at++) {
        pending += qc_timer_cancel_sync(&flows[at].timeout) == 1;
        lost += flows[at].lost;
    }
    printf("%lu turns: %lu sent, %lu answered, %lu ran out, %lu pending at the end\n", turns, sent, answered, lost,
           pending);
    check(qc_cpu_release(cpu), "qc_cpu_release");
    check(qc_machine_shutdown(machine), "qc_machine_shutdown");
    return sent == answered + lost + pending ? 0 : 1;
}
