//! What a load is made of, from lines of a trace: its tick, its kernel, its functions, who is awake.

use super::super::error::LoadError;
use super::super::load::{AwakeSource, LoadEvent, LoadFacts, RecordedLoad};
use super::{FUNCTION_BYTES_MAX, FUNCTIONS_MAX, LoadReader};
use quietcore_core::place::Policy;
use quietcore_trace::{TimerModel, TraceReader};

fn start(ms: u64, jiffies: u64, function: &str) -> String {
    format!(
        "t-1 [000] {}.{:06}: timer_start: timer=1 function={function} expires={} [timeout=9] cpu=0 idx=1 flags=\n",
        ms / 1000,
        ms % 1000 * 1000,
        jiffies + 9
    )
}

fn load(text: &str, facts: LoadFacts) -> Result<RecordedLoad, LoadError> {
    let mut reader = LoadReader::new();
    let read = TraceReader::new(text.as_bytes()).read(u64::MAX, &mut |record| reader.take(record));
    read.expect("a trace");
    reader.finish(facts)
}

/// Of a 6.12 kernel with HZ=250.
fn facts() -> LoadFacts {
    LoadFacts { hz: Some(250), model: Some(TimerModel::Pull), ..LoadFacts::default() }
}

/// Goal: a tick rate that the header does not say is found where it is within 5 % of one that Linux has, and
/// a second or more is recorded. Method: each rate, and both sides of each bound.
#[test]
fn the_tick_is_found_from_the_arms() {
    let tick = |ms: u64, ticks: u64| {
        let text = start(0, 5000, "f") + &start(ms, 5000 + ticks, "f");
        load(&text, LoadFacts { hz: None, ..facts() }).map(|load| load.tick.as_u64()).ok()
    };
    for (ticks, ns) in [(200, 10_000_000), (500, 4_000_000), (600, 3_333_333), (2000, 1_000_000)] {
        assert_eq!(tick(2000, ticks), Some(ns), "{ticks} ticks in 2 s");
    }
    for (ticks, ns) in [(474, None), (476, Some(4_000_000)), (524, Some(4_000_000)), (526, None), (140, None)]
    {
        assert_eq!(tick(2000, ticks), ns, "{ticks} ticks in 2 s");
    }
    assert_eq!((tick(2000, 190), tick(2000, 188)), (Some(10_000_000), None), "95 and 94 in a second");
    assert_eq!((tick(999, 250), tick(1000, 250)), (None, Some(4_000_000)));
}

/// Goal: a header's rate that no kernel has is no division by zero. Method: none, and far too many.
#[test]
fn a_senseless_rate_is_survived() {
    let tick = |hz| load(&start(0, 5000, "f"), LoadFacts { hz: Some(hz), ..facts() }).map(|load| load.tick);
    assert_eq!(tick(0).map(|tick| tick.as_u64()), Ok(1_000_000_000));
    assert_eq!(tick(u32::MAX).map(|tick| tick.as_u64()), Ok(100_000));
}

/// Goal: the policy is that of the kernel, and of its sysctl where that governs wheel timers; events of the
/// hierarchy say of which kernel they are. Method: each.
#[test]
fn the_policy_is_that_of_the_kernel() {
    let policy = |model, timer_migration| {
        let facts = LoadFacts { model, timer_migration, ..facts() };
        load(&start(0, 5000, "f"), facts).map(|load| load.policy())
    };
    for (model, timer_migration, expected) in [
        (TimerModel::Push, None, Policy::Push),
        (TimerModel::Push, Some(true), Policy::Push),
        (TimerModel::Push, Some(false), Policy::Stay),
        (TimerModel::Pull, Some(false), Policy::Pull),
        (TimerModel::PullExcludesIsolated, Some(false), Policy::Pull),
    ] {
        assert_eq!(policy(Some(model), timer_migration), Ok(expected), "{model:?}, {timer_migration:?}");
    }
    assert_eq!(policy(None, None), Err(LoadError::UnknownKernel));
    let text = start(0, 5000, "f") + "t-1 [000] 0.1: tmigr_cpu_online: cpu=0 parent=01 wakeup=5\n";
    let found = load(&text, LoadFacts { model: None, ..facts() }).expect("the events say it");
    assert_eq!((found.model, found.policy()), (TimerModel::Pull, Policy::Pull));
}

/// Goal: function names take bounded memory. Method: a long one, and one more than there is room for.
#[test]
fn functions_have_bounds() {
    let long = "f".repeat(FUNCTION_BYTES_MAX + 1);
    let first = load(&start(0, 5000, &long), facts()).expect("a load");
    assert_eq!(first.functions, ["(other)".to_owned(), "f".repeat(FUNCTION_BYTES_MAX)]);
    let many: String = (0..FUNCTIONS_MAX).map(|number| start(0, 5000, &format!("f{number}"))).collect();
    let many = load(&many, facts()).expect("a load");
    let function = |at: usize| match many.inputs[at].what {
        LoadEvent::Arm(arm) => many.functions[arm.function as usize].as_str(),
        other => panic!("{other:?}"),
    };
    assert_eq!(many.functions.len(), FUNCTIONS_MAX);
    let last = FUNCTIONS_MAX - 2;
    assert_eq!((function(0), function(last), function(last + 1)), ("f0", &*format!("f{last}"), "(other)"));
}

/// Goal: the best source of awake intervals is kept, and the others are dropped. Method: each alone, the two
/// together, neither.
#[test]
fn one_source_of_awake_intervals_is_kept() {
    let idle = "b-0 [000] 0.2: timer_base_idle: is_idle=1 cpu=0\n";
    let awake = "b-0 [000] 0.3: timer_base_idle: is_idle=0 cpu=0\n";
    let online = "t-1 [000] 0.3: tmigr_cpu_online: cpu=0 parent=01 wakeup=5\n";
    let active = "b-0 [000] 0.3: tmigr_cpu_active: cpu=0 parent=01 wakeup=5\n";
    let stop = "b-0 [000] 0.4: tick_stop: success=1 dependency=NONE\n";
    let task = "t-7 [000] 0.5: timer_cancel: timer=99\n";
    for (lines, source, idles, awakes) in [
        (vec![], AwakeSource::None, 0, 0),
        (vec![task], AwakeSource::None, 0, 0),
        (vec![idle], AwakeSource::BaseIdle, 1, 0),
        (vec![awake], AwakeSource::BaseIdle, 0, 1),
        (vec![active], AwakeSource::BaseIdle, 0, 1),
        (vec![active, stop], AwakeSource::BaseIdle, 0, 1),
        (vec![online, stop], AwakeSource::TickStop, 1, 0),
        (vec![stop], AwakeSource::TickStop, 1, 0),
        (vec![stop, task], AwakeSource::TickStop, 1, 1),
        (vec![stop, stop, task], AwakeSource::TickStop, 2, 2),
        (vec![idle, awake, stop, task], AwakeSource::BaseIdle, 1, 1),
    ] {
        let text = start(0, 5000, "f") + &lines.concat();
        let load = load(&text, facts()).expect("a load");
        let count = |is: fn(&LoadEvent) -> bool| load.inputs.iter().filter(|input| is(&input.what)).count();
        assert_eq!(load.awake_source, source, "{lines:?}");
        assert_eq!(count(|what| matches!(what, LoadEvent::Idle(_))), idles, "{lines:?}");
        assert_eq!(count(|what| matches!(what, LoadEvent::Awake(_))), awakes, "{lines:?}");
    }
}

/// Goal: of CPUs that are not there the highest is named, with the line that named it first. Method: three of
/// them, that one twice and not first.
#[test]
fn the_highest_absent_cpu_is_named() {
    let idle = |cpu: u32| format!("t-1 [000] 0.1: timer_base_idle: is_idle=0 cpu={cpu}\n");
    let text = [start(0, 5000, "f"), idle(5), idle(8), idle(8), idle(6)].concat();
    let refused = load(&text, LoadFacts { cpu_count: Some(4), ..facts() }).expect_err("refused").to_string();
    assert_eq!(refused, "line 3 names CPU 8, but the recording has 4 CPUs, the last of them 3");
}
