//! The control socket: a line of `tc` in, its answer out.
//!
//! A message is its length in four bytes, the least first, and so many bytes. A request is a line; a reply is
//! a byte (0: done, 1: refused) and text. Several lines may be sent through one connection, one after the
//! other. A client that sends nothing is dropped after two seconds, so that it cannot keep others out; one
//! that sends too long a line, at once.

use crate::waiting::WaitingThread;
use rustix::event::{PollFd, PollFlags, poll};
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest line.
const REQUEST_MAX: usize = 65_536;
/// Longest reply; all classes of a device that has as many as it can have, with all figures, take less.
const REPLY_MAX: usize = 64 << 20;
/// How long a client may take to say something, or to listen.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long an instance may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// What an instance answers to a line: text, or why it refused.
pub type Reply = Result<String, String>;

/// Answers lines that come to the socket at `path` with what `execute` says.
pub(super) fn start(
    path: &Path,
    execute: impl Fn(&str) -> Reply + Send + 'static,
) -> io::Result<WaitingThread> {
    if fs::remove_file(path).is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
        return Err(io::Error::other(format!("{}: it cannot be replaced", path.display())));
    }
    let listener = UnixListener::bind(path)?;
    // Its folder is open to this user alone, so no other user can connect before this.
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    let stop = WaitingThread::stop_event()?;
    let stopped = stop.try_clone()?;
    WaitingThread::start("qc-control", stop, move || serve(&listener, &stopped, &execute))
}

fn serve(listener: &UnixListener, stop: &OwnedFd, execute: &dyn Fn(&str) -> Reply) {
    loop {
        let mut descriptors = [PollFd::new(listener, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        match poll(&mut descriptors, None) {
            Ok(_) if !descriptors[1].revents().is_empty() => return,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        if let Ok((stream, _)) = listener.accept() {
            // An error is the client's: it went away, or was too slow.
            let _ = converse(stream, stop, execute);
        }
    }
}

fn converse(mut stream: UnixStream, stop: &OwnedFd, execute: &dyn Fn(&str) -> Reply) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    while let Some(request) = receive(&mut TimedReader::new(&stream, stop), REQUEST_MAX)? {
        let reply = match std::str::from_utf8(&request) {
            Ok(line) => execute(line),
            Err(_) => Err("a line of tc is text".to_owned()),
        };
        let (status, text) = match &reply {
            Ok(text) => (0, text),
            Err(text) => (1, text),
        };
        send(&mut stream, &[&[status], text.as_bytes()].concat())?;
    }
    Ok(())
}

/// A client's message, which has to arrive in time as a whole: a byte now and then does not hold up the
/// server.
struct TimedReader<'a> {
    stream: &'a UnixStream,
    /// Ends the wait, too.
    stop: &'a OwnedFd,
    /// Set by the first read.
    until: Option<Instant>,
}

impl<'a> TimedReader<'a> {
    const fn new(stream: &'a UnixStream, stop: &'a OwnedFd) -> Self {
        Self { stream, stop, until: None }
    }
}

impl Read for TimedReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if Instant::now() > *self.until.get_or_insert_with(|| Instant::now() + PATIENCE) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut descriptors =
            [PollFd::new(self.stream, PollFlags::IN), PollFd::new(self.stop, PollFlags::IN)];
        poll(&mut descriptors, Some(&PATIENCE.try_into().map_err(io::Error::other)?))?;
        if !descriptors[1].revents().is_empty() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        self.stream.read(bytes)
    }
}

/// Has the instance at the other end of `stream` carry out a line of `tc`.
///
/// # Errors
/// If the instance does not answer within 20 seconds, or its answer cannot be read.
pub fn ask(stream: &mut UnixStream, line: &str) -> io::Result<Reply> {
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    if line.len() > REQUEST_MAX {
        let why = format!("the line has {} bytes; {REQUEST_MAX} is the most", line.len());
        return Ok(Err(why));
    }
    send(stream, line.as_bytes())?;
    let reply = receive(stream, REPLY_MAX)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let text = reply.get(1..).and_then(|text| String::from_utf8(text.to_vec()).ok());
    match (reply.first(), text) {
        (Some(0), Some(text)) => Ok(Ok(text)),
        (Some(1), Some(text)) => Ok(Err(text)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the reply is none")),
    }
}

fn send(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    stream.write_all(&[&length.to_le_bytes(), bytes].concat())
}

/// The next message, of `longest` bytes at most; `None` if the other end has closed between two.
fn receive(stream: &mut impl Read, longest: usize) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    let begun = stream.read(&mut length)?;
    if begun == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut length[begun..])?;
    let length = u32::from_le_bytes(length) as usize;
    if length > longest {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long"));
    }
    // A length is only announced: memory grows with the bytes that arrive.
    let mut bytes = Vec::new();
    stream.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::{REQUEST_MAX, Reply, ask, receive, send, start};
    use std::io::{Read, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("quietcore-{name}-{}.sock", std::process::id()))
    }

    fn upper(line: &str) -> Reply {
        if line == "bad" { Err("no".to_owned()) } else { Ok(line.to_uppercase()) }
    }

    /// Goal: a client that always has something more to ask does not put off the end. Method: one that asks
    /// until it is cut off.
    #[test]
    fn a_client_that_stays_does_not_put_off_the_end() {
        let path = path("stays");
        let server = start(&path, upper).unwrap();
        let mut stream = UnixStream::connect(&path).unwrap();
        assert_eq!(ask(&mut stream, "first").unwrap(), Ok("FIRST".to_owned()));
        let client = std::thread::spawn(move || {
            let mut count = 0_u64;
            while ask(&mut stream, "again").is_ok() {
                count += 1;
            }
            count
        });
        drop(server);
        // It was cut off, or it would not have ended.
        assert!(client.join().unwrap() < u64::MAX);
    }

    /// Goal: lines are answered, several through one connection; errors come back as errors; the socket is
    /// its user's alone and goes with the instance.
    #[test]
    fn lines_are_answered() {
        let path = path("answers");
        let server = start(&path, upper).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let mut stream = UnixStream::connect(&path).unwrap();
        assert_eq!(ask(&mut stream, "qdisc").unwrap(), Ok("QDISC".to_owned()));
        assert_eq!(ask(&mut stream, "bad").unwrap(), Err("no".to_owned()));
        assert_eq!(ask(&mut stream, "").unwrap(), Ok(String::new()));
        let long = "x".repeat(REQUEST_MAX + 1);
        assert!(ask(&mut stream, &long).unwrap().unwrap_err().contains("is the most"));
        drop(stream);
        drop(server);
        assert!(UnixStream::connect(&path).is_err(), "the socket is closed");
        std::fs::remove_file(&path).unwrap();
    }

    /// Goal: hostile clients are dropped, and the next one is served.
    #[test]
    fn hostile_clients_are_dropped() {
        let path = path("hostile");
        let server = start(&path, upper).unwrap();
        for bytes in [&u32::MAX.to_le_bytes()[..], &[1, 0], &[9, 0, 0, 0, b'x']] {
            let mut stream = UnixStream::connect(&path).unwrap();
            stream.write_all(bytes).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut rest = Vec::new();
            // Reset is as good: it is dropped.
            let _ = stream.read_to_end(&mut rest);
            assert_eq!(rest, [0_u8; 0], "{bytes:?}");
        }
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(&[2, 0, 0, 0, 0xff, 0xfe]).unwrap();
        assert_eq!(receive(&mut stream, 100).unwrap().unwrap()[0], 1, "no text is an error");
        assert_eq!(ask(&mut stream, "a").unwrap(), Ok("A".to_owned()));
        drop((stream, server));
        std::fs::remove_file(&path).unwrap();
    }

    /// Goal: messages are what was sent, cut ones are errors. Method: every prefix of one.
    #[test]
    fn messages_are_framed() {
        let mut bytes = Vec::new();
        send(&mut bytes, b"tc qd").unwrap();
        assert_eq!(receive(&mut &bytes[..], 5).unwrap().unwrap(), b"tc qd");
        assert!(receive(&mut &bytes[..], 4).is_err(), "too long");
        assert!(receive(&mut &bytes[..0], 5).unwrap().is_none(), "closed between two");
        for cut in 1..bytes.len() {
            assert!(receive(&mut &bytes[..cut], 5).is_err(), "cut at {cut}");
        }
    }
}
