//! The OpenMetrics text of an explanation as a whole: every series, and no other one.

use crate::trace::report;
use quietcore_explain::openmetrics;

/// The samples of the trace of `trace.rs`, worked out there, in the order of the text.
const SAMPLES: &str = r#"
quietcore_recording_info{kernel="6.12.30-a",isolated="2-3,9,13",isolated_source="recording",nohz_full="3"} 1
quietcore_recording_duration_seconds 2.5
quietcore_recording_cpus 12
quietcore_recording_events 507
quietcore_recording_lost_events 17
quietcore_recording_malformed_lines 1
quietcore_recording_evicted_identities 0
quietcore_kernel_timer_migration 0
quietcore_figure_recorded{figure="timers.started"} 1
quietcore_figure_recorded{figure="timers.expired"} 1
quietcore_figure_recorded{figure="timers.cancel_events"} 1
quietcore_figure_recorded{figure="timers.expired_unknown_start"} 1
quietcore_figure_recorded{figure="foreign"} 1
quietcore_figure_recorded{figure="foreign.took_ns"} 1
quietcore_figure_recorded{figure="between_isolated"} 1
quietcore_figure_recorded{figure="between_isolated.took_ns"} 1
quietcore_figure_recorded{figure="remote"} 1
quietcore_figure_recorded{figure="ping_pong"} 1
quietcore_figure_recorded{figure="softirq.timer_entries"} 1
quietcore_figure_recorded{figure="softirq.timer_empty"} 1
quietcore_figure_recorded{figure="softirq.by_cpu"} 1
quietcore_figure_recorded{figure="softirq.empty_ns"} 1
quietcore_figure_recorded{figure="hrtimers.expired"} 1
quietcore_figure_recorded{figure="hrtimers.off_arming_cpu"} 1
quietcore_figure_recorded{figure="hrtimers.foreign"} 1
quietcore_figure_recorded{figure="hrtimers.by_task"} 1
quietcore_figure_recorded{figure="hrtimers.qdisc_watchdog.expired"} 1
quietcore_figure_recorded{figure="hrtimers.qdisc_watchdog.off_arming_cpu"} 1
quietcore_figure_recorded{figure="hrtimers.qdisc_watchdog.by_cpu"} 1
quietcore_figure_recorded{figure="rt_wakeups.count"} 1
quietcore_figure_recorded{figure="rt_wakeups.kernel_threads"} 1
quietcore_figure_recorded{figure="rt_wakeups.behind_softirq"} 1
quietcore_figure_recorded{figure="rt_wakeups.delay_ns"} 1
quietcore_figure_recorded{figure="interruptions.device"} 1
quietcore_figure_recorded{figure="interruptions.processor"} 1
quietcore_figure_recorded{figure="interruptions.softirq"} 1
quietcore_figure_recorded{figure="interruptions.nmi"} 1
quietcore_figure_recorded{figure="interruptions.timer"} 1
quietcore_figure_recorded{figure="interruptions.hrtimer"} 1
quietcore_figure_recorded{figure="interruptions.work"} 1
quietcore_figure_recorded{figure="interruptions.task"} 1
quietcore_figure_recorded{figure="idle"} 1
quietcore_timers_started 29
quietcore_timers_expired 32
quietcore_timers_cancel_events 11
quietcore_timers_expired_unknown_start 10
quietcore_foreign_expiries 7
quietcore_foreign_expiries_by_kind{kind="pulled"} 4
quietcore_foreign_expiries_by_kind{kind="placed"} 3
quietcore_foreign_expiries_by_function{function="process_timeout"} 3
quietcore_foreign_expiries_by_function{function="neigh_timer_handler"} 2
quietcore_foreign_expiries_by_function{function="delayed_work_timer_fn"} 1
quietcore_foreign_expiries_by_function{function="tcp_delack_timer"} 1
quietcore_foreign_expiries_by_cpu{cpu="2"} 4
quietcore_foreign_expiries_by_cpu{cpu="3"} 2
quietcore_foreign_expiries_by_cpu{cpu="9"} 1
quietcore_foreign_expiries_by_base_cpu{base_cpu="0"} 3
quietcore_foreign_expiries_by_base_cpu{base_cpu="2"} 1
quietcore_foreign_expiries_by_base_cpu{base_cpu="3"} 3
quietcore_foreign_expiries_by_group{group="0"} 5
quietcore_foreign_expiries_by_group{group="1"} 2
quietcore_foreign_callback_seconds{stat="p50"} 0.000005003
quietcore_foreign_callback_seconds{stat="p99"} 0.000012
quietcore_foreign_callback_seconds{stat="max"} 0.000012
quietcore_foreign_callback_seconds{stat="total"} 0.000019
quietcore_between_isolated_expiries 8
quietcore_between_isolated_expiries_by_kind{kind="pulled"} 6
quietcore_between_isolated_expiries_by_kind{kind="placed"} 2
quietcore_between_isolated_expiries_by_function{function="commit_timeout"} 6
quietcore_between_isolated_expiries_by_function{function="wb_timer_fn"} 2
quietcore_between_isolated_expiries_by_cpu{cpu="3"} 6
quietcore_between_isolated_expiries_by_cpu{cpu="9"} 2
quietcore_between_isolated_expiries_by_base_cpu{base_cpu="2"} 6
quietcore_between_isolated_expiries_by_base_cpu{base_cpu="9"} 2
quietcore_between_isolated_expiries_by_group{group="0"} 2
quietcore_between_isolated_expiries_by_group{group="1"} 6
quietcore_between_isolated_callback_seconds{stat="p50"} 0.000004001
quietcore_between_isolated_callback_seconds{stat="p99"} 0.000009
quietcore_between_isolated_callback_seconds{stat="max"} 0.000009
quietcore_between_isolated_callback_seconds{stat="total"} 0.000013
quietcore_remote_expiries 13
quietcore_remote_expiries_by_cpu{cpu="1"} 2
quietcore_remote_expiries_by_cpu{cpu="2"} 4
quietcore_remote_expiries_by_cpu{cpu="3"} 6
quietcore_remote_expiries_by_cpu{cpu="9"} 1
quietcore_ping_pongs 5
quietcore_ping_pongs_per_second 2.0
quietcore_groups_estimated 0
quietcore_timer_softirqs 20
quietcore_timer_softirqs_empty 14
quietcore_timer_softirqs_empty_by_cpu{cpu="2"} 2
quietcore_timer_softirqs_empty_by_cpu{cpu="5"} 1
quietcore_timer_softirqs_empty_by_cpu{cpu="6"} 11
quietcore_timer_softirq_empty_seconds{stat="p50"} 0.000004001
quietcore_timer_softirq_empty_seconds{stat="p99"} 0.000011
quietcore_timer_softirq_empty_seconds{stat="max"} 0.000011
quietcore_timer_softirq_empty_seconds{stat="total"} 0.000066
quietcore_hrtimers_expired 41
quietcore_hrtimers_off_arming_cpu 30
quietcore_hrtimers_foreign 16
quietcore_qdisc_watchdog_expired 19
quietcore_qdisc_watchdog_off_arming_cpu 15
quietcore_qdisc_watchdog_expired_by_cpu{cpu="2"} 4
quietcore_qdisc_watchdog_expired_by_cpu{cpu="4"} 3
quietcore_qdisc_watchdog_expired_by_cpu{cpu="5"} 11
quietcore_qdisc_watchdog_expired_by_cpu{cpu="6"} 1
quietcore_hrtimer_wakeups_by_task{task="cyc-51"} 14
quietcore_hrtimer_wakeups_by_task{task="cyc-50"} 4
quietcore_hrtimer_wakeups_by_task{task="<...>-52"} 1
quietcore_rt_wakeups 134
quietcore_rt_wakeups_of_kernel_threads 0
quietcore_rt_wakeups_behind_softirq 125
quietcore_rt_wakeup_delay_seconds{stat="p50"} 0.000060031
quietcore_rt_wakeup_delay_seconds{stat="p99"} 0.000119039
quietcore_rt_wakeup_delay_seconds{stat="max"} 0.00012
quietcore_interruptions{cpu="2",source="hrtimer",name="hrtimer_wakeup"} 12
quietcore_interruptions{cpu="2",source="hrtimer",name="qdisc_watchdog"} 4
quietcore_interruptions{cpu="2",source="softirq",name="TIMER"} 2
quietcore_interruptions{cpu="2",source="timer",name="process_timeout"} 4
quietcore_interruptions{cpu="2",source="timer",name="tcp_delack_timer"} 1
quietcore_interruptions{cpu="3",source="hrtimer",name="hrtimer_wakeup"} 1
quietcore_interruptions{cpu="3",source="timer",name="commit_timeout"} 6
quietcore_interruptions{cpu="3",source="timer",name="neigh_timer_handler"} 2
quietcore_interruptions{cpu="9",source="device",name="27 eth0-rx"} 1
quietcore_interruptions{cpu="9",source="nmi",name="perf_event_nmi_handler"} 1
quietcore_interruptions{cpu="9",source="processor",name="local_timer"} 2
quietcore_interruptions{cpu="9",source="softirq",name="NET_RX"} 2
quietcore_interruptions{cpu="9",source="timer",name="delayed_work_timer_fn"} 1
quietcore_interruptions{cpu="9",source="timer",name="wb_timer_fn"} 2
quietcore_interruptions{cpu="9",source="work",name="vmstat_update"} 1
quietcore_interrupted_seconds{cpu="2",source="softirq",name="TIMER"} 0.0
quietcore_interrupted_seconds{cpu="2",source="timer",name="process_timeout"} 0.000006
quietcore_interrupted_seconds{cpu="2",source="timer",name="tcp_delack_timer"} 0.000002
quietcore_interrupted_seconds{cpu="3",source="timer",name="commit_timeout"} 0.000004
quietcore_interrupted_seconds{cpu="3",source="timer",name="neigh_timer_handler"} 0.000005
quietcore_interrupted_seconds{cpu="9",source="device",name="27 eth0-rx"} 0.000084
quietcore_interrupted_seconds{cpu="9",source="nmi",name="perf_event_nmi_handler"} 0.000003
quietcore_interrupted_seconds{cpu="9",source="processor",name="local_timer"} 0.000013
quietcore_interrupted_seconds{cpu="9",source="softirq",name="NET_RX"} 0.00005
quietcore_interrupted_seconds{cpu="9",source="timer",name="delayed_work_timer_fn"} 0.000012
quietcore_interrupted_seconds{cpu="9",source="timer",name="wb_timer_fn"} 0.000009
quietcore_interrupted_seconds{cpu="9",source="work",name="vmstat_update"} 0.000004
quietcore_longest_interruption_seconds{cpu="2",source="softirq",name="TIMER"} 0.0
quietcore_longest_interruption_seconds{cpu="2",source="timer",name="process_timeout"} 0.000006
quietcore_longest_interruption_seconds{cpu="2",source="timer",name="tcp_delack_timer"} 0.000002
quietcore_longest_interruption_seconds{cpu="3",source="timer",name="commit_timeout"} 0.000004
quietcore_longest_interruption_seconds{cpu="3",source="timer",name="neigh_timer_handler"} 0.000005
quietcore_longest_interruption_seconds{cpu="9",source="device",name="27 eth0-rx"} 0.000084
quietcore_longest_interruption_seconds{cpu="9",source="nmi",name="perf_event_nmi_handler"} 0.000003
quietcore_longest_interruption_seconds{cpu="9",source="processor",name="local_timer"} 0.000007
quietcore_longest_interruption_seconds{cpu="9",source="softirq",name="NET_RX"} 0.00003
quietcore_longest_interruption_seconds{cpu="9",source="timer",name="delayed_work_timer_fn"} 0.000012
quietcore_longest_interruption_seconds{cpu="9",source="timer",name="wb_timer_fn"} 0.000009
quietcore_longest_interruption_seconds{cpu="9",source="work",name="vmstat_update"} 0.000004
quietcore_idle_entries{cpu="3",state="1"} 3
quietcore_idle_entries{cpu="3",state="2"} 1
quietcore_idle_entries{cpu="10",state="0"} 1
quietcore_idle_seconds{cpu="3",state="1"} 0.0035
quietcore_idle_seconds{cpu="3",state="2"} 0.0055
quietcore_idle_seconds{cpu="10",state="0"} 0.0007
quietcore_longest_idle_seconds{cpu="3",state="1"} 0.0022
quietcore_longest_idle_seconds{cpu="3",state="2"} 0.0055
quietcore_longest_idle_seconds{cpu="10",state="0"} 0.0007
quietcore_finding{id="delayed-work-on-isolated",question="isolation",severity="note"} 1
quietcore_finding{id="foreign-hrtimers",question="isolation",severity="warning"} 1
quietcore_finding{id="foreign-timers-placed",question="isolation",severity="warning"} 1
quietcore_finding{id="foreign-timers-pulled",question="isolation",severity="warning"} 1
quietcore_finding{id="isolated-timers-exchanged",question="isolation",severity="warning"} 1
quietcore_finding{id="qdisc-watchdog-migrates",question="packet-timers",severity="warning"} 1
quietcore_finding{id="remote-expiries",question="placement",severity="note"} 1
quietcore_finding{id="rt-wakeups-behind-softirq",question="real-time",severity="warning"} 1
quietcore_finding{id="timer-migration-sysctl-without-effect",question="isolation",severity="warning"} 1
quietcore_finding{id="timer-softirq-empty",question="empty-softirqs",severity="note"} 1
"#;

fn written() -> String {
    let mut text = Vec::new();
    openmetrics(&report(), &mut text).expect("memory");
    String::from_utf8(text).expect("UTF-8")
}

/// Goal: every family says what it counts, in which unit.
#[test]
fn every_family_says_what_it_counts() {
    let text = written();
    let told: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
    let told = told.join("\n");
    insta::assert_snapshot!("families", told);
}

/// Goal: every series has its own figure. Method: all samples, in order, so that none is missing or new.
#[test]
fn every_series_has_its_value() {
    let text = written();
    let found: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let expected: Vec<&str> = SAMPLES.trim().lines().collect();
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len(), "no series more, and none less");
}
