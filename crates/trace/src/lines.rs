//! Lines of a byte stream, without a copy and with bounded memory.
//!
//! The stream is cut into blocks of whole lines, each at most [`BLOCK_BYTES`] long. A line longer than
//! [`LINE_BYTES_MAX`] is handed out as [`RawLine::TooLong`] and skipped to its end. A source that would block
//! is not an error: what was read stays, and the next call goes on.

use std::io::{self, ErrorKind, Read};

/// The longest line that is read; the kernel's own limit is one page of text per event.
pub const LINE_BYTES_MAX: usize = 64 * 1024;
const BLOCK_BYTES: usize = 256 * 1024;

/// A line of a [`Block`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RawLine<'a> {
    /// A line without its line break.
    Line(&'a [u8]),
    /// The line is too long; its bytes are dropped.
    TooLong,
}

/// What [`Blocks::next`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refill {
    /// The block holds the next lines.
    Lines,
    /// A source that cannot block has nothing more for now.
    WouldBlock,
    /// The end of the source.
    End,
}

/// Whole lines, one behind the other; the last one of the source may have no line break.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// None until there are lines.
    bytes: Box<[u8]>,
    /// Where the lines begin that were not taken, and where the last of them ends.
    at: usize,
    end: usize,
    /// The first of them is the end of one that is too long.
    is_cut: bool,
}

impl Block {
    /// Whether it has memory for lines.
    pub(crate) fn has_memory(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// The lines that were not taken.
    #[inline(always)]
    pub(crate) fn lines(&self) -> Lines<'_> {
        Lines { bytes: &self.bytes[self.at..self.end], is_cut: self.is_cut }
    }

    /// Takes all of its [`Block::lines`] but those that are left.
    pub(crate) fn take_until(&mut self, left: Untaken) {
        (self.at, self.is_cut) = (self.end - left.bytes, left.is_cut);
    }
}

/// How much of a block's lines is left.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Untaken {
    bytes: usize,
    is_cut: bool,
}

/// The lines of a block, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines<'a> {
    bytes: &'a [u8],
    is_cut: bool,
}

impl<'a> Lines<'a> {
    /// How much of them was not taken.
    pub(crate) fn left(&self) -> Untaken {
        Untaken { bytes: self.bytes.len(), is_cut: self.is_cut }
    }

    /// The next line; a last line without a line break counts as one.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<RawLine<'a>> {
        let Some(length) = memchr::memchr(b'\n', self.bytes) else { return self.last() };
        let line = &self.bytes[..length];
        self.bytes = &self.bytes[length + 1..];
        Some(self.checked(line))
    }

    #[inline(always)]
    fn checked(&mut self, line: &'a [u8]) -> RawLine<'a> {
        if std::mem::take(&mut self.is_cut) || line.len() > LINE_BYTES_MAX {
            return RawLine::TooLong;
        }
        RawLine::Line(line.strip_suffix(b"\r").unwrap_or(line))
    }

    #[inline(never)]
    fn last(&mut self) -> Option<RawLine<'a>> {
        let line = std::mem::take(&mut self.bytes);
        (self.is_cut || !line.is_empty()).then(|| self.checked(line))
    }
}

/// Cuts `source` into blocks.
pub(crate) struct Blocks<R> {
    source: R,
    /// The beginning of the line that the last block did not hold the end of.
    rest: Vec<u8>,
    /// The beginning of that line was dropped, as it is too long.
    is_cut: bool,
    bytes_read: u64,
    at_end: bool,
}

impl<R: Read> Blocks<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, rest: Vec::new(), is_cut: false, bytes_read: 0, at_end: false }
    }

    pub(crate) fn source_mut(&mut self) -> &mut R {
        &mut self.source
    }

    /// How many bytes were taken from the source so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Fills `block` with the next lines, those that the source has now; what was in it is gone.
    pub(crate) fn next(&mut self, block: &mut Block) -> io::Result<Refill> {
        if block.bytes.is_empty() {
            block.bytes = vec![0; BLOCK_BYTES].into_boxed_slice();
        }
        (block.at, block.end, block.is_cut) = (0, 0, false);
        let mut filled = self.rest.len();
        block.bytes[..filled].copy_from_slice(&self.rest);
        self.rest.clear();
        let stopped = loop {
            if self.at_end {
                let has_line = self.is_cut || filled > 0;
                self.hand_out(block, filled);
                return Ok(if has_line { Refill::Lines } else { Refill::End });
            }
            match self.source.read(&mut block.bytes[filled..]) {
                Ok(0) => self.at_end = true,
                Ok(count) => {
                    self.bytes_read += count as u64;
                    let (searched, all) = (filled, filled + count);
                    if let Some(last) = memchr::memrchr(b'\n', &block.bytes[searched..all]) {
                        let end = searched + last + 1;
                        self.rest.extend_from_slice(&block.bytes[end..all]);
                        self.hand_out(block, end);
                        return Ok(Refill::Lines);
                    }
                    filled = all;
                    if filled > LINE_BYTES_MAX || self.is_cut {
                        (self.is_cut, filled) = (true, 0);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break Ok(Refill::WouldBlock),
                Err(error) => break Err(error),
            }
        };
        self.rest.extend_from_slice(&block.bytes[..filled]);
        stopped
    }

    fn hand_out(&mut self, block: &mut Block, end: usize) {
        (block.at, block.end, block.is_cut) = (0, end, std::mem::take(&mut self.is_cut));
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, Blocks, LINE_BYTES_MAX, RawLine, Refill};
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
        let (mut blocks, mut block, mut found) = (Blocks::new(source), Block::default(), Vec::new());
        loop {
            match blocks.next(&mut block).expect("the source never fails") {
                Refill::Lines => {}
                Refill::WouldBlock => continue,
                Refill::End => return found,
            }
            let mut lines = block.lines();
            while let Some(line) = lines.next() {
                found.push(match line {
                    RawLine::Line(line) => Some(line.to_vec()),
                    RawLine::TooLong => None,
                });
                let mut rest = Block { bytes: block.bytes.clone(), ..block };
                rest.take_until(lines.left());
                assert_eq!(format!("{:?}", rest.lines()), format!("{lines:?}"), "what is left of a block");
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

    /// Goal: an end that is missed by a source that would block is not taken for one. Method: a source that
    /// fails between two pieces of a line.
    #[test]
    fn a_line_survives_a_failure() {
        struct Failing(u8);
        impl Read for Failing {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                match self.0 {
                    1 => (&b"on"[..]).read(into),
                    2 => Err(io::Error::other("once")),
                    3 => Err(io::ErrorKind::Interrupted.into()),
                    4 => (&b"e\ntwo"[..]).read(into),
                    _ => Ok(0),
                }
            }
        }
        let (mut blocks, mut block) = (Blocks::new(Failing(0)), Block::default());
        assert_eq!(blocks.next(&mut block).unwrap_err().to_string(), "once");
        for expected in [b"one", b"two"] {
            assert_eq!(blocks.next(&mut block).unwrap(), Refill::Lines);
            let mut lines = block.lines();
            assert_eq!((lines.next(), lines.next()), (Some(RawLine::Line(expected)), None));
        }
        assert_eq!((blocks.next(&mut block).unwrap(), blocks.bytes_read()), (Refill::End, 7));
        assert_eq!(blocks.next(&mut block).unwrap(), Refill::End);
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
