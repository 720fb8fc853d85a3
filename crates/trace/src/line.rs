//! One line of a text trace: what stands before the event's fields.
//!
//! Read forms: tracefs `trace` and `trace_pipe` (`TASK-PID [CPU] FLAGS SECONDS: EVENT: FIELDS`,
//! also with the tgid column), `trace-cmd report` (no flags, more spaces, 6 or 9 decimals) and `perf script`
//! (`TASK PID [CPU] SECONDS: SYSTEM:EVENT: FIELDS`).
//! Not read: the latency format (`trace-cmd report -l`, `latency-format`), which has no `[CPU]`.

use crate::field::{Malformed, unsigned};
use crate::word;
use quietcore_core::{CpuId, Nanos};

/// The task that a CPU was running when an event happened there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task<'a> {
    /// Its name, at most 15 bytes, any bytes; `<idle>` for pid 0, `<...>` when the kernel forgot.
    pub comm: &'a [u8],
    /// Its thread id; 0 is the idle task, -1 one that perf no longer knew.
    pub pid: i32,
}

/// What a CPU was doing when an event happened there: the column `hardirq/softirq` of the flags.
///
/// Source: Linux 6.12, kernel/trace/trace_output.c, `trace_print_lat_fmt`; the PREEMPT_RT patches of 6.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptContext {
    /// `.`: neither an interrupt nor a softirq.
    Task,
    /// `s`: a softirq.
    Softirq,
    /// `h`: an interrupt.
    Interrupt,
    /// `H`: an interrupt inside a softirq.
    InterruptInSoftirq,
    /// `z` and `Z`: a non-maskable interrupt, inside whatever else.
    Nmi,
}

/// The kernel pads a task's name to so many columns.
const COMM_COLUMNS: usize = 16;

/// The columns `TASK-PID [CPU] ` are so long at most, if the thread id has at most 7 digits and the CPU 3.
const COLUMNS_BYTES: usize = 31;

/// What a fraction of so many digits, as a number, has to be multiplied by to be ns; at least one digit.
const NANOS_PER_DIGIT: [u64; 10] =
    [0, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];

/// How many columns the flags have on kernels with the PREEMPT_RT patches for lazy preemption; others print
/// at most six. `need-resched-lazy` is the third there, and `preempt-lazy-depth` the sixth.
const COLUMNS_LAZY: usize = 7;

impl InterruptContext {
    /// From the flags (`d.s2.`, `d..s113`); `None` when these are no flags.
    #[inline(always)]
    fn read(flags: &[u8]) -> Option<Self> {
        let column = if flags.len() == COLUMNS_LAZY { 3 } else { 2 };
        Some(match flags.get(column)? {
            b'.' => Self::Task,
            b's' => Self::Softirq,
            b'h' => Self::Interrupt,
            b'H' => Self::InterruptInSoftirq,
            b'z' | b'Z' => Self::Nmi,
            _ => return None,
        })
    }
}

/// What stands before an event's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix<'a> {
    pub(crate) task: Task<'a>,
    pub(crate) cpu: CpuId,
    /// `None` when the text has no flags.
    pub(crate) context: Option<InterruptContext>,
    pub(crate) at: Nanos,
    /// False when the clock counts something without a unit (`counter`, `x86-tsc`).
    pub(crate) at_has_unit: bool,
    pub(crate) name: &'a [u8],
    pub(crate) fields: &'a [u8],
}

/// The columns before the flags of a line, `TASK-PID [CPU] `, and what they say. Most lines have those of
/// the line before, as one task does several things.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    /// What they and the bytes behind them are; no line has a line break, so at first none has these.
    text: [u8; COLUMNS_BYTES],
    comm_from: u8,
    length: u8,
    pid: i32,
    cpu: CpuId,
}

impl Columns {
    /// Columns that no line has.
    pub(crate) fn none() -> Self {
        Self { text: [b'\n'; COLUMNS_BYTES], comm_from: 0, length: 0, pid: 0, cpu: CpuId::default() }
    }

    /// Columns of the usual width, without tgid.
    #[inline(never)]
    fn read(line: &[u8]) -> Option<Self> {
        let (text, _) = line.split_first_chunk::<COLUMNS_BYTES>()?;
        let (comm, rest) = text.split_at(COMM_COLUMNS);
        let comm = past_spaces(comm)?;
        let (pid, length) = word::padded(rest.strip_prefix(b"-")?)?;
        let [b'[', hundreds, tens, ones, b']', b' ', ..] = &rest[1 + length..] else { return None };
        let cpu = CpuId::new(word::three_digits([*hundreds, *tens, *ones])?).ok()?;
        let (comm_from, length) = (COMM_COLUMNS - comm.len(), COMM_COLUMNS + 1 + length + 6);
        Some(Self { text: *text, comm_from: comm_from as u8, length: length as u8, pid: pid as i32, cpu })
    }
}

/// [`split`] for the form that nearly all lines have: columns of the usual width, no tgid, a time stamp
/// with a dot, spaces for all white space. `None` says nothing about any other. `columns` are those of a
/// line before.
#[inline(always)]
pub(crate) fn split_usual<'a>(line: &'a [u8], columns: &mut Columns) -> Option<Prefix<'a>> {
    let text = line.first_chunk::<COLUMNS_BYTES>()?;
    if *text != columns.text {
        *columns = Columns::read(line)?;
    }
    let task = Task { comm: &text[usize::from(columns.comm_from)..COMM_COLUMNS], pid: columns.pid };
    let rest = past_spaces(&line[usize::from(columns.length)..])?;
    let (context, rest) = match word::before_either(rest, b':', b' ') {
        Some(end) if rest.get(end) == Some(&b' ') => {
            (InterruptContext::read(&rest[..end]), &rest[end + word::spaces(&rest[end..])..])
        }
        _ => (None, rest), // a time stamp
    };
    let (seconds, length) = word::decimal(rest)?;
    let fraction = rest[length..].strip_prefix(b".")?;
    let (nanos, length) = word::decimal(fraction)?;
    let nanos = nanos * *NANOS_PER_DIGIT.get(length)?;
    let at = Nanos(seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?);
    let rest = fraction[length..].strip_prefix(b": ")?;
    let end = word::before_sign(rest, |byte| byte <= b' ' || byte == b':');
    let fields = past_spaces(rest[end..].strip_prefix(b":")?)?;
    Some(Prefix { task, cpu: columns.cpu, context, at, at_has_unit: true, name: &rest[..end], fields })
}

/// What lies behind the spaces at the front; `None` if other white space may come next.
#[inline(always)]
fn past_spaces(text: &[u8]) -> Option<&[u8]> {
    let rest = &text[word::spaces(text)..];
    match rest.first() {
        Some(0..=b' ') => None,
        _ => Some(rest),
    }
}

/// Splits an event line. The caller has already set headers and lost-event lines aside.
#[inline(never)]
pub(crate) fn split(line: &[u8]) -> Result<Prefix<'_>, Malformed> {
    let Some((task, rest)) = task_and_cpu(line) else { return split_perf(line).ok_or(Malformed::NoTask) };
    let close = memchr::memchr(b']', rest).ok_or(Malformed::NoTask)?;
    let cpu = unsigned(&rest[..close]).ok_or(Malformed::Cpu)?;
    let cpu = CpuId::new(cpu).map_err(|_| Malformed::Cpu)?;
    let (context, rest) = flags(&rest[close + 1..]);
    let (at, at_has_unit, rest) = timestamp(rest).ok_or(Malformed::NoTimestamp)?;
    let rest = rest.trim_ascii_start();
    let (name, fields) = match memchr::memchr2(b':', b' ', rest) {
        // perf's tasks that have ended have the number -1, which looks like a name's end.
        Some(end) if rest[end] == b':' => {
            let has_system = rest.get(end + 1).is_some_and(|&byte| byte != b' ');
            if let Some(prefix) = has_system.then(|| split_perf(line)).flatten() {
                return Ok(prefix);
            }
            (&rest[..end], rest[end + 1..].trim_ascii_start())
        }
        _ => (&b"(no name)"[..], rest), // the function tracer's lines have no event name
    };
    Ok(Prefix { task, cpu, context, at, at_has_unit, name, fields })
}

/// `TASK-PID [`: the task, and the text behind the bracket.
fn task_and_cpu(line: &[u8]) -> Option<(Task<'_>, &[u8])> {
    let is_padded = line.get(COMM_COLUMNS) == Some(&b'-');
    let padded = is_padded.then(|| pid_and_bracket(line, COMM_COLUMNS)).flatten();
    padded.or_else(|| memchr::memchr_iter(b'-', line).find_map(|dash| pid_and_bracket(line, dash)))
}

/// Reads `-PID`, an optional `(TGID)`, and `[` at `dash`.
fn pid_and_bracket(line: &[u8], dash: usize) -> Option<(Task<'_>, &[u8])> {
    let after = &line[dash + 1..];
    let digits = after.iter().take(11).take_while(|byte| byte.is_ascii_digit()).count();
    let pid = i32::try_from(unsigned(&after[..digits])?).ok()?;
    let mut rest = after[digits..].trim_ascii_start();
    if rest.first() == Some(&b'(') {
        // `(%7d)` or `(-------)`: looking no further keeps a hostile line linear
        rest = rest[memchr::memchr(b')', &rest[..rest.len().min(16)])? + 1..].trim_ascii_start();
    }
    let rest = rest.strip_prefix(b"[")?;
    if !rest.first()?.is_ascii_digit() {
        return None; // a task's own name may hold "-7 [x"
    }
    Some((Task { comm: line[..dash].trim_ascii_start(), pid }, rest))
}

/// Splits a line of `perf script`: it has a space before the number of the task, and names the system of the
/// event. Anything else is none.
fn split_perf(line: &[u8]) -> Option<Prefix<'_>> {
    memchr::memchr_iter(b'[', line).find_map(|open| {
        let before = line[..open].trim_ascii_end();
        // Of a process and its thread, the latter.
        let digits = before.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let (rest, tid) = before.split_at(before.len() - digits);
        let pid = i32::try_from(unsigned(tid)?).ok()?;
        // -1 for a task that had ended; no other is below 0.
        let (pid, rest) = match rest.strip_suffix(b"-") {
            Some(rest) => ((pid == 1).then_some(-1)?, rest),
            None => (pid, rest),
        };
        let rest = match rest.strip_suffix(b"/") {
            Some(rest) => &rest[..rest.iter().rposition(|byte| !byte.is_ascii_digit())? + 1],
            None => rest,
        };
        let comm = rest.strip_suffix(b" ")?.trim_ascii();
        let after = &line[open + 1..];
        let close = memchr::memchr(b']', after)?;
        let cpu = CpuId::new(unsigned(&after[..close])?).ok()?;
        let (at, at_has_unit, rest) = timestamp(after[close + 1..].trim_ascii_start())?;
        let mut rest = rest.trim_ascii_start();
        // How many of its events a sample stands for.
        let period = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if period > 0 && rest.get(period) == Some(&b' ') {
            rest = rest[period..].trim_ascii_start();
        }
        let system = memchr::memchr2(b':', b' ', rest).filter(|&end| rest[end] == b':')?;
        let rest = &rest[system + 1..];
        let end = memchr::memchr2(b':', b' ', rest).filter(|&end| end > 0 && rest[end] == b':')?;
        let fields = rest[end + 1..].trim_ascii_start();
        let task = Task { comm, pid };
        Some(Prefix { task, cpu, context: None, at, at_has_unit, name: &rest[..end], fields })
    })
}

/// Takes the flags off the front, if there are any.
fn flags(rest: &[u8]) -> (Option<InterruptContext>, &[u8]) {
    let rest = rest.trim_ascii_start();
    match memchr::memchr2(b':', b' ', rest) {
        Some(end) if rest[end] == b' ' => {
            (InterruptContext::read(&rest[..end]), rest[end..].trim_ascii_start())
        }
        _ => (None, rest),
    }
}

/// Reads `SECONDS.FRACTION:`.
fn timestamp(rest: &[u8]) -> Option<(Nanos, bool, &[u8])> {
    let end = memchr::memchr(b':', rest)?;
    let (stamp, after) = (&rest[..end], &rest[end + 1..]);
    let Some(dot) = stamp.iter().position(|&byte| byte == b'.') else {
        return Some((Nanos(unsigned(stamp)?), false, after));
    };
    let fraction = &stamp[dot + 1..];
    if fraction.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(9 - fraction.len() as u32);
    let nanos = unsigned(fraction)?.checked_mul(scale)?;
    let seconds = unsigned(&stamp[..dot])?.checked_mul(1_000_000_000)?;
    Some((Nanos(seconds.checked_add(nanos)?), true, after))
}

#[cfg(test)]
mod tests {
    use super::{Columns, InterruptContext, split, split_usual};
    use crate::field::Malformed;
    use proptest::prelude::{ProptestConfig, Strategy, prop, prop_assert_eq, proptest};
    use quietcore_core::Nanos;

    /// Lines whose parts are the usual ones, or nearly.
    fn line() -> impl Strategy<Value = String> {
        let parts = (
            "[ \ta-c<-]{14,17}",
            "-?[0-9]{0,13}[ \t]{0,7}(\\([ 0-9-]{0,7}\\))?",
            "\\[?[0-9]{0,5}\\]?[ \r]{0,3}",
            "[dNsh.:0-9]{0,8}[ \n]{0,9}",
            "[0-9]{1,12}[.:]?[0-9]{0,10}:?[ \t]{0,2}",
            "[a-z_]{0,12}[: ]?[ \t]?[a-z=0-9 ]{0,20}",
        );
        parts.prop_map(|(comm, pid, cpu, flags, at, event)| [comm, pid, cpu, flags, at, event].concat())
    }

    /// A line of the usual form, and what stands in the place of some of its bytes.
    fn changed_line() -> impl Strategy<Value = Vec<u8>> {
        let bytes = prop::sample::select(&b"0123456789 -[].:\t\nsh(\xff\0"[..]);
        prop::collection::vec((0..96usize, bytes), 0..3).prop_map(|changes| {
            let mut line =
                b"     rcu_preempt-18      [000] d.s1.     1.160815: timer_start: timer=00000000f60a4399 \
                             function=f"
                    .to_vec();
            changes.into_iter().for_each(|(at, byte)| line[at] = byte);
            line
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Goal: a line of the usual form reads as any line does, whatever the line before was.
        #[test]
        fn the_usual_form_reads_as_any(line in line(), changed in prop::collection::vec(changed_line(), 3)) {
            let columns = &mut Columns::none();
            for line in [&changed[0], &changed[0], line.as_bytes(), &changed[1], &changed[2]] {
                if let Some(prefix) = split_usual(line, columns) {
                    prop_assert_eq!(split(line), Ok(prefix));
                }
            }
        }
    }

    /// Goal: the kernel's own lines are of the usual form, as those of `trace-cmd report` are.
    #[test]
    fn the_usual_form_is_usual() {
        for line in [
            "          <idle>-0       [000] d.s2.     1.216480: timer_cancel: timer=00000000f60a4399",
            "          <idle>-0     [003]     0.001500000: timer_cancel:         timer=01",
            "          <idle>-0       [000]   .s2.     1.216480: timer_cancel: timer=00000000f60a4399",
            "  kworker/15:1-H-1234567 [123] d..s113 123456.123456: x: ",
        ] {
            let columns = &mut Columns::none();
            for _ in 0..2 {
                assert_eq!(
                    split_usual(line.as_bytes(), columns).ok_or(()),
                    split(line.as_bytes()).map_err(drop)
                );
            }
        }
    }

    fn read(line: &str) -> (String, i32, usize, u64, String, String) {
        let prefix = split(line.as_bytes()).unwrap_or_else(|why| panic!("{line:?}: {why}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            text(prefix.task.comm),
            prefix.task.pid,
            prefix.cpu.index(),
            prefix.at.as_u64(),
            text(prefix.name),
            text(prefix.fields),
        )
    }

    /// Goal: every form of the same event reads alike. Method: one line per form.
    #[test]
    fn all_forms_of_a_line_read_alike() {
        let expected = ("sh".into(), 42, 3, 1_500_000, "timer_cancel".into(), "timer=01".into());
        for line in [
            "              sh-42      [003] d..1.     0.001500: timer_cancel: timer=01",
            "              sh-42      [003] d..1     0.001500: timer_cancel: timer=01",
            "              sh-42      (  42) [003] d..1.     0.001500: timer_cancel: timer=01",
            "              sh-42      (-----) [003] d..1.     0.001500: timer_cancel: timer=01",
            "              sh-42    [003]     0.001500: timer_cancel:         timer=01",
            "              sh-42    [003]     0.001500000: timer_cancel:         timer=01",
            "sh-42 [003] 0.001500: timer_cancel: timer=01",
        ] {
            assert_eq!(read(line), expected, "{line:?}");
        }
    }

    /// Goal: lines of `perf script` read like others, whatever a task calls itself. Method: its forms, names
    /// that imitate them, and lines that lack a part.
    #[test]
    fn lines_of_perf_read_alike() {
        let expected = |comm: &str| {
            let (name, fields) = ("timer_cancel".to_owned(), "timer=01".to_owned());
            (comm.to_owned(), 42, 3, 1_500_000, name, fields)
        };
        for (line, comm) in [
            (
                "              sh    42 [003]     0.001500000:                timer:timer_cancel: timer=01",
                "sh",
            ),
            ("              sh    42 [003]     0.001500: timer:timer_cancel: timer=01", "sh"),
            ("              sh     7/42 [003]     0.001500:          1 timer:timer_cancel: timer=01", "sh"),
            ("         a 1 [2]    42 [003]     0.001500: timer:timer_cancel: timer=01", "a 1 [2]"),
            ("  a 1 [2] 3.4: x    42 [003]     0.001500: timer:timer_cancel: timer=01", "a 1 [2] 3.4: x"),
            ("kworker/u8:2-ev    42 [003]     0.001500: timer:timer_cancel: timer=01", "kworker/u8:2-ev"),
        ] {
            assert_eq!(read(line), expected(comm), "{line:?}");
        }
        let ended = read("             :-1    -1 [003]     0.001500: timer:timer_cancel: timer=01");
        assert_eq!(ended, (":-1".to_owned(), -1, 3, 1_500_000, expected("").4, expected("").5));
        let other = read("sh    -2 [003]     0.001500: timer:timer_cancel: timer=01");
        assert_eq!((other.1, other.4.as_str()), (2, "timer"), "no line of perf");
        for line in [
            "sh 42 [003] 0.001500: timer_cancel: timer=01",
            "sh 42 [003] 0.001500: timer: cancel: timer=01",
            "sh 42 [003] timer:timer_cancel: timer=01",
            "sh 42 (003) 0.001500: timer:timer_cancel: timer=01",
            "sh42 [003] 0.001500: timer:timer_cancel: timer=01",
            "sh x [003] 0.001500: timer:timer_cancel: timer=01",
            "sh 42 [0x3] 0.001500: timer:timer_cancel: timer=01",
        ] {
            assert_eq!(split(line.as_bytes()).map(|_| ()), Err(Malformed::NoTask), "{line:?}");
        }
    }

    /// Goal: a task's name may hold anything. Method: names that imitate the separators.
    #[test]
    fn a_task_name_may_hold_separators() {
        for comm in ["a-1 [x]", "a [001] b", "x-9", "kworker/u8:2", "-", "(a) [1", "a-3 (b"] {
            let line = format!("{comm:>16}-7       [000] d..1.     1.000000: timer_cancel: timer=01");
            let (read_comm, pid, ..) = read(&line);
            assert_eq!((read_comm.as_str(), pid), (comm.trim_start(), 7), "{line:?}");
        }
    }

    /// Goal: each refusal names its reason. Method: one line per reason.
    #[test]
    fn a_refusal_names_its_reason() {
        for (line, why) in [
            ("hello", Malformed::NoTask),
            ("", Malformed::NoTask),
            ("a-1 [9999] 1.0: x: y", Malformed::Cpu),
            ("a-1 [000] d..1.", Malformed::NoTimestamp),
            ("a-1 [000] d..1. 1.1234567890: x: y", Malformed::NoTimestamp),
            ("a-1 [000] d..1. 99999999999999.000000: x: y", Malformed::NoTimestamp),
        ] {
            assert_eq!(split(line.as_bytes()), Err(why), "{line:?}");
        }
    }

    /// Goal: the flags say what the CPU was doing. Method: each letter, old and new forms, that of
    /// the PREEMPT_RT patches, and none.
    #[test]
    fn the_flags_say_what_the_cpu_was_doing() {
        for (flags, context) in [
            ("d..1.", Some(InterruptContext::Task)),
            ("dNs2", Some(InterruptContext::Softirq)),
            ("dlh2.", Some(InterruptContext::Interrupt)),
            ("d.H2.", Some(InterruptContext::InterruptInSoftirq)),
            ("d.z2.", Some(InterruptContext::Nmi)),
            ("d.Z2.", Some(InterruptContext::Nmi)),
            ("d..s113", Some(InterruptContext::Softirq)),
            ("...s.13", Some(InterruptContext::Softirq)),
            ("dNLh3..", Some(InterruptContext::Interrupt)),
            ("d...2..", Some(InterruptContext::Task)),
            ("d.s?2..", None),
            ("d.?2.", None),
            ("x", None),
            ("", None),
        ] {
            let line = format!("sh-42 [003] {flags} 0.001500: timer_cancel: timer=01");
            assert_eq!(split(line.as_bytes()).map(|prefix| prefix.context), Ok(context), "{flags:?}");
        }
    }

    /// Goal: a clock without a unit is told apart.
    #[test]
    fn a_counter_clock_has_no_unit() {
        let prefix = split(b"a-1 [000] d..1. 12345: x: y").unwrap();
        assert_eq!((prefix.at, prefix.at_has_unit), (Nanos(12345), false));
    }
}
