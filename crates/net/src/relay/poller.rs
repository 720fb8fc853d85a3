//! The thread that stands for interrupts: it waits for datagrams, has NET_RX take the peers', and throws
//! strangers' away.

use super::super::receive::Receiver;
use super::super::waiting::WaitingThread;
use rustix::event::epoll;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

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

/// Begins to wait; entries are in `epoll` already, with their own numbers.
pub(super) fn start(
    epoll: Arc<OwnedFd>,
    receivers: [Receiver; 2],
    strangers: [Strangers; 2],
) -> io::Result<WaitingThread> {
    let stop = WaitingThread::stop_event()?;
    let waits = epoll::EventFlags::IN;
    epoll::add(&*epoll, &stop, epoll::EventData::new_u64(STOP), waits)?;
    for (token, strangers) in (STRANGERS..).zip(&strangers) {
        epoll::add(&*epoll, &strangers.socket, epoll::EventData::new_u64(token), waits)?;
    }
    WaitingThread::start("qc-relay", stop, move || poll(&epoll, &receivers, &strangers))
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
