//! What must hold for any bytes as a binary file of another tool: an error that can be shown, or a text that
//! is the same each time and reads like any other.

use quietcore_trace::open_bytes;
use std::io::Read;

/// What every `trace.dat` begins with.
pub const TRACE_DAT: &[u8] = b"\x17\x08\x44tracing";
/// What every `perf.data` begins with.
pub const PERF_DATA: &[u8] = b"PERFILE2";
/// A first packet of Perfetto, with the number of its sequence alone, and the begin of the next one.
pub const PERFETTO: &[u8] = b"\x0a\x02\x50\x01\x0a";

/// So much of a text is read; a file of some kilobytes can hold many short events.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// So much of it is explained.
const EXPLAINED_BYTES_MAX: usize = 16 << 10;

/// Reads `magic` and `bytes` as a file, twice.
pub fn check_binary(magic: &[u8], bytes: &[u8]) {
    let read = || -> Result<Vec<u8>, String> {
        let source = open_bytes("f", [magic, bytes].concat()).map_err(|error| error.to_string())?;
        let mut text = Vec::new();
        match source.take(TEXT_BYTES_MAX).read_to_end(&mut text) {
            Ok(_) => Ok(text),
            Err(error) => Err(format!("{} bytes, then {error}", text.len())),
        }
    };
    let first = read();
    assert_eq!(first, read(), "the text depends on chance");
    match first {
        Err(why) => assert!(!why.is_empty() && !why.contains('\n'), "{why:?}"),
        Ok(text) => {
            assert!(text.starts_with(b"cpus="), "{:?}", String::from_utf8_lossy(&text));
            crate::check_trace(&text[..text.len().min(EXPLAINED_BYTES_MAX)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PERF_DATA, PERFETTO, TRACE_DAT, check_binary};
    use quietcore_trace::open_bytes;
    use std::io::Read;

    const FILES: [(&[u8], &[u8]); 4] = [
        (TRACE_DAT, include_bytes!("../../crates/cli/tests/trace-cmd/v6.dat")),
        (TRACE_DAT, include_bytes!("../../crates/cli/tests/trace-cmd/v7.dat")),
        (PERF_DATA, include_bytes!("../seeds-binary/perf.data")),
        (PERFETTO, include_bytes!("../seeds-binary/perfetto.pftrace")),
    ];

    /// Goal: the seeds are files, and what must hold holds for them, cut and damaged. Method: 30 places of
    /// each.
    #[test]
    fn seeds_hold() {
        for (magic, file) in FILES {
            let mut text = String::new();
            open_bytes("f", file).expect("a file").read_to_string(&mut text).expect("its text");
            assert!(text.lines().count() > 30, "{text}");
            let rest = file.strip_prefix(magic).expect("it begins so");
            check_binary(magic, rest);
            for place in (0..rest.len()).step_by(rest.len() / 30 + 1) {
                check_binary(magic, &rest[..place]);
                let mut damaged = rest.to_vec();
                damaged[place] ^= 0x5a;
                check_binary(magic, &damaged);
            }
        }
    }
}
