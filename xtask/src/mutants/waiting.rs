//! Mutants of lanes that wait or are stuck: when a lane dozes, sleeps, blocks, returns and is watched, who is
//! woken, and what the sentinel believes.

use super::killer::Killer::Test;
use super::killer::Mutant;
use super::killer::Suite::Machine;

const ARM: &str = "crates/core/src/machine/arm.rs";
const CONTROL: &str = "crates/core/src/machine/control.rs";
const IDLE: &str = "crates/core/src/lane/idle.rs";
const MACHINE_IDLE: &str = "crates/core/src/machine/idle.rs";
const SENTINEL: &str = "crates/core/src/lane/sentinel.rs";
const SLOTS: &str = "crates/core/src/lane/slots.rs";
const TURN: &str = "crates/core/src/machine/turn.rs";
const WATCH: &str = "crates/core/src/machine/stall/watch.rs";

pub(super) const WAITING: &[Mutant] = &[
    Mutant {
        name: "stand-down-no-alarm",
        rule: "a spare that stands down asks for the alarm that its tree needs",
        file: MACHINE_IDLE,
        right: "        drop(bases);\n        self.ask_for_alarm(first, actions);\n",
        wrong: "        drop(bases);\n        let _ = first;\n",
        killers: &[Test(Machine, "lanes::a_spare_stands_down")],
    },
    Mutant {
        name: "isolated-last-wakes-nobody",
        rule: "the last CPU awake that is isolated leaves the tree to one that is woken",
        file: CONTROL,
        right: "            self.wake_somebody(first, actions);\n            if is_idle",
        wrong: "            let _ = first;\n            if is_idle",
        killers: &[Test(Machine, "isolation::the_last_one_awake_leaves_somebody")],
    },
    Mutant {
        name: "late-watcher-judges",
        rule: "a watcher that was stopped itself judges nobody",
        file: WATCH,
        right: "self.settings.stall.may_judge(now.since(looked), self.settings.tick.nanos())",
        wrong: "(looked <= now)",
        killers: &[Test(Machine, "lanes::a_late_watcher_judges_nobody")],
    },
    Mutant {
        name: "wake-without-beat",
        rule: "a CPU that wakes up has said so before it is awake for those who watch",
        file: MACHINE_IDLE,
        right: "        self.beat(cpu, now);\n        bases.set_idle(false);",
        wrong: "        bases.set_idle(false);",
        killers: &[Test(Machine, "lanes::a_lane_that_woke_up_is_not_silent")],
    },
    Mutant {
        name: "kick-of-vacant",
        rule: "a kick of a CPU that no thread drives reaches another lane",
        file: SLOTS,
        right: "            self.wake_one();\n        }\n    }",
        wrong: "        }\n    }",
        killers: &[Test(Machine, "lanes::a_kick_of_a_vacant_place_wakes_another")],
    },
    Mutant {
        name: "doze-without-second-look",
        rule: "a lane that dozes looks once more at what was armed before",
        file: IDLE,
        right: "let next = at.machine.next_event(at.slot.cpu());",
        wrong: "let next = None::<Nanos>;",
        killers: &[Test(Machine, "lanes::a_doze_ends_with_what_is_due")],
    },
    Mutant {
        name: "sleeper-forgets-exact",
        rule: "a lane that sleeps wakes up for its exact timers itself",
        file: MACHINE_IDLE,
        right: "                let until = earliest(until, exact);\n",
        wrong: "                let _ = exact;\n",
        killers: &[Test(Machine, "lanes::a_sleeper_wakes_up_for_its_exact_timers")],
    },
    Mutant {
        name: "doze-word-stays",
        rule: "the doze word asks for kicks only as long as the lane dozes",
        file: IDLE,
        right: "        slot.doze.end();\n        if !self.waiting",
        wrong: "        if !self.waiting",
        killers: &[Test(Machine, "lanes::only_a_lane_that_dozes_is_interrupted")],
    },
    Mutant {
        name: "return-unwatched",
        rule: "a lane that returns from a block or a mark is watched again",
        file: IDLE,
        right: "        if is_back && takes_part(at.slot) {\n            at.lanes.deadline.arm(now, actions);\n",
        wrong: "        if is_back && takes_part(at.slot) {\n            let _ = (now, actions);\n",
        killers: &[Test(Machine, "lanes::a_block_leaves_the_deadline_and_a_return_arms_it")],
    },
    Mutant {
        name: "stay-unwatched",
        rule: "a lane that was idle in the hierarchy for a moment only is watched",
        file: IDLE,
        right: "        at.lanes.deadline.expect_turn(now, actions);\n        self.doze",
        wrong: "        let _ = &actions;\n        self.doze",
        killers: &[Test(Machine, "lanes::a_lane_that_stays_is_watched")],
    },
    Mutant {
        name: "block-holds-deadline",
        rule: "the last lane awake that blocks leaves the stall deadline",
        file: IDLE,
        right: "            leave_stall_deadline(at, now, None, actions);\n        }\n        look",
        wrong: "        }\n        look",
        killers: &[Test(Machine, "lanes::a_block_leaves_the_deadline_and_a_return_arms_it")],
    },
    Mutant {
        name: "silence-wakes-one",
        rule: "when the lane that was kicked is stuck, too, all that sleep are woken",
        file: SENTINEL,
        right: "                self.lanes.wake_tree();\n",
        wrong: "",
        killers: &[Test(Machine, "lanes::a_lane_that_was_kicked_must_turn")],
    },
    Mutant {
        name: "helper-not-kicked",
        rule: "without lanes a kick is for the helper",
        file: SLOTS,
        right: "machine.next_event(cpu).into_iter().for_each(|next| actions.set_alarm(next));",
        wrong: "let _ = (machine.next_event(cpu), &actions);",
        killers: &[Test(Machine, "lanes::a_kick_of_the_helper_pulls_its_deadline")],
    },
    Mutant {
        name: "wary-lane-sleeps",
        rule: "a lane beside one that is silent does not sleep",
        file: IDLE,
        right: "            if is_wary {\n                return",
        wrong: "            if is_wary && self.must_help && !self.must_help {\n                return",
        killers: &[Test(Machine, "lanes::a_lane_beside_a_silent_one_stays")],
    },
    Mutant {
        name: "overslept-rests",
        rule: "the sentinel does not take a lane for resting that should be up",
        file: SENTINEL,
        right: "if latest.is_some_and(|latest| latest <= self.now) {",
        wrong: "if latest.is_some_and(|latest| latest < Nanos(0)) {",
        killers: &[Test(Machine, "lanes::the_sentinel_knows_who_overslept")],
    },
    Mutant {
        name: "alarm-expects-nothing",
        rule: "the lane that an alarm kicks must turn",
        file: SENTINEL,
        right: "            stall_deadline.expect_turn(now, actions);\n            // The lane",
        wrong: "            // The lane",
        killers: &[Test(Machine, "lanes::a_lane_that_was_kicked_must_turn")],
    },
    Mutant {
        name: "wake-unwatched",
        rule: "a lane that wakes up is watched",
        file: IDLE,
        right: "                    at.lanes.deadline.arm(now, actions);\n                    look",
        wrong: "                    look",
        killers: &[Test(Machine, "lanes::a_lane_that_wakes_up_is_watched")],
    },
    Mutant {
        name: "absent-heir",
        rule: "an absent CPU inherits timers only if no other is left",
        file: CONTROL,
        right: "nearest(&present).or_else(|| nearest(work))",
        wrong: "nearest(work).filter(|_| !present.is_empty() || present.is_empty())",
        killers: &[Test(Machine, "hotplug::an_absent_cpu_inherits_only_if_it_must")],
    },
    Mutant {
        name: "heir-not-told",
        rule: "an heir that is awake is told of exact timers",
        file: CONTROL,
        right: "if change.is_exact_first || self",
        wrong: "if change.is_exact_first && change.was_idle || self",
        killers: &[Test(Machine, "hotplug::an_heir_is_told_of_exact_timers")],
    },
    Mutant {
        name: "one-base-first",
        rule: "a base in which more is due than a turn runs does not keep the others waiting",
        file: TURN,
        right: "turn.tokens.rotate_left(1);",
        wrong: "turn.tokens.rotate_left(0);",
        killers: &[Test(Machine, "turns::what_a_turn_leaves_comes_after_other_bases")],
    },
    Mutant {
        name: "stale-moment",
        rule: "an arm far ahead is told from a fresh look at the clock",
        file: ARM,
        right: "if at.since(looked).0 < finest { looked }",
        wrong: "if at.since(looked).0 < u64::MAX - finest { looked }",
        killers: &[Test(Machine, "hotplug::an_old_moment_serves_short_arms")],
    },
];
