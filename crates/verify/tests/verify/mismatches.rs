//! Each kind of mismatch on a trace of a few lines: its line, its kind, and what is said of it.

use crate::trace::{JIFFIES, Start, TICK_STOP, Trace, start};
use quietcore_verify::{Check, Mismatch};

fn first(trace: &Trace) -> Mismatch {
    trace.verify().first_mismatch.unwrap_or_else(|| panic!("no mismatch in\n{}", trace.text))
}

/// Three timers of one bucket, due at JIFFIES + 5.
fn three() -> Trace {
    let mut trace = Trace::new();
    for timer in 1..=3 {
        trace.start(start(timer, JIFFIES + 4, JIFFIES));
    }
    trace
}

/// Goal: a start in another bucket, or with another expiry, is named with both places.
#[test]
fn a_start_in_another_place() {
    let right = start(1, JIFFIES + 100, JIFFIES);
    let (bucket, expiry) = right.place();
    for (from, to) in [
        (format!("idx={bucket} "), format!("idx={} ", bucket + 1)),
        (format!("idx={bucket} "), format!("idx={} ", bucket + 64)),
        (format!("idx={bucket} "), "idx=18446744073709551615 ".to_owned()),
        (format!("bucket_expiry={expiry} "), format!("bucket_expiry={} ", expiry + 8)),
        (format!("bucket_expiry={expiry} "), "bucket_expiry=0 ".to_owned()),
    ] {
        let mut trace = Trace::new();
        let line = trace.next_line();
        trace.start(right);
        assert!(trace.verify().ok);
        assert!(trace.text.contains(&from), "{from}");
        trace.text = trace.text.replace(&from, &to);
        let found = first(&trace);
        assert_eq!((found.line, found.kind), (line, Check::TimerStart), "{to}");
        assert!(found.expected.contains(&format!("bucket {bucket} due {expiry}")), "{found:?}");
        assert!(found.recorded.contains(to.trim().rsplit('=').next().expect("a number")), "{found:?}");
    }
}

/// Goal: jiffies do not explain a place while the replay holds the base back.
#[test]
fn a_start_at_jiffies_in_a_base_that_is_held_back() {
    let mut trace = Trace::new();
    trace.start(start(1, JIFFIES + 4, JIFFIES));
    let line = trace.next_line();
    trace.start(start(2, JIFFIES + 70, JIFFIES + 8));
    let found = first(&trace);
    assert_eq!((found.line, found.kind), (line, Check::TimerStart));
    assert!(found.why.contains("which the base cannot have"), "{found:?}");
    assert!(found.expected.ends_with("(clock 4294892549, behind_due)"), "{found:?}");
}

/// Goal: one wrong number is one mismatch. Method: a wrong place, then the timer's life goes on.
#[test]
fn one_wrong_number_is_one_mismatch() {
    let mut trace = Trace::new();
    let wrong = start(1, JIFFIES + 4, JIFFIES);
    trace.start(wrong);
    trace.text = trace.text.replace(&format!("idx={} ", wrong.place().0), "idx=63 ");
    trace.expire(1, JIFFIES + 5, JIFFIES + 5).start(start(1, JIFFIES + 100, JIFFIES + 6)).cancel(1);
    let verification = trace.verify();
    assert_eq!((verification.mismatches, verification.mismatches_of_all_kinds()), (1, 1));
}

/// Goal: at boot, while CPU 0 is alone, timers may vanish, once. Method: with and without a line of CPU 1,
/// and a second time.
#[test]
fn events_may_be_off_for_a_moment_at_boot() {
    let mut alone = Trace::new();
    let of_cpu_1 = alone.text.lines().find(|line| line.contains("[001]")).expect("a line").to_owned();
    let with_cpu_1 = alone.clone();
    alone.text = alone.text.replace(&format!("{of_cpu_1}\n"), "");
    for (mut trace, is_ok) in [(alone, true), (with_cpu_1, false)] {
        trace.start(start(1, JIFFIES + 4, JIFFIES)).start(start(2, JIFFIES + 70, JIFFIES + 8));
        let verification = trace.verify();
        assert_eq!((verification.ok, verification.notes.boot_gap), (is_ok, u64::from(is_ok)));
        trace.start(start(3, JIFFIES + 170, JIFFIES + 108));
        assert!(!trace.verify().ok, "there is one gap");
    }
}

/// Goal: at boot every timer is known, so a cancel of one that is not pending is wrong; on a running machine
/// it may be of a timer from before.
#[test]
fn a_cancel_of_a_timer_that_is_not_pending() {
    let mut trace = Trace::new();
    let line = trace.next_line();
    trace.cancel(7).line(0, "d..1.", TICK_STOP);
    let found = first(&trace);
    assert_eq!((found.line, found.kind), (line, Check::TimerCancel));
    let (boot, later) = ((JIFFIES - 2).to_string(), (JIFFIES + 99_998).to_string());
    let text = trace
        .text
        .replace(&boot, &later)
        .replace(&(JIFFIES - 1).to_string(), &(JIFFIES + 99_999).to_string());
    let text = text.replace(&format!("idx={} ", start(1, JIFFIES - 2, JIFFIES - 2).place().0), &{
        let moved = start(1, JIFFIES + 99_998, JIFFIES + 99_998);
        format!("idx={} ", moved.place().0)
    });
    let running = crate::trace::verify(&text);
    assert!(running.ok, "{:?}", running.first_mismatch);
    assert_eq!((running.begins_at_boot, running.notes.cancel_unseen), (Some(false), 1));
}

/// Goal: a pending timer that is started again has its timer_cancel, before or after at the same time.
#[test]
fn a_second_start_needs_a_cancel() {
    let again = start(1, JIFFIES + 200, JIFFIES + 1);
    let cancel = "timer_cancel: timer=0000000000000001";
    let mut trace = Trace::new();
    trace.start(start(1, JIFFIES + 100, JIFFIES));
    let line = trace.next_line();
    let mut usual = trace.clone();
    assert!(usual.cancel(1).start(again).cancel(1).verify().ok);
    let mut after = trace.clone();
    after.start(again).line_at_same_time(1, "d..1.", cancel).cancel(1);
    assert_eq!((after.verify().ok, after.verify().notes.swapped), (true, 1));
    let mut before = trace.clone();
    before.cancel(1).line(1, "d..1.", cancel).start_at_same_time(again);
    before.line(0, "d..1.", TICK_STOP);
    assert_eq!((before.verify().ok, before.verify().notes.swapped), (true, 1));
    trace.start(again).line(1, "d..1.", cancel);
    let found = first(&trace);
    assert_eq!((found.line, found.kind), (line, Check::TimerCancel));
}

/// Goal: an expiry follows the timer_cancel of its timer on its CPU; interrupts between them do not count.
#[test]
fn an_expiry_needs_its_cancel_right_before() {
    let mut trace = Trace::new();
    trace.start(start(1, JIFFIES + 4, JIFFIES));
    let cancel = "timer_cancel: timer=0000000000000001";
    let mut interrupted = trace.clone();
    interrupted.line(0, "d.s2.", cancel).line(0, "d.H2.", TICK_STOP);
    interrupted.line(1, "d..2.", TICK_STOP);
    interrupted.expire_entry(1, JIFFIES + 5, JIFFIES + 5);
    assert!(interrupted.verify().ok, "{:?}", interrupted.verify().first_mismatch);
    let mut none = trace.clone();
    let line = none.next_line();
    let found = first(none.expire_entry(1, JIFFIES + 5, JIFFIES + 5));
    assert_eq!((found.line, found.kind), (line, Check::TimerExpireEntry));
    trace.line(0, "d.s2.", cancel).line(0, "..s1.", "softirq_raise: vec=9 [action=RCU]");
    let line = trace.next_line();
    let found = first(trace.expire_entry(1, JIFFIES + 5, JIFFIES + 5));
    assert_eq!((found.line, found.kind), (line, Check::TimerExpireEntry));
}

/// Goal: an expiry is of the timer's own bucket, which is due.
#[test]
fn an_expiry_of_another_bucket() {
    for (now, baseclk, expected) in [
        (5, 4, "baseclk 4294892549"),
        (6, 6, "baseclk 4294892549"),
        (4, 5, "baseclk 4294892548 at the latest"),
    ] {
        let mut trace = Trace::new();
        trace.start(start(1, JIFFIES + 4, JIFFIES));
        let line = trace.next_line() + 1;
        let found = first(trace.expire(1, JIFFIES + now, JIFFIES + baseclk));
        assert_eq!((found.line, found.kind), (line, Check::TimerExpireEntry), "{now} {baseclk}");
        assert_eq!(found.expected, expected, "{now} {baseclk}");
    }
}

/// Goal: the first bucket is run first.
#[test]
fn a_run_begins_with_the_first_bucket() {
    let mut trace = Trace::new();
    trace.start(start(1, JIFFIES + 4, JIFFIES)).start(start(2, JIFFIES + 9, JIFFIES));
    let line = trace.next_line() + 1;
    let found = first(trace.expire(2, JIFFIES + 10, JIFFIES + 10));
    assert_eq!((found.line, found.kind), (line, Check::TimerExpireEntry));
    assert_eq!(found.why, "it is not the first bucket of its base");
}

/// Goal: in a bucket the last armed expires first. Method: all six orders of three timers.
#[test]
fn the_last_armed_expires_first() {
    for order in [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]] {
        let mut trace = three();
        let line = trace.next_line() + 1;
        for timer in order {
            trace.expire(timer, JIFFIES + 5, JIFFIES + 5);
        }
        let verification = trace.verify();
        assert_eq!(verification.ok, order == [3, 2, 1], "{order:?}");
        let runs = verification.runs.expect("replayed");
        if verification.ok {
            assert_eq!((runs.total, runs.of_several, runs.mismatches), (2, 1, 0), "{order:?}");
        }
        let wrong = verification.first_mismatch.map(|found| found.line);
        let expected = order.iter().zip([3, 2, 1]).position(|(timer, right)| *timer != right);
        assert_eq!(wrong, expected.map(|place| line + 2 * place as u64), "{order:?}");
    }
}

/// Goal: the coarsest level expires first, whichever was armed last.
#[test]
fn the_coarsest_level_expires_first() {
    for (order, is_right) in [([1, 2], true), ([2, 1], false)] {
        let mut trace = Trace::new();
        let coarse = start(1, JIFFIES + 63, JIFFIES);
        assert_eq!(coarse.place().1, JIFFIES + 64, "level 1");
        trace.start(coarse).start(start(2, JIFFIES + 63, JIFFIES + 10));
        for timer in order {
            trace.expire(timer, JIFFIES + 64, JIFFIES + 64);
        }
        assert_eq!(trace.verify().ok, is_right, "{order:?}");
    }
}

/// Goal: a run takes all timers of its tick that are not cancelled, and the softirq every due bucket.
#[test]
fn a_run_that_ends_too_early() {
    let mut trace = three();
    trace.expire(3, JIFFIES + 5, JIFFIES + 5);
    let mut complete = trace.clone();
    complete.line(0, "d.s1.", "timer_cancel: timer=0000000000000001");
    complete.expire(2, JIFFIES + 5, JIFFIES + 5).line(0, "d..1.", TICK_STOP);
    assert!(complete.verify().ok, "{:?}", complete.verify().first_mismatch);
    let line = trace.next_line();
    let found = first(trace.line(0, "d.h1.", TICK_STOP));
    assert_eq!((found.line, found.kind, found.expected.as_str()), (line, Check::Run, "2 more expiries"));

    let mut due = Trace::new();
    due.start(start(1, JIFFIES + 4, JIFFIES)).start(start(2, JIFFIES + 9, JIFFIES));
    due.expire(1, JIFFIES + 10, JIFFIES + 5);
    let line = due.next_line();
    let found = first(due.clone().line(0, "d..1.", TICK_STOP));
    assert_eq!((found.line, found.kind), (line, Check::Run));
    due.expire(2, JIFFIES + 10, JIFFIES + 10).line(0, "d..1.", TICK_STOP);
    assert!(due.verify().ok);
}

/// Goal: two bases of a CPU do not disturb each other.
#[test]
fn bases_do_not_disturb_each_other() {
    let mut trace = Trace::new();
    trace.start(start(1, JIFFIES + 4, JIFFIES));
    trace.start(Start { flags: "D|I", ..start(2, JIFFIES + 4, JIFFIES) });
    trace.start(Start { flags: "P", ..start(3, JIFFIES + 4, JIFFIES) });
    for timer in [3, 1, 2] {
        trace.expire(timer, JIFFIES + 5, JIFFIES + 5);
    }
    let verification = trace.verify();
    assert!(verification.ok, "{:?}", verification.first_mismatch);
    let runs = verification.runs.expect("replayed");
    assert_eq!((runs.total, runs.of_several, runs.mismatches), (4, 0, 0));
}

/// Asserts what the first mismatch is, in words: event, expected, recorded, why.
#[track_caller]
fn assert_told(trace: &Trace, line: u64, words: [&str; 4]) {
    let found = first(trace);
    let told = [&found.event, &found.expected, &found.recorded, &found.why].map(String::as_str);
    assert_eq!((found.line, told), (line, words));
}

/// Goal: what is wrong with a start, a cancel and an expiry is told in words. Method: one of each.
#[test]
fn lines_are_told_in_words() {
    let place = start(0x1a, JIFFIES + 4, JIFFIES);
    let mut trace = Trace::new();
    trace.start(place);
    let untaken = trace.clone().expire_entry(0x1a, JIFFIES + 6, JIFFIES + 5).clone();
    let early = trace.clone().expire(0x1a, JIFFIES + 5, JIFFIES + 6).clone();
    let event = "timer 1a (f) into the global base of CPU 0: expires 4294892548, jiffies 4294892544";
    let right = "bucket 5 due 4294892549 (clock 4294892544, jiffies)";
    let why = "no clock that the base can have gives this bucket";
    trace.text = trace.text.replace(" idx=5 ", " idx=6 ");
    assert_told(&trace, 8, [event, right, "bucket 6 due 4294892549", why]);

    let why = "the bucket is not due yet";
    let event = "timer 1a (f) on CPU 0: now 4294892549";
    assert_told(&early, 10, [event, "baseclk 4294892549 at the latest", "baseclk 4294892550", why]);
    let right = "a timer_cancel of the same timer on the line before of this CPU";
    let why = "a timer is taken out of the wheel before it expires";
    assert_told(&untaken, 9, ["timer 1a (f) on CPU 0: now 4294892550", right, "none", why]);
    let mut cancel = Trace::new();
    cancel.cancel(0x7b).line(0, "d..1.", TICK_STOP);
    assert_told(&cancel, 8, ["timer 7b", "a pending timer", "timer_cancel", "the timer is not pending"]);
}

/// Goal: what is wrong with a run is told in words. Method: the second timer first, the third one second;
/// the end after one; one of the next bucket, on another CPU.
#[test]
fn runs_are_told_in_words() {
    let why = "order: the coarsest level first, in a bucket the last armed first";
    let event = "timer 2 (f) on CPU 0: now 4294892549";
    let mut trace = three();
    trace.expire(2, JIFFIES + 5, JIFFIES + 5);
    assert_told(&trace, 12, [event, "timer 3 first", "timer 2 first", why]);
    let event = "timer 1 (f) on CPU 0: now 4294892550";
    let mut trace = three();
    trace.expire(3, JIFFIES + 6, JIFFIES + 5).expire(1, JIFFIES + 6, JIFFIES + 5);
    assert_told(&trace, 14, [event, "timer 2 first", "timer 1 first", why]);

    let event = "run of bucket expiry 4294892549 of the global base of CPU 0, begun at line 12";
    let why = "a run takes every timer of its tick";
    let mut trace = three();
    trace.expire(3, JIFFIES + 5, JIFFIES + 5).line(0, "d..1.", TICK_STOP);
    assert_told(&trace, 13, [event, "2 more expiries", "the end of the run", why]);

    let event = "timer 4 (g) on CPU 1: now 4294892554";
    let (right, why) = ("2 more expiries of the bucket before", "the base's last run is not over");
    let mut trace = three();
    trace.start(start(4, JIFFIES + 9, JIFFIES)).expire(3, JIFFIES + 5, JIFFIES + 5);
    trace.line(1, "d.s2.", "timer_cancel: timer=0000000000000004");
    trace.line(1, "..s1.", "timer_expire_entry: timer=04 function=g now=4294892554 baseclk=4294892554");
    assert_told(&trace, 15, [event, right, "bucket expiry 4294892554", why]);
}
