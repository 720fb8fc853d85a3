//! A lane that is stopped at each step of a lock, in whatever it does, for as long as others need.
//!
//! It may hold locks: of CPUs (bases, records), of control, of a group's events. The alarm waits for none of
//! them. Other lanes wait for those of their own CPU, where the stopped one is at work there, and of the CPU
//! that they move a timer to; not for a group's: what could not be published is noted, and a CPU is awake
//! until it is (PROTOCOL, section 4). When the lane goes on, no timer is lost, and none was early.

use crate::lanes::{C, D, E, Lanes};
use crate::lock::LockNumbers;
use crate::play::{Part, Subject, play};
use crate::stage::{Crew, Mover, Point, Policy, ready};

/// The CPUs whose locks a call may wait for while another lane is stopped.
type MayWait = &'static [usize];

/// Virtual CPU 0 goes on to its n-th point; the others play their parts; then it goes on to its end.
struct Stop {
    /// Points that are left until then.
    left: usize,
    may_wait: MayWait,
    locks: LockNumbers,
    /// What the others have done since.
    steps: usize,
}

/// No call of a test takes so many steps, unless it goes round in circles.
const STEPS_MAX: usize = 2000;

impl Policy for Stop {
    fn next(&mut self, points: &mut [Point], mover: Mover) -> Result<Option<usize>, String> {
        if self.left > 0 && points[0] != Point::Done {
            self.left -= 1;
            return Ok(Some(0));
        }
        self.steps += usize::from(mover.cpu != 0);
        if self.steps > STEPS_MAX {
            return Err(format!("no end after {STEPS_MAX} steps"));
        }
        if let Some(Point::Blocked(lock)) = points.get(mover.cpu).copied()
            && mover.cpu != 0
            && !self.locks.cpu(lock).is_some_and(|cpu| self.may_wait.contains(&cpu))
        {
            return Err(format!("waits for {} while virtual CPU 0 is stopped", self.locks.name(lock)));
        }
        let other = ready(points).find(|cpu| *cpu != 0);
        Ok(other.or_else(|| ready(points).next()))
    }

    fn stops_at_locks(&self, cpu: usize) -> bool {
        cpu == 0
    }
}

/// What X does.
struct Doing {
    what: &'static str,
    x: Part<Lanes>,
    /// Points that it passes at least, so that the test is about something.
    least: usize,
}

const DOINGS: [Doing; 5] = [
    Doing { what: "turns", x: |lanes| lanes.turn(0, 3), least: 10 },
    Doing { what: "arms", x: |lanes| lanes.arm(C, 0, 2, 8), least: 3 },
    Doing { what: "goes idle", x: |lanes| lanes.sleep(0, 2), least: 9 },
    Doing {
        what: "goes idle and wakes up",
        x: |lanes| {
            lanes.sleep(0, 2);
            lanes.wake(0, 3);
        },
        least: 20,
    },
    Doing {
        what: "is isolated and joins again",
        x: |lanes| {
            lanes.isolate_x(true, 2);
            lanes.isolate_x(false, 3);
        },
        least: 150,
    },
];

/// As [`Lanes::with_alarm`] has them.
const M: usize = 1;
const W: usize = 2;

const OTHERS: [(&str, MayWait, Part<Lanes>); 9] = [
    ("the alarm goes off", &[], |lanes| lanes.alarm(5)),
    ("no lane has turned", &[], |lanes| lanes.silence(5)),
    ("M arms on its own base", &[M], |lanes| {
        lanes.wake(M, 3);
        lanes.arm(D, M, 3, 7);
    }),
    ("M cancels on its own base", &[M], |lanes| {
        lanes.wake(M, 3);
        lanes.cancel(D, M, 3);
    }),
    ("M goes idle", &[M], |lanes| {
        lanes.wake(M, 3);
        lanes.sleep(M, 3);
    }),
    ("M blocks and comes back", &[M], |lanes| {
        lanes.wake(M, 3);
        lanes.block(M, 3);
    }),
    // What W moves off an isolated X goes to M.
    ("W turns", &[W, M], |lanes| {
        lanes.wake(W, 3);
        (3..6).for_each(|tick| lanes.turn(W, tick));
    }),
    ("a stranger arms on a lane that sleeps", &[3], |lanes| lanes.arm_near(E, 3, 2, 3)),
    ("what a stranger arms is run", &[M, W, 3], |lanes| lanes.arm_and_serve(E, 3, 3)),
];

/// Goal: wherever a lane is stopped, the alarm, the look after a silence, and other lanes' arms, cancels,
/// turns and waits return, what is armed on other lanes is run, and when it goes on nothing is lost or was
/// early. Method: every step of every call, beside each of the others, with the other lanes awake and asleep.
#[test]
fn nobody_waits_for_a_lane_that_is_stopped() {
    check_no_wait_in(&["0-3"]);
}

/// Goal: the same where a walk has two levels, between which it may stop: X and the lane on which a stranger
/// arms are in one group, M and W in another.
#[test]
fn nobody_waits_for_a_lane_that_is_stopped_between_two_groups() {
    check_no_wait_in(&["0,3", "1-2"]);
}

fn check_no_wait_in(groups: &[&str]) {
    let crew = Crew::new(2);
    for Doing { what, x, least } in DOINGS {
        for (due, is_alone) in [(1, false), (1, true), (10, false), (10, true)] {
            let make = || Lanes::with_alarm(due, is_alone, groups);
            let run = |parts: &[Part<Lanes>], left, may_wait| {
                let lanes = make();
                let (locks, _) = lanes.locks();
                play(&crew, lanes, parts, Box::new(Stop { left, may_wait, locks, steps: 0 }))
            };
            let points = run(&[x], usize::MAX, &[]);
            assert!(points >= least, "X {what}: {points} points");
            for (other, may_wait, part) in OTHERS {
                for stop in 0..=points {
                    println!("X, with timers for {due}, {what}; stopped at {stop} of {points}: {other}");
                    run(&[x, part], stop, may_wait);
                }
            }
        }
    }
}
