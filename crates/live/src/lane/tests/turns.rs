//! What a turn runs and says, and what the thread knows after it.

use super::{Log, TICK, claim, cpu, eventually, list, many, note, noted, pass, quiet, still};
use crate::isolation::TimerRaise;
use crate::time::{Instant, sleep_until};
use crate::{ArmError, Machine, Nanos, Precision, TimerOptions};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

/// Goal: a turn whose budget is used up says that there is more, and the next one runs it. Method: more
/// timers than a turn runs, all due.
#[test]
fn a_turn_says_that_it_has_more() {
    let machine = still(quiet());
    let mut lane = claim(machine, 0);
    let (timers, _) = many(machine, 0, 300);
    let stats = [(); 2].map(|()| lane.turn());
    assert_eq!(stats.map(|stats| (stats.ran, stats.has_more)), [(256, true), (44, false)]);
    drop((timers, lane));
    machine.shutdown();
}

/// Goal: what a turn has set aside and not run is not lost when the thread leaves. Method: more timers than a
/// turn runs; the thread leaves after one.
#[test]
fn what_a_turn_left_runs_when_its_lane_leaves() {
    let machine = quiet().start().expect("it starts");
    let mut lane = claim(machine, 0);
    let (timers, ran) = many(machine, 0, 300);
    assert!(lane.turn().has_more);
    drop(lane);
    eventually("all of them run", || ran.load(Ordering::Relaxed) == 300);
    assert!(timers.iter().all(|timer| !timer.is_pending()));
    machine.shutdown();
}

/// Goal: what a lane takes for the moment, when it arms, is that of its last look: the claim, and then each
/// turn, by the clock or by ticks. Method: a clock that is moved before each.
#[test]
fn a_lane_knows_when_it_last_looked() {
    for when in [TimerRaise::NextExpiry, TimerRaise::Unconditional] {
        let machine = still(quiet().isolated(list("0")).timer_raise(when));
        pass(machine, TICK);
        let mut lane = claim(machine, 0);
        assert_eq!(machine.current_cpu(), Some((cpu(0), machine.now())));
        for _ in 0..3 {
            let (timers, _) = many(machine, 0, 1);
            let now = pass(machine, TICK);
            assert_eq!(lane.turn().ran, 1);
            assert_eq!(machine.current_cpu(), Some((cpu(0), now)), "{when:?}");
            drop(timers);
        }
        drop(lane);
        assert_eq!(machine.current_cpu(), None);
        machine.shutdown();
    }
}

/// Goal: a thread that drives a CPU of one machine is a foreign one to all others. Method: two machines.
#[test]
fn a_lane_is_one_of_its_own_machine() {
    let [own, other] = [(); 2].map(|()| quiet().start().expect("it starts"));
    let lane = claim(own, 1);
    assert_eq!((own.cpu_here(), other.cpu_here()), (Some(cpu(1)), None));
    drop(lane);
    [own, other].iter().for_each(|machine| machine.shutdown());
}

/// Goal: an arm that was refused changes nothing. Method: a periodic timer, and one for a moment within a
/// tick, are to be armed for a lane that no thread drives.
#[test]
fn a_refused_arm_changes_nothing() {
    let machine = still(quiet());
    let mut lane = claim(machine, 0);
    let log = Log::default();
    let [periodic, single] = [log.clone(), log.clone()]
        .map(|log| machine.timer(TimerOptions::new().pinned(), move |run| note(&log, run.scheduled().0)));
    let now = machine.now().0;
    periodic.arm_periodic(Nanos(now + TICK), Duration::from_nanos(2 * TICK)).expect("it runs");
    single.arm_at(Nanos(now + TICK + 77)).expect("it runs");
    for timer in [&periodic, &single] {
        let refused = timer.arm_on(cpu(1), Nanos(now + 50 * TICK));
        assert!(matches!(refused, Err(ArmError::NoLane { .. })), "{refused:?}");
    }
    for _ in 0..5 {
        pass(machine, TICK);
        lane.turn();
    }
    let mut noted = noted(&log);
    noted.sort_unstable();
    assert_eq!(noted, [now + TICK, now + TICK + 77, now + 3 * TICK, now + 5 * TICK]);
    drop((periodic, single, lane));
    machine.shutdown();
}

/// Goal: a callback is told the present, also behind a waker that takes its time. Method: a sleep whose waker
/// lets a tick pass, and a timer that is due just after it.
#[test]
fn the_clock_is_read_behind_a_waker() {
    struct Passes(&'static Machine);

    impl Wake for Passes {
        fn wake(self: Arc<Self>) {
            pass(self.0, TICK);
        }
    }

    let machine = still(quiet());
    let mut lane = claim(machine, 0);
    let log = Log::default();
    let noted_by = log.clone();
    let exact = TimerOptions::new().precision(Precision::Exact);
    let timer = machine.timer(exact, move |run| note(&noted_by, run.now().0));
    let at = machine.now().0 + TICK;
    let waker = Waker::from(Arc::new(Passes(machine)));
    let mut sleep = Box::pin(sleep_until(Instant::from(Nanos(at))).with_precision(Precision::Exact));
    assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    timer.arm_at(Nanos(at + 1)).expect("it runs");
    pass(machine, 2 * TICK);
    lane.turn();
    assert_eq!(noted(&log), [at + 2 * TICK]);
    drop((sleep, timer, lane));
    machine.shutdown();
}
