/* libevent: a base per worker, with locks, so that other threads may arm and cancel on it.
 *
 * Work runs in a callback of the base, as it would in an application: the base's time is cached there, as
 * libevent does unless told otherwise.
 */
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>
#include <pthread.h>

#include "load.h"

struct timer;

struct job {
    void (*run)(struct timer *);
    uint64_t due;
    int worker;
};

struct timer {
    struct job job;
    struct event event;
};

#define PEER_POLLS false

static struct worker {
    struct event_base *base;
    pthread_t thread;
    void (*work)(int);
} workers[WORKERS];

static const char *peer_absent(const struct load *load)
{
    (void)load;
    return NULL;
}

static void peer_start(void)
{
    need(evthread_use_pthreads() == 0, "evthread_use_pthreads");
    for (int worker = 0; worker < WORKERS; worker++) {
        workers[worker].base = event_base_new();
        need(workers[worker].base != NULL, "event_base_new");
    }
}

static void work_in_loop(evutil_socket_t descriptor, short what, void *argument)
{
    (void)descriptor;
    (void)what;
    struct worker *worker = argument;
    worker->work((int)(worker - workers));
    event_base_loopbreak(worker->base);
}

static void *serves(void *argument)
{
    struct worker *worker = argument;
    if (worker->work != NULL)
        event_base_once(worker->base, -1, EV_TIMEOUT, work_in_loop, worker, NULL);
    event_base_loop(worker->base, EVLOOP_NO_EXIT_ON_EMPTY);
    return NULL;
}

static void peer_run(int worker, void (*work)(int))
{
    workers[worker].work = work;
    need(pthread_create(&workers[worker].thread, NULL, serves, &workers[worker]) == 0, "pthread_create");
}

static void peer_serve(int worker)
{
    peer_run(worker, NULL);
}

static void peer_wait(int worker)
{
    if (workers[worker].work == NULL)
        event_base_loopbreak(workers[worker].base);
    pthread_join(workers[worker].thread, NULL);
}

static void peer_enter(void)
{
}

static void fired(evutil_socket_t descriptor, short what, void *argument)
{
    (void)descriptor;
    (void)what;
    struct timer *timer = argument;
    timer->job.run(timer);
}

static void timer_prepare(struct timer *timer, int worker)
{
    need(evtimer_assign(&timer->event, workers[worker].base, fired, timer) == 0, "evtimer_assign");
}

static void timer_arm(struct timer *timer, uint64_t delay)
{
    struct timeval after = {(time_t)(delay / SECOND), (suseconds_t)(delay % SECOND / 1000)};
    evtimer_add(&timer->event, &after);
}

static void timer_cancel(struct timer *timer)
{
    evtimer_del(&timer->event);
}

#include "measures.h"
