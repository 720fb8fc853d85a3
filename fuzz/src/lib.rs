//! What the fuzz targets assert, kept out of them so that a finding can be replayed by any of them.
//!
//! - `accounting`: a second, simple count of the lines of a trace;
//! - `binary`: what must hold for any bytes as a binary file of another tool;
//! - `figures`: what must hold between the figures of any report;
//! - `trickle`: the same bytes in small pieces, as a pipe hands them out;
//! - `grammar`: what must hold for any script of `tc`;
//! - `control`: what must hold for anything that is sent to a control socket;
//! - `packets`: what must hold for any bytes as an IP packet;
//! - `disciplines`: what must hold for any discipline and anything that is done to it;
//! - `whatif`: what must hold for any recording under another policy;
//! - `scenario`: what must hold for any text as a scenario of the simulator, with its costs;
//! - `written`: valid lines made from typed values; `damage`: changes that spare most of a line.
//!
//! Deliberately absent: what a figure should be; that is counted in `tests/independent_count.py`.

pub mod accounting;
pub mod binary;
pub mod control;
pub mod damage;
pub mod disciplines;
pub mod figures;
pub mod grammar;
pub mod packets;
pub mod scenario;
pub mod trickle;
pub mod whatif;
pub mod written;

use quietcore_core::CpuSet;
use quietcore_explain::{Explain, ExplainOptions, Explanation};
use quietcore_trace::{Event, ReadError, Tally, TraceReader, parse_line};

/// So few identities that the tables overflow within a small input.
const FEW_IDENTITIES: usize = 4;
/// Steps of the second reading, in lines.
const LINES_PER_STEP: u64 = 7;

/// What one reading of an input ended in.
#[derive(Debug)]
struct Reading {
    end: Result<(), String>,
    tally: Tally,
    unknown: Vec<(String, u64)>,
    /// With the normal cap on identities, and with a tiny one.
    normal: Explanation,
    tiny: Explanation,
}

/// Reads `bytes` twice, explains them, and asserts everything that must hold for any input.
pub fn check_trace(bytes: &[u8]) {
    let isolated = isolated_in_header(bytes);
    let whole = read_whole(bytes, &isolated);
    let pieces = read_in_pieces(bytes, &isolated);
    assert_eq!(whole.end, pieces.end, "the end depends on how the bytes arrive");
    assert_eq!(whole.tally, pieces.tally, "the tally depends on how the bytes arrive");
    assert_eq!(whole.unknown, pieces.unknown, "unknown events depend on how the bytes arrive");
    assert_eq!(whole.normal, pieces.normal, "the report depends on how the bytes arrive");
    for report in [&whole.normal, &whole.tiny, &pieces.tiny] {
        figures::check(report, &isolated);
        assert_eq!(report.events, whole.tally.events);
    }
    figures::check_forgetting(&whole.normal, &whole.tiny);
}

/// Reads one line as such and as a whole trace, and asserts that both say the same.
pub fn check_line(line: &[u8]) {
    let record = match parse_line(line) {
        Ok(record) => record,
        Err(why) => {
            assert!(!why.to_string().is_empty());
            return;
        }
    };
    assert!(record.task.pid >= -1, "{record:?}");
    assert!(record.task.comm.len() < line.len());
    assert_eq!(parse_line(line), Ok(record.clone()), "the same line reads differently");
    if line.contains(&b'\n') || line.ends_with(b"\r") || line.len() > quietcore_trace::LINE_BYTES_MAX {
        return;
    }
    let mut seen = 0;
    let mut reader = TraceReader::new(line);
    let end = reader.read(u64::MAX, &mut |read| {
        seen += 1;
        assert_eq!(read.line, 1);
        assert_eq!((read.task, read.cpu, read.at), (record.task, record.cpu, record.at));
        assert_eq!(read.event, record.event);
    });
    assert!(end.is_ok(), "{end:?}");
    assert_eq!((seen, reader.tally().malformed), (1, 0));
}

/// With the normal cap on identities, and with a tiny one.
fn explain(isolated: &CpuSet) -> [Explain; 2] {
    let normal = ExplainOptions { isolated: isolated.clone(), ..ExplainOptions::default() };
    let tiny = ExplainOptions { identities_max: FEW_IDENTITIES, ..normal.clone() };
    [normal, tiny].map(Explain::new)
}

fn isolated_in_header(bytes: &[u8]) -> CpuSet {
    let mut reader = TraceReader::new(bytes);
    let known = reader.read_header().ok().and_then(|()| reader.header().isolated.clone());
    known.unwrap_or_else(|| "1-7,9-15".parse().expect("a kernel list"))
}

fn read_whole(bytes: &[u8], isolated: &CpuSet) -> Reading {
    let mut reader = TraceReader::new(bytes);
    let [mut normal, mut tiny] = explain(isolated);
    let (mut visited, mut last_line) = (0, 0);
    let end = reader.read(u64::MAX, &mut |record| {
        assert!(record.line > last_line, "line numbers go up");
        // A mark of lost events is handed out, too, and is no event.
        visited += u64::from(!matches!(record.event, Event::Lost { .. }));
        last_line = record.line;
        normal.take(record);
        tiny.take(record);
    });
    accounting::check(bytes, &end, visited, &reader);
    finish(&reader, end.map(|_| ()), normal, tiny)
}

/// As a pipe would hand it out: small pieces, waits between them, the header first.
fn read_in_pieces(bytes: &[u8], isolated: &CpuSet) -> Reading {
    let piece = 1 + bytes.iter().fold(bytes.len(), |sum, &byte| sum * 31 % 4099 + usize::from(byte));
    let mut reader = TraceReader::new(trickle::Trickle::new(bytes, piece));
    let [mut normal, mut tiny] = explain(isolated);
    let mut end = reader.read_header();
    while end.is_ok() {
        let progress = reader.read(LINES_PER_STEP, &mut |record| {
            normal.take(record);
            tiny.take(record);
        });
        match progress {
            Ok(quietcore_trace::Progress::Finished) => break,
            Ok(_) => {}
            Err(error) => end = Err(error),
        }
    }
    finish(&reader, end, normal, tiny)
}

fn finish<R: std::io::Read>(
    reader: &TraceReader<R>,
    end: Result<(), ReadError>,
    normal: Explain,
    tiny: Explain,
) -> Reading {
    let tally = reader.tally();
    Reading {
        end: end.map_err(|error| error.to_string()),
        tally: tally.clone(),
        unknown: reader.unknown_events(),
        normal: normal.finish(tally),
        tiny: tiny.finish(tally),
    }
}

#[cfg(test)]
mod tests {
    use super::{check_line, check_trace};

    /// Goal: the checks accept the bundled seeds. Method: each file in `seeds/`.
    #[test]
    fn the_checks_accept_the_bundled_seeds() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/seeds");
        let mut checked = 0;
        for entry in std::fs::read_dir(folder).expect("the folder exists") {
            let bytes = std::fs::read(entry.expect("an entry").path()).expect("readable");
            check_trace(&bytes);
            bytes.split(|&byte| byte == b'\n').for_each(check_line);
            checked += 1;
        }
        assert!(checked > 0, "no seed in {folder}");
    }

    /// Goal: lines that are longer than any fuzzer's input. Method: around the limit and the buffer.
    #[test]
    fn the_checks_accept_long_lines() {
        let event = "  sh-1 [000] d..2. 1.000000: timer_cancel: timer=01\n";
        for length in [65_535, 65_536, 65_537, 262_143, 262_144, 262_145, 1_000_000] {
            for end in ["\n", "\r\n", ""] {
                let long = "x".repeat(length);
                check_trace(format!("{event}{long}{end}").as_bytes());
                check_trace(format!("{long}{end}\n{event}").as_bytes());
            }
        }
    }
}
