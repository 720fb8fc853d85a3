/* What a program is asked for and what it says: the same as ../rust/src/load.rs and output.rs.
 *
 * Nothing here knows a library. All functions are static: each program is one file that includes this.
 */
#ifndef LOAD_H
#define LOAD_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WORKERS 2
#define MILLIS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

/* Sizes; what a measure does not use is 0. Times are in nanoseconds. */
struct load {
    const char *measure;
    bool foreign;
    bool at;
    uint64_t threads, others, count, time, lead, spread, period;
};

static void say_figure(const char *name, double value)
{
    printf("{\"figure\":\"%s\",\"value\":%.3f}\n", name, value);
    fflush(stdout);
}

static void say_window_start(void)
{
    printf("{\"window\":\"start\"}\n");
    fflush(stdout);
}

static void say_window_end(uint64_t events)
{
    printf("{\"window\":\"end\",\"events\":%" PRIu64 "}\n", events);
    fflush(stdout);
}

/* Ends the program: there is no result. */
static _Noreturn void say_absent(const char *reason)
{
    printf("{\"absent\":\"%s\"}\n", reason);
    fflush(stdout);
    _Exit(0);
}

/* Ends the program if what a library or the system did not do is needed. */
static void need(bool done, const char *what)
{
    if (!done) {
        fprintf(stderr, "error: %s\n", what);
        _Exit(1);
    }
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static void sleep_ns(uint64_t duration)
{
    struct timespec rest = {(time_t)(duration / SECOND), (long)(duration % SECOND)};
    while (nanosleep(&rest, &rest) != 0) {
    }
}

static struct load load_from(int argc, char **argv)
{
    need(argc >= 2, "no measure is given");
    struct load load = {.measure = argv[1], .threads = 1};
    for (int at = 2; at < argc; at++) {
        char *value = strchr(argv[at], '=');
        need(value != NULL, "an argument is not KEY=VALUE");
        *value++ = '\0';
        uint64_t number = strtoull(value, NULL, 10);
        const struct {
            const char *key;
            uint64_t *to;
            uint64_t unit;
        } numbers[] = {
            {"threads", &load.threads, 1},          {"others", &load.others, 1},
            {"count", &load.count, 1},              {"time_ms", &load.time, MILLIS},
            {"lead_ms", &load.lead, MILLIS},        {"spread_ms", &load.spread, MILLIS},
            {"period_ms", &load.period, MILLIS},
        };
        bool known = false;
        for (size_t which = 0; which < sizeof numbers / sizeof *numbers; which++) {
            if (strcmp(argv[at], numbers[which].key) == 0) {
                *numbers[which].to = number * numbers[which].unit;
                known = true;
            }
        }
        if (strcmp(argv[at], "place") == 0) {
            load.foreign = strcmp(value, "foreign") == 0;
            known = true;
        }
        if (strcmp(argv[at], "form") == 0) {
            load.at = strcmp(value, "at") == 0;
            known = true;
        }
        need(known, "an argument is not understood");
    }
    return load;
}

/* Random delays: SplitMix64 from the number of the thread. */
struct delays {
    uint64_t state;
};

static struct delays delays_of(uint64_t thread)
{
    return (struct delays){thread + 1};
}

static uint64_t below(struct delays *delays, uint64_t bound)
{
    delays->state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t mixed = (delays->state ^ (delays->state >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    mixed ^= mixed >> 31;
    return (uint64_t)(((unsigned __int128)mixed * bound) >> 64);
}

/* 60 s to an hour, in nanoseconds. */
static uint64_t far_delay(struct delays *delays)
{
    return (60000 + below(delays, 3540000)) * MILLIS;
}

/* Microseconds late; below 0 if early. */
struct samples {
    int64_t *us;
    uint64_t count, room;
};

static void add_sample(struct samples *samples, int64_t us)
{
    if (samples->count == samples->room) {
        samples->room = samples->room == 0 ? 1 << 16 : 2 * samples->room;
        samples->us = realloc(samples->us, samples->room * sizeof *samples->us);
        need(samples->us != NULL, "no memory for samples");
    }
    samples->us[samples->count++] = us;
}

/* Those of all workers; they are empty afterwards. */
static void say_samples(const char *name, struct samples *of, int workers)
{
    const char *comma = "";
    printf("{\"samples\":\"%s\",\"us\":[", name);
    for (int worker = 0; worker < workers; worker++) {
        for (uint64_t at = 0; at < of[worker].count; at++) {
            printf("%s%" PRId64, comma, of[worker].us[at]);
            comma = ",";
        }
        of[worker].count = 0;
    }
    printf("]}\n");
    fflush(stdout);
}

#endif
