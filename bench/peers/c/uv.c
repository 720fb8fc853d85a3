/* libuv: a loop per worker. Nothing is shared: a loop and its timers belong to one thread.
 *
 * uv_timer_start counts from the loop's own time, which the loop reads once per iteration, in whole
 * milliseconds; here a callback's start is such a moment, too.
 */
#include <uv.h>

#include "load.h"

struct timer;

struct job {
    void (*run)(struct timer *);
    uint64_t due;
    int worker;
};

struct timer {
    struct job job;
    uv_timer_t handle;
};

#define PEER_POLLS false

static struct worker {
    uv_loop_t loop;
    uv_async_t stop;
    uv_thread_t thread;
    void (*work)(int);
} workers[WORKERS];

static const char *peer_absent(const struct load *load)
{
    if (load->foreign)
        return "a loop's timers are for its own thread";
    return strcmp(load->measure, "remote-cancel") == 0 ? "a loop's timers are for its own thread" : NULL;
}

static void stopped(uv_async_t *stop)
{
    uv_stop(stop->loop);
}

static void peer_start(void)
{
    for (int worker = 0; worker < WORKERS; worker++) {
        need(uv_loop_init(&workers[worker].loop) == 0, "uv_loop_init");
        need(uv_async_init(&workers[worker].loop, &workers[worker].stop, stopped) == 0, "uv_async_init");
    }
}

static void works(void *argument)
{
    struct worker *worker = argument;
    uv_update_time(&worker->loop);
    worker->work((int)(worker - workers));
}

static void serves(void *argument)
{
    struct worker *worker = argument;
    uv_run(&worker->loop, UV_RUN_DEFAULT);
}

static void peer_run(int worker, void (*work)(int))
{
    workers[worker].work = work;
    need(uv_thread_create(&workers[worker].thread, works, &workers[worker]) == 0, "uv_thread_create");
}

static void peer_serve(int worker)
{
    workers[worker].work = NULL;
    need(uv_thread_create(&workers[worker].thread, serves, &workers[worker]) == 0, "uv_thread_create");
}

static void peer_wait(int worker)
{
    if (workers[worker].work == NULL)
        need(uv_async_send(&workers[worker].stop) == 0, "uv_async_send");
    uv_thread_join(&workers[worker].thread);
}

static void peer_enter(void)
{
}

static void fired(uv_timer_t *handle)
{
    struct timer *timer = handle->data;
    timer->job.run(timer);
}

static void timer_prepare(struct timer *timer, int worker)
{
    uv_timer_init(&workers[worker].loop, &timer->handle);
    timer->handle.data = timer;
}

static void timer_arm(struct timer *timer, uint64_t delay)
{
    /* Rounded up, so as not to be early by the unit. */
    uv_timer_start(&timer->handle, fired, (delay + MILLIS - 1) / MILLIS, 0);
}

static void timer_cancel(struct timer *timer)
{
    uv_timer_stop(&timer->handle);
}

#include "measures.h"
