//! What a lane runs besides timers: softirqs, real-time tasks, work, normal tasks. In that order.
//!
//! One item at a time, and between any two: the clock, the heartbeat, the neighbours once per tick, timers
//! that are due, softirqs. No item is interrupted. A turn runs items for 2 ms or until it has run 64; then
//! its caller gets the thread back. A lane that has no item looks at what other lanes have before it waits.
//!
//! Gates: [core's lane/README.md](../../../core/src/lane/README.md). Source: docs/design/PROTOCOL.md,
//! sections 2, 4 and 9.

use super::outcome::TurnWork;
use super::turn::LaneDriver;
use crate::run_queue::Item;
use crate::softirq::Before;
use crate::timer::RunKind;
use crate::{task, work};
use quietcore_core::Nanos;
use quietcore_core::run_queue::{Activity, NextItem};
use quietcore_core::softirq::LaneSoftirqs;

/// Items per turn; the rest waits for the next one.
const ITEM_BUDGET: u32 = 64;

/// Longest turn, in ns.
const TIME_BUDGET: Nanos = Nanos(2_000_000);

impl LaneDriver {
    /// Whether something was left for this lane since it last looked. Cost: a load.
    #[inline]
    pub(super) fn has_items(&self) -> bool {
        self.queue().doorbell.is_rung()
    }

    /// Runs what waits for this lane, and what others have and do not get to.
    pub(super) fn run_items(&mut self, mut now: Nanos) -> TurnWork {
        let (started, queue) = (now, self.queue());
        let mut ran = TurnWork::default();
        let _ = queue.doorbell.answer();
        let mut before = Before::Other;
        while self.machine.is_running() {
            ran.softirqs += self.run_softirqs(before);
            if self.machine.is_forked() {
                break;
            }
            let next = self.machine.queues().next_item(self.cpu(), queue, self.state.role());
            let Some(next) = next else { break };
            before = if next.activity == Activity::Normal { Before::Other } else { Before::Realtime };
            let has_run = self.run_item(next);
            if self.machine.is_forked() {
                break;
            }
            ran.items += u32::from(has_run);
            let timers;
            (now, timers) = self.between_items();
            ran.timers += timers;
            if ran.items >= ITEM_BUDGET || now.since(started) >= TIME_BUDGET {
                // There may be more.
                queue.doorbell.ring();
                break;
            }
        }
        ran
    }

    fn run_softirqs(&mut self, before: Before) -> u32 {
        let (machine, cpu) = (self.machine, self.cpu());
        if machine.softirqs.vectors().is_empty() {
            return 0;
        }
        let softirqs = self.softirqs.get_or_insert_with(|| LaneSoftirqs::new(machine.defer_limit));
        machine.run_softirqs(softirqs, cpu, before)
    }

    /// Says whether it was run: it may have been cancelled.
    fn run_item(&mut self, next: NextItem<Item>) -> bool {
        let (machine, cpu, queue) = (self.machine, self.cpu(), self.queue());
        let activity = next.activity;
        let is_realtime = matches!(activity, Activity::Realtime(_));
        let Some(item) = machine.queues().begin(cpu, queue, next) else { return false };
        let counts = &machine.counts[cpu.index()];
        let has_run = match item {
            Item::Task(task) => {
                let running = task.metadata().running();
                counts.items.add_alone(1);
                let poll = || machine.guarded_as(RunKind::Item, cpu, || task::run(task, cpu)).flatten();
                let moved = machine.stalls.around(cpu, running, poll);
                if is_realtime {
                    counts.realtime_polls.add_alone(1);
                    counts.migrations.add_alone(u64::from(moved.is_some()));
                }
                true
            }
            Item::Work(work) => {
                let running = work.running();
                let guarded = |run: &dyn Fn()| {
                    counts.items.add_alone(1);
                    machine.stalls.around(cpu, running, || _ = machine.guarded_as(RunKind::Item, cpu, run));
                };
                let has_run = work::run(work, cpu, guarded);
                if has_run {
                    machine.tell_of_end();
                }
                has_run
            }
        };
        if !machine.is_forked() {
            // In a child that an item has forked locks are as they were at that moment.
            machine.queues().end(queue, activity);
        }
        has_run
    }
}
