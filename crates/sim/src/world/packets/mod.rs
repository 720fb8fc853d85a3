//! Packets: transmit queues with a netem, a lock and a watchdog each, and their senders.
//!
//! Disciplines are those that programs use (`quietcore_qdisc::Netem`), watchdogs are the machine's exact
//! timers: it decides on which CPU one is queued. The simulator adds the time, and what is done on which CPU,
//! as the kernel does: a sender enqueues under the queue's lock and runs the queue, unless a run is under
//! way; a run (`quietcore_qdisc::TxQueue`) takes one packet per hold of the lock and gives it to the driver
//! without it; a queue whose head must wait arms the watchdog, where it was run; the watchdog puts the queue
//! on the list of the CPU where it goes off, and NET_TX there runs the list.
//!
//! A *stream*'s sender is a receiver that acknowledges: frames arrive, an interrupt raises NET_RX on the
//! queue's CPU, which takes in 300 at most, sends a packet for each, and leaves the data to a task that
//! copies it. A *datagram*'s sender is a task. A wait for the lock is at the expense of the CPU that waits.
//!
//! Invariants, checked with the others: no packet of a window is lost; a queue whose head must wait has its
//! watchdog armed, is on a list, or is being run. Absent: interrupts while the lock is held (its holder is
//! paused, and the lock is free when it would have been), segmentation, losses on the way. Source: Linux
//! net/core/dev.c, net/sched/sch_generic.c and sch_netem.c of 2014, by behaviour.

mod handlers;
mod queue;
mod receive;
mod serve;
mod station;

pub(crate) use queue::SimQueue;
pub(crate) use station::PacketState;
