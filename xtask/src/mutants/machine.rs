//! Mutants of the machine and of its bases: for each rule that a review found broken once, the rule left out
//! again, and what a base decides under its lock or without it.

use super::killer::Killer::{self, Test};
use super::killer::Mutant;
use super::killer::Suite::{Machine, Models, Units};

const ABSENT: &str = "crates/core/src/machine/absent.rs";
const ARM: &str = "crates/core/src/machine/arm.rs";
const CONTROL: &str = "crates/core/src/machine/control.rs";
const IDLE: &str = "crates/core/src/machine/idle.rs";
const TURN: &str = "crates/core/src/machine/turn.rs";

const BASE_ARM: &str = "crates/core/src/base/arm.rs";
const BASE_BASES: &str = "crates/core/src/base/bases.rs";
const BASE_EXPIRE: &str = "crates/core/src/base/expire.rs";
const BASE_SYNC: &str = "crates/core/src/base/sync.rs";

const DROP_AGAINST_EXPIRE: &[Killer] = &[Test(Models, "base::models::drop_against_expire")];

/// Marks, isolation, hotplug and turns.
pub(super) const RULES: &[Mutant] = &[
    Mutant {
        name: "mark-for-ever",
        rule: "a marked CPU takes a turn, though nothing is due, and so comes back",
        file: TURN,
        right: "        self.has_flag(cpu, flag::MARKED)
            || BaseKind::ALL",
        wrong: "        self.has_flag(cpu, flag::MARKED) && false
            || BaseKind::ALL",
        killers: &[Test(Machine, "absence::a_marked_cpu_returns_in_its_tick")],
    },
    Mutant {
        name: "pulled-not-published",
        rule: "whoever pulls publishes what comes next, so that nobody looks for what was run",
        file: TURN,
        right: "            let _ = self.hierarchy.publish(target, next);\n",
        wrong: "            let _ = (target, next);\n",
        killers: &[Test(Machine, "policies::nobody_looks_for_what_was_pulled")],
    },
    Mutant {
        name: "mark-outlives-idle",
        rule: "going idle and waking up end a mark",
        file: IDLE,
        right: "            self.clear_mark(cpu, bases);\n",
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
        right: "if base.adopter.is_some() || !base.is_held_by(token) {",
        wrong: "if false {",
        killers: &[Test(Machine, "hotplug::the_end_of_a_run_tells_the_adopter")],
    },
    Mutant {
        name: "offline-only-tries",
        rule: "who goes offline gives back its tokens, however long that takes",
        file: CONTROL,
        right: "        self.take_all_tokens(cpu, actions);\n        Ok(())",
        wrong: "        self.take_back_tokens(cpu, actions);\n        Ok(())",
        killers: &[Test(Machine, "hotplug::a_cpu_that_leaves_keeps_no_token")],
    },
    Mutant {
        name: "isolation-only-tries",
        rule: "who is isolated gives back its tokens, however long that takes",
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
        file: ABSENT,
        right: "(false, _) => {
                self.kick_unless_marked(id.cpu, actions);",
        wrong: "(false, _) => {",
        killers: &[Test(Machine, "isolation::who_is_outside_the_hierarchy_is_told")],
    },
    Mutant {
        name: "run-leaves-behind",
        rule: "the end of a run leaves no timer on a CPU that was isolated meanwhile",
        file: TURN,
        right: "self.leave_nothing_behind(finished.base.cpu, now, actions);",
        wrong: "let _ = now;",
        killers: &[Test(Machine, "isolation::a_timer_that_arms_itself_leaves_an_isolated_cpu")],
    },
    Mutant {
        name: "arm-leaves-behind",
        rule: "an arm leaves no timer on a CPU that was isolated before its base was locked",
        file: ARM,
        right: "            self.leave_nothing_behind(armed.base.cpu, context.now, actions);\n",
        wrong: "",
        killers: &[Test(Machine, "isolation::an_arm_that_raced_with_isolation_is_evacuated")],
    },
    Mutant {
        name: "deferrable-near-isolated",
        rule: "a stranger's deferrable timer goes to a housekeeping CPU",
        file: ARM,
        right: "return Ok(BaseId { cpu: self.home(context)?, kind: BaseKind::Deferrable });",
        wrong: "return Ok(BaseId { cpu: context.cpu, kind: BaseKind::Deferrable });",
        killers: &[Test(Machine, "isolation::nothing_armed_near_an_isolated_cpu_goes_there")],
    },
    Mutant {
        name: "isolated-takes-tokens",
        rule: "an isolated CPU takes no foreign token",
        file: BASE_BASES,
        right: "may_run && (runner == id.cpu || !standing.has(Standing::UNAVAILABLE))",
        wrong: "may_run",
        killers: &[
            Test(Machine, "isolation::an_isolated_cpu_takes_nothing_over"),
            Test(Machine, "isolation::the_end_of_a_run_gives_an_isolated_cpu_nothing"),
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
        right: "if context.is_cpu && is_known && self.has_flag(context.cpu, flag::ONLINE) {",
        wrong: "if context.is_cpu && is_known {",
        killers: &[Test(Machine, "hotplug::an_arm_on_a_cpu_that_was_never_online")],
    },
    Mutant {
        name: "mark-blocks",
        rule: "a mark waits for no lock when it publishes what it took back",
        file: ABSENT,
        right: "(true, Some(Book::Parked | Book::Absent)) => self.try_republish(id.cpu, actions),",
        wrong: "(true, Some(Book::Parked | Book::Absent)) => {
                self.republish(id.cpu, actions);
                true
            }",
        killers: &[Test(Machine, "absence::a_mark_waits_for_no_third_cpu")],
    },
    Mutant {
        name: "busy-mark-does-nothing",
        rule: "a CPU that is stopped inside a lock gives its duties away",
        file: ABSENT,
        right: "            self.hand_over_duties(cpu, actions);\n",
        wrong: "            let _ = (Self::hand_over_duties, &actions);\n",
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
        name: "every-mark-is-false",
        rule: "a true stall costs no patience",
        file: ABSENT,
        right: "watch.clear(flag::ACCUSED) && silence.0 < self.settings.stall_after.0.saturating_mul(2);",
        wrong: "watch.clear(flag::ACCUSED) && silence.0 < u64::MAX;",
        killers: &[Test(Machine, "absence::a_true_stall_costs_no_patience")],
    },
    Mutant {
        name: "no-patience",
        rule: "two false marks within a second double the time",
        file: ABSENT,
        right: "let allowed = self.settings.stall_after.0 << u32::from(watch.is_patient(now));",
        wrong: "let allowed = self.settings.stall_after.0 << u32::from(watch.is_patient(now) && false);",
        killers: &[Test(Machine, "absence::two_false_marks_double_the_time")],
    },
];

/// What a base decides, under its lock and without it.
pub(super) const BASES: &[Mutant] = &[
    Mutant {
        name: "idle-on-the-way",
        rule: "a timer stays pending while it changes its base, for those who look without a lock",
        file: BASE_ARM,
        right: "shared.place.store(shared.place.load().at(request.onto));",
        wrong: "shared.place.store(shared.place.load().at(request.onto).without(Place::PENDING));",
        killers: &[Test(Models, "base::models::cancel_against_a_move")],
    },
    Mutant {
        name: "21-stale-clock",
        rule: "an arm takes a clock that stood still to the present",
        file: BASE_ARM,
        right: "        self.queues.wheel.forward(request.now);\n        let was_pending",
        wrong: "        let was_pending",
        killers: &[Test(Units, "base::tests::rules::an_arm_takes_an_old_clock_to_the_present")],
    },
    Mutant {
        name: "21-stale-clock-of-the-other",
        rule: "so does an arm that brings the timer from another base",
        file: BASE_ARM,
        right: "        new.queues.wheel.forward(request.now);\n",
        wrong: "",
        killers: &[Test(Units, "base::tests::rules::an_arm_takes_an_old_clock_to_the_present")],
    },
    Mutant {
        name: "moves-while-it-runs",
        rule: "a timer that runs stays on its base",
        file: BASE_ARM,
        right: "        if old.records.is_running(timer.address()) {",
        wrong: "        if false && old.records.is_running(timer.address()) {",
        killers: &[
            Test(Machine, "turns::a_running_timer_stays_on_its_base"),
            Test(Units, "base::tests::rules::a_timer_changes_its_base_unless_it_runs_or_stays_in_its_bucket"),
        ],
    },
    Mutant {
        name: "token-survives",
        rule: "a token that was taken back hands out nothing",
        file: BASE_EXPIRE,
        right: "        self.counters.revoked += u64::from(self.runner.is_some());
        self.runner = None;",
        wrong: "        self.counters.revoked += u64::from(self.runner.is_some());",
        killers: &[Test(Units, "base::tests::rules::a_token_that_was_revoked_hands_out_nothing")],
    },
    Mutant {
        name: "records-skipped",
        rule: "a timer that is due while it runs waits for the end of that run",
        file: BASE_EXPIRE,
        right: "            if !self.records.is_running(due.address()) {",
        wrong: "            if true {",
        killers: &[Test(Units, "base::tests::rules::a_timer_that_is_due_while_it_runs_waits_for_the_end")],
    },
    Mutant {
        name: "place-read-once",
        rule: "an arm that has the lock looks whether it is still the timer's",
        file: BASE_ARM,
        right: "        if !timer.shared().place.load().is_at(request.onto) {",
        wrong: "        if false && !timer.shared().place.load().is_at(request.onto) {",
        killers: &[Test(Units, "base::tests::races::an_arm_loses_against_a_move")],
    },
    Mutant {
        name: "cancel-reads-once",
        rule: "a cancel that has the lock looks whether it is still the timer's",
        file: BASE_ARM,
        right: "            if timer.shared().place.load().is_at(at) {\n                return Some(base);",
        wrong: "            if true || timer.shared().place.load().is_at(at) {\n                return Some(base);",
        killers: &[Test(Units, "base::tests::races::a_cancel_follows_its_timer")],
    },
    Mutant {
        name: "adopter-ignored",
        rule: "a base of an offline CPU takes nothing",
        file: BASE_ARM,
        right: "        if let Some(adopter) = new.adopter {",
        wrong: "        if let Some(adopter) = new.adopter.filter(|_| false) {",
        killers: &[Test(Units, "base::tests::races::an_arm_loses_against_an_adoption")],
    },
    Mutant {
        name: "idle-without-release",
        rule: "who made a timer idle touched it before",
        file: BASE_SYNC,
        right: "self.0.store(place.0, Ordering::Release);",
        wrong: "self.0.store(place.0, Ordering::Relaxed);",
        killers: DROP_AGAINST_EXPIRE,
    },
    Mutant {
        name: "idle-without-acquire",
        rule: "who sees a timer idle may free it",
        file: BASE_SYNC,
        right: "Place(self.0.load(Ordering::Acquire))",
        wrong: "Place(self.0.load(Ordering::Relaxed))",
        killers: DROP_AGAINST_EXPIRE,
    },
];
