//! The loop: takes one event after the other to what handles it, checks invariants, and collects the figures.

use super::context::RunAccess;
use super::event::SimEvent;
use super::events::World;
use super::why;
use crate::figures::RunFigures;
use crate::script::{ScriptOccurrence, ScriptStep};
use quietcore_core::{Nanos, Precision};
use std::io;

/// So many CPUs are looked at after every event, when invariants are checked.
const CHECKED_ALWAYS: usize = 16;

/// Events between two looks at whether to go on.
const EVENTS_PER_TURN: u64 = 100_000;

/// Told how far a run is, in simulated time; says whether to go on.
pub(crate) type RunProgress<'a> = &'a mut dyn FnMut(Nanos, u64) -> bool;

impl World<'_> {
    /// Runs to the end; `None` when `progress` said to stop.
    pub(crate) fn run_to_end(mut self, progress: RunProgress<'_>) -> io::Result<Option<RunFigures>> {
        if !self.run_events(progress) {
            return Ok(None);
        }
        self.finish().map(Some)
    }

    /// Does `steps` beside the loads, up to the end of the plan: what happened to their timers.
    pub(crate) fn play(mut self, steps: &[ScriptStep], precision: Precision) -> Vec<ScriptOccurrence> {
        self.cpu_time.follow(steps, precision);
        self.run_events(&mut |_, _| true);
        self.cpu_time.script.happened
    }

    /// To the end, unless `progress` says to stop; says whether it was reached.
    fn run_events(&mut self, progress: RunProgress<'_>) -> bool {
        let (end, is_checked) = (self.run().end, self.run().options.check);
        while self.run().queue.next_at().is_some_and(|next| next.0 <= end) {
            let run = self.run_mut();
            let Some((at, event)) = run.queue.pop() else { break };
            run.now = at.0;
            run.events += 1;
            self.handle(event);
            if is_checked {
                self.check();
            }
            let events = self.run().events;
            if events.is_multiple_of(EVENTS_PER_TURN) && !progress(Nanos(self.now()), events) {
                return false;
            }
        }
        self.run_mut().now = end;
        true
    }

    fn handle(&mut self, event: SimEvent) {
        match event {
            SimEvent::Begin(cpu) => self.proceed(cpu),
            SimEvent::Segment(cpu, generation) => self.segment_ends(cpu, generation),
            SimEvent::Tick(cpu, generation) => self.tick(cpu, generation),
            SimEvent::Wakeup(cpu, generation) => self.wakeup(cpu, generation),
            SimEvent::Kick(cpu) => self.interrupt(cpu, why::KICK),
            SimEvent::Start(task) => self.start(task),
            SimEvent::Alarm => self.timers().handle_alarm(),
            SimEvent::Sentinel => self.cpu_time.sentinel_looks(),
            SimEvent::StallBegin(fault) => self.stall_begins(fault),
            SimEvent::StallEnd(fault) => self.stall_ends(fault),
            SimEvent::Isolate(fault) => self.isolate(fault),
            SimEvent::Plug(fault) => self.plug(fault),
            SimEvent::Device(device) => self.device(device),
            SimEvent::Interval(thread) => self.interval_ends(thread),
            SimEvent::DeferLimit(cpu) => self.defer_limit(cpu),
            SimEvent::Call(cpu) => self.called(cpu),
            SimEvent::Frames(queue) => self.frames_arrive(queue),
            SimEvent::SendAgain(queue) => self.softirqs().send_again(queue),
            SimEvent::Watchdog(timer) => self.watchdog_due(timer),
        }
    }
}

impl World<'_> {
    /// The invariants of the machine, after every event that could change it. They hold as soon as its
    /// actions are carried out: when no kick is on its way.
    pub(super) fn check(&mut self) {
        let timers = self.timers();
        assert!(timers.actions.is_empty(), "an action was not carried out");
        // On large machines not after every event: it looks at all CPUs.
        let is_touched = timers.run.is_touched;
        let is_due = is_touched || self.tasks().cpus.len() <= CHECKED_ALWAYS;
        let has_devices = !self.devices.is_empty() || !self.tasks().realtime.threads.is_empty();
        if is_due && (has_devices || !self.softirqs().packets.is_empty()) {
            self.softirqs().check_softirqs();
            self.softirqs().check_packets();
        }
        let now = self.cpu_time.now();
        let timers = self.timers();
        if timers.kicked == 0 && std::mem::take(&mut timers.run.is_touched) {
            timers.run.recorder.figures.checks += 1;
            timers.machine.check_at(Nanos(now));
        }
    }

    fn finish(mut self) -> io::Result<RunFigures> {
        for cpu in 0..self.tasks().cpus.len() as u16 {
            self.cpu_time.account_idle(cpu);
        }
        if let Some(exporter) = self.run_mut().exporter.take() {
            exporter.finish()?;
        }
        self.softirqs().finish_softirqs();
        self.softirqs().finish_packets();
        self.tasks().finish_realtime();
        let lost = self.timers().lost();
        Ok(self.cpu_time.softirqs.tasks.timers.run.finish(lost))
    }
}
