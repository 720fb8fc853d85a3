//! Lanes: CPUs of the machine that are driven by threads of the caller.
//!
//! A `qc_cpu` belongs to the thread that claimed it, and a thread has one at most: every function compares
//! addresses before it looks at one, so a `qc_cpu` that was released or is another thread's is refused
//! without being touched. In a callback that it runs it is in use, which every function checks as well.
#![allow(unsafe_code, reason = "functions with names of their own, for C, which get pointers")]
#![allow(non_camel_case_types, reason = "names of the C interface")]
#![allow(clippy::missing_safety_doc, reason = "the comments become the header's, and speak to C programmers")]

use crate::machine::{machine_at, qc_machine};
use crate::result::{
    CallFailure, QC_ERROR_ADDRESS, QC_ERROR_INVALID, QC_ERROR_NO_LANE, QC_ERROR_STATE, QC_ERROR_WOULD_BLOCK,
    QC_ERROR_WRONG_THREAD, QC_OK, answer, guard, optional_place, place, qc_result,
};
use core::cell::{Cell, RefCell};
use core::ptr::null_mut;
use quietcore_live::{Cpu, CpuId, lane::WaitBy};
use std::os::fd::AsRawFd;

/// For qc_cpu_claim(): the thread waits in its own epoll or poll, with qc_cpu_kick_fd() in the set, and not
/// in qc_cpu_park().
pub const QC_CPU_KICK_FD: u32 = 1;

/// A CPU of the machine, driven by the thread that claimed it. Opaque; of that thread only.
#[derive(Debug)]
pub struct qc_cpu {
    cpu: RefCell<Cpu>,
    is_blocking: Cell<bool>,
}

thread_local! {
    /// What the calling thread has claimed and not released; NULL if it has nothing.
    static CLAIMED: Cell<*mut qc_cpu> = const { Cell::new(null_mut()) };
}

/// Runs `act` with the CPU, if it may be used here and now.
fn with<R>(
    cpu: *mut qc_cpu,
    act: impl FnOnce(&qc_cpu, &mut Cpu) -> Result<R, CallFailure>,
) -> Result<R, CallFailure> {
    if cpu.is_null() {
        return Err(CallFailure::new(QC_ERROR_ADDRESS, c"`cpu` is NULL"));
    }
    if CLAIMED.get() != cpu {
        let text = c"this thread has not claimed this CPU, or has released it";
        return Err(CallFailure::new(QC_ERROR_WRONG_THREAD, text));
    }
    // SAFETY: `qc_cpu_claim` made it for this thread, and `qc_cpu_release` forgets it before it frees it.
    let owner = unsafe { &*cpu };
    let in_use = c"this is a callback of this CPU, whose turn goes on";
    let mut cpu = owner.cpu.try_borrow_mut().map_err(|_| CallFailure::new(QC_ERROR_WOULD_BLOCK, in_use))?;
    act(owner, &mut cpu)
}

/// The same, unless the machine has ended.
fn with_running<R>(
    cpu: *mut qc_cpu,
    act: impl FnOnce(&mut Cpu) -> Result<R, CallFailure>,
) -> Result<R, CallFailure> {
    with(cpu, |_, lane| {
        lane.machine().check_alive()?;
        act(lane)
    })
}

/// Claims the machine's CPU of this number for the calling thread and writes its address to `cpu`. From then
/// on the thread calls qc_cpu_turn() between any two pieces of work, at least once per tick. `flags`: 0 or
/// QC_CPU_KICK_FD. NULL for `machine` is the default one.
///
/// Errors: QC_ERROR_NO_LANE when the CPU is not in qc_machine_options.lanes, QC_ERROR_BUSY when another
/// thread has it or this one has another, QC_ERROR_SHUT_DOWN, QC_ERROR_SYSTEM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_cpu_claim(
    machine: *mut qc_machine,
    number: u32,
    flags: u32,
    cpu: *mut *mut qc_cpu,
) -> qc_result {
    guard(|| {
        let place = place(cpu, "cpu")?;
        let waits = match flags {
            0 => WaitBy::Park,
            QC_CPU_KICK_FD => WaitBy::KickFd,
            _ => {
                let text = format!("`flags` is {flags}, not 0 or QC_CPU_KICK_FD");
                return Err(CallFailure::told(QC_ERROR_INVALID, text));
            }
        };
        let cpu =
            CpuId::new(u64::from(number)).map_err(|error| CallFailure::told(QC_ERROR_NO_LANE, error))?;
        let claimed = Cpu::claim_with(machine_at(machine)?, cpu, waits)?;
        let owner = Box::new(qc_cpu { cpu: RefCell::new(claimed), is_blocking: Cell::new(false) });
        let owner = Box::into_raw(owner);
        CLAIMED.set(owner);
        // SAFETY: the caller passes a place for a pointer.
        unsafe { place.write(owner) };
        Ok(QC_OK)
    })
}

/// Gives the CPU back: its timers, pinned ones too, are for others now. `cpu` is not valid any more. A thread
/// must not end without it. NULL does nothing.
///
/// Errors: QC_ERROR_WRONG_THREAD, also when it was released before; QC_ERROR_WOULD_BLOCK in a callback that
/// this lane runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_cpu_release(cpu: *mut qc_cpu) -> qc_result {
    guard(|| {
        if cpu.is_null() {
            return Ok(QC_OK);
        }
        with(cpu, |owner, lane| {
            if owner.is_blocking.take() {
                lane.end_block();
            }
            Ok(())
        })?;
        CLAIMED.set(null_mut());
        // SAFETY: `qc_cpu_claim` made it from a box, `with` has found that it is this thread's and that no
        // call uses it, and from now on no call finds it.
        drop(unsafe { Box::from_raw(cpu) });
        Ok(QC_OK)
    })
}

/// Runs what is due on this CPU and on those that it looks after: at most 256 timers, or 2 ms of them. Ends a
/// wait, if there was one. Writes how many it ran to `ran`, unless that is NULL. Returns 1 when more is due,
/// else 0. Cost when nothing is due: a look at the clock.
///
/// Errors: QC_ERROR_WRONG_THREAD; QC_ERROR_WOULD_BLOCK in a callback that this lane runs; QC_ERROR_SHUT_DOWN,
/// and QC_ERROR_FORKED in a forked child: the loop has to end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_cpu_turn(cpu: *mut qc_cpu, ran: *mut u32) -> qc_result {
    guard(|| {
        let ran = optional_place(ran, "ran")?;
        let turned = with_running(cpu, |lane| Ok(lane.turn()))?;
        if let Some(ran) = ran {
            // SAFETY: the caller passes NULL or a place for a number.
            unsafe { ran.write(turned.ran) };
        }
        Ok(answer(turned.has_more))
    })
}

/// The thread has nothing to do: writes to `until` the moment, in ns of CLOCK_MONOTONIC, up to which it may
/// wait; UINT64_MAX is for ever. From now on kicks make qc_cpu_kick_fd() readable, which ends the wait, too,
/// until qc_cpu_exit_idle() or qc_cpu_turn(). Returns 1 when the machine counts on this lane as on one that
/// is awake (it waits a tick at most), else 0.
///
/// Errors: those of qc_cpu_turn().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_cpu_enter_idle(cpu: *mut qc_cpu, until: *mut u64) -> qc_result {
    guard(|| {
        let until = place(until, "until")?;
        let idle = with_running(cpu, |lane| Ok(lane.enter_idle()))?;
        // SAFETY: the caller passes a place for a number.
        unsafe { until.write(idle.until().map_or(u64::MAX, |moment| moment.as_u64())) };
        Ok(answer(matches!(idle, quietcore_live::lane::IdleUntil::Stay { .. })))
    })
}

/// The wait is over, or the thread has work: the machine counts on this lane again. qc_cpu_turn() does it,
/// too. Errors: those of qc_cpu_turn().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_cpu_exit_idle(cpu: *mut qc_cpu) -> qc_result {
    guard(|| {
        with(cpu, |_, lane| {
            lane.exit_idle();
            Ok(QC_OK)
        })
    })
}

/// Waits until something is due or a kick arrives; for threads that have nothing else to wait for.
///
/// Errors: QC_ERROR_STATE when the CPU was claimed with QC_CPU_KICK_FD; those of qc_cpu_turn().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_cpu_park(cpu: *mut qc_cpu) -> qc_result {
    guard(|| {
        with_running(cpu, |lane| {
            if lane.kick_fd().is_some() {
                let text =
                    c"this CPU was claimed with QC_CPU_KICK_FD: its thread waits in poll() or epoll_wait()";
                return Err(CallFailure::new(QC_ERROR_STATE, text));
            }
            lane.park();
            Ok(QC_OK)
        })
    })
}

/// The descriptor that is readable when another thread wants this one awake while it is idle. For epoll or
/// poll; the library reads and closes it.
///
/// Errors: QC_ERROR_STATE unless the CPU was claimed with QC_CPU_KICK_FD; those of qc_cpu_turn().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_cpu_kick_fd(cpu: *mut qc_cpu) -> qc_result {
    let none = CallFailure::new(QC_ERROR_STATE, c"this CPU was not claimed with QC_CPU_KICK_FD");
    guard(|| with(cpu, |_, lane| lane.kick_fd().map(|fd| fd.as_raw_fd()).ok_or(none)))
}

/// The thread is about to do something that may take long: others do for this CPU what they can, until
/// qc_cpu_block_end(). Its pinned timers wait. No other function of this CPU may be called between.
///
/// Errors: QC_ERROR_STATE when it has begun already; those of qc_cpu_turn().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_cpu_block_begin(cpu: *mut qc_cpu) -> qc_result {
    guard(|| {
        with(cpu, |owner, lane| {
            if owner.is_blocking.replace(true) {
                return Err(CallFailure::new(QC_ERROR_STATE, c"this CPU blocks already"));
            }
            lane.begin_block();
            Ok(QC_OK)
        })
    })
}

/// The end of what qc_cpu_block_begin() began. Errors: QC_ERROR_STATE when nothing has; those of
/// qc_cpu_turn().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_cpu_block_end(cpu: *mut qc_cpu) -> qc_result {
    guard(|| {
        with(cpu, |owner, lane| {
            if !owner.is_blocking.replace(false) {
                return Err(CallFailure::new(QC_ERROR_STATE, c"this CPU does not block"));
            }
            lane.end_block();
            Ok(QC_OK)
        })
    })
}
