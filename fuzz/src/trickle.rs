//! The same bytes as a pipe hands them out.

use std::io::{self, ErrorKind, Read};

/// A source that hands out small pieces and would block between them.
#[derive(Debug)]
pub struct Trickle<'a> {
    rest: &'a [u8],
    piece: usize,
    blocked: bool,
}

impl<'a> Trickle<'a> {
    /// All of `bytes`, at most `piece` (at least 1) at a time.
    pub fn new(bytes: &'a [u8], piece: usize) -> Self {
        Self { rest: bytes, piece, blocked: false }
    }
}

impl Read for Trickle<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.blocked = !self.blocked;
        if self.blocked && !self.rest.is_empty() {
            // Every other wait is a signal instead: it must not be seen at all.
            let kinds = [ErrorKind::WouldBlock, ErrorKind::Interrupted];
            return Err(kinds[self.rest.len() % 2].into());
        }
        let count = self.piece.min(into.len()).min(self.rest.len());
        let (now, later) = self.rest.split_at(count);
        into[..count].copy_from_slice(now);
        self.rest = later;
        Ok(count)
    }
}
