//! Queueing disciplines without sockets, threads or clocks: when may which packet leave?
//!
//! A [`Qdisc`] takes packets ([`enqueue`](Qdisc::enqueue)) and gives them back ([`dequeue`](Qdisc::dequeue)),
//! or says until when it is throttled. The moment is an argument of every call, randomness is handed in, and
//! a watchdog is a moment that is returned: the caller arms a timer for it. So the same code shapes real
//! traffic and simulated one.
//!
//! ```
//! use quietcore_core::Nanos;
//! use quietcore_qdisc::{Dequeued, Fifo, FifoLimit, Qdisc, Enqueued};
//!
//! let mut queue = Fifo::new(FifoLimit::Packets(1));
//! assert_eq!(queue.enqueue(Nanos(0), vec![0; 60]), Enqueued::Queued);
//! assert_eq!(queue.enqueue(Nanos(0), vec![0; 60]), Enqueued::Dropped, "one is all it holds");
//! assert!(matches!(queue.dequeue(Nanos(0)), Dequeued::Packet(packet) if packet.len() == 60));
//! assert_eq!(queue.statistics().to_string(), "Sent 60 bytes 1 pkt (dropped 1, overlimits 0 requeues 0)");
//! ```
//!
//! Invariants of every discipline (tests of this crate): a packet comes out at most once, and what came in
//! is sent, dropped and counted, or still in `backlog` and `qlen`; `dequeue` at the moment that `Throttled`
//! named gives a packet or names a later one.
//!
//! Deliberately absent: devices, locks. Source: Linux net/sched, by behaviour, each
//! file its own; deviations are told there.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod action;
mod cake;
mod cbq;
pub mod checksum;
mod child;
mod class;
mod class_map;
mod classful;
mod codel;
mod distribution;
mod drr;
mod estimator;
mod ets;
mod fifo;
pub mod filter;
mod fq;
mod fq_codel;
mod hfsc;
mod htb;
mod ip;
mod kind;
mod multiq;
mod netem;
mod noqueue;
mod packet;
mod pfifo_fast;
mod pooled;
mod prio;
mod qdisc;
mod rate;
mod red;
mod refusal;
mod round;
mod sfq;
mod sorted;
mod statistics;
mod tbf;
pub mod tc;
mod tx_queue;

pub use cake::{
    Cake, CakeAckFilter, CakeCells, CakeError, CakeFlow, CakeFraming, CakeIsolation, CakeSettings,
    CakeStatistics, CakeTinStatistics, CakeTins,
};
pub use cbq::{Cbq, CbqClass, CbqClassStatistics, CbqError, CbqOverlimit, CbqSettings};
pub use child::InnerQdisc;
pub use class::ClassId;
pub use classful::{ClassListing, Classful};
pub use codel::{CeSelector, Codel, CodelLaw, CodelSettings, CodelStatistics};
pub use distribution::{Distribution, DistributionError, DistributionTextError};
pub use drr::{Drr, DrrError};
pub use estimator::{Estimator, EstimatorError};
pub use ets::{Ets, EtsError, EtsSettings};
pub use fifo::{Fifo, FifoLimit};
pub use fq::{Fq, FqError, FqSettings, FqStatistics, Horizon};
pub use fq_codel::{FqCodel, FqCodelError, FqCodelFlow, FqCodelSettings, FqCodelStatistics};
pub use hfsc::{CurveError, Hfsc, HfscClass, HfscError, HfscStatistics, ServiceCurve};
pub use htb::{Htb, HtbClass, HtbClassStatistics, HtbError, HtbQuantumWarning, HtbSettings};
pub use ip::{IpHeader, IpPacket, Segments};
pub use kind::PacketOrigin;
pub use multiq::Multiq;
pub use netem::{
    Chance, Netem, NetemDelay, NetemError, NetemLoss, NetemRate, NetemSettings, NetemSlot, OnLoss,
    Probability, SlotSpacing,
};
pub use noqueue::Noqueue;
pub use packet::{Packet, PacketSize, WHOLE_BYTES_MAX, WHOLE_PACKETS_MAX};
pub use pfifo_fast::PfifoFast;
pub use prio::{Prio, PrioError, PrioSettings};
pub use qdisc::{DelayTimer, Dequeued, Enqueued, Qdisc};
pub use rate::{LinkLayer, Rate};
pub use red::{IdleDamping, Red, RedCurve, RedError, RedSettings, RedStatistics};
pub use sfq::{Sfq, SfqError, SfqRed, SfqSettings, SfqStatistics};
pub use statistics::Statistics;
pub use tbf::{Tbf, TbfError, TbfLimit, TbfPeak, TbfSettings};
pub use tx_queue::{DEVICE_WEIGHT, TxQueue, TxTake, TxThen};
