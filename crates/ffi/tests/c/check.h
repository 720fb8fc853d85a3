/* What the tests in C have in common: a check that ends the test, a deadline against hanging, waiting. */
#ifndef CHECK_H
#define CHECK_H

#include <quietcore.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);   \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

/* The same for what returns a number: shows it. */
#define EXPECT(expected, call)                                                        \
    do {                                                                              \
        long found_ = (long)(call);                                                   \
        if (found_ != (long)(expected)) {                                             \
            fprintf(stderr, "%s:%d: %s is %ld (%s), not %s\n", __FILE__, __LINE__,    \
                    #call, found_, qc_strerror((qc_result)found_), #expected);        \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

static inline void nap(uint64_t nanos) {
    struct timespec span = { (time_t)(nanos / SECOND), (long)(nanos % SECOND) };
    nanosleep(&span, NULL);
}

/* Waits until a count has reached a value; the deadline is the one of the whole test. */
static inline void await(const atomic_uint *count, unsigned value) {
    while (atomic_load(count) < value)
        nap(MS / 5);
}

/* Numbers that repeat from run to run (xorshift). */
static inline uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* How much of everything: 100 unless the first argument says less. */
static inline unsigned percent(int count, char **arguments) {
    alarm(300);
    return count > 1 ? (unsigned)atoi(arguments[1]) : 100;
}

#endif
