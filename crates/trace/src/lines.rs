//! Lines of a byte stream, without a copy and with bounded memory.
//!
//! The buffer is [`BUFFER_BYTES`] long and never grows: a line longer than [`LINE_BYTES_MAX`] is
//! handed out as [`RawLine::TooLong`] and skipped to its end. A source that would block is not
//! an error: what was read stays, and the next call goes on.

use std::io::{self, ErrorKind, Read};

/// The longest line that is read; the kernel's own limit is one page of text per event.
pub const LINE_BYTES_MAX: usize = 64 * 1024;
const BUFFER_BYTES: usize = 256 * 1024;

/// One step of a [`Lines`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RawLine<'a> {
    /// A line without its line break, and its number (from 1).
    Line(u64, &'a [u8]),
    /// The line with this number is too long; its bytes are dropped.
    TooLong(u64),
    /// A source that cannot block has nothing more for now.
    WouldBlock,
    /// The end of the source.
    End,
}

/// Splits `source` into lines.
pub(crate) struct Lines<R> {
    source: R,
    buffer: Box<[u8]>,
    start: usize,
    handed_out: usize,
    filled: usize,
    number: u64,
    bytes_read: u64,
    skipping: bool,
    at_end: bool,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            start: 0,
            handed_out: 0,
            filled: 0,
            number: 0,
            bytes_read: 0,
            skipping: false,
            at_end: false,
        }
    }

    /// How many bytes were taken from the source so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// The next line; a last line without a line break counts as one.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> io::Result<RawLine<'_>> {
        match memchr::memchr(b'\n', &self.buffer[self.start..self.filled]) {
            Some(length) => Ok(self.line(self.start + length)),
            None => self.next_read(),
        }
    }

    /// The line that ends at `end`, where a line break is.
    #[inline(always)]
    fn line(&mut self, end: usize) -> RawLine<'_> {
        let start = self.start;
        self.start = end + 1;
        self.handed_out = start;
        self.number += 1;
        if std::mem::take(&mut self.skipping) || end - start > LINE_BYTES_MAX {
            return RawLine::TooLong(self.number);
        }
        let line = &self.buffer[start..end];
        RawLine::Line(self.number, line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// The next line, of which the buffer does not hold the end yet.
    #[inline(never)]
    fn next_read(&mut self) -> io::Result<RawLine<'_>> {
        while !self.at_end {
            self.make_room();
            let searched = self.filled;
            match self.source.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.at_end = true,
                Ok(count) => {
                    self.filled += count;
                    self.bytes_read += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(RawLine::WouldBlock),
                Err(error) => return Err(error),
            }
            if let Some(offset) = memchr::memchr(b'\n', &self.buffer[searched..self.filled]) {
                return Ok(self.line(searched + offset));
            }
        }
        Ok(self.last_line())
    }

    /// Puts the line that was just handed out back, to be handed out again.
    pub(crate) fn put_back(&mut self) {
        if self.start != self.handed_out {
            self.start = self.handed_out;
            self.number -= 1;
        }
    }

    fn last_line(&mut self) -> RawLine<'_> {
        let (start, end) = (self.start, self.filled);
        self.start = end;
        self.handed_out = start;
        if start == end && !self.skipping {
            return RawLine::End;
        }
        self.number += 1;
        if std::mem::take(&mut self.skipping) || end - start > LINE_BYTES_MAX {
            return RawLine::TooLong(self.number);
        }
        let line = &self.buffer[start..end];
        RawLine::Line(self.number, line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Moves the unfinished line to the front; drops it when it is already too long.
    fn make_room(&mut self) {
        let unfinished = self.filled - self.start;
        if unfinished > LINE_BYTES_MAX || (self.skipping && unfinished > 0) {
            self.skipping = true;
            self.start = 0;
            self.filled = 0;
        } else {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.start = 0;
            self.filled = unfinished;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE_BYTES_MAX, Lines, RawLine};
    use std::io::{self, Read};

    /// Hands out `bytes` in pieces of `piece` bytes, with a `WouldBlock` between them.
    struct Trickle {
        bytes: Vec<u8>,
        at: usize,
        piece: usize,
        blocked: bool,
    }

    impl Read for Trickle {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.blocked = !self.blocked;
            if self.blocked {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let count = self.piece.min(into.len()).min(self.bytes.len() - self.at);
            into[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
            self.at += count;
            Ok(count)
        }
    }

    fn collect(bytes: &[u8], piece: usize) -> Vec<Option<Vec<u8>>> {
        let source = Trickle { bytes: bytes.to_vec(), at: 0, piece, blocked: false };
        let mut lines = Lines::new(source);
        let mut found = Vec::new();
        loop {
            match lines.next().expect("the source never fails") {
                RawLine::Line(number, line) => {
                    assert_eq!(number as usize, found.len() + 1);
                    found.push(Some(line.to_vec()));
                }
                RawLine::TooLong(number) => {
                    assert_eq!(number as usize, found.len() + 1);
                    found.push(None);
                }
                RawLine::WouldBlock => {}
                RawLine::End => return found,
            }
        }
    }

    /// Goal: lines do not depend on how the bytes arrive. Method: every piece size up to 9.
    #[test]
    fn lines_do_not_depend_on_the_pieces() {
        let expected: Vec<_> = ["one", "", "two", "three"].map(|line| Some(line.as_bytes().to_vec())).into();
        for piece in 1..10 {
            assert_eq!(collect(b"one\n\r\ntwo\r\nthree", piece), expected, "pieces of {piece} bytes");
        }
    }

    /// Goal: a line at the limit is read, one byte more is not, and the next line is unharmed.
    #[test]
    fn a_long_line_is_dropped_alone() {
        for (length, readable) in [(LINE_BYTES_MAX, true), (LINE_BYTES_MAX + 1, false), (1 << 20, false)] {
            let mut bytes = vec![b'x'; length];
            bytes.extend_from_slice(b"\nnext");
            let found = collect(&bytes, 40_000);
            assert_eq!(found.len(), 2, "{length} bytes");
            assert_eq!(found[0].is_some(), readable, "{length} bytes");
            assert_eq!(found[1].as_deref(), Some(&b"next"[..]), "{length} bytes");
            // At the end of the input, too.
            let last = [b"first\n", &bytes[..length]].concat();
            let found = collect(&last, 40_000);
            assert_eq!((found.len(), found[1].is_some()), (2, readable), "{length} bytes");
        }
    }
}
