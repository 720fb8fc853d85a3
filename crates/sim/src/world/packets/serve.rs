//! Sending and running a queue: what happens under its lock, and what that costs.

use super::queue::Run;
use crate::scenario::Cost;
use crate::world::record::What;
use crate::world::turn::Name;
use crate::world::{Event, World, id};
use quietcore_core::{Context, Nanos};
use quietcore_qdisc::{Dequeued, Qdisc, Verdict};
use quietcore_wheel::Expiry;

/// What was done with the lock, and after it.
struct Taken {
    /// The run goes on.
    run: Option<Run>,
    held: u64,
    after: u64,
}

impl World<'_> {
    /// `cpu` gets the lock of `queue`: how long that takes. Both waiting for its holder and for the line that
    /// it lies in are time that `cpu` spends in it.
    fn lock_queue(&mut self, cpu: u16, queue: u16) -> u64 {
        let handover = self.costs.of(Cost::LockHandover);
        let (wait, handover) = self.packets.locks.take(queue, cpu, self.now, [0, handover]);
        let figures = self.recorder.packets();
        figures.lock_waits += u64::from(wait > 0);
        figures.lock_wait_ns += wait + handover;
        wait + handover
    }

    /// `cpu` sends the packet of `queue` that it has in hand, and runs the queue if nobody does. Returns what
    /// that costs, and what it has to go on with.
    pub(super) fn send_packet(&mut self, cpu: u16, queue: u16) -> (Option<Run>, u64) {
        let spun = self.lock_queue(cpu, queue);
        let at = self.now + spun;
        let this = &mut self.packets.queues[usize::from(queue)];
        this.in_hand -= 1;
        let frame = this.frame(at);
        let verdict = this.netem.enqueue(Nanos(at), frame);
        let length = this.qlen();
        let mut taken = Taken { run: None, held: self.costs.of(Cost::PacketEnqueue), after: 0 };
        let figures = self.recorder.packets();
        figures.enqueue_ns += taken.held;
        figures.queue_max = figures.queue_max.max(length);
        match verdict {
            Verdict::Queued => {
                if let Some(run) = self.packets.queues[usize::from(queue)].begin_run(queue) {
                    let more = self.take_out(cpu, run, at);
                    taken = Taken { held: taken.held + more.held, ..more };
                }
            }
            Verdict::Lost | Verdict::Dropped => {
                figures.dropped += 1;
                if self.packets.queues[usize::from(queue)].dropped() {
                    self.queue.push(Nanos(self.now + super::RETRY), Event::SendAgain(queue));
                }
            }
        }
        self.packets.locks.hold(queue, taken.held);
        (taken.run, spun + taken.held + taken.after)
    }

    /// `cpu` takes the next packet out of the queue that it runs. Returns what that costs, and what it has to
    /// go on with.
    pub(super) fn run_step(&mut self, cpu: u16, run: Run) -> (Option<Run>, u64) {
        let spun = self.lock_queue(cpu, run.queue);
        let taken = self.take_out(cpu, run, self.now + spun);
        self.packets.locks.hold(run.queue, taken.held);
        (taken.run, spun + taken.held + taken.after)
    }

    /// Under the lock, since `at`: a packet leaves, or the watchdog is armed.
    fn take_out(&mut self, cpu: u16, run: Run, at: u64) -> Taken {
        let queue = run.queue;
        let this = &mut self.packets.queues[usize::from(queue)];
        match this.netem.dequeue(Nanos(at)) {
            Dequeued::Packet(frame) => {
                let is_home = cpu == this.home;
                // What another CPU has enqueued lies in a line that has to come from there.
                let line = if is_home { 0 } else { self.costs.of(Cost::LockHandover) };
                let (held, after) = (self.costs.of(Cost::PacketDequeue) + line, this.load.transmit);
                this.left(at + held + after);
                let left = run.left - 1;
                if left == 0 {
                    this.is_running = false;
                }
                let figures = self.recorder.packets();
                figures.dequeue_ns += held;
                *(if is_home { &mut figures.at_home } else { &mut figures.elsewhere }) += 1;
                if let Some(due) = frame.due {
                    self.recorder.packet_late(at - due);
                }
                self.note(What::Packet, cpu, u64::from(queue));
                self.expect_frames(queue);
                if left == 0 {
                    self.schedule_queue(cpu, queue);
                    return Taken { run: None, held, after };
                }
                Taken { run: Some(Run { queue, left }), held, after }
            }
            Dequeued::Throttled(until) => {
                this.is_running = false;
                Taken { run: None, held: self.arm_watchdog(cpu, queue, until.0), after: 0 }
            }
            Dequeued::Empty => {
                this.is_running = false;
                Taken { run: None, held: 0, after: 0 }
            }
        }
    }

    /// `cpu`, which has run `queue`, arms its watchdog; the same moment again costs nothing.
    fn arm_watchdog(&mut self, cpu: u16, queue: u16, until: u64) -> u64 {
        let this = &mut self.packets.queues[usize::from(queue)];
        if this.armed.replace(until) == Some(until) {
            return 0;
        }
        let timer = this.watchdog;
        let looks = self.looks(cpu, timer);
        self.recorder.figures.looks += looks;
        let this = &mut self.timers[timer as usize];
        let Name::Exact(name) = this.id else { unreachable!("watchdogs are exact") };
        let context = Context::on(id(cpu), Nanos(self.now));
        let armed = self.machine.arm(name, Expiry::at(until), context, &mut self.actions);
        let armed = armed.expect("a world's timers exist and are not shut down");
        assert!(armed.was_pending == this.is_pending, "timer {timer}: the machine lost count of it");
        let base = armed.base.cpu.index() as u16;
        (this.expires, this.delay) = (until, until.saturating_sub(self.now));
        (this.armed_on, this.base, this.is_pending, this.seen_at) = (cpu, base, true, self.now);
        this.pulled_from = None;
        self.recorder.figures.arms += 1;
        self.queue.push(Nanos(until), Event::Watchdog(timer));
        self.note(What::Arm, cpu, until ^ u64::from(timer) << 40 ^ u64::from(base) << 20);
        self.export(|exporter, world| exporter.armed(world, cpu, timer));
        let arm = self.costs.of(Cost::Arm);
        self.work_on(base, cpu, arm) + looks * self.costs.of(Cost::Look) + self.carry_out(cpu)
    }
}
