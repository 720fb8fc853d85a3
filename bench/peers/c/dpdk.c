/* DPDK's rte_timer on two lcores that poll without rest.
 *
 * A third lcore is the main thread, which only waits. Threads that are not lcores register with the EAL and
 * arm on a worker's list. In `expire` nobody polls until all are due, so that only expiry is counted.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include <pthread.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_timer.h>
#include <sched.h>
#include <stdatomic.h>

#include "load.h"

struct timer;

struct job {
    void (*run)(struct timer *);
    uint64_t due;
    int worker;
};

struct timer {
    struct job job;
    struct rte_timer rte;
};

#define PEER_POLLS true

static double cycles_per_ns;
static void (*work_of[WORKERS])(int);
static atomic_bool stop[WORKERS];

static unsigned lcore_of(int worker)
{
    return (unsigned)worker + 1;
}

static const char *peer_absent(const struct load *load)
{
    (void)load;
    return NULL;
}

static void peer_start(void)
{
    cpu_set_t allowed;
    need(sched_getaffinity(0, sizeof allowed, &allowed) == 0, "sched_getaffinity");
    int cpus[WORKERS], found = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < WORKERS; cpu++) {
        if (CPU_ISSET(cpu, &allowed))
            cpus[found++] = cpu;
    }
    if (found < WORKERS)
        say_absent("lcores are pinned, and there are not 2 CPUs");
    char lcores[64];
    snprintf(lcores, sizeof lcores, "--lcores=0@%d,1@%d,2@%d", cpus[0], cpus[0], cpus[1]);
    char *arguments[] = {"dpdk",           "--no-huge",         "--no-pci", "--no-shconf",
                         "--no-telemetry", "--log-level=error", lcores,     NULL};
    int count = (int)(sizeof arguments / sizeof *arguments) - 1;
    if (rte_eal_init(count, arguments) < 0)
        say_absent(rte_strerror(rte_errno));
    need(rte_timer_subsystem_init() == 0, "rte_timer_subsystem_init");
    cycles_per_ns = (double)rte_get_timer_hz() / 1e9;
}

static int works(void *argument)
{
    int worker = (int)(intptr_t)argument;
    if (work_of[worker] != NULL) {
        work_of[worker](worker);
        return 0;
    }
    while (!atomic_load_explicit(&stop[worker], memory_order_relaxed))
        rte_timer_manage();
    return 0;
}

static void peer_run(int worker, void (*work)(int))
{
    work_of[worker] = work;
    atomic_store(&stop[worker], false);
    need(rte_eal_remote_launch(works, (void *)(intptr_t)worker, lcore_of(worker)) == 0, "remote_launch");
}

static void peer_serve(int worker)
{
    peer_run(worker, NULL);
}

static void peer_wait(int worker)
{
    atomic_store(&stop[worker], true);
    rte_eal_wait_lcore(lcore_of(worker));
}

static void peer_enter(void)
{
    need(rte_thread_register() == 0, "rte_thread_register");
}

static void fired(struct rte_timer *rte, void *argument)
{
    (void)rte;
    struct timer *timer = argument;
    timer->job.run(timer);
}

static void timer_prepare(struct timer *timer, int worker)
{
    (void)worker;
    rte_timer_init(&timer->rte);
}

static void timer_arm(struct timer *timer, uint64_t delay)
{
    uint64_t cycles = (uint64_t)((double)delay * cycles_per_ns);
    rte_timer_reset_sync(&timer->rte, cycles, SINGLE, lcore_of(timer->job.worker), fired, timer);
}

static void timer_cancel(struct timer *timer)
{
    rte_timer_stop_sync(&timer->rte);
}

#include "measures.h"
