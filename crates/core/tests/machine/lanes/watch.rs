//! Lanes that are watched, and the sentinel, the spare and the helper that watch them.

use super::*;

/// Goal: a lane that has blocked leaves the stall deadline if no other is awake, and is watched again from
/// its return on. Method: the only lane, with nothing armed.
#[test]
fn a_block_leaves_the_deadline_and_a_return_arms_it() {
    let mut lanes = Lanes::new(1);
    assert_eq!(lanes.word(), Some(ms(SENTINEL)));
    let _ = lanes.act(0, |lane, at, actions| lane.handle_block(at, ms(1), actions));
    assert_eq!(lanes.word(), None, "no CPU is awake, and none has to be");
    lanes.act(0, |lane, at, actions| {
        assert!(lane.is_marked(at));
        let _ = lane.take_must_help();
        lane.handle_return(at, ms(50), actions);
        assert!(!lane.is_marked(at));
        assert!(lane.take_must_help(), "what others have was left to it by the spare");
    });
    assert_eq!(lanes.word(), Some(ms(50 + SENTINEL)));
}

/// Goal: what was asked for while a lane blocked is void when that is back: a machine at rest stays at rest.
/// Method: the only lane blocks with a timer, which is cancelled after its return, and sleeps.
#[test]
fn a_return_makes_a_request_void() {
    let mut lanes = Lanes::new(1);
    let timer = lanes.scene.arm_new((1, 20), 0, 0);
    let _ = lanes.act(0, |lane, at, actions| lane.handle_block(at, ms(0), actions));
    let _ = lanes.kicked();
    assert_eq!(lanes.word(), Some(ms(21)), "it is to run");
    lanes.act(0, |lane, at, actions| lane.handle_return(at, ms(5), actions));
    assert_eq!(lanes.scene.machine.cancel(timer, Context::on(cpu(0), ms(5))), Ok(true));
    lanes.tick(0, 6);
    assert_eq!(lanes.sleep(0, 6), None);
    let _ = lanes.kicked();
    assert_eq!(lanes.word(), None);
}

/// Goal: a lane that sleeps tells the hierarchy and the sentinel, and is watched again when it wakes up.
/// Method: the only lane, with a timer in 40 ms.
#[test]
fn a_lane_that_wakes_up_is_watched() {
    let mut lanes = Lanes::new(1);
    lanes.arm(40 * TICK, Context::on(cpu(0), ms(0)));
    assert_eq!(lanes.sleep(0, 0), Some(ms(41)));
    assert_eq!(lanes.word(), Some(ms(41 + STALL)), "behind its own wake-up");
    lanes.wake(0, ms(20));
    assert_eq!(lanes.word(), Some(ms(20 + SENTINEL)));
}

/// Goal: a lane that has slept is active and watched before it runs anything, also when it found that as it
/// was about to sleep on. Method: something is left while it is up, and it takes no turn in between.
#[test]
fn a_lane_that_sleeps_on_and_finds_something_is_watched() {
    let mut lanes = Lanes::new(1);
    assert_eq!(lanes.sleep(0, 0), None);
    let idle = lanes.act(0, |lane, at, actions| lane.handle_idle(at, ms(1), || true, actions));
    assert_eq!(idle, IdleUntil::Stay { until: ms(1) });
    assert_eq!(lanes.scene.cpu_state(0), CpuState::Parked);
    lanes.wake(0, ms(1));
    assert_eq!((lanes.scene.cpu_state(0), lanes.word()), (CpuState::Awake, Some(ms(1 + SENTINEL))));
}

/// Goal: a lane is watched from its claim on, before its first turn. Method: it comes back after it has left,
/// while no other one is awake.
#[test]
fn a_lane_is_watched_from_its_claim_on() {
    let mut lanes = Lanes::new(2);
    let _ = lanes.sleep(0, 0);
    let actions = &mut lanes.scene.actions;
    lanes.scene.machine.offline(cpu(1), ms(1), actions).expect("it is online");
    lanes.table.handle_leave(&lanes.scene.machine);
    let _ = lanes.table.deadline().take();
    let actions = &mut lanes.scene.actions;
    lanes.scene.machine.online(cpu(1), ms(2), actions).expect("it is offline");
    lanes.table.handle_claim(&lanes.scene.machine, cpu(1), ms(2), actions);
    assert_eq!(lanes.word(), Some(ms(2 + SENTINEL)));
}

/// Goal: a lane that was about to sleep and stays active is watched: in between another one may have found
/// none awake, and left the deadline. Method: as if it had, before a wait that something due cuts short.
#[test]
fn a_lane_that_stays_is_watched() {
    let mut lanes = Lanes::new(1);
    lanes.arm(TICK, Context::on(cpu(0), ms(0)));
    let _ = lanes.table.deadline().take();
    assert_eq!(lanes.idle(0, ms(1)), IdleUntil::Stay { until: ms(2) });
    assert_eq!(lanes.word(), Some(ms(1 + SENTINEL)));
}

/// Goal: a lane beside one that is silent does not sleep, but waits for the next tick and marks it then,
/// whatever is due. Method: lane 1 does not turn after 0.
#[test]
fn a_lane_beside_a_silent_one_stays() {
    let mut lanes = Lanes::new(2);
    for now in 1..4 {
        assert_eq!(lanes.tick(0, now), 0);
    }
    // Every other reason to doze is over.
    for _ in 0..8 {
        let now = Nanos(ms(3).0 + 5);
        assert_eq!(lanes.idle(0, now), IdleUntil::Stay { until: ms(4) }, "lane 1 is silent since 3 ms");
        lanes.wake(0, now);
    }
    assert_eq!(lanes.tick(0, 4), 1, "nothing is overdue there, but this one would sleep");
}

/// Goal: a lane does not sleep while a mark is incomplete: what the marked one arms when it has left the
/// lock in which it was stopped would be seen by no lane. Method: lane 0 is stopped inside its LOCAL base
/// with nothing to run; lane 1, which would sleep, marks it; then lane 0 goes on and arms a timer.
#[test]
fn a_lane_stays_until_a_mark_is_complete() {
    let mut lanes = Lanes::new(2);
    let lock = lanes.scene.lock_of(0, BaseKind::Local);
    lock.while_frozen(|| {
        for now in 1..6 {
            let _ = lanes.tick(1, now);
            let until = lanes.idle(1, ms(now));
            assert!(now < 2 || until == IdleUntil::Stay { until: ms(now + 1) }, "{now}: {until:?}");
            lanes.wake(1, ms(now + 1));
        }
    });
    assert_eq!(lanes.scene.cpu_state(0), CpuState::Absent);
    lanes.arm(10 * TICK, Context::on(cpu(0), ms(6)));
    let _ = lanes.tick(1, 6);
    assert_eq!(lanes.idle(1, ms(6)), IdleUntil::Sleep { until: Some(ms(17)) }, "it is the last one awake");
}

/// Goal: a lane that was stopped itself judges no other: after a stop of the whole machine all are silent.
/// Method: both lanes look at 1 ms, then one at 40; it marks the other at its next look only.
#[test]
fn a_late_watcher_judges_nobody() {
    let mut lanes = Lanes::new(2);
    lanes.arm(TICK, Context::on(cpu(1), ms(0)));
    assert_eq!((lanes.tick(0, 1), lanes.tick(1, 1)), (0, 0));
    assert_eq!(lanes.tick(0, 40), 0, "it is late itself");
    assert_eq!(lanes.tick(0, 41), 1);
}

/// Goal: a CPU that has just woken up is not taken for silent. Method: lane 1 sleeps for 30 ms; its CPU is
/// awake again, and something is overdue there when lane 0 looks, before lane 1 does anything else.
#[test]
fn a_lane_that_woke_up_is_not_silent() {
    let mut lanes = Lanes::new(2);
    assert_eq!(lanes.sleep(1, 1), None);
    for now in 2..31 {
        assert_eq!(lanes.tick(0, now), 0);
    }
    lanes.scene.machine.exit_idle(cpu(1), ms(30));
    lanes.arm(0, Context::near(cpu(1), ms(28)));
    assert_eq!(lanes.tick(0, 31), 0, "it woke up a tick ago");
}

/// Goal: a kick of a CPU that no thread drives reaches a lane that sleeps. Method: CPU 0's place is vacant.
#[test]
fn a_kick_of_a_vacant_place_wakes_another() {
    let mut lanes = Lanes::new(2);
    let _ = lanes.sleep(1, 0);
    lanes.slot(0).world.is_vacant.set(true);
    lanes.scene.actions.kick(cpu(0));
    assert_eq!(lanes.kicked(), [2, 1, 0], "CPU 0 again among those that could help, then lane 1");
}

/// Goal: a lane that has left its CPU is none that could help. Method: CPU 0 goes offline; its kicks go to
/// its place, which is vacant, and then to lane 1, which sleeps.
#[test]
fn a_lane_that_left_is_not_asked_to_help() {
    let mut lanes = Lanes::new(2);
    let _ = lanes.sleep(1, 0);
    assert!(!lanes.slot(0).is_standalone());
    lanes.scene.machine.offline(cpu(0), ms(1), &mut lanes.scene.actions).expect("lane 1 is left");
    let _ = lanes.kicked();
    lanes.table.handle_leave(&lanes.scene.machine);
    lanes.slot(0).world.is_vacant.set(true);
    lanes.scene.actions.kick(cpu(0));
    assert_eq!(lanes.kicked(), [1, 1, 0], "CPU 0 once, for what may be on its bases");
    assert!(lanes.slot(0).is_standalone());
}

/// Goal: a deadline that a lane held while the sentinel woke up stays. Method: it looks before the word's
/// moment.
#[test]
fn a_deadline_that_was_held_meanwhile_stays() {
    let mut lanes = Lanes::new(2);
    assert_eq!(lanes.sentinel_looks(ms(1)), SentinelLook::Quiet);
    assert_eq!(lanes.word(), Some(ms(SENTINEL)));
}

/// Goal: when the sentinel marks a lane beside one that seems to turn it kicks none, and says so: that one
/// may be on its way to sleep. Method: lane 0 is silent since 0, lane 1 has lived at 2 ms; a look at 3 ms.
#[test]
fn a_mark_beside_a_lane_that_turns_is_told() {
    let mut lanes = Lanes::new(2);
    lanes.scene.machine.keep_alive(cpu(1), ms(2));
    let _ = lanes.table.deadline().pull(ms(3));
    assert_eq!(lanes.sentinel_looks(ms(3)), SentinelLook::MarkedBesideAwake);
    assert_eq!((lanes.scene.cpu_state(0), lanes.scene.cpu_state(1)), (CpuState::Absent, CpuState::Awake));
    assert_eq!(lanes.kicked(), [0, 0, 0]);
}

/// Goal: the sentinel rests while all lanes sleep as they may, and does not take one for resting that was to
/// be up long ago. Method: lane 0 sleeps until 10 ms; looks before and after `stall_after` from there.
#[test]
fn the_sentinel_knows_who_overslept() {
    let mut lanes = Lanes::new(1);
    lanes.arm(9 * TICK, Context::on(cpu(0), ms(0)));
    assert_eq!(lanes.sleep(0, 0), Some(ms(10)));
    assert_eq!(lanes.word(), Some(ms(10 + STALL)));
    lanes.table.deadline().pull(ms(5)).then_some(()).expect("it is earlier");
    assert_eq!(lanes.sentinel_looks(ms(5)), SentinelLook::Quiet);
    assert_eq!((lanes.word(), lanes.kicked()), (Some(ms(10 + STALL)), vec![0, 0]));
    assert_eq!(lanes.sentinel_looks(ms(10 + STALL)), SentinelLook::Marked);
    assert_eq!(lanes.kicked(), [0, 1], "the spare takes over from lane 0, which sleeps on");
}

/// Goal: the same of a lane that is to be up for another one's timer, before its own. Method: lane 1 sleeps
/// with a timer for 20 ms, and then lane 0 with one for 50 ms, which oversleeps.
#[test]
fn the_sentinel_knows_who_overslept_for_another() {
    let mut lanes = Lanes::new(2);
    for (index, delay) in [(0, 49), (1, 19)] {
        lanes.arm(delay * TICK, Context::on(cpu(index), ms(0)));
    }
    let _ = lanes.sleep(1, 0);
    assert_eq!(lanes.sleep(0, 0), Some(ms(20)), "for lane 1");
    assert_eq!(lanes.word(), Some(ms(20 + STALL)));
    let _ = lanes.kicked();
    let _ = lanes.sentinel_looks(ms(20 + STALL));
    assert_ne!(lanes.kicked(), [0, 0, 0], "another one takes over");
}

/// Goal: the sentinel does not let a tree rest in which a lane was stopped on its way into or out of idle:
/// groups may hide what others have. Method: all sleep; the record of lane 0 is held.
#[test]
fn the_sentinel_knows_who_was_stopped_on_the_way() {
    let mut lanes = Lanes::new(2);
    let (_, _) = (lanes.sleep(0, 0), lanes.sleep(1, 0));
    let lock = lanes.scene.lock_of_books(0);
    for (is_stopped, kicks) in [(false, [0, 0, 0]), (true, [0, 1, 0])] {
        let _ = lanes.table.deadline().pull(ms(5));
        if is_stopped {
            assert_eq!(lock.while_frozen(|| lanes.sentinel_looks(ms(5))), SentinelLook::Marked);
        } else {
            assert_eq!(lanes.sentinel_looks(ms(5)), SentinelLook::Quiet);
        }
        assert_eq!(lanes.kicked(), kicks);
    }
    assert!(lanes.scene.machine.watches_stalled(cpu(1), ms(5)), "the others look at all until it goes on");
}

/// Goal: a spare that a lane could relieve stands down: the alarm is asked for, and its own timers wake it.
/// Method: lane 0 waits; a timer of the tree is due in 20 ms.
#[test]
fn a_spare_stands_down() {
    let mut lanes = Lanes::new(1);
    let _ = lanes.sleep(0, 0);
    lanes.wake(1, ms(1));
    lanes.arm(20 * TICK, Context::near(cpu(0), ms(1)));
    let _ = lanes.kicked();
    let mut until = lanes.idle(1, ms(2));
    while let IdleUntil::Stay { until: edge } = until {
        lanes.wake(1, edge);
        until = lanes.idle(1, edge);
    }
    assert_eq!(until, IdleUntil::Sleep { until: None }, "it wakes up for no other");
    let _ = lanes.kicked();
    assert_eq!(lanes.word(), Some(ms(22)), "the alarm, for lane 0");
}

/// Goal: the helper of a machine without lanes is kicked by its deadline word: while it dozes it is awake for
/// the hierarchy, and no alarm is asked for. Method: an exact timer before what it dozes for.
#[test]
fn a_kick_of_the_helper_pulls_its_deadline() {
    let settings = Settings::default();
    let (none, spare) = (CpuSet::new(), CpuSet::range(cpu(1), 1).expect("few"));
    let table = LaneTable::new(&none, &spare, &settings, |_: CpuId| NotedPlace::default());
    let mut scene = Scene::new(2, settings);
    for index in [0, 1] {
        scene.idle(index, 0);
    }
    let mut helper = Helper::new(cpu(1));
    helper.handle_wake(&scene.machine, ms(1));
    let timer = scene.add(TimerOptions::new(), 1);
    let _ = scene.arm(timer, 1, Context::near(cpu(1), ms(1)));
    assert_eq!(helper.handle_idle(&scene.machine, ms(1)), Some(ms(2)));
    let exact = scene.add_exact(TimerOptions::new(), 2);
    let at = Expiry::at(1_250_000);
    let _ = scene.arm_as(exact, at, Context::near(cpu(0), ms(1)));
    assert_eq!(scene.actions.take_alarm(), None);
    while let Some(kicked) = scene.actions.take_kick() {
        table.kick(&scene.machine, kicked, &mut scene.actions);
    }
    assert_eq!(scene.actions.take_alarm(), Some(Nanos(1_250_000)));
}

/// Goal: a spare leaves nothing to a lane that is stuck, although that waits. Method: lane 0 oversleeps and
/// is marked; the spare runs what was due, and has a timer of the tree in 20 ms.
#[test]
fn a_spare_does_not_stand_down_for_a_lane_that_is_stuck() {
    let mut lanes = Lanes::new(1);
    lanes.arm(9 * TICK, Context::on(cpu(0), ms(0)));
    let _ = lanes.sleep(0, 0);
    assert_eq!(lanes.sentinel_looks(ms(10 + STALL)), SentinelLook::Marked);
    lanes.wake(1, ms(12));
    assert!(lanes.slot(0).world.is_waiting() && lanes.scene.machine.is_marked(cpu(0)));
    let _ = lanes.scene.turn(1, 12);
    lanes.arm(20 * TICK, Context::near(cpu(1), ms(12)));
    let _ = lanes.kicked();
    let mut until = lanes.idle(1, ms(13));
    while let IdleUntil::Stay { until: edge } = until {
        lanes.wake(1, edge);
        until = lanes.idle(1, edge);
    }
    assert_eq!(until.until(), Some(ms(33)), "nobody else wakes up for that");
}

/// Goal: the last lane awake that blocks asks for the alarm before it leaves the stall deadline: its thread
/// may be stopped right after. Method: a timer in 20 ms; the word, before the actions are carried out.
#[test]
fn an_alarm_is_asked_for_before_the_deadline_is_left() {
    let mut lanes = Lanes::new(1);
    lanes.arm(20 * TICK, Context::near(cpu(0), ms(0)));
    let _ = lanes.act(0, |lane, at, actions| lane.handle_block(at, ms(0), actions));
    assert_eq!(lanes.word(), Some(ms(21)));
}

/// Goal: a lane that could not return yet, or that is isolated, holds no stall deadline. Method: its record
/// is held by a thread that was stopped; it has been isolated meanwhile.
#[test]
fn only_a_lane_that_is_back_is_watched() {
    for is_isolated in [false, true] {
        let mut lanes = Lanes::new(2);
        let _ = lanes.act(1, |lane, at, actions| lane.handle_block(at, ms(1), actions));
        let _ = lanes.sleep(0, 1);
        if is_isolated {
            lanes.isolate("1", 1);
        }
        let _ = lanes.table.deadline().take();
        let lock = lanes.scene.lock_of_books(1);
        let mut returns = || lanes.act(1, |lane, at, actions| lane.handle_return(at, ms(50), actions));
        if is_isolated {
            returns()
        } else {
            lock.while_frozen(returns)
        }
        assert_eq!(lanes.word(), None, "it is isolated: {is_isolated}");
    }
}

/// Goal: a lane that was kicked for what an absent one has must turn, though it does not know why. Method:
/// lane 0 has blocked, lane 1 sleeps and swallows its kick.
#[test]
fn a_lane_that_was_kicked_for_an_absent_one_must_turn() {
    let mut lanes = Lanes::new(2);
    let _ = lanes.sleep(1, 0);
    let _ = lanes.act(0, |lane, at, actions| lane.handle_block(at, ms(0), actions));
    lanes.arm(20 * TICK, Context::near(cpu(0), ms(0)));
    let _ = lanes.kicked();
    let _ = lanes.sentinel_looks(ms(21));
    assert_eq!(lanes.kicked(), [0, 1, 0]);
    let again = lanes.word().expect("it looks whether that lane turns");
    let _ = lanes.sentinel_looks(again);
    assert_ne!(lanes.kicked(), [0, 0, 0], "another one, or the same again");
}

/// Goal: a lane that sleeps beyond a pinned timer of its own is not taken for stuck: no other could run that.
/// Method: one at 10 ms, and one in 50 ms that others could run.
#[test]
fn who_oversleeps_a_pinned_timer_is_left_alone() {
    let mut lanes = Lanes::new(1);
    let timer = lanes.scene.add(TimerOptions::new().pinned(), 1);
    let _ = lanes.scene.arm_as(timer, Arm::at(ms(9)), Context::on(cpu(0), ms(0)));
    lanes.arm(50 * TICK, Context::on(cpu(0), ms(0)));
    assert_eq!(lanes.sleep(0, 0), Some(ms(10)));
    let _ = lanes.kicked();
    assert_eq!(lanes.sentinel_looks(ms(10 + STALL)), SentinelLook::Quiet);
    assert_eq!(lanes.kicked(), [0, 0]);
}

/// Goal: what a look left undone is done by the lanes, also where none is ever marked. Method: a mark that
/// did not get the record, with no limit for silence.
#[test]
fn repairs_are_made_where_no_lane_is_marked() {
    let mut lanes = Lanes::with(2, Settings { stall: StallPolicy::NEVER, ..Settings::default() });
    let lock = lanes.scene.lock_of_books(1);
    let _ = lock.while_frozen(|| lanes.scene.mark(1));
    assert!(lanes.scene.machine.watches_stalled(cpu(0), ms(1)));
    let (_, _) = (lanes.tick(0, 1), lanes.tick(0, 2));
    assert!(!lanes.scene.machine.watches_stalled(cpu(0), ms(2)));
}

/// Goal: where CPUs do not pull, each lane looks after itself, and the sentinel has no one to watch. Method:
/// the other policies.
#[test]
fn lanes_that_do_not_pull_are_not_watched() {
    for policy in [Policy::Push, Policy::Stay] {
        let lanes = Lanes::with(2, Settings { policy, ..Settings::default() });
        assert!(lanes.slot(0).is_standalone() && lanes.slot(1).is_standalone(), "{policy:?}");
        assert_eq!(lanes.word(), None, "{policy:?}");
    }
}

/// Goal: the helper is awake in the hierarchy after each time that it woke up. Method: twice.
#[test]
fn a_helper_wakes_up_again() {
    let mut scene = Scene::of(1);
    scene.idle(0, 0);
    let mut helper = Helper::new(cpu(0));
    for now in [1, 2] {
        helper.handle_wake(&scene.machine, ms(now));
        assert_eq!(scene.cpu_state(0), CpuState::Awake);
        assert_eq!(helper.handle_idle(&scene.machine, ms(now)), None);
        assert_eq!(scene.cpu_state(0), CpuState::Parked);
    }
}
