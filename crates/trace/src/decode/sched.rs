//! `sched:sched_*`: switches, wake-ups, migrations, in ftrace's and in trace-cmd's words.
//!
//! Task names may hold spaces, colons and brackets, so they are cut at the key that follows, or,
//! in trace-cmd's short form (`comm:pid [priority]`), from the right.

use super::cpu;
use crate::event::{Event, WakeStep};
use crate::field::{Fields, Malformed, signed, unsigned};
use crate::line::Task;
use quietcore_core::CpuId;

/// `sched_<name>`.
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
            target: cpu(fields, "target_cpu=")?,
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
    let fields = &mut Fields::new(text);
    if let Some(comm) = fields.between("prev_comm=", " prev_pid=") {
        let previous = Task { comm, pid: pid(fields, "prev_pid=")? };
        let comm = fields.between("next_comm=", " next_pid=").ok_or(Malformed::MissingField("next_comm="))?;
        let next = Task { comm, pid: pid(fields, "next_pid=")? };
        return Ok(Event::SchedSwitch { previous, next, next_priority: priority(fields, "next_prio=")? });
    }
    let missing = Malformed::MissingField("prev_comm=");
    let arrow = memchr::memmem::rfind(text, b" ==> ").ok_or(missing)?;
    let before = &text[..arrow];
    let state = memchr::memrchr(b' ', before).ok_or(missing)?;
    let (previous, _) = short_task(&before[..state]).ok_or(missing)?;
    let (next, next_priority) = short_task(&text[arrow + 5..]).ok_or(missing)?;
    Ok(Event::SchedSwitch { previous, next, next_priority })
}

fn migrate<'a>(text: &'a [u8]) -> Result<Event<'a>, Malformed> {
    let fields = &mut Fields::new(text);
    let comm = fields.between("comm=", " pid=").ok_or(Malformed::MissingField("comm="))?;
    Ok(Event::SchedMigrate {
        task: Task { comm, pid: pid(fields, "pid=")? },
        from: cpu(fields, "orig_cpu=")?,
        to: cpu(fields, "dest_cpu=")?,
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
