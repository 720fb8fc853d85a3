//! Small counters: by CPU, and of the kinds of events seen.

use super::report::CountByNumber;
use quietcore_core::CpuId;
use quietcore_trace::{Event, Migration, SoftirqStep, SpanStep, WakeStep};

/// A count per CPU, as long as the highest CPU that was counted.
#[derive(Debug, Default)]
pub(super) struct CountPerCpu(Vec<u64>);

impl CountPerCpu {
    pub(super) fn add(&mut self, cpu: CpuId) {
        if self.0.len() <= cpu.index() {
            self.0.resize(cpu.index() + 1, 0);
        }
        self.0[cpu.index()] += 1;
    }

    pub(super) fn get(&self, cpu: CpuId) -> u64 {
        self.0.get(cpu.index()).copied().unwrap_or(0)
    }

    /// Begins again for one CPU.
    pub(super) fn reset(&mut self, cpu: CpuId) {
        if let Some(count) = self.0.get_mut(cpu.index()) {
            *count = 0;
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// CPUs with a count of at least 1.
    pub(super) fn to_map(&self) -> CountByNumber {
        let counted = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(cpu, count)| (cpu as u16, *count)).collect()
    }
}

/// The kinds of events that figures are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    TimerStart,
    TimerExpire,
    TimerCancel,
    SoftirqEntry,
    SoftirqExit,
    HrtimerStart,
    HrtimerExpire,
    SchedWaking,
    SchedSwitch,
    DeviceEntry,
    ProcessorEntry,
    Nmi,
    WorkStart,
    CpuIdle,
    TimerExit,
}

const KINDS: usize = 15;

impl EventKind {
    fn of(event: &Event<'_>) -> Option<Self> {
        Some(match event {
            Event::TimerStart(_) => Self::TimerStart,
            Event::TimerExpireEntry { .. } => Self::TimerExpire,
            Event::TimerCancel { .. } => Self::TimerCancel,
            Event::Softirq { step: SoftirqStep::Entry, .. } => Self::SoftirqEntry,
            Event::Softirq { step: SoftirqStep::Exit, .. } => Self::SoftirqExit,
            Event::HrtimerStart(_) => Self::HrtimerStart,
            Event::HrtimerExpireEntry { .. } => Self::HrtimerExpire,
            Event::SchedWake { step: WakeStep::Waking, .. } => Self::SchedWaking,
            Event::SchedSwitch { .. } => Self::SchedSwitch,
            Event::DeviceInterrupt { step: SpanStep::Entry, .. } => Self::DeviceEntry,
            Event::SystemInterrupt { step: SpanStep::Entry, .. }
            | Event::IpiHandled { step: SpanStep::Entry, .. } => Self::ProcessorEntry,
            Event::NmiHandled { .. } => Self::Nmi,
            Event::WorkStart { .. } => Self::WorkStart,
            Event::CpuIdle { .. } => Self::CpuIdle,
            Event::TimerExpireExit { .. } => Self::TimerExit,
            _ => return None,
        })
    }

    /// The tracepoint's name; of several that are switched on together, the first.
    fn tracepoint(self) -> &'static str {
        match self {
            Self::TimerStart => "timer_start",
            Self::TimerExpire => "timer_expire_entry",
            Self::TimerCancel => "timer_cancel",
            Self::SoftirqEntry => "softirq_entry",
            Self::SoftirqExit => "softirq_exit",
            Self::HrtimerStart => "hrtimer_start",
            Self::HrtimerExpire => "hrtimer_expire_entry",
            Self::SchedWaking => "sched_waking",
            Self::SchedSwitch => "sched_switch",
            Self::DeviceEntry => "irq_handler_entry",
            Self::ProcessorEntry => "local_timer_entry",
            Self::Nmi => "nmi_handler",
            Self::WorkStart => "workqueue_execute_start",
            Self::CpuIdle => "cpu_idle",
            Self::TimerExit => "timer_expire_exit",
        }
    }
}

/// How often each kind was seen, and which kinds were switched on though none was seen.
#[derive(Debug, Default)]
pub(super) struct KindCounts {
    seen: [u64; KINDS],
}

impl KindCounts {
    pub(super) fn add(&mut self, event: &Event<'_>) {
        if let Some(kind) = EventKind::of(event) {
            self.seen[kind as usize] += 1;
        }
    }

    pub(super) fn get(&self, kind: EventKind) -> u64 {
        self.seen[kind as usize]
    }

    /// Whether all of `kinds` are in the input: seen, or known to have been switched on.
    pub(super) fn recorded(&self, kinds: &[EventKind], switched_on: &[String]) -> bool {
        kinds
            .iter()
            .all(|&kind| self.get(kind) > 0 || switched_on.iter().any(|event| event == kind.tracepoint()))
    }
}

/// The level-0 group that an event names for a CPU, if it does.
pub(super) fn group_of(event: &Event<'_>) -> Option<(CpuId, u64)> {
    match *event {
        Event::Migration(Migration::ConnectCpu { cpu, parent, .. } | Migration::Cpu { cpu, parent, .. }) => {
            Some((cpu, parent))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{EventKind, KINDS, KindCounts};

    /// Goal: a figure is zero, and not unknown, if its events were switched on and none came. Method: each
    /// kind beside its tracepoint's name; with only that one switched on, only that kind is recorded.
    #[test]
    fn a_kind_is_recorded_by_its_own_tracepoint() {
        let kinds: [(EventKind, &str); KINDS] = [
            (EventKind::TimerStart, "timer_start"),
            (EventKind::TimerExpire, "timer_expire_entry"),
            (EventKind::TimerCancel, "timer_cancel"),
            (EventKind::SoftirqEntry, "softirq_entry"),
            (EventKind::SoftirqExit, "softirq_exit"),
            (EventKind::HrtimerStart, "hrtimer_start"),
            (EventKind::HrtimerExpire, "hrtimer_expire_entry"),
            (EventKind::SchedWaking, "sched_waking"),
            (EventKind::SchedSwitch, "sched_switch"),
            (EventKind::DeviceEntry, "irq_handler_entry"),
            (EventKind::ProcessorEntry, "local_timer_entry"),
            (EventKind::Nmi, "nmi_handler"),
            (EventKind::WorkStart, "workqueue_execute_start"),
            (EventKind::CpuIdle, "cpu_idle"),
            (EventKind::TimerExit, "timer_expire_exit"),
        ];
        let counts = KindCounts::default();
        for (_, switched_on) in kinds {
            for (kind, tracepoint) in kinds {
                let is_recorded = counts.recorded(&[kind], &[switched_on.to_owned()]);
                assert_eq!(is_recorded, tracepoint == switched_on, "{kind:?} with {switched_on}");
            }
        }
    }
}
