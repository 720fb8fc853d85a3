//! A lane that is stopped at each step of a lock, in whatever it does, for as long as others need.
//!
//! It may hold locks: of CPUs (bases, records), of control, of a group's events. The alarm waits for none of
//! them. Other lanes wait for those of their own CPU, where the stopped one is at work there, and of the CPU
//! that they move a timer to; and for a group's, as a turn, a mark and a publication walk through groups
//! (PROTOCOL, section 4). When the lane goes on, no timer is lost, and none was early.

use crate::lanes::{C, D, E, Lanes};
use crate::lock::LockNumbers;
use crate::play::{Part, Subject, play};
use crate::stage::{Crew, Mover, Point, Policy, ready};

/// Which locks a call may wait for while another lane is stopped.
#[derive(Clone, Copy, Debug)]
struct MayWait {
    /// Those of these CPUs.
    of: &'static [usize],
    /// Those of groups.
    of_groups: bool,
}

impl MayWait {
    const NEVER: Self = Self::of(&[]);

    const fn of(of: &'static [usize]) -> Self {
        Self { of, of_groups: false }
    }

    const fn and_groups(self) -> Self {
        Self { of_groups: true, ..self }
    }

    fn allows(self, lock: usize, locks: LockNumbers) -> bool {
        self.of_groups && locks.is_of_group(lock) || locks.cpu(lock).is_some_and(|cpu| self.of.contains(&cpu))
    }
}

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
            && !self.may_wait.allows(lock, self.locks)
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

const OTHERS: [(&str, MayWait, Part<Lanes>); 6] = [
    ("the alarm goes off", MayWait::NEVER, |lanes| lanes.alarm(5)),
    ("no lane has turned", MayWait::NEVER.and_groups(), |lanes| lanes.silence(5)),
    ("M arms on its own base", MayWait::of(&[M]), |lanes| {
        lanes.wake(M, 3);
        lanes.arm(D, M, 3, 7);
    }),
    ("M cancels on its own base", MayWait::of(&[M]), |lanes| {
        lanes.wake(M, 3);
        lanes.cancel(D, M, 3);
    }),
    // What W moves off an isolated X goes to M.
    ("W turns", MayWait::of(&[W, M]).and_groups(), |lanes| {
        lanes.wake(W, 3);
        (3..6).for_each(|tick| lanes.turn(W, tick));
    }),
    ("a stranger arms on a lane that sleeps", MayWait::of(&[3]).and_groups(), |lanes| {
        lanes.arm_near(E, 3, 3, 4)
    }),
];

/// Goal: wherever a lane is stopped, the alarm, the look after a silence, and other lanes' arms, cancels and
/// turns return, and when it goes on nothing is lost or was early. Method: every step of every call, beside
/// each of the others, with the other lanes awake and asleep.
#[test]
fn nobody_waits_for_a_lane_that_is_stopped() {
    let crew = Crew::new(2);
    for Doing { what, x, least } in DOINGS {
        for (due, is_alone) in [(1, false), (1, true), (10, false), (10, true)] {
            let make = || Lanes::with_alarm(due, is_alone);
            let run = |parts: &[Part<Lanes>], left, may_wait| {
                let lanes = make();
                let (locks, _) = lanes.locks();
                play(&crew, lanes, parts, Box::new(Stop { left, may_wait, locks, steps: 0 }))
            };
            let points = run(&[x], usize::MAX, MayWait::NEVER);
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
