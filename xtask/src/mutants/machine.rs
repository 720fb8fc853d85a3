//! Mutants of the machine: for each rule that a review found broken once, the rule left out again. Those of
//! its bases are in `bases.rs`.

use super::killer::Killer::Test;
use super::killer::Mutant;
use super::killer::Suite::{Machine, Models};

const ALARM: &str = "crates/core/src/machine/alarm.rs";
const ARM: &str = "crates/core/src/machine/arm.rs";
const CONTROL: &str = "crates/core/src/machine/control.rs";
const IDLE: &str = "crates/core/src/machine/idle.rs";
const PUBLISH: &str = "crates/core/src/machine/publish.rs";
const CPU_FLAGS: &str = "crates/core/src/machine/cpu_flags.rs";
const POLICY: &str = "crates/core/src/machine/stall/policy.rs";
const TURN: &str = "crates/core/src/machine/turn.rs";
const BASE_EXPIRE: &str = "crates/core/src/base/expire.rs";

/// Marks, isolation, hotplug and turns.
pub(super) const RULES: &[Mutant] = &[
    Mutant {
        name: "mark-for-ever",
        rule: "a marked CPU takes a turn, though nothing is due, and so comes back",
        file: TURN,
        right: "        self.flags(cpu).is_marked()
            || self.bases",
        wrong: "        self.flags(cpu).is_marked() && false
            || self.bases",
        killers: &[Test(Machine, "absence::a_marked_cpu_returns_in_its_tick")],
    },
    Mutant {
        name: "marked-has-nothing",
        rule: "an isolated CPU that was marked takes a turn, though nothing is armed on it",
        file: TURN,
        right: "        !self.flags(cpu).is_marked() && self.bases.soonest",
        wrong: "        self.bases.soonest",
        killers: &[Test(Machine, "absence::an_isolated_cpu_turns_only_for_something")],
    },
    Mutant {
        name: "pulled-not-published",
        rule: "a puller publishes what comes next, so that no CPU looks for what was run",
        file: TURN,
        right: "match self.hierarchy.try_publish(target, next) {",
        wrong: "match Ok::<_, Busy>((target, next)) {",
        killers: &[Test(Machine, "policies::nobody_looks_for_what_was_pulled")],
    },
    Mutant {
        name: "mark-outlives-idle",
        rule: "going idle and waking up end a mark",
        file: IDLE,
        right: "            let _ = self.end_mark(cpu, bases);\n",
        wrong: "            let _ = bases;\n",
        killers: &[Test(Machine, "absence::going_idle_and_waking_up_end_a_mark")],
    },
    Mutant {
        name: "adopter-not-told",
        rule: "the end of an adopted run is told of the adopter's base",
        file: BASE_EXPIRE,
        right: "return Finished { token: None, change, base: onto };",
        wrong: "return Finished { token: None, change, base: expired.base };",
        killers: &[Test(Machine, "hotplug::the_end_of_a_run_tells_the_adopter")],
    },
    Mutant {
        name: "joined-end-on-the-dead",
        rule: "a run on a base that was adopted ends with its adopter, also together with the next pop",
        file: BASE_EXPIRE,
        right: "if base.adopter().is_some() || !base.is_held_by(token) {",
        wrong: "if false {",
        killers: &[Test(Machine, "hotplug::the_end_of_a_run_tells_the_adopter")],
    },
    Mutant {
        name: "offline-only-tries",
        rule: "a CPU that goes offline gives back its tokens, however long that takes",
        file: CONTROL,
        right: "        self.take_all_tokens(cpu, actions);\n        Ok(())",
        wrong: "        self.take_back_tokens(cpu, actions);\n        Ok(())",
        killers: &[Test(Machine, "hotplug::a_cpu_that_leaves_keeps_no_token")],
    },
    Mutant {
        name: "isolation-only-tries",
        rule: "a CPU that is isolated gives back its tokens, however long that takes",
        file: CONTROL,
        right: "            self.take_all_tokens(cpu, actions);\n        }",
        wrong: "            self.take_back_tokens(cpu, actions);\n        }",
        killers: &[
            Test(Machine, "isolation::what_was_collected_before_is_given_back"),
            Test(Machine, "isolation::a_token_on_an_isolated_cpus_base_is_taken_back"),
        ],
    },
    Mutant {
        name: "outsider-not-told",
        rule: "a CPU outside the hierarchy is kicked for what was taken back on its base",
        file: PUBLISH,
        right: "(false, _) => self.kick_unless_stuck(id.cpu, actions),",
        wrong: "(false, _) => {}",
        killers: &[Test(Machine, "isolation::who_is_outside_the_hierarchy_is_told")],
    },
    Mutant {
        name: "run-leaves-behind",
        rule: "the end of a run leaves no timer on a CPU that was isolated meanwhile",
        file: TURN,
        right: "if !may_leave || !self.leave_nothing_behind(base.cpu, at.now, at.actions) {",
        wrong: "let _ = may_leave;\n        {",
        killers: &[Test(Machine, "isolation::a_timer_that_arms_itself_leaves_an_isolated_cpu")],
    },
    Mutant {
        name: "arm-leaves-behind",
        rule: "an arm leaves no timer on a CPU that was isolated before its base was locked",
        file: ARM,
        right: "let has_left = may_leave && self.leave_nothing_behind(base.cpu, context.now(), actions);",
        wrong: "let has_left = may_leave && false;",
        killers: &[Test(Machine, "isolation::an_arm_that_raced_with_isolation_is_evacuated")],
    },
    Mutant {
        name: "usual-arm-leaves-behind",
        rule: "nor does an arm in the usual case",
        file: ARM,
        right: "!context.is_cpu() && self.leave_nothing_behind(left.base.cpu, context.now(), actions);",
        wrong: "false;",
        killers: &[Test(Machine, "isolation::an_arm_that_raced_with_isolation_is_evacuated")],
    },
    Mutant {
        name: "usual-arm-does-not-look",
        rule: "an arm in the usual case looks whether its CPU was isolated meanwhile",
        file: ARM,
        right: "let must_leave = !context.is_cpu() && !self.flags(base.cpu).takes_timers();",
        wrong: "let must_leave = false;",
        killers: &[Test(Machine, "isolation::an_arm_that_raced_with_isolation_is_evacuated")],
    },
    Mutant {
        name: "usual-arm-near-isolated",
        rule: "the usual case is not one near an isolated CPU",
        file: ARM,
        right: "return watch.flags.load().takes_timers().then_some(BaseId { cpu, kind: BaseKind::Guest });",
        wrong: "return Some(BaseId { cpu, kind: BaseKind::Guest });",
        killers: &[Test(Machine, "isolation::nothing_armed_near_an_isolated_cpu_goes_there")],
    },
    Mutant {
        name: "usual-arm-tells-nobody",
        rule: "the first timer of a sleeping CPU's base is published, also on the fast path",
        file: ARM,
        right: "        if left.must_publish && !has_left {",
        wrong: "        if false && left.must_publish && !has_left {",
        killers: &[Test(Machine, "contract::the_contract_holds")],
    },
    Mutant {
        name: "deferrable-near-isolated",
        rule: "a stranger's deferrable timer goes to a housekeeping CPU",
        file: ARM,
        right: "return Ok(BaseId { cpu: self.home(context)?, kind: BaseKind::Deferrable });",
        wrong: "return Ok(BaseId { cpu: context.cpu(), kind: BaseKind::Deferrable });",
        killers: &[Test(Machine, "isolation::nothing_armed_near_an_isolated_cpu_goes_there")],
    },
    Mutant {
        name: "isolated-takes-tokens",
        rule: "an isolated CPU takes no foreign token",
        file: "crates/core/src/base/bases.rs",
        right: "may_run && (runner == id.cpu && id.kind != BaseKind::Guest || !hints.has(CpuHints::UNAVAILABLE))",
        wrong: "may_run",
        killers: &[
            Test(Machine, "isolation::an_isolated_cpu_takes_nothing_over"),
            Test(Machine, "isolation::the_end_of_a_run_gives_a_cpu_that_left_nothing"),
        ],
    },
    Mutant {
        name: "tick-to-isolated",
        rule: "the tick goes to a CPU that does the work of others",
        file: CONTROL,
        right: "control.tick_cpu = housekeeping.work().first();",
        wrong: "control.tick_cpu = housekeeping.timers().first();",
        killers: &[Test(Machine, "isolation::the_tick_goes_to_a_housekeeping_cpu")],
    },
    Mutant {
        name: "arm-on-the-absent",
        rule: "a timer of a CPU that is not online goes to one that is",
        file: ARM,
        right: "if context.is_cpu() && is_known && self.flags(context.cpu()).is_online() {",
        wrong: "if context.is_cpu() && is_known {",
        killers: &[Test(Machine, "hotplug::an_arm_on_a_cpu_that_was_never_online")],
    },
    Mutant {
        name: "mark-blocks",
        rule: "a mark waits for no lock when it publishes what it took back",
        file: PUBLISH,
        right: "(true, Some(CpuState::Parked | CpuState::Absent)) => self.try_republish(id.cpu, actions),",
        wrong: "(true, Some(CpuState::Parked | CpuState::Absent)) => self.republish(id.cpu, actions),",
        killers: &[Test(Machine, "absence::a_mark_waits_for_no_third_cpu")],
    },
    Mutant {
        name: "busy-mark-does-nothing",
        rule: "a CPU that is stopped inside a lock gives its duties away",
        file: "crates/core/src/machine/stall/mark.rs",
        right: "            if self.hand_over_duties(cpu, actions).is_err() {",
        wrong: "            let _ = Self::hand_over_duties;\n            if false {",
        killers: &[Test(Machine, "absence::a_busy_mark_hands_the_duties_over")],
    },
    Mutant {
        name: "sleeps-on-leftovers",
        rule: "a CPU whose turn stopped at its budget does not sleep",
        file: IDLE,
        right: "if bases.has_leftovers(cpu) {",
        wrong: "if false && bases.has_leftovers(cpu) {",
        killers: &[Test(Machine, "turns::a_turn_that_used_its_budget_keeps_its_cpu_awake")],
    },
    Mutant {
        name: "silence-waits",
        rule: "a silence waits for no lock: its holder may be stopped",
        file: ALARM,
        right: "let is_parked = |cpu: &CpuId| self.hierarchy.try_cpu_state(*cpu) == Some(CpuState::Parked);",
        wrong: "let is_parked = |cpu: &CpuId| self.hierarchy.cpu_state(*cpu) == CpuState::Parked;",
        killers: &[Test(Machine, "sentinel::a_silence_waits_for_nobody")],
    },
    Mutant {
        name: "silence-trusts-the-hierarchy",
        rule: "a silence does not stop at a CPU that is active in the hierarchy",
        file: ALARM,
        right: "(0..self.bases.cpu_count()).map(CpuId).filter(is_parked)",
        wrong: "(0..1).map(CpuId).filter(is_parked)",
        killers: &[Test(Machine, "sentinel::a_silence_kicks_the_lowest_that_is_parked")],
    },
    Mutant {
        name: "silence-gives-up",
        rule: "a silence without a lane to kick asks again",
        file: ALARM,
        right: "            None => self.ask_again(now, actions),\n",
        wrong: "            None => {}\n",
        killers: &[Test(Machine, "sentinel::a_silence_of_absent_cpus_asks_again")],
    },
    Mutant {
        name: "sleepers-not-looked-for",
        rule: "an awake CPU looks for parked ones that overslept",
        file: "crates/core/src/machine/stall/watch.rs",
        right: "let mut marked = self.mark_missed_wakeups_once_per_tick(now, actions);",
        wrong: "let mut marked = 0 * self.mark_missed_wakeups_once_per_tick(Nanos(0), actions);",
        killers: &[Test(Machine, "missed_wakeup::an_awake_cpu_serves_one_that_overslept")],
    },
    Mutant {
        name: "sleepers-kicked",
        rule: "after a silence no lane is kicked that missed its wake-up",
        file: ALARM,
        right: "        self.mark_missed_wakeups(now, actions);\n",
        wrong: "",
        killers: &[Test(Machine, "missed_wakeup::a_silence_kicks_nobody_who_overslept")],
    },
    Mutant {
        name: "sleepers-marked-early",
        rule: "a lane that wakes up in time is not marked",
        file: "crates/core/src/machine/stall/missed_wakeup.rs",
        right: "policy.is_stalled(now.since(wakes), Patience::Usual);",
        wrong: "policy.is_stalled(now.since(wakes), Patience::Usual) || now >= wakes;",
        killers: &[Test(Machine, "missed_wakeup::an_awake_cpu_serves_one_that_overslept")],
    },
    Mutant {
        name: "accused-for-ever",
        rule: "a mark that idling ended is not held against a later absence",
        file: CPU_FLAGS,
        right: "self.change(MARKED | MARKED_BY_OTHER | MARK_INCOMPLETE, 0)",
        wrong: "self.change(MARKED | MARK_INCOMPLETE, 0)",
        killers: &[Test(Machine, "counters::a_mark_that_idling_ended_is_not_false_later")],
    },
    Mutant {
        name: "incomplete-without-mark",
        rule: "an incomplete mark is a mark for every reader",
        file: CPU_FLAGS,
        right: "self.change(0, MARKED | MARKED_BY_OTHER | MARK_INCOMPLETE)",
        wrong: "self.change(0, MARK_INCOMPLETE)",
        killers: &[Test(Models, "machine::cpu_flags::models::the_count_follows_the_flags")],
    },
    Mutant {
        name: "every-mark-is-false",
        rule: "a true stall costs no patience",
        file: POLICY,
        right: "self.doubled().is_none_or(|limit| silence < limit)",
        wrong: "self.doubled().is_none_or(|limit| silence < limit || true)",
        killers: &[Test(Machine, "absence::a_true_stall_costs_no_patience")],
    },
    Mutant {
        name: "no-patience",
        rule: "two false marks within a second double the time",
        file: POLICY,
        right: "            Patience::Doubled => self.doubled(),",
        wrong: "            Patience::Doubled => self.after,",
        killers: &[Test(Machine, "absence::two_false_marks_double_the_time")],
    },
];
