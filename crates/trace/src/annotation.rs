//! Lines of a trace that are no events: headers, marks of lost events, stack lines, empty lines.

use crate::field::unsigned;
use crate::header::Header;
use quietcore_core::CpuId;

/// What a line that is no event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Annotation {
    /// An empty line, or one of a stack trace: says nothing about what the input is.
    Nothing,
    /// A header, or another line that only a trace has.
    Structure,
    /// Events of `cpu` were lost here; `count` of them, if the mark says.
    Lost {
        /// Whose buffer overflowed.
        cpu: CpuId,
        /// How many events.
        count: Option<u64>,
    },
    /// None of these: it should have been an event.
    Unreadable,
}

/// Says what `line` is; a header line leaves its facts in `header`.
pub(crate) fn read(line: &[u8], header: &mut Header) -> Annotation {
    if line.trim_ascii().is_empty() || line.starts_with(b" => ") {
        return Annotation::Nothing;
    }
    if line.starts_with(b"CPU:") || line.starts_with(b"CPU ") {
        return lost(line).unwrap_or(Annotation::Structure);
    }
    if header.take(line) { Annotation::Structure } else { Annotation::Unreadable }
}

/// `CPU:1 [LOST 12 EVENTS]`, `CPU:1 [LOST EVENTS]`, `CPU:1 [12 EVENTS DROPPED]`.
fn lost(line: &[u8]) -> Option<Annotation> {
    let has = |word: &[u8]| memchr::memmem::find(line, word).is_some();
    if !has(b"LOST") && !has(b"DROPPED") {
        return None;
    }
    let mut words = line[4..].split(|byte| matches!(byte, b' ' | b'[' | b']'));
    let cpu = CpuId::new(unsigned(words.next()?)?).ok()?;
    Some(Annotation::Lost { cpu, count: words.filter_map(unsigned).next() })
}

#[cfg(test)]
mod tests {
    use super::{Annotation, read};
    use crate::header::Header;
    use quietcore_core::CpuId;

    /// Goal: every form of a mark gives its CPU and, if it has one, its count.
    #[test]
    fn marks_give_their_cpu_and_count() {
        let lost = |cpu, count| Annotation::Lost { cpu: CpuId::new(cpu).unwrap(), count };
        for (line, expected) in [
            ("CPU:1 [LOST 12 EVENTS]", lost(1, Some(12))),
            ("CPU:15 [LOST EVENTS]", lost(15, None)),
            ("CPU:3 [7 EVENTS DROPPED]", lost(3, Some(7))),
            ("CPU 0 is empty", Annotation::Structure),
            ("CPU:99999 [LOST EVENTS]", Annotation::Structure),
            ("cpus=2", Annotation::Structure),
            ("# tracer: nop", Annotation::Structure),
            (" => schedule", Annotation::Nothing),
            ("  \t", Annotation::Nothing),
            ("lorem ipsum", Annotation::Unreadable),
        ] {
            assert_eq!(read(line.as_bytes(), &mut Header::default()), expected, "{line:?}");
        }
    }
}
