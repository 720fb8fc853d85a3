//! Mutants of ends and marks: how a machine ends, who is silent, what a verb may not do.

use super::killer::{Killer, Mutant, Suite};

pub(super) const ENDS: &[Mutant] = &[
    Mutant {
        name: "marked-and-beating",
        rule: "the heartbeat of a CPU that was marked stays as it was",
        file: "crates/core/src/machine/turn.rs",
        right: "if !watch.flags.load().is_marked() {",
        wrong: "if watch.heartbeat() != now {",
        killers: &[Killer::Test(Suite::Machine, "absence::a_true_stall_costs_no_patience")],
    },
    Mutant {
        name: "silence-not-marked",
        rule: "after a silence every silent CPU is marked at once",
        file: "crates/core/src/machine/alarm.rs",
        right: "        if self.mark_all_stalled(now, actions) {\n            return false;\n        }\n",
        wrong: "",
        killers: &[Killer::Test(Suite::Machine, "missed_wakeup::a_silence_kicks_nobody_who_overslept")],
    },
    Mutant {
        name: "end-pushed-away",
        rule: "no transition leads away from the end",
        file: "crates/core/src/lane/deadline.rs",
        right: "if seen == Some(END) {",
        wrong: "if seen == Some(END) && at == seen {",
        killers: &[Killer::Test(Suite::Units, "lane::deadline::tests::nothing_moves_the_end")],
    },
    Mutant {
        name: "end-without-close",
        rule: "after a shutdown no callback starts",
        file: "crates/live/src/machine/mod.rs",
        right: "        self.core.close();\n",
        wrong: "",
        killers: &[Killer::Test(Suite::LiveUnits, "timer::tests::lanes::a_callback_ends_the_machine")],
    },
    Mutant {
        name: "end-without-wait",
        rule: "a shutdown waits for callbacks of all threads",
        file: "crates/live/src/machine/mod.rs",
        right: "self.run_ends.wait_while(|| self.core.has_runs());",
        wrong: "",
        killers: &[Killer::Test(Suite::LiveUnits, "timer::tests::lanes::shutdown_waits_for_every_callback")],
    },
    Mutant {
        name: "period-too-far",
        rule: "a period beyond the wheel's reach is not early",
        file: "crates/live/src/timer/rearm.rs",
        right: "if now() < scheduled {",
        wrong: "if now() < scheduled && locked.period.length.0 == 0 {",
        killers: &[Killer::Test(Suite::LiveUnits, "timer::tests::no_verb_reaches_too_far")],
    },
    Mutant {
        name: "early-once-cancelled",
        rule: "a timer that was cancelled or moved while it was handed out early does not run then",
        file: "crates/live/src/timer/rearm.rs",
        right: "if now() < scheduled {",
        wrong: "if locked.follows() && now() < scheduled {",
        killers: &[Killer::Test(
            Suite::LiveUnits,
            "timer::rearm::tests::what_is_handed_out_early_does_not_run",
        )],
    },
    Mutant {
        name: "hop-to-the-unarmed",
        rule: "a timer that was handed out early waits for the moment that its base knows",
        file: "crates/live/src/timer/rearm.rs",
        right: "RunPlan::Hop(scheduled) } else",
        wrong: "RunPlan::Hop(due) } else",
        killers: &[Killer::Test(
            Suite::LiveUnits,
            "timer::rearm::tests::what_is_moved_while_it_is_handed_out_early_does_not_run",
        )],
    },
    Mutant {
        name: "waker-unguarded",
        rule: "what waits for the end of a run is user code",
        file: "crates/live/src/machine/turn.rs",
        right: "self.guarded(runner, || waker.wake());\n                }\n                self",
        wrong: "waker.wake();\n                }\n                self",
        killers: &[Killer::Test(Suite::LiveUnits, "timer::tests::a_waker_that_panics_is_counted")],
    },
    Mutant {
        name: "time-for-the-cancelled",
        rule: "paused time does not move for what was cancelled",
        file: "crates/live/src/virtual_time/mover.rs",
        right: "self.core.renewed_next_event(cpu)",
        wrong: "self.core.next_event(cpu)",
        killers: &[Killer::Test(
            Suite::LiveUnits,
            "virtual_time::tests::time_does_not_move_for_what_was_cancelled",
        )],
    },
];
