//! Which CPU the calling thread drives.
//!
//! Cells of the thread, written when it claims a CPU and when it lets it go: they need no destructor, so they
//! can be read while a thread ends.

use crate::words::present_cpu;
use core::cell::Cell;
use core::ptr;
use quietcore_core::{CpuId, Nanos};

struct Here {
    machine: Cell<*const ()>,
    cpu: Cell<Option<CpuId>>,
    now: Cell<Nanos>,
}

thread_local! {
    static HERE: Here = const {
        Here { machine: Cell::new(ptr::null()), cpu: Cell::new(None), now: Cell::new(Nanos(0)) }
    };
}

/// The CPU that this thread drives of the machine at this address, and the moment at which it last looked at
/// the clock in a turn. Cost: three loads.
#[inline]
pub(crate) fn driven_here(machine: *const ()) -> Option<(CpuId, Nanos)> {
    HERE.with(|here| {
        let cpu = here.cpu.get().filter(|_| here.machine.get() == machine)?;
        Some((cpu, here.now.get()))
    })
}

/// The CPU that this thread drives, of whatever machine.
pub(super) fn any() -> Option<CpuId> {
    HERE.with(|here| here.cpu.get())
}

pub(super) fn enter(machine: *const (), cpu: CpuId, now: Nanos) {
    HERE.with(|here| {
        here.cpu.set(Some(cpu));
        here.now.set(now);
        here.machine.set(machine);
    });
    let _ = present_cpu::remember();
}

#[inline]
pub(super) fn looked_at_clock(now: Nanos) {
    HERE.with(|here| here.now.set(now));
}

pub(super) fn leave() {
    HERE.with(|here| here.cpu.set(None));
    present_cpu::forget();
}
