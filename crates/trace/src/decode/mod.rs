//! From a line of text to a typed event.
//!
//! An event without a type of its own is [`Event::Unknown`], never an error; an event that has a
//! type but misses a field of it is [`Malformed`], because a figure would silently be wrong.

mod sched;
mod timer;
mod timer_migration;

use crate::event::{Event, IpiPurpose, NoiseSource, Record, SoftirqStep, SpanStep, SystemInterrupt};
use crate::field::{Fields, Malformed, hexadecimal, unsigned};
use crate::line::{Columns, Prefix, split, split_usual};
use quietcore_core::{CpuId, CpuSet, Nanos};

/// Reads one event line (without its line break); `line` of the result is 0.
///
/// # Errors
/// [`Malformed`] names what is missing. Cost: about 60 ns, no allocation except for the CPU set
/// of `ipi_send_cpumask`. Any thread.
pub fn parse_line(line: &[u8]) -> Result<Record<'_>, Malformed> {
    match split_usual(line, &mut Columns::none()) {
        Some(prefix) => record(0, &prefix),
        None => record(0, &split(line)?),
    }
}

#[inline(always)]
pub(crate) fn record<'a>(line: u64, prefix: &Prefix<'a>) -> Result<Record<'a>, Malformed> {
    let event = event(prefix.name, prefix.fields)?;
    let Prefix { task, cpu, context, at, .. } = *prefix;
    Ok(Record { line, task, cpu, context, at, event })
}

/// The event `name`, by the family that its first letters name. The families are functions of their own, to
/// which this one only jumps.
fn event<'a>(name: &[u8], text: &'a [u8]) -> Result<Event<'a>, Malformed> {
    match name {
        [b't', b'm', b'i', b'g', b'r', b'_', rest @ ..] => timer_migration::event(rest, text),
        [b't', b'i', b'm', b'e', b'r', b'_', rest @ ..] => timer::wheel_event(rest, text),
        [b'h', b'r', b't', b'i', b'm', b'e', b'r', b'_', rest @ ..] => timer::hrtimer_event(rest, text),
        [b's', b'c', b'h', b'e', b'd', b'_', rest @ ..] => sched::event(rest, text),
        [b's', b'o', b'f', b't', b'i', b'r', b'q', b'_', rest @ ..] => softirq(rest, text),
        [b'i', b'p', b'i', b'_', rest @ ..] => ipi(rest, text),
        [b'w', b'o', b'r', b'k', b'q', b'u', b'e', b'u', b'e', b'_', rest @ ..] => work(rest, text),
        b"tick_stop" => timer::tick_stop(text),
        b"itimer_state" | b"itimer_expire" => timer::itimer(name, text),
        b"tracing_mark_write" | b"print" => Ok(Event::Mark { text }),
        b"irq_handler_entry" => device_interrupt(SpanStep::Entry, text),
        b"irq_handler_exit" => device_interrupt(SpanStep::Exit, text),
        b"nmi_handler" => nmi(text),
        b"csd_queue_cpu" => call_queued(text),
        b"irq_noise" => noise(NoiseSource::Interrupt, text),
        b"thread_noise" => noise(NoiseSource::Task, text),
        b"nmi_noise" => noise(NoiseSource::Nmi, text),
        b"cpu_idle" => cpu_idle(text),
        _ => Ok(system_interrupt(name).unwrap_or(Event::Unknown)),
    }
}

#[inline(never)]
fn device_interrupt(step: SpanStep, text: &[u8]) -> Result<Event<'_>, Malformed> {
    let fields = &mut Fields::new(text);
    let number = fields.number("irq=")?;
    // A name may hold spaces; nothing follows it.
    let name = match step {
        SpanStep::Entry => fields.rest("name=").ok_or(Malformed::MissingField("name="))?,
        SpanStep::Exit => b"",
    };
    Ok(Event::DeviceInterrupt { step, number, name })
}

/// `irq_vectors:*`: their text is the number of a vector, which each kernel numbers as it likes.
#[inline(never)]
pub(crate) fn system_interrupt(name: &[u8]) -> Option<Event<'static>> {
    let entry = name.strip_suffix(b"_entry").map(|name| (SpanStep::Entry, name));
    let (step, name) = entry.or_else(|| Some((SpanStep::Exit, name.strip_suffix(b"_exit")?)))?;
    Some(Event::SystemInterrupt { step, interrupt: SystemInterrupt::from_name(name)? })
}

#[inline(never)]
fn nmi(text: &[u8]) -> Result<Event<'_>, Malformed> {
    let end = memchr::memchr(b'(', text).ok_or(Malformed::MissingField("()"))?;
    let after = &text[end..];
    let key = b"delta_ns: ";
    let at = memchr::memmem::find(after, key).ok_or(Malformed::MissingField("delta_ns:"))?;
    let word = after[at + key.len()..].split(|&byte| byte == b' ').next().unwrap_or_default();
    // A clock that was set meanwhile makes it negative.
    let took = crate::field::signed(word).ok_or(Malformed::NotANumber("delta_ns:"))?;
    Ok(Event::NmiHandled { handler: text[..end].trim_ascii(), took: Nanos(took.max(0) as u64) })
}

/// `NAME:NUMBER start S.N duration N ns`; an NMI has no name.
#[inline(never)]
fn noise(source: NoiseSource, text: &[u8]) -> Result<Event<'_>, Malformed> {
    let (start, duration) = (b"start ", b" duration ");
    let end = memchr::memmem::rfind(text, duration).ok_or(Malformed::MissingField("duration"))?;
    let took = text[end + duration.len()..].trim_ascii().strip_suffix(b" ns").and_then(unsigned);
    let took = Nanos(took.ok_or(Malformed::NotANumber("duration"))?);
    let begin = memchr::memmem::rfind(&text[..end], start).ok_or(Malformed::MissingField("start"))?;
    let head = text[..begin].trim_ascii();
    // A task's name may hold colons, too.
    let name = memchr::memrchr(b':', head).map_or(head, |colon| &head[..colon]);
    Ok(Event::Noise { source, name, took })
}

#[inline(never)]
fn softirq<'a>(name: &[u8], text: &'a [u8]) -> Result<Event<'a>, Malformed> {
    let fields = &mut Fields::new(text);
    let step = match name {
        b"noise" => return noise(NoiseSource::Softirq, text),
        b"raise" => SoftirqStep::Raise,
        b"entry" => SoftirqStep::Entry,
        b"exit" => SoftirqStep::Exit,
        _ => return Ok(Event::Unknown),
    };
    let vector = u8::try_from(fields.number("vec=")?).map_err(|_| Malformed::NotANumber("vec="))?;
    Ok(Event::Softirq { step, vector })
}

#[inline(never)]
fn ipi<'a>(name: &[u8], text: &'a [u8]) -> Result<Event<'a>, Malformed> {
    let mut fields = Fields::new(text);
    match name {
        b"send_cpu" => Ok(Event::IpiSendCpu { to: fields.cpu("cpu=")?, purpose: functions(&mut fields) }),
        b"send_cpumask" => {
            let to = cpu_mask(&mut fields, "cpumask=")?;
            Ok(Event::IpiSendMask { to, purpose: functions(&mut fields) })
        }
        b"raise" => {
            let purpose = IpiPurpose { reason: in_brackets(text), ..IpiPurpose::default() };
            Ok(Event::IpiSendMask { to: cpu_mask(&mut fields, "target_mask=")?, purpose })
        }
        b"entry" => Ok(Event::IpiHandled { step: SpanStep::Entry, reason: in_brackets(text) }),
        b"exit" => Ok(Event::IpiHandled { step: SpanStep::Exit, reason: in_brackets(text) }),
        _ => Ok(Event::Unknown),
    }
}

#[inline(never)]
fn call_queued(text: &[u8]) -> Result<Event<'_>, Malformed> {
    let mut fields = Fields::new(text);
    let to = fields.cpu("cpu=")?;
    Ok(Event::CallQueued { to, function: fields.function("func=").unwrap_or_default() })
}

/// The state is a number of 32 bits; -1 says that the CPU leaves.
#[inline(never)]
fn cpu_idle(text: &[u8]) -> Result<Event<'_>, Malformed> {
    let fields = &mut Fields::new(text);
    let state = u32::try_from(fields.number("state=")?).map_err(|_| Malformed::NotANumber("state="))?;
    Ok(Event::CpuIdle { cpu: fields.cpu("cpu_id=")?, state: (state != u32::MAX).then_some(state) })
}

/// The functions that `ipi_send_*` name.
fn functions<'a>(fields: &mut Fields<'a>) -> IpiPurpose<'a> {
    let callsite = fields.function("callsite=").unwrap_or_default();
    IpiPurpose { callsite, callback: fields.function("callback=").unwrap_or_default(), reason: b"" }
}

/// What stands in the last round brackets.
fn in_brackets(text: &[u8]) -> &[u8] {
    let inner = text.trim_ascii_end().strip_suffix(b")");
    inner.and_then(|text| Some(&text[memchr::memrchr(b'(', text)? + 1..])).unwrap_or_default()
}

/// A mask as ftrace prints it (`00000000,000000fb`: words of eight digits), or as `trace-cmd report` does
/// (`0-1,3`, or `ARRAY[03, 00, ...]`: bytes, lowest CPU first).
fn cpu_mask(fields: &mut Fields<'_>, key: &'static str) -> Result<CpuSet, Malformed> {
    let refused = |_| Malformed::NotANumber(key);
    if let Some(bytes) = fields.array(key) {
        let bytes = bytes.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).enumerate();
        return bytes.filter(|(_, byte)| !byte.is_empty()).try_fold(
            CpuSet::new(),
            |mut set, (index, byte)| {
                let bits = hexadecimal(byte).ok_or(Malformed::NotANumber(key))?;
                for bit in (0..8).filter(|bit| bits >> bit & 1 == 1) {
                    set.insert(CpuId::new(index as u64 * 8 + bit).map_err(refused)?);
                }
                Ok(set)
            },
        );
    }
    let text = std::str::from_utf8(fields.text(key)?).map_err(|_| Malformed::NotANumber(key))?;
    // A list, too, may be of digits and commas alone; no CPU's number has eight digits.
    let is_mask = text.rsplit(',').next().is_some_and(|word| word.len() == 8);
    if is_mask { CpuSet::from_mask(text).map_err(refused) } else { text.parse().map_err(refused) }
}

/// The work events mix `work struct=PTR function=F`, `work struct PTR: function F` and spaces.
#[inline(never)]
fn work<'a>(name: &[u8], text: &'a [u8]) -> Result<Event<'a>, Malformed> {
    let words = &mut text.strip_prefix(b"work struct").unwrap_or(text).trim_ascii_start();
    let stripped = words.strip_prefix(b"=").unwrap_or(words);
    let end = memchr::memchr(b' ', stripped).unwrap_or(stripped.len());
    let work = crate::field::pointer(&stripped[..end]).ok_or(Malformed::NotAPointer("work struct"))?;
    let fields = &mut Fields::new(&stripped[end..]);
    match name {
        b"queue_work" => {
            let function = fields.function("function=").unwrap_or_default();
            // -1 or WORK_CPU_UNBOUND (the number of possible CPUs) stands for "anywhere"; only a
            // request that was honoured is a CPU, so the resolved field decides.
            let target = fields.text("cpu=")?;
            let cpu = unsigned(target).and_then(|number| CpuId::new(number).ok());
            Ok(Event::WorkQueue { work, function, cpu })
        }
        b"activate_work" => Ok(Event::WorkActivate { work }),
        b"execute_start" => {
            let rest = stripped[end..].trim_ascii_start();
            let function = rest.strip_prefix(b"function ").unwrap_or_default();
            Ok(Event::WorkStart { work, function: function.trim_ascii() })
        }
        b"execute_end" => Ok(Event::WorkEnd { work }),
        _ => Ok(Event::Unknown),
    }
}
