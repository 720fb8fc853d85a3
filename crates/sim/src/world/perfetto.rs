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

#[cfg(test)]
mod tests {
    use super::{
        Event, Exporter, PerfettoWriter, Record, SimTimer, SoftirqStep, Task, TimerStart, Vector, id,
    };
    use crate::world::timers::{TimerKey, TimerRole};
    use quietcore_core::{Machine, Nanos, SequentialLock, Settings, TimerOptions, topology::Topology};
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Output(Arc<Mutex<Vec<u8>>>);

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Goal: what is exported is what happened: where, when, which timer, which softirq. Method: the same
    /// file from records that were written by hand; a timer that CPU 3 arms on CPU 5 and CPU 2 runs, and a
    /// softirq.
    #[test]
    fn events_are_recorded_as_they_happen() {
        let output = Output::default();
        let mut exporter = Exporter::new(Box::new(output.clone()));
        let topology = Topology::builder(1).build().expect("a CPU");
        let machine = Machine::<SequentialLock, u32>::new(topology, Settings::default());
        let mut machine = machine.expect("nobody is isolated");
        let key = TimerKey::Wheel(machine.add_timer(TimerOptions::new(), 7));
        let mut timer = SimTimer::new(key, TimerRole::Guard, TimerOptions::new());
        timer.base = 5;
        exporter.set_time(100, 10);
        exporter.armed(3, 7, &timer);
        exporter.set_time(200, 10);
        exporter.softirq(2, Vector::TIMER, SoftirqStep::Entry);
        exporter.expires(2, 7, &timer);
        exporter.set_time(260, 10);
        exporter.ran(2, 7);
        exporter.set_time(270, 10);
        exporter.softirq(2, Vector::TIMER, SoftirqStep::Exit);
        exporter.finish().expect("memory");
        let (number, function) = (8, b"request_timeout");
        let start = TimerStart {
            timer: number,
            function,
            expires: 0,
            timeout: 0,
            bucket_expiry: None,
            base: id(5),
            bucket: None,
            deferrable: false,
            pinned: false,
            irq_safe: false,
        };
        let softirq = |step| Event::Softirq { step, vector: 1 };
        let events = [
            (3, 100, Event::TimerStart(start)),
            (2, 200, softirq(SoftirqStep::Entry)),
            (2, 200, Event::TimerExpireEntry { timer: number, function, now: 20, baseclk: None }),
            (2, 260, Event::TimerExpireExit { timer: number }),
            (2, 270, softirq(SoftirqStep::Exit)),
        ];
        let mut writer = PerfettoWriter::new(Vec::new());
        for (line, (cpu, at, event)) in (1..).zip(events) {
            let task = Task { comm: b"simulated", pid: 0 };
            let record = Record { line, task, cpu: id(cpu), context: None, at: Nanos(at), event };
            writer.take(&record).expect("memory");
        }
        let written = output.0.lock().expect("no panic").clone();
        assert_eq!(written, writer.finish().expect("memory"));
    }
}
