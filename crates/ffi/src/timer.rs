//! Timers in memory of the caller: a C function that is called with an argument and what it may know of its
//! run.
//!
//! A `qc_timer` is a structure of 192 bytes that has room for more than this version needs. Its first and its
//! last word say whether it was initialised at this address, so that one of zeros, a copy, and memory that
//! was used for something else are refused and not followed.
#![allow(unsafe_code, reason = "functions with names of their own, for C, which get pointers")]
#![allow(non_camel_case_types, reason = "names of the C interface")]
#![allow(clippy::missing_safety_doc, reason = "the comments become the header's, and speak to C programmers")]

use crate::machine::{machine_at, qc_machine};
use crate::result::{
    CallFailure, QC_ERROR_ADDRESS, QC_ERROR_BUSY, QC_ERROR_INVALID, QC_ERROR_NO_LANE, QC_ERROR_STATE,
    QC_ERROR_WOULD_BLOCK, QC_OK, answer, guard, place, qc_result,
};
use core::cell::Cell;
use core::ffi::{CStr, c_void};
use core::ptr::NonNull;
use core::slice;
use core::time::Duration;
use quietcore_live::{
    ArmError, CpuId, Nanos, Precision, TimerOptions,
    timer::{CallbackTimer, Cancelled, RawFn, RawTimer, Run},
};
use std::sync::{Mutex, PoisonError};

/// Late by up to an eighth of its delay: for timeouts, which are nearly always cancelled. The cheapest.
pub const QC_TIMER_COARSE: u32 = 0;
/// Runs at the first tick that is not before its moment: for delays and periods.
pub const QC_TIMER_TICK: u32 = 1;
/// Runs as exactly as the kernel wakes a thread up.
pub const QC_TIMER_EXACT: u32 = 2;
/// Runs on the lane that arms it and on no other thread. Without lanes it cannot be armed.
pub const QC_TIMER_PINNED: u32 = 4;
/// Wakes no thread: runs when its CPU is awake anyway. Not with QC_TIMER_EXACT.
pub const QC_TIMER_DEFERRABLE: u32 = 8;

/// What a callback may know of its run. Read it through the pointer only: later versions may append to it.
#[repr(C)]
#[derive(Debug)]
pub struct qc_run {
    /// The timer that runs.
    pub timer: *mut qc_timer,
    /// The moment that it was armed for, in ns.
    pub scheduled: u64,
    /// The moment just before the callback was called, in ns.
    pub now: u64,
    /// Of a periodic timer: periods that went by since the last run and had none.
    pub overruns: u64,
    /// Which CPU of the machine runs it; one above the host's when the helper or a spare lane does.
    pub cpu: u32,
    /// 0.
    pub reserved: u32,
    /// The library's.
    pub internal: *const c_void,
}

/// What a timer calls. On the helper thread or on a lane, with no lock of the library held, never twice at a
/// time for one timer. It should be short, as other timers wait. All functions of this header may be called
/// in it; those that would wait return QC_ERROR_WOULD_BLOCK. It must not unwind (longjmp, C++ exceptions).
pub type qc_timer_fn = Option<unsafe extern "C" fn(argument: *mut c_void, run: *const qc_run)>;

/// A timer. The caller's memory: on the stack, static, or inside of another structure. The content is the
/// library's. It begins as `QC_TIMER_INIT`, zeros, which every function but qc_timer_init() refuses.
///
/// From qc_timer_init() on it stays where it is, until it is idle and no thread arms it any more. It is idle
/// when qc_timer_cancel_sync() has returned 0 or 1, when qc_timer_cancel() has returned 0 or 1, or when its
/// callback has called qc_run_release(). Then its memory may be used for something else, and becomes a timer
/// again as `QC_TIMER_INIT`.
#[repr(C, align(8))]
#[derive(Debug)]
pub struct qc_timer {
    /// The library's.
    pub opaque: [u64; 24],
}

/// What is in a `qc_timer`.
#[repr(C)]
struct State {
    /// `READY` in a timer that was initialised.
    ready: u64,
    /// Held while it is copied or changed, and not while it is called.
    target: Mutex<Target>,
    raw: RawTimer,
    /// What [`seal`] makes of the rest.
    seal: u64,
}

/// So many timers are looked at before they are armed.
const TOGETHER: usize = 64;

/// Neither what zeros nor what small numbers look like.
const READY: u64 = 0x7163_5f74_696d_6572;

const _: () = assert!(size_of::<State>() <= size_of::<qc_timer>());
const _: () = assert!(align_of::<State>() <= align_of::<qc_timer>());

/// What the last word of a timer at this address must be: not what an earlier structure left there.
fn seal(state: NonNull<State>) -> u64 {
    READY.rotate_left(21) ^ state.as_ptr() as u64
}

thread_local! {
    /// The timer whose callback this thread is in.
    static RUNS_HERE: Cell<*const State> = const { Cell::new(core::ptr::null()) };
}

/// What can be done with an initialised timer.
fn timer_at(timer: *const qc_timer) -> Result<CallbackTimer, CallFailure> {
    let state = place(timer.cast_mut().cast::<State>(), "timer")?;
    let at = state.as_ptr();
    // SAFETY: the caller passes the address of a `qc_timer`, which has room for a `State`, aligned. These
    // words may be read whatever is in them.
    let (ready, found) = unsafe { ((*at).ready, (*at).seal) };
    if ready != READY || found != seal(state) {
        let text =
            c"the timer was not initialised where it is: qc_timer_init() comes first, and no copy is one";
        return Err(CallFailure::new(QC_ERROR_STATE, text));
    }
    // SAFETY: `write` wrote the rest as well. The caller keeps the timer where it is until it is idle, as the
    // header says.
    Ok(unsafe { RawTimer::at(NonNull::from(&(*state.as_ptr()).raw)) })
}

/// The function that the machine calls: calls the caller's.
///
/// # Safety
/// `timer` is an initialised `qc_timer`, which stays as long as this run.
unsafe fn call(timer: *mut (), run: &Run<'_>) {
    let state = timer.cast::<State>();
    // SAFETY: promised by the caller; written before the timer was first armed.
    let Target { function, argument } = unsafe { target_of(&(*state).target) };
    let seen = qc_run {
        timer: timer.cast(),
        scheduled: run.scheduled().as_u64(),
        now: run.now().as_u64(),
        overruns: run.overruns(),
        cpu: run.cpu().index() as u32,
        reserved: 0,
        internal: core::ptr::from_ref(run).cast(),
    };
    let outer = RUNS_HERE.replace(state);
    // SAFETY: the caller that gave both to the timer promised that the function takes its argument.
    unsafe { function(argument, &raw const seen) };
    RUNS_HERE.set(outer);
}

fn target_of(target: &Mutex<Target>) -> Target {
    *target.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a raw timer with this function is a `qc_timer`, at the address that is its argument.
pub(crate) fn is_timer(function: RawFn) -> bool {
    function as usize == call as *const () as usize
}

fn options_of(flags: u32) -> Option<TimerOptions> {
    let known = QC_TIMER_TICK | QC_TIMER_EXACT | QC_TIMER_PINNED | QC_TIMER_DEFERRABLE;
    let precision = match flags & (QC_TIMER_TICK | QC_TIMER_EXACT) {
        QC_TIMER_COARSE => Precision::Coarse,
        QC_TIMER_TICK => Precision::Tick,
        QC_TIMER_EXACT => Precision::Exact,
        _ => return None,
    };
    let is_deferrable = flags & QC_TIMER_DEFERRABLE != 0;
    if flags & !known != 0 || is_deferrable && precision == Precision::Exact {
        return None;
    }
    let options = TimerOptions::new().precision(precision);
    let options = if flags & QC_TIMER_PINNED != 0 { options.pinned() } else { options };
    Some(if is_deferrable { options.deferrable() } else { options })
}

const FLAGS: &CStr =
    c"`flags`: QC_TIMER_TICK or QC_TIMER_EXACT, QC_TIMER_PINNED, and not with QC_TIMER_EXACT \
    QC_TIMER_DEFERRABLE";

/// What a timer calls, and with what.
#[derive(Clone, Copy)]
struct Target {
    function: unsafe extern "C" fn(*mut c_void, *const qc_run),
    argument: *mut c_void,
}

impl Target {
    fn new(function: qc_timer_fn, argument: *mut c_void) -> Result<Self, CallFailure> {
        let function = function.ok_or(CallFailure::new(QC_ERROR_ADDRESS, c"`function` is NULL"))?;
        Ok(Self { function, argument })
    }
}

/// Makes a timer at `timer`. One that is pending there stays as it is: it is in a queue of its machine, which
/// would follow what is written over it. A machine that has ended follows nothing any more.
///
/// # Safety
/// `timer` is NULL or a place for a `qc_timer`, of which no run is under way.
unsafe fn init(
    timer: *mut qc_timer,
    machine: *mut qc_machine,
    options: Option<TimerOptions>,
    target: Result<Target, CallFailure>,
) -> Result<qc_result, CallFailure> {
    let state = place(timer, "timer")?.cast::<State>();
    let target = target?;
    let options = options.ok_or(CallFailure::new(QC_ERROR_INVALID, FLAGS))?;
    if timer_at(timer).is_ok_and(|timer| timer.is_pending() && timer.machine().is_running()) {
        return Err(CallFailure::new(QC_ERROR_BUSY, c"the timer is pending: cancel it first"));
    }
    let machine = machine_at(machine)?;
    // SAFETY: `call` may be called with the address of an initialised timer.
    let raw = unsafe { RawTimer::new(machine, options, call, timer.cast()) };
    // SAFETY: the caller promised a place, and it is large enough.
    unsafe { state.write(State { ready: READY, target: Mutex::new(target), raw, seal: seal(state) }) };
    Ok(QC_OK)
}

/// Makes `timer` an idle timer of `machine` (NULL: the default one) that calls `function` with `argument`.
/// `flags` are QC_TIMER_*. No run of the timer may be under way. Any thread.
///
/// Errors: QC_ERROR_BUSY when the timer is pending: it stays so; QC_ERROR_INVALID of flags; QC_ERROR_SYSTEM
/// when the default machine cannot be started.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_init(
    timer: *mut qc_timer,
    machine: *mut qc_machine,
    function: qc_timer_fn,
    argument: *mut c_void,
    flags: u32,
) -> qc_result {
    // SAFETY: the caller passes NULL or a place for a timer.
    guard(|| unsafe { init(timer, machine, options_of(flags), Target::new(function, argument)) })
}

/// The same for an exact timer that may run up to `slack` ns late, so that one wake-up serves several.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_init_exact(
    timer: *mut qc_timer,
    machine: *mut qc_machine,
    function: qc_timer_fn,
    argument: *mut c_void,
    slack: u64,
) -> qc_result {
    let options = TimerOptions::new().precision(Precision::Exact).slack(Duration::from_nanos(slack));
    // SAFETY: the caller passes NULL or a place for a timer.
    guard(|| unsafe { init(timer, machine, Some(options), Target::new(function, argument)) })
}

/// Cancels the timer as qc_timer_cancel() does, and lets it call `function` with `argument` from now on; the
/// next arm is for these. Returns 1 when it was pending, else 0. In its own callback, too: that run goes on
/// with the argument that it got. Any thread; when other threads arm the timer at the same time, a run has
/// either the function and the argument from before or these. Cost: two locks.
///
/// Errors, and it goes on to call what it called before: QC_ERROR_BUSY when a run of it is under way, unless
/// this is called in it: it is cancelled all the same; QC_ERROR_SHUT_DOWN and QC_ERROR_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_set_function(
    timer: *mut qc_timer,
    function: qc_timer_fn,
    argument: *mut c_void,
) -> qc_result {
    guard(|| {
        let known = timer_at(timer)?;
        let target = Target::new(function, argument)?;
        // In a forked child a thread that there is not may hold the lock.
        known.machine().check_alive()?;
        let state = timer.cast::<State>();
        let was_pending = if core::ptr::eq(RUNS_HERE.get(), state) {
            known.cancel()
        } else {
            idle(&known)? == Cancelled::WasPending
        };
        // SAFETY: it was initialised there, and the caller keeps it, as the header says.
        let calls = unsafe { &(*state).target };
        *calls.lock().unwrap_or_else(PoisonError::into_inner) = target;
        Ok(answer(was_pending))
    })
}

/// An arm in the numbers of C.
fn arm(timer: *mut qc_timer, act: impl FnOnce(&CallbackTimer) -> Result<bool, ArmError>) -> qc_result {
    guard(|| Ok(answer(act(&timer_at(timer)?)?)))
}

/// Arms the timer for the moment `at`, in ns on the machine's clock (qc_machine_now()); a moment that is over
/// is due at once. Ends its periods. Returns 1 when it was pending before, else 0. Any thread, also in a
/// callback. Cost: a lock.
///
/// Errors: QC_ERROR_SHUT_DOWN, QC_ERROR_FORKED, QC_ERROR_PANIC of a machine that broke down, QC_ERROR_STATE
/// of a timer that was not initialised; QC_ERROR_NO_LANE of a pinned timer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_arm_at(timer: *mut qc_timer, at: u64) -> qc_result {
    arm(timer, |timer| timer.arm_at(Nanos(at)))
}

/// Arms the timer for `delay` ns from now. Otherwise as qc_timer_arm_at(), and a reading of the clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_arm_after(timer: *mut qc_timer, delay: u64) -> qc_result {
    arm(timer, |timer| timer.arm_after(Duration::from_nanos(delay)))
}

/// Arms each of `count` timers for its moment, which has the same place in `at`: as qc_timer_arm_at() for one
/// after the other, but much faster where there are many that were not used lately. Returns how many were
/// pending before. Any thread, also in a callback. Cost: a lock for 16 of them.
///
/// Errors: that of one of them, as of qc_timer_arm_at(). All timers whose arm has none are armed.
/// QC_ERROR_ADDRESS, and nothing is done, when `timers` or `at` is NULL and `count` is not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_arm_many(
    timers: *const *mut qc_timer,
    at: *const u64,
    count: usize,
) -> qc_result {
    guard(|| {
        if count == 0 {
            return Ok(0);
        }
        let (timers, at) = (place(timers.cast_mut(), "timers")?, place(at.cast_mut(), "at")?);
        // SAFETY: the caller passes arrays of so many, which nothing writes during this call.
        let (timers, moments) = unsafe {
            (slice::from_raw_parts(timers.as_ptr(), count), slice::from_raw_parts(at.as_ptr(), count))
        };
        arm_many(timers, moments)
    })
}

fn arm_many(timers: &[*mut qc_timer], moments: &[u64]) -> Result<qc_result, CallFailure> {
    let (mut pending, mut error) = (0, None);
    for (timers, moments) in timers.chunks(TOGETHER).zip(moments.chunks(TOGETHER)) {
        let mut known = [const { None }; TOGETHER];
        for (place, timer) in known.iter_mut().zip(timers) {
            match timer_at(*timer) {
                Ok(timer) => *place = Some(timer),
                Err(invalid) => _ = error.get_or_insert(invalid),
            }
        }
        let Some(machine) = known.iter().flatten().next().map(CallbackTimer::machine) else { continue };
        let arms = known.iter().zip(moments).filter_map(|(timer, at)| Some((timer.as_ref()?, Nanos(*at))));
        match machine.arm_many(arms) {
            Ok(count) => pending += count,
            Err(refused) => _ = error.get_or_insert(refused.into()),
        }
    }
    error.map_or_else(|| Ok(qc_result::try_from(pending).unwrap_or(qc_result::MAX)), Err)
}

/// Arms the timer on `cpu`, for the moment `at`: it runs on the lane of that CPU and on no other thread. This
/// holds for one arm. A timer that runs stays where it runs: an arm in its own callback does not take it to
/// another CPU. Otherwise as qc_timer_arm_at().
///
/// Errors: QC_ERROR_NO_LANE when no thread drives that CPU, and those of qc_timer_arm_at().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_arm_on(timer: *mut qc_timer, cpu: u32, at: u64) -> qc_result {
    guard(|| {
        let cpu = lane_at(cpu)?;
        Ok(answer(timer_at(timer)?.arm_on(cpu, Nanos(at))?))
    })
}

fn lane_at(cpu: u32) -> Result<CpuId, CallFailure> {
    CpuId::new(u64::from(cpu)).map_err(|error| CallFailure::told(QC_ERROR_NO_LANE, error))
}

/// Arms the timer for the moment `first` and every `period` ns after that. The next run is armed when one has
/// returned, for the first multiple that is ahead then; those that went by are counted (qc_run.overruns).
/// Returns 1 when it was pending before, else 0.
///
/// Errors: those of qc_timer_arm_at().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_arm_periodic(timer: *mut qc_timer, first: u64, period: u64) -> qc_result {
    arm(timer, |timer| timer.arm_periodic(Nanos(first), Duration::from_nanos(period)))
}

/// The same on the lane of `cpu` and on no other thread, as qc_timer_arm_on(), for all runs.
///
/// Errors: those of qc_timer_arm_on().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_arm_periodic_on(
    timer: *mut qc_timer,
    cpu: u32,
    first: u64,
    period: u64,
) -> qc_result {
    guard(|| {
        let (cpu, period) = (lane_at(cpu)?, Duration::from_nanos(period));
        Ok(answer(timer_at(timer)?.arm_periodic_on(cpu, Nanos(first), period)?))
    })
}

/// Arms the timer for one of its periods from now, and for every period after that: those of its last
/// qc_timer_arm_periodic(), whether they go on or were ended. For a timeout that every sign of life puts off.
/// Also in its callback. Of a timer that was armed on a CPU the periods go on where any arm goes. Returns 1
/// when it was pending before, else 0.
///
/// Errors: QC_ERROR_STATE when it was never armed for periods: it stays as it is; those of qc_timer_arm_at().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_arm_again(timer: *mut qc_timer) -> qc_result {
    arm(timer, CallbackTimer::arm_again)
}

/// Arms the timer for the moment `at`, unless it is pending for that moment or an earlier one. Returns 1 when
/// it was pending before, else 0. Errors: those of qc_timer_arm_at().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_reduce(timer: *mut qc_timer, at: u64) -> qc_result {
    arm(timer, |timer| timer.reduce(Nanos(at)))
}

/// Arms the timer for the moment `at`, if it is pending. Returns 1 when it was, else 0. Errors: those of
/// qc_timer_arm_at().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_mod_pending(timer: *mut qc_timer, at: u64) -> qc_result {
    arm(timer, |timer| timer.mod_pending(Nanos(at)))
}

const RUNS: &CStr = c"the timer is cancelled, but a run of it goes on";

/// Takes the timer out and ends its periods; does not wait. Returns 1 when it was pending, else 0; then no
/// run of it is left. Returns QC_ERROR_BUSY when a run of it is under way, as always in its own callback: it
/// is cancelled all the same. Any thread, also in a callback. Cost: a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_cancel(timer: *mut qc_timer) -> qc_result {
    guard(|| Ok(answer(idle(&timer_at(timer)?)? == Cancelled::WasPending)))
}

/// Cancels a timer. It is idle then, or a run of it is under way, which is an error.
fn idle(timer: &CallbackTimer) -> Result<Cancelled, CallFailure> {
    match timer.try_cancel() {
        Cancelled::Running => Err(CallFailure::new(QC_ERROR_BUSY, RUNS)),
        cancelled => Ok(cancelled),
    }
}

/// Takes the timer out, ends its periods, and returns when no run of it is left: 1 when it was pending,
/// else 0. A lock that its callback takes must not be held.
///
/// Errors: QC_ERROR_WOULD_BLOCK when a run is under way and this is called in a callback or by a lane: the
/// timer is cancelled, but its run goes on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_cancel_sync(timer: *mut qc_timer) -> qc_result {
    guard(|| {
        let cancelled = timer_at(timer)?.cancel_sync();
        cancelled.map(answer).map_err(|error| CallFailure::told(QC_ERROR_WOULD_BLOCK, error))
    })
}

/// Takes the timer out for good: every later arm returns QC_ERROR_SHUT_DOWN, until it is initialised again.
/// Returns 1 when it was pending, else 0. Does not wait for a run; qc_timer_cancel_sync() does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_shutdown(timer: *mut qc_timer) -> qc_result {
    guard(|| Ok(answer(timer_at(timer)?.shutdown())))
}

/// 1 when the timer is armed and neither cancelled nor handed out to run, else 0. While other threads arm it
/// this says what was. Cost: a load.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_is_pending(timer: *const qc_timer) -> qc_result {
    guard(|| Ok(answer(timer_at(timer)?.is_pending())))
}

/// Writes the moment that the timer is armed for to `at`, and returns 1; 0 when it is not pending, and then
/// nothing is written. While other threads arm it this says what was. Any thread, also in a callback. Cost: a
/// lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_deadline(timer: *const qc_timer, at: *mut u64) -> qc_result {
    guard(|| {
        let at = place(at, "at")?;
        let deadline = timer_at(timer)?.deadline();
        if let Some(deadline) = deadline {
            // SAFETY: the caller passes a place for a number.
            unsafe { at.write(deadline.as_u64()) };
        }
        Ok(answer(deadline.is_some()))
    })
}

/// Writes for how many ns from now the timer is armed to `span`, 0 if that moment is over, and returns 1; 0
/// when it is not pending. Otherwise as qc_timer_deadline(), and a reading of the clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_due_in(timer: *const qc_timer, span: *mut u64) -> qc_result {
    guard(|| {
        let span = place(span, "span")?;
        let due_in = timer_at(timer)?.due_in();
        if let Some(due_in) = due_in {
            // SAFETY: the caller passes a place for a number.
            unsafe { span.write(u64::try_from(due_in.as_nanos()).unwrap_or(u64::MAX)) };
        }
        Ok(answer(due_in.is_some()))
    })
}

/// 1 when a run of the timer has begun and not ended, else 0. Cost: a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_timer_is_running(timer: *const qc_timer) -> qc_result {
    guard(|| Ok(answer(timer_at(timer)?.is_running())))
}

/// In a callback: cancels the timer that runs, and lets go of it. After this the library does not touch it
/// again, so its memory may be freed in its own callback, if no other thread uses it. `run` is what the
/// callback got.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_run_release(run: *const qc_run) -> qc_result {
    guard(|| {
        let run = place(run.cast_mut(), "run")?;
        // SAFETY: the caller passes what its callback got, while it runs.
        let internal = unsafe { run.as_ref() }.internal;
        // SAFETY: `call` wrote it, and waits for the callback.
        let run = unsafe { internal.cast::<Run<'_>>().as_ref() };
        let run = run.ok_or(CallFailure::new(QC_ERROR_STATE, c"`run` is none that a callback got"))?;
        run.release();
        Ok(QC_OK)
    })
}
