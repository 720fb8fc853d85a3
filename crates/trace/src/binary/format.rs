//! Event formats: what tracefs says in `events/SYSTEM/EVENT/format` about the bytes of a tracepoint's events.

use super::expression::push_hexadecimal;
use super::field::{EventField, FieldShape};
use super::names::KernelNames;
use super::print::{PrintFormat, one_line};

/// The bytes and the words of one tracepoint.
#[derive(Debug)]
pub(crate) struct EventFormat {
    id: u16,
    name: Box<str>,
    fields: Box<[EventField]>,
    /// `None` where it needs what we do not understand; its events are printed field by field.
    print: Option<PrintFormat>,
    /// Fields that name a task: its number, and what it is called.
    tasks: Box<[[EventField; 2]]>,
}

/// Where every event says what its CPU was doing.
#[derive(Debug)]
pub(crate) struct CommonFields {
    flags: EventField,
    preempt_count: EventField,
    pid: EventField,
}

impl CommonFields {
    /// The task that the CPU was running.
    pub(crate) fn pid(&self, event: &[u8]) -> i32 {
        self.pid.number(event).map_or(0, |number| number.bits as i32)
    }

    /// What the CPU was doing, as tracefs prints it: interrupts off, a switch of tasks is due, interrupt or
    /// softirq, how often preemption and migration are off.
    pub(crate) fn letters(&self, event: &[u8]) -> [u8; 5] {
        let number = |field: &EventField| field.number(event).map_or(0, |number| number.bits);
        context_letters(number(&self.flags), number(&self.preempt_count))
    }
}

fn context_letters(flags: u64, counts: u64) -> [u8; 5] {
    let has = |bit: u64| flags & bit != 0;
    let interrupts = match (has(0x01), has(0x80)) {
        (true, true) => b'D',
        (true, false) => b'd',
        (false, true) => b'b',
        (false, false) => b'.',
    };
    let switch = match (has(0x04), has(0x20)) {
        (true, true) => b'N',
        (true, false) => b'n',
        (false, true) => b'p',
        (false, false) => b'.',
    };
    let context = match (has(0x40), has(0x08), has(0x10)) {
        (true, true, _) => b'Z',
        (true, false, _) => b'z',
        (false, true, true) => b'H',
        (false, true, false) => b'h',
        (false, false, true) => b's',
        (false, false, false) => b'.',
    };
    let count = |count: u64| match count & 15 {
        0 => b'.',
        count => b"0123456789abcdef"[count as usize],
    };
    [interrupts, switch, context, count(counts), count(counts >> 4)]
}

/// The formats of a recording, by the numbers that its events begin with.
#[derive(Debug, Default)]
pub(crate) struct EventFormats {
    by_id: Vec<Option<EventFormat>>,
    common: Option<CommonFields>,
    operators: usize,
}

/// The operators of all formats that are kept: ten thousand are in all formats of Linux 6.18.
const OPERATORS_MAX: usize = 200_000;

impl EventFormats {
    /// Adds one from the text of its `format` file. False when the text is none.
    pub(crate) fn add(&mut self, text: &str) -> bool {
        let Some((mut format, common, operators)) = EventFormat::parse(text) else { return false };
        self.operators += operators;
        if self.operators > OPERATORS_MAX {
            format.print = None;
        }
        let index = usize::from(format.id);
        if self.by_id.len() <= index {
            self.by_id.resize_with(index + 1, || None);
        }
        self.by_id[index] = Some(format);
        self.common.get_or_insert(common);
        true
    }

    /// The format of `event`, from the number that it begins with.
    #[inline]
    pub(crate) fn of(&self, event: &[u8]) -> Option<&EventFormat> {
        let id = u16::from_le_bytes(*event.first_chunk()?);
        self.by_id.get(usize::from(id))?.as_ref()
    }

    /// Where the fields lie that every event has.
    pub(crate) fn common(&self) -> Option<&CommonFields> {
        self.common.as_ref()
    }
}

impl EventFormat {
    fn parse(text: &str) -> Option<(Self, CommonFields, usize)> {
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let name = value("name:")?.into();
        let id = value("ID:")?.parse().ok()?;
        let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("field"));
        let fields: Box<[_]> = lines.map(field).collect::<Option<_>>()?;
        let named = |name: &str| fields.iter().find(|field| *field.name == *name);
        let number = |name| named(name).filter(|field| field.shape == FieldShape::Number).cloned();
        let kind = number("common_type")?;
        if (kind.offset, kind.size) != (0, 2) {
            return None;
        }
        let common = CommonFields {
            flags: number("common_flags")?,
            preempt_count: number("common_preempt_count")?,
            pid: number("common_pid")?,
        };
        let tasks = fields.iter().filter_map(|field| {
            let whose = field.name.strip_suffix("pid")?;
            let comm = named(&format!("{whose}comm"))?;
            (whose != "common_").then(|| [field.clone(), comm.clone()])
        });
        let tasks = tasks.collect();
        let print = value("print fmt:").and_then(|text| PrintFormat::parse(text, &fields));
        let (print, operators) = print.unzip();
        Some((Self { id, name, fields, print, tasks }, common, operators.unwrap_or_default()))
    }

    /// The event's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Takes the names of tasks from `event`.
    #[inline]
    pub(crate) fn learn_tasks(&self, event: &[u8], names: &mut KernelNames) {
        for [pid, comm] in &self.tasks {
            if let (Some(pid), Some(comm)) = (pid.number(event), comm.text(event)) {
                names.learn_task(pid.bits as i32, comm);
            }
        }
    }

    /// Prints the fields of `event` as the kernel does; where that cannot be, each with its name.
    pub(crate) fn write(&self, event: &[u8], names: &mut KernelNames, out: &mut Vec<u8>) {
        let begun = out.len();
        if let Some(print) = &self.print
            && print.write(event, names, out).is_some()
        {
            return;
        }
        out.truncate(begun);
        self.write_fields(event, out);
    }

    #[cold]
    fn write_fields(&self, event: &[u8], out: &mut Vec<u8>) {
        for field in self.fields.iter().filter(|field| !field.name.starts_with("common_")) {
            if out.last().is_some_and(|&byte| byte != b' ') {
                out.push(b' ');
            }
            out.extend_from_slice(field.name.as_bytes());
            out.push(b'=');
            let begun = out.len();
            match (field.shape, field.number(event)) {
                (FieldShape::Number, Some(number)) if number.is_signed => {
                    out.extend_from_slice(itoa::Buffer::new().format(number.bits as i64).as_bytes());
                }
                (FieldShape::Number, Some(number)) => {
                    out.extend_from_slice(itoa::Buffer::new().format(number.bits).as_bytes());
                }
                _ if field.is_text => out.extend_from_slice(field.text(event).unwrap_or(b"(cut)")),
                _ => field.bytes(event).unwrap_or_default().iter().for_each(|&byte| {
                    push_hexadecimal(u64::from(byte), 2, out);
                }),
            }
            one_line(&mut out[begun..]);
        }
    }
}

/// Reads `:TYPE NAME; offset:0; size:2; signed:0;`, what stands behind `field`.
fn field(text: &str) -> Option<EventField> {
    let mut parts = text.split_once(':')?.1.split(';').map(str::trim);
    let declaration = parts.next()?;
    let (mut offset, mut size, mut is_signed) = (None, None, false);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => offset = number.parse().ok(),
            Some(("size", number)) => size = number.parse().ok(),
            Some(("signed", number)) => is_signed = number != "0",
            _ => {}
        }
    }
    let (kind, name) = declaration.rsplit_once([' ', '*'])?;
    let (name, is_array) = match name.split_once('[') {
        Some((name, _)) => (name, true),
        None => (name, false),
    };
    let size = size?;
    let shape = match kind.split(' ').next() {
        Some("__data_loc") => FieldShape::Located,
        Some("__rel_loc") => FieldShape::LocatedFromHere,
        _ if is_array || !matches!(size, 1 | 2 | 4 | 8) => FieldShape::Array,
        _ => FieldShape::Number,
    };
    let is_text = kind.contains("char");
    Some(EventField { name: name.into(), offset: offset?, size, is_signed, is_text, shape })
}

#[cfg(test)]
pub(super) mod made {
    /// The fields of every event.
    const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

    /// A format with these fields behind the common ones.
    pub(crate) fn format(name: &str, id: u16, fields: &str, print: &str) -> String {
        format!("name: {name}\nID: {id}\nformat:\n{COMMON}{fields}\nprint fmt: {print}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::made::format;
    use super::{EventFormats, FieldShape, KernelNames, context_letters, field};

    const WAKE: &str = "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:unsigned long mask;\toffset:28;\tsize:8;\tsigned:0;\n\
        \tfield:__data_loc char[] name;\toffset:36;\tsize:4;\tsigned:0;\n\
        \tfield:u8 raw[2];\toffset:40;\tsize:2;\tsigned:0;\n";

    /// An event of number 7: task `sh a` with number 42, a mask, the name `eth\n0`, two bytes.
    fn event() -> Vec<u8> {
        let parts: [&[u8]; 8] = [
            b"\x07\0\0\0\x2a\0\0\0",
            b"sh a\0garbage....",
            &42i32.to_le_bytes(),
            &u64::MAX.to_le_bytes(),
            b"\x2a\0\x06\0",
            b"\xab\x01",
            b"eth\n0\0",
            b"",
        ];
        parts.concat()
    }

    fn printed(print: &str) -> (String, KernelNames) {
        let (mut formats, mut names, mut out) = (EventFormats::default(), KernelNames::default(), Vec::new());
        assert!(formats.add(&format("wake", 7, WAKE, print)));
        let event = event();
        let format = formats.of(&event).expect("its number");
        assert_eq!(format.name(), "wake");
        format.write(&event, &mut names, &mut out);
        format.learn_tasks(&event, &mut names);
        (String::from_utf8(out).expect("letters"), names)
    }

    /// Goal: an event is printed as its format says, and field by field where we cannot; either way as one
    /// line, and the tasks that it names have names from then on.
    #[test]
    fn an_event_is_printed_as_its_format_says() {
        let (text, mut names) = printed(r#""comm=%s pid=%d name=%s", REC->comm, REC->pid, __get_str(name)"#);
        assert_eq!(text, "comm=sh a pid=42 name=eth 0");
        assert_eq!(names.task(42), b"sh a");
        let fields = "comm=sh a pid=42 mask=18446744073709551615 name=eth 0 raw=ab01";
        for print in [r#""%d", unknown(REC->pid)"#, r#""pid=%d %s", REC->pid, REC->pid"#] {
            assert_eq!(printed(print).0, fields, "{print}");
        }
    }

    /// Goal: an event that is cut is printed as far as it goes.
    #[test]
    fn a_cut_event_is_printed_as_far_as_it_goes() {
        let (mut formats, mut names, mut out) = (EventFormats::default(), KernelNames::default(), Vec::new());
        assert!(formats.add(&format("wake", 7, WAKE, r#""pid=%d name=%s", REC->pid, __get_str(name)"#)));
        let event = &event()[..30];
        formats.of(event).expect("its number").write(event, &mut names, &mut out);
        assert_eq!(out, b"comm=sh a pid=42 mask= name=(cut) raw=");
    }

    /// Goal: formats do not need memory without bounds. Method: more operators than are kept.
    #[test]
    fn operators_are_bounded() {
        let mut formats = EventFormats::default();
        let sum = format!(r#""%d", 1{}"#, "+1".repeat(1000));
        let mut print = |id: u16| {
            assert!(formats.add(&format("sum", id, WAKE, &sum)));
            let (mut names, mut out) = (KernelNames::default(), Vec::new());
            formats.of(&id.to_le_bytes()).expect("its number").write(&event(), &mut names, &mut out);
            String::from_utf8(out).expect("letters")
        };
        for id in 1..=200 {
            assert_eq!(print(id), "1001", "{id}");
        }
        assert!(print(201).starts_with("comm=sh a"));
    }

    /// Goal: an event whose number was not described has no format, and a text that is none adds none.
    #[test]
    fn what_is_not_described_is_not_read() {
        let mut formats = EventFormats::default();
        let good = format("wake", 7, WAKE, "\"\"");
        for (from, to) in [
            ("ID: 7", "ID: x"),
            ("name: wake\n", ""),
            ("common_pid", "pid_"),
            ("common_flags", "flags"),
            ("offset:0;\tsize:2", "offset:2;\tsize:2"),
            ("offset:24;", "offset:?;"),
        ] {
            assert!(!formats.add(&good.replace(from, to)), "{from} -> {to}");
        }
        assert!(formats.common().is_none() && formats.of(b"\x07\0").is_none());
        assert!(formats.add(&good));
        assert!(formats.of(b"\x07\0").is_some() && formats.common().is_some());
        assert!(
            formats.of(b"\x08\0").is_none()
                && formats.of(b"\x06\0").is_none()
                && formats.of(b"\x07").is_none()
        );
    }

    /// Goal: a field is where its line says, in the shape that its type says.
    #[test]
    fn fields_are_what_their_lines_say() {
        for (declaration, size, name, shape) in [
            ("unsigned int vec", 4, "vec", FieldShape::Number),
            ("void * timer", 8, "timer", FieldShape::Number),
            ("const char *name", 8, "name", FieldShape::Number),
            ("char comm[16]", 16, "comm", FieldShape::Array),
            ("char buf[]", 0, "buf", FieldShape::Array),
            ("u8 pair[2]", 2, "pair", FieldShape::Array),
            ("struct x odd", 12, "odd", FieldShape::Array),
            ("__data_loc char[] name", 4, "name", FieldShape::Located),
            ("__rel_loc char[] name", 4, "name", FieldShape::LocatedFromHere),
        ] {
            let read =
                field(&format!(":{declaration};\toffset:8;\tsize:{size};\tsigned:1;")).expect("a field");
            assert_eq!((&*read.name, read.offset, read.size), (name, 8, size), "{declaration}");
            assert_eq!((read.shape, read.is_signed), (shape, true), "{declaration}");
        }
        assert!(!field(":int a;\toffset:8;\tsize:4;\tsigned:0;").expect("a field").is_signed);
        assert!(field(":int a;\tsize:4;").is_none() && field(":int a;\toffset:4;").is_none());
        assert!(field("int a").is_none() && field(":a;\toffset:8;\tsize:4;").is_none());
    }

    /// Goal: the letters are the kernel's. Method: each bit, and the pairs that have letters of their own.
    #[test]
    fn letters_are_the_kernels() {
        for (flags, counts, letters) in [
            (0, 0, b"....."),
            (0x01, 0x01, b"d..1."),
            (0x81, 0x10, b"D...1"),
            (0x80, 0xfa, b"b..af"),
            (0x04, 0, b".n..."),
            (0x20, 0, b".p..."),
            (0x24, 0, b".N..."),
            (0x08, 0, b"..h.."),
            (0x10, 0, b"..s.."),
            (0x18, 0, b"..H.."),
            (0x40, 0, b"..z.."),
            (0x48, 0, b"..Z.."),
            (0x58, 0, b"..Z.."),
        ] {
            let written = context_letters(flags, counts);
            assert_eq!(&written, letters, "{}", String::from_utf8_lossy(&written));
        }
    }
}
