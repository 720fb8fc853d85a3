//! Numbers and texts of a binary file, read one after the other.

use super::field::little_endian;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, ErrorKind};

/// A name or a version has so many bytes at most.
const WORD_BYTES_MAX: usize = 256;

/// What can be read at any place.
pub(crate) trait ReadAt {
    /// Reads what there is at `at`, as `Read` does.
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize>;

    /// Fills `into` with what lies at `at`.
    fn read_whole(&self, mut into: &mut [u8], mut at: u64) -> io::Result<()> {
        while !into.is_empty() {
            match self.read_at(into, at) {
                Ok(0) => return Err(invalid(format!("it ends at byte {at}, in the middle of its contents"))),
                Ok(count) => (into, at) = (&mut into[count..], at + count as u64),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl ReadAt for File {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::read_at(self, into, at);
        #[cfg(windows)]
        return std::os::windows::fs::FileExt::seek_read(self, into, at);
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

impl ReadAt for &[u8] {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        <[u8]>::read_at(self, into, at)
    }
}

impl ReadAt for Cow<'_, [u8]> {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        <[u8]>::read_at(self, into, at)
    }
}

/// The error of a file that is not as its format has it.
pub(crate) fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.into())
}

/// A place in a file, or in a part of one that was expanded.
#[derive(Debug)]
pub(crate) struct DatCursor<'a, F: ?Sized> {
    file: &'a F,
    pub(crate) at: u64,
}

impl<'a, F: ReadAt + ?Sized> DatCursor<'a, F> {
    pub(crate) fn new(file: &'a F, at: u64) -> Self {
        Self { file, at }
    }

    pub(crate) fn file(&self) -> &'a F {
        self.file
    }

    /// The next bytes; `what` names them where they are more than `count_max`.
    pub(crate) fn bytes(&mut self, count: u64, count_max: u64, what: &str) -> io::Result<Vec<u8>> {
        if count > count_max {
            return Err(invalid(format!(
                "{what} at byte {} has {count} bytes; {count_max} are read",
                self.at
            )));
        }
        let mut bytes = vec![0; count as usize];
        self.file.read_whole(&mut bytes, self.at)?;
        self.at += count;
        Ok(bytes)
    }

    pub(crate) fn skip(&mut self, count: u64) -> io::Result<()> {
        let beyond = || invalid(format!("a length at byte {} is beyond all files", self.at));
        self.at = self.at.checked_add(count).ok_or_else(beyond)?;
        Ok(())
    }

    fn number(&mut self, bytes: usize) -> io::Result<u64> {
        let mut number = [0; 8];
        self.file.read_whole(&mut number[..bytes], self.at)?;
        self.at += bytes as u64;
        Ok(little_endian(&number))
    }

    pub(crate) fn byte(&mut self) -> io::Result<u8> {
        self.number(1).map(|number| number as u8)
    }

    pub(crate) fn u16(&mut self) -> io::Result<u16> {
        self.number(2).map(|number| number as u16)
    }

    pub(crate) fn u32(&mut self) -> io::Result<u32> {
        self.number(4).map(|number| number as u32)
    }

    pub(crate) fn u64(&mut self) -> io::Result<u64> {
        self.number(8)
    }

    /// The text up to the next zero.
    pub(crate) fn word(&mut self) -> io::Result<String> {
        let mut bytes = [0; WORD_BYTES_MAX];
        let count = self.file.read_at(&mut bytes, self.at)?;
        let end = memchr::memchr(0, &bytes[..count])
            .ok_or_else(|| invalid(format!("the name at byte {} has no end", self.at)))?;
        self.at += end as u64 + 1;
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// Takes `expected`, which the format has here.
    pub(crate) fn expect(&mut self, expected: &str) -> io::Result<()> {
        let at = self.at;
        let word = self.word()?;
        if word == expected {
            Ok(())
        } else {
            Err(invalid(format!("no {expected:?} at byte {at}, where it should be")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DatCursor;

    /// Goal: numbers, texts and bytes one after the other, and an error that names the place where they end.
    #[test]
    fn what_follows_is_read() {
        let bytes = &b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0fname\0word\0rest"[..];
        let mut cursor = DatCursor::new(bytes, 0);
        assert_eq!(cursor.byte().expect("a byte"), 1);
        assert_eq!(cursor.u16().expect("two"), 0x0302);
        assert_eq!(cursor.u32().expect("four"), 0x0706_0504);
        assert_eq!(cursor.u64().expect("eight"), 0x0f0e_0d0c_0b0a_0908);
        assert_eq!(cursor.word().expect("a name"), "name");
        cursor.expect("word").expect("it is there");
        assert_eq!(cursor.bytes(2, 2, "x").expect("two"), b"re");
        let error = cursor.bytes(3, 9, "x").expect_err("two are left").to_string();
        assert_eq!(error, "it ends at byte 29, in the middle of its contents");
        let error = cursor.bytes(10, 9, "a section").expect_err("too many").to_string();
        assert_eq!(error, "a section at byte 27 has 10 bytes; 9 are read");
        assert_eq!(cursor.word().expect_err("no zero").to_string(), "the name at byte 27 has no end");
        let error = DatCursor::new(bytes, 15).expect("word").expect_err("another").to_string();
        assert_eq!(error, "no \"word\" at byte 15, where it should be");
        assert!(cursor.skip(u64::MAX).is_err());
        cursor.skip(1).expect("one");
        assert_eq!((cursor.at, cursor.byte().expect("the last")), (28, b't'));
        assert!(DatCursor::new(bytes, u64::MAX).byte().is_err());
    }
}
