//! Which CPU started what has not begun yet, and when: a timer that is armed, an interrupt that was sent, a
//! work item that is queued.
//!
//! What counts is the last start: of a timer, of an interrupt of a kind to a CPU, of a work item. Of an
//! interrupt and a work item it counts once. After a mark of lost events no start before it counts: what was
//! started may have begun, or been started again, among the lost. Invariants: at most `identities_max` wheel
//! timers, as many hrtimers, and [`WORKS_MAX`] work items are remembered, and per CPU one interrupt of each
//! kind. Not here: what begins (`writer.rs`).

use super::packets::{Label, TrackPackets};
use crate::event::{Event, IpiPurpose, Record, SystemInterrupt};
use crate::ipi::IpiKind;
use crate::table::IdentityTable;
use quietcore_core::{CpuId, Nanos};
use std::io::Write;

/// As many as `quietcore-explain` remembers.
const WORKS_MAX: usize = 65_536;

/// Where and when something was started.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartPoint {
    pub(super) cpu: CpuId,
    /// Whose base a wheel timer was put into.
    pub(super) base_cpu: Option<CpuId>,
    pub(super) at: Nanos,
    pub(super) line: u64,
}

/// An interrupt on its way to a CPU, or a function that one will call there.
#[derive(Clone, Debug)]
pub(super) struct IpiOnItsWay {
    pub(super) from: StartPoint,
    /// What its cause is called.
    pub(super) label: Label,
}

/// What is on its way to a CPU.
#[derive(Debug, Default)]
struct Awaited {
    /// The last one of each kind.
    sent: [Option<IpiOnItsWay>; IpiKind::COUNT],
    /// The last function that was queued.
    call: Option<IpiOnItsWay>,
}

/// What the cause of an interrupt is called, unless a queued function says more.
#[derive(Clone, Debug)]
struct IpiLabel {
    label: Label,
    calls_a_queue: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct StartTable {
    timers: IdentityTable<StartPoint>,
    hrtimers: IdentityTable<StartPoint>,
    works: IdentityTable<StartPoint>,
    cpus: Vec<Awaited>,
    /// The line of the last mark of lost events.
    lost: u64,
}

impl StartPoint {
    fn of(record: &Record<'_>) -> Self {
        Self { cpu: record.cpu, base_cpu: None, at: record.at, line: record.line }
    }
}

impl StartTable {
    pub(super) fn new(identities_max: usize) -> Self {
        Self {
            timers: IdentityTable::new(identities_max),
            hrtimers: IdentityTable::new(identities_max),
            works: IdentityTable::new(identities_max.min(WORKS_MAX)),
            cpus: Vec::new(),
            lost: 0,
        }
    }

    /// Events were lost: see the module.
    pub(super) fn forget(&mut self, mark: &Record<'_>) {
        self.lost = mark.line;
    }

    /// Takes an event that starts something; others change nothing.
    pub(super) fn take<W: Write>(&mut self, record: &Record<'_>, packets: &mut TrackPackets<W>) {
        let point = StartPoint::of(record);
        match &record.event {
            Event::TimerStart(start) => {
                self.timers.insert(start.timer, StartPoint { base_cpu: Some(start.base), ..point });
            }
            Event::HrtimerStart(start) => {
                self.hrtimers.insert(start.hrtimer, point);
            }
            Event::WorkQueue { work, .. } => {
                self.works.insert(*work, point);
            }
            Event::CallQueued { to, function } => {
                let label = packets.cause_label("send", function);
                self.of(*to).call = Some(IpiOnItsWay { from: point, label });
            }
            Event::IpiSendCpu { to, purpose } => {
                let kind = if *to == record.cpu { IpiKind::Work } else { IpiKind::sent_to_one(purpose) };
                self.send(point, *to, kind, IpiLabel::of(purpose, packets));
            }
            Event::IpiSendMask { to, purpose } => {
                let label = IpiLabel::of(purpose, packets);
                for cpu in to.iter() {
                    self.send_to_one_of(point, cpu, purpose.reason, label.clone());
                }
            }
            _ => {}
        }
    }

    /// The last start of a wheel timer.
    pub(super) fn of_timer(&mut self, timer: u64) -> Option<StartPoint> {
        self.timers.get_mut(timer).copied().filter(|from| from.line > self.lost)
    }

    /// The last start of an hrtimer.
    pub(super) fn of_hrtimer(&mut self, hrtimer: u64) -> Option<StartPoint> {
        self.hrtimers.get_mut(hrtimer).copied().filter(|from| from.line > self.lost)
    }

    /// Where a work item was queued that begins now.
    pub(super) fn of_work(&mut self, work: u64) -> Option<StartPoint> {
        self.works.remove(work).filter(|from| from.line > self.lost)
    }

    /// Where an interrupt of the processor's own was sent that comes now to `cpu`.
    pub(super) fn of_interrupt(&mut self, cpu: CpuId, interrupt: SystemInterrupt) -> Option<IpiOnItsWay> {
        IpiKind::of(interrupt).and_then(|kind| self.arrived(cpu, &[kind]))
    }

    /// The same of one that is named by a reason.
    pub(super) fn of_ipi(&mut self, cpu: CpuId, reason: &[u8]) -> Option<IpiOnItsWay> {
        IpiKind::of_reason(reason).and_then(|kinds| self.arrived(cpu, kinds))
    }

    fn of(&mut self, cpu: CpuId) -> &mut Awaited {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize_with(cpu.index() + 1, Awaited::default);
        }
        &mut self.cpus[cpu.index()]
    }

    /// An interrupt is sent.
    fn send(&mut self, from: StartPoint, to: CpuId, kind: IpiKind, label: IpiLabel) {
        let lost = self.lost;
        let awaited = self.of(to);
        let call = awaited.call.take().filter(|call| call.from.cpu == from.cpu && call.from.line > lost);
        let label = match (label, call) {
            (IpiLabel { calls_a_queue: true, .. }, Some(call)) => call.label,
            (IpiLabel { label, .. }, _) => label,
        };
        awaited.sent[kind as usize] = Some(IpiOnItsWay { from, label });
    }

    /// One of several CPUs to which an interrupt is sent.
    fn send_to_one_of(&mut self, from: StartPoint, to: CpuId, reason: &[u8], label: IpiLabel) {
        let kinds = IpiKind::of_reason(reason).unwrap_or(&[IpiKind::CallSeveral]);
        let lost = self.lost;
        let awaited = &self.of(to).sent;
        let mut known = kinds.iter().filter_map(|&kind| awaited[kind as usize].as_ref());
        let is_on_its_way = known.any(|sent| sent.from.cpu == from.cpu && sent.from.line > lost);
        // Some processors have events of their own besides, which name no functions.
        if reason.is_empty() || !is_on_its_way {
            self.send(from, to, kinds[0], label);
        }
    }

    /// The interrupt that comes now is one of these kinds; the next one has another cause.
    fn arrived(&mut self, cpu: CpuId, kinds: &[IpiKind]) -> Option<IpiOnItsWay> {
        let lost = self.lost;
        let awaited = self.of(cpu);
        let mut arrived = None;
        for &kind in kinds {
            arrived = arrived.or(awaited.sent[kind as usize].take());
        }
        arrived.filter(|sent| sent.from.line > lost)
    }
}

impl IpiLabel {
    fn of<W: Write>(purpose: &IpiPurpose<'_>, packets: &mut TrackPackets<W>) -> Self {
        let function = purpose.function();
        let name = if function.is_empty() { purpose.reason } else { function };
        Self { label: packets.cause_label("send", name), calls_a_queue: purpose.calls_a_queue() }
    }
}
