//! Mutants of lanes that wait or are stuck: when a lane dozes, sleeps, blocks, returns and is watched, who is
//! woken, and what the sentinel believes.

use super::killer::Killer::Test;
use super::killer::Mutant;
use super::killer::Suite::{Futures, Lanes, LiveUnits, Machine, Runtimes, Tasks, Units};

const EXPIRE: &str = "crates/core/src/base/expire.rs";
const ARM: &str = "crates/core/src/machine/arm.rs";
const CONTROL: &str = "crates/core/src/machine/control.rs";
const IDLE: &str = "crates/core/src/lane/idle.rs";
const MACHINE_IDLE: &str = "crates/core/src/machine/idle.rs";
const SENTINEL: &str = "crates/core/src/lane/sentinel.rs";
const SLOTS: &str = "crates/core/src/lane/slots.rs";
const STALL_DEADLINE: &str = "crates/core/src/lane/stall_deadline.rs";
const TURN: &str = "crates/core/src/machine/turn.rs";
const WATCH: &str = "crates/core/src/machine/stall/watch.rs";

pub(super) const WAITING: &[Mutant] = &[
    Mutant {
        name: "marked-beside-awake",
        rule: "the sentinel says when it has marked lanes and kicked none",
        file: SENTINEL,
        right: "if is_true { SentinelLook::Marked } else { SentinelLook::MarkedBesideAwake };",
        wrong: "if is_true { SentinelLook::Marked } else { SentinelLook::Marked };",
        killers: &[Test(Machine, "lanes::a_mark_beside_a_lane_that_turns_is_told")],
    },
    Mutant {
        name: "silence-offers-nothing",
        rule: "what waits on lanes that the sentinel has marked is offered",
        file: "crates/core/src/run_queue/wake.rs",
        right: "    pub fn handle_silence(&self) {\n        self.offer_of_marked();",
        wrong: "    pub fn handle_silence(&self) {",
        killers: &[Test(Units, "run_queue::tests::what_waits_is_offered")],
    },
    Mutant {
        name: "sentinel-keeps-it",
        rule: "a lane that is about to sleep is told of what waits on a lane that the sentinel has marked",
        file: "crates/live/src/lane/sentinel.rs",
        right: "if look == SentinelLook::MarkedBesideAwake {",
        wrong: "if false {",
        killers: &[Test(Tasks, "stuck::a_lane_that_has_looked_is_told")],
    },
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
        right: "        if is_back && takes_part(at.slot) {\n            at.lanes.deadline.arm(now, || at.machine.is_awake(at.slot.cpu()), actions);\n",
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
        right: "                    at.lanes.deadline.arm(now, || at.machine.is_awake(at.slot.cpu()), actions);\n                    look",
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
        name: "heir-not-told-at-the-end",
        rule: "an heir is told of an exact timer whose run ended after its CPU had left",
        file: TURN,
        right: "if change.is_exact_first && base.cpu != runner {",
        wrong: "if change.is_exact_first && base.cpu == runner {",
        killers: &[Test(Machine, "hotplug::an_heir_is_told_of_an_exact_timer_that_ran")],
    },
    Mutant {
        name: "due-in-run-not-told",
        rule: "an exact timer that was due while it ran on a CPU that was marked is told at the end of the run",
        file: EXPIRE,
        right: "matches!(due, Due::Exact(..)) && self.runner.is_none();",
        wrong: "matches!(due, Due::Tick(..)) && self.runner.is_none();",
        killers: &[Test(Machine, "absence::an_exact_timer_that_was_due_while_it_ran_is_told")],
    },
    Mutant {
        name: "doze-beyond-exact",
        rule: "a lane that dozes is told of exact timers",
        file: SLOTS,
        right: "if !is_exact && base.kind != BaseKind::Local {",
        wrong: "if base.kind != BaseKind::Local {",
        killers: &[
            Test(Machine, "lanes::only_a_lane_that_dozes_is_interrupted"),
            Test(Runtimes, "random_runtimes_keep_their_promises"),
        ],
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
    Mutant {
        name: "watch-own-group-only",
        rule: "the migrator of a group watches the group beside it",
        file: "crates/core/src/tmigr/remote.rs",
        right: "            link = group.parent();\n            level += 1;\n",
        wrong: "            link = None;\n            level += 1;\n",
        killers: &[Test(Machine, "absence::a_stalled_migrator_is_marked_from_the_next_group")],
    },
    Mutant {
        name: "left-in-the-tree",
        rule: "a lane that has left its CPU is none that could help",
        file: SLOTS,
        right: "doze.end());\n        self.renew_standalone(machine);\n",
        wrong: "doze.end());\n        let _ = machine;\n",
        killers: &[Test(Machine, "lanes::a_lane_that_left_is_not_asked_to_help")],
    },
    Mutant {
        name: "isolated-in-the-tree",
        rule: "an isolated lane holds no stall deadline",
        file: SLOTS,
        right: "        self.renew_standalone(machine);\n        if !change",
        wrong: "        let _ = machine;\n        if !change",
        killers: &[Test(Machine, "lanes::an_isolated_lane_does_not_hold_the_deadline")],
    },
    Mutant {
        name: "join-unwatched",
        rule: "a lane that joins the tree is watched",
        file: SLOTS,
        right: "        if !change.joined.is_empty() {\n            self.deadline.expect_turn(now, actions);\n",
        wrong: "        if !change.joined.is_empty() {\n            let _ = (now, actions);\n",
        killers: &[Test(Machine, "lanes::an_isolated_lane_does_not_hold_the_deadline")],
    },
    Mutant {
        name: "armed-near-who-left",
        rule: "foreign threads arm near a CPU only while a lane drives it",
        file: "crates/live/src/lane/claim.rs",
        right: "        slot.world.release();\n        self.choose_hosts();\n",
        wrong: "        slot.world.release();\n",
        killers: &[Test(LiveUnits, "machine::tests::foreign_threads_arm_where_a_lane_takes_timers")],
    },
    Mutant {
        name: "armed-near-isolated",
        rule: "foreign threads do not arm near a CPU that is isolated",
        file: "crates/live/src/lane/isolate.rs",
        right: "        self.choose_hosts();\n",
        wrong: "",
        killers: &[Test(LiveUnits, "machine::tests::foreign_threads_arm_where_a_lane_takes_timers")],
    },
    Mutant {
        name: "pulled-while-awake",
        rule: "a CPU that is awake runs its own timers",
        file: TURN,
        right: "            if !global.is_idle {\n",
        wrong: "            if false {\n",
        killers: &[Test(Machine, "turns::who_is_awake_again_is_not_pulled_from")],
    },
    Mutant {
        name: "offline-takes-tokens",
        rule: "the end of a run gives an offline CPU no foreign work",
        file: CONTROL,
        right: "        self.bases.set_unavailable(cpu, true);\n        self.wake_somebody",
        wrong: "        self.wake_somebody",
        killers: &[Test(Machine, "isolation::the_end_of_a_run_gives_a_cpu_that_left_nothing")],
    },
    Mutant {
        name: "block-hides-collected",
        rule: "what a CPU has collected and not run when it blocks is published",
        file: "crates/core/src/machine/stall/mark.rs",
        right: "transition_to_marked());\n        self.bases.set_absent(cpu, true);\n        drop(bases);
        self.ask_for_alarm(first, actions);\n        self.take_back_tokens(cpu, actions);\n",
        wrong: "transition_to_marked());\n        self.bases.set_absent(cpu, true);\n        drop(bases);
        self.ask_for_alarm(first, actions);\n",
        killers: &[Test(Machine, "absence::what_a_cpu_has_collected_is_published_when_it_blocks")],
    },
    Mutant {
        name: "joined-while-blocked",
        rule: "what a CPU brings along that blocks while it joins is seen to",
        file: CONTROL,
        right: "            drop(bases);\n            self.ask_for_alarm(first, actions);\n",
        wrong: "            drop(bases);\n            let _ = first;\n",
        killers: &[Test(Machine, "isolation::what_a_blocked_cpu_brings_along_is_seen_to")],
    },
    Mutant {
        name: "alarm-forgotten-outside",
        rule: "a lane that was isolated and does not know it yet voids no alarm",
        file: STALL_DEADLINE,
        right: "            && !is_in_tree()\n        {\n            self.ask(asked, actions);\n",
        wrong: "            && !is_in_tree()\n        {\n            let _ = asked;\n",
        killers: &[Test(Machine, "lanes::an_isolated_lane_forgets_no_alarm")],
    },
    Mutant {
        name: "held-outside",
        rule: "a lane that was isolated and does not know it yet pushes no alarm away",
        file: STALL_DEADLINE,
        right: "                self.pull(asked, actions);\n",
        wrong: "                let _ = asked;\n",
        killers: &[Test(Machine, "lanes::an_isolated_lane_forgets_no_alarm")],
    },
    Mutant {
        name: "quiet-with-leftovers",
        rule: "a lane that has collected something takes a turn, although it is isolated",
        file: "crates/core/src/lane/state.rs",
        right: "        slot.is_standalone() && self.is_awake() && !self.turn.has_more()\n",
        wrong: "        slot.is_standalone() && self.is_awake()\n",
        killers: &[Test(Lanes, "isolation::an_isolated_lane_runs_what_its_last_turn_left")],
    },
    Mutant {
        name: "held-back-for-good",
        rule: "a vector that has run is held back anew when it is raised again",
        file: "crates/core/src/softirq/rounds.rs",
        right: "        self.of.deferral.ran(self.claimed);\n",
        wrong: "",
        killers: &[Test(Units, "softirq::rounds::tests::what_has_run_is_held_back_anew")],
    },
    Mutant {
        name: "last-look-unprepared",
        rule: "a lane looks for the last time when kicks arrive already",
        file: "crates/live/src/lane/wait.rs",
        right: "        let until = self.enter_idle().until();
        if !has_work() {
",
        wrong: "        let found = has_work();
        let until = self.enter_idle().until();
        if !found {
",
        killers: &[Test(Lanes, "embedded::a_kick_during_the_last_look_arrives")],
    },
    Mutant {
        name: "told-once",
        rule: "what an isolated CPU still runs is told by each call, not by the one that isolated it",
        file: "crates/live/src/lane/isolate.rs",
        right: "        let isolated = self.lane_set.intersection(&self.core.isolation().any());\n",
        wrong: "        let isolated = report.left.clone();\n",
        killers: &[Test(Tasks, "isolation::what_still_runs_is_told_each_time")],
    },
    Mutant {
        name: "wakers-under-one-guard",
        rule: "a waker that panics does not keep the others from being woken",
        file: "crates/live/src/machine/turn.rs",
        right: "            self.guarded(runner, || first.map(Waker::wake));
            for waker in wakers.into_iter().flatten() {
                self.guarded(runner, || waker.wake());
            }
",
        wrong: "            self.guarded(runner, || {
                first.into_iter().chain(wakers.into_iter().flatten()).for_each(Waker::wake);
            });
",
        killers: &[Test(Futures, "drops::beside_a_wake_that_panics")],
    },
];
