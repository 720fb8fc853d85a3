//! What a line of text says, event by event and field by field.

use quietcore_core::{CpuId, CpuSet, Nanos};
use quietcore_trace::{
    Event, HrtimerStart, InterruptContext, IpiPurpose, Malformed, Migration, MigrationStep, NoiseSource,
    Record, SoftirqStep, SpanStep, SystemInterrupt, Task, TimerStart, WakeStep, parse_line,
};
use std::collections::BTreeSet;

fn cpu(number: u64) -> CpuId {
    CpuId::new(number).expect("a small number")
}

fn set(list: &str) -> CpuSet {
    list.parse().expect("a list")
}

/// Every event must read as what stands beside it.
fn assert_all_read_as(events: &[(&str, Event<'_>)]) {
    for (text, expected) in events {
        let line = format!("           sh x-42      [003] d.s2.     7.001500: {text}");
        let record = parse_line(line.as_bytes()).unwrap_or_else(|why| panic!("{text}: {why}"));
        let (task, context) = (Task { comm: b"sh x", pid: 42 }, Some(InterruptContext::Softirq));
        let at = Nanos(7_001_500_000);
        let expected = Record { line: 0, task, cpu: cpu(3), context, at, event: expected.clone() };
        assert_eq!(record, expected, "{text}");
    }
}

/// Goal: timers of the wheel, field by field. Method: a line of each event, no two numbers in it alike, in
/// the form of old and of new kernels.
#[test]
fn timers_of_the_wheel() {
    let start = TimerStart {
        timer: 0x1a,
        function: b"delayed_work_timer_fn",
        expires: 4_294_892_546,
        timeout: -250,
        bucket_expiry: Some(4_294_892_552),
        base: cpu(5),
        bucket: Some(65),
        deferrable: true,
        pinned: false,
        irq_safe: true,
    };
    let old = TimerStart {
        bucket_expiry: None,
        bucket: None,
        deferrable: false,
        pinned: true,
        irq_safe: false,
        timeout: 3,
        ..start
    };
    assert_all_read_as(&[
        ("timer_init: timer=0000000000000011", Event::TimerInit { timer: 0x11 }),
        (
            "timer_start: timer=000000000000001a function=delayed_work_timer_fn expires=4294892546 \
             [timeout=-250] bucket_expiry=4294892552 cpu=5 idx=65 flags=D|I",
            Event::TimerStart(start),
        ),
        (
            "timer_start: timer=000000000000001a function=delayed_work_timer_fn expires=4294892546 \
             [timeout=3] cpu=5 flags=P",
            Event::TimerStart(old),
        ),
        ("timer_cancel: timer=0000000000000012", Event::TimerCancel { timer: 0x12 }),
        (
            "timer_expire_entry: timer=0000000000000013 function=process_timeout now=4294892553 \
             baseclk=4294892552",
            Event::TimerExpireEntry {
                timer: 0x13,
                function: b"process_timeout",
                now: 4_294_892_553,
                baseclk: Some(4_294_892_552),
            },
        ),
        (
            "timer_expire_entry: timer=0000000000000013 function=process_timeout now=4294892553",
            Event::TimerExpireEntry {
                timer: 0x13,
                function: b"process_timeout",
                now: 4_294_892_553,
                baseclk: None,
            },
        ),
        ("timer_expire_exit: timer=0000000000000014", Event::TimerExpireExit { timer: 0x14 }),
        ("timer_base_idle: is_idle=1 cpu=6", Event::TimerBaseIdle { is_idle: true, cpu: cpu(6) }),
        ("timer_base_idle: is_idle=0 cpu=7", Event::TimerBaseIdle { is_idle: false, cpu: cpu(7) }),
    ]);
}

/// Goal: high-resolution and interval timers and the tick, field by field. Method: as above; an hrtimer's
/// clock may stand before its beginning.
#[test]
fn other_timers_and_the_tick() {
    let hrtimer = HrtimerStart {
        hrtimer: 0x2b,
        function: b"tick_nohz_handler",
        expires: Nanos(1_100),
        softexpires: Nanos(1_000),
        pinned: Some(true),
    };
    let early = HrtimerStart { expires: Nanos(0), softexpires: Nanos(0), pinned: Some(false), ..hrtimer };
    assert_all_read_as(&[
        ("tick_stop: success=0 dependency=SCHED", Event::TickStop { success: false, dependency: b"SCHED" }),
        ("tick_stop: success=1 dependency=NONE", Event::TickStop { success: true, dependency: b"NONE" }),
        (
            "hrtimer_init: hrtimer=0000000000000021 clockid=CLOCK_MONOTONIC mode=ABS",
            Event::HrtimerSetup { hrtimer: 0x21 },
        ),
        ("hrtimer_setup: hrtimer=0000000000000022", Event::HrtimerSetup { hrtimer: 0x22 }),
        (
            "hrtimer_start: hrtimer=000000000000002b function=tick_nohz_handler/0x0 expires=1100 \
             softexpires=1000 mode=ABS|PINNED|HARD",
            Event::HrtimerStart(hrtimer),
        ),
        (
            "hrtimer_start: hrtimer=000000000000002b function=tick_nohz_handler expires=-1100 \
             softexpires=-1200 mode=REL|SOFT",
            Event::HrtimerStart(early),
        ),
        (
            "hrtimer_start: hrtimer=2b function=tick_nohz_handler expires=1100 softexpires=1000",
            Event::HrtimerStart(HrtimerStart { pinned: None, ..hrtimer }),
        ),
        ("hrtimer_cancel: hrtimer=0000000000000023", Event::HrtimerCancel { hrtimer: 0x23 }),
        (
            "hrtimer_expire_entry: hrtimer=0000000000000024 function=hrtimer_wakeup+0x0/0x30 now=1101",
            Event::HrtimerExpireEntry { hrtimer: 0x24, function: b"hrtimer_wakeup", now: Nanos(1_101) },
        ),
        (
            "hrtimer_expire_entry: hrtimer=0000000000000024 function=hrtimer_wakeup now=-8",
            Event::HrtimerExpireEntry { hrtimer: 0x24, function: b"hrtimer_wakeup", now: Nanos(0) },
        ),
        ("hrtimer_expire_exit: hrtimer=0000000000000025", Event::HrtimerExpireExit { hrtimer: 0x25 }),
        (
            "itimer_state: which=2 expires=9.000000 it_value=5.000000 it_interval=0.000000",
            Event::ItimerState { which: 2 },
        ),
        ("itimer_expire: which=1 pid=77 now=88", Event::ItimerExpire { which: 1, pid: 77 }),
    ]);
}

/// Goal: CPUs of the migration hierarchy, field by field. Method: each step, with moments and with "never".
#[test]
fn cpus_of_the_hierarchy() {
    let some = |at| Some(Nanos(at));
    for (text, step, wakeup, next_event) in [
        ("cpu_active: cpu=6 parent=33 wakeup=9223372036854775807", MigrationStep::Active, None, None),
        ("cpu_idle: cpu=6 parent=33 nextevt=1300 wakeup=1200", MigrationStep::Idle, some(1_200), some(1_300)),
        ("cpu_new_timer: cpu=6 parent=33 wakeup=1201", MigrationStep::NewTimer, some(1_201), None),
        (
            "cpu_new_timer_idle: cpu=6 parent=33 nextevt=9223372036854775807 wakeup=1202",
            MigrationStep::NewTimerIdle,
            some(1_202),
            None,
        ),
        ("cpu_online: cpu=6 parent=33 wakeup=1203", MigrationStep::Online, some(1_203), None),
        ("cpu_offline: cpu=6 parent=33 wakeup=1204", MigrationStep::Offline, some(1_204), None),
        ("cpu_available: cpu=6 parent=33 wakeup=1205", MigrationStep::Available, some(1_205), None),
        ("cpu_unavailable: cpu=6 parent=33 wakeup=1206", MigrationStep::Unavailable, some(1_206), None),
        ("handle_remote_cpu: cpu=6 parent=33 wakeup=1207", MigrationStep::HandleRemote, some(1_207), None),
    ] {
        let event = Migration::Cpu { step, cpu: cpu(6), parent: 0x33, wakeup, next_event };
        assert_all_read_as(&[(&format!("tmigr_{text}"), Event::Migration(event))]);
    }
}

/// Goal: what groups expire for others, field by field. Method: a line of each event, no two numbers in it
/// alike.
#[test]
fn events_of_groups() {
    for (text, migration) in [
        (
            "update_events: child=0000000000000035 group=0000000000000031 group_lvl=2 child_active=3 \
             group_active=5 nextevt=1300 next_expiry=1400 child_evt_expiry=1500 child_evtcpu=9",
            Migration::UpdateEvents {
                group: 0x31,
                level: 2,
                child: 0x35,
                child_active: 3,
                group_active: 5,
                next_event: Some(Nanos(1_300)),
                next_expiry: Some(Nanos(1_400)),
                child_expiry: Some(Nanos(1_500)),
                child_cpu: 9,
            },
        ),
        ("handle_remote: group=0000000000000036 lvl=4", Migration::HandleRemote { group: 0x36, level: 4 }),
    ] {
        assert_all_read_as(&[(&format!("tmigr_{text}"), Event::Migration(migration))]);
    }
}

/// Goal: groups of the migration hierarchy, field by field. Method: as above; no migrator, a group that
/// crosses nodes, and the texts that do not count children.
#[test]
fn groups_of_the_hierarchy() {
    let group_state = |active, migrator| Migration::GroupState {
        active,
        group: 0x31,
        child_mask: 0x4,
        active_mask: 0x15,
        migrator,
        level: 1,
        node: -1,
        parent: 0x32,
    };
    let events = [
        (
            "group_set: group=0000000000000031 lvl=2 numa=-1 num_children=8",
            Migration::GroupSet { group: 0x31, level: 2, node: -1 },
        ),
        (
            "connect_cpu_parent: cpu=6 groupmask=40 parent=0000000000000033 lvl=0 numa=1 num_children=7",
            Migration::ConnectCpu { cpu: cpu(6), mask: 0x40, parent: 0x33, child_count: Some(7) },
        ),
        (
            "connect_cpu_parent: cpu=6 groupmask=40 parent=0000000000000033 lvl=0 numa=1",
            Migration::ConnectCpu { cpu: cpu(6), mask: 0x40, parent: 0x33, child_count: None },
        ),
        (
            "connect_child_parent: group=0000000000000031 groupmask=2 parent=0000000000000034 lvl=3 numa=1 \
             num_children=5",
            Migration::ConnectGroup { group: 0x31, mask: 2, parent: 0x34, level: 3, child_count: Some(5) },
        ),
        (
            "connect_child_parent: group=0000000000000031 groupmask=2 parent=0000000000000034 lvl=3 numa=1",
            Migration::ConnectGroup { group: 0x31, mask: 2, parent: 0x34, level: 3, child_count: None },
        ),
        (
            "group_set_cpu_active: group=0000000000000031 lvl=1 numa=-1 active=15 migrator=10 \
             parent=0000000000000032 childmask=4",
            group_state(true, Some(0x10)),
        ),
        (
            "group_set_cpu_inactive: group=0000000000000031 lvl=1 numa=-1 active=15 migrator=ff \
             parent=0000000000000032 childmask=4",
            group_state(false, None),
        ),
    ];
    for (text, migration) in events {
        assert_all_read_as(&[(&format!("tmigr_{text}"), Event::Migration(migration))]);
    }
}

/// Goal: tasks and softirqs, field by field. Method: a line of each event, no two numbers in it alike;
/// switches and wake-ups in the kernel's words and in those of `trace-cmd report`.
#[test]
fn tasks_and_softirqs() {
    let task = |pid| Task { comm: b"a b:c", pid };
    let switch =
        Event::SchedSwitch { previous: task(11), next: Task { comm: b"d", pid: 12 }, next_priority: 98 };
    let wake = |step| Event::SchedWake { step, task: task(13), priority: 97, target: cpu(4) };
    let softirq = |step, vector| Event::Softirq { step, vector };
    assert_all_read_as(&[
        (
            "sched_switch: prev_comm=a b:c prev_pid=11 prev_prio=120 prev_state=R+ ==> next_comm=d \
             next_pid=12 next_prio=98",
            switch.clone(),
        ),
        ("sched_switch: a b:c:11 [120] R ==> d:12 [98]", switch),
        ("sched_waking: comm=a b:c pid=13 prio=97 target_cpu=004", wake(WakeStep::Waking)),
        ("sched_wakeup: a b:c:13 [97] CPU:004", wake(WakeStep::Wakeup)),
        ("sched_wakeup: a b:c:13 [97] success=1 CPU:004", wake(WakeStep::Wakeup)),
        ("sched_wakeup_new: a b:c:13 [97] success=0 CPU:004", wake(WakeStep::WakeupNew)),
        (
            "sched_migrate_task: comm=a b:c pid=14 prio=120 orig_cpu=5 dest_cpu=6",
            Event::SchedMigrate { task: task(14), from: cpu(5), to: cpu(6) },
        ),
        ("softirq_raise: vec=9 [action=RCU]", softirq(SoftirqStep::Raise, 9)),
        ("softirq_entry: vec=7 [action=SCHED]", softirq(SoftirqStep::Entry, 7)),
        ("softirq_exit: vec=3 [action=NET_RX]", softirq(SoftirqStep::Exit, 3)),
    ]);
}

/// Goal: interrupts, work items and marks, field by field. Method: as above; sets of CPUs as masks, lists and
/// arrays.
#[test]
fn interrupts_work_and_marks() {
    let purpose = |callsite, callback, reason| IpiPurpose { callsite, callback, reason };
    let mask = |list| Event::IpiSendMask { to: set(list), purpose: purpose(b"f", b"g", b"") };
    let raised = |list, reason| Event::IpiSendMask { to: set(list), purpose: purpose(b"", b"", reason) };
    let handled = |step| Event::IpiHandled { step, reason: b"Rescheduling interrupts" };
    let queue = |function: &'static [u8], cpu| Event::WorkQueue { work: 0x41, function, cpu };
    assert_all_read_as(&[
        (
            "ipi_send_cpu: cpu=2 callsite=f+0x1/0x2 callback=g",
            Event::IpiSendCpu { to: cpu(2), purpose: purpose(b"f", b"g", b"") },
        ),
        ("ipi_send_cpu: cpu=2", Event::IpiSendCpu { to: cpu(2), purpose: IpiPurpose::default() }),
        (
            "csd_queue_cpu: cpu=1 callsite=on_each_cpu_cond_mask+0x20/0x60 func=flush_tlb_func csd=00000000d1228798",
            Event::CallQueued { to: cpu(1), function: b"flush_tlb_func" },
        ),
        ("csd_queue_cpu: cpu=3", Event::CallQueued { to: cpu(3), function: b"" }),
        ("ipi_send_cpumask: cpumask=00000001,000000fb callsite=f callback=g", mask("0-1,3-7,32")),
        ("ipi_send_cpumask: cpumask=00000010 callsite=f callback=g", mask("4")),
        ("ipi_send_cpumask: cpumask=0-1,3 callsite=f callback=g", mask("0-1,3")),
        ("ipi_send_cpumask: cpumask=2,10 callsite=f callback=g", mask("2,10")),
        ("ipi_send_cpumask: cpumask=10 callsite=f callback=g", mask("10")),
        ("ipi_send_cpumask: cpumask=ARRAY[0b, 00, 82] callsite=f callback=g", mask("0-1,3,17,23")),
        ("ipi_send_cpumask: cpumask=ARRAY[06,c0] callsite=f callback=g", mask("1-2,14-15")),
        ("ipi_send_cpumask: cpumask=ARRAY[] callsite=f callback=g", mask("")),
        (
            "ipi_raise: target_mask=00000000,00000028 (Function call interrupts)",
            raised("3,5", b"Function call interrupts"),
        ),
        ("ipi_entry: (Rescheduling interrupts)", handled(SpanStep::Entry)),
        ("ipi_exit: (Rescheduling interrupts)", handled(SpanStep::Exit)),
        (
            "workqueue_queue_work: work struct=0000000000000041 function=vmstat_update workqueue=w req_cpu=9 \
             cpu=8",
            queue(b"vmstat_update", Some(cpu(8))),
        ),
        (
            "workqueue_queue_work: work struct=0000000000000041 function=vmstat_update workqueue=w \
             req_cpu=8192 cpu=-1",
            queue(b"vmstat_update", None),
        ),
        ("workqueue_queue_work: work struct=0000000000000041 cpu=8", queue(b"", Some(cpu(8)))),
        ("workqueue_activate_work: work struct 0000000000000042", Event::WorkActivate { work: 0x42 }),
        (
            "workqueue_execute_start: work struct 0000000000000043: function vmstat_update",
            Event::WorkStart { work: 0x43, function: b"vmstat_update" },
        ),
        (
            "workqueue_execute_end: work struct 0000000000000044: function vmstat_update",
            Event::WorkEnd { work: 0x44 },
        ),
        ("tracing_mark_write: load: begins", Event::Mark { text: b"load: begins" }),
        ("print: load: ends", Event::Mark { text: b"load: ends" }),
        ("cpu_idle: state=2 cpu_id=5", Event::CpuIdle { cpu: cpu(5), state: Some(2) }),
        ("cpu_idle: state=4294967294 cpu_id=5", Event::CpuIdle { cpu: cpu(5), state: Some(4_294_967_294) }),
        ("cpu_idle: state=4294967295 cpu_id=6", Event::CpuIdle { cpu: cpu(6), state: None }),
        ("cpu_frequency: state=2400000 cpu_id=3", Event::Unknown),
    ]);
}

/// Goal: what takes a CPU away, field by field: interrupts of devices and of the processor, and those that
/// cannot be masked. Method: as above.
#[test]
fn what_takes_a_cpu_away() {
    let device = |step, name| Event::DeviceInterrupt { step, number: 27, name };
    let system = |step, interrupt| Event::SystemInterrupt { step, interrupt };
    let noise = |source, name, took| Event::Noise { source, name, took: Nanos(took) };
    assert_all_read_as(&[
        ("irq_handler_entry: irq=27 name=virtio0-input.0", device(SpanStep::Entry, b"virtio0-input.0")),
        ("irq_handler_entry: irq=27 name=i2c hid (x)", device(SpanStep::Entry, b"i2c hid (x)")),
        ("irq_handler_exit: irq=27 ret=handled", device(SpanStep::Exit, b"")),
        ("irq_matrix_alloc: irq=27", Event::Unknown),
        ("irq_handler_other: irq=27", Event::Unknown),
        ("local_timer_entry: vector=236", system(SpanStep::Entry, SystemInterrupt::LocalTimer)),
        ("reschedule_exit: vector=253", system(SpanStep::Exit, SystemInterrupt::Reschedule)),
        ("call_function_entry: vector=252", system(SpanStep::Entry, SystemInterrupt::CallFunction)),
        (
            "call_function_single_exit: vector=251",
            system(SpanStep::Exit, SystemInterrupt::CallFunctionSingle),
        ),
        ("irq_work_entry: vector=246", system(SpanStep::Entry, SystemInterrupt::IrqWork)),
        ("spurious_apic_entry: vector=255", system(SpanStep::Entry, SystemInterrupt::SpuriousApic)),
        ("error_apic_entry: vector=254", system(SpanStep::Entry, SystemInterrupt::ErrorApic)),
        ("thermal_apic_entry: vector=250", system(SpanStep::Entry, SystemInterrupt::ThermalApic)),
        ("threshold_apic_entry: vector=249", system(SpanStep::Entry, SystemInterrupt::ThresholdApic)),
        ("deferred_error_apic_exit: vector=244", system(SpanStep::Exit, SystemInterrupt::DeferredErrorApic)),
        ("x86_platform_ipi_exit: vector=247", system(SpanStep::Exit, SystemInterrupt::PlatformIpi)),
        ("vector_alloc: irq=27 vector=36 reserved=1 ret=0", Event::Unknown),
        (
            "irq_noise: virtio0-input.0:27 start 12.000000001 duration 1234 ns",
            noise(NoiseSource::Interrupt, b"virtio0-input.0", 1_234),
        ),
        (
            "softirq_noise:   NET_RX:3 start 12.000000001 duration 5 ns",
            noise(NoiseSource::Softirq, b"NET_RX", 5),
        ),
        (
            "thread_noise: start x duration:-9 start 12.000000001 duration 50 ns",
            noise(NoiseSource::Task, b"start x duration", 50),
        ),
        ("nmi_noise: start 12.000000001 duration 70 ns", noise(NoiseSource::Nmi, b"", 70)),
        ("sample_threshold: start 12.1 duration 9 ns interference 2", Event::Unknown),
        (
            "nmi_handler: perf_event_nmi_handler() delta_ns: 6250 handled: 1",
            Event::NmiHandled { handler: b"perf_event_nmi_handler", took: Nanos(6_250) },
        ),
        (
            "nmi_handler: nmi_cpu_backtrace_handler() delta_ns: -9 handled: 0",
            Event::NmiHandled { handler: b"nmi_cpu_backtrace_handler", took: Nanos(0) },
        ),
    ]);
    let names: BTreeSet<_> = ["local_timer", "call_function"].into();
    let named = [SystemInterrupt::LocalTimer, SystemInterrupt::CallFunction].map(SystemInterrupt::name);
    assert_eq!(BTreeSet::from(named), names);
}

/// Goal: a line that cannot be read names what it lacks. Method: a line of each kind, and what a user reads.
#[test]
fn what_cannot_be_read_is_named() {
    let (no, number, pointer) = (Malformed::MissingField, Malformed::NotANumber, Malformed::NotAPointer);
    for (text, why, shown) in [
        ("timer_cancel: x", no("timer="), "no field timer="),
        ("timer_cancel: timer=xyz", pointer("timer="), "field timer= holds no pointer"),
        ("timer_base_idle: is_idle=1 cpu=x", Malformed::NotACpu("cpu="), "field cpu= holds no CPU number"),
        (
            "timer_start: timer=1 function=f expires=5 [timeout=3] bucket_expiry=x cpu=1",
            number("bucket_expiry="),
            "field bucket_expiry= holds no number",
        ),
        ("itimer_expire: which=1 pid=4294967296 now=5", number("pid="), "field pid= holds no number"),
        ("softirq_entry: vec=300 [action=X]", number("vec="), "field vec= holds no number"),
        ("ipi_send_cpumask: cpumask=x-y", number("cpumask="), "field cpumask= holds no number"),
        ("ipi_send_cpumask: cpumask=ARRAY[0b, xy]", number("cpumask="), "field cpumask= holds no number"),
        ("ipi_send_cpumask: cpumask=ARRAY[0b, 00", number("cpumask="), "field cpumask= holds no number"),
        ("ipi_raise: target_mask=0000000g (x)", number("target_mask="), "field target_mask= holds no number"),
        ("irq_handler_entry: irq=5", no("name="), "no field name="),
        ("irq_handler_exit: irq=x ret=handled", number("irq="), "field irq= holds no number"),
        ("irq_noise: x:1 start 12.1", no("duration"), "no field duration"),
        ("irq_noise: x:1 start 1.1 duration y ns", number("duration"), "field duration holds no number"),
        ("irq_noise: x:1 duration 7 ns", no("start"), "no field start"),
        ("nmi_handler: f() handled: 1", no("delta_ns:"), "no field delta_ns:"),
        ("nmi_handler: f() delta_ns: x handled: 1", number("delta_ns:"), "field delta_ns: holds no number"),
        (
            "workqueue_execute_end: work struct xyz",
            pointer("work struct"),
            "field work struct holds no pointer",
        ),
        ("workqueue_queue_work: work struct=1 function=f", no("cpu="), "no field cpu="),
        ("cpu_idle: state=4294967296 cpu_id=3", number("state="), "field state= holds no number"),
        ("cpu_idle: state=1", no("cpu_id="), "no field cpu_id="),
        ("sched_waking: x", no("comm="), "no field comm="),
        ("sched_waking: sh:7 [120] CPU:x", Malformed::NotACpu("CPU:"), "field CPU: holds no CPU number"),
        ("sched_migrate_task: pid=7", no("comm="), "no field comm="),
        ("sched_migrate_task: comm=a pid=x", number("pid="), "field pid= holds no number"),
        ("sched_switch: x", no("prev_comm="), "no field prev_comm="),
        ("sched_switch: x ==> next_comm=a next_pid=8 next_prio=9", no("prev_comm="), "no field prev_comm="),
    ] {
        let line = format!("sh-42 [003] d.s2. 7.001500: {text}");
        assert_eq!(parse_line(line.as_bytes()), Err(why), "{text}");
        assert_eq!(why.to_string(), shown);
    }
    for (line, shown) in [
        ("hello", "no TASK-PID [CPU] at the front"),
        ("a-1 [9999] 1.0: x: y", "the number in [ ] is no CPU"),
        ("a-1 [000] d..1.", "no time stamp after [CPU]"),
    ] {
        assert_eq!(parse_line(line.as_bytes()).map_err(|why| why.to_string()), Err(shown.to_owned()));
    }
    assert_eq!(Malformed::TooLong.to_string(), "line longer than 65536 bytes");
}
