//! Events as Perfetto stores them, printed as the kernel prints them.
//!
//! Perfetto gives each event of the kernel that it knows a message of its own, with the fields that the
//! kernel has. Here is which message is which event, and in which words the kernel says it. Others are
//! printed under a name that no event has, so that they are counted and none is taken for what it is not.
//!
//! Source: Perfetto's published schema, the PyPI package `perfetto`, `perfetto_trace_pb2` (Apache-2.0), for
//! the numbers; Linux 6.18 include/trace/events for the words.

use super::symbols::SequenceSymbols;
use super::wire::{BrokenMessage, WireFields, WireValue};
use crate::binary::expression::push_hexadecimal;
use crate::binary::print::one_line;
use crate::decode::system_interrupt;
use quietcore_core::softirq::Vector;
use std::fmt;
use std::io::Write;

/// No event that is printed has a field with a higher number.
const FIELDS: usize = 8;

/// `FtraceEvent.generic`.
const GENERIC: u32 = 327;
/// Of these the fields, each with its name, are what the kernel's line says.
const GENERIC_READ: [&[u8]; 1] = [b"ipi_send_cpu"];
/// Numbers from here on are addresses of the kernel.
const ADDRESSES: u64 = 1 << 63;

/// How a field is printed.
#[derive(Clone, Copy, Debug)]
enum PrintedForm {
    /// A number without a sign.
    Number,
    /// One of 64 bits that may be negative; one of 32 bits has its sign extended.
    Signed,
    /// What identifies an object.
    Object,
    /// A function: the number of its name, if the names were recorded.
    Function,
    /// Letters.
    Text,
    /// A CPU, in three digits.
    Cpu,
    /// A vector of a softirq, and its name.
    Softirq,
    /// Whether a handler took the interrupt.
    Handled,
    /// Jiffies from now (the next field) to then.
    Timeout,
    /// A timer's flags, with its base's CPU and its bucket.
    TimerFlags,
    /// The mode of an hrtimer.
    Mode,
}

/// A field, and the words before it.
struct PrintedField {
    words: &'static str,
    number: usize,
    form: PrintedForm,
}

/// An event of the kernel: its number in `FtraceEvent`, its name, its fields, and what stands behind them.
struct PrintedEvent {
    number: u32,
    name: &'static str,
    fields: &'static [PrintedField],
    end: &'static str,
}

const fn field(words: &'static str, number: usize, form: PrintedForm) -> PrintedField {
    PrintedField { words, number, form }
}

const fn event(number: u32, name: &'static str, fields: &'static [PrintedField]) -> PrintedEvent {
    PrintedEvent { number, name, fields, end: "" }
}

use PrintedForm::{Cpu, Function, Handled, Mode, Number, Object, Signed, Softirq, Text, Timeout, TimerFlags};

const WOKEN: &[PrintedField] = &[
    field("comm=", 1, Text),
    field(" pid=", 2, Signed),
    field(" prio=", 3, Signed),
    field(" target_cpu=", 5, Cpu),
];
const WORK: &[PrintedField] = &[field("work struct ", 1, Object), field(": function ", 2, Function)];
const REASON: &[PrintedField] = &[field("(", 1, Text)];
const TIMER: &[PrintedField] = &[field("timer=", 1, Object)];
const HRTIMER: &[PrintedField] = &[field("hrtimer=", 1, Object)];
const VECTOR: &[PrintedField] = &[field("vec=", 1, Softirq)];

/// By number.
const EVENTS: &[PrintedEvent] = &[
    event(3, "tracing_mark_write", &[field("", 2, Text)]),
    event(13, "cpu_idle", &[field("state=", 1, Number), field(" cpu_id=", 2, Number)]),
    event(17, "sched_wakeup", WOKEN),
    event(20, "sched_waking", WOKEN),
    PrintedEvent { end: ")", ..event(21, "ipi_entry", REASON) },
    PrintedEvent { end: ")", ..event(22, "ipi_exit", REASON) },
    event(24, "softirq_entry", VECTOR),
    event(25, "softirq_exit", VECTOR),
    event(26, "softirq_raise", VECTOR),
    event(36, "irq_handler_entry", &[field("irq=", 1, Signed), field(" name=", 2, Text)]),
    event(37, "irq_handler_exit", &[field("irq=", 1, Signed), field(" ret=", 2, Handled)]),
    event(56, "workqueue_activate_work", &[field("work struct ", 1, Object)]),
    event(57, "workqueue_execute_end", WORK),
    event(58, "workqueue_execute_start", WORK),
    event(
        59,
        "workqueue_queue_work",
        &[
            field("work struct=", 1, Object),
            field(" function=", 2, Function),
            field(" req_cpu=", 4, Signed),
            field(" cpu=", 5, Signed),
        ],
    ),
    event(114, "sched_wakeup_new", WOKEN),
    event(
        491,
        "sched_migrate_task",
        &[
            field("comm=", 1, Text),
            field(" pid=", 2, Signed),
            field(" prio=", 3, Signed),
            field(" orig_cpu=", 4, Signed),
            field(" dest_cpu=", 5, Signed),
        ],
    ),
    event(
        551,
        "hrtimer_start",
        &[
            field("hrtimer=", 1, Object),
            field(" function=", 2, Function),
            field(" expires=", 3, Signed),
            field(" softexpires=", 4, Signed),
            field(" mode=", 5, Mode),
        ],
    ),
    event(552, "hrtimer_cancel", HRTIMER),
    event(
        553,
        "hrtimer_expire_entry",
        &[field("hrtimer=", 1, Object), field(" function=", 3, Function), field(" now=", 2, Signed)],
    ),
    event(554, "hrtimer_expire_exit", HRTIMER),
    event(
        555,
        "timer_start",
        &[
            field("timer=", 1, Object),
            field(" function=", 2, Function),
            field(" expires=", 3, Timeout),
            field(" bucket_expiry=", 7, Number),
            field(" cpu=", 6, TimerFlags),
        ],
    ),
    event(556, "timer_cancel", TIMER),
    event(
        557,
        "timer_expire_entry",
        &[
            field("timer=", 1, Object),
            field(" function=", 3, Function),
            field(" now=", 2, Number),
            field(" baseclk=", 4, Number),
        ],
    ),
    event(558, "timer_expire_exit", TIMER),
    event(559, "local_timer_entry", &[field("vector=", 1, Signed)]),
    event(560, "local_timer_exit", &[field("vector=", 1, Signed)]),
];

/// What one event says.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventFields<'a> {
    values: [Option<WireValue<'a>>; FIELDS],
}

impl<'a> EventFields<'a> {
    pub(super) fn read(message: &'a [u8]) -> Result<Self, BrokenMessage> {
        let mut values = [None; FIELDS];
        for field in WireFields::of(message) {
            let (number, value) = field?;
            if let Some(place) = values.get_mut(number as usize) {
                *place = Some(value);
            }
        }
        Ok(Self { values })
    }

    pub(super) fn number(&self, field: usize) -> Option<u64> {
        self.values[field]?.number()
    }

    pub(super) fn bytes(&self, field: usize) -> Option<&'a [u8]> {
        self.values[field]?.bytes()
    }
}

/// Writes `NAME: FIELDS` of event `number`; what its producer left out is left out here, too.
pub(super) fn write_event(
    number: u32,
    message: &[u8],
    symbols: &mut SequenceSymbols<'_>,
    out: &mut Vec<u8>,
) -> Result<(), BrokenMessage> {
    let fields = EventFields::read(message)?;
    if number == GENERIC {
        return write_generic(message, out);
    }
    let Some(event) = EVENTS.iter().find(|event| event.number == number) else {
        put(out, format_args!("perfetto_event_{number}:"));
        return Ok(());
    };
    out.extend_from_slice(event.name.as_bytes());
    out.extend_from_slice(b": ");
    let begun = out.len();
    for PrintedField { words, number, form } in event.fields {
        if let Some(value) = fields.values[*number] {
            out.extend_from_slice(words.as_bytes());
            form.write(value, &fields, symbols, out);
        }
    }
    out.extend_from_slice(event.end.as_bytes());
    one_line(&mut out[begun..]);
    Ok(())
}

/// Writes an event that the producer had no message for: its name, and fields without the kernel's words.
fn write_generic(message: &[u8], out: &mut Vec<u8>) -> Result<(), BrokenMessage> {
    let begun = out.len();
    let name = EventFields::read(message)?.bytes(1).unwrap_or_default();
    let is_plain = name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let is_read = is_plain && (GENERIC_READ.contains(&name) || system_interrupt(name).is_some());
    out.extend_from_slice(if is_plain { name } else { b"perfetto_event" });
    // The words of others are not known, so none of them is taken for the kernel's line.
    out.extend_from_slice(if is_read { b":" } else { b"_without_format:" });
    for next in WireFields::of(message) {
        let (2, value) = next? else { continue };
        let field = EventFields::read(value.bytes().unwrap_or_default())?;
        let name = field.bytes(1).unwrap_or_default();
        out.push(b' ');
        out.extend_from_slice(name);
        out.push(b'=');
        let is_function = matches!(name, b"callsite" | b"callback");
        let number = field.number(4).or(field.number(5));
        match (field.bytes(3), number) {
            (Some(text), _) => out.extend_from_slice(text),
            (None, Some(number)) if is_function || number >= ADDRESSES => {
                put(out, format_args!("0x{number:x}"))
            }
            (None, Some(number)) => put(out, format_args!("{number}")),
            (None, None) => {}
        }
    }
    one_line(&mut out[begun..]);
    Ok(())
}

/// The flags of a wheel timer, as the kernel has them in one number.
mod timer_flags {
    pub(super) const CPU: u64 = 0x3_ffff;
    pub(super) const BUCKET_SHIFT: u32 = 22;
    pub(super) const LETTERS: [(u64, &str); 4] =
        [(0x4_0000, "M"), (0x8_0000, "D"), (0x10_0000, "P"), (0x20_0000, "I")];
}

/// The modes of an hrtimer, as the kernel has them in one number, besides ABS and REL.
const MODES: [(u64, &str); 3] = [(2, "PINNED"), (4, "SOFT"), (8, "HARD")];

impl PrintedForm {
    fn write(
        self,
        value: WireValue<'_>,
        fields: &EventFields<'_>,
        symbols: &mut SequenceSymbols<'_>,
        out: &mut Vec<u8>,
    ) {
        let number = match (self, value) {
            (Self::Text, WireValue::Bytes(text)) => return out.extend_from_slice(text),
            (Self::Text, _) | (_, WireValue::Bytes(_)) => return,
            (_, WireValue::Number(number)) => number,
        };
        match self {
            Self::Number | Self::Text => put(out, format_args!("{number}")),
            Self::Signed => put(out, format_args!("{}", number as i64)),
            Self::Cpu => put(out, format_args!("{number:03}")),
            Self::Object => push_hexadecimal(number, 16, out),
            Self::Function => symbols.write(number, out),
            Self::Softirq => {
                let vector = u8::try_from(number).ok().and_then(Vector::from_index);
                let name = vector.filter(|vector| *vector <= Vector::RCU).map_or("?", |vector| vector.name());
                put(out, format_args!("{number} [action={name}]"));
            }
            Self::Handled => out.extend_from_slice(if number == 0 { b"unhandled" } else { b"handled" }),
            Self::Timeout => {
                let now = fields.number(4).unwrap_or(number);
                put(out, format_args!("{number} [timeout={}]", number.wrapping_sub(now) as i64));
            }
            Self::TimerFlags => {
                let (cpu, bucket) = (number & timer_flags::CPU, number >> timer_flags::BUCKET_SHIFT);
                put(out, format_args!("{cpu} idx={bucket} flags="));
                write_set(number, &timer_flags::LETTERS, out);
            }
            Self::Mode => {
                out.extend_from_slice(if number & 1 == 0 { b"ABS" } else { b"REL" });
                for (_, name) in MODES.iter().filter(|(bit, _)| number & bit != 0) {
                    put(out, format_args!("|{name}"));
                }
            }
        }
    }
}

/// Writing to memory does not fail.
fn put(out: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

/// Writes the names of the bits that are set.
fn write_set(bits: u64, names: &[(u64, &str)], out: &mut Vec<u8>) {
    let set = names.iter().filter(|(bit, _)| bits & bit != 0);
    let names: Vec<&str> = set.map(|(_, name)| *name).collect();
    out.extend_from_slice(names.join("|").as_bytes());
}
