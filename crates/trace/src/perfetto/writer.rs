//! Events as tracks to scroll through: per CPU its timers, hrtimers, softirqs, interrupts, work items and
//! pulls, and arrows from what started them on other CPUs. Described for users in
//! `docs/reference/perfetto.md`.
//!
//! What becomes a slice: a callback is held back until it is known how it ended. If its own exit
//! is the next entry or exit of that kind on its CPU, it is a slice from entry to exit. Otherwise
//! (exits not recorded, or this one lost) its length is unknown and it is an instant. One that
//! still runs at the end of a recording that has exits is a slice until the last event.
//!
//! hrtimers nest once: a callback in a HRTIMER softirq can be interrupted by one in hard irq
//! context. So an hrtimer entry during a callback makes that one the *outer* slice, if the recording
//! has exits and the CPU is (or, without softirq events, may be) inside that softirq. It ends at its
//! exit or, should that be lost, at the softirq's exit or at the first event of another task on that
//! CPU. Wheel timers, softirqs, interrupts and work items never nest.
//!
//! A work item ends where its worker loses the CPU, by waiting or otherwise; what it does when it
//! is back is not shown. Where the switch is not in the input but another task's event is, it is an
//! instant.
//!
//! A mark of lost events ends what is open on its CPU: what is held back becomes an instant, and an
//! outer slice ends at the mark. What had been started anywhere before it has no cause.
//!
//! Invariants: every beginning has one end, in the order of a stack per track; every arrow begins
//! once, at its cause, and ends once, no earlier, at its effect, on another CPU; per CPU at most one
//! callback per kind is held back, and one outer; what was started is remembered in tables that are
//! capped.

use super::packets::{Content, FlowId, Label, Phase, Track, TrackPackets, TrackTime};
use super::starts::{StartPoint, StartTable};
use crate::event::{Event, Record, SoftirqStep, SpanStep};
use crate::table::IDENTITIES_MAX;
use quietcore_core::softirq::Vector;
use quietcore_core::{CpuId, Nanos};
use std::fmt;
use std::io::{self, Write};

const HRTIMER_VECTOR: u8 = 8;
/// The tracks whose events have exits.
const WITH_EXITS: [Track; 5] =
    [Track::Timers, Track::Hrtimers, Track::Softirqs, Track::Interrupts, Track::Work];
/// Numbers of interrupts of the processor's own, above those of devices, which have 32 bits. Another CPU's
/// are numbered by their names, if those are remembered.
const SYSTEM: u64 = 1 << 32;
const SENT: u64 = 2 << 32;
const SENT_OTHERS: u64 = 3 << 32;

/// A callback or handler whose end is not known yet.
#[derive(Debug)]
struct HeldSlice {
    identity: u64,
    /// Whose time it runs in.
    pid: i32,
    at: Nanos,
    content: Content,
}

/// A callback whose beginning is written, and which another one interrupted.
#[derive(Clone, Copy, Debug)]
struct OuterSlice {
    identity: u64,
    pid: i32,
}

/// What a CPU is in the middle of.
#[derive(Debug, Default)]
struct CpuSlices {
    held: [Option<HeldSlice>; WITH_EXITS.len()],
    /// An outer callback on [`Track::Hrtimers`].
    outer: Option<OuterSlice>,
}

/// Writes a Perfetto trace while a recording is read; <https://ui.perfetto.dev> opens it.
///
/// Give it every record in the order of the input, then call [`PerfettoWriter::finish`]. Time
/// stamps are the recording's, in ns. Memory: the tables of what was started (see
/// [`PerfettoWriter::with_identities_max`]), under 2 KiB per CPU, and 64 KiB of output. Cost: one
/// table access per timer start; per callback under 1 us, and 50 bytes as an instant or 75 as a
/// slice, with an arrow 70 more. One thread.
pub struct PerfettoWriter<W> {
    packets: TrackPackets<W>,
    cpus: Vec<CpuSlices>,
    starts: StartTable,
    /// Whether an exit was seen, by track.
    has_exits: [bool; WITH_EXITS.len()],
    /// The same of each interrupt, as each has events of its own: a bit per [`exit_bit`].
    interrupt_exits: u64,
    last_at: Nanos,
}

/// Devices' interrupts, those of other CPUs, and each of the processor's own.
fn exit_bit(interrupt: u64) -> u64 {
    match interrupt / SYSTEM {
        0 => 1,
        1 => 4 << (interrupt - SYSTEM).min(32),
        _ => 2,
    }
}

impl<W> fmt::Debug for PerfettoWriter<W> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PerfettoWriter")
            .field("cpus", &self.cpus.len())
            .field("has_exits", &self.has_exits)
            .field("last_at", &self.last_at)
            .finish_non_exhaustive()
    }
}

impl<W: Write> PerfettoWriter<W> {
    /// A writer that remembers as many timers as `quietcore-explain` does by default
    /// ([`IDENTITIES_MAX`]), so that it finds the same pulls. Nothing is written yet.
    #[must_use]
    pub fn new(out: W) -> Self {
        Self::with_identities_max(out, IDENTITIES_MAX)
    }

    /// As [`PerfettoWriter::new`], remembering at most `identities_max` wheel timers and as many
    /// hrtimers: about 70 bytes each at the most; and 65,536 work items that were queued, or
    /// `identities_max` if that is less. What had been forgotten is shown without a cause, an expiry of
    /// such a timer without `armed_cpu`, and never as a pull.
    #[must_use]
    pub fn with_identities_max(out: W, identities_max: usize) -> Self {
        Self {
            packets: TrackPackets::new(out),
            cpus: Vec::new(),
            starts: StartTable::new(identities_max),
            has_exits: [false; WITH_EXITS.len()],
            interrupt_exits: 0,
            last_at: Nanos(0),
        }
    }

    /// Takes the next event of the input.
    ///
    /// # Errors
    /// Those of the output. The file is useless then, and so is this writer.
    pub fn take(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.last_at = self.last_at.max(record.at);
        if let Event::Lost { .. } = record.event {
            return self.forget(record);
        }
        self.end_of_other_tasks(record)?;
        match &record.event {
            Event::TimerExpireEntry { timer, function, .. } => self.timer_expires(record, *timer, function),
            Event::TimerExpireExit { timer } => self.leave(record, Track::Timers, *timer),
            Event::HrtimerExpireEntry { hrtimer, function, .. } => {
                let from = self.starts.of_hrtimer(*hrtimer);
                let flow = self.arrow(record, from, |packets| packets.cause_label("arm", function))?;
                let armed_cpu = from.map(|from| from.cpu);
                let label = self.packets.label(function);
                let content = Content { armed_cpu, flow, ..Content::new(label, record.line) };
                self.enter(record, Track::Hrtimers, *hrtimer, content)
            }
            Event::HrtimerExpireExit { hrtimer } => self.leave(record, Track::Hrtimers, *hrtimer),
            Event::Softirq { step, vector } => self.take_softirq(record, *step, *vector),
            Event::DeviceInterrupt { .. } | Event::SystemInterrupt { .. } | Event::IpiHandled { .. } => {
                self.take_interrupt(record)
            }
            Event::WorkStart { work, function } => {
                let from = self.starts.of_work(*work);
                let flow = self.arrow(record, from, |packets| packets.cause_label("queue", function))?;
                let label = self.packets.label(function);
                let content = Content { flow, ..Content::new(label, record.line) };
                self.enter(record, Track::Work, *work, content)
            }
            Event::WorkEnd { work } => self.leave(record, Track::Work, *work),
            Event::SchedSwitch { previous, .. } => self.leave_cpu(record, previous.pid),
            _ => {
                self.starts.take(record, &mut self.packets);
                Ok(())
            }
        }
    }

    /// Ends what is still running, writes what is left and gives the output back. Without this
    /// call the file lacks its end.
    ///
    /// # Errors
    /// Those of the output, flushing included.
    pub fn finish(mut self) -> io::Result<W> {
        let last_at = self.last_at;
        for index in 0..self.cpus.len() {
            let Ok(cpu) = CpuId::new(index as u64) else { break };
            for track in WITH_EXITS {
                if let Some(held) = self.running(cpu).held[track as usize].take() {
                    let is_interrupt = track == Track::Interrupts;
                    let lasts = !is_interrupt || self.interrupt_exits & exit_bit(held.identity) != 0;
                    let ended = (lasts && self.has_exits[track as usize]).then_some(last_at);
                    self.write_held(TrackTime { cpu, track, at: last_at }, &held, ended)?;
                }
            }
            self.end_outer(cpu, last_at)?;
        }
        self.packets.finish()
    }

    fn running(&mut self, cpu: CpuId) -> &mut CpuSlices {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize_with(cpu.index() + 1, CpuSlices::default);
        }
        &mut self.cpus[cpu.index()]
    }

    /// Whether an hrtimer's callback on `cpu` can be interrupted by another one now.
    fn may_have_outer(&mut self, cpu: CpuId) -> bool {
        let [_, has_hrtimer_exits, has_softirq_exits, ..] = self.has_exits;
        let softirq = self.running(cpu).held[Track::Softirqs as usize].as_ref();
        let is_inside = softirq.is_some_and(|held| held.identity == u64::from(HRTIMER_VECTOR));
        has_hrtimer_exits && (is_inside || !has_softirq_exits)
    }

    /// Events were lost on this CPU: nothing is open there, as far as is known.
    fn forget(&mut self, mark: &Record<'_>) -> io::Result<()> {
        self.starts.forget(mark);
        for track in WITH_EXITS {
            if let Some(held) = self.running(mark.cpu).held[track as usize].take() {
                self.write_held(TrackTime { cpu: mark.cpu, track, at: mark.at }, &held, None)?;
            }
        }
        self.end_outer(mark.cpu, mark.at)
    }

    /// Ends what ran in the time of another task than the event's.
    fn end_of_other_tasks(&mut self, record: &Record<'_>) -> io::Result<()> {
        let running = self.running(record.cpu);
        let work = running.held[Track::Work as usize].take_if(|held| held.pid != record.task.pid);
        if running.outer.is_some_and(|outer| outer.pid != record.task.pid) {
            self.end_outer(record.cpu, record.at)?;
        }
        let Some(work) = work else { return Ok(()) };
        self.write_held(TrackTime { cpu: record.cpu, track: Track::Work, at: record.at }, &work, None)
    }

    /// A task leaves the CPU, in the middle of a work item if it is a worker that has one.
    fn leave_cpu(&mut self, record: &Record<'_>, previous: i32) -> io::Result<()> {
        let work = self.running(record.cpu).held[Track::Work as usize].take_if(|held| held.pid == previous);
        let Some(work) = work else { return Ok(()) };
        // Without ends of work items it may have been over for long.
        let ended = self.has_exits[Track::Work as usize].then_some(record.at);
        self.write_held(TrackTime { cpu: record.cpu, track: Track::Work, at: record.at }, &work, ended)
    }

    /// What begins now was started at `from`: if on another CPU, writes that under its name, and the arrow
    /// that is to end here. Where time ran back there is none.
    fn arrow(
        &mut self,
        record: &Record<'_>,
        from: Option<StartPoint>,
        name: impl FnOnce(&mut TrackPackets<W>) -> Label,
    ) -> io::Result<Option<FlowId>> {
        let Some(from) = from.filter(|from| from.cpu != record.cpu && from.at <= record.at) else {
            return Ok(None);
        };
        let name = name(&mut self.packets);
        self.packets.cause(from.cpu, from.at, from.line, name).map(Some)
    }

    fn timer_expires(&mut self, record: &Record<'_>, timer: u64, function: &[u8]) -> io::Result<()> {
        let from = self.starts.of_timer(timer);
        let flow = self.arrow(record, from, |packets| packets.cause_label("arm", function))?;
        let (armed_cpu, base_cpu) = (from.map(|from| from.cpu), from.and_then(|from| from.base_cpu));
        if let Some(base) = base_cpu.filter(|&base| base != record.cpu) {
            let label = self.packets.pull_label(function, base);
            let pull = Content { armed_cpu, base_cpu, ..Content::new(label, record.line) };
            let place = TrackTime { cpu: record.cpu, track: Track::Pulls, at: record.at };
            self.packets.event(place, Phase::Instant, Some(&pull))?;
        }
        let label = self.packets.label(function);
        let content = Content { armed_cpu, base_cpu, flow, ..Content::new(label, record.line) };
        self.enter(record, Track::Timers, timer, content)
    }

    /// An interrupt begins or ends.
    fn take_interrupt(&mut self, record: &Record<'_>) -> io::Result<()> {
        let (step, number) = match &record.event {
            Event::DeviceInterrupt { step, number, .. } => (*step, *number),
            Event::SystemInterrupt { step, interrupt } => (*step, SYSTEM + *interrupt as u64),
            Event::IpiHandled { step, reason } => {
                let known = self.packets.label(reason).number();
                (*step, known.map_or(SENT_OTHERS, |number| SENT + number as u64))
            }
            _ => return Ok(()),
        };
        if step == SpanStep::Exit {
            self.interrupt_exits |= exit_bit(number);
            return self.leave(record, Track::Interrupts, number);
        }
        let (label, sent) = match &record.event {
            Event::SystemInterrupt { interrupt, .. } => {
                let sent = self.starts.of_interrupt(record.cpu, *interrupt);
                (self.packets.label(interrupt.name().as_bytes()), sent)
            }
            Event::IpiHandled { reason, .. } => {
                (self.packets.label(reason), self.starts.of_ipi(record.cpu, reason))
            }
            Event::DeviceInterrupt { name, .. } => {
                (self.packets.label(&[number.to_string().as_bytes(), b" ", name].concat()), None)
            }
            _ => return Ok(()),
        };
        let flow = match sent {
            Some(sent) => self.arrow(record, Some(sent.from), |_| sent.label)?,
            None => None,
        };
        self.enter(record, Track::Interrupts, number, Content { flow, ..Content::new(label, record.line) })
    }

    fn take_softirq(&mut self, record: &Record<'_>, step: SoftirqStep, vector: u8) -> io::Result<()> {
        match step {
            SoftirqStep::Raise => Ok(()),
            SoftirqStep::Entry => {
                let label = match Vector::from_index(vector).filter(|known| *known <= Vector::RCU) {
                    Some(known) => self.packets.label(known.name().as_bytes()),
                    None => self.packets.label(format!("vector {vector}").as_bytes()),
                };
                self.enter(record, Track::Softirqs, u64::from(vector), Content::new(label, record.line))
            }
            SoftirqStep::Exit => {
                if vector == HRTIMER_VECTOR {
                    self.end_outer(record.cpu, record.at)?;
                }
                self.leave(record, Track::Softirqs, u64::from(vector))
            }
        }
    }

    /// A callback or handler begins.
    fn enter(
        &mut self,
        record: &Record<'_>,
        track: Track,
        identity: u64,
        content: Content,
    ) -> io::Result<()> {
        let place = TrackTime { cpu: record.cpu, track, at: record.at };
        let may_nest = track == Track::Hrtimers && self.may_have_outer(record.cpu);
        let running = self.running(record.cpu);
        let begun = HeldSlice { identity, pid: record.task.pid, at: record.at, content };
        let before = running.held[track as usize].replace(begun);
        let outer = running.outer.filter(|_| track == Track::Hrtimers);
        if outer.is_some_and(|outer| outer.identity == identity) {
            // It cannot begin while it runs: its exit was lost.
            if let Some(before) = before {
                self.write_held(place, &before, None)?;
            }
            return self.end_outer_slice(place);
        }
        let Some(before) = before else { return Ok(()) };
        let in_same_task = before.pid == record.task.pid && before.identity != identity;
        if !(may_nest && outer.is_none() && in_same_task) {
            return self.write_held(place, &before, None);
        }
        self.running(record.cpu).outer = Some(OuterSlice { identity: before.identity, pid: before.pid });
        self.packets.event(TrackTime { at: before.at, ..place }, Phase::Begin, Some(&before.content))
    }

    /// A callback or handler ends. An exit that belongs to nothing on this CPU is dropped.
    fn leave(&mut self, record: &Record<'_>, track: Track, identity: u64) -> io::Result<()> {
        let place = TrackTime { cpu: record.cpu, track, at: record.at };
        self.has_exits[track as usize] = true;
        let running = self.running(record.cpu);
        let held = running.held[track as usize].take();
        let ends_outer =
            track == Track::Hrtimers && running.outer.is_some_and(|outer| outer.identity == identity);
        match held {
            Some(held) if held.identity == identity => {
                return self.write_held(place, &held, Some(record.at));
            }
            Some(held) => self.write_held(place, &held, None)?, // its own exit was lost
            None => {}
        }
        if ends_outer { self.end_outer_slice(place) } else { Ok(()) }
    }

    /// Ends the outer callback of `cpu`, if there is one, and what is held above it.
    fn end_outer(&mut self, cpu: CpuId, at: Nanos) -> io::Result<()> {
        let place = TrackTime { cpu, track: Track::Hrtimers, at };
        let running = self.running(cpu);
        if running.outer.is_none() {
            return Ok(());
        }
        if let Some(held) = running.held[Track::Hrtimers as usize].take() {
            self.write_held(place, &held, None)?;
        }
        self.end_outer_slice(place)
    }

    fn end_outer_slice(&mut self, place: TrackTime) -> io::Result<()> {
        self.running(place.cpu).outer = None;
        self.packets.event(place, Phase::End, None)
    }

    /// Writes what was held: a slice when its end is known, otherwise an instant.
    fn write_held(&mut self, place: TrackTime, held: &HeldSlice, ended: Option<Nanos>) -> io::Result<()> {
        let begun = TrackTime { at: held.at, ..place };
        let Some(at) = ended else {
            return self.packets.event(begun, Phase::Instant, Some(&held.content));
        };
        self.packets.event(begun, Phase::Begin, Some(&held.content))?;
        self.packets.event(TrackTime { at, ..place }, Phase::End, None)
    }
}
