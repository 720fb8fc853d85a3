//! Mutants that readers drew who knew no test: one rule each, as a mistake would break it.

use super::killer::Killer::Test;
use super::killer::Mutant;
use super::killer::Suite::{Futures, LiveUnits, Machine, OwnThreads, Tasks, Units};

pub(super) const DRAWN: &[Mutant] = &[
    Mutant {
        name: "second-look-cancels-nothing",
        rule: "each look of a thread that waits for the end of a run takes out what that run has armed",
        file: "crates/live/src/timer/wait.rs",
        right: "Found::Running(self.cancel() || was_pending)",
        wrong: "Found::Running(was_pending || self.cancel())",
        killers: &[Test(LiveUnits, "timer::tests::each_look_of_a_wait_cancels")],
    },
    Mutant {
        name: "taken-back-hides-a-run",
        rule: "a thread that must not wait is told of a run, whatever was taken back",
        file: "crates/live/src/work/delayed.rs",
        right: "Ok(had_time? | waited?)",
        wrong: "Ok(had_time? || waited?)",
        killers: &[Test(Tasks, "work::what_was_taken_back_hides_no_run")],
    },
    Mutant {
        name: "one-waits-too-few",
        rule: "a task that waits for the end of a run is woken, however many others have left",
        file: "crates/live/src/timer/ends.rs",
        right: "waiting.swap_remove(at));\n        self.tasks.store(wakers.waiting.len());",
        wrong: "waiting.swap_remove(at));\n        self.tasks.store(wakers.waiting.len().saturating_sub(1));",
        killers: &[Test(LiveUnits, "timer::ends::tests::the_last_that_waits_is_woken")],
    },
    Mutant {
        name: "own-threads-on-nohz-full",
        rule: "the machine's own threads keep off CPUs without ticks, too",
        file: "crates/live/src/lane/isolate.rs",
        right: "fn move_own_threads(&self) {\n        let housekeeping = self.cpus.difference(&self.core.isolation().any());",
        wrong: "fn move_own_threads(&self) {\n        let housekeeping = self.cpus.difference(&self.core.isolation().from_tasks());",
        killers: &[Test(OwnThreads, "they_keep_off_what_is_isolated_from_the_start")],
    },
    Mutant {
        name: "blocking-threads-on-nohz-full",
        rule: "threads of closures that block keep off CPUs without ticks, too",
        file: "crates/live/src/lane/isolate.rs",
        right: "fn keep_off_isolated(&self) {\n        let housekeeping = self.cpus.difference(&self.core.isolation().any());",
        wrong: "fn keep_off_isolated(&self) {\n        let housekeeping = self.cpus.difference(&self.core.isolation().from_tasks());",
        killers: &[Test(OwnThreads, "they_keep_off_what_is_isolated_from_the_start")],
    },
    Mutant {
        name: "end-in-a-callback-keeps-tasks",
        rule: "a callback that ends its machine ends the tasks, too",
        file: "crates/live/src/machine/mod.rs",
        right: "        self.end_tasks();\n        if RunScope::is_here() {\n            return;\n        }\n",
        wrong: "        if RunScope::is_here() {\n            return;\n        }\n        self.end_tasks();\n",
        killers: &[Test(LiveUnits, "timer::tests::lanes::a_callback_ends_the_tasks")],
    },
    Mutant {
        name: "up-but-parked",
        rule: "a lane that has slept is active before it runs anything",
        file: "crates/core/src/lane/idle.rs",
        right: "return self.doze(at, now, now, told);",
        wrong: "return self.doze(at, now, now, Told::Nothing);",
        killers: &[Test(Machine, "lanes::a_lane_that_sleeps_on_and_finds_something_is_watched")],
    },
    Mutant {
        name: "claimed-as-it-was",
        rule: "a lane is watched from its claim on",
        file: "crates/core/src/lane/slots.rs",
        right: "        self.renew_standalone(machine);\n        if self.slot(cpu)",
        wrong: "        if self.slot(cpu)",
        killers: &[Test(Machine, "lanes::a_lane_is_watched_from_its_claim_on")],
    },
    Mutant {
        name: "reset-by-another-clock",
        rule: "a queue that was polled goes by the clock of its own machine",
        file: "crates/live/src/time/delay_queue.rs",
        right: "self.reset_at(key, self.now().after(timeout));",
        wrong: "self.reset_at(key, Instant::now().after(timeout));",
        killers: &[Test(Futures, "delay_queue::the_clock_is_its_machines")],
    },
    Mutant {
        name: "ready-is-running",
        rule: "a timer that is due and waits for a runner is no run",
        file: "crates/core/src/base/runs.rs",
        right: "(self.count - self.ready) as usize",
        wrong: "self.count as usize",
        killers: &[Test(Units, "base::tests::tokens::what_waits_for_a_runner_does_not_run")],
    },
    Mutant {
        name: "watches-a-group",
        rule: "a CPU is watched from another part of the tree, however high that is",
        file: "crates/core/src/tmigr/remote.rs",
        right: "for _ in 0..level {",
        wrong: "for _ in 0..level.min(1) {",
        killers: &[Test(Machine, "absence::each_is_watched_across_the_tree")],
    },
    Mutant {
        name: "overslept-for-another",
        rule: "a lane that is to be up for another one's timer has overslept when it is not",
        file: "crates/core/src/lane/slots.rs",
        right: "[machine.hierarchy().wakeup(cpu), own].into_iter().flatten().min()",
        wrong: "[machine.hierarchy().wakeup(cpu), own].into_iter().flatten().max()",
        killers: &[Test(Machine, "lanes::the_sentinel_knows_who_overslept_for_another")],
    },
];
