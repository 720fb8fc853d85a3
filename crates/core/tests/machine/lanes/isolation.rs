//! Lanes that are isolated.

use super::*;

/// Goal: an isolated lane holds no stall deadline, as it would not notice that others are stuck; one that
/// joins again is watched from then on, and holds it. Method: lane 0 never turns; lane 1 does, isolated from
/// 0 to 10 ms.
#[test]
fn an_isolated_lane_does_not_hold_the_deadline() {
    let mut lanes = Lanes::new(2);
    lanes.isolate("1", 0);
    for now in 1..10 {
        assert_eq!(lanes.tick(1, now), 0);
    }
    assert_eq!(lanes.word(), Some(ms(SENTINEL)), "no lane of the tree has turned");
    let _ = lanes.table.deadline().take();
    lanes.isolate("", 10);
    assert_eq!(lanes.word(), Some(ms(10 + SENTINEL)));
    let _ = lanes.tick(1, 12);
    assert_eq!(lanes.word(), Some(ms(12 + SENTINEL)));
}

/// Goal: a lane that was isolated wakes up for no other, so what the tree has asked for stays, also as long
/// as the thread that isolates has not told the lanes. Method: an alarm for 21 ms; a lane that slept or was
/// blocked goes on, turns just before that, and sleeps.
#[test]
fn an_isolated_lane_forgets_no_alarm() {
    for was_blocked in [false, true] {
        let mut lanes = Lanes::new(2);
        let _ = lanes.sleep(0, 0);
        if was_blocked {
            let _ = lanes.act(1, |lane, at, actions| lane.handle_block(at, ms(0), actions));
        } else {
            let _ = lanes.sleep(1, 0);
        }
        lanes.arm(19 * TICK, Context::near(cpu(0), ms(1)));
        let _ = lanes.kicked();
        assert_eq!(lanes.word(), Some(ms(21)), "the alarm");
        let _ = lanes.scene.isolate("1", 2);
        if was_blocked {
            lanes.act(1, |lane, at, actions| lane.handle_return(at, ms(3), actions));
        } else {
            lanes.wake(1, ms(3));
        }
        let _ = lanes.tick(1, 20);
        assert!(lanes.word().is_some_and(|at| at <= ms(21)), "{:?}", lanes.word());
        let _ = lanes.sleep(1, 20);
        let _ = lanes.kicked();
        let _ = lanes.sentinel_looks(ms(21));
        assert_eq!(lanes.kicked(), [1, 0, 0], "lane 0 is up for the timer");
    }
}

/// Goal: an isolated lane that sleeps is not disturbed, though no other one turns. Method: the same as above
/// beside one.
#[test]
fn an_isolated_sleeper_is_left_alone() {
    let mut lanes = Lanes::new(3);
    lanes.isolate("2", 0);
    (0..3).for_each(|index| _ = lanes.sleep(index, 0));
    lanes.arm(20 * TICK, Context::near(cpu(0), ms(1)));
    let _ = lanes.kicked();
    let mut now = lanes.word().expect("the alarm");
    let mut kicks = [0; 4];
    for _ in 0..4 {
        let _ = lanes.sentinel_looks(now);
        kicks.iter_mut().zip(lanes.kicked()).for_each(|(sum, kicks)| *sum += kicks);
        now = lanes.word().expect("it looks again");
    }
    assert!(kicks[0] > 0 && kicks[1] > 0 && kicks[2] == 0 && kicks[3] > 0, "{kicks:?}");
}

/// Goal: the thread of an isolated lane that comes is watched by no one, and watches none. Method: it claims
/// its place while lane 0 sleeps, and looks around while lane 0 is silent.
#[test]
fn an_isolated_lane_watches_none() {
    let mut lanes = Lanes::new(2);
    lanes.isolate("1", 0);
    for now in 1..30 {
        assert_eq!(lanes.tick(1, now), 0);
    }
    let mut lanes = Lanes::new(2);
    lanes.isolate("1", 0);
    let _ = lanes.sleep(0, 0);
    let word = lanes.word();
    lanes.table.handle_claim(&lanes.scene.machine, cpu(1), ms(1), &mut lanes.scene.actions);
    assert_eq!(lanes.word(), word);
}

/// Goal: isolating while all lanes sleep makes the sentinel look no sooner. Method: two that sleep.
#[test]
fn isolating_sleepers_wakes_no_sentinel() {
    let mut lanes = Lanes::new(2);
    let (_, _) = (lanes.sleep(0, 0), lanes.sleep(1, 0));
    let word = lanes.word();
    lanes.isolate("1", 1);
    assert_eq!(lanes.word(), word);
}

/// Goal: an isolated lane that has collected timers, or waits, is to turn. Method: neither, one, the other.
#[test]
fn an_isolated_lane_with_collected_timers_is_not_quiet() {
    let mut lanes = Lanes::new(2);
    lanes.isolate("1", 0);
    let is_quiet = |lanes: &Lanes| lanes.lanes[1].is_quiet(lanes.slot(1));
    assert!(is_quiet(&lanes));
    lanes.arm(TICK, Context::on(cpu(1), ms(0)));
    lanes.act(1, |lane, at, _| at.machine.collect_due(&mut lane.turn, ms(3)));
    assert!(!is_quiet(&lanes), "it has collected one");
    let mut lanes = Lanes::new(2);
    lanes.isolate("1", 0);
    let _ = lanes.idle(1, ms(1));
    assert!(!is_quiet(&lanes), "it waits");
}

/// Goal: a lane that joins is watched, also if another one leaves with the same call. Method: the lanes that
/// take part sleep; lane 2 is isolated in place of lane 1, which does not turn.
#[test]
fn who_joins_as_another_leaves_is_watched() {
    let mut lanes = Lanes::new(3);
    lanes.isolate("1", 0);
    lanes.sleep(0, 0);
    lanes.sleep(2, 0);
    assert_eq!(lanes.word(), None);
    lanes.isolate("2", 10);
    assert_eq!(lanes.word(), Some(ms(10 + SENTINEL)));
}
