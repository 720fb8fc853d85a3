//! Mutants of what takes CPUs away, and why: spans on top of each other, tasks, causes and their chains;
//! and of what keeps housekeeping CPUs awake.

use super::killer::Killer::Test;
use super::killer::Mutant;
use super::killer::Suite::{CommandUnits, ExplainUnits, TraceUnits};

const COUNTS: &str = "crates/explain/src/figures/interruptions/mod.rs";
const CAUSE: &str = "crates/explain/src/figures/interruptions/cause.rs";
const NEAR: &str = "crates/explain/src/figures/interruptions/near.rs";
const ROW: &str = "crates/explain/src/figures/interruptions/row.rs";
const SOURCE: &str = "crates/explain/src/figures/interruptions/source.rs";
const STACK: &str = "crates/explain/src/figures/interruptions/stack.rs";

macro_rules! killed_by {
    ($test:literal) => {
        &[Test(ExplainUnits, concat!("figures::interruptions::tests::", $test))]
    };
}

pub(super) const CAUSES: &[Mutant] = &[
    Mutant {
        name: "gap-of-a-user",
        rule: "a task of a user is what its CPU is there for, and no gap",
        file: COUNTS,
        right: "if is_over && self.gap.is_some() && !is_of_users() {",
        wrong: "if is_over && self.gap.is_some() {",
        killers: killed_by!("a_gap_is_of_all_that_is_not_the_cpus_own"),
    },
    Mutant {
        name: "gap-with-a-pause",
        rule: "what does not follow closely is another gap",
        file: "crates/explain/src/figures/interruptions/gap.rs",
        right: "from.since(*end) <= JOINED_WITHIN",
        wrong: "from.since(*end) <= Nanos(2 * JOINED_WITHIN.0)",
        killers: killed_by!("a_gap_is_of_all_that_is_not_the_cpus_own"),
    },
    Mutant {
        name: "gap-through-a-loss",
        rule: "a gap does not go on through lost events",
        file: COUNTS,
        right: "            gap.forget(mark.cpu);\n",
        wrong: "            let _ = gap;\n",
        killers: killed_by!("a_gap_is_of_all_that_is_not_the_cpus_own"),
    },
    Mutant {
        name: "piece-with-time-before",
        rule: "a piece has the time that passed in it, not what was before its task went away",
        file: COUNTS,
        right: "ended.own.saturating_sub(open.before)",
        wrong: "ended.own",
        killers: killed_by!("time_is_told_in_pieces"),
    },
    Mutant {
        name: "pieces-not-folded",
        rule: "no time is lost when the pieces get longer",
        file: "crates/explain/src/figures/interruptions/timeline.rs",
        right: "two.iter().sum()",
        wrong: "two.iter().copied().max().unwrap_or(0)",
        killers: &[Test(
            ExplainUnits,
            "figures::interruptions::timeline::tests::pieces_get_longer_with_the_recording",
        )],
    },
    Mutant {
        name: "own-task-in-pictures",
        rule: "the task that a CPU is there for is in no picture",
        file: "crates/cli/src/html/mod.rs",
        right: "report.interruptions.iter().filter(|row| !row.own).collect()",
        wrong: "report.interruptions.iter().collect()",
        killers: &[Test(CommandUnits, "html::tests::pictures_show_what_the_report_has")],
    },
    Mutant {
        name: "last-cpu-of-a-chain",
        rule: "who disturbs is where the chain of causes began",
        file: "crates/cli/src/html/origins.rs",
        right: "cause.steps.last()",
        wrong: "cause.steps.first()",
        killers: &[Test(CommandUnits, "html::tests::a_chain_begins_elsewhere")],
    },
    Mutant {
        name: "waiting-text-cut-in-a-line",
        rule: "what is kept of waiting text begins with a line",
        file: "crates/cli/src/kept.rs",
        right: "self.is_cut = oldest.last() != Some(&b'\\n');",
        wrong: "self.is_cut = oldest.is_empty();",
        killers: &[Test(CommandUnits, "kept::tests::old_text_is_thrown_away")],
    },
    Mutant {
        name: "wall-clock-the-other-way",
        rule: "a time by the wall clock is found on the recording's clock",
        file: "crates/trace/src/wall_clock.rs",
        right: "self.at.0.checked_add(since_1970.0)?.checked_sub(self.since_1970.0)",
        wrong: "self.at.0.checked_add(self.since_1970.0)?.checked_sub(since_1970.0)",
        killers: &[Test(TraceUnits, "wall_clock::tests::both_clocks_say_the_same")],
    },
    Mutant {
        name: "longest-noise-is-the-first",
        rule: "the longest that the osnoise tracer saw is told with its time",
        file: "crates/explain/src/figures/noise.rs",
        right: "if took.0 >= row.max {",
        wrong: "if row.max == 0 {",
        killers: &[Test(ExplainUnits, "figures::noise::tests::each_kind_has_its_rows")],
    },
    Mutant {
        name: "below-with-what-is-above",
        rule: "each counts for the time in which nothing was on top of it",
        file: STACK,
        right: "below.above = below.above.saturating_add(nanos);",
        wrong: "below.above = below.above.max(nanos.min(1));",
        killers: killed_by!("what_is_on_top_is_not_counted_below"),
    },
    Mutant {
        name: "time-away-counts",
        rule: "what goes on with its task has no time while it is away",
        file: COUNTS,
        right: "Open { since: record.at, above: 0, ..open }",
        wrong: "Open { above: 0, ..open }",
        killers: killed_by!("a_task_goes_on_with_what_it_was_in"),
    },
    Mutant {
        name: "softirq-ends-with-a-switch",
        rule: "a softirq that runs in a task goes on when the task does",
        file: SOURCE,
        right: "matches!(self, Self::Softirq | Self::Timer | Self::Work)",
        wrong: "matches!(self, Self::Timer | Self::Work)",
        killers: killed_by!("a_task_goes_on_with_what_it_was_in"),
    },
    Mutant {
        name: "known-through-a-loss",
        rule: "nothing that was started outlasts lost events",
        file: COUNTS,
        right: "(self.marks == marks).then_some(self.what)",
        wrong: "(self.marks <= marks).then_some(self.what)",
        killers: killed_by!("nothing_outlasts_lost_events"),
    },
    Mutant {
        name: "kernels-thread-owns-a-cpu",
        rule: "no thread of the kernel's own is what a CPU is there for",
        file: ROW,
        right: "row.total_ns.is_some() && !is_kernel_thread(row.name.as_bytes())",
        wrong: "row.total_ns.is_some() && !is_kernel_thread(b\"\")",
        killers: killed_by!("a_cpu_has_a_task_of_its_own"),
    },
    Mutant {
        name: "work-where-nobody-asks",
        rule: "without isolated CPUs tasks and work items disturb nobody",
        file: COUNTS,
        right: "!matches!(source, Source::Task | Source::Work)",
        wrong: "!matches!(source, Source::Task)",
        killers: killed_by!("isolated_cpus_are_watched_or_all"),
    },
    Mutant {
        name: "callback-that-may-be-over",
        rule: "a callback whose end is not recorded starts nothing",
        file: COUNTS,
        right: "Source::Timer => ends[0],",
        wrong: "Source::Timer => ends[0] || !ends[1],",
        killers: killed_by!("what_starts_something_is_not_guessed"),
    },
    Mutant {
        name: "within-another-context",
        rule: "an event happened in what has its interrupt context",
        file: STACK,
        right: "open.context == context",
        wrong: "open.context != Some(InterruptContext::Nmi)",
        killers: killed_by!("what_starts_something_is_not_guessed"),
    },
    Mutant {
        name: "work-of-another-worker",
        rule: "a work item starts only what its own worker does",
        file: COUNTS,
        right: "open.key == work_key_of(pid)",
        wrong: "open.key != work_key_of(0)",
        killers: killed_by!("what_starts_something_is_not_guessed"),
    },
    Mutant {
        name: "first-sender",
        rule: "an interrupt has the last sender of its kind",
        file: COUNTS,
        right: "self.of(*to).sent[ipi as usize] = Some(sent);",
        wrong: "self.of(*to).sent[ipi as usize].get_or_insert(sent);",
        killers: killed_by!("an_interrupt_has_its_sender"),
    },
    Mutant {
        name: "sender-for-ever",
        rule: "the next interrupt has another sender",
        file: COUNTS,
        right: "sent.or(of_cpu.sent[ipi as usize].take())",
        wrong: "sent.or(of_cpu.sent[ipi as usize])",
        killers: killed_by!("an_interrupt_has_its_sender"),
    },
    Mutant {
        name: "function-of-another-sender",
        rule: "what is to be called was queued by the CPU that sends",
        file: COUNTS,
        right: ".filter(|(from, _)| *from == record.cpu)",
        wrong: ".filter(|(from, _)| *from != to)",
        killers: killed_by!("an_interrupt_has_its_sender"),
    },
    Mutant {
        name: "functions-lost-to-a-reason",
        rule: "an event that names only a reason does not replace one that names functions",
        file: COUNTS,
        right: "if purpose.reason.is_empty() || !pending.any(is_on_its_way) {",
        wrong: "if purpose.reason.is_empty() || pending.all(is_on_its_way) {",
        killers: killed_by!("an_interrupt_with_a_reason_has_its_sender"),
    },
    Mutant {
        name: "raised-for-ever",
        rule: "a softirq has the last raise for its cause, once",
        file: COUNTS,
        right: "raised.and_then(Option::take).and_then",
        wrong: "raised.and_then(|raised| *raised).and_then",
        killers: killed_by!("a_cause_is_followed_to_the_task_that_began_it"),
    },
    Mutant {
        name: "self-in-a-row",
        rule: "what starts itself over and over is one link",
        file: CAUSE,
        right: "if link.repeats(&self.link(id).0) {",
        wrong: "if link == self.link(id).0 {",
        killers: &[Test(
            ExplainUnits,
            "figures::interruptions::cause::tests::a_chain_does_not_grow_without_end",
        )],
    },
    Mutant {
        name: "chain-without-end",
        rule: "a chain has four links at most",
        file: CAUSE,
        right: "link.by.cause = self.first(id, LINKS_MAX - 1);",
        wrong: "link.by.cause = self.first(id, LINKS_MAX);",
        killers: &[Test(
            ExplainUnits,
            "figures::interruptions::cause::tests::a_chain_does_not_grow_without_end",
        )],
    },
    Mutant {
        name: "kernel-threads-wait",
        rule: "real-time threads of the kernel's own are not asked about",
        file: "crates/explain/src/figures/interrupts.rs",
        right: "if is_kernel_thread(task.comm) {",
        wrong: "if is_kernel_thread(task.comm) && self.is_preempt_rt && task.pid < 0 {",
        killers: &[Test(ExplainUnits, "figures::interrupts::tests::threads_of_the_kernel_are_apart")],
    },
    Mutant {
        name: "near-and-far",
        rule: "what began after a moment was not open then",
        file: NEAR,
        right: "open.since.0 <= until &&",
        wrong: "open.since.0 <= until.saturating_add(1) &&",
        killers: killed_by!("what_was_open_around_a_moment_is_told"),
    },
    Mutant {
        name: "near-and-over",
        rule: "what ended before a moment was not open then",
        file: NEAR,
        right: "ended.at.0 >= from",
        wrong: "ended.at.0.saturating_add(1) >= from",
        killers: killed_by!("what_was_open_around_a_moment_is_told"),
    },
    Mutant {
        name: "both-sleep",
        rule: "a sleeper does not arm its timer in the tick in which its partner has",
        file: "crates/cli/src/keep_awake/turn.rs",
        right: "Some(other) if other == now => SleeperTurn::StayAwakeUntil(now + 1),",
        wrong: "Some(other) if other > now => SleeperTurn::StayAwakeUntil(now + 1),",
        killers: &[Test(CommandUnits, "keep_awake::turn::tests::two_sleepers_leave_no_gap")],
    },
    Mutant {
        name: "awake-where-it-is-of-no-use",
        rule: "kernels that do not pull, or not for isolated CPUs, need no CPU that is awake",
        file: "crates/explain/src/keep_awake.rs",
        right: "kernel.timer_model() != TimerModel::Pull)",
        wrong: "kernel.timer_model() == TimerModel::Push)",
        killers: &[Test(ExplainUnits, "keep_awake::tests::it_is_refused_where_it_is_of_no_use")],
    },
    Mutant {
        name: "isolated-cpu-kept-awake",
        rule: "a CPU that is isolated is not kept awake",
        file: "crates/explain/src/keep_awake.rs",
        right: "let usable = facts.housekeeping().difference(&isolated);",
        wrong: "let usable = facts.online().difference(&isolated);",
        killers: &[Test(ExplainUnits, "keep_awake::tests::each_group_with_a_housekeeping_cpu_has_one_awake")],
    },
];
