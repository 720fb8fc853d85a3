//! The program that counts, loaded into the running kernel.
//!
//! It is compiled once (`cargo xtask bpf`), and its fields and tracepoints are found by the kernel's own
//! description of its types when it is loaded. A tracepoint that a kernel has not, or whose part of the
//! program it does not take, is left out, and said.

use crate::error::WatchError;
use crate::layout::{CHOICE_WORDS, CPUS_MAX, LOSSES_WORDS, ROW_WORDS, STACK_FRAMES, WATCHED_MAX};
use crate::memory::Words;
use crate::rows::Rows;
use aya::maps::{Map, MapData, StackTraceMap};
use aya::programs::{Program, ProgramError};
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};
use quietcore_core::CpuId;
use std::fs;
use std::os::fd::{AsFd, AsRawFd};

/// Compiled from `bpf/watch.bpf.c`.
static OBJECT: &[u8] = include_bytes_aligned!("../bpf/watch.bpf.o");

/// Ends come first, beginnings last, and what starts something before what it becomes: one that is switched
/// on while something is open sees its end alone, which counts nothing.
const ENDS: [&str; 2] = ["_exit", "_end"];
const STARTS: [&str; 7] = [
    "timer_start",
    "hrtimer_start",
    "softirq_raise",
    "sched_waking",
    "workqueue_queue_work",
    "csd_queue_cpu",
    "ipi_send_cpu",
];

/// Tracepoints of processors that others have not: `ipi_entry` beside the reschedule interrupt's own.
const OTHER_PROCESSORS: &[&str] = if cfg!(target_arch = "x86_64") {
    &["ipi_entry", "ipi_exit"]
} else {
    &[
        "local_timer_entry",
        "local_timer_exit",
        "reschedule_entry",
        "reschedule_exit",
        "call_function_entry",
        "call_function_exit",
        "call_function_single_entry",
        "call_function_single_exit",
        "irq_work_entry",
        "irq_work_exit",
        "thermal_apic_entry",
        "thermal_apic_exit",
        "nmi_handler",
    ]
};

/// Why a tracepoint is not counted, mostly.
const NOT_THERE: &str = "this kernel does not have it";

/// A tracepoint that is not counted, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// Its name: `ipi_send_cpu`.
    pub tracepoint: String,
    /// In words.
    pub why: String,
}

/// What the program is told.
#[derive(Debug)]
pub(crate) struct ProgramSettings<'a> {
    /// Those to watch, by place, in order.
    pub(crate) cpus: &'a [CpuId],
    pub(crate) rows_each: u32,
    pub(crate) is_realtime: bool,
    /// Of control groups of version 1.
    pub(crate) subsystem: Option<u32>,
    /// The address of the function that runs what is queued.
    pub(crate) calls_a_queue: u64,
}

/// The loaded program. It ends when this is dropped, or the process.
#[derive(Debug)]
pub(crate) struct Loaded {
    ebpf: Ebpf,
    pub(crate) rows: Words,
    pub(crate) choices: Words,
    losses: Words,
    stacks: StackTraceMap<MapData>,
    pub(crate) left_out: Vec<LeftOut>,
}

impl Loaded {
    /// Loads and switches on all that this kernel takes.
    ///
    /// # Errors
    /// [`WatchError`]: the kernel has no description of its types, or takes no program from this process, or
    /// none of the tracepoints.
    pub(crate) fn new(settings: &ProgramSettings<'_>) -> Result<Self, WatchError> {
        let btf = Btf::from_sys_fs().map_err(|error| WatchError::NoTypes(chain(&error)))?;
        let mut ebpf = load(settings, &btf)?;
        let words = |ebpf: &Ebpf, name: &'static str, count: usize| {
            let map = ebpf.map(name).ok_or_else(|| WatchError::Load(format!("it has no map {name}")))?;
            let Map::Array(data) = map else { return Err(WatchError::Load(format!("{name} is no array"))) };
            Words::of(data.fd(), count).map_err(|error| WatchError::Load(format!("{name}: {error}")))
        };
        let rows = words(&ebpf, "rows", Rows::count(settings.cpus.len(), settings.rows_each) * ROW_WORDS)?;
        let choices = words(&ebpf, "choices", CPUS_MAX * CHOICE_WORDS)?;
        let losses = words(&ebpf, "losses", WATCHED_MAX * LOSSES_WORDS)?;
        let stacks =
            ebpf.take_map("stacks").ok_or_else(|| WatchError::Load("it has no stacks".to_owned()))?;
        let stacks = StackTraceMap::try_from(stacks).map_err(|error| WatchError::Load(chain(&error)))?;
        for (place, cpu) in settings.cpus.iter().enumerate() {
            choices.set(cpu.index(), place as u64 + 1);
        }
        let left_out = switch_on(&mut ebpf, &btf)?;
        Ok(Self { ebpf, rows, choices, losses, stacks, left_out })
    }

    /// What went wrong on a watched CPU: how often something was lost as too much was open, and how often
    /// something found no row of its own.
    pub(crate) fn losses(&self, place: usize) -> (u64, u64) {
        let at = |word: usize| self.losses.get(place * LOSSES_WORDS + word);
        (at(0), at(1))
    }

    /// The addresses of a stack, the innermost first; none if it is not there any more.
    pub(crate) fn stack(&self, number: u32) -> Vec<u64> {
        let stack = self.stacks.get(&number, 0);
        let frames = stack.map(|stack| stack.frames().iter().map(|frame| frame.ip).collect());
        let mut frames: Vec<u64> = frames.unwrap_or_default();
        frames.truncate(STACK_FRAMES);
        frames
    }

    /// How often the kernel left a part out, as the CPU was in the middle of the same one already.
    pub(crate) fn skipped(&self) -> u64 {
        let times = |(_, program): (&str, &Program)| {
            let file = format!("/proc/self/fdinfo/{}", program.fd().ok()?.as_fd().as_raw_fd());
            let text = fs::read_to_string(file).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix("recursion_misses:"))?;
            line.trim().parse::<u64>().ok()
        };
        self.ebpf.programs().filter_map(times).sum()
    }

    /// How many parts of the program are loaded.
    pub(crate) fn programs(&self) -> usize {
        self.ebpf.programs().filter(|(_, program)| program.fd().is_ok()).count()
    }
}

fn load(settings: &ProgramSettings<'_>, btf: &Btf) -> Result<Ebpf, WatchError> {
    let mut cpus = [0_u32; WATCHED_MAX];
    for (place, cpu) in settings.cpus.iter().enumerate() {
        cpus[place] = cpu.index() as u32;
    }
    let count = settings.cpus.len() as u32;
    let realtime = u32::from(settings.is_realtime);
    let subsystem = settings.subsystem.map_or(0, |subsystem| subsystem + 1);
    let mut loader = EbpfLoader::new();
    loader
        .btf(Some(btf))
        .override_global("rows_each", &settings.rows_each, true)
        .override_global("watched_count", &count, true)
        .override_global("is_realtime", &realtime, true)
        .override_global("subsystem", &subsystem, true)
        .override_global("calls_a_queue", &settings.calls_a_queue, true)
        .override_global("watched_cpus", &cpus, true)
        .map_max_entries("rows", Rows::count(settings.cpus.len(), settings.rows_each) as u32);
    loader.load(OBJECT).map_err(|error| match is_refused(&error) {
        true => WatchError::NotAllowed(chain(&error)),
        false => WatchError::Load(chain(&error)),
    })
}

/// Loads and attaches each part; returns what is left out.
fn switch_on(ebpf: &mut Ebpf, btf: &Btf) -> Result<Vec<LeftOut>, WatchError> {
    let mut names: Vec<String> = ebpf.programs().map(|(name, _)| name.to_owned()).collect();
    names.retain(|name| !OTHER_PROCESSORS.contains(&name.as_str()));
    names.sort_by_key(|name| (turn(name), name.clone()));
    let (mut left_out, mut attached) = (Vec::new(), 0);
    for name in &names {
        let Some(program) = ebpf.program_mut(name) else { continue };
        match switch_one_on(program, name, btf) {
            Ok(()) => attached += 1,
            Err(error) => {
                if is_refused(&error) && attached == 0 {
                    return Err(WatchError::NotAllowed(chain(&error)));
                }
                left_out.push(LeftOut { tracepoint: name.clone(), why: why(&error) });
            }
        }
    }
    if attached == 0 {
        return Err(WatchError::Load("this kernel has none of the tracepoints".to_owned()));
    }
    Ok(left_out)
}

fn switch_one_on(program: &mut Program, name: &str, btf: &Btf) -> Result<(), ProgramError> {
    match program {
        Program::BtfTracePoint(program) => {
            program.load(name, btf)?;
            program.attach()?;
        }
        Program::RawTracePoint(program) => {
            program.load()?;
            program.attach(name)?;
        }
        _ => return Err(ProgramError::UnexpectedProgramType),
    }
    Ok(())
}

/// When it is switched on, lower first.
fn turn(name: &str) -> u8 {
    match name {
        _ if ENDS.iter().any(|end| name.ends_with(end)) => 0,
        _ if STARTS.iter().any(|start| name.starts_with(start)) => 1,
        _ => 2,
    }
}

/// Whether this process may not, whatever the program.
fn is_refused(error: &(dyn std::error::Error + 'static)) -> bool {
    has_code(error, rustix::io::Errno::PERM)
}

/// Whether an error, or what caused it, is this one of the system.
fn has_code(error: &(dyn std::error::Error + 'static), sought: rustix::io::Errno) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let code = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
        if code == Some(sought.raw_os_error()) {
            return true;
        }
        cause = error.source();
    }
    false
}

fn why(error: &ProgramError) -> String {
    match error {
        ProgramError::Btf(_) => NOT_THERE.to_owned(),
        // A raw tracepoint, which is not looked up in the kernel's types.
        error if has_code(error, rustix::io::Errno::NOENT) => NOT_THERE.to_owned(),
        // The whole of what the verifier said is long; its end says what it refused.
        ProgramError::LoadError { io_error, verifier_log } => {
            let log = verifier_log.to_string();
            let said = log.lines().rev().filter(|line| !line.trim().is_empty());
            let said = said.map(str::trim).find(|line| !is_statistic(line)).unwrap_or("it said nothing");
            format!("the kernel does not take its part of the program: {io_error}; {said}")
        }
        other => chain(other),
    }
}

/// What the verifier ends with, whatever it found.
fn is_statistic(line: &str) -> bool {
    ["verification time", "stack depth", "insns processed", "processed"]
        .iter()
        .any(|begin| line.starts_with(begin))
}

/// An error with all that caused it, in a line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        source = error.source();
    }
    text
}
