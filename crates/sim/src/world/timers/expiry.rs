//! What is known of a timer when it runs, and of timers that should have run.

use super::layer::TimerLayer;
use super::timer::SimTimer;
use crate::world::context::{NotedEvent, RunAccess};
use crate::world::cpu_id::id;
use quietcore_core::ExpiredTimer;

impl TimerLayer<'_> {
    /// A timer begins to run on `cpu`: counts it, and returns what it was armed for.
    pub(crate) fn begins(&mut self, cpu: u16, expired: &ExpiredTimer<u32>) -> SimTimer {
        let number = expired.payload();
        let (base, now) = (expired.base().cpu.index() as u16, self.run.now);
        let this = &mut self.all[number as usize];
        assert!(this.is_pending, "timer {number} runs a second time, or was cancelled");
        this.is_pending = false;
        let is_remote = base != cpu;
        this.pulled_from = is_remote.then_some(this.base);
        let timer = *this;
        let armed_on = timer.armed_on;
        let is_foreign = armed_on != cpu && self.is_isolated(cpu) && !self.is_isolated(armed_on);
        let figures = &mut self.run.recorder.figures;
        figures.expiries += 1;
        figures.remote += u64::from(is_remote);
        figures.foreign_pulled += u64::from(is_foreign && is_remote);
        figures.early += u64::from(timer.is_early(now));
        figures.pinned_away += u64::from(timer.is_pinned_away(cpu));
        if is_foreign {
            self.run.recorder.foreign(id(cpu));
        }
        if !timer.is_deferrable {
            self.run.recorder.lateness(now.saturating_sub(timer.expires));
            let bound = self.bound(8, 4);
            self.run.recorder.figures.past_bound += u64::from(timer.is_beyond(bound, now));
        }
        self.run.note(NotedEvent::Expire, cpu, u64::from(number) << 16 | u64::from(base));
        self.run.export(|exporter| exporter.expires(cpu, number, &timer));
        timer
    }

    /// Timers that are overdue beyond every bound.
    pub(crate) fn lost(&self) -> u64 {
        let (bound, end) = (self.bound(100, 10), self.run().end);
        self.all.iter().filter(|timer| timer.is_pending && timer.is_beyond(bound, end)).count() as u64
    }

    /// How late a timer may be beside what its precision allows: what the faults amount to, `callbacks` of
    /// the longest, and `ticks`.
    fn bound(&self, callbacks: u64, ticks: u64) -> u64 {
        let faults = &self.plan().faults;
        // A CPU that stalls again and again does what waits in between.
        let blocked = 4 * faults.stalls.iter().map(|stall| stall.blocked).max().unwrap_or(0);
        // A lost kick is sent again until it arrives: a hundred in a row are not lost.
        let retries = if faults.lost_kicks.percent > 0 { faults.lost_kicks.span * 100 } else { 0 };
        let longest = self.plan().loads.iter().map(|load| load.longest()).max().unwrap_or(0);
        blocked + retries + faults.late_wakeups.span + callbacks * longest + ticks * self.plan().tick.0
    }
}
