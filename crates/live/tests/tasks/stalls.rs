//! StallCause reports of what is no timer's callback: tasks, work, handlers of softirqs; and that the machine
//! survives all of them.
//!
//! What holds up a lane here lasts until there is a report of that lane. A host that takes the lane's CPU
//! away just before may have it reported for nothing yet; then it is held up once more.

use crate::scene::{PATIENCE, both, cpu, eventually, lane_here, lanes, wait_for};
use futures_executor::block_on;
use quietcore_live::{
    CpuId, Machine, OnPanic, TimerOptions,
    softirq::Vector,
    stall::{StallCause, StallReport},
    task::{Priority, TaskOptions, WorkOptions},
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_millis(3);

/// The shortest that a lane is held up.
const LONG: Duration = Duration::from_millis(50);

/// How often, at most, until it is reported for what it does.
const TRIES: usize = 50;

fn reports(machine: &Machine, cpu: CpuId) -> Vec<StallReport> {
    machine.stalls().into_iter().filter(|report| report.cpu == cpu).collect()
}

/// Computes on the calling lane until it is reported, and another thread has run a timer of it. Tells who.
fn hold_up(machine: &'static Machine, lane: CpuId, tell: &Sender<CpuId>) {
    hold_up_while(machine, lane, tell, || false);
}

/// The same, and as long as `is_wanted`.
fn hold_up_while(machine: &'static Machine, lane: CpuId, tell: &Sender<CpuId>, is_wanted: impl Fn() -> bool) {
    let (sender, ran) = channel();
    // It waits for the lane, so that a thread misses that.
    let timer = machine.timer(TimerOptions::new(), move |run| _ = sender.send(run.cpu()));
    timer.arm_after(SOON).expect("it runs");
    let (start, mut runner) = (Instant::now(), None);
    // The host may have had the lane reported before this line.
    let is_reported = || reports(machine, lane).last().is_some_and(|report| report.ended.is_none());
    while start.elapsed() < LONG || is_wanted() || runner.is_none() || !is_reported() {
        runner = runner.or_else(|| ran.try_recv().ok());
        if start.elapsed() > PATIENCE {
            break;
        }
        std::hint::spin_loop();
    }
    // Without one the test waits for nothing, and says so.
    let _ = runner.map(|runner| tell.send(runner));
}

/// Holds up lane 0 by `begin`, which gets what to do there, until it is reported for what `is_it` knows.
/// Others run tasks and timers meanwhile.
fn reported(
    machine: &'static Machine,
    mut begin: impl FnMut(Sender<CpuId>),
    is_it: impl Fn(&StallCause) -> bool,
) -> StallReport {
    for _ in 0..TRIES {
        let (sender, ran) = channel();
        begin(sender);
        assert_ne!(wait_for(&ran), cpu(0), "it does not turn");
        if let Some(report) = reports(machine, cpu(0)).into_iter().find(|report| is_it(&report.stall)) {
            eventually("it turns again", || {
                // While a thread reads the reports a lane leaves the end for its next turn.
                block_on(machine.spawn_on(cpu(0), async {}).expect("it runs")).expect("it turns");
                reports(machine, cpu(0)).iter().any(|it| it.number == report.number && it.ended.is_some())
            });
            return report;
        }
    }
    panic!("{TRIES} times, and not reported: {:?}", machine.stalls());
}

/// A task that holds up lane 0 in its only poll.
fn holding_task(machine: &'static Machine, options: TaskOptions, sender: Sender<CpuId>) {
    let task = machine.spawn_with(options.lane(cpu(0)), async move {
        hold_up(machine, cpu(0), &sender);
    });
    drop(task.expect("it runs"));
    let other = machine.spawn(async {}).expect("it runs");
    block_on(other).expect("others' tasks run");
}

/// Goal: a task that does not return from its poll is named, with where it was started, and with its priority
/// if it is a real-time one. Method: one of each kind.
#[test]
fn a_task_that_does_not_return_is_named() {
    let machine = lanes().arm_locations().start().expect("starts");
    for priority in [None, Priority::new(40)] {
        let options = priority.map_or(TaskOptions::new(), |priority| TaskOptions::new().realtime(priority));
        let is_it =
            |stall: &StallCause| matches!(stall, StallCause::Task { priority: its, .. } if *its == priority);
        let report = reported(machine, |sender| holding_task(machine, options, sender), is_it);
        let StallCause::Task { name, spawned: Some(site), .. } = report.stall else { panic!("{report}") };
        assert!(name.contains("holding_task") && name.ends_with("{{closure}}"), "{name}");
        assert!(site.file().ends_with("stalls.rs"), "{site}");
        let shown = report.to_string();
        assert!(shown.contains(&format!("the task {name}")) && shown.contains(&format!("started at {site}")));
        assert_eq!(shown.contains("of priority 40"), priority.is_some(), "{shown}");
    }
    let counted = || machine.metrics().sum(|cpu| cpu.stalls);
    eventually("each is counted", || counted() == machine.stalls().len() as u64 + machine.stalls_dropped());
    machine.shutdown();
}

/// Goal: a machine that was not asked to keeps no sites of tasks.
#[test]
fn sites_of_tasks_are_kept_on_demand() {
    let machine = lanes().start().expect("starts");
    let begin = |sender| holding_task(machine, TaskOptions::new(), sender);
    let report = reported(machine, begin, |stall| matches!(stall, StallCause::Task { .. }));
    assert!(matches!(report.stall, StallCause::Task { spawned: None, priority: None, .. }), "{report}");
    machine.shutdown();
}

/// Goal: work that does not end is named, delayed work too. Method: a piece of each, bound to the lane.
#[test]
fn work_that_does_not_end_is_named() {
    let machine = lanes().start().expect("starts");
    let bound = WorkOptions::new().bound(cpu(0));
    let begin = |sender| {
        let work = machine.work(bound, move || hold_up(machine, cpu(0), &sender)).expect("it runs");
        assert!(work.queue().expect("it runs"));
    };
    let is_it = |stall: &StallCause| matches!(stall, StallCause::Work { name } if name.contains("work_that_does_not_end") && name.ends_with("{{closure}}"));
    let report = reported(machine, begin, is_it);
    assert!(report.to_string().contains(" ran the work ") || report.ended.is_none(), "{report}");
    let begin = |sender| {
        let work = machine.delayed_work(bound, move || hold_up(machine, cpu(0), &sender)).expect("it runs");
        work.work().queue().expect("it runs");
    };
    let _ = reported(machine, begin, |stall| matches!(stall, StallCause::Work { .. }));
    machine.shutdown();
}

/// Goal: a softirq's handler that loops is reported by its vector, and its lane goes on afterwards. Method:
/// one that loops for 50 ms and until it was reported; then one raise more.
#[test]
fn a_vector_that_loops_is_named() {
    let (runs_sender, runs) = channel();
    let tell: Arc<Mutex<Option<Sender<CpuId>>>> = Arc::default();
    let told = Arc::clone(&tell);
    let machine = lanes()
        .softirq(Vector::TASKLET, move |run| {
            let sender = told.lock().expect("no panic").take();
            if let Some(sender) = sender {
                hold_up(run.machine(), run.cpu(), &sender);
            }
            let _ = runs_sender.send(());
        })
        .start()
        .expect("starts");
    let begin = |sender| {
        *tell.lock().expect("no panic") = Some(sender);
        machine.raise(cpu(0), Vector::TASKLET).expect("it has a handler");
    };
    let is_it = |stall: &StallCause| *stall == StallCause::Softirq { vector: Vector::TASKLET };
    let report = reported(machine, begin, is_it);
    assert!(report.to_string().contains(" the handler of TASKLET"), "{report}");
    wait_for(&runs);
    machine.raise(cpu(0), Vector::TASKLET).expect("it has a handler");
    wait_for(&runs);
    machine.shutdown();
}

/// Panics of this process whose message holds `text`, as the hook told them.
fn panics_told(text: &'static str) -> Arc<Mutex<Vec<String>>> {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let (log, before) = (Arc::clone(&told), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |info| match info.payload().downcast_ref::<&str>() {
        Some(message) if message.contains(text) => {
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            log.lock().expect("no panic").push(format!("{place}: {message}"));
        }
        _ => before(info),
    }));
    told
}

/// How a lane is held up beside another one.
#[derive(Clone)]
struct Hold {
    /// Who ran a timer of it.
    ran: Sender<CpuId>,
    began: Sender<()>,
    is_over: Arc<AtomicBool>,
}

impl Hold {
    fn up(self, machine: &'static Machine, lane: CpuId) {
        self.began.send(()).expect("the test waits");
        let is_wanted = || !self.is_over.load(Ordering::Relaxed);
        hold_up_while(machine, lane, &self.ran, is_wanted);
    }
}

/// Both lanes held up at a time: a vector that loops on lane 0, a real-time task that never yields on lane 1.
/// Meanwhile a callback panics, and a timer and a task of others run.
fn hold_up_both(machine: &'static Machine, tell: &Mutex<Option<Hold>>) {
    let ((ran, runners), (began, begun)) = (channel(), channel());
    let hold = Hold { ran, began, is_over: Arc::default() };
    let is_over = Arc::clone(&hold.is_over);
    *tell.lock().expect("no panic") = Some(hold.clone());
    let options = TaskOptions::new().realtime(Priority::HIGHEST).lane(cpu(1));
    let task = machine.spawn_with(options, async move { hold.up(machine, cpu(1)) });
    machine.raise(cpu(0), Vector::NET_RX).expect("it has a handler");
    wait_for(&begun);
    wait_for(&begun);
    let panics = machine.metrics().sum(|cpu| cpu.panics);
    let bad = machine.timer(TimerOptions::new(), |_| panic!("a panic that `survives` wants"));
    bad.arm_after(SOON).expect("it runs");
    let other = machine.spawn(async {
        quietcore_live::time::sleep(SOON).await;
        lane_here()
    });
    let ran_on = block_on(other.expect("it runs")).expect("others' tasks run, and their timers");
    assert_eq!(ran_on, None, "on no lane: none of them turns");
    eventually("a callback has panicked", || machine.metrics().sum(|cpu| cpu.panics) > panics);
    is_over.store(true, Ordering::Relaxed);
    // Both have seen that another thread ran their timer.
    let _ = [wait_for(&runners), wait_for(&runners)];
    block_on(task.expect("it runs")).expect("it ends");
}

/// Goal: a callback that panics, a vector that loops and a real-time task that never yields: the machine
/// survives, counts and reports each. Method: all of them at a time, on the only two lanes; then both lanes
/// still run tasks, timers and softirqs.
#[test]
fn survives() {
    let told = panics_told("`survives` wants");
    let tell: Arc<Mutex<Option<Hold>>> = Arc::default();
    let taken = Arc::clone(&tell);
    let handler = move |run: &quietcore_live::softirq::SoftirqRun<'_>| {
        let hold = taken.lock().expect("no panic").take();
        if let Some(hold) = hold {
            hold.up(run.machine(), run.cpu());
        }
    };
    let builder = lanes().on_panic(OnPanic::Continue).softirq(Vector::NET_RX, handler);
    let machine = builder.start().expect("starts");
    let is_told =
        |cpu, is_it: fn(&StallCause) -> bool| reports(machine, cpu).iter().any(|it| is_it(&it.stall));
    let all_are_told = || {
        is_told(cpu(0), |stall| *stall == StallCause::Softirq { vector: Vector::NET_RX })
            && is_told(cpu(1), |stall| {
                matches!(stall, StallCause::Task { priority: Some(Priority::HIGHEST), .. })
            })
    };
    let mut rounds = 0;
    while !all_are_told() {
        assert!(rounds < TRIES as u64, "not reported: {:?}", machine.stalls());
        hold_up_both(machine, &tell);
        rounds += 1;
    }
    let metrics = machine.metrics();
    assert_eq!(metrics.sum(|cpu| cpu.panics), rounds, "each panic is counted");
    let told = told.lock().expect("no panic").clone();
    assert_eq!(told.len() as u64, rounds, "each panic is reported");
    assert!(told.iter().all(|line| line.contains("stalls.rs:")), "with its place: {told:?}");
    // Of the lanes, after what they count.
    eventually("each poll is counted", || machine.metrics().cpus[1].realtime_polls == rounds);
    let handled = || machine.metrics().sum(|cpu| cpu.softirqs + cpu.ksoftirqd_ran);
    eventually("each run of the handler, too", || handled() == rounds);
    // The host may have one more reported at any time.
    let counted = || machine.metrics().sum(|cpu| cpu.stalls);
    eventually("each is counted", || counted() == machine.stalls().len() as u64 + machine.stalls_dropped());
    for lane in both().iter() {
        let task = machine.spawn_on(lane, async { lane_here() }).expect("it runs");
        assert_eq!(block_on(task).expect("it ends"), Some(lane.index()), "it is back");
        let (sender, ran) = channel();
        let timer = machine.timer(TimerOptions::new(), move |run| _ = sender.send(run.cpu()));
        timer.arm_on(lane, machine.now()).expect("it is driven");
        wait_for(&ran);
        machine.raise(lane, Vector::NET_RX).expect("it has a handler");
    }
    eventually("both run softirqs", || {
        machine.metrics().sum(|cpu| cpu.softirqs + cpu.ksoftirqd_ran) >= rounds + 2
    });
    machine.shutdown();
}
