//! Machines: what they are made with, starting them, ending them.
//!
//! A machine lives as long as the process, so its pointer stays valid after it was shut down. Where a
//! function takes a machine, NULL is the default one, which is started when it is first asked for.
#![allow(unsafe_code, reason = "functions with names of their own, for C, which get pointers")]
#![allow(non_camel_case_types, reason = "names of the C interface")]
#![allow(clippy::missing_safety_doc, reason = "the comments become the header's, and speak to C programmers")]

use crate::result::{
    CallFailure, QC_ERROR_ADDRESS, QC_ERROR_BUSY, QC_ERROR_CPUS, QC_ERROR_INVALID, QC_ERROR_SIZE, QC_OK,
    guard, optional_place, place, qc_result,
};
use core::ffi::{CStr, c_char};
use core::ptr::NonNull;
use core::time::Duration;
use quietcore_live::lane::Pinning;
use quietcore_live::{CpuSet, LaneThreads, Machine, MachineBuilder, isolation::IsolationReport};
use std::sync::{Mutex, PoisonError};

/// For qc_machine_options.flags: threads of the library drive the lanes, and no other thread claims one. They
/// run timers and work, and sleep while there is nothing to do. They stay on their CPUs if this process has
/// these alone (an exclusive cpuset).
pub const QC_MACHINE_LANE_THREADS: u32 = 1;
/// With QC_MACHINE_LANE_THREADS: those threads stay on their CPUs in any case.
pub const QC_MACHINE_PIN_LANES: u32 = 2;
/// All of them.
const KNOWN_FLAGS: u32 = QC_MACHINE_LANE_THREADS | QC_MACHINE_PIN_LANES;

/// A machine: timers on the threads of this process. Opaque; never freed.
#[derive(Debug)]
pub struct qc_machine {
    _opaque: [u8; 0],
}

/// What a machine is made with. Begin with `QC_MACHINE_OPTIONS_INIT`; a field that is 0 or NULL has its
/// default. Lists of CPUs are written as the kernel writes them: "0-3,8".
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct qc_machine_options {
    /// sizeof(qc_machine_options). Programs that were compiled with an older header go on working.
    pub size: usize,
    /// How long a tick lasts, in ns: the grain of every timer that is not exact. Default 1 ms; at least 1 us.
    pub tick: u64,
    /// For how long, in ns, a lane may not turn before others take over. Default 2 ms; UINT64_MAX for ever.
    pub stall_after: u64,
    /// The machine's CPUs. Default: those that this process may run on.
    pub cpus: *const c_char,
    /// CPUs on which nothing foreign runs. Default: those that the kernel isolates.
    pub isolated: *const c_char,
    /// CPUs that threads will claim with qc_cpu_claim(), or that threads of the library drive (`flags`).
    /// Default: none; then a helper thread runs all timers.
    pub lanes: *const c_char,
    /// Parked threads for when every lane is stuck. Default 1.
    pub spare_lanes: u32,
    /// 0, or QC_MACHINE_LANE_THREADS, or that and QC_MACHINE_PIN_LANES.
    pub flags: u32,
}

impl qc_machine_options {
    const DEFAULT: Self = Self {
        size: size_of::<Self>(),
        tick: 0,
        stall_after: 0,
        cpus: core::ptr::null(),
        isolated: core::ptr::null(),
        lanes: core::ptr::null(),
        spare_lanes: 0,
        flags: 0,
    };

    /// What the caller's version of the structure says, in ours. What a newer one has beyond ours must be 0.
    ///
    /// # Safety
    /// `options` points to as many bytes as its first field says.
    unsafe fn read(options: NonNull<Self>) -> Result<Self, CallFailure> {
        // SAFETY: promised by the caller.
        let size = unsafe { size_at(options, "qc_machine_options") }?;
        let known = size.min(size_of::<Self>());
        let mut read = Self::DEFAULT;
        let bytes = options.cast::<u8>();
        // SAFETY: both have `known` bytes, and any bytes are a valid structure of numbers and pointers.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut read).cast::<u8>(), known) };
        // SAFETY: promised by the caller.
        let is_unknown = (known..size).any(|at| unsafe { bytes.add(at).read() } != 0);
        if is_unknown {
            let text = c"qc_machine_options sets fields that this version of the library does not know";
            return Err(CallFailure::new(QC_ERROR_SIZE, text));
        }
        if read.flags & !KNOWN_FLAGS != 0 || read.flags == QC_MACHINE_PIN_LANES {
            let text = "0, QC_MACHINE_LANE_THREADS or QC_MACHINE_LANE_THREADS | QC_MACHINE_PIN_LANES";
            let text = format!("qc_machine_options.flags is {:#x}, not {text}", read.flags);
            return Err(CallFailure::told(QC_ERROR_INVALID, text));
        }
        Ok(read)
    }

    /// # Safety
    /// Its lists are NULL or strings.
    unsafe fn builder(self) -> Result<MachineBuilder, CallFailure> {
        let mut builder = Machine::builder();
        if self.tick != 0 {
            builder = builder.tick(Duration::from_nanos(self.tick));
        }
        // UINT64_MAX is a span that no clock reaches: never.
        if self.stall_after != 0 {
            builder = builder.stall_after(Duration::from_nanos(self.stall_after));
        }
        // SAFETY: promised by the caller.
        if let Some(cpus) = unsafe { cpu_list(self.cpus, "qc_machine_options.cpus") }? {
            builder = builder.cpus(cpus);
        }
        // SAFETY: as above.
        if let Some(isolated) = unsafe { cpu_list(self.isolated, "qc_machine_options.isolated") }? {
            builder = builder.isolated(isolated);
        }
        // SAFETY: as above.
        if let Some(lanes) = unsafe { cpu_list(self.lanes, "qc_machine_options.lanes") }? {
            builder = builder.lanes(lanes);
        }
        if self.flags & QC_MACHINE_LANE_THREADS != 0 {
            let pins = self.flags & QC_MACHINE_PIN_LANES != 0;
            let threads = LaneThreads::new();
            builder = builder.lane_threads(if pins { threads.pinning(Pinning::Always) } else { threads });
        }
        if self.spare_lanes != 0 {
            let spares = u16::try_from(self.spare_lanes).map_err(|_| {
                let text = format!("qc_machine_options.spare_lanes is {}, 65535 the most", self.spare_lanes);
                CallFailure::told(QC_ERROR_INVALID, text)
            })?;
            builder = builder.spare_lanes(spares);
        }
        Ok(builder)
    }
}

/// What the first field of the caller's structure `name` says: how large it is.
///
/// # Safety
/// `structure` has such a field.
pub(crate) unsafe fn size_at<T>(structure: NonNull<T>, name: &str) -> Result<usize, CallFailure> {
    // SAFETY: promised by the caller.
    let size = unsafe { structure.cast::<usize>().read() };
    if size >= size_of::<usize>() {
        return Ok(size);
    }
    let text = format!("{name}.size is {size}: set it to sizeof({name})");
    Err(CallFailure::told(QC_ERROR_SIZE, text))
}

/// The CPUs of the caller's list `name`; `None` for NULL.
///
/// # Safety
/// `text` is NULL or a string.
pub(crate) unsafe fn cpu_list(text: *const c_char, name: &str) -> Result<Option<CpuSet>, CallFailure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: promised by the caller.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let parsed = text.trim().parse();
    parsed
        .map(Some)
        .map_err(|error| CallFailure::told(QC_ERROR_CPUS, format_args!("`{name}` is \"{text}\": {error}")))
}

/// The machine that a pointer of C means.
pub(crate) fn machine_at(machine: *const qc_machine) -> Result<&'static Machine, CallFailure> {
    match optional_place(machine.cast_mut().cast::<Machine>(), "machine")? {
        // SAFETY: it is what `qc_machine_start` or `qc_machine_default` wrote, and machines are never freed.
        Some(machine) => Ok(unsafe { machine.as_ref() }),
        None => default_machine(),
    }
}

/// The process's default machine. Started here if there is none.
fn default_machine() -> Result<&'static Machine, CallFailure> {
    static STARTING: Mutex<()> = Mutex::new(());
    if let Some(machine) = Machine::installed() {
        return Ok(machine);
    }
    let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(machine) = Machine::installed() {
        return Ok(machine);
    }
    let machine = Machine::start()?;
    // A Rust part of the program may have been faster.
    Ok(machine.install_default().map_or_else(
        |_| {
            machine.shutdown();
            Machine::installed().expect("there is one, or this would be it")
        },
        |()| machine,
    ))
}

fn to_pointer(machine: &'static Machine) -> *mut qc_machine {
    core::ptr::from_ref(machine).cast_mut().cast()
}

/// Starts a machine with `options` (NULL: all defaults) and writes its address to `machine`. It has a helper
/// thread; its memory (about 25 KiB per CPU) is never given back. Any thread, not in a callback.
///
/// Errors: QC_ERROR_INVALID, QC_ERROR_SIZE and QC_ERROR_CPUS for options that make no sense, QC_ERROR_SYSTEM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_machine_start(
    options: *const qc_machine_options,
    machine: *mut *mut qc_machine,
) -> qc_result {
    guard(|| {
        let machine = place(machine, "machine")?;
        let options = match optional_place(options.cast_mut(), "options")? {
            // SAFETY: the caller passes options of the size that they say, with strings in them.
            Some(options) => unsafe { qc_machine_options::read(options) }?,
            None => qc_machine_options::DEFAULT,
        };
        // SAFETY: as above.
        let builder = unsafe { options.builder() }?;
        let started = builder.start()?;
        // SAFETY: the caller passes a place for a pointer.
        unsafe { machine.write(to_pointer(started)) };
        Ok(QC_OK)
    })
}

/// Writes the address of the default machine to `machine`: of the one that NULL means everywhere. It is
/// started when it is first asked for, with all defaults. Any thread.
///
/// Errors: QC_ERROR_SYSTEM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_machine_default(machine: *mut *mut qc_machine) -> qc_result {
    guard(|| {
        let machine = place(machine, "machine")?;
        let found = default_machine()?;
        // SAFETY: the caller passes a place for a pointer.
        unsafe { machine.write(to_pointer(found)) };
        Ok(QC_OK)
    })
}

/// Makes `machine` the default one of this process, which NULL means everywhere.
///
/// Errors: QC_ERROR_BUSY when there is a default already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_machine_install_default(machine: *mut qc_machine) -> qc_result {
    guard(|| {
        place(machine, "machine")?;
        let installed = machine_at(machine)?.install_default();
        installed.map(|()| QC_OK).map_err(|error| CallFailure::told(QC_ERROR_BUSY, error))
    })
}

/// Ends a machine: from now on nothing can be armed, and what is pending never runs: its timers are idle.
/// Then waits until no callback of it runs, on any thread, also if another thread called this first; in a
/// callback it does not wait. Its lanes are released by their threads, as before. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_machine_shutdown(machine: *mut qc_machine) -> qc_result {
    guard(|| {
        place(machine, "machine")?;
        machine_at(machine)?.shutdown();
        Ok(QC_OK)
    })
}

/// What qc_machine_set_isolated() did.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct qc_isolation {
    /// sizeof(qc_isolation), written by the caller: as much is filled in. Afterwards: how much was.
    pub size: usize,
    /// Timers that were moved to other CPUs.
    pub evacuated: u64,
    /// Pinned timers that stay on isolated CPUs.
    pub pinned_left: u64,
    /// CPUs that are isolated now and are still running a callback for others.
    pub still_running: u64,
}

impl qc_isolation {
    /// As much of it as the caller's structure of `size` bytes has room for.
    fn of(done: &IsolationReport, size: usize) -> Self {
        Self {
            size: size.min(size_of::<Self>()),
            evacuated: done.evacuated as u64,
            pinned_left: done.pinned_left as u64,
            still_running: done.still_running.len() as u64,
        }
    }
}

/// From now on the CPUs of `list` ("2-3"; "" for none) are isolated, and no others: nothing foreign starts on
/// them. Fills in `report`, whose `size` the caller has written, unless it is NULL. A callback that an
/// isolated CPU runs for others is waited for, 100 ms at most. NULL for `machine` is the default one. Any
/// thread, also in a callback.
///
/// Errors: QC_ERROR_CPUS when the machine has no such CPU or none would be left, QC_ERROR_SHUT_DOWN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_machine_set_isolated(
    machine: *mut qc_machine,
    list: *const c_char,
    report: *mut qc_isolation,
) -> qc_result {
    guard(|| {
        // SAFETY: the caller passes NULL or a string.
        let isolated = unsafe { cpu_list(list, "list") }?;
        let isolated =
            isolated.ok_or(CallFailure::new(QC_ERROR_ADDRESS, c"`list` is NULL: \"\" isolates no CPU"))?;
        let report = optional_place(report, "report")?;
        // SAFETY: the caller passes NULL or a structure that has a size at least.
        let size = report.map(|report| unsafe { size_at(report, "qc_isolation") }).transpose()?;
        let done = machine_at(machine)?.set_isolated(&isolated)?;
        if let (Some(report), Some(size)) = (report, size) {
            let filled = qc_isolation::of(&done, size);
            let from = (&raw const filled).cast::<u8>();
            // SAFETY: the caller's structure has `size` bytes; ours is made of words, all written.
            unsafe { core::ptr::copy_nonoverlapping(from, report.as_ptr().cast::<u8>(), filled.size) };
        }
        Ok(QC_OK)
    })
}

/// The moment on the machine's clock, in ns: CLOCK_MONOTONIC. 0 when there is no machine and none can be
/// started. Any thread, also in a callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qc_machine_now(machine: *const qc_machine) -> u64 {
    let mut now = 0;
    let _ = guard(|| {
        now = machine_at(machine)?.now().as_u64();
        Ok(QC_OK)
    });
    now
}

#[cfg(test)]
mod tests {
    use super::{IsolationReport, Machine, qc_isolation, qc_machine_options};
    use core::time::Duration;

    /// Goal: each option is what it sets, and what is 0 or NULL has its default. Method: all of them, no two
    /// alike; what is built is that of the same calls in Rust.
    #[test]
    fn every_option_is_what_it_sets() {
        let options = qc_machine_options {
            tick: 3_000_000,
            stall_after: 70_000_000,
            cpus: c"0-5".as_ptr(),
            isolated: c"4".as_ptr(),
            lanes: c"1-2".as_ptr(),
            spare_lanes: 3,
            ..qc_machine_options::DEFAULT
        };
        let set = |list: &str| list.parse().expect("a list");
        let same = Machine::builder()
            .tick(Duration::from_millis(3))
            .stall_after(Duration::from_millis(70))
            .cpus(set("0-5"))
            .isolated(set("4"))
            .lanes(set("1-2"))
            .spare_lanes(3);
        // SAFETY: the lists are strings.
        let (built, default) = unsafe { (options.builder(), qc_machine_options::DEFAULT.builder()) };
        assert_eq!(format!("{:?}", built.expect("lists")), format!("{same:?}"));
        assert_eq!(format!("{:?}", default.expect("no lists")), format!("{:?}", Machine::builder()));
    }

    /// Goal: each field of a change of isolation is its own figure; as much is filled in as has room. Method:
    /// figures that all differ; a caller that knows less than this version, the same, and more.
    #[test]
    fn each_field_of_a_change_is_its_own_figure() {
        let set = |list: &str| list.parse().expect("a list");
        let (joined, left) = (set("1-4"), set("5-9"));
        let done =
            IsolationReport { evacuated: 2, pinned_left: 7, still_running: set("5,6,9"), joined, left };
        // Four words of eight bytes; CPUs 5, 6 and 9 are three.
        for (size, filled) in [(24, 24), (32, 32), (40, 32)] {
            let told = qc_isolation::of(&done, size);
            let fields = (told.size, told.evacuated, told.pinned_left, told.still_running);
            assert_eq!(fields, (filled, 2, 7, 3), "{size}");
        }
    }
}
