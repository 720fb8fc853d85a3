//! Lines made from typed values in the kernel's own words.
//!
//! Decides how each event is printed, so that reading it back must give the values it was made of.
//! Task names are any bytes but a line break: `prctl` lets every process choose its own.
//!
//! Source: Linux v6.12 kernel/trace/trace_output.c (`trace_print_context`), and `TP_printk` of
//! include/trace/events/{timer,irq,nmi,sched,timer_migration,ipi,workqueue}.h.

use arbitrary::Arbitrary;
use quietcore_core::{CpuId, CpuSet, Nanos};
use quietcore_trace::{Event, HrtimerStart, IpiPurpose, Migration, MigrationStep, SoftirqStep, SpanStep};
use quietcore_trace::{Task, TimerStart, WakeStep, parse_line};

/// The kernel's names end in a zero byte: 15 are left.
const COMM_BYTES: usize = 15;
/// The largest pid of Linux.
const PID_MAX: u32 = 1 << 22;
const FUNCTION_BYTES: &[u8] = b"abcdefghijklmnopqrstuvwxyz_0123456789.";

/// Names that imitate what stands around a name.
const HOSTILE_NAMES: [&str; 14] = [
    " pid=1 prio=1",
    "pid=1 pid=2 x",
    " target_cpu=1",
    " orig_cpu=1",
    " prev_pid=1",
    "prev_comm=",
    " prev_prio=1",
    " ==> next_comm=",
    " next_comm=x",
    " next_pid=1",
    " next_prio=1",
    "a-1 [000] 1.0:",
    "-1 (7) [0",
    "x:1 [120]",
];

/// One line: who, where, when, what.
#[derive(Arbitrary, Debug)]
pub struct Line {
    form: Form,
    comm: Comm,
    pid: u32,
    cpu: u16,
    micros: u32,
    seconds: u32,
    event: Written,
}

#[derive(Arbitrary, Debug)]
enum Form {
    Ftrace,
    FtraceTgid,
    TraceCmd,
}

/// A task's name: any bytes.
#[derive(Arbitrary, Debug)]
struct Comm([u8; COMM_BYTES], u8);

/// A function's name.
#[derive(Arbitrary, Debug)]
struct Function([u8; 12], u8);

#[derive(Arbitrary, Debug)]
enum Written {
    Start { timer: u64, function: Function, expires: u64, timeout: i64, base: u16, bucket: u16, flags: u8 },
    Expire { timer: u64, function: Function, now: u64 },
    Cancel { timer: u64 },
    HrStart { hrtimer: u64, function: Function, expires: i64, softexpires: i64, pinned: bool },
    HrExpire { hrtimer: u64, function: Function, now: i64 },
    Softirq { step: u8, vector: u8 },
    Switch { previous: (Comm, u32), next: (Comm, u32), priority: u8 },
    Waking { task: (Comm, u32), priority: u8, target: u16 },
    Migrate { task: (Comm, u32), from: u16, to: u16 },
    Connect { cpu: u16, mask: u32, parent: u64 },
    Idle { cpu: u16, parent: u64, wakeup: u64 },
    IpiMask { cpus: Vec<u16>, callback: Function },
    Queue { work: u64, function: Function, cpu: u16 },
    Execute { work: u64, function: Function },
    Device { number: u32, function: Function },
    Nmi { function: Function, took: u32 },
}

impl Comm {
    fn bytes(&self) -> Vec<u8> {
        let length = usize::from(self.1) % (COMM_BYTES + 1);
        let chosen = usize::from(self.1).checked_sub(256 - HOSTILE_NAMES.len());
        if let Some(index) = chosen {
            return HOSTILE_NAMES[index].as_bytes().to_vec();
        }
        self.0[..length].iter().map(|&byte| if matches!(byte, b'\n' | 0) { b'?' } else { byte }).collect()
    }
}

impl Function {
    fn text(&self) -> String {
        let length = 1 + usize::from(self.1) % self.0.len();
        let letter = |&byte: &u8| char::from(FUNCTION_BYTES[usize::from(byte) % FUNCTION_BYTES.len()]);
        self.0[..length].iter().map(letter).collect()
    }
}

fn cpu(number: u16) -> CpuId {
    CpuId::new(u64::from(number % quietcore_core::CPU_LIMIT)).expect("in range")
}

fn pid(number: u32) -> i32 {
    (number % (PID_MAX + 1)) as i32
}

fn nanos(signed: i64) -> Nanos {
    Nanos(signed.max(0).unsigned_abs())
}

impl Line {
    /// Writes the line, reads it, compares; returns the text.
    pub fn check(&self) -> Vec<u8> {
        let (name, fields) = self.event.text();
        let text = self.text(name, &fields);
        let shown = String::from_utf8_lossy(&text).into_owned();
        let record = parse_line(&text).unwrap_or_else(|why| panic!("{shown:?}: {why}"));
        let comm = self.comm.bytes();
        let task = Task { comm: comm.trim_ascii_start(), pid: pid(self.pid) };
        let micros = u64::from(self.seconds) * 1_000_000 + u64::from(self.micros % 1_000_000);
        assert_eq!((record.task, record.cpu), (task, cpu(self.cpu)), "{shown:?}");
        assert_eq!(record.at, Nanos(micros * 1000), "{shown:?}");
        self.event.check(&record.event, &shown);
        text
    }

    fn text(&self, name: &str, fields: &[u8]) -> Vec<u8> {
        let (comm, pid, cpu) = (self.comm.bytes(), pid(self.pid), cpu(self.cpu).index());
        let (seconds, micros) = (self.seconds, self.micros % 1_000_000);
        let mut text = vec![b' '; 16 - comm.len()];
        text.extend_from_slice(&comm);
        let rest = match self.form {
            Form::Ftrace => format!("-{pid:<7} [{cpu:03}] d.s2. {seconds:5}.{micros:06}: {name}: "),
            Form::FtraceTgid => {
                format!("-{pid:<7} ({pid:7}) [{cpu:03}] d..2. {seconds:5}.{micros:06}: {name}: ")
            }
            Form::TraceCmd => {
                format!("-{pid:<5} [{cpu:03}] {seconds:5}.{micros:06}: {:<20} ", format!("{name}:"))
            }
        };
        text.extend_from_slice(rest.as_bytes());
        text.extend_from_slice(fields);
        text
    }
}

impl Written {
    /// The event's name and its fields as the kernel prints them.
    fn text(&self) -> (&'static str, Vec<u8>) {
        let (name, text) = match self {
            Self::Start { .. } | Self::Expire { .. } | Self::Cancel { .. } => self.wheel_text(),
            Self::HrStart { hrtimer, function, expires, softexpires, pinned } => {
                let (function, mode) = (function.text(), if *pinned { "ABS|PINNED" } else { "REL" });
                let times = format!("expires={expires} softexpires={softexpires}");
                ("hrtimer_start", format!("hrtimer={hrtimer:016x} function={function} {times} mode={mode}"))
            }
            Self::HrExpire { hrtimer, function, now } => {
                let function = function.text();
                ("hrtimer_expire_entry", format!("hrtimer={hrtimer:016x} function={function} now={now}"))
            }
            Self::Softirq { step, vector } => {
                let names = ["softirq_raise", "softirq_entry", "softirq_exit"];
                (names[usize::from(step % 3)], format!("vec={vector} [action=TIMER]"))
            }
            Self::Connect { cpu: number, mask, parent } => {
                let number = cpu(*number);
                let text = format!("cpu={number} groupmask={mask:x} parent={parent:016x} lvl=0 numa=0");
                ("tmigr_connect_cpu_parent", text)
            }
            Self::Idle { cpu: number, parent, wakeup } => {
                ("tmigr_cpu_idle", format!("cpu={} parent={parent:016x} wakeup={wakeup}", cpu(*number)))
            }
            Self::IpiMask { cpus, callback } => {
                let functions = format!("callsite=f+0x1c/0x4a0 callback={}+0x0/0x30", callback.text());
                ("ipi_send_cpumask", format!("cpumask={} {functions}", mask(cpus)))
            }
            Self::Device { number, function } => {
                ("irq_handler_entry", format!("irq={number} name={}", function.text()))
            }
            Self::Nmi { function, took } => {
                ("nmi_handler", format!("{}() delta_ns: {took} handled: 1", function.text()))
            }
            Self::Queue { work, function, cpu: number } => {
                let (function, number) = (function.text(), cpu(*number));
                let text = format!(
                    "work struct={work:016x} function={function} workqueue=w req_cpu=8192 cpu={number}"
                );
                ("workqueue_queue_work", text)
            }
            Self::Execute { work, function } => {
                let function = function.text();
                ("workqueue_execute_start", format!("work struct {work:016x}: function {function}"))
            }
            Self::Switch { .. } | Self::Waking { .. } | Self::Migrate { .. } => return self.sched_text(),
        };
        (name, text.into_bytes())
    }

    fn wheel_text(&self) -> (&'static str, String) {
        match self {
            Self::Start { timer, function, expires, timeout, base, bucket, flags } => {
                let flags = ["", "D", "P", "D|P", "I", "D|I", "P|I", "D|P|I"][usize::from(flags % 8)];
                let text = format!(
                    "timer={timer:016x} function={} expires={expires} [timeout={timeout}] \
                     bucket_expiry={expires} cpu={} idx={bucket} flags={flags}",
                    function.text(),
                    cpu(*base)
                );
                ("timer_start", text)
            }
            Self::Expire { timer, function, now } => {
                let function = function.text();
                let text = format!("timer={timer:016x} function={function} now={now} baseclk={now}");
                ("timer_expire_entry", text)
            }
            Self::Cancel { timer } => ("timer_cancel", format!("timer={timer:016x}")),
            other => unreachable!("{other:?} is no event of the wheel"),
        }
    }

    fn sched_text(&self) -> (&'static str, Vec<u8>) {
        let named = |key: &str, task: &(Comm, u32), rest: String| {
            [key.as_bytes(), &task.0.bytes(), rest.as_bytes()].concat()
        };
        match self {
            Self::Switch { previous, next, priority } => {
                let rest = format!(" prev_pid={} prev_prio=120 prev_state=R+ ==> ", pid(previous.1));
                let mut text = named("prev_comm=", previous, rest);
                let rest = format!(" next_pid={} next_prio={priority}", pid(next.1));
                text.extend(named("next_comm=", next, rest));
                ("sched_switch", text)
            }
            Self::Waking { task, priority, target } => {
                let target = cpu(*target).index();
                let rest = format!(" pid={} prio={priority} target_cpu={target:03}", pid(task.1));
                ("sched_waking", named("comm=", task, rest))
            }
            Self::Migrate { task, from, to } => {
                let cpus = format!("orig_cpu={} dest_cpu={}", cpu(*from), cpu(*to));
                let rest = format!(" pid={} prio=120 {cpus}", pid(task.1));
                ("sched_migrate_task", named("comm=", task, rest))
            }
            other => unreachable!("{other:?} is no event of the scheduler"),
        }
    }

    /// Asserts that `read` holds the values that `self` was written from.
    fn check(&self, read: &Event<'_>, shown: &str) {
        match self {
            Self::Switch { .. } | Self::Waking { .. } | Self::Migrate { .. } => self.check_sched(read, shown),
            Self::IpiMask { cpus, callback } => {
                let to: CpuSet = cpus.iter().map(|&number| cpu(number)).collect();
                let callback = callback.text();
                let purpose = IpiPurpose { callsite: b"f", callback: callback.as_bytes(), reason: b"" };
                assert_eq!(*read, Event::IpiSendMask { to, purpose }, "{shown:?}");
            }
            Self::Connect { cpu: number, mask, parent } => {
                let (cpu, child_count) = (cpu(*number), None);
                let connect = Migration::ConnectCpu { cpu, mask: *mask, parent: *parent, child_count };
                assert_eq!(*read, Event::Migration(connect), "{shown:?}");
            }
            Self::Idle { cpu: number, parent, wakeup } => {
                let wakeup = Some(Nanos(*wakeup)).filter(|at| at.0 < i64::MAX as u64);
                let (step, cpu) = (MigrationStep::Idle, cpu(*number));
                let idle = Migration::Cpu { step, cpu, parent: *parent, wakeup, next_event: None };
                assert_eq!(*read, Event::Migration(idle), "{shown:?}");
            }
            Self::Softirq { step, vector } => {
                let steps = [SoftirqStep::Raise, SoftirqStep::Entry, SoftirqStep::Exit];
                let expected = Event::Softirq { step: steps[usize::from(step % 3)], vector: *vector };
                assert_eq!(*read, expected, "{shown:?}");
            }
            _ => self.check_with_function(read, shown),
        }
    }

    fn check_with_function(&self, read: &Event<'_>, shown: &str) {
        let name = match self {
            Self::Start { function, .. }
            | Self::Expire { function, .. }
            | Self::HrStart { function, .. }
            | Self::HrExpire { function, .. }
            | Self::Queue { function, .. }
            | Self::Execute { function, .. }
            | Self::Device { function, .. }
            | Self::Nmi { function, .. } => function.text(),
            _ => String::new(),
        };
        let function = name.as_bytes();
        let expected = match *self {
            Self::Start { timer, expires, timeout, base, bucket, flags, .. } => {
                Event::TimerStart(TimerStart {
                    timer,
                    function,
                    expires,
                    timeout,
                    bucket_expiry: Some(expires),
                    base: cpu(base),
                    bucket: Some(u64::from(bucket)),
                    deferrable: flags & 1 != 0,
                    pinned: flags & 2 != 0,
                    irq_safe: flags & 4 != 0,
                })
            }
            Self::Expire { timer, now, .. } => {
                Event::TimerExpireEntry { timer, function, now, baseclk: Some(now) }
            }
            Self::Cancel { timer } => Event::TimerCancel { timer },
            Self::Device { number, .. } => {
                let (step, number) = (SpanStep::Entry, u64::from(number));
                Event::DeviceInterrupt { step, number, name: function }
            }
            Self::Nmi { took, .. } => Event::NmiHandled { handler: function, took: Nanos(u64::from(took)) },
            Self::HrStart { hrtimer, expires, softexpires, pinned, .. } => {
                Event::HrtimerStart(HrtimerStart {
                    hrtimer,
                    function,
                    expires: nanos(expires),
                    softexpires: nanos(softexpires),
                    pinned: Some(pinned),
                })
            }
            Self::HrExpire { hrtimer, now, .. } => {
                Event::HrtimerExpireEntry { hrtimer, function, now: nanos(now) }
            }
            Self::Queue { work, cpu: number, .. } => {
                Event::WorkQueue { work, function, cpu: Some(cpu(number)) }
            }
            Self::Execute { work, .. } => Event::WorkStart { work, function },
            ref other => unreachable!("{other:?} is checked elsewhere"),
        };
        assert_eq!(*read, expected, "{shown:?}");
    }

    fn check_sched(&self, read: &Event<'_>, shown: &str) {
        match self {
            Self::Switch { previous, next, priority } => {
                let (before, after) = (previous.0.bytes(), next.0.bytes());
                let expected = Event::SchedSwitch {
                    previous: Task { comm: &before, pid: pid(previous.1) },
                    next: Task { comm: &after, pid: pid(next.1) },
                    next_priority: i32::from(*priority),
                };
                assert_eq!(*read, expected, "{shown:?}");
            }
            Self::Waking { task, priority, target } => {
                let comm = task.0.bytes();
                let task = Task { comm: &comm, pid: pid(task.1) };
                let (step, priority, target) = (WakeStep::Waking, i32::from(*priority), cpu(*target));
                assert_eq!(*read, Event::SchedWake { step, task, priority, target }, "{shown:?}");
            }
            Self::Migrate { task, from, to } => {
                let comm = task.0.bytes();
                let task = Task { comm: &comm, pid: pid(task.1) };
                let expected = Event::SchedMigrate { task, from: cpu(*from), to: cpu(*to) };
                assert_eq!(*read, expected, "{shown:?}");
            }
            other => unreachable!("{other:?} is no event of the scheduler"),
        }
    }
}

/// A mask as the kernel prints it: words of 32 bits, the highest first.
fn mask(cpus: &[u16]) -> String {
    let indices: Vec<usize> = cpus.iter().map(|&number| cpu(number).index()).collect();
    let count = indices.iter().max().map_or(1, |last| last / 32 + 1);
    let mut words = vec![0u32; count];
    for index in indices {
        words[index / 32] |= 1 << (index % 32);
    }
    words.iter().rev().map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::{Comm, Form, HOSTILE_NAMES, Line, Written};

    /// Goal: no task can change what is read of another. Method: all pairs of hostile names.
    #[test]
    fn a_task_name_may_imitate_fields() {
        let name = |index: usize| Comm([b'x'; 15], (256 - HOSTILE_NAMES.len() + index) as u8);
        let count = HOSTILE_NAMES.len();
        for (one, other) in (0..count * count).map(|pair| (pair / count, pair % count)) {
            for event in [
                Written::Switch { previous: (name(one), 7), next: (name(other), 8), priority: 9 },
                Written::Waking { task: (name(other), 7), priority: 9, target: 3 },
                Written::Migrate { task: (name(other), 7), from: 3, to: 4 },
            ] {
                let (form, comm) = (Form::Ftrace, name(one));
                let read = Line { form, comm, pid: 5, cpu: 2, micros: 1, seconds: 1, event }.check();
                assert!(!read.is_empty());
            }
        }
    }
}
