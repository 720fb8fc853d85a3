/* Timers that run on the right CPU, and CPUs that stay quiet: the C interface of quietcore.
 *
 * Generated from the crate quietcore-ffi by cbindgen; do not edit. Licence: MIT OR Apache-2.0.
 *
 * Results. Every function returns a qc_result unless it says otherwise: 0 and more are answers, less than 0 is an
 * error (the numbers are those of errno, negated, where one fits), and then outputs are untouched; qc_last_error()
 * says what was wrong. NULL and addresses that are not aligned are refused where something is needed
 * (QC_ERROR_ADDRESS), structures whose size makes no sense are (QC_ERROR_SIZE), and timers that were not
 * initialised where they are (QC_ERROR_STATE). Moments and spans are nanoseconds; moments are of CLOCK_MONOTONIC. A
 * machine that is NULL is the default one of the process.
 *
 * Threads. Functions of timers and machines may be called by any thread at any time, and in callbacks. What would have
 * to wait there is refused: qc_timer_cancel_sync() and qc_cpu_turn() return QC_ERROR_WOULD_BLOCK in a callback.
 * Functions of a qc_cpu are for the thread that claimed it. A timer is initialised before other threads use it.
 *
 * Memory. A qc_timer is the caller's, and stays where it is while it is in use; a qc_cpu is freed by
 * qc_cpu_release(); machines are never freed. In a child of fork() timers and machines of the parent return
 * QC_ERROR_FORKED or do nothing; their memory may be used for something else.
 */

#ifndef QUIETCORE_H
#define QUIETCORE_H

#include <stddef.h>
#include <stdint.h>

#define QC_VERSION_MAJOR 0
#define QC_VERSION_MINOR 1
#define QC_VERSION_PATCH 0

/* Where the compiler is to put a structure. */
#define QC_ALIGNED(bytes) __attribute__((aligned(bytes)))

/* Initialisers of structures of the caller. */
#define QC_TIMER_INIT { { 0 } }
#define QC_MACHINE_OPTIONS_INIT { sizeof(qc_machine_options), 0, 0, 0, 0, 0, 0, 0 }
#define QC_ISOLATION_INIT { sizeof(qc_isolation), 0, 0, 0 }
#define QC_STATS_INIT { sizeof(qc_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * For qc_machine_options.flags: threads of the library drive the lanes, and no other thread claims one. They
 * run timers and work, and sleep while there is nothing to do. They stay on their CPUs if this process has
 * these alone (an exclusive cpuset).
 */
#define QC_MACHINE_LANE_THREADS 1

/**
 * With QC_MACHINE_LANE_THREADS: those threads stay on their CPUs in any case.
 */
#define QC_MACHINE_PIN_LANES 2

/**
 * Late by up to an eighth of its delay: for timeouts, which are nearly always cancelled. The cheapest.
 */
#define QC_TIMER_COARSE 0

/**
 * Runs at the first tick that is not before its moment: for delays and periods.
 */
#define QC_TIMER_TICK 1

/**
 * Runs as exactly as the kernel wakes a thread up.
 */
#define QC_TIMER_EXACT 2

/**
 * Runs on the lane that arms it and on no other thread. Without lanes it cannot be armed.
 */
#define QC_TIMER_PINNED 4

/**
 * Wakes no thread: runs when its CPU is awake anyway. Not with QC_TIMER_EXACT.
 */
#define QC_TIMER_DEFERRABLE 8

/**
 * For qc_work_new(): any CPU that a lane drives and that is not isolated.
 */
#define QC_CPU_ANY UINT32_MAX

/**
 * For qc_cpu_claim(): the thread waits in its own epoll or poll, with qc_cpu_kick_fd() in the set, and not
 * in qc_cpu_park().
 */
#define QC_CPU_KICK_FD 1

/**
 * A CPU of the machine, driven by the thread that claimed it. Opaque; of that thread only.
 */
typedef struct qc_cpu qc_cpu;

/**
 * A machine: timers on the threads of this process. Opaque; never freed.
 */
typedef struct qc_machine qc_machine;

/**
 * A function that a lane runs whenever it was queued. Opaque; all threads may use it until qc_work_free().
 */
typedef struct qc_work qc_work;

/**
 * What a function answers: 0 or more is an answer, less than 0 is an error.
 */
typedef int32_t qc_result;

/**
 * What a machine is made with. Begin with `QC_MACHINE_OPTIONS_INIT`; a field that is 0 or NULL has its
 * default. Lists of CPUs are written as the kernel writes them: "0-3,8".
 */
typedef struct qc_machine_options {
  /**
   * sizeof(qc_machine_options). Programs that were compiled with an older header go on working.
   */
  size_t size;
  /**
   * How long a tick lasts, in ns: the grain of every timer that is not exact. Default 1 ms; at least 1 us.
   */
  uint64_t tick;
  /**
   * For how long, in ns, a lane may not turn before others take over. Default 2 ms; UINT64_MAX for ever.
   */
  uint64_t stall_after;
  /**
   * The machine's CPUs. Default: those that this process may run on.
   */
  const char *cpus;
  /**
   * CPUs on which nothing foreign runs. Default: those that the kernel isolates.
   */
  const char *isolated;
  /**
   * CPUs that threads will claim with qc_cpu_claim(), or that threads of the library drive (`flags`).
   * Default: none; then a helper thread runs all timers.
   */
  const char *lanes;
  /**
   * Parked threads for when every lane is stuck. Default 1.
   */
  uint32_t spare_lanes;
  /**
   * 0, or QC_MACHINE_LANE_THREADS, or that and QC_MACHINE_PIN_LANES.
   */
  uint32_t flags;
} qc_machine_options;

/**
 * What qc_machine_set_isolated() did.
 */
typedef struct qc_isolation {
  /**
   * sizeof(qc_isolation), written by the caller: as much is filled in. Afterwards: how much was.
   */
  size_t size;
  /**
   * Timers that were moved to other CPUs.
   */
  uint64_t evacuated;
  /**
   * Pinned timers that stay on isolated CPUs.
   */
  uint64_t pinned_left;
  /**
   * CPUs that are isolated now and are still running a callback for others.
   */
  uint64_t still_running;
} qc_isolation;

/**
 * A timer. The caller's memory: on the stack, static, or inside of another structure. The content is the
 * library's. It begins as `QC_TIMER_INIT`, zeros, which every function but qc_timer_init() refuses.
 *
 * From qc_timer_init() on it stays where it is, until it is idle and no thread arms it any more. It is idle
 * when qc_timer_cancel_sync() has returned 0 or 1, when qc_timer_cancel() has returned 0 or 1, or when its
 * callback has called qc_run_release(). Then its memory may be used for something else, and becomes a timer
 * again as `QC_TIMER_INIT`.
 */
typedef struct QC_ALIGNED(8) qc_timer {
  /**
   * The library's.
   */
  uint64_t opaque[24];
} qc_timer;

/**
 * What a callback may know of its run. Read it through the pointer only: later versions may append to it.
 */
typedef struct qc_run {
  /**
   * The timer that runs.
   */
  struct qc_timer *timer;
  /**
   * The moment that it was armed for, in ns.
   */
  uint64_t scheduled;
  /**
   * The moment just before the callback was called, in ns.
   */
  uint64_t now;
  /**
   * Of a periodic timer: periods that went by since the last run and had none.
   */
  uint64_t overruns;
  /**
   * Which CPU of the machine runs it; one above the host's when the helper or a spare lane does.
   */
  uint32_t cpu;
  /**
   * 0.
   */
  uint32_t reserved;
  /**
   * The library's.
   */
  const void *internal;
} qc_run;

/**
 * What a timer calls. On the helper thread or on a lane, with no lock of the library held, never twice at a
 * time for one timer. It should be short, as other timers wait. All functions of this header may be called
 * in it; those that would wait return QC_ERROR_WOULD_BLOCK. It must not unwind (longjmp, C++ exceptions).
 */
typedef void (*qc_timer_fn)(void *argument, const struct qc_run *run);

/**
 * What qc_machine_cancel_timers() tells of a timer that it has taken out. No lock of the library is held;
 * all functions of this header may be called in it. It must not unwind.
 */
typedef void (*qc_cancelled_fn)(void *argument, struct qc_timer *timer);

/**
 * What work does. It runs on a lane's thread, between its timers, and must not unwind.
 */
typedef void (*qc_work_fn)(void *argument);

/**
 * What a machine has counted since it was started.
 */
typedef struct qc_stats {
  /**
   * sizeof(qc_stats), written by the caller: as much is filled in. Afterwards: how much was.
   */
  size_t size;
  /**
   * Arms.
   */
  uint64_t armed;
  /**
   * Arms of timers that were pending.
   */
  uint64_t superseded;
  /**
   * Cancels of timers that were pending.
   */
  uint64_t cancelled;
  /**
   * Runs by the CPU that the timer was on.
   */
  uint64_t ran_here;
  /**
   * Runs by another CPU: pulled, or by the helper.
   */
  uint64_t ran_elsewhere;
  /**
   * Timers that were due again while they still ran.
   */
  uint64_t waited;
  /**
   * Turns.
   */
  uint64_t turns;
  /**
   * Kicks.
   */
  uint64_t kicks;
  /**
   * How often a lane was found stuck.
   */
  uint64_t marks;
  /**
   * Timers of the kernel that were set.
   */
  uint64_t settimes;
  /**
   * Runs that are in the figures of lateness.
   */
  uint64_t lateness_count;
  /**
   * Half of the runs were not as late as this, in ns.
   */
  uint64_t lateness_p50;
  /**
   * 99 % of the runs were not as late as this, in ns.
   */
  uint64_t lateness_p99;
  /**
   * Runs of timers of other CPUs: of one CPU, those that it pulled.
   */
  uint64_t ran_for_others;
} qc_stats;

/**
 * It is done.
 */
#define QC_OK 0

/**
 * An argument or a setting is out of range, or is a flag that there is not.
 */
#define QC_ERROR_INVALID -22

/**
 * An address is NULL, or nothing of its type can be there.
 */
#define QC_ERROR_ADDRESS -14

/**
 * The size of a structure makes no sense, or it says something that this version does not know.
 */
#define QC_ERROR_SIZE -7

/**
 * A timer was not initialised where it is or never had periods, or a CPU was not claimed, or does not block,
 * as the call asks for.
 */
#define QC_ERROR_STATE -77

/**
 * A list of CPUs cannot be read, or the machine cannot be made with it.
 */
#define QC_ERROR_CPUS -33

/**
 * The timer is pending or a run of it is under way, or another thread has the CPU.
 */
#define QC_ERROR_BUSY -16

/**
 * The caller must not wait here: it would be inside of a callback, or on a lane.
 */
#define QC_ERROR_WOULD_BLOCK -35

/**
 * The machine or the timer was shut down.
 */
#define QC_ERROR_SHUT_DOWN -108

/**
 * The machine belongs to the parent of this process: a fork copied its memory and not its threads.
 */
#define QC_ERROR_FORKED -10

/**
 * No lane drives that CPU, or it is none of the machine's.
 */
#define QC_ERROR_NO_LANE -19

/**
 * This thread has not claimed the CPU, or has released it.
 */
#define QC_ERROR_WRONG_THREAD -1

/**
 * The system refused a thread, a descriptor or memory.
 */
#define QC_ERROR_SYSTEM -11

/**
 * A bug of quietcore; its message is on stderr. What was asked for may be done or not. A machine whose own
 * thread died of one answers this to every arm, until it is shut down.
 */
#define QC_ERROR_PANIC -131

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * What was wrong when a function of this library last failed on the calling thread: which argument, and what
 * to do. Never NULL; "" if none has failed. The text is the library's, until the next one fails on this
 * thread.
 */
const char *qc_last_error(void);

/**
 * The version of the library, "MAJOR.MINOR.PATCH". QC_VERSION_MAJOR and its like are those of the header.
 * Never NULL; the text is static. Any thread.
 */
const char *qc_version(void);

/**
 * What a result means in general, in a few English words; qc_last_error() says more of the last error. Never
 * NULL; the text is static. Any thread.
 */
const char *qc_strerror(qc_result result);

/**
 * Starts a machine with `options` (NULL: all defaults) and writes its address to `machine`. It has a helper
 * thread; its memory (about 25 KiB per CPU) is never given back. Any thread, not in a callback.
 *
 * Errors: QC_ERROR_INVALID, QC_ERROR_SIZE and QC_ERROR_CPUS for options that make no sense, QC_ERROR_SYSTEM.
 */
qc_result qc_machine_start(const struct qc_machine_options *options, struct qc_machine **machine);

/**
 * Writes the address of the default machine to `machine`: of the one that NULL means everywhere. It is
 * started when it is first asked for, with all defaults. Any thread.
 *
 * Errors: QC_ERROR_SYSTEM.
 */
qc_result qc_machine_default(struct qc_machine **machine);

/**
 * Makes `machine` the default one of this process, which NULL means everywhere.
 *
 * Errors: QC_ERROR_BUSY when there is a default already.
 */
qc_result qc_machine_install_default(struct qc_machine *machine);

/**
 * Ends a machine: from now on nothing can be armed, and what is pending never runs: its timers are idle.
 * Then waits until no callback of it runs, on any thread, also if another thread called this first; in a
 * callback it does not wait. Its lanes are released by their threads, as before. Any thread.
 */
qc_result qc_machine_shutdown(struct qc_machine *machine);

/**
 * From now on the CPUs of `list` ("2-3"; "" for none) are isolated, and no others: nothing foreign starts on
 * them. Fills in `report`, whose `size` the caller has written, unless it is NULL. A callback that an
 * isolated CPU runs for others is waited for, 100 ms at most. NULL for `machine` is the default one. Any
 * thread, also in a callback.
 *
 * Errors: QC_ERROR_CPUS when the machine has no such CPU or none would be left, QC_ERROR_SHUT_DOWN.
 */
qc_result qc_machine_set_isolated(struct qc_machine *machine, const char *list, struct qc_isolation *report);

/**
 * The moment on the machine's clock, in ns: CLOCK_MONOTONIC. 0 when there is no machine and none can be
 * started. Any thread, also in a callback.
 */
uint64_t qc_machine_now(const struct qc_machine *machine);

/**
 * Makes `timer` an idle timer of `machine` (NULL: the default one) that calls `function` with `argument`.
 * `flags` are QC_TIMER_*. No run of the timer may be under way. Any thread.
 *
 * Errors: QC_ERROR_BUSY when the timer is pending: it stays so; QC_ERROR_INVALID of flags; QC_ERROR_SYSTEM
 * when the default machine cannot be started.
 */
qc_result qc_timer_init(struct qc_timer *timer,
                        struct qc_machine *machine,
                        qc_timer_fn function,
                        void *argument,
                        uint32_t flags);

/**
 * The same for an exact timer that may run up to `slack` ns late, so that one wake-up serves several.
 */
qc_result qc_timer_init_exact(struct qc_timer *timer,
                              struct qc_machine *machine,
                              qc_timer_fn function,
                              void *argument,
                              uint64_t slack);

/**
 * Cancels the timer as qc_timer_cancel() does, and lets it call `function` with `argument` from now on; the
 * next arm is for these. Returns 1 when it was pending, else 0. In its own callback, too: that run goes on
 * with the argument that it got. Any thread; when other threads arm the timer at the same time, a run has
 * either the function and the argument from before or these. Cost: two locks.
 *
 * Errors, and it goes on to call what it called before: QC_ERROR_BUSY when a run of it is under way, unless
 * this is called in it: it is cancelled all the same; QC_ERROR_SHUT_DOWN and QC_ERROR_FORKED.
 */
qc_result qc_timer_set_function(struct qc_timer *timer, qc_timer_fn function, void *argument);

/**
 * Arms the timer for the moment `at`, in ns on the machine's clock (qc_machine_now()); a moment that is over
 * is due at once. Ends its periods. Returns 1 when it was pending before, else 0. Any thread, also in a
 * callback. Cost: a lock.
 *
 * Errors: QC_ERROR_SHUT_DOWN, QC_ERROR_FORKED, QC_ERROR_PANIC of a machine that broke down, QC_ERROR_STATE
 * of a timer that was not initialised; QC_ERROR_NO_LANE of a pinned timer.
 */
qc_result qc_timer_arm_at(struct qc_timer *timer, uint64_t at);

/**
 * Arms the timer for `delay` ns from now. Otherwise as qc_timer_arm_at(), and a reading of the clock.
 */
qc_result qc_timer_arm_after(struct qc_timer *timer, uint64_t delay);

/**
 * Arms each of `count` timers for its moment, which has the same place in `at`: as qc_timer_arm_at() for one
 * after the other, but much faster where there are many that were not used lately. Returns how many were
 * pending before. Any thread, also in a callback. Cost: a lock for 16 of them.
 *
 * Errors: that of one of them, as of qc_timer_arm_at(). All timers whose arm has none are armed.
 * QC_ERROR_ADDRESS, and nothing is done, when `timers` or `at` is NULL and `count` is not 0.
 */
qc_result qc_timer_arm_many(struct qc_timer *const *timers, const uint64_t *at, size_t count);

/**
 * Arms the timer on `cpu`, for the moment `at`: it runs on the lane of that CPU and on no other thread. This
 * holds for one arm. A timer that runs stays where it runs: an arm in its own callback does not take it to
 * another CPU. Otherwise as qc_timer_arm_at().
 *
 * Errors: QC_ERROR_NO_LANE when no thread drives that CPU, and those of qc_timer_arm_at().
 */
qc_result qc_timer_arm_on(struct qc_timer *timer, uint32_t cpu, uint64_t at);

/**
 * Arms the timer for the moment `first` and every `period` ns after that. The next run is armed when one has
 * returned, for the first multiple that is ahead then; those that went by are counted (qc_run.overruns).
 * Returns 1 when it was pending before, else 0.
 *
 * Errors: those of qc_timer_arm_at().
 */
qc_result qc_timer_arm_periodic(struct qc_timer *timer, uint64_t first, uint64_t period);

/**
 * The same on the lane of `cpu` and on no other thread, as qc_timer_arm_on(), for all runs.
 *
 * Errors: those of qc_timer_arm_on().
 */
qc_result qc_timer_arm_periodic_on(struct qc_timer *timer, uint32_t cpu, uint64_t first, uint64_t period);

/**
 * Arms the timer for one of its periods from now, and for every period after that: those of its last
 * qc_timer_arm_periodic(), whether they go on or were ended. For a timeout that every sign of life puts off.
 * Also in its callback. Of a timer that was armed on a CPU the periods go on where any arm goes. Returns 1
 * when it was pending before, else 0.
 *
 * Errors: QC_ERROR_STATE when it was never armed for periods: it stays as it is; those of qc_timer_arm_at().
 */
qc_result qc_timer_arm_again(struct qc_timer *timer);

/**
 * Arms the timer for the moment `at`, unless it is pending for that moment or an earlier one. Returns 1 when
 * it was pending before, else 0. Errors: those of qc_timer_arm_at().
 */
qc_result qc_timer_reduce(struct qc_timer *timer, uint64_t at);

/**
 * Arms the timer for the moment `at`, if it is pending. Returns 1 when it was, else 0. Errors: those of
 * qc_timer_arm_at().
 */
qc_result qc_timer_mod_pending(struct qc_timer *timer, uint64_t at);

/**
 * Takes the timer out and ends its periods; does not wait. Returns 1 when it was pending, else 0; then no
 * run of it is left. Returns QC_ERROR_BUSY when a run of it is under way, as always in its own callback: it
 * is cancelled all the same. Any thread, also in a callback. Cost: a lock.
 */
qc_result qc_timer_cancel(struct qc_timer *timer);

/**
 * Takes the timer out, ends its periods, and returns when no run of it is left: 1 when it was pending,
 * else 0. A lock that its callback takes must not be held.
 *
 * Errors: QC_ERROR_WOULD_BLOCK when a run is under way and this is called in a callback or by a lane: the
 * timer is cancelled, but its run goes on.
 */
qc_result qc_timer_cancel_sync(struct qc_timer *timer);

/**
 * Takes the timer out for good: every later arm returns QC_ERROR_SHUT_DOWN, until it is initialised again.
 * Returns 1 when it was pending, else 0. Does not wait for a run; qc_timer_cancel_sync() does.
 */
qc_result qc_timer_shutdown(struct qc_timer *timer);

/**
 * 1 when the timer is armed and neither cancelled nor handed out to run, else 0. While other threads arm it
 * this says what was. Cost: a load.
 */
qc_result qc_timer_is_pending(const struct qc_timer *timer);

/**
 * Writes the moment that the timer is armed for to `at`, and returns 1; 0 when it is not pending, and then
 * nothing is written. While other threads arm it this says what was. Any thread, also in a callback. Cost: a
 * lock.
 */
qc_result qc_timer_deadline(const struct qc_timer *timer, uint64_t *at);

/**
 * Writes for how many ns from now the timer is armed to `span`, 0 if that moment is over, and returns 1; 0
 * when it is not pending. Otherwise as qc_timer_deadline(), and a reading of the clock.
 */
qc_result qc_timer_due_in(const struct qc_timer *timer, uint64_t *span);

/**
 * 1 when a run of the timer has begun and not ended, else 0. Cost: a lock.
 */
qc_result qc_timer_is_running(const struct qc_timer *timer);

/**
 * In a callback: cancels the timer that runs, and lets go of it. After this the library does not touch it
 * again, so its memory may be freed in its own callback, if no other thread uses it. `run` is what the
 * callback got.
 */
qc_result qc_run_release(const struct qc_run *run);

/**
 * Cancels every timer that is pending on the CPUs of `list` ("2-3"; NULL for all), and ends its periods;
 * then calls `told` with `argument` and each of them, on this thread, unless it is NULL. Returns how many
 * there were. A list names CPUs that timers wait on: of a timer that a lane has armed that is the lane's
 * CPU.
 *
 * A run that has begun goes on and is not waited for. Its timer is not pending: it has its next period, if
 * it has periods, and what it arms stays armed; qc_timer_cancel() ends these, too. What other threads arm
 * during this call may be cancelled or stay; what `told` arms stays. Timers that a Rust part of the program
 * has are counted and cancelled, too, and not told; its futures are left. Timers that are told are idle: no
 * other thread may free one during this call.
 *
 * Any thread, also in a callback. NULL for `machine` is the default one. Cost: some 10 to 100 ns per timer
 * that is pending, with the lock of its CPU's timers held; memory by their number.
 *
 * Errors: QC_ERROR_CPUS when the list cannot be read. In a forked child it does nothing, and returns 0.
 */
qc_result qc_machine_cancel_timers(struct qc_machine *machine,
                                   const char *list,
                                   qc_cancelled_fn told,
                                   void *argument);

/**
 * Makes work of `function`, which gets `argument`, and writes its address to `work`; nothing runs before it
 * is queued. It runs on the lane of CPU `number`, isolated or not, or with QC_CPU_ANY on any that is not
 * isolated, on one thread at a time. NULL for `machine` is the default one. End it with qc_work_free().
 *
 * Errors: QC_ERROR_NO_LANE when the machine has no lanes, or no lane has that CPU; QC_ERROR_SHUT_DOWN.
 */
qc_result qc_work_new(struct qc_machine *machine,
                      uint32_t number,
                      qc_work_fn function,
                      void *argument,
                      struct qc_work **work);

/**
 * The work is to run soon: 1 when it did not wait to run already, 0 when it did. Queued while it runs it
 * runs once more. Any thread, also in a callback and in the work itself. Cost: an atomic word and a queue's
 * lock; some us if a lane has to be woken.
 *
 * Errors: QC_ERROR_SHUT_DOWN.
 */
qc_result qc_work_queue(struct qc_work *work);

/**
 * The work is not to run: 1 when it waited to, 0 when not. A run that is under way goes on. Any thread.
 */
qc_result qc_work_cancel(struct qc_work *work);

/**
 * The same, and waits for the end of a run that is under way.
 *
 * Errors: QC_ERROR_WOULD_BLOCK when one is and this thread is a lane or in a callback: it was cancelled, and
 * the run goes on.
 */
qc_result qc_work_cancel_sync(struct qc_work *work);

/**
 * Waits until the work neither waits to run nor runs.
 *
 * Errors: QC_ERROR_WOULD_BLOCK when it does and this thread is a lane or in a callback.
 */
qc_result qc_work_flush(struct qc_work *work);

/**
 * 1 when the work waits to run, 0 when not; out of date when it is used. Any thread.
 */
qc_result qc_work_is_pending(const struct qc_work *work);

/**
 * Cancels the work, waits for the end of a run that is under way, and frees it: no other thread may use it
 * any more. NULL does nothing.
 *
 * Errors: QC_ERROR_WOULD_BLOCK when a run is under way and this thread is a lane or in a callback: it was
 * cancelled, and is not freed.
 */
qc_result qc_work_free(struct qc_work *work);

/**
 * Claims the machine's CPU of this number for the calling thread and writes its address to `cpu`. From then
 * on the thread calls qc_cpu_turn() between any two pieces of work, at least once per tick. `flags`: 0 or
 * QC_CPU_KICK_FD. NULL for `machine` is the default one.
 *
 * Errors: QC_ERROR_NO_LANE when the CPU is not in qc_machine_options.lanes, QC_ERROR_BUSY when another
 * thread has it or this one has another, QC_ERROR_SHUT_DOWN, QC_ERROR_SYSTEM.
 */
qc_result qc_cpu_claim(struct qc_machine *machine, uint32_t number, uint32_t flags, struct qc_cpu **cpu);

/**
 * Gives the CPU back: its timers, pinned ones too, are for others now. `cpu` is not valid any more. A thread
 * must not end without it. NULL does nothing.
 *
 * Errors: QC_ERROR_WRONG_THREAD, also when it was released before; QC_ERROR_WOULD_BLOCK in a callback that
 * this lane runs.
 */
qc_result qc_cpu_release(struct qc_cpu *cpu);

/**
 * Runs what is due on this CPU and on those that it looks after: at most 256 timers, or 2 ms of them. Ends a
 * wait, if there was one. Writes how many it ran to `ran`, unless that is NULL. Returns 1 when more is due,
 * else 0. Cost when nothing is due: a look at the clock.
 *
 * Errors: QC_ERROR_WRONG_THREAD; QC_ERROR_WOULD_BLOCK in a callback that this lane runs; QC_ERROR_SHUT_DOWN,
 * and QC_ERROR_FORKED in a forked child: the loop has to end.
 */
qc_result qc_cpu_turn(struct qc_cpu *cpu, uint32_t *ran);

/**
 * The thread has nothing to do: writes to `until` the moment, in ns of CLOCK_MONOTONIC, up to which it may
 * wait; UINT64_MAX is for ever. From now on kicks make qc_cpu_kick_fd() readable, which ends the wait, too,
 * until qc_cpu_exit_idle() or qc_cpu_turn(). Returns 1 when the machine counts on this lane as on one that
 * is awake (it waits a tick at most), else 0.
 *
 * Errors: those of qc_cpu_turn().
 */
qc_result qc_cpu_enter_idle(struct qc_cpu *cpu, uint64_t *until);

/**
 * The wait is over, or the thread has work: the machine counts on this lane again. qc_cpu_turn() does it,
 * too. Errors: those of qc_cpu_turn().
 */
qc_result qc_cpu_exit_idle(struct qc_cpu *cpu);

/**
 * Waits until something is due or a kick arrives; for threads that have nothing else to wait for.
 *
 * Errors: QC_ERROR_STATE when the CPU was claimed with QC_CPU_KICK_FD; those of qc_cpu_turn().
 */
qc_result qc_cpu_park(struct qc_cpu *cpu);

/**
 * The descriptor that is readable when another thread wants this one awake while it is idle. For epoll or
 * poll; the library reads and closes it.
 *
 * Errors: QC_ERROR_STATE unless the CPU was claimed with QC_CPU_KICK_FD; those of qc_cpu_turn().
 */
qc_result qc_cpu_kick_fd(struct qc_cpu *cpu);

/**
 * The thread is about to do something that may take long: others do for this CPU what they can, until
 * qc_cpu_block_end(). Its pinned timers wait. No other function of this CPU may be called between.
 *
 * Errors: QC_ERROR_STATE when it has begun already; those of qc_cpu_turn().
 */
qc_result qc_cpu_block_begin(struct qc_cpu *cpu);

/**
 * The end of what qc_cpu_block_begin() began. Errors: QC_ERROR_STATE when nothing has; those of
 * qc_cpu_turn().
 */
qc_result qc_cpu_block_end(struct qc_cpu *cpu);

/**
 * Fills in `stats`, whose `size` the caller has written. NULL for `machine` is the default one. Any thread.
 * Cost: each base's lock once, and allocations.
 *
 * Errors: QC_ERROR_ADDRESS, QC_ERROR_SIZE; QC_ERROR_FORKED in a forked child.
 */
qc_result qc_machine_stats(const struct qc_machine *machine, struct qc_stats *stats);

/**
 * The same of one CPU of the machine: what it counts itself, and what became of the timers of its bases.
 * `settimes` is 0: timers of the kernel are the machine's. Any thread. Cost: as qc_machine_stats().
 *
 * Errors: those of qc_machine_stats(), and QC_ERROR_INVALID when the machine has no such CPU.
 */
qc_result qc_machine_cpu_stats(const struct qc_machine *machine, uint32_t cpu, struct qc_stats *stats);

/**
 * Writes all figures of the machine into `text`, as OpenMetrics, for a scraper: at most `size` bytes, the 0
 * at the end among them. `length`, if it is not NULL, gets how many bytes the whole has with its 0: call it
 * with `size` 0 and `text` NULL to learn that. NULL for `machine` is the default one. Any thread. Cost: each
 * base's lock once, and allocations.
 *
 * Errors: QC_ERROR_ADDRESS; QC_ERROR_INVALID when the text was cut, which it is at its end; QC_ERROR_FORKED
 * in a forked child.
 */
qc_result qc_machine_openmetrics(const struct qc_machine *machine, char *text, size_t size, size_t *length);

/**
 * Writes the last stalls of the machine into `text`, a line each, the oldest first: which lane did not turn,
 * for how long, and what it ran. All else is as for qc_machine_openmetrics().
 */
qc_result qc_machine_stalls(const struct qc_machine *machine, char *text, size_t size, size_t *length);

/**
 * Writes what is pending on the machine into `text`, a line for each function, the most frequent first: how
 * many timers there are, the address of the function, and for which moments they are armed. For debugging:
 * each base is locked while its timers are looked at. All else is as for qc_machine_openmetrics().
 */
qc_result qc_machine_pending(const struct qc_machine *machine, char *text, size_t size, size_t *length);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* QUIETCORE_H */
