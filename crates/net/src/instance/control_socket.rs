//! The control socket: a line of `tc` in, its answer out ([protocol](super::conversation)).
//!
//! One thread serves all clients: each has its turn, for one request, before any has a second one. A client
//! that is silent for two seconds, begins a request and does not end it in that time, or does not listen, is
//! sent away; so is the one that is silent for the longest time when there are more than [`CLIENTS_MAX`].
//! Both are told that the instance is busy. So no client keeps the others out, and memory is bounded.

use super::conversation::{Conversation, REQUEST_MAX, Reply};
use crate::waiting::WaitingThread;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// Most clients at a time.
const CLIENTS_MAX: usize = 32;
/// Longest reply; all classes of a device that has as many as it can have, with all figures, take less.
const REPLY_MAX: usize = 64 << 20;
/// How long a client of an instance may be silent.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long an instance may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// What a client that is sent away is told.
const BUSY: &str = "the instance is busy: it does not wait for a client that is silent; try again";

/// Answers lines that come to the socket at `path` with what `execute` says.
pub(super) fn start(
    path: &Path,
    execute: impl Fn(&str) -> Reply + Send + 'static,
) -> io::Result<WaitingThread> {
    start_with(path, PATIENCE, execute)
}

fn start_with(
    path: &Path,
    patience: Duration,
    execute: impl Fn(&str) -> Reply + Send + 'static,
) -> io::Result<WaitingThread> {
    if fs::remove_file(path).is_err_and(|error| error.kind() != ErrorKind::NotFound) {
        return Err(io::Error::other(format!("{}: it cannot be replaced", path.display())));
    }
    let listener = UnixListener::bind(path)?;
    // Its folder is open to this user alone, so no other user can connect before this.
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    let stop = WaitingThread::stop_event()?;
    let stopped = stop.try_clone()?;
    WaitingThread::start("qc-control", stop, move || {
        let mut server = Server { listener, patience, clients: Vec::new(), buffer: vec![0; REQUEST_MAX] };
        while server.wait(&stopped) {
            server.turn(&execute);
        }
    })
}

/// A client, and since when it has said or read nothing.
struct Client {
    stream: UnixStream,
    conversation: Conversation,
    since: Instant,
    /// What the last wait said.
    is_ready: bool,
}

impl Client {
    fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, conversation: Conversation::default(), since: Instant::now(), is_ready: false })
    }

    /// Goes on with the reply, or with one request. An error is the client's: it went away, or sent nonsense.
    fn turn(&mut self, buffer: &mut [u8], execute: &dyn Fn(&str) -> Reply) -> io::Result<()> {
        if self.conversation.unread().is_empty() {
            let wanted = self.conversation.wanted().min(buffer.len());
            let count = self.stream.read(&mut buffer[..wanted])?;
            if count == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            // A byte now and then is no sign of life: a request has to arrive in time as a whole.
            if !self.conversation.is_begun() {
                self.since = Instant::now();
            }
            self.conversation.hear(&buffer[..count])?;
            self.conversation.answer(execute);
        }
        if !self.conversation.unread().is_empty() {
            let count = self.stream.write(self.conversation.unread())?;
            self.conversation.was_read(count);
            self.since = Instant::now();
        }
        Ok(())
    }

    /// Tells it why, if it is not in the middle of a reply; then the connection ends.
    fn send_away(mut self) {
        if self.conversation.unread().is_empty() {
            self.conversation.say(&Err(BUSY.to_owned()));
            // If there is no room for that, the client does not read.
            let _ = self.stream.write(self.conversation.unread());
        }
    }
}

struct Server {
    listener: UnixListener,
    /// How long a client may be silent.
    patience: Duration,
    clients: Vec<Client>,
    buffer: Vec<u8>,
}

impl Server {
    /// Waits until there is something to do; `false` if that is to end.
    fn wait(&mut self, stop: &OwnedFd) -> bool {
        let unread: usize = self.clients.iter().map(|client| client.conversation.unread().len()).sum();
        let flags = |client: &Client| match client.conversation.unread().len() {
            // No more replies than one of the longest are kept for clients that do not read.
            0 if unread > REPLY_MAX => PollFlags::empty(),
            0 => PollFlags::IN,
            _ => PollFlags::OUT,
        };
        let mut descriptors =
            vec![PollFd::new(stop, PollFlags::IN), PollFd::new(&self.listener, PollFlags::IN)];
        descriptors.extend(self.clients.iter().map(|client| PollFd::new(&client.stream, flags(client))));
        let first_end = self.clients.iter().map(|client| client.since + self.patience).min();
        let left = first_end.map(|end| end.saturating_duration_since(Instant::now()));
        // A time that is no `timespec` is longer than any patience.
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut descriptors, left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
        let ready: Vec<bool> = descriptors.iter().map(|one| !one.revents().is_empty()).collect();
        for (client, is_ready) in self.clients.iter_mut().zip(&ready[2..]) {
            client.is_ready = *is_ready;
        }
        !ready[0]
    }

    /// A turn of each client that is ready, the end of those that were silent for too long, and one new one.
    fn turn(&mut self, execute: &dyn Fn(&str) -> Reply) {
        let buffer = &mut self.buffer;
        self.clients.retain_mut(|client| {
            let is_ready = core::mem::take(&mut client.is_ready);
            let passing =
                |error: io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
            !is_ready || client.turn(buffer, execute).map_or_else(passing, |()| true)
        });
        let is_silent = |client: &mut Client| client.since.elapsed() >= self.patience;
        self.clients.extract_if(.., is_silent).for_each(Client::send_away);
        let Ok(client) = self.listener.accept().and_then(|(stream, _)| Client::new(stream)) else { return };
        let longest = (0..self.clients.len()).min_by_key(|&at| self.clients[at].since);
        if let Some(at) = longest.filter(|_| self.clients.len() == CLIENTS_MAX) {
            self.clients.remove(at).send_away();
        }
        self.clients.push(client);
    }
}

/// Has the instance at the other end of `stream` carry out a line of `tc`. An instance that is busy refuses
/// it, in words.
///
/// # Errors
/// If the connection breaks, or the answer cannot be read.
pub fn ask(stream: &mut UnixStream, line: &str) -> io::Result<Reply> {
    ask_within(stream, line, ANSWER_WITHIN)
}

fn ask_within(stream: &mut UnixStream, line: &str, patience: Duration) -> io::Result<Reply> {
    if line.len() > REQUEST_MAX {
        let why = format!("the line has {} bytes; {REQUEST_MAX} is the most", line.len());
        return Ok(Err(why));
    }
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    // If the instance has ended the connection, it has said why.
    let sent = send(stream, line.as_bytes());
    let reply = match receive(stream, REPLY_MAX) {
        Ok(Some(reply)) => reply,
        Ok(None) => return sent.and(Err(ErrorKind::UnexpectedEof.into())),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            let seconds = patience.as_secs();
            return Ok(Err(format!(
                "the instance is busy: it has not answered for {seconds} s; try again later"
            )));
        }
        Err(error) => return sent.and(Err(error)),
    };
    let text = reply.get(1..).and_then(|text| String::from_utf8(text.to_vec()).ok());
    match (reply.first(), text) {
        (Some(0), Some(text)) => Ok(Ok(text)),
        (Some(1), Some(text)) => Ok(Err(text)),
        _ => Err(io::Error::new(ErrorKind::InvalidData, "the reply is none")),
    }
}

fn send(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(|_| ErrorKind::InvalidInput)?;
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
        return Err(io::Error::new(ErrorKind::InvalidData, "the message is too long"));
    }
    // A length is only announced: memory grows with the bytes that arrive.
    let mut bytes = Vec::new();
    stream.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::{
        ANSWER_WITHIN, CLIENTS_MAX, REQUEST_MAX, Reply, WaitingThread, ask, ask_within, receive, send,
        start_with,
    };
    use std::io::{Read, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;
    use std::time::Duration;

    /// Longer than any test takes.
    const LONG: Duration = Duration::from_secs(3_600);

    /// A server at a socket of its own, and the socket, which go at the end of a test.
    struct Bench {
        server: Option<WaitingThread>,
        path: PathBuf,
    }

    impl Bench {
        fn new(name: &str, patience: Duration) -> Self {
            let path = std::env::temp_dir().join(format!("quietcore-{name}-{}.sock", std::process::id()));
            Self { server: Some(start_with(&path, patience, upper).unwrap()), path }
        }

        fn connect(&self) -> UnixStream {
            UnixStream::connect(&self.path).unwrap()
        }
    }

    impl Drop for Bench {
        fn drop(&mut self) {
            self.server = None;
            // As the owner of an instance's name does.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// What a client was told that did not ask, until the end of its connection.
    fn told(stream: &mut UnixStream) -> String {
        let told = receive(stream, 1_000).unwrap().expect("a word before the end");
        assert!(receive(stream, 1_000).unwrap().is_none(), "and then the end");
        String::from_utf8(told[1..].to_vec()).unwrap()
    }

    fn upper(line: &str) -> Reply {
        match line {
            "bad" => Err("no".to_owned()),
            "all" => Ok("x".repeat(8 << 20)),
            _ => Ok(line.to_uppercase()),
        }
    }

    /// Goal: a client that always has something more to ask does not put off the end. Method: one that asks
    /// until it is cut off.
    #[test]
    fn a_client_that_stays_does_not_put_off_the_end() {
        let bench = Bench::new("stays", LONG);
        let mut stream = bench.connect();
        assert_eq!(ask(&mut stream, "first").unwrap(), Ok("FIRST".to_owned()));
        let client = std::thread::spawn(move || {
            let mut count = 0_u64;
            while ask(&mut stream, "again").is_ok() {
                count += 1;
            }
            count
        });
        drop(bench);
        // It was cut off, or it would not have ended.
        assert!(client.join().unwrap() < u64::MAX);
    }

    /// Goal: lines are answered, several through one connection; errors come back as errors; the socket is
    /// its user's alone and goes with the instance.
    #[test]
    fn lines_are_answered() {
        let mut bench = Bench::new("answers", LONG);
        assert_eq!(std::fs::metadata(&bench.path).unwrap().permissions().mode() & 0o777, 0o600);
        let mut stream = bench.connect();
        assert_eq!(ask(&mut stream, "qdisc").unwrap(), Ok("QDISC".to_owned()));
        assert_eq!(ask(&mut stream, "bad").unwrap(), Err("no".to_owned()));
        assert_eq!(ask(&mut stream, "").unwrap(), Ok(String::new()));
        let mut long = "x".repeat(REQUEST_MAX);
        assert_eq!(ask(&mut stream, &long).unwrap(), Ok("X".repeat(REQUEST_MAX)));
        long.push('x');
        let refused = "the line has 65537 bytes; 65536 is the most";
        assert_eq!(ask(&mut stream, &long).unwrap(), Err(refused.to_owned()));
        drop(stream);
        bench.server = None;
        assert!(UnixStream::connect(&bench.path).is_err(), "the socket is closed");
    }

    /// Goal: what is no answer is told as that, and so is an instance that does not answer. Method: the other
    /// end of a pair says something else, too much, or nothing.
    #[test]
    fn what_is_no_answer_is_told() {
        for (said, why) in [
            (&[2, 0, 0, 0, 5, b'x'][..], "the reply is none"),
            (&[0, 0, 0, 0][..], "the reply is none"),
            (&[2, 0, 0, 0, 0, 0xff][..], "the reply is none"),
            (&u32::MAX.to_le_bytes()[..], "the message is too long"),
        ] {
            let (mut stream, mut other) = UnixStream::pair().unwrap();
            other.write_all(said).unwrap();
            assert_eq!(ask(&mut stream, "qdisc").unwrap_err().to_string(), why, "{said:?}");
        }
        let (mut stream, _other) = UnixStream::pair().unwrap();
        let busy = "the instance is busy: it has not answered for 1 s; try again later";
        assert_eq!(ask_within(&mut stream, "qdisc", Duration::from_secs(1)).unwrap(), Err(busy.to_owned()));
    }

    /// Goal: what is no socket is not replaced. Method: a folder at its place.
    #[test]
    fn a_folder_is_not_replaced() {
        let path = std::env::temp_dir().join(format!("quietcore-folder-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        let refused = start_with(&path, LONG, upper).unwrap_err().to_string();
        std::fs::remove_dir(&path).unwrap();
        assert_eq!(refused, format!("{}: it cannot be replaced", path.display()));
    }

    /// Goal: a client that does not read its reply keeps no other one out, and has all of it in the end.
    /// Method: a reply that no socket's buffer holds, and a second client before it is read.
    #[test]
    fn a_client_that_does_not_read_keeps_no_other_out() {
        let bench = Bench::new("reads", LONG);
        let mut late = bench.connect();
        send(&mut late, b"all").unwrap();
        let mut other = bench.connect();
        assert_eq!(ask(&mut other, "first").unwrap(), Ok("FIRST".to_owned()));
        let reply = receive(&mut late, super::REPLY_MAX).unwrap().unwrap();
        assert_eq!((reply.len(), reply[0], reply[1]), (1 + (8 << 20), 0, b'x'));
        assert_eq!(ask(&mut late, "again").unwrap(), Ok("AGAIN".to_owned()));
    }

    /// Goal: hostile clients are dropped, and the next one is served.
    #[test]
    fn hostile_clients_are_dropped() {
        let bench = Bench::new("hostile", LONG);
        for bytes in [&u32::MAX.to_le_bytes()[..], &[1, 0], &[9, 0, 0, 0, b'x']] {
            let mut stream = bench.connect();
            stream.write_all(bytes).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut rest = Vec::new();
            // Reset is as good: it is dropped.
            let _ = stream.read_to_end(&mut rest);
            assert_eq!(rest, [0_u8; 0], "{bytes:?}");
        }
        let mut stream = bench.connect();
        stream.write_all(&[2, 0, 0, 0, 0xff, 0xfe]).unwrap();
        assert_eq!(receive(&mut stream, 100).unwrap().unwrap()[0], 1, "no text is an error");
        assert_eq!(ask(&mut stream, "a").unwrap(), Ok("A".to_owned()));
    }

    /// Goal: a client that always has more to ask, and clients that say nothing or half a request, keep no
    /// other one out. Method: one that has asked and stays, as many silent ones as there is room for, and one
    /// more, which is answered; the one that was silent for the longest time is told why it has to go.
    #[test]
    fn no_client_keeps_others_out() {
        let bench = Bench::new("turns", LONG);
        let mut stays = bench.connect();
        assert_eq!(ask(&mut stays, "first").unwrap(), Ok("FIRST".to_owned()));
        let mut silent: Vec<UnixStream> = (0..CLIENTS_MAX - 1).map(|_| bench.connect()).collect();
        silent[1].write_all(&[9, 0, 0, 0, b'x']).unwrap();
        // The others are in by then; it is itself the last one that spoke but for `stays`.
        assert_eq!(ask(&mut silent[CLIENTS_MAX - 2], "in").unwrap(), Ok("IN".to_owned()));
        assert_eq!(ask(&mut stays, "again").unwrap(), Ok("AGAIN".to_owned()));
        let mut late = bench.connect();
        assert_eq!(ask(&mut late, "late").unwrap(), Ok("LATE".to_owned()));
        assert_eq!(ask(&mut stays, "still").unwrap(), Ok("STILL".to_owned()));
        assert!(told(&mut silent[0]).contains("busy"));
        let refused = ask(&mut silent[0], "too late").map_err(|error| error.kind());
        assert!(refused.is_err(), "its connection has ended: {refused:?}");
    }

    /// Goal: of a full house the one that was silent for the longest time goes, though it was the first.
    /// Method: as many silent ones as there is room for, and one more.
    #[test]
    fn the_first_of_the_silent_goes() {
        let bench = Bench::new("first", LONG);
        let mut silent: Vec<UnixStream> = (0..CLIENTS_MAX).map(|_| bench.connect()).collect();
        // All of them are in by then.
        assert_eq!(ask(&mut silent[CLIENTS_MAX - 1], "in").unwrap(), Ok("IN".to_owned()));
        let mut late = bench.connect();
        assert_eq!(ask(&mut late, "late").unwrap(), Ok("LATE".to_owned()));
        silent[0].set_read_timeout(Some(ANSWER_WITHIN)).unwrap();
        let busy = "the instance is busy: it does not wait for a client that is silent; try again";
        assert_eq!(told(&mut silent[0]), busy);
        assert_eq!(ask(&mut silent[1], "still").unwrap(), Ok("STILL".to_owned()));
    }

    /// Goal: a client that says nothing, or half a request, is told so when its time is over; so is one that
    /// sends a byte now and then. Method: one of each, with no other client.
    #[test]
    fn silence_ends_a_connection() {
        let bench = Bench::new("silence", Duration::from_millis(200));
        let [mut silent, mut half, mut slow] = [bench.connect(), bench.connect(), bench.connect()];
        half.write_all(&[9, 0, 0, 0, b'x']).unwrap();
        let mut other = slow.try_clone().unwrap();
        // Until the connection ends.
        let slow_sender = std::thread::spawn(move || {
            other.write_all(&[250, 0, 0, 0]).unwrap();
            while other.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        for stream in [&mut silent, &mut half, &mut slow] {
            assert!(told(stream).contains("busy"));
        }
        slow_sender.join().unwrap();
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
