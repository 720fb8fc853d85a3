//! The thread that stands for interrupts: it waits for datagrams, has NET_RX take the peers', and throws
//! strangers' away.

use super::super::receive::Receiver;
use rustix::event::epoll;
use rustix::event::{EventfdFlags, eventfd};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// What is done when the descriptor of that number is ready: entries 0 and 1, strangers 2 and 3, the end 4.
const STRANGERS: u64 = 2;
const STOP: u64 = 4;
/// Datagrams of strangers that are thrown away before other descriptors have a turn.
const BUDGET: usize = 64;

/// The sockets that strangers reach, and how many came.
pub(super) struct Strangers {
    pub(super) socket: UdpSocket,
    pub(super) peer: SocketAddr,
    pub(super) count: Arc<Mutex<u64>>,
}

impl Strangers {
    fn throw_away(&self) {
        // Of a longer datagram the rest is thrown away as well.
        let mut buffer = [0; 16];
        for _ in 0..BUDGET {
            match self.socket.recv_from(&mut buffer) {
                // The peer's was sent before the relay was there.
                Ok((_, from)) if from == self.peer => {}
                Ok(_) => *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

pub(super) struct Poller {
    thread: Option<JoinHandle<()>>,
    stop: OwnedFd,
}

impl Poller {
    /// Begins to wait; entries are in `epoll` already, with their own numbers.
    pub(super) fn start(
        epoll: Arc<OwnedFd>,
        receivers: [Receiver; 2],
        strangers: [Strangers; 2],
    ) -> io::Result<Self> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let waits = epoll::EventFlags::IN;
        epoll::add(&*epoll, &stop, epoll::EventData::new_u64(STOP), waits)?;
        for (token, strangers) in (STRANGERS..).zip(&strangers) {
            epoll::add(&*epoll, &strangers.socket, epoll::EventData::new_u64(token), waits)?;
        }
        let poll = move || poll(&epoll, &receivers, &strangers);
        let thread = thread::Builder::new().name("qc-relay".to_owned()).spawn(poll)?;
        Ok(Self { thread: Some(thread), stop })
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        // If the counter is full the poller ends as well.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // An error is a panic, which was printed; there is nothing left to wait for.
            let _ = thread.join();
        }
    }
}

fn poll(epoll: &OwnedFd, receivers: &[Receiver; 2], strangers: &[Strangers; 2]) {
    let mut events = Vec::with_capacity(8);
    loop {
        events.clear();
        match epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        for event in &events {
            match event.data.u64() {
                STOP => return,
                token @ (0 | 1) => receivers[token as usize].schedule(),
                token => strangers[(token - STRANGERS) as usize].throw_away(),
            }
        }
    }
}
