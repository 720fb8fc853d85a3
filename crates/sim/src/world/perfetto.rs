//! A run as tracks to scroll through: the simulated events as if a kernel had recorded them.
//!
//! Written by the exporter of real recordings (`quietcore_trace::PerfettoWriter`), so both look alike. Names
//! of callbacks are those of the loads. The first failure of the output is kept and returned at the end.

use super::cpu_id::id;
use super::timers::SimTimer;
use quietcore_core::Nanos;
use quietcore_core::softirq::Vector;
use quietcore_trace::{Event, PerfettoWriter, Record, SoftirqStep, Task, TimerStart};
use std::io::{self, Write};

/// Writes a run to a file for Perfetto.
pub(crate) struct Exporter {
    writer: PerfettoWriter<Box<dyn Write>>,
    failed: Option<io::Error>,
    lines: u64,
    now: u64,
    tick: u64,
}

impl Exporter {
    pub(crate) fn new(out: Box<dyn Write>) -> Self {
        Self { writer: PerfettoWriter::new(out), failed: None, lines: 0, now: 0, tick: 1 }
    }

    /// What comes now happens at `now`; a tick is `tick` ns long.
    pub(crate) const fn set_time(&mut self, now: u64, tick: u64) {
        (self.now, self.tick) = (now, tick);
    }

    fn take(&mut self, cpu: u16, event: Event<'_>) {
        if self.failed.is_some() {
            return;
        }
        self.lines += 1;
        let task = Task { comm: b"simulated", pid: 0 };
        let record =
            Record { line: self.lines, task, cpu: id(cpu), context: None, at: Nanos(self.now), event };
        self.failed = self.writer.take(&record).err();
    }

    /// `cpu` has armed `timer`, which has this number.
    pub(crate) fn armed(&mut self, cpu: u16, number: u32, timer: &SimTimer) {
        let start = TimerStart {
            timer: u64::from(number) + 1,
            function: timer.role.callback_name(),
            expires: timer.expires / self.tick,
            timeout: (timer.delay / self.tick) as i64,
            bucket_expiry: None,
            base: id(timer.base),
            bucket: None,
            deferrable: timer.is_deferrable,
            pinned: timer.is_pinned,
            irq_safe: false,
        };
        self.take(cpu, Event::TimerStart(start));
    }

    pub(crate) fn expires(&mut self, cpu: u16, number: u32, timer: &SimTimer) {
        let (timer, function) = (u64::from(number) + 1, timer.role.callback_name());
        let now = self.now / self.tick;
        self.take(cpu, Event::TimerExpireEntry { timer, function, now, baseclk: None });
    }

    pub(crate) fn ran(&mut self, cpu: u16, number: u32) {
        self.take(cpu, Event::TimerExpireExit { timer: u64::from(number) + 1 });
    }

    pub(crate) fn softirq(&mut self, cpu: u16, vector: Vector, step: SoftirqStep) {
        self.take(cpu, Event::Softirq { step, vector: vector.index() as u8 });
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.finish().map(|_| ()),
        }
    }
}
