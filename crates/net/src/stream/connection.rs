//! One connection: two sockets, and a link each way between them.
//!
//! Invariants: what is read goes through the toxics that were there when it was read, or that were added
//! since; an end of a stream is carried, and the other way goes on; a reset is carried to the other side;
//! when the connection is over, both sockets are closed and every byte is counted.

use super::address::HostPort;
use super::counts::SharedCounts;
use super::draws::DrawKey;
use super::link::{AppliedToxic, StreamLink};
use super::stage::StreamItem;
use crate::relay::Reach;
use bytes::Bytes;
use core::pin::{Pin, pin};
use quietcore_live::Machine;
use quietcore_live::time::{Duration, Instant, Precision, Sleep, sleep};
use rustix::net::Shutdown;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Read at once.
const SCRATCH: usize = 1 << 16;
/// Bytes that a closed connection had not read, and that are read so that the close is no reset.
const DRAINED_MAX: usize = 1 << 22;

/// The toxics of each way.
pub(super) type WayToxics = Arc<[Vec<AppliedToxic>; 2]>;

/// What every connection of a proxy has.
#[derive(Clone, Debug)]
pub(super) struct ConnectionPlan {
    pub(super) machine: &'static Machine,
    pub(super) upstream: HostPort,
    pub(super) reach: Reach,
    pub(super) memory_max: u64,
    /// Of the proxy; each connection adds its number.
    pub(super) key: DrawKey,
    pub(super) toxics: watch::Receiver<WayToxics>,
    /// True: the proxy goes down, and its connections are closed.
    pub(super) stop: watch::Receiver<bool>,
    pub(super) counts: SharedCounts,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Closed,
    Reset,
}

struct StreamSocket {
    stream: TcpStream,
    /// The kernel has an error for it.
    has_error: bool,
    /// It was reset, or cannot be written.
    is_broken: bool,
}

impl StreamSocket {
    fn new(stream: TcpStream) -> Self {
        // Pieces leave when they are written; an error shows at the next call.
        let _ = stream.set_nodelay(true);
        Self { stream, has_error: false, is_broken: false }
    }
}

struct Connection {
    plan: ConnectionPlan,
    /// The client's and the server's.
    sockets: [StreamSocket; 2],
    /// From the client and from the server.
    links: [StreamLink; 2],
    is_over: [bool; 2],
    scratch: Box<[u8]>,
}

/// Carries a connection that was accepted, from its beginning to its end.
pub(super) async fn carry(client: TcpStream, mut plan: ConnectionPlan) {
    let number = plan.counts.change(|counts| {
        counts.connections += 1;
        counts.open += 1;
        counts.connections
    });
    plan.key = plan.key.and(&number.to_le_bytes());
    let counts = plan.counts.clone();
    let mut stop = plan.stop.clone();
    let server = tokio::select! {
        biased;
        _ = stop.wait_for(|is_down| *is_down) => None,
        server = connect(&plan.upstream, plan.reach) => Some(server),
    };
    match server {
        Some(Ok(server)) => Connection::new(plan, client, server).run().await,
        Some(Err(_)) => {
            let _ = client.set_zero_linger();
            counts.change(|counts| counts.unreached += 1);
        }
        None => {}
    }
    counts.change(|counts| counts.open -= 1);
}

async fn connect(upstream: &HostPort, reach: Reach) -> io::Result<TcpStream> {
    let found = tokio::net::lookup_host(upstream.parts()).await?;
    let mut failed = io::Error::from(ErrorKind::AddrNotAvailable);
    for address in HostPort::usable(found, reach) {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

impl Connection {
    fn new(plan: ConnectionPlan, client: TcpStream, server: TcpStream) -> Self {
        let now = plan.machine.now();
        let link = |way: u8| StreamLink::new(plan.key.and(&[way]), plan.memory_max, now);
        let links = [link(0), link(1)];
        let sockets = [client, server].map(StreamSocket::new);
        let scratch = vec![0; SCRATCH].into();
        let mut connection = Self { plan, sockets, links, is_over: [false; 2], scratch };
        connection.apply();
        connection
    }

    async fn run(mut self) {
        let mut sleep = pin!(sleep(Duration::ZERO).with_precision(Precision::Exact));
        let mut told = Default::default();
        let ending = loop {
            self.refresh();
            let (is_moved, ending) = self.turn();
            let counts = self.links.each_ref().map(StreamLink::counts);
            self.plan.counts.add(counts, core::mem::replace(&mut told, counts));
            if let Some(ending) = ending {
                break ending;
            }
            // A connection that has always something to move does not wait.
            if *self.plan.stop.borrow() {
                break Ending::Closed;
            }
            if is_moved {
                tokio::task::yield_now().await;
            } else if self.wait(sleep.as_mut()).await {
                break Ending::Closed;
            }
        };
        self.links.iter_mut().for_each(StreamLink::break_off);
        self.end(ending);
        self.plan.counts.add(self.links.each_ref().map(StreamLink::counts), told);
        if ending == Ending::Reset {
            self.plan.counts.change(|counts| counts.resets += 1);
        }
    }

    /// Has the toxics that there are now.
    fn refresh(&mut self) {
        if self.plan.toxics.has_changed().unwrap_or(false) {
            self.apply();
        }
    }

    fn apply(&mut self) {
        let now = self.plan.machine.now();
        let toxics = Arc::clone(&self.plan.toxics.borrow_and_update());
        for (link, toxics) in self.links.iter_mut().zip(&*toxics) {
            link.apply(toxics, now);
        }
    }

    /// Writes and reads what can be; says whether there was any, and whether the connection is over.
    fn turn(&mut self) -> (bool, Option<Ending>) {
        let mut is_moved = false;
        for way in [0, 1] {
            self.links[way].advance(self.plan.machine.now());
            match self.write(way) {
                Ok(moved) => is_moved |= moved,
                Err(ending) => return (true, Some(ending)),
            }
            is_moved |= self.read(way);
        }
        let is_broken = self.sockets.iter().any(|socket| socket.is_broken);
        let ending = if is_broken { Ending::Reset } else { Ending::Closed };
        (is_moved, (self.is_over == [true; 2]).then_some(ending))
    }

    fn write(&mut self, way: usize) -> Result<bool, Ending> {
        let (mut is_moved, to) = (false, 1 - way);
        while let Some(item) = self.links[way].exit() {
            match item {
                StreamItem::Data(bytes) => match self.sockets[to].stream.try_write(bytes) {
                    Ok(length) => self.links[way].written(length),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => self.break_side(to),
                },
                StreamItem::End => {
                    // An error: it was reset meanwhile, which its reader finds out.
                    let _ = rustix::net::shutdown(&self.sockets[to].stream, Shutdown::Write);
                    self.links[way].done();
                    self.is_over[way] = true;
                }
                StreamItem::Close => return Err(Ending::Closed),
                StreamItem::Reset => return Err(Ending::Reset),
            }
            is_moved = true;
        }
        Ok(is_moved)
    }

    fn read(&mut self, way: usize) -> bool {
        let socket = &self.sockets[way];
        if socket.is_broken {
            return false;
        }
        let room = self.links[way].room().min(SCRATCH);
        let nothing = Err(ErrorKind::WouldBlock.into());
        let read = if room > 0 { socket.stream.try_read(&mut self.scratch[..room]) } else { nothing };
        match read {
            Ok(0) => self.links[way].end(StreamItem::End, self.plan.machine.now()),
            Ok(length) => {
                // What was sent after a change is read after it.
                self.refresh();
                let bytes = Bytes::copy_from_slice(&self.scratch[..length]);
                self.links[way].feed(bytes, self.plan.machine.now());
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                if socket.has_error {
                    self.break_side(way);
                }
                return self.sockets[way].is_broken;
            }
            Err(_) => self.break_side(way),
        }
        true
    }

    /// That side is gone: the other side hears of it behind what it was sent.
    fn break_side(&mut self, side: usize) {
        self.sockets[side].is_broken = true;
        self.links[side].end(StreamItem::Reset, self.plan.machine.now());
        self.links[1 - side].break_off();
        self.is_over[1 - side] = true;
    }

    /// Waits until there may be something to do; says whether the proxy goes down.
    async fn wait(&mut self, mut sleep: Pin<&mut Sleep>) -> bool {
        let expiry = self.links.iter().filter_map(StreamLink::next_expiry).min().map(Instant::from);
        if let Some(expiry) = expiry.filter(|expiry| *expiry != sleep.deadline()) {
            sleep.as_mut().reset(expiry);
        }
        let interests = [0, 1].map(|side| self.interest(side));
        let [client, server] = &self.sockets;
        let ConnectionPlan { stop, toxics, .. } = &mut self.plan;
        let (side, ready) = tokio::select! {
            biased;
            _ = stop.wait_for(|is_down| *is_down) => return true,
            _ = toxics.changed() => {
                // What is seen here is still to be applied.
                toxics.mark_changed();
                return false;
            }
            () = sleep, if expiry.is_some() => return false,
            ready = client.stream.ready(interests[0]), if !client.is_broken => (0, ready),
            ready = server.stream.ready(interests[1]), if !server.is_broken => (1, ready),
        };
        self.sockets[side].has_error |= ready.map_or(true, |ready| ready.is_error());
        false
    }

    fn interest(&self, side: usize) -> Interest {
        let mut interest = Interest::ERROR;
        if self.links[side].room() > 0 {
            interest |= Interest::READABLE;
        }
        if self.links[1 - side].exit().is_some() {
            interest |= Interest::WRITABLE;
        }
        interest
    }

    /// Closes both sockets: with resets, or so that what was written arrives.
    fn end(&mut self, ending: Ending) {
        for (socket, link) in self.sockets.iter().zip(&mut self.links) {
            if ending == Ending::Reset {
                let _ = socket.stream.set_zero_linger();
                continue;
            }
            let mut drained = 0;
            // A socket that is closed with unread data resets its peer.
            while drained < DRAINED_MAX
                && let Ok(length @ 1..) = socket.stream.try_read(&mut self.scratch)
            {
                drained += length;
                link.feed(Bytes::copy_from_slice(&self.scratch[..length]), self.plan.machine.now());
            }
        }
    }
}
