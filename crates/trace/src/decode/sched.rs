//! `sched:sched_*`: switches, wake-ups, migrations, in ftrace's and in trace-cmd's words.
//!
//! Task names may hold spaces, colons and brackets, so they are cut at the key that follows, or,
//! in trace-cmd's short form (`comm:pid [priority]`), from the right.

use crate::event::{Event, WakeStep};
use crate::field::{Fields, Malformed, find_last, signed, unsigned};
use crate::line::Task;
use quietcore_core::CpuId;

/// The longest name of a task: 16 bytes with its zero.
const COMM_BYTES_MAX: usize = 15;

/// `sched_<name>`.
#[inline(never)]
pub(super) fn event<'a>(name: &[u8], text: &'a [u8]) -> Result<Event<'a>, Malformed> {
    let step = match name {
        b"switch" => return switch(text),
        b"migrate_task" => return migrate(text),
        b"waking" => WakeStep::Waking,
        b"wakeup" => WakeStep::Wakeup,
        b"wakeup_new" => WakeStep::WakeupNew,
        _ => return Ok(Event::Unknown),
    };
    let fields = &mut Fields::new(text);
    if let Some(comm) = fields.between("comm=", " pid=") {
        return Ok(Event::SchedWake {
            step,
            task: Task { comm, pid: pid(fields, "pid=")? },
            priority: priority(fields, "prio=")?,
            target: fields.cpu("target_cpu=")?,
        });
    }
    let missing = Malformed::MissingField("comm=");
    let cpu_at = memchr::memmem::rfind(text, b" CPU:").ok_or(missing)?;
    let target = unsigned(text[cpu_at + 5..].trim_ascii())
        .and_then(|number| CpuId::new(number).ok())
        .ok_or(Malformed::NotACpu("CPU:"))?;
    let head = &text[..cpu_at];
    let head = head.strip_suffix(b" success=1").or(head.strip_suffix(b" success=0")).unwrap_or(head);
    let (task, priority) = short_task(head).ok_or(missing)?;
    Ok(Event::SchedWake { step, task, priority, target })
}

fn switch<'a>(text: &'a [u8]) -> Result<Event<'a>, Malformed> {
    if let Some(arrow) = kernel_arrow(text) {
        let (before, after) = (&mut Fields::new(&text[..arrow]), &mut Fields::new(&text[arrow + 5..]));
        let no = Malformed::MissingField;
        let comm = before.between("prev_comm=", " prev_pid=").ok_or(no("prev_comm="))?;
        let previous = Task { comm, pid: pid(before, "prev_pid=")? };
        let comm = after.between("next_comm=", " next_pid=").ok_or(no("next_comm="))?;
        let next = Task { comm, pid: pid(after, "next_pid=")? };
        return Ok(Event::SchedSwitch { previous, next, next_priority: priority(after, "next_prio=")? });
    }
    let missing = Malformed::MissingField("prev_comm=");
    let arrow = memchr::memmem::rfind(text, b" ==> ").ok_or(missing)?;
    let before = &text[..arrow];
    let state = memchr::memrchr(b' ', before).ok_or(missing)?;
    let (previous, _) = short_task(&before[..state]).ok_or(missing)?;
    let (next, next_priority) = short_task(&text[arrow + 5..]).ok_or(missing)?;
    Ok(Event::SchedSwitch { previous, next, next_priority })
}

/// Where ` ==> ` stands between two tasks in the kernel's own form. Either name may hold the same
/// words, so the place is found from the end: a name has at most 15 bytes.
fn kernel_arrow(text: &[u8]) -> Option<usize> {
    const ARROW: &[u8] = b" ==> next_comm=";
    let name_end = find_last(text, b" next_pid=")?;
    let from = name_end.saturating_sub(COMM_BYTES_MAX + ARROW.len());
    Some(from + memchr::memmem::find(&text[from..name_end], ARROW)?)
}

fn migrate<'a>(text: &'a [u8]) -> Result<Event<'a>, Malformed> {
    let fields = &mut Fields::new(text);
    let comm = fields.between("comm=", " pid=").ok_or(Malformed::MissingField("comm="))?;
    Ok(Event::SchedMigrate {
        task: Task { comm, pid: pid(fields, "pid=")? },
        from: fields.cpu("orig_cpu=")?,
        to: fields.cpu("dest_cpu=")?,
    })
}

/// `comm:pid [priority]`, as trace-cmd's scheduler plugin prints a task.
fn short_task(text: &[u8]) -> Option<(Task<'_>, i32)> {
    let text = text.trim_ascii().strip_suffix(b"]")?;
    let open = memchr::memmem::rfind(text, b" [")?;
    let priority = i32::try_from(signed(&text[open + 2..])?).ok()?;
    let task = &text[..open];
    let colon = memchr::memrchr(b':', task)?;
    let pid = i32::try_from(unsigned(&task[colon + 1..])?).ok()?;
    Some((Task { comm: &task[..colon], pid }, priority))
}

fn pid(fields: &mut Fields<'_>, key: &'static str) -> Result<i32, Malformed> {
    i32::try_from(fields.signed(key)?).map_err(|_| Malformed::NotANumber(key))
}

fn priority(fields: &mut Fields<'_>, key: &'static str) -> Result<i32, Malformed> {
    pid(fields, key)
}

#[cfg(test)]
mod tests {
    use super::event;
    use crate::event::Event;

    /// Names that imitate the kernel's words; any task can call itself so.
    const NAMES: [&str; 9] = [
        "sh",
        "",
        "x pid=1 prio=1",
        " prev_pid=1",
        "a ==> b",
        " next_comm=x",
        "a:1 [2] S",
        " pid=",
        " next_pid=1",
    ];

    /// Goal: a task's own name cannot falsify an event. Method: every pair of hostile names.
    #[test]
    fn a_task_name_cannot_falsify_an_event() {
        for previous in NAMES {
            for next in NAMES {
                let text = format!(
                    "prev_comm={previous} prev_pid=7 prev_prio=120 prev_state=R ==> \
                     next_comm={next} next_pid=8 next_prio=9"
                );
                match event(b"switch", text.as_bytes()) {
                    Ok(Event::SchedSwitch { previous: from, next: to, next_priority }) => {
                        assert_eq!((from.pid, to.pid, next_priority), (7, 8, 9), "{text:?}");
                        assert_eq!(from.comm, previous.as_bytes(), "{text:?}");
                        assert_eq!(to.comm, next.as_bytes(), "{text:?}");
                    }
                    other => panic!("{text:?}: {other:?}"),
                }
            }
            let text = format!("comm={previous} pid=7 prio=120 target_cpu=001");
            match event(b"waking", text.as_bytes()) {
                Ok(Event::SchedWake { task, priority, target, .. }) => {
                    assert_eq!((task.pid, priority, target.index()), (7, 120, 1), "{text:?}");
                }
                other => panic!("{text:?}: {other:?}"),
            }
        }
    }
}
