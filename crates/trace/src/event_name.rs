//! What the kernel calls an event.

use crate::event::{Event, Migration, MigrationStep, NoiseSource, SoftirqStep, SpanStep, WakeStep};
use std::borrow::Cow;

impl Event<'_> {
    /// The tracepoint's name, as `timer_start`; that of the newest kernel where it was renamed. `None` for
    /// [`Event::Unknown`], and for [`Event::Lost`], which is no event of the kernel's.
    #[must_use]
    pub fn tracepoint(&self) -> Option<Cow<'static, str>> {
        if let Self::SystemInterrupt { step, interrupt } = self {
            let end = if *step == SpanStep::Entry { "entry" } else { "exit" };
            return Some(Cow::Owned(format!("{}_{end}", interrupt.name())));
        }
        self.fixed_name().map(Cow::Borrowed)
    }

    fn fixed_name(&self) -> Option<&'static str> {
        Some(match self {
            Self::TimerInit { .. } => "timer_init",
            Self::TimerStart(_) => "timer_start",
            Self::TimerCancel { .. } => "timer_cancel",
            Self::TimerExpireEntry { .. } => "timer_expire_entry",
            Self::TimerExpireExit { .. } => "timer_expire_exit",
            Self::TimerBaseIdle { .. } => "timer_base_idle",
            Self::TickStop { .. } => "tick_stop",
            Self::HrtimerSetup { .. } => "hrtimer_setup",
            Self::HrtimerStart(_) => "hrtimer_start",
            Self::HrtimerCancel { .. } => "hrtimer_cancel",
            Self::HrtimerExpireEntry { .. } => "hrtimer_expire_entry",
            Self::HrtimerExpireExit { .. } => "hrtimer_expire_exit",
            Self::ItimerState { .. } => "itimer_state",
            Self::ItimerExpire { .. } => "itimer_expire",
            Self::Migration(migration) => migration_name(migration),
            Self::SchedSwitch { .. } => "sched_switch",
            Self::SchedMigrate { .. } => "sched_migrate_task",
            Self::IpiSendCpu { .. } => "ipi_send_cpu",
            Self::IpiSendMask { .. } => "ipi_send_cpumask",
            Self::CallQueued { .. } => "csd_queue_cpu",
            Self::NmiHandled { .. } => "nmi_handler",
            Self::WorkQueue { .. } => "workqueue_queue_work",
            Self::WorkActivate { .. } => "workqueue_activate_work",
            Self::WorkStart { .. } => "workqueue_execute_start",
            Self::WorkEnd { .. } => "workqueue_execute_end",
            Self::CpuIdle { .. } => "cpu_idle",
            Self::Mark { .. } => "tracing_mark_write",
            _ => return self.name_of_step(),
        })
    }

    fn name_of_step(&self) -> Option<&'static str> {
        Some(match self {
            Self::Softirq { step: SoftirqStep::Raise, .. } => "softirq_raise",
            Self::Softirq { step: SoftirqStep::Entry, .. } => "softirq_entry",
            Self::Softirq { step: SoftirqStep::Exit, .. } => "softirq_exit",
            Self::SchedWake { step: WakeStep::Waking, .. } => "sched_waking",
            Self::SchedWake { step: WakeStep::Wakeup, .. } => "sched_wakeup",
            Self::SchedWake { step: WakeStep::WakeupNew, .. } => "sched_wakeup_new",
            Self::DeviceInterrupt { step: SpanStep::Entry, .. } => "irq_handler_entry",
            Self::DeviceInterrupt { step: SpanStep::Exit, .. } => "irq_handler_exit",
            Self::IpiHandled { step: SpanStep::Entry, .. } => "ipi_entry",
            Self::IpiHandled { step: SpanStep::Exit, .. } => "ipi_exit",
            Self::Noise { source: NoiseSource::Interrupt, .. } => "irq_noise",
            Self::Noise { source: NoiseSource::Softirq, .. } => "softirq_noise",
            Self::Noise { source: NoiseSource::Task, .. } => "thread_noise",
            Self::Noise { source: NoiseSource::Nmi, .. } => "nmi_noise",
            _ => return None,
        })
    }
}

fn migration_name(migration: &Migration) -> &'static str {
    match migration {
        Migration::GroupSet { .. } => "tmigr_group_set",
        Migration::ConnectCpu { .. } => "tmigr_connect_cpu_parent",
        Migration::ConnectGroup { .. } => "tmigr_connect_child_parent",
        Migration::Cpu { step, .. } => match step {
            MigrationStep::Active => "tmigr_cpu_active",
            MigrationStep::Idle => "tmigr_cpu_idle",
            MigrationStep::NewTimer => "tmigr_cpu_new_timer",
            MigrationStep::NewTimerIdle => "tmigr_cpu_new_timer_idle",
            MigrationStep::Online => "tmigr_cpu_online",
            MigrationStep::Offline => "tmigr_cpu_offline",
            MigrationStep::Available => "tmigr_cpu_available",
            MigrationStep::Unavailable => "tmigr_cpu_unavailable",
            MigrationStep::HandleRemote => "tmigr_handle_remote_cpu",
        },
        Migration::GroupState { active: true, .. } => "tmigr_group_set_cpu_active",
        Migration::GroupState { active: false, .. } => "tmigr_group_set_cpu_inactive",
        Migration::UpdateEvents { .. } => "tmigr_update_events",
        Migration::HandleRemote { .. } => "tmigr_handle_remote",
    }
}

#[cfg(test)]
mod tests {
    use crate::{Record, TraceReader};
    use std::io::Read;

    /// Goal: an event is called as the line calls it. Method: every line of a recording of each kind, from
    /// text; a name that the recording has is the name that it is given.
    #[test]
    fn an_event_is_called_as_in_the_text() {
        let mut names = std::collections::BTreeSet::new();
        for recording in ["g612-c16-iso", "h618-c2-detail", "g619-c16-iso"] {
            let path = format!("{}/../../recordings/{recording}.txt.zst", env!("CARGO_MANIFEST_DIR"));
            let mut text = String::new();
            crate::open(path.as_ref()).expect("a file").read_to_string(&mut text).expect("text");
            let lines: Vec<&str> = text.lines().collect();
            let mut check = |record: &Record<'_>| {
                let Some(name) = record.event.tracepoint() else { return };
                let line = lines[record.line as usize - 1];
                let is_so = line.contains(&format!(": {name}: ")) || line.contains("hrtimer_init: ");
                assert!(is_so, "{recording}: {name} of {line}");
                names.insert(name.into_owned());
            };
            let mut reader = TraceReader::new(text.as_bytes());
            reader.read(u64::MAX, &mut check).expect("a trace");
        }
        assert!(names.len() >= 30, "{names:?}");
    }
}
