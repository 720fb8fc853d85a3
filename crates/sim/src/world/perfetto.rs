//! A run as tracks to scroll through: the simulated events as if a kernel had recorded them.
//!
//! Written by the exporter of real recordings (`quietcore_trace::PerfettoWriter`), so both look alike. Names
//! of callbacks are those of the loads. The first failure of the output is kept and returned at the end.

use super::World;
use super::turn::Role;
use quietcore_core::softirq::Vector;
use quietcore_core::{CpuId, Nanos};
use quietcore_trace::{Event, PerfettoWriter, Record, SoftirqStep, Task, TimerStart};
use std::io::{self, Write};

/// Writes a run to a file for Perfetto.
pub(crate) struct Exporter {
    writer: PerfettoWriter<Box<dyn Write>>,
    failed: Option<io::Error>,
    lines: u64,
}

impl Exporter {
    pub(crate) fn new(out: Box<dyn Write>) -> Self {
        Self { writer: PerfettoWriter::new(out), failed: None, lines: 0 }
    }

    fn take(&mut self, at: u64, cpu: u16, event: Event<'_>) {
        if self.failed.is_some() {
            return;
        }
        self.lines += 1;
        let Ok(cpu) = CpuId::new(u64::from(cpu)) else { return };
        let task = Task { comm: b"simulated", pid: 0 };
        let record = Record { line: self.lines, task, cpu, context: None, at: Nanos(at), event };
        self.failed = self.writer.take(&record).err();
    }

    pub(super) fn armed(&mut self, world: &World<'_>, cpu: u16, timer: u32) {
        let this = &world.timers[timer as usize];
        let tick = world.plan.tick.0;
        let start = TimerStart {
            timer: u64::from(timer) + 1,
            function: name(world, timer),
            expires: this.expires / tick,
            timeout: (this.delay / tick) as i64,
            bucket_expiry: None,
            base: super::id(this.base),
            bucket: None,
            deferrable: this.is_deferrable,
            pinned: this.is_pinned,
        };
        self.take(world.now, cpu, Event::TimerStart(start));
    }

    pub(super) fn expires(&mut self, world: &World<'_>, cpu: u16, timer: u32) {
        let now = world.now / world.plan.tick.0;
        let function = name(world, timer);
        let event = Event::TimerExpireEntry { timer: u64::from(timer) + 1, function, now, baseclk: None };
        self.take(world.now, cpu, event);
    }

    pub(super) fn ran(&mut self, world: &World<'_>, cpu: u16, timer: u32) {
        self.take(world.now, cpu, Event::TimerExpireExit { timer: u64::from(timer) + 1 });
    }

    pub(super) fn softirq(&mut self, world: &World<'_>, (cpu, vector): (u16, Vector), begins: bool) {
        let step = if begins { SoftirqStep::Entry } else { SoftirqStep::Exit };
        self.take(world.now, cpu, Event::Softirq { step, vector: vector.index() as u8 });
    }

    pub(super) fn finish(self) -> io::Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.finish().map(|_| ()),
        }
    }
}

/// What a timer's callback is called.
fn name(world: &World<'_>, timer: u32) -> &'static [u8] {
    match world.timers[timer as usize].role {
        Role::Wake(_) => b"process_timeout",
        Role::Guard => b"request_timeout",
        Role::Work(_) => b"delayed_work_timer_fn",
        Role::Periodic(_) => b"periodic",
        Role::Remote => b"armed_elsewhere",
        Role::Scripted(_) => b"scripted",
        Role::Watchdog(_) => b"qdisc_watchdog",
    }
}

impl World<'_> {
    /// Shows the exporter something, if there is one.
    pub(super) fn export(&mut self, show: impl FnOnce(&mut Exporter, &Self)) {
        if let Some(mut exporter) = self.exporter.take() {
            show(&mut exporter, self);
            self.exporter = Some(exporter);
        }
    }
}
