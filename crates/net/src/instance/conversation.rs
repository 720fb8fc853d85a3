//! The control protocol, without a socket: what a client sent, and what it is answered.
//!
//! A message is its length in four bytes, the least first, and so many bytes. A request is a line; a reply is
//! a byte (0: done, 1: refused) and text. Several lines may be sent one after the other; each is answered
//! before the next is read.
//!
//! Invariant: memory grows with the bytes that arrived, to the longest request and its reply at most.

use std::io;

/// Longest line.
pub(super) const REQUEST_MAX: usize = 65_536;
const LENGTH_BYTES: usize = 4;

/// What an instance answers to a line: text, or why it refused.
pub type Reply = Result<String, String>;

/// The instance's half of a connection to its control socket.
///
/// ```
/// use quietcore_net::instance::Conversation;
///
/// let mut conversation = Conversation::default();
/// conversation.hear(&[5, 0, 0, 0])?;
/// assert_eq!(conversation.wanted(), 5);
/// conversation.hear(b"qdisc")?;
/// conversation.answer(&|line| Ok(line.to_uppercase()));
/// assert_eq!(conversation.unread(), b"\x06\0\0\0\0QDISC");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Conversation {
    /// Of the request that is not answered yet.
    heard: Vec<u8>,
    /// Replies.
    said: Vec<u8>,
    /// How much of them the client has.
    read: usize,
}

impl Conversation {
    /// The length of the request, once it is known.
    fn length(&self) -> Option<usize> {
        let bytes = self.heard.get(..LENGTH_BYTES)?;
        Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
    }

    /// How many bytes at least are missing of the request; 0 if it has to be answered first.
    #[must_use]
    pub fn wanted(&self) -> usize {
        LENGTH_BYTES + self.length().unwrap_or(0) - self.heard.len()
    }

    /// Whether a part of a request is there.
    pub(super) fn is_begun(&self) -> bool {
        !self.heard.is_empty()
    }

    /// Takes what the client sent, [`wanted`](Self::wanted) bytes at most.
    ///
    /// # Errors
    /// If the request is longer than a line may be. Nothing that follows can be understood then.
    ///
    /// # Panics
    /// If there are more bytes than were wanted.
    pub fn hear(&mut self, bytes: &[u8]) -> io::Result<()> {
        assert!(bytes.len() <= self.wanted(), "{} bytes, {} were wanted", bytes.len(), self.wanted());
        self.heard.extend_from_slice(bytes);
        if self.length().is_some_and(|length| length > REQUEST_MAX) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the request is too long"));
        }
        Ok(())
    }

    /// Answers the request with what `execute` says to its line, if all of it is there.
    pub fn answer(&mut self, execute: &dyn Fn(&str) -> Reply) {
        if self.wanted() > 0 {
            return;
        }
        let reply = match std::str::from_utf8(&self.heard[LENGTH_BYTES..]) {
            Ok(line) => execute(line),
            Err(_) => Err("a line of tc is text".to_owned()),
        };
        self.heard = Vec::new();
        self.say(&reply);
    }

    /// Adds a reply to what the client has to read.
    pub(super) fn say(&mut self, reply: &Reply) {
        let (status, text) = match reply {
            Ok(text) => (0, text),
            Err(text) => (1, text),
        };
        let message = [&[status], text.as_bytes()].concat();
        // A reply has far less than 4 GiB: all classes of a device are some MiB.
        self.said.extend_from_slice(&(message.len() as u32).to_le_bytes());
        self.said.extend_from_slice(&message);
    }

    /// What the client has not read yet.
    #[must_use]
    pub fn unread(&self) -> &[u8] {
        &self.said[self.read..]
    }

    /// The client has read so many bytes more.
    ///
    /// # Panics
    /// If there were not so many.
    pub fn was_read(&mut self, count: usize) {
        self.read += count;
        assert!(self.read <= self.said.len(), "more than was said");
        if self.read == self.said.len() {
            (self.said, self.read) = (Vec::new(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Conversation, REQUEST_MAX};

    /// Goal: requests are answered in order, however their bytes arrive. Method: three in pieces of every
    /// length, one of them no text, and a reply that is read byte by byte.
    #[test]
    fn requests_are_answered_however_they_arrive() {
        let mut bytes = Vec::new();
        for line in [&b"one"[..], b"", b"\xff"] {
            bytes.extend_from_slice(&(line.len() as u32).to_le_bytes());
            bytes.extend_from_slice(line);
        }
        for piece in 1..=bytes.len() {
            let (mut conversation, mut replies, mut rest) = (Conversation::default(), Vec::new(), &bytes[..]);
            while !rest.is_empty() {
                let (now, later) = rest.split_at(piece.min(conversation.wanted()).min(rest.len()));
                conversation.hear(now).unwrap();
                conversation.answer(&|line| Ok(line.to_uppercase()));
                while let Some(&byte) = conversation.unread().first() {
                    replies.push(byte);
                    conversation.was_read(1);
                }
                rest = later;
            }
            let no_text = [&[21, 0, 0, 0, 1], &b"a line of tc is text"[..]].concat();
            let expected = [&[4, 0, 0, 0, 0, b'O', b'N', b'E', 1, 0, 0, 0, 0], &no_text[..]].concat();
            assert_eq!(replies, expected, "pieces of {piece}");
        }
    }

    /// Goal: a line has a longest length. Method: it, and one byte more.
    #[test]
    fn a_line_has_a_longest_length() {
        let announced = |length: usize| Conversation::default().hear(&(length as u32).to_le_bytes());
        assert!(announced(REQUEST_MAX).is_ok());
        assert!(announced(REQUEST_MAX + 1).is_err());
    }
}
