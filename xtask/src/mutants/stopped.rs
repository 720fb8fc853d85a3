//! Mutants of threads that are stopped inside a lock: who may wait for them, what is noted meanwhile, and
//! that what others have is run.

use super::killer::Killer::{self, Test};
use super::killer::Mutant;
use super::killer::Suite::{Machine, Site};

const ALARM: &str = "crates/core/src/machine/alarm.rs";
const ARM: &str = "crates/core/src/machine/arm.rs";
const CONTROL: &str = "crates/core/src/machine/control.rs";
const MACHINE_IDLE: &str = "crates/core/src/machine/idle.rs";
const SENTINEL: &str = "crates/core/src/lane/sentinel.rs";
const TURN: &str = "crates/core/src/machine/turn.rs";
const MARK: &str = "crates/core/src/machine/stall/mark.rs";
const MISSED_WAKEUP: &str = "crates/core/src/machine/stall/missed_wakeup.rs";
const PUBLISH: &str = "crates/core/src/machine/publish.rs";
const PRESENCE: &str = "crates/core/src/tmigr/presence.rs";
const TOKENS: &str = "crates/core/src/machine/stall/tokens.rs";
const WATCH: &str = "crates/core/src/machine/stall/watch.rs";

const BETWEEN_GROUPS: &[Killer] =
    &[Test(Site, "stopped::nobody_waits_for_a_lane_that_is_stopped_between_two_groups")];

const STOPPED: &[Killer] = &[Test(Site, "stopped::nobody_waits_for_a_lane_that_is_stopped")];

pub(super) const STOPPED_INSIDE: &[Mutant] = &[
    Mutant {
        name: "stuck-keeps-tokens",
        rule: "what a stalled CPU has collected is taken back though it cannot be marked",
        file: "crates/core/src/machine/cpu_flags.rs",
        right: "self.change(0, STUCK | REVOKE)",
        wrong: "self.change(0, STUCK)",
        killers: &[Test(Machine, "busy::what_a_stuck_cpu_collected_is_taken_back")],
    },
    Mutant {
        name: "stuck-pulls-isolated",
        rule: "while a CPU is stuck nothing is pulled from an isolated CPU",
        file: TURN,
        right: "if !self.bases.is_unavailable(target) && !self.bases.is_unavailable(cpu) {",
        wrong: "if !self.bases.is_unavailable(cpu) {",
        killers: &[Test(Machine, "busy::an_isolated_cpu_is_not_pulled_from_beside_a_busy_group")],
    },
    Mutant {
        name: "arm-reads-a-record",
        rule: "an arm waits for no record of another CPU",
        file: ARM,
        right: "self.hierarchy.try_cpu_state(cpu).is_some_and(is_available)",
        wrong: "is_available(self.hierarchy.cpu_state(cpu))",
        killers: &[Test(Machine, "busy::an_arm_waits_for_no_record")],
    },
    Mutant {
        name: "overslept-not-noted",
        rule: "an overslept CPU that cannot be marked is pulled from",
        file: "crates/core/src/machine/stall/missed_wakeup.rs",
        right: "            self.count_repairs(watch.flags.transition_to_unpublished());\n",
        wrong: "",
        killers: &[Test(Machine, "busy::a_cpu_that_overslept_is_pulled_from")],
    },
    Mutant {
        name: "mark-of-isolated-ends",
        rule: "a mark by half is completed though its CPU was isolated since",
        file: MARK,
        right: "match self.hierarchy.try_is_absent(cpu) {",
        wrong: "match self.hierarchy.try_cpu_state(cpu).map(|state| state == CpuState::Absent) {",
        killers: &[Test(Machine, "absence::a_mark_outlives_an_isolation")],
    },
    Mutant {
        name: "arm-waits-for-group",
        rule: "an arm waits for no group's events",
        file: PUBLISH,
        right: "let published = self.hierarchy.try_publish(cpu, next);",
        wrong: "let published: Result<_, Busy> = Ok(self.hierarchy.publish(cpu, next));",
        killers: STOPPED,
    },
    Mutant {
        name: "idle-waits-for-group",
        rule: "a lane that goes idle waits for no group's events",
        file: MACHINE_IDLE,
        right: "self.is_pulling().then(|| self.hierarchy.try_deactivate(cpu, publish))",
        wrong: "self.is_pulling().then(|| Ok(self.hierarchy.deactivate(cpu, publish)))",
        killers: STOPPED,
    },
    Mutant {
        name: "block-waits-for-group",
        rule: "a lane that is about to block waits for no group's events",
        file: MARK,
        right: "let Ok(first) = self.hierarchy.try_go_absent(cpu, next) else {\n            self.watch[cpu.index()].busy_marks.count();\n            self.note_stuck(cpu);\n            return;\n        };",
        wrong: "let first = self.hierarchy.go_absent(cpu, next);",
        killers: STOPPED,
    },
    Mutant {
        name: "unpublished-wakes-no-cpu",
        rule: "a CPU whose first expiry could not be published is woken",
        file: PUBLISH,
        right: "            actions.kick(cpu);\n        }\n    }\n\n    /// Tells of",
        wrong: "        }\n    }\n\n    /// Tells of",
        killers: &[Test(Machine, "busy::a_cpu_that_cannot_be_published_wakes_up")],
    },
    Mutant {
        name: "unpublished-of-absent-no-alarm",
        rule: "when the first expiry of an absent CPU could not be published another CPU is woken for it",
        file: PUBLISH,
        right: "        self.ask_for_alarm(next, actions);\n        if !self.flags(cpu).is_marked() {",
        wrong: "        let _ = next;\n        if !self.flags(cpu).is_marked() {",
        killers: &[Test(Machine, "busy::what_an_absent_cpu_has_is_asked_for")],
    },
    Mutant {
        name: "unpublished-not-noted",
        rule: "what could not be published is noted for the CPUs that are awake",
        file: PUBLISH,
        right: "self.count_repairs(self.watch[cpu.index()].flags.transition_to_unpublished());\n        }\n        drop((guest, global));",
        wrong: "}\n        drop((guest, global));",
        killers: &[Test(Machine, "busy::what_an_absent_cpu_has_is_asked_for")],
    },
    Mutant {
        name: "stuck-not-noted",
        rule: "a stalled CPU that could not be marked as a group was busy is noted",
        file: MARK,
        right: "            self.note_stuck(cpu);\n            return MarkOutcome::Busy;",
        wrong: "            return MarkOutcome::Busy;",
        killers: &[Test(Machine, "busy::what_a_stuck_cpu_collected_is_taken_back")],
    },
    Mutant {
        name: "stuck-in-base-not-noted",
        rule: "a stalled CPU is noted whose base was busy and whose duties could not be handed over",
        file: MARK,
        right: "            if self.hand_over_duties(cpu, actions).is_err() {\n                self.note_stuck(cpu);\n            }",
        wrong: "            let _ = self.hand_over_duties(cpu, actions);",
        killers: &[Test(Machine, "busy::a_cpu_whose_duties_cannot_be_handed_over_is_stuck")],
    },
    Mutant {
        name: "stuck-for-ever",
        rule: "a CPU that turns again is not stuck any more",
        file: TOKENS,
        right: "self.count_repairs(self.watch[cpu.index()].flags.transition_to_not_stuck());",
        wrong: "",
        killers: &[Test(Machine, "busy::a_cpu_that_turns_again_is_not_stuck")],
    },
    Mutant {
        name: "busy-leaves-inactive",
        rule: "a CPU that could not go idle is active again",
        file: PRESENCE,
        right: "                self.set_active(this);\n                Err(Busy)",
        wrong: "                Err(Busy)",
        killers: &[Test(Machine, "busy::a_cpu_that_cannot_go_idle_keeps_its_tick")],
    },
    Mutant {
        name: "half-published-is-known",
        rule: "what is known to some groups only is published again",
        file: PRESENCE,
        right: "record.published == next && !record.is_half_published",
        wrong: "record.published == next",
        killers: &[Test(Machine, "busy::what_an_absent_cpu_has_is_asked_for")],
    },
    Mutant {
        name: "busy-group-not-pulled",
        rule: "where events cannot be read the bases of all idle CPUs are looked at",
        file: TURN,
        right: "let all = all || cpus()",
        wrong: "let all = cpus()",
        killers: &[Test(Machine, "busy::an_isolated_cpu_is_not_pulled_from_beside_a_busy_group")],
    },
    Mutant {
        name: "alarm-kicks-the-stopped",
        rule: "the alarm wakes a CPU that is not at work in its own locks, if there is one",
        file: ALARM,
        right: "if self.try_lock_bases(cpu).is_some() {",
        wrong: "if true {",
        killers: &[Test(Machine, "busy::the_alarm_wakes_one_that_is_not_stopped")],
    },
    Mutant {
        name: "alarm-waits",
        rule: "the alarm waits for no lock: its holder may be stopped",
        file: ALARM,
        right: "move |cpu: &CpuId| self.hierarchy.try_cpu_state(*cpu) == Some(state);",
        wrong: "move |cpu: &CpuId| self.hierarchy.cpu_state(*cpu) == state;",
        killers: STOPPED,
    },
    Mutant {
        name: "silence-reads-a-record",
        rule: "nor does the look after a silence",
        file: WATCH,
        right: "            if self.hierarchy.try_cpu_state(cpu) != Some(CpuState::Awake) {\n",
        wrong: "            if self.hierarchy.cpu_state(cpu) != CpuState::Awake {\n",
        killers: STOPPED,
    },
    Mutant {
        name: "pull-waits-to-publish",
        rule: "a pull waits for no record of another CPU",
        file: TURN,
        right: "match self.hierarchy.try_publish(target, next) {",
        wrong: "match Ok::<_, Busy>(self.hierarchy.publish(target, next)) {",
        killers: STOPPED,
    },
    Mutant {
        name: "move-waits-for-control",
        rule: "the end of a run on an isolated CPU's base waits for no thread that isolates",
        file: CONTROL,
        right: "        let mut from = cpu;\n",
        wrong: "        let mut from = cpu;\n        drop(self.control.lock_remote());\n",
        killers: STOPPED,
    },
    Mutant {
        name: "moved-once",
        rule: "what is moved off an isolated CPU goes on if its new one leaves meanwhile",
        file: CONTROL,
        right: "                from = heir;\n            }\n",
        wrong: "                from = heir;\n                return true;\n            }\n",
        killers: &[Test(Machine, "isolation::who_leaves_meanwhile_gets_nothing_from_an_isolated_cpu")],
    },
    Mutant {
        name: "moved-to-the-offline",
        rule: "a CPU that has gone offline gets nothing that is moved off an isolated one",
        file: "crates/core/src/base/transfer.rs",
        right: "                if new.adopter().is_some() {\n",
        wrong: "                if false {\n",
        killers: &[Test(Machine, "isolation::who_leaves_meanwhile_gets_nothing_from_an_isolated_cpu")],
    },
    Mutant {
        name: "sleeps-on-repairs",
        rule: "a lane does not sleep while a mark is incomplete",
        file: WATCH,
        right: "            is_stalled = self.has_repairs();\n",
        wrong: "",
        killers: &[Test(Machine, "lanes::watch::a_lane_stays_until_a_mark_is_complete")],
    },
    Mutant {
        name: "stopped-in-record-unseen",
        rule: "a CPU that was stopped on its way through the hierarchy is noted",
        file: MISSED_WAKEUP,
        right: ".for_each(|cpu| self.note_stuck(cpu));\n",
        wrong: ".for_each(|cpu| _ = cpu);\n",
        killers: BETWEEN_GROUPS,
    },
    Mutant {
        name: "hidden-behind-a-skipped",
        rule: "an event that cannot be pulled hides nothing that stands behind it",
        file: "crates/core/src/tmigr/remote.rs",
        right: "                Ok(Looked::Skipped) => saw_all &= level == 0,\n",
        wrong: "                Ok(Looked::Skipped) => {}\n",
        killers: BETWEEN_GROUPS,
    },
    Mutant {
        name: "rests-beside-the-stopped",
        rule: "the sentinel lets no tree rest in which a lane was stopped on its way",
        file: SENTINEL,
        right: "is_any_active || self.machine.is_any_stopped_in_record(self.now)",
        wrong: "is_any_active",
        killers: &[Test(Machine, "lanes::watch::the_sentinel_knows_who_was_stopped_on_the_way")],
    },
];
