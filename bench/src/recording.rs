//! The text of bundled recordings, repeated to any size.

use std::io::{self, Read, Write};
use std::path::Path;

/// A recording's text.
#[derive(Debug)]
pub struct Recording {
    /// The lines before the first event.
    pub header: Vec<u8>,
    /// All other lines.
    pub events: Vec<u8>,
}

impl Recording {
    /// Reads `recordings/NAME.txt.zst` of this repository.
    ///
    /// # Errors
    /// What opening or reading it says.
    pub fn bundled(name: &str) -> io::Result<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recordings");
        let path = folder.join(format!("{name}.txt.zst"));
        let mut header = Vec::new();
        quietcore_trace::open(&path).map_err(io::Error::other)?.read_to_end(&mut header)?;
        let mut at = 0;
        while header[at..].starts_with(b"#") {
            at += memchr::memchr(b'\n', &header[at..]).map_or(header.len() - at, |offset| offset + 1);
        }
        let events = header.split_off(at);
        Ok(Self { header, events })
    }
}

/// Writes the header of the first recording once, then the events of all in turn, until `size`
/// bytes or a few more (whole lines) are written. Returns how many.
///
/// # Errors
/// What `out` says.
pub fn repeat(recordings: &[Recording], size: u64, out: &mut dyn Write) -> io::Result<u64> {
    let header = recordings.first().map_or(&b""[..], |first| &first.header);
    out.write_all(header)?;
    let mut written = header.len() as u64;
    for recording in recordings.iter().cycle() {
        let room = size.saturating_sub(written);
        let events = &recording.events;
        if room <= events.len() as u64 {
            let end = memchr::memchr(b'\n', &events[room as usize..])
                .map_or(events.len(), |offset| room as usize + offset + 1);
            out.write_all(&events[..end])?;
            return Ok(written + end as u64);
        }
        out.write_all(events)?;
        written += events.len() as u64;
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::{Recording, repeat};

    /// Goal: whole lines, the header once, at least the size asked for.
    #[test]
    fn a_repeated_recording_has_one_header_and_whole_lines() {
        let recordings = [Recording { header: b"# h\n".to_vec(), events: b"one\ntwo\n".to_vec() }];
        for size in 0..60 {
            let mut text = Vec::new();
            let written = repeat(&recordings, size, &mut text).expect("a Vec takes all");
            assert_eq!(written, text.len() as u64);
            assert!(written >= size && text.ends_with(b"\n"), "{size}: {text:?}");
            assert_eq!(text.iter().filter(|&&byte| byte == b'#').count(), 1);
        }
    }
}
