//! Mutants of the interface for C: what a program in C is told.

use super::killer::{Killer, Mutant, Suite};

const TIMER: &str = "crates/ffi/src/timer.rs";
const TIMERS: &str = "crates/ffi/src/timers.rs";
const WORK: &str = "crates/ffi/src/work.rs";
const CPU: &str = "crates/ffi/src/cpu.rs";
const STATS: &str = "crates/ffi/src/stats.rs";

const PROGRAMS: &[Killer] = &[Killer::Test(Suite::CPrograms, "programs_in_c")];

const fn mutant(
    name: &'static str,
    rule: &'static str,
    file: &'static str,
    right: &'static str,
    wrong: &'static str,
) -> Mutant {
    Mutant { name, rule, file, right, wrong, killers: PROGRAMS }
}

pub(super) const C_ABI: &[Mutant] = &[
    mutant(
        "scheduled-is-now",
        "a callback learns when it was due",
        TIMER,
        "scheduled: run.scheduled().as_u64()",
        "scheduled: run.now().as_u64()",
    ),
    mutant("no-overruns", "a callback learns how many periods were missed", TIMER, "run.overruns(),", "0,"),
    mutant(
        "another-cpu",
        "a callback learns on which CPU it runs",
        TIMER,
        "run.cpu().index() as u32",
        "run.cpu().index() as u32 + 1",
    ),
    mutant(
        "pinned-ignored",
        "a pinned timer needs a lane",
        TIMER,
        "if flags & QC_TIMER_PINNED != 0",
        "if flags & QC_TIMER_PINNED > QC_TIMER_PINNED",
    ),
    mutant(
        "unknown-flags-pass",
        "flags that the library does not know are refused",
        TIMER,
        "flags & !known != 0 ||",
        "flags & !(known | 64) != 0 ||",
    ),
    mutant(
        "cancel-of-a-running-timer",
        "cancelling what runs says so",
        TIMER,
        "Cancelled::Running => Err(CallFailure::new(QC_ERROR_BUSY, RUNS))",
        "Cancelled::Running => Ok(Cancelled::Idle)",
    ),
    mutant(
        "function-of-what-runs",
        "what a timer calls does not change while another thread runs it",
        TIMER,
        "idle(&known)? == Cancelled::WasPending",
        "known.cancel()",
    ),
    mutant(
        "no-function-in-the-callback",
        "a callback may change what its timer calls next",
        TIMER,
        "let outer = RUNS_HERE.replace(state);",
        "let outer = RUNS_HERE.replace(core::ptr::null());",
    ),
    mutant(
        "cancelled-and-not-told",
        "each timer that is cancelled with all others is told",
        TIMERS,
        "if is_timer(function) {",
        "if is_timer(function) && timer.is_null() {",
    ),
    mutant(
        "freed-and-run",
        "work that was freed while it waited does not run",
        WORK,
        "work_at(work)?.cancel_sync().map_err(would_block)?;",
        "let _ = work_at(work)?;",
    ),
    mutant(
        "flags-unknown",
        "flags that this version does not know are refused",
        "crates/ffi/src/machine.rs",
        "if read.flags & !KNOWN_FLAGS != 0 ||",
        "if read.flags & !KNOWN_FLAGS == u32::MAX ||",
    ),
    mutant(
        "list-ignored",
        "timers of CPUs that were not named stay",
        TIMERS,
        ".cancel_all(cpus.as_ref(), |cancelled|",
        ".cancel_all(cpus.as_ref().filter(|_| false), |cancelled|",
    ),
    mutant(
        "pending-is-running",
        "pending and running are different things",
        TIMER,
        "Ok(answer(timer_at(timer)?.is_running()))",
        "Ok(answer(timer_at(timer)?.is_pending()))",
    ),
    mutant(
        "any-thread-turns-a-lane",
        "a lane is its thread's alone",
        CPU,
        "if CLAIMED.get() != cpu {",
        "if CLAIMED.get() != cpu && cpu.is_null() {",
    ),
    mutant(
        "block-twice",
        "a lane that is blocked cannot block again",
        CPU,
        "if owner.is_blocking.replace(true) {",
        "if owner.is_blocking.replace(true) && false {",
    ),
    mutant(
        "a-dead-machine-turns",
        "a lane of a machine that was shut down says so",
        CPU,
        "lane.machine().check_alive()?;",
        "let _ = lane.machine().check_alive();",
    ),
    mutant(
        "cancelled-is-superseded",
        "each statistic is its own",
        STATS,
        "cancelled: sum(|cpu| cpu.bases.cancelled)",
        "cancelled: sum(|cpu| cpu.bases.superseded)",
    ),
    mutant(
        "no-lateness",
        "each run's lateness is counted",
        STATS,
        "lateness_count: late.len()",
        "lateness_count: late.len().min(1)",
    ),
    mutant(
        "newer-size",
        "no more of a structure is written than the program has",
        STATS,
        "filled.size = size.min(size_of::<qc_stats>());",
        "filled.size = size_of::<qc_stats>();",
    ),
];
