//! A second count of a trace's lines, by a loop over the whole input.
//!
//! Invariant that is checked: every line is exactly one of event, annotation (header, mark, stack,
//! empty line) and malformed, and `Tally` has the same counts.

use quietcore_trace::{LINE_BYTES_MAX, Malformed, Progress, ReadError, TraceReader, parse_line};
use std::io::Read;

/// Examples of malformed lines that a tally keeps.
const EXAMPLES_MAX: usize = 5;

#[derive(Debug, Default)]
struct Count {
    lines: u64,
    events: u64,
    annotations: u64,
    malformed: u64,
    malformed_lines: Vec<u64>,
}

/// Compares what `reader` says about `bytes` with a count of our own.
pub fn check<R: Read>(
    bytes: &[u8],
    end: &Result<Progress, ReadError>,
    visited: u64,
    reader: &TraceReader<R>,
) {
    let (tally, count) = (reader.tally(), count(bytes));
    assert_eq!(count.lines, count.events + count.annotations + count.malformed, "{count:?}");
    assert_eq!(tally.events, visited, "every event is handed out once");
    assert_eq!(tally.malformed_first.len() as u64, tally.malformed.min(EXAMPLES_MAX as u64));
    assert!(!tally.lost_unknown || tally.lost_events > 0);
    let unknown: u64 = reader.unknown_events().iter().map(|(_, count)| count).sum();
    assert!(unknown <= tally.events, "{unknown} unknown of {} events", tally.events);
    match end {
        Ok(progress) => {
            assert_eq!(*progress, Progress::Finished, "nobody asked to pause");
            assert_eq!(reader.bytes_read(), bytes.len() as u64);
            assert_eq!((tally.events, tally.malformed), (count.events, count.malformed), "{count:?}");
            let named: Vec<u64> = tally.malformed_first.iter().map(|bad| bad.line).collect();
            assert_eq!(named, count.malformed_lines);
        }
        Err(ReadError::Empty) => assert_eq!((count.events, count.malformed), (0, 0), "{count:?}"),
        Err(ReadError::NotATrace { first }) => {
            assert_eq!((tally.events, Some(&first.line)), (0, count.malformed_lines.first()));
        }
        Err(error) => panic!("a slice cannot fail: {error}"),
    }
}

fn count(bytes: &[u8]) -> Count {
    let mut count = Count::default();
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        count.lines += 1;
        let ended = line.strip_suffix(b"\n");
        let text = ended.unwrap_or(line);
        let readable = text.len() <= LINE_BYTES_MAX;
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let is_malformed = match parse_line(text) {
            _ if !readable => true,
            Ok(_) => false,
            Err(Malformed::NoTask | Malformed::Cpu | Malformed::NoTimestamp) => !is_annotation(text),
            Err(_) => true,
        };
        if is_malformed {
            count.malformed += 1;
            if count.malformed_lines.len() < EXAMPLES_MAX {
                count.malformed_lines.push(count.lines);
            }
        } else if parse_line(text).is_ok() {
            count.events += 1;
        } else {
            count.annotations += 1;
        }
    }
    count
}

fn is_annotation(line: &[u8]) -> bool {
    let fronts: [&[u8]; 6] = [b" => ", b"CPU:", b"CPU ", b"#", b"cpus=", b"version = "];
    line.iter().all(u8::is_ascii_whitespace) || fronts.iter().any(|front| line.starts_with(front))
}
