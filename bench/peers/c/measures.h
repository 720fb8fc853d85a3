/* The measures of ../rust/src, for libraries with callbacks. The file that includes this has defined:
 *
 *   struct timer                            the library's timer; the first member is a struct job
 *   const char *peer_absent(load)           why it cannot do this; NULL if it can
 *   void peer_start(void)                   once; workers are numbered from 0 to WORKERS - 1
 *   void peer_run(worker, work)             starts work(worker) on that worker's thread, which does not
 *                                           serve timers meanwhile
 *   void peer_serve(worker)                 starts to serve timers on that worker's thread
 *   void peer_wait(worker)                  until what was started there has ended; ends serving
 *   void peer_enter(void)                   first call of a thread that is not a worker
 *   void timer_prepare(timer, worker)       for use on that worker
 *   void timer_arm(timer, delay)            delay in nanoseconds; moves a timer that is pending
 *   void timer_cancel(timer)
 *
 * The library calls timer->job.run(timer) when a timer expires.
 */
#include <pthread.h>
#include <stdatomic.h>

/* Random numbers drawn beforehand, and operations of a stretch. */
#define DRAWN 4096

/* What passes before and after a window, so that neither start nor end is in it. */
#define MARGIN (200 * MILLIS)

static struct load load;

static void fires_never(struct timer *timer)
{
    (void)timer;
    need(false, "a timer far away has expired");
}

static struct timer *timers_new(uint64_t count, int worker, void (*run)(struct timer *))
{
    struct timer *timers = NULL;
    size_t bytes = (count == 0 ? 1 : count) * sizeof *timers;
    need(posix_memalign((void **)&timers, 64, bytes) == 0, "no memory for timers");
    memset(timers, 0, bytes);
    for (uint64_t at = 0; at < count; at++) {
        timers[at].job.run = run;
        timers[at].job.worker = worker;
        timer_prepare(&timers[at], worker);
    }
    return timers;
}

static struct timer *pending(uint64_t count, int worker, struct delays *delays)
{
    struct timer *timers = timers_new(count, worker, fires_never);
    for (uint64_t at = 0; at < count; at++)
        timer_arm(&timers[at], far_delay(delays));
    return timers;
}

/* Arm and cancel. */

static pthread_barrier_t together;
static atomic_uint_fast64_t total;
static double nanos_of[WORKERS];

/* How long each stretch of operations took. */
struct stretches {
    uint64_t *lasted;
    uint64_t count, room;
};

static void add_stretch(struct stretches *stretches, uint64_t lasted)
{
    if (stretches->count == stretches->room) {
        stretches->room = stretches->room == 0 ? 1 << 14 : 2 * stretches->room;
        stretches->lasted = realloc(stretches->lasted, stretches->room * sizeof *stretches->lasted);
        need(stretches->lasted != NULL, "no memory for stretches");
    }
    stretches->lasted[stretches->count++] = lasted;
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Nanoseconds per operation of the median stretch: one in which the thread lost its CPU does not count. */
static double nanos_per(struct stretches *stretches, uint64_t operations)
{
    qsort(stretches->lasted, stretches->count, sizeof *stretches->lasted, compare);
    uint64_t median = stretches->lasted[stretches->count / 2];
    free(stretches->lasted);
    return (double)median / (double)operations;
}

static uint64_t pairs_for(uint64_t time, struct timer *timer, const uint64_t *drawn)
{
    struct stretches stretches = {0};
    uint64_t start = now_ns(), last = start;
    while (last - start < time) {
        for (int at = 0; at < DRAWN; at++) {
            timer_arm(timer, drawn[at]);
            timer_cancel(timer);
        }
        uint64_t now = now_ns();
        add_stretch(&stretches, now - last);
        last = now;
    }
    uint64_t pairs = stretches.count * DRAWN;
    nanos_of[timer->job.worker] = nanos_per(&stretches, DRAWN);
    return pairs;
}

static void arm_cancel_on(int thread)
{
    struct delays delays = delays_of((uint64_t)thread);
    struct timer *others = pending(load.others / load.threads, thread, &delays);
    struct timer *timer = timers_new(1, thread, fires_never);
    uint64_t drawn[DRAWN];
    for (int at = 0; at < DRAWN; at++)
        drawn[at] = far_delay(&delays);
    pairs_for(load.time / 10, timer, drawn);
    if (pthread_barrier_wait(&together) == PTHREAD_BARRIER_SERIAL_THREAD)
        say_window_start();
    pthread_barrier_wait(&together);
    atomic_fetch_add(&total, pairs_for(load.time, timer, drawn));
    if (pthread_barrier_wait(&together) == PTHREAD_BARRIER_SERIAL_THREAD)
        say_window_end(atomic_load(&total));
    pthread_barrier_wait(&together);
    (void)others; /* pending until the program ends */
}

static void *foreign_thread(void *number)
{
    peer_enter();
    arm_cancel_on((int)(intptr_t)number);
    return NULL;
}

static void arm_cancel(void)
{
    need(load.threads >= 1 && load.threads <= WORKERS, "so many threads are not supported");
    pthread_barrier_init(&together, NULL, (unsigned)load.threads);
    pthread_t foreign[WORKERS];
    for (int thread = 0; load.foreign && thread < WORKERS; thread++)
        peer_serve(thread);
    for (int thread = 0; thread < (int)load.threads; thread++) {
        if (load.foreign)
            pthread_create(&foreign[thread], NULL, foreign_thread, (void *)(intptr_t)thread);
        else
            peer_run(thread, arm_cancel_on);
    }
    double sum = 0;
    for (int thread = 0; thread < (int)load.threads; thread++) {
        if (load.foreign)
            pthread_join(foreign[thread], NULL);
        else
            peer_wait(thread);
        sum += nanos_of[thread];
    }
    say_figure("ns", sum / (double)load.threads);
}

/* Cancel elsewhere: worker 0 arms a batch and waits, worker 1 cancels it. */

static struct timer *batch;
static bool enough;

static void remote_cancel_on(int worker)
{
    struct delays delays = delays_of(0);
    struct stretches stretches = {0};
    uint64_t stop = now_ns() + load.time;
    while (!enough) {
        for (uint64_t at = 0; worker == 0 && at < load.count; at++)
            timer_arm(&batch[at], far_delay(&delays));
        pthread_barrier_wait(&together);
        if (worker == 1) {
            uint64_t start = now_ns();
            for (uint64_t at = 0; at < load.count; at++)
                timer_cancel(&batch[at]);
            uint64_t now = now_ns();
            add_stretch(&stretches, now - start);
            enough = now >= stop;
        }
        pthread_barrier_wait(&together);
    }
    if (worker == 1)
        nanos_of[1] = nanos_per(&stretches, load.count);
}

static void remote_cancel(void)
{
    pthread_barrier_init(&together, NULL, WORKERS);
    batch = timers_new(load.count, 0, fires_never);
    for (int worker = 0; worker < WORKERS; worker++)
        peer_run(worker, remote_cancel_on);
    for (int worker = 0; worker < WORKERS; worker++)
        peer_wait(worker);
    say_figure("ns", nanos_of[1]);
}

/* Move a random one of many. */

static void rearm_on(int worker)
{
    struct delays delays = delays_of((uint64_t)worker);
    struct timer *timers = pending(load.others, worker, &delays);
    for (int warm = 1; warm >= 0; warm--) {
        struct stretches stretches = {0};
        uint64_t start = now_ns(), last = start;
        while (last - start < (warm ? load.time / 10 : load.time)) {
            for (int at = 0; at < DRAWN; at++) {
                struct timer *timer = &timers[below(&delays, load.others)];
                timer_arm(timer, far_delay(&delays));
            }
            uint64_t now = now_ns();
            add_stretch(&stretches, now - last);
            last = now;
        }
        nanos_of[worker] = nanos_per(&stretches, DRAWN);
    }
}

static void rearm(void)
{
    peer_run(0, rearm_on);
    peer_wait(0);
    say_figure("ns", nanos_of[0]);
}

/* Expiry of many. */

static uint64_t first_due;
static atomic_uint_fast64_t expired;

static void count_expired(struct timer *timer)
{
    (void)timer;
    atomic_fetch_add_explicit(&expired, 1, memory_order_relaxed);
}

static void arm_many_on(int worker)
{
    uint64_t count = load.count / WORKERS;
    struct delays delays = delays_of((uint64_t)worker);
    struct timer *timers = timers_new(count, worker, count_expired);
    for (uint64_t at = 0; at < count; at++) {
        uint64_t due = first_due + below(&delays, load.spread), now = now_ns();
        timer_arm(&timers[at], due > now ? due - now : 0);
    }
}

static void expire(void)
{
    first_due = now_ns() + load.lead;
    for (int worker = 0; worker < WORKERS; worker++)
        peer_run(worker, arm_many_on);
    for (int worker = 0; worker < WORKERS; worker++)
        peer_wait(worker);
    uint64_t now = now_ns() + 20 * MILLIS;
    if (now > first_due)
        say_absent("arming took so long that the first were due");
    sleep_ns(first_due - now + (PEER_POLLS ? load.spread + 20 * MILLIS : 0));
    say_window_start();
    for (int worker = 0; worker < WORKERS; worker++)
        peer_serve(worker);
    uint64_t wanted = load.count / WORKERS * WORKERS;
    while (atomic_load(&expired) < wanted) {
        need(now_ns() < first_due + load.spread + 20 * SECOND, "not all expired");
        sleep_ns(PEER_POLLS ? MILLIS : 20 * MILLIS);
    }
    say_window_end(wanted);
}

/* Tasks that sleep, as callbacks that arm their timer again. */

static struct samples samples_of[WORKERS];
static uint64_t end;

static void serve_until(uint64_t moment)
{
    uint64_t now = now_ns();
    sleep_ns(moment > now ? moment - now : 0);
    for (int worker = 0; worker < WORKERS; worker++)
        peer_wait(worker);
}

static void sample(struct timer *timer)
{
    int64_t late = (int64_t)(now_ns() - timer->job.due);
    add_sample(&samples_of[timer->job.worker], late / 1000);
}

/* Arms `timer` for `delay` from now. */
static void nap(struct timer *timer, uint64_t delay)
{
    timer->job.due = now_ns() + delay;
    timer_arm(timer, delay);
}

static void beat(struct timer *timer)
{
    sample(timer);
    uint64_t now = now_ns();
    timer->job.due += load.period;
    if (timer->job.due < end)
        timer_arm(timer, timer->job.due > now ? timer->job.due - now : 0);
}

static void beat_first_on(int worker)
{
    struct delays delays = delays_of((uint64_t)worker);
    struct timer *timers = timers_new(load.count / WORKERS, worker, beat);
    for (uint64_t at = 0; at < load.count / WORKERS; at++)
        nap(&timers[at], MARGIN + below(&delays, load.period));
}

static void periodic(void)
{
    uint64_t start = now_ns();
    end = start + load.time + 3 * MARGIN;
    for (int worker = 0; worker < WORKERS; worker++)
        peer_run(worker, beat_first_on);
    for (int worker = 0; worker < WORKERS; worker++)
        peer_wait(worker);
    for (int worker = 0; worker < WORKERS; worker++)
        peer_serve(worker);
    sleep_ns(2 * MARGIN);
    say_window_start();
    sleep_ns(load.time);
    say_window_end(0);
    serve_until(end + MARGIN);
    say_samples("lateness", samples_of, WORKERS);
}

static atomic_bool slept;

static void sleep_again(struct timer *timer)
{
    sample(timer);
    if (samples_of[0].count < load.count)
        nap(timer, load.period);
    else
        atomic_store(&slept, true);
}

static void sleep_first_on(int worker)
{
    nap(timers_new(1, worker, sleep_again), load.period);
}

static void sleeps(void)
{
    peer_run(0, sleep_first_on);
    peer_wait(0);
    say_window_start();
    peer_serve(0);
    while (!atomic_load(&slept))
        sleep_ns(20 * MILLIS);
    say_window_end(load.count);
    peer_wait(0);
    say_samples("lateness", samples_of, 1);
}

static struct delays nap_delays[WORKERS];

static uint64_t nap_delay(int worker)
{
    return 10 * MILLIS + below(&nap_delays[worker], 6 * MILLIS);
}

static void nap_again(struct timer *timer)
{
    sample(timer);
    if (now_ns() < end)
        nap(timer, nap_delay(timer->job.worker));
}

static void block_again(struct timer *timer)
{
    if (now_ns() < end) {
        sleep_ns(100 * MILLIS);
        timer_arm(timer, 20 * MILLIS);
    }
}

static void nap_first_on(int worker)
{
    nap_delays[worker] = delays_of((uint64_t)worker);
    struct timer *timers = timers_new(load.count / WORKERS, worker, nap_again);
    for (uint64_t at = 0; at < load.count / WORKERS; at++)
        nap(&timers[at], nap_delay(worker));
}

static void block_first_on(int worker)
{
    timer_arm(timers_new(1, worker, block_again), 20 * MILLIS);
}

static void naps(const char *name, bool with_one_that_blocks)
{
    end = now_ns() + load.time;
    for (int worker = 0; worker < WORKERS; worker++)
        peer_run(worker, nap_first_on);
    for (int worker = 0; worker < WORKERS; worker++)
        peer_wait(worker);
    if (with_one_that_blocks) {
        peer_run(0, block_first_on);
        peer_wait(0);
    }
    for (int worker = 0; worker < WORKERS; worker++)
        peer_serve(worker);
    serve_until(end + 2 * MARGIN);
    say_samples(name, samples_of, WORKERS);
}

static void idle(void)
{
    for (int worker = 0; worker < WORKERS; worker++)
        peer_serve(worker);
    sleep_ns(MARGIN);
    say_window_start();
    sleep_ns(load.time);
    say_window_end(0);
}

int main(int argc, char **argv)
{
    load = load_from(argc, argv);
    const char *absent = load.at ? "expiries are delays" : peer_absent(&load);
    if (absent != NULL)
        say_absent(absent);
    peer_start();
    const struct {
        const char *name;
        void (*run)(void);
    } measures[] = {
        {"arm-cancel", arm_cancel}, {"remote-cancel", remote_cancel}, {"rearm", rearm}, {"expire", expire},
        {"periodic", periodic},     {"sleep", sleeps},                {"idle", idle},
    };
    for (size_t at = 0; at < sizeof measures / sizeof *measures; at++) {
        if (strcmp(load.measure, measures[at].name) == 0) {
            measures[at].run();
            _Exit(0); /* threads of libraries have nothing to tidy up */
        }
    }
    need(strcmp(load.measure, "blocked") == 0, "there is no such measure");
    naps("calm", false);
    naps("blocked", true);
    _Exit(0);
}
