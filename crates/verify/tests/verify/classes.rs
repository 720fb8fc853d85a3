//! Each class on a trace of a few lines, and the same line without what explains it: a mismatch.

use crate::trace::{JIFFIES, Start, TICK_STOP, Trace, start, verify};
use quietcore_verify::{Check, Verification};
use quietcore_wheel::{Precision, Shape, Tick};

const START_OF_1: &str = "timer_start: timer=0000000000000001";

/// A start of timer 2 whose place differs between two neighbouring clocks: one level apart.
fn telling(jiffies: u64, clock: u64) -> Start {
    let expires = jiffies.max(clock) + 62;
    let start = start(2, expires, jiffies);
    assert_ne!(start.place(), start.at_clock(clock).place(), "the place tells the clock");
    start.at_clock(clock)
}

fn named(verification: &Verification, class: &str) -> u64 {
    let mut named = verification.classes.named().into_iter();
    named.find_map(|(name, count)| (name == class).then_some(count)).expect("a class")
}

/// How many starts are of `class`, with the line that holds `clue` and without it. With it, it is the one
/// start that is not exact; without it, there is a mismatch.
fn with_and_without(trace: &Trace, class: &str, clue: &str) -> (u64, u64) {
    let verification = trace.verify();
    assert!(verification.ok, "{class}: {:?}", verification.first_mismatch);
    assert_eq!(verification.classes.total(), 1, "{class}");
    let with = named(&verification, class);
    let clue_at = trace.text.rfind(clue).expect("the clue is there");
    let begin = trace.text[..clue_at].rfind('\n').expect("a line before") + 1;
    let end = clue_at + trace.text[clue_at..].find('\n').expect("a line") + 1;
    let without = format!("{}{}", &trace.text[..begin], &trace.text[end..]);
    let verification = verify(&without);
    assert!(verification.mismatches_of_all_kinds() > 0, "{class} without {clue}:\n{without}");
    (with, named(&verification, class))
}

/// Goal: clock = jiffies is exact, on every level and for the past.
#[test]
fn exact_is_clock_equal_to_jiffies() {
    let mut trace = Trace::new();
    for (timer, delay) in
        [0, 1, 62, 63, 503, 504, 4031, 4032, 1 << 20, 1 << 29, 1 << 40].into_iter().enumerate()
    {
        trace.start(start(timer as u64, JIFFIES + delay, JIFFIES));
    }
    trace.start(start(20, JIFFIES - 50, JIFFIES));
    let verification = trace.verify();
    assert!(verification.ok, "{:?}", verification.first_mismatch);
    assert_eq!((verification.exact, verification.classes.total()), (13, 0));
}

#[test]
fn ahead_run_after_the_bucket_was_run() {
    let mut trace = Trace::new();
    trace.start(start(1, JIFFIES + 4, JIFFIES)).expire(1, JIFFIES + 5, JIFFIES + 5);
    trace.start(telling(JIFFIES + 5, JIFFIES + 6));
    assert_eq!(with_and_without(&trace, "ahead_run", START_OF_1), (1, 0));
}

#[test]
fn ahead_empty_after_the_bucket_was_emptied() {
    let mut trace = Trace::new();
    trace.start(start(1, JIFFIES + 4, JIFFIES)).cancel(1);
    trace.start(telling(JIFFIES + 5, JIFFIES + 6));
    assert_eq!(with_and_without(&trace, "ahead_empty", "timer_cancel"), (1, 0));
}

#[test]
fn behind_due_while_a_bucket_was_not_run() {
    let mut trace = Trace::new();
    trace.start(start(1, JIFFIES + 4, JIFFIES));
    trace.start(telling(JIFFIES + 9, JIFFIES + 5));
    assert_eq!(with_and_without(&trace, "behind_due", START_OF_1), (1, 0));
}

#[test]
fn behind_deleted_until_somebody_looks() {
    let mut trace = Trace::new();
    trace.start(start(1, JIFFIES + 4, JIFFIES)).cancel(1);
    let late = telling(JIFFIES + 9, JIFFIES + 5);
    let mut looked_at = trace.wait().clone();
    let shows = Start { flags: "P", ..start(3, JIFFIES + 50, JIFFIES + 9) };
    trace.start(late);
    assert_eq!(with_and_without(&trace, "behind_deleted", START_OF_1), (1, 0));
    for event in ["timer_base_idle: is_idle=1 cpu=0", "tmigr_cpu_idle: cpu=0 parent=01 wakeup=1"] {
        let mut looked_at = looked_at.clone();
        let line = looked_at.line(0, "d..1.", event).start(shows).next_line();
        let first = looked_at.start(late).verify().first_mismatch.expect("the kernel has looked");
        assert_eq!((first.line, first.kind), (line, Check::TimerStart), "{event}");
    }
    looked_at.line(0, "d..1.", "timer_base_idle: is_idle=0 cpu=0");
    looked_at.line(0, "d..1.", "timer_base_idle: is_idle=1 cpu=1").start(shows);
    let found = looked_at.start(late).verify();
    assert_eq!((found.ok, named(&found, "behind_deleted")), (true, 1), "nobody has looked at CPU 0");
}

/// Goal: a base can have been forwarded at any jiffies since the line before of its CPU, and at no others.
/// Method: CPU 0 shows jiffies + 5 and stands still; then jiffies + 8 are known to it, or one number differs.
#[test]
fn tick_between_since_the_line_before_of_the_cpu() {
    let mut trace = Trace::new();
    trace.start(start(1, JIFFIES + 4, JIFFIES)).expire(1, JIFFIES + 5, JIFFIES + 5).wait();
    let stalled = telling(JIFFIES + 8, JIFFIES + 6);
    let elsewhere = Start { cpu: 1, ..start(3, JIFFIES + 50, JIFFIES + 8) };
    let after = |known: &[&str]| {
        let mut trace = trace.clone();
        for line in known {
            match *line {
                "of CPU 0" => trace.start(Start { cpu: 0, flags: "P", ..elsewhere }),
                "of CPU 1" => trace.start(elsewhere),
                event => trace.line(0, "d..1.", event),
            };
        }
        let line = trace.next_line();
        (trace.start(stalled).clone(), line)
    };
    for known in [&[] as &[&str], &["of CPU 1"], &[TICK_STOP, "of CPU 1"]] {
        let (trace, line) = after(known);
        let found = trace.verify();
        assert_eq!((found.ok, named(&found, "tick_between")), (true, 1), "{known:?}: {found:?}");
        let (bucket, expiry) = stalled.place();
        for (key, number) in [("idx", u64::from(bucket)), ("bucket_expiry", expiry)] {
            let (right, wrong) = (format!(" {key}={number} "), format!(" {key}={} ", number + 1));
            let first = verify(&trace.text.replace(&right, &wrong)).first_mismatch;
            assert_eq!(first.map(|first| first.line), Some(line), "{known:?}: {wrong}");
        }
    }
    for known in [&["of CPU 0"] as &[&str], &["of CPU 1", TICK_STOP]] {
        let (trace, line) = after(known);
        let first = trace.verify().first_mismatch.expect("CPU 0 wrote a line at these jiffies");
        assert_eq!((first.line, first.kind), (line, Check::TimerStart), "{known:?}");
    }
}

/// Goal: a timer that is moved was given its place before it was taken out of the same base, and after it was
/// taken out of another one. Method: CPU 1 shows the new jiffies before the `timer_cancel`.
#[test]
fn tick_between_before_a_pending_timer_is_cancelled() {
    let moved = telling(JIFFIES + 8, JIFFIES + 7);
    for (cancelled, flags, is_ok) in [(2, "", true), (2, "P", false), (4, "", false)] {
        let mut trace = Trace::new();
        trace.start(Start { flags, ..start(2, JIFFIES + 300, JIFFIES + 7) });
        trace.start(start(4, JIFFIES + 300, JIFFIES + 7));
        trace.start(Start { cpu: 1, ..start(3, JIFFIES + 50, JIFFIES + 8) }).cancel(cancelled);
        if cancelled != 2 {
            trace.line(1, "d..1.", "timer_cancel: timer=0000000000000002");
        }
        let line = trace.next_line();
        let found = trace.start(moved).verify();
        let first = found.first_mismatch.as_ref().map(|first| first.line);
        assert_eq!(first, (!is_ok).then_some(line), "timer {cancelled} in {flags:?}");
        assert_eq!(named(&found, "tick_between"), u64::from(is_ok));
    }
}

/// Goal: a timer that is due when its event is written lies where it was put before. Method: `timeout=-5`, as
/// a guest's rcu_preempt wrote it; then the bucket that is one later.
#[test]
fn tick_between_can_last_longer_than_the_timer() {
    for (clock, is_ok) in [(JIFFIES + 5, true), (JIFFIES + 8, false)] {
        let mut trace = Trace::new();
        trace.start(start(1, JIFFIES + 4, JIFFIES)).expire(1, JIFFIES + 5, JIFFIES + 5).wait();
        let found = trace.start(start(1, JIFFIES + 6, JIFFIES + 11).at_clock(clock)).verify();
        assert_eq!((found.ok, named(&found, "tick_between")), (is_ok, u64::from(is_ok)), "{clock}");
    }
}

/// Goal: after a loss nothing is known, so any possible clock will do, and an impossible place will not.
#[test]
fn after_loss_any_possible_clock_will_do() {
    let late = telling(JIFFIES + 9, JIFFIES + 5);
    for gap in ["CPU:3 [LOST 5 EVENTS]\n", "task-7 [003] d..1. 1.000009: timer_cancel: timer=!\n"] {
        let mut trace = Trace::new();
        trace.text.push_str(gap);
        let line = trace.next_line();
        let verification = trace.clone().start(late).verify();
        assert!(verification.ok, "{:?}", verification.first_mismatch);
        assert_eq!((named(&verification, "after_loss"), verification.incomplete.len()), (1, 1), "{gap}");
        trace.start(late);
        let (bucket, _) = late.place();
        trace.text = trace.text.replace(&format!("idx={bucket} "), &format!("idx={} ", bucket + 1));
        let first = trace.verify().first_mismatch.expect("bucket and expiry do not agree");
        assert_eq!(first.line, line);
    }
    let mut trace = Trace::new();
    let first = trace.start(late).verify().first_mismatch;
    assert!(first.is_some(), "without a loss it is a mismatch");
}

/// Goal: a timer that was pending before the loss and expires after it contradicts nothing.
#[test]
fn what_was_pending_before_a_loss_is_forgotten() {
    let mut trace = Trace::new();
    trace.start(start(1, JIFFIES + 4, JIFFIES)).start(start(2, JIFFIES + 9, JIFFIES));
    trace.text.push_str("CPU:0 [LOST EVENTS]\n");
    trace.expire(2, JIFFIES + 10, JIFFIES + 10).cancel(1);
    let verification = trace.verify();
    assert!(verification.ok, "{:?}", verification.first_mismatch);
    assert_eq!((verification.expiries.classes.start_unseen, verification.notes.forgotten), (1, 2));
}

/// Goal: kernels up to 6.8 have one base for pinned and other timers, later ones have two.
/// Method: a pinned timer that is due holds the clock back, or does not.
#[test]
fn old_kernels_have_one_base_for_pinned_timers() {
    for (release, class) in [("6.1.176", "behind_due"), ("6.8.0", "behind_due"), ("6.9.1", "")] {
        let mut trace = Trace::new();
        trace.text = trace.text.replace("Linux 6.12.1", &format!("Linux {release}"));
        trace.start(Start { flags: "P", ..start(1, JIFFIES + 4, JIFFIES) });
        trace.start(telling(JIFFIES + 9, JIFFIES + 5));
        let verification = trace.verify();
        match class {
            "" => assert_eq!(verification.mismatches, 1, "{release}"),
            class => assert_eq!((named(&verification, class), verification.ok), (1, true), "{release}"),
        }
    }
}

/// Goal: with 100 ticks a second and fewer the wheel has 8 levels. Method: a timer that only 9 can hold,
/// placed in the last bucket of 8.
#[test]
fn slow_kernels_have_eight_levels() {
    let far = start(1, JIFFIES + (1 << 28), JIFFIES);
    let place = Shape::<8, 64>::place(Tick(far.clock), Tick(far.expires), Precision::Coarse);
    for (hz, is_ok) in [("HZ=100", true), ("HZ=250", false)] {
        let mut trace = Trace::new();
        trace.text = trace.text.replace("HZ=250", hz);
        trace.start(far);
        let (bucket, expiry) = far.place();
        trace.text = trace.text.replace(&format!("idx={bucket} "), &format!("idx={} ", place.bucket));
        trace.text = trace.text.replace(&format!("={expiry} "), &format!("={} ", place.expiry.0));
        assert_eq!(trace.verify().ok, is_ok, "{hz}: {place:?}");
    }
}

/// Goal: where a base is not known because cancels or expiries were not recorded, that is said; one of them
/// is not enough. Method: a timer that expires; its recording whole, without either, and without both.
#[test]
fn without_cancels_or_expiries_it_is_incomplete() {
    let mut trace = Trace::new();
    trace.start(start(1, JIFFIES + 4, JIFFIES)).expire(1, JIFFIES + 5, JIFFIES + 5);
    let reason = "without timer_cancel and timer_expire_entry the state of a base is not known";
    for (events, is_said) in [
        (&[][..], false),
        (&["timer_cancel"], true),
        (&["timer_expire_entry"], true),
        (&["timer_cancel", "timer_expire_entry"], true),
    ] {
        let is_kept = |line: &&str| !events.iter().any(|event| line.contains(event));
        let text: String = trace.text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect();
        let found = verify(&text).incomplete;
        assert_eq!(found, if is_said { vec![reason] } else { vec![] }, "without {events:?}");
    }
}

/// Goal: a start that does not say which bucket is noted as that, and from then on its base is not known.
/// Method: one such, then one that only another clock than jiffies explains.
#[test]
fn a_start_without_a_bucket_is_noted() {
    let mut trace = Trace::new();
    let mut notes = trace.verify().notes;
    let start = start(1, JIFFIES + 4, JIFFIES);
    let (bucket, expiry) = start.place();
    trace.start(start);
    for field in [format!(" idx={bucket}"), format!(" bucket_expiry={expiry}")] {
        trace.text = trace.text.replace(&field, "");
    }
    let found = trace.start(telling(JIFFIES + 9, JIFFIES + 5)).verify();
    assert_eq!((found.ok, found.timer_starts, named(&found, "after_loss")), (true, 2, 1));
    notes.without_bucket = 1;
    assert_eq!(found.notes, notes);
    assert_eq!(found.incomplete, ["1 timer_start line does not say which bucket"]);
}
