//! Sending and running a queue: what happens under its lock, and what that costs.

use crate::scenario::Cost;
use crate::world::context::{NotedEvent, RunAccess};
use crate::world::event::SimEvent;
use crate::world::softirqs::SoftirqLayer;
use crate::world::timers::{LockCost, LockUse};
use quietcore_core::Nanos;
use quietcore_qdisc::{Enqueued, TxTake, TxThen};
use std::collections::VecDeque;

/// For how long a packet that was dropped is missed: the shortest time-out of TCP (`TCP_RTO_MIN`).
const RETRY: u64 = 200_000_000;

/// What was done with the lock, and after it.
struct UnderLock {
    /// The run goes on.
    goes_on: bool,
    held: u64,
    after: u64,
}

impl SoftirqLayer<'_> {
    /// `cpu` gets the lock of `queue`: how long that takes. Both waiting for its holder and for the line that
    /// it lies in are time that `cpu` spends in it.
    fn lock_queue(&mut self, cpu: u16, queue: u16) -> u64 {
        let handover = self.cost(Cost::LockHandover);
        let wanted = LockUse { hold: 0, handover };
        let LockCost { wait, handover } =
            self.packets.locks.take(queue, cpu, self.tasks.timers.run.now, wanted);
        let figures = self.recorder().packets();
        figures.lock_waits += u64::from(wait > 0);
        figures.lock_wait_ns += wait + handover;
        wait + handover
    }

    /// `cpu` sends the packet of `queue` that it has in hand, and runs the queue unless a run is under way.
    /// Returns whether its own run goes on, and what that costs.
    pub(crate) fn send_packet(&mut self, cpu: u16, queue: u16) -> (bool, u64) {
        let spun = self.lock_queue(cpu, queue);
        let at = self.now() + spun;
        let this = &mut self.packets.queues[usize::from(queue)];
        this.in_hand -= 1;
        let frame = this.frame(at);
        let verdict = this.tx.enqueue(Nanos(at), frame);
        let length = this.qlen();
        let mut taken = UnderLock { goes_on: false, held: self.cost(Cost::PacketEnqueue), after: 0 };
        let figures = self.recorder().packets();
        figures.enqueue_ns += taken.held;
        figures.queue_max = figures.queue_max.max(length);
        match verdict {
            Enqueued::Queued => {
                if self.packets.queues[usize::from(queue)].tx.begin() {
                    let more = self.take_out(cpu, queue, at);
                    taken = UnderLock { held: taken.held + more.held, ..more };
                }
            }
            Enqueued::Lost | Enqueued::Dropped => {
                figures.dropped += 1;
                if self.packets.queues[usize::from(queue)].dropped() {
                    self.push(Nanos(self.now() + RETRY), SimEvent::SendAgain(queue));
                }
            }
        }
        self.packets.locks.hold(queue, taken.held);
        (taken.goes_on, spun + taken.held + taken.after)
    }

    /// `cpu` takes the next packet out of the queue that it runs. Returns whether the run goes on, and what
    /// the step costs.
    pub(crate) fn run_step(&mut self, cpu: u16, queue: u16) -> (bool, u64) {
        let spun = self.lock_queue(cpu, queue);
        let taken = self.take_out(cpu, queue, self.now() + spun);
        self.packets.locks.hold(queue, taken.held);
        (taken.goes_on, spun + taken.held + taken.after)
    }

    /// Under the lock, since `at`: a packet leaves, or the watchdog is armed.
    fn take_out(&mut self, cpu: u16, queue: u16, at: u64) -> UnderLock {
        let this = &mut self.packets.queues[usize::from(queue)];
        let mut batch = VecDeque::new();
        let over = match this.tx.take(Nanos(at), &mut batch, 1) {
            TxTake::Over(then) => Some(then),
            TxTake::Batch(_) => None,
        };
        let Some(frame) = batch.pop_front() else {
            let watchdog = this.watchdog;
            let held = match over {
                Some(TxThen::Arm(until)) => self.tasks.timers.arm_watchdog(cpu, watchdog, until.0),
                _ => 0,
            };
            return UnderLock { goes_on: false, held, after: 0 };
        };
        let is_home = cpu == this.home;
        // What another CPU has enqueued lies in a line that has to come from there.
        let costs = &self.tasks.timers.run.costs;
        let line = if is_home { 0 } else { costs.of(Cost::LockHandover) };
        let (held, after) = (costs.of(Cost::PacketDequeue) + line, this.load.transmit);
        this.left(at + held + after);
        // The driver takes every packet.
        let then = this.tx.transmitted(Nanos(at), &mut batch);
        let figures = self.recorder().packets();
        figures.dequeue_ns += held;
        *(if is_home { &mut figures.at_home } else { &mut figures.elsewhere }) += 1;
        if let Some(due) = frame.due {
            self.recorder().packet_late(at - due);
        }
        self.note(NotedEvent::Packet, cpu, u64::from(queue));
        self.expect_frames(queue);
        if then == Some(TxThen::Again) {
            self.schedule_queue(cpu, queue);
        }
        UnderLock { goes_on: then.is_none(), held, after }
    }
}
