//! Devices with several transmit queues, each with its own discipline, lock and watchdog.
//!
//! A [`Device`] takes packets from any thread, keeps them in the queue that belongs to the sender's CPU (XPS:
//! [`DeviceOptions::transmit_map`]), and gives them to a [`Driver`] when the queue's
//! [discipline](quietcore_qdisc) lets them go. A queue whose next packet has to wait arms an exact timer, its
//! watchdog; when it is due the queue is put on the list of the CPU that the timer ran on, and that CPU's
//! NET_TX softirq runs it. So a pinned watchdog keeps a queue with its CPU; one that may be moved takes the
//! queue, and its lock, elsewhere. [`QueueStatistics`] count packets that left on another CPU than the
//! queue's, and how long the lock was waited for.
//!
//! ```
//! use quietcore::net::{Device, DeviceOptions, Network};
//! use quietcore::qdisc::{Fifo, FifoLimit};
//! use quietcore::{LaneThreads, Machine};
//! use std::sync::{Mutex, mpsc};
//!
//! let (network, builder) = Network::new(Machine::builder().lanes("0".parse()?));
//! let machine = builder.lane_threads(LaneThreads::new()).start()?;
//! let (sender, sent) = mpsc::channel();
//! let sender = Mutex::new(sender);
//! let driver = move |_queue: usize, packet: Vec<u8>| {
//!     sender.lock().expect("no panic").send(packet).expect("it is received");
//!     Ok(())
//! };
//! let device = Device::new(&network, machine, DeviceOptions::new(1), driver)?;
//! device.graft(0, Fifo::new(FifoLimit::Packets(100)));
//! assert!(device.send(vec![0_u8; 60]).is_accepted());
//! assert_eq!(sent.recv()?.len(), 60);
//! assert_eq!(device.statistics(0).qdisc.sent_packets, 1);
//! # drop(device);
//! # machine.shutdown();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Control`] does to devices what lines of `tc` say: which discipline each queue has, with which classes
//! and filters, and what they have done.
//!
//! What flows through a [`Relay`] are datagrams, as packets of a device; connections of TCP flow through a
//! `stream::StreamRelay` (feature `stream`), which has toxics instead of disciplines.
//!
//! Invariants: a queue is run by one thread at a time, and a packet leaves its discipline under the queue's
//! lock and reaches the driver outside of it; a queue whose head must wait has its watchdog armed; a queue
//! that was put on a list is run once; its packets take no more memory than
//! [`DeviceOptions::memory_max`]. A [`Receiver`], which NET_RX runs, brings packets in.
//!
//! Source: Linux net/core/dev.c and net/sched/sch_generic.c, sch_api.c, by behaviour.

mod control;
mod device;
mod driver;
mod hook;
#[cfg(feature = "instance")]
pub mod instance;
mod losses;
mod memory;
mod network;
mod options;
mod queue;
mod receive;
mod relay;
mod statistics;
#[cfg(feature = "stream")]
pub mod stream;
mod sync;
#[cfg(feature = "tun")]
pub mod tun;
mod waiting;

pub use control::{
    Answer, ClassReport, Control, FilterReport, QdiscReport, QueueReport, RateReport, ShowOptions,
    TcControlError, TcFilterError,
};
pub use device::Device;
pub use driver::Driver;
pub use network::Network;
pub use options::{DeviceError, DeviceOptions, Watchdog};
pub use receive::{Receive, Received, Receiver};
pub use relay::{Relay, RelayEnd, RelayError, RelayOptions, RelaySide, RelayStatistics};
pub use statistics::QueueStatistics;
