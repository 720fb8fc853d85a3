//! Mutants of what is shown: figures of the simulator, of `whatif` and of `lab`, and what follows from them;
//! and of the rules that simulated runtimes show to be kept.

use super::killer::{Killer, Mutant, Suite};

const RECORDER: &str = "crates/sim/src/figures/recorder.rs";
const NAMES: &str = "crates/sim/src/figures/names.rs";
const COSTS: &str = "crates/sim/src/scenario/costs.rs";

const RECORDED: &[Killer] =
    &[Killer::Test(Suite::SimUnits, "figures::tests::figures_follow_from_what_was_recorded")];
const NAMED: &[Killer] = &[Killer::Test(Suite::SimUnits, "figures::tests::every_name_leads_to_its_figure")];
const ORIGINS: &[Killer] =
    &[Killer::Test(Suite::SimUnits, "scenario::costs::tests::every_origin_has_its_line")];

const PLAYED: &[Killer] = &[Killer::Test(Suite::Runtimes, "random_runtimes_keep_their_promises")];
const THREAD: &[Killer] =
    &[Killer::Test(Suite::SimUnits, "world::tasks::threads::tests::figures_of_a_thread")];

const ORDERED: &[Killer] = &[Killer::Test(Suite::SimUnits, "engine::queue::tests::leaves_in_order_of_time")];

const QUEUE: &str = "crates/sim/src/engine/queue/mod.rs";

const EXPIRY: &str = "crates/sim/src/world/timers/expiry.rs";
const TOO_LATE: &[Killer] = &[Killer::Test(Suite::RandomMachines, "what_comes_too_late_is_counted")];

pub(super) const SIMULATOR: &[Mutant] = &[
    Mutant {
        name: "late-is-in-time",
        rule: "a timer that runs later than anything explains is counted",
        file: EXPIRY,
        right: "u64::from(timer.is_beyond(bound, now))",
        wrong: "u64::from(timer.is_early(now))",
        killers: TOO_LATE,
    },
    Mutant {
        name: "any-number-of-callbacks-explains-it",
        rule: "how late a timer may run is bounded by a few callbacks",
        file: EXPIRY,
        right: "self.bound(8, 4)",
        wrong: "self.bound(80, 4)",
        killers: TOO_LATE,
    },
    Mutant {
        name: "nothing-is-brought-near",
        rule: "the first event of all is in the heap of those that are near",
        file: QUEUE,
        right: "let first = self.near.pop()?;\n        self.bring_near();",
        wrong: "let first = self.near.pop()?;",
        killers: ORDERED,
    },
    Mutant {
        name: "aside-and-before",
        rule: "an event that is put aside while all that are near come later is brought near",
        file: QUEUE,
        right: "self.put_aside(entry);\n        self.bring_near();",
        wrong: "self.put_aside(entry);",
        killers: ORDERED,
    },
    Mutant {
        name: "later-stays-later",
        rule: "what waits behind the ring's end goes into the ring when that has a bucket for it",
        file: QUEUE,
        right: "&& self.ring.covers(next.at)",
        wrong: "&& self.ring.len() == 0",
        killers: ORDERED,
    },
    Mutant {
        name: "last-is-least",
        rule: "a thread's last latency is not its shortest",
        file: "crates/sim/src/world/tasks/threads.rs",
        right: "act_ns: of_runs(self.last),",
        wrong: "act_ns: of_runs(self.least),",
        killers: THREAD,
    },
    Mutant {
        name: "thread-without-runs",
        rule: "a thread that never ran has no latency",
        file: "crates/sim/src/world/tasks/threads.rs",
        right: "(self.cycles > 0).then_some(nanos)",
        wrong: "Some(nanos)",
        killers: THREAD,
    },
    Mutant {
        name: "throughput-doubled",
        rule: "throughput is requests per second",
        file: RECORDER,
        right: "requests as f64 / seconds",
        wrong: "2.0 * requests as f64 / seconds",
        killers: RECORDED,
    },
    Mutant {
        name: "simulated-p99-is-p50",
        rule: "p99 is the value that 99 of 100 are at most",
        file: RECORDER,
        right: "p99: histogram.value_at_quantile(0.99),",
        wrong: "p99: histogram.value_at_quantile(0.50),",
        killers: RECORDED,
    },
    Mutant {
        name: "busy-is-idle",
        rule: "the busy share is what is not idle",
        file: RECORDER,
        right: "busy_share: 1.0 - self.idle_ns as f64 / cpu_time,",
        wrong: "busy_share: self.idle_ns as f64 / cpu_time,",
        killers: RECORDED,
    },
    Mutant {
        name: "pair-per-ns",
        rule: "the time of a pair is the loop's time by its rounds",
        file: RECORDER,
        right: "ns as f64 / rounds as f64",
        wrong: "rounds as f64 / ns as f64",
        killers: RECORDED,
    },
    Mutant {
        name: "gap-of-none",
        rule: "a loop that was never away has no quantiles",
        file: RECORDER,
        right: "Some((cpu as u16, quantiles(gaps.as_ref()?)?))",
        wrong: "Some((cpu as u16, quantiles(gaps.as_ref()?).unwrap_or_default()))",
        killers: RECORDED,
    },
    Mutant {
        name: "lateness-p99-is-p999",
        rule: "a name leads to its own quantile",
        file: NAMES,
        right: "(\"lateness_p99\", |of| quantile(of.lateness_ns, |found| found.p99)),",
        wrong: "(\"lateness_p99\", |of| quantile(of.lateness_ns, |found| found.p999)),",
        killers: NAMED,
    },
    Mutant {
        name: "lock-share-of-enqueue",
        rule: "the share of locks is not that of enqueue",
        file: NAMES,
        right: "share_of_busy(|found| found.lock_wait_ns)",
        wrong: "share_of_busy(|found| found.enqueue_ns)",
        killers: NAMED,
    },
    Mutant {
        name: "one-machine-for-all",
        rule: "costs of another machine have a line of their own",
        file: COSTS,
        right: "origins.iter_mut().find(|(known, _)| *known == origin)",
        wrong: "origins.iter_mut().find(|(known, _)| *known == origin || !known.is_empty())",
        killers: ORIGINS,
    },
    Mutant {
        name: "measured-without-commit",
        rule: "where a cost was measured is said with its commit",
        file: COSTS,
        right: "{date}, commit {commit}\")",
        wrong: "{date}{}\", if commit.is_empty() { \"\" } else { \"\" })",
        killers: ORIGINS,
    },
    Mutant {
        name: "idle-is-shallow",
        rule: "an idle CPU chooses the deepest state that fits",
        file: "crates/sim/src/scenario/idle_states.rs",
        right: "states.iter().rposition(fits)",
        wrong: "states.iter().position(fits)",
        killers: &[Killer::Test(
            Suite::SimUnits,
            "scenario::idle_states::tests::the_deepest_state_that_fits_is_chosen",
        )],
    },
    Mutant {
        name: "long-enough-is-short",
        rule: "a residency that is as long as its state's target is not too short",
        file: "crates/sim/src/figures/idle.rs",
        right: "u64::from(span < of_state.target)",
        wrong: "u64::from(span <= of_state.target)",
        killers: &[Killer::Test(
            Suite::SimUnits,
            "figures::tests::residencies_count_for_their_state_and_cpu",
        )],
    },
];

const REPLAYED: &str = "crates/verify/src/whatif/figures.rs";
const COUNTED: &[Killer] =
    &[Killer::Test(Suite::VerifyUnits, "whatif::figures::tests::every_figure_counts_what_it_says")];

const WITHIN_A_TICK: &str = "crates/verify/src/whatif/replay.rs";
const LEAVES: &[Killer] =
    &[Killer::Test(Suite::Whatif, "rules::a_cpu_that_leaves_before_time_is_counted_pulls_nothing")];

pub(super) const WHATIF: &[Mutant] = &[
    Mutant {
        name: "whatif-callback-armed-it-elsewhere",
        rule: "what a callback arms is armed by the CPU that runs it in the replay",
        file: "crates/verify/src/whatif/machine.rs",
        right: "|(_, ran)| (ran.base, ran.cpu)",
        wrong: "|(_, ran)| (ran.base, arm.cpu)",
        killers: &[Killer::Test(Suite::Whatif, "what_a_callback_arms_is_armed_where_it_runs")],
    },
    Mutant {
        name: "whatif-time-before-it-is-counted",
        rule: "a CPU whose tick comes before time is counted sees the old time",
        file: WITHIN_A_TICK,
        right: "!is_counted && self.idles",
        wrong: "is_counted && !is_counted && self.idles",
        killers: LEAVES,
    },
    Mutant {
        name: "whatif-awake-cpu-is-gone",
        rule: "only a CPU that goes idle in that tick is gone before it pulls",
        file: WITHIN_A_TICK,
        right: "self.idles.has(cpu, self.machine.now()) && ",
        wrong: "(self.idles.has(cpu, self.machine.now()) || !is_counted) && ",
        killers: LEAVES,
    },
    Mutant {
        name: "whatif-own-timers-wait",
        rule: "a CPU whose own timer ran in a tick saw the new time",
        file: WITHIN_A_TICK,
        right: "&& !self.machine.has_own(cpu);",
        wrong: "&& (!self.machine.has_own(cpu) || !is_counted);",
        killers: LEAVES,
    },
    Mutant {
        name: "whatif-sleeper-counts-time",
        rule: "a CPU that goes to sleep counts time no more",
        file: "crates/verify/src/whatif/machine.rs",
        right: "filter(|keeper| *keeper != cpu)",
        wrong: "filter(|keeper| *keeper != cpu || keeper.index() == 0)",
        killers: LEAVES,
    },
    Mutant {
        name: "whatif-isolated-interrupts",
        rule: "an isolated CPU interrupts no sleeping one",
        file: "crates/verify/src/whatif/machine.rs",
        right: "if sleepers.len() == balanced.len() {",
        wrong: "if sleepers.is_empty() {",
        killers: &[Killer::Test(Suite::Whatif, "rules::a_sleeping_cpu_may_be_interrupted")],
    },
    Mutant {
        name: "whatif-expects-the-impossible",
        rule: "where no isolated CPU can pull, no foreign timer is expected",
        file: "crates/verify/src/whatif/mod.rs",
        right: "if can_pull || range.high > 0 {",
        wrong: "if can_pull || range.high == 0 {",
        killers: &[Killer::Test(Suite::Whatif, "rules::what_cannot_be_is_not_expected")],
    },
    Mutant {
        name: "whatif-chance-at-one-deviation",
        rule: "a real kernel's count is expected in 19 of 20 runs",
        file: REPLAYED,
        right: "const NINETEEN_OF_TWENTY: f64 = 1.96;",
        wrong: "const NINETEEN_OF_TWENTY: f64 = 1.0;",
        killers: &[Killer::Test(Suite::VerifyUnits, "whatif::figures::tests::chance_widens_a_range")],
    },
    Mutant {
        name: "whatif-p99-is-p50",
        rule: "lateness p99 is what 99 of 100 timers are at most late",
        file: REPLAYED,
        right: "self.lateness.value_at_quantile(0.99)",
        wrong: "self.lateness.value_at_quantile(0.5)",
        killers: COUNTED,
    },
    Mutant {
        name: "whatif-deferrable-is-late",
        rule: "deferrable timers have no lateness",
        file: REPLAYED,
        right: "if arm.kind != LoadBase::Deferrable {",
        wrong: "if arm.kind != LoadBase::Local {",
        killers: COUNTED,
    },
    Mutant {
        name: "whatif-pulled-is-placed",
        rule: "a timer in the base of the CPU that ran it was placed, any other one pulled",
        file: REPLAYED,
        right: "if base == cpu { &mut foreign.placed } else { &mut foreign.pulled }",
        wrong: "if base != cpu { &mut foreign.placed } else { &mut foreign.pulled }",
        killers: COUNTED,
    },
    Mutant {
        name: "whatif-own-is-foreign",
        rule: "what an isolated CPU armed itself is not foreign",
        file: REPLAYED,
        right: "if !isolated.contains(cpu) || isolated.contains(arm.cpu) {",
        wrong: "if !isolated.contains(cpu) {",
        killers: COUNTED,
    },
    Mutant {
        name: "whatif-past-the-latest",
        rule: "no quantile is past the latest",
        file: REPLAYED,
        right: "ticks.min(self.latest).saturating_mul",
        wrong: "ticks.saturating_mul",
        killers: &[Killer::Test(
            Suite::VerifyUnits,
            "whatif::figures::tests::no_quantile_is_past_the_latest",
        )],
    },
    Mutant {
        name: "whatif-agrees-with-all",
        rule: "agreement is about the CPU, not about having run",
        file: REPLAYED,
        right: "u64::from(recorded == cpu)",
        wrong: "u64::from(recorded == cpu || recorded != cpu)",
        killers: &[Killer::Test(Suite::VerifyUnits, "whatif::figures::tests::agreement_is_arm_by_arm")],
    },
    Mutant {
        name: "whatif-door-open",
        rule: "a CPU that the machine does not have is refused, not looked up",
        file: "crates/verify/src/whatif/reader.rs",
        right: "self.idle_named.filter(|(cpu, _)| cpu.index() >= usize::from(cpus))",
        wrong: "self.idle_named.filter(|(cpu, _)| cpu.index() > usize::from(cpus))",
        killers: &[Killer::Test(Suite::Whatif, "a_cpu_that_is_not_there_is_named_with_its_line")],
    },
];

const MEASURE: &str = "crates/lab/src/measure.rs";
const PLAN: &str = "crates/lab/src/plan.rs";
const OF_NOTHING: &[Killer] = &[Killer::Test(Suite::LabUnits, "plan::tests::of_nothing_there_is_no_figure")];
const STRANGERS: &[Killer] =
    &[Killer::Test(Suite::SimUnits, "runtime::oracle::tests::without_lanes_a_kick_in_hand_excuses")];
const NO_SAMPLE: &[Killer] = &[Killer::Test(Suite::Lab, "reports::no_sample_is_no_verdict")];
const EVERY_ROUND: &[Killer] =
    &[Killer::Test(Suite::Lab, "reports::an_exact_check_holds_in_every_round_or_not_at_all")];
const VERDICTS: &[Killer] = &[Killer::Test(Suite::Lab, "reports::verdicts_follow_from_rounds")];

pub(super) const LAB: &[Mutant] = &[
    Mutant {
        name: "lab-any-round",
        rule: "what must have one value has it in every round",
        file: MEASURE,
        right: "is_measured && figure.rounds.iter().all(is_it)",
        wrong: "is_measured && figure.rounds.iter().any(is_it)",
        killers: EVERY_ROUND,
    },
    Mutant {
        name: "lab-holds-unmeasured",
        rule: "what was not measured in every round does not hold",
        file: MEASURE,
        right: "holds: is_measured && ",
        wrong: "holds: ",
        killers: EVERY_ROUND,
    },
    Mutant {
        name: "lab-no-sample-is-zero",
        rule: "a quantile of nothing is none",
        file: PLAN,
        right: ".map(|value| *value as f64)",
        wrong: ".map(|value| *value as f64).or(Some(0.0))",
        killers: OF_NOTHING,
    },
    Mutant {
        name: "lab-percent-of-nothing",
        rule: "of nothing there is no part",
        file: PLAN,
        right: "(of > 0.0).then(|| 100.0 * part / of)",
        wrong: "Some(if of > 0.0 { 100.0 * part / of } else { 0.0 })",
        killers: OF_NOTHING,
    },
    Mutant {
        name: "lab-verdict-of-some-rounds",
        rule: "rounds without a sample are compared with nothing",
        file: MEASURE,
        right: "self.has_every_round(old) && self.has_every_round(new)",
        wrong: "!old.rounds.is_empty() && !new.rounds.is_empty()",
        killers: NO_SAMPLE,
    },
    Mutant {
        name: "lab-noise-ignored",
        rule: "a difference within the noise floor's spread is none",
        file: MEASURE,
        right: "(old.median? - new.median?).abs() <= noise",
        wrong: "(old.median? - new.median?).abs() < 0.0 * noise",
        killers: VERDICTS,
    },
    Mutant {
        name: "lab-overlap-is-difference",
        rule: "every round of after is on the same side of every round of before",
        file: MEASURE,
        right: "let (low, high) = if old.smallest? > new.largest? {",
        wrong: "let (low, high) = if old.largest? > new.largest? {",
        killers: VERDICTS,
    },
    Mutant {
        name: "lab-worse-is-better",
        rule: "which side is better is the figure's own",
        file: MEASURE,
        right: "if better == Better::Lower { low } else { high }",
        wrong: "if better == Better::Lower { high } else { low }",
        killers: VERDICTS,
    },
    Mutant {
        name: "lab-median-is-smallest",
        rule: "the median is the round in the middle",
        file: MEASURE,
        right: "median: sorted.get(sorted.len() / 2).copied(),",
        wrong: "median: sorted.first().copied(),",
        killers: &[Killer::Test(Suite::Lab, "reports::json_of_fixed_rounds")],
    },
    Mutant {
        name: "stopped-stranger-unexcused",
        rule: "without lanes a timer waits for the stranger that tells the helper",
        file: "crates/sim/src/runtime/oracle.rs",
        right: "let is_told = is_kept || threads.drivers.is_empty();",
        wrong: "let is_told = is_kept;",
        killers: STRANGERS,
    },
    Mutant {
        name: "stopped-stranger-excuses-lanes",
        rule: "no lane waits for a stranger that is stopped",
        file: "crates/sim/src/runtime/oracle.rs",
        right: "let is_told = is_kept || threads.drivers.is_empty();",
        wrong: "let is_told = true;",
        killers: STRANGERS,
    },
    Mutant {
        name: "sim-child-finishes-run",
        rule: "a lock that a child takes is seen",
        file: "crates/sim/src/runtime/turn.rs",
        right: "            if self.is_child() {\n                break;",
        wrong: "            if false {\n                break;",
        killers: PLAYED,
    },
    Mutant {
        name: "sim-child-helps",
        rule: "a child that the helper's callback has forked is seen to go on as the helper",
        file: "crates/sim/src/runtime/helper_thread.rs",
        right: "if self.is_child() {",
        wrong: "if false {",
        killers: PLAYED,
    },
    Mutant {
        name: "sim-child-waits",
        rule: "a child's lane that goes on waiting as its parent's is seen",
        file: "crates/sim/src/runtime/lane_thread.rs",
        right: "if self.is_child() {\n                return driver.lane.abandon();",
        wrong: "if false {\n                return driver.lane.abandon();",
        killers: PLAYED,
    },
    Mutant {
        name: "ksoftirqd-asked-once",
        rule: "ksoftirqd is asked for what is left, also if it was asked before",
        file: "crates/core/src/softirq/rounds.rs",
        right: "Left { to_ksoftirqd: !movable.is_empty(),",
        wrong: "Left { to_ksoftirqd: deferred > 0,",
        killers: PLAYED,
    },
    Mutant {
        name: "ksoftirqd-one-round",
        rule: "ksoftirqd goes on while something is pending that may move",
        file: "crates/core/src/softirq/rounds.rs",
        right: "Step::End { .. } => KsoftirqdStep::Again,",
        wrong: "Step::End { .. } => KsoftirqdStep::Wait,",
        killers: PLAYED,
    },
    Mutant {
        name: "claims-overlap",
        rule: "a vector that one thread runs is not claimed by the other",
        file: "crates/core/src/softirq/claims.rs",
        right: ".difference(busy);",
        wrong: ";",
        killers: PLAYED,
    },
];
