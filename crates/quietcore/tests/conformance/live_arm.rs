//! A program on threads: one for each CPU, sleeping from step to step under paused time.

use super::body::{CPUS, Program, Step, Story, TICK, Verb};
use quietcore::time::{Duration, Instant, block_on, sleep_until};
use quietcore::{Machine, Precision, TimerHandle, TimerOptions};
use quietcore_sim::ScriptEvent;
use std::sync::{Arc, Mutex};
use std::thread;

type Log = Arc<Mutex<Story>>;

/// What happens, from the beginning to the end of the program.
pub(crate) fn run(program: &Program) -> Story {
    let machine = Machine::builder().virtual_time().start().expect("starts");
    machine.pause().expect("its time can be paused");
    let entered = machine.enter();
    let start = Instant::now();
    let log = Log::default();
    let count = program.steps.iter().map(|step| step.timer + 1).max().unwrap_or(0);
    let timers: Arc<[TimerHandle]> = (0..count).map(|timer| handle(machine, start, timer, &log)).collect();
    let all_are_there = machine.hold();
    let threads: Vec<_> = (0..CPUS)
        .map(|cpu| {
            let steps = program.steps.iter().filter(|step| step.cpu == cpu).copied().collect();
            let (timers, log, hold) = (Arc::clone(&timers), Arc::clone(&log), machine.hold());
            thread::spawn(move || {
                let _entered = machine.enter();
                block_on(async {
                    drop(hold);
                    follow(steps, start, &timers, &log).await;
                });
            })
        })
        .collect();
    block_on(async {
        drop(all_are_there);
        sleep_until(start + Duration::from_nanos(program.ticks * TICK))
            .with_precision(Precision::Exact)
            .await;
    });
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let logged = core::mem::take(&mut *log.lock().expect("no panic"));
    assert!(logged.is_sorted_by_key(|(at, _, _)| *at), "time went back: {logged:?}");
    drop(entered);
    machine.shutdown();
    let mut logged = logged;
    logged.sort();
    logged
}

fn handle(machine: &'static Machine, start: Instant, timer: u32, log: &Log) -> TimerHandle {
    let log = Arc::clone(log);
    machine.timer(TimerOptions::new().precision(Precision::Tick), move |_run| {
        let at = start.elapsed().as_nanos() as u64;
        log.lock().expect("no panic").push((at, timer, ScriptEvent::Ran));
    })
}

async fn follow(steps: Vec<Step>, start: Instant, timers: &[TimerHandle], log: &Log) {
    for step in steps {
        sleep_until(start + Duration::from_nanos(step.at)).with_precision(Precision::Exact).await;
        assert_eq!(start.elapsed(), Duration::from_nanos(step.at), "a step has its moment");
        let timer = &timers[step.timer as usize];
        let what = match step.verb {
            Verb::Arm(delay) => {
                let armed = timer.arm_after(Duration::from_nanos(delay));
                ScriptEvent::Armed { was_pending: armed.expect("the machine runs") }
            }
            Verb::Cancel => ScriptEvent::Cancelled { was_pending: timer.cancel() },
        };
        log.lock().expect("no panic").push((step.at, step.timer, what));
    }
}
