//! Rules of a replay, one small recording each: which CPU is awake, which pulls, where a timer goes, and what
//! the figures then are.

use crate::trace::{ask, cpus, excluding, keeping_awake, start, trace, under};
use quietcore_core::place::Policy;
use quietcore_verify::whatif::{WhatifAnswer, WhatifFigures, WhatifQuestion};
use std::collections::BTreeMap;
use std::slice::from_ref;

fn idle(cpu: u32, ms: &str) -> String {
    format!("{cpu:03} 0 {ms} timer_base_idle: is_idle=1 cpu={cpu}")
}

fn awake(cpu: u32, ms: &str) -> String {
    format!("{cpu:03} 0 {ms} timer_base_idle: is_idle=0 cpu={cpu}")
}

fn expiry(timer: u32) -> String {
    format!("timer_expire_entry: timer={timer:08x} function=f{timer} now=1010 baseclk=1010")
}

/// As [`trace`], with a list of nohz_full CPUs.
fn with_nohz_full(list: &str, trace: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(trace.to_vec()).expect("UTF-8");
    text.replace("nohz_full: -", &format!("nohz_full: {list}")).into_bytes()
}

fn wakeups<const N: usize>(counts: [(u16, u64); N]) -> BTreeMap<u16, u64> {
    counts.into()
}

fn as_recorded(text: &[u8]) -> WhatifAnswer {
    ask(text, &WhatifQuestion::default())
}

/// Placed and pulled foreign timers.
fn foreign(figures: &WhatifFigures) -> (Option<u64>, Option<u64>) {
    (figures.foreign.placed, figures.foreign.pulled)
}

/// Goal: a timer that is armed again before it runs is superseded if it had run in the recording. Method:
/// three are armed again, two of which the recording ran, before the replay does.
#[test]
fn armed_again_before_it_ran_is_superseded() {
    let lines = [
        format!("000 7 0.0 {}", start(1, 0, 1009, 1000, "")),
        format!("000 7 0.1 {}", start(2, 0, 1009, 1000, "")),
        format!("000 7 0.2 {}", start(4, 0, 1009, 1000, "")),
        format!("000 7 4.0 {}", expiry(1)),
        format!("000 7 4.1 {}", expiry(4)),
        format!("000 7 8.0 {}", start(1, 0, 1020, 1002, "")),
        format!("000 7 8.0 {}", start(4, 0, 1020, 1002, "")),
        format!("000 7 8.1 {}", start(2, 0, 1020, 1002, "")),
        format!("000 7 200.0 {}", start(3, 0, 9000, 1050, "")),
    ];
    let answer = as_recorded(&trace("6.12.1", 1, "", &lines));
    let after = answer.after;
    assert_eq!((after.superseded, after.expired, after.pending), (2, 3, 1));
    let agreement = answer.agreement.expect("an expiry was recorded");
    assert_eq!((agreement.expired_in_both, agreement.recorded_only, agreement.replayed_only), (0, 2, 3));
}

/// Goal: what wakes a CPU twice within a tick is one wake-up. Method: a pinned timer, and a task in its tick.
#[test]
fn a_cpu_wakes_once_in_a_tick() {
    let lines = [
        format!("000 7 0.0 {}", start(16, 0, 1009, 1000, "P")),
        idle(0, "0.1"),
        awake(0, "40.1"),
        format!("000 7 100.0 {}", start(17, 0, 9000, 1025, "")),
    ];
    let text = trace("6.12.1", 1, "", &lines);
    for policy in Policy::ALL {
        assert_eq!(ask(&text, &under(policy)).after.wakeups.by_cpu, wakeups([(0, 1)]), "{policy:?}");
    }
}

/// Goal: a deferrable timer of an awake CPU runs when it is due. Method: one, and nothing else to do.
#[test]
fn a_deferrable_timer_of_an_awake_cpu_runs() {
    let lines = [
        format!("000 7 0.0 {}", start(1, 0, 1009, 1000, "D")),
        format!("000 7 100.0 {}", start(2, 0, 9000, 1025, "")),
    ];
    let after = as_recorded(&trace("6.12.1", 1, "", &lines)).after;
    assert_eq!((after.expired, after.pending), (1, 1));
    assert_eq!(after.lateness_ns.max, None, "it waits for its CPU, so it is in no lateness");
}

/// Goal: a sleeping CPU's alarm is not taken back. Method: another CPU cancels the timer that it is for.
#[test]
fn a_cancelled_timer_still_wakes_its_sleeping_cpu() {
    let lines = [
        format!("000 7 0.0 {}", start(16, 0, 1009, 1000, "P")),
        idle(0, "0.1"),
        "001 8 4.0 timer_cancel: timer=00000010".to_owned(),
        format!("001 8 100.0 {}", start(17, 1, 9000, 1025, "")),
    ];
    let after = as_recorded(&trace("6.12.1", 2, "", &lines)).after;
    assert_eq!((after.expired, after.wakeups.by_cpu), (0, wakeups([(0, 1)])));
}

/// Goal: a timer that its kernel left on another CPU, because its callback ran there, stays; one that its
/// kernel pushed there is placed anew. Method: the same lines under a kernel of each kind.
#[test]
fn what_was_pushed_is_placed_anew() {
    let lines = [
        format!("001 8 0.0 {}", start(1, 1, 9000, 1000, "")),
        format!("000 7 0.1 {}", start(16, 1, 1009, 1000, "")),
        format!("000 7 100.0 {}", start(17, 0, 9000, 1025, "")),
    ];
    for (kernel, policy, placed) in [
        ("6.12.1", Policy::Pull, 1),
        ("6.12.1", Policy::Stay, 1),
        ("6.1.176", Policy::Pull, 0),
        ("6.1.176", Policy::Stay, 0),
    ] {
        let after = ask(&trace(kernel, 2, "1", &lines), &under(policy)).after;
        assert_eq!((after.expired, after.foreign.placed), (1, Some(placed)), "{kernel}, {policy:?}");
    }
}

/// Goal: a push is for idle CPUs only. Method: CPU 0 arms one timer when a task runs and one when it is idle,
/// beside the busy CPU 2; the recording ran them where a push puts them.
#[test]
fn a_busy_cpu_keeps_its_timers_under_a_push() {
    let lines = [
        format!("001 8 0.0 {}", start(1, 1, 9000, 1000, "")),
        format!("002 9 0.1 {}", start(2, 2, 9000, 1000, "")),
        format!("000 7 0.2 {}", start(16, 0, 1009, 1000, "")),
        "000 0 0.3 tick_stop: success=1 dependency=NONE".to_owned(),
        format!("000 0 0.4 {}", start(17, 2, 1009, 1000, "")),
        format!("002 9 40.0 {}", expiry(17)),
        format!("000 0 40.1 {}", expiry(16)),
        "001 8 100.0 timer_cancel: timer=00000001".to_owned(),
    ];
    let answer = as_recorded(&trace("6.1.176", 3, "1", &lines));
    let agreement = answer.agreement.expect("expiries were recorded");
    assert_eq!((answer.before.policy, agreement.expired_in_both, agreement.same_cpu), ("push", 2, 2));
}

/// Goal: a push prefers a CPU of the same node, and one that is neither isolated nor nohz_full. Method: the
/// idle CPU 0 arms; busy are CPU 1 (nohz_full), CPU 2 (the other node) and CPU 3, and all sleep before the
/// timer is due, so that it wakes the CPU that has it.
#[test]
fn a_push_looks_at_its_own_node_first() {
    let group =
        |group: u32, node: u32| format!("000 1 0.0 tmigr_group_set: group={group:x} lvl=0 numa={node}");
    let connect = |cpu: u32, node: u32, children: u32| {
        let parent = 0xa0 + node;
        format!(
            "000 1 0.0 tmigr_connect_cpu_parent: cpu={cpu} groupmask={children} parent={parent:x} lvl=0 \
             numa={node} num_children={children}"
        )
    };
    let mut lines = vec![group(0xa0, 0), group(0xa1, 1)];
    lines.extend([connect(0, 0, 1), connect(1, 0, 2), connect(2, 1, 1), connect(3, 0, 3)]);
    lines.extend((1..4).map(|cpu| format!("{cpu:03} 8 0.1 {}", start(cpu, cpu, 9000, 1000, ""))));
    lines.push(idle(0, "0.2"));
    lines.push(format!("000 0 0.3 {}", start(16, 0, 1009, 1000, "")));
    lines.extend((1..4).map(|cpu| idle(cpu, "4.0")));
    lines.push(format!("000 0 100.0 {}", start(17, 0, 9000, 1025, "")));
    let text = with_nohz_full("1", &trace("6.12.1", 4, "1", &lines));
    let pushed = ask(&text, &under(Policy::Push)).after;
    assert_eq!((pushed.expired, pushed.wakeups.by_cpu), (1, wakeups([(3, 1)])));
    let stayed = ask(&text, &under(Policy::Stay)).after;
    assert_eq!((stayed.expired, stayed.wakeups.by_cpu), (1, wakeups([(0, 1)])));
}

/// Goal: foreign timers are counted by the groups that the recording shows. Method: CPUs 0 and 2 are a group,
/// 1 and 3 another; the isolated CPU 3 runs a timer that was put there.
#[test]
fn groups_are_those_of_the_recording() {
    let mut lines = vec![
        "000 1 0.0 tmigr_group_set: group=a0 lvl=0 numa=0".to_owned(),
        "000 1 0.0 tmigr_group_set: group=a1 lvl=0 numa=1".to_owned(),
    ];
    for cpu in [3, 1, 2, 0] {
        let node = cpu % 2;
        lines.push(format!(
            "000 1 0.0 tmigr_connect_cpu_parent: cpu={cpu} groupmask=1 parent=a{node} lvl=0 numa={node} \
             num_children=1"
        ));
    }
    lines.push(format!("000 7 0.1 {}", start(16, 3, 1009, 1000, "P")));
    lines.push(format!("000 7 100.0 {}", start(17, 0, 9000, 1025, "")));
    let answer = as_recorded(&trace("6.12.1", 4, "3", &lines));
    assert_eq!(answer.after.foreign.by_group, Some([(1, 1)].into()));
    assert_eq!(answer.after.foreign.by_cpu, Some([(3, 1)].into()));
    assert!(
        !answer.assumptions.iter().any(|said| said.contains("groups of eight")),
        "{:?}",
        answer.assumptions
    );
}

/// Goal: groups are filled in the order in which CPUs come. Method: of ten, the highest first, so 9 to 2 are
/// a group; of these all but 2 sleep, which runs the timer of 9, and not the awake CPUs 0 and 1.
#[test]
fn groups_are_filled_in_the_order_of_coming() {
    let mut lines = vec!["000 1 0.0 tmigr_group_set: group=a0 lvl=0 numa=0".to_owned()];
    for cpu in (0..10).rev() {
        lines.push(format!(
            "000 1 0.0 tmigr_connect_cpu_parent: cpu={cpu} groupmask=1 parent=a0 lvl=0 numa=0 num_children=1"
        ));
        lines.push(format!("{cpu:03} 1 0.0 tmigr_cpu_online: cpu={cpu} parent=a0 wakeup=5"));
    }
    lines.extend([3, 4, 5, 6, 7, 8].map(|cpu| idle(cpu, "0.1")));
    lines.push(format!("009 7 0.2 {}", start(16, 9, 1009, 1000, "")));
    lines.push(format!("000 7 0.3 {}", start(17, 2, 1009, 1000, "P")));
    lines.push(idle(9, "0.4"));
    lines.push(format!("000 7 100.0 {}", start(18, 0, 9000, 1025, "")));
    let after = as_recorded(&trace("6.12.1", 10, "2", &lines)).after;
    assert_eq!((after.expired, after.remote.by_cpu), (2, Some([(2, 1)].into())));
    assert_eq!((after.foreign.placed, after.foreign.pulled), (Some(1), Some(1)));
    assert_eq!(after.foreign.by_group, Some([(2, 2)].into()));
}

/// Goal: an answer says who was left out and who was kept awake. Method: each question under each policy.
#[test]
fn an_answer_names_its_cpus() {
    let lines = [format!("000 7 0.0 {}", start(16, 0, 1009, 1000, ""))];
    let text = trace("6.12.1", 3, "1", &lines);
    for policy in Policy::ALL {
        let question = WhatifQuestion { policy, kept_awake: cpus("0,2"), ..excluding("1") };
        let after = ask(&text, &question).after;
        assert_eq!((after.policy, after.excluded.as_str()), (policy.name(), "1"));
        assert_eq!(after.kept_awake, "0,2", "{policy:?}");
        let before = ask(&text, &question).before;
        assert_eq!((before.policy, before.excluded.as_str(), before.kept_awake.as_str()), ("pull", "", ""));
    }
    assert_eq!(ask(&text, &under(Policy::Push)).after.excluded, "");
}

/// Goal: a CPU that goes offline pulls nothing any more, and no alarm is lost with it. Method: CPU 1 would
/// pull CPU 0's timer and goes offline, while CPU 2 is awake, and while it sleeps.
#[test]
fn an_offline_cpu_leaves_its_duties() {
    let answer = |who_is_awake: &str| {
        let mut lines = vec![format!("001 8 0.0 {}", start(1, 1, 9000, 1000, "P"))];
        if who_is_awake == "2" {
            lines.push(format!("002 9 0.1 {}", start(2, 2, 9000, 1000, "")));
        }
        lines.extend([
            format!("000 7 0.2 {}", start(16, 0, 1009, 1000, "")),
            idle(0, "0.3"),
            "001 8 8.0 tmigr_cpu_offline: cpu=1 parent=01 wakeup=5".to_owned(),
            format!("001 8 100.0 {}", start(1, 1, 9000, 1025, "P")),
        ]);
        as_recorded(&trace("6.12.1", 3, "1", &lines)).after
    };
    let pulled = answer("2");
    assert_eq!((pulled.expired, pulled.excluded.as_str(), pulled.foreign.total), (1, "1", Some(0)));
    assert_eq!(pulled.remote.by_cpu, Some([(2, 1)].into()));
    assert_eq!(pulled.wakeups.by_cpu, wakeups([]), "CPU 2 was awake");
    let orphaned = answer("");
    assert_eq!((orphaned.expired, orphaned.foreign.total, orphaned.remote.total), (1, Some(0), Some(0)));
    assert_eq!(orphaned.wakeups.by_cpu, wakeups([(0, 2)]), "to take over, and for the timer");
}

/// Goal: a CPU of which the recording first says that it leaves idle sleeps until then, and one of which it
/// says nothing sleeps throughout; a mark of lost events says nothing. Method: CPU 1, CPU 2 with such a mark,
/// CPU 3; none pulls CPU 0's timer.
#[test]
fn a_silent_cpu_sleeps() {
    let lines = [
        format!("000 7 0.0 {}", start(16, 0, 1009, 1000, "")),
        idle(0, "0.1"),
        awake(1, "100.0"),
        format!("001 8 100.1 {}", start(17, 1, 9000, 1025, "")),
    ];
    let text = [trace("6.12.1", 4, "1-3", &lines), b"CPU:2 [LOST 3 EVENTS]\n".to_vec()].concat();
    let answer = as_recorded(&text);
    assert_eq!((answer.after.expired, foreign(&answer.after)), (1, (Some(0), Some(0))));
    assert_eq!(answer.after.wakeups.by_cpu, wakeups([(0, 1), (1, 1)]));
    assert!(
        !answer.assumptions.iter().any(|said| said.contains("count as awake")),
        "{:?}",
        answer.assumptions
    );
}

/// Goal: from 6.19 on, isolated CPUs without nohz_full are left out, unless the recording says that they take
/// part. Method: CPUs 1 and 2 are isolated, 2 is nohz_full; then CPU 1 becomes available.
#[test]
fn who_is_left_out_by_a_newer_kernel() {
    let answer = |more: &[String]| {
        let lines = [&[format!("000 7 0.0 {}", start(16, 0, 1009, 1000, ""))], more].concat();
        as_recorded(&with_nohz_full("2", &trace("6.19.14", 3, "1-2", &lines)))
    };
    assert_eq!(answer(&[]).before.excluded, "1");
    let available = "001 8 0.1 tmigr_cpu_available: cpu=1 parent=01 wakeup=5".to_owned();
    assert_eq!(answer(std::slice::from_ref(&available)).before.excluded, "");
    let unavailable = "001 8 0.2 tmigr_cpu_unavailable: cpu=1 parent=01 wakeup=5".to_owned();
    assert_eq!(answer(&[available, unavailable]).before.excluded, "1");
}

/// Goal: a CPU that is kept awake never sleeps, whatever the recording says. Method: CPU 0, which runs its
/// own timer then; CPU 1 sleeps.
#[test]
fn a_cpu_that_is_kept_awake_is_not_woken() {
    let lines = [
        format!("000 7 0.0 {}", start(16, 0, 1009, 1000, "")),
        format!("001 8 0.1 {}", start(17, 1, 1009, 1000, "P")),
        idle(0, "0.2"),
        idle(1, "0.3"),
        format!("000 7 100.0 {}", start(18, 0, 9000, 1025, "")),
    ];
    let after = ask(&trace("6.12.1", 2, "1", &lines), &keeping_awake("0")).after;
    assert_eq!((after.expired, after.wakeups.total, after.wakeups.by_cpu), (2, 1, wakeups([(1, 1)])));
}

/// CPU 1 sleeps; its timer is due at 40 ms. CPU 2, which is isolated, does something last before that, and is
/// the migrator. CPU 0 counts time, unless it sleeps; CPU 3 sleeps, too, if it is not heard of.
fn due_at_40_ms(cpu_0: &[String], cpu_2: &[String]) -> WhatifFigures {
    let lines = [
        &[format!("002 8 0.0 {}", start(8, 2, 9000, 1000, "P"))],
        &[format!("001 7 0.1 {}", start(1, 1, 1009, 1000, "")), idle(0, "0.2"), idle(1, "0.3")][..],
        cpu_0,
        &[format!("002 8 36.0 {}", start(8, 2, 9000, 1009, "P"))],
        cpu_2,
        &[format!("000 7 100.0 {}", start(3, 0, 9000, 1025, ""))],
    ];
    as_recorded(&trace("6.12.1", 4, "2", &lines.concat())).after
}

/// Goal: a CPU whose tick comes before time is counted, and that goes idle then, pulls nothing. Method: with
/// and without its going idle, with a timer of its own for that tick, and where it counts time itself from
/// the beginning or since CPU 0 sleeps.
#[test]
fn a_cpu_that_leaves_before_time_is_counted_pulls_nothing() {
    let keeper = [awake(0, "0.4")];
    let own = format!("002 8 37.0 {}", start(9, 2, 1009, 1009, "P"));
    let leaves = idle(2, "40.1");
    let third = format!("003 9 19.0 {}", start(9, 3, 9000, 1004, "P"));
    let counts_until_20_ms = [awake(0, "0.4"), third, idle(0, "20.0")];
    for (cpu_0, cpu_2, pulled, by_cpu) in [
        (&keeper[..], from_ref(&leaves), 0, 0),
        (&keeper, &[], 1, 2),
        (&keeper, &[own, leaves.clone()], 1, 2),
        (&[], from_ref(&leaves), 1, 2),
        (&counts_until_20_ms, from_ref(&leaves), 1, 2),
    ] {
        let after = due_at_40_ms(cpu_0, cpu_2);
        assert_eq!(foreign(&after), (Some(0), Some(pulled)), "{cpu_2:?}");
        assert_eq!(after.remote.by_cpu.expect("counts"), [(by_cpu, 1)].into(), "{cpu_2:?}");
    }
    assert_eq!(due_at_40_ms(&keeper, &[leaves]).foreign_range.to_string(), "0..1", "all see the new time");
}

/// Goal: the range has what comes of interrupts of sleeping CPUs; a CPU makes none that is isolated. Method:
/// CPU 0 awake and asleep; the foreign timers that were counted stay what they are.
#[test]
fn a_sleeping_cpu_may_be_interrupted() {
    for (cpu_0, range, expected) in [(&[awake(0, "0.4")][..], "0..1", "0..6"), (&[], "1", "0..6")] {
        let after = due_at_40_ms(cpu_0, &[]);
        assert_eq!(foreign(&after), (Some(0), Some(1)));
        let ranges = [after.foreign_range.to_string(), after.foreign_expected.to_string()];
        assert_eq!(ranges, [range, expected], "{cpu_0:?}");
    }
}

/// Goal: nothing is expected where nothing can be. Method: zero foreign timers, with the isolated CPU in the
/// hierarchy, out of it, and under the other policies.
#[test]
fn what_cannot_be_is_not_expected() {
    let lines = [
        format!("000 7 0.0 {}", start(1, 0, 1009, 1000, "")),
        format!("000 7 100.0 {}", start(3, 0, 9000, 1025, "")),
    ];
    let text = trace("6.12.1", 2, "1", &lines);
    let questions = [WhatifQuestion::default(), excluding("1"), under(Policy::Push), under(Policy::Stay)];
    let expected = questions.map(|question| ask(&text, &question).after.foreign_expected.to_string());
    assert_eq!(expected, ["0..4", "0", "0", "0"]);
}

/// Goal: a cancel before the expiry of another timer is one. Method: the cancelled timer would run later.
#[test]
fn a_cancel_before_another_expiry_counts() {
    let lines = [
        format!("000 7 0.0 {}", start(1, 0, 1009, 1000, "")),
        format!("000 7 0.1 {}", start(2, 0, 1020, 1000, "")),
        "000 7 40.0 timer_cancel: timer=00000002".to_owned(),
        format!("000 7 40.1 {}", expiry(1)),
        format!("000 7 200.0 {}", start(3, 0, 9000, 1050, "")),
    ];
    let after = as_recorded(&trace("6.12.1", 1, "", &lines)).after;
    assert_eq!((after.expired, after.pending), (1, 1));
}

/// Goal: a CPU pulls only once it is online. Method: the isolated CPU 1 is before CPU 0 sleeps, or after CPU
/// 0's timer is due.
#[test]
fn a_cpu_pulls_once_it_is_online() {
    let online = |ms: &str| format!("001 8 {ms} tmigr_cpu_online: cpu=1 parent=01 wakeup=5");
    let after = |early: &[String], late: &[String]| {
        let lines = [
            &[format!("001 8 0.0 {}", start(1, 1, 9000, 1000, "P"))],
            &[format!("000 7 0.1 {}", start(16, 0, 1009, 1000, ""))],
            early,
            &[idle(0, "0.3")],
            late,
            &[format!("001 8 100.0 {}", start(1, 1, 9000, 1025, "P"))],
        ];
        as_recorded(&trace("6.12.1", 2, "1", &lines.concat())).after
    };
    let (early, late) = (after(&[online("0.2")], &[]), after(&[], &[online("60.0")]));
    assert_eq!((foreign(&early), early.wakeups.total), ((Some(0), Some(1)), 0));
    assert_eq!((foreign(&late), late.wakeups.by_cpu), ((Some(0), Some(0)), wakeups([(0, 1)])));
}

/// Goal: a sleeping CPU wakes once for what is due in the same tick, and runs all of it. Method: a pinned and
/// an unpinned timer for the same jiffy.
#[test]
fn a_pinned_timer_of_the_same_tick_wakes_for_both() {
    let lines = [
        format!("001 8 0.0 {}", start(1, 1, 9000, 1000, "P")),
        format!("000 7 0.1 {}", start(16, 0, 1009, 1000, "P")),
        format!("000 7 0.2 {}", start(17, 0, 1009, 1000, "")),
        idle(0, "0.3"),
        format!("001 8 100.0 {}", start(1, 1, 9000, 1025, "P")),
    ];
    let after = as_recorded(&trace("6.12.1", 2, "1", &lines)).after;
    assert_eq!((after.expired, foreign(&after)), (2, (Some(0), Some(0))));
    assert_eq!(after.wakeups.by_cpu, wakeups([(0, 1)]));
}
