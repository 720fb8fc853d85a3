//! Mutants of bases: what a base decides, under its lock or without it, left out or done in a wrong order.

use super::killer::Killer::{self, Test};
use super::killer::Mutant;
use super::killer::Suite::{Machine, Models, Units};

const BASE_ARM: &str = "crates/core/src/base/arm.rs";
const BASE_EXPIRE: &str = "crates/core/src/base/expire.rs";
const BASE_SYNC: &str = "crates/core/src/base/sync.rs";

const DROP_AGAINST_EXPIRE: &[Killer] = &[Test(Models, "base::models::drop_against_expire")];

pub(super) const RULES: &[Mutant] = &[
    Mutant {
        name: "idle-on-the-way",
        rule: "a timer stays pending while it changes its base, for those who look without a lock",
        file: BASE_ARM,
        right: "shared.word.store(moved.at(request.onto));",
        wrong: "shared.word.store(moved.at(request.onto).without(TimerWord::PENDING));",
        killers: &[Test(Models, "base::models::cancel_against_a_move")],
    },
    Mutant {
        name: "21-stale-clock",
        rule: "an arm takes a clock that stood still to the present",
        file: BASE_ARM,
        right: "        self.forward(request.now);\n        let was_pending",
        wrong: "        let was_pending",
        killers: &[Test(Units, "base::tests::rules::an_arm_takes_an_old_clock_to_the_present")],
    },
    Mutant {
        name: "21-stale-clock-of-the-other",
        rule: "so does an arm that brings the timer from another base",
        file: BASE_ARM,
        right: "        new.forward(request.now);\n",
        wrong: "",
        killers: &[Test(Units, "base::tests::rules::an_arm_takes_an_old_clock_to_the_present")],
    },
    Mutant {
        name: "21-stale-clock-usually",
        rule: "so does an arm in the usual case",
        file: BASE_ARM,
        right: "        self.forward(now);\n",
        wrong: "",
        killers: &[Test(Units, "base::tests::rules::an_arm_takes_an_old_clock_to_the_present")],
    },
    Mutant {
        name: "clock-a-tick-behind",
        rule: "a clock is left alone only in the tick that it shows",
        file: "crates/core/src/base/queues.rs",
        right: "        if now.0 >= next {",
        wrong: "        if now.0 >= next.saturating_mul(2) {",
        killers: &[Test(Units, "base::tests::rules::an_arm_takes_an_old_clock_to_the_present")],
    },
    Mutant {
        name: "moves-while-it-runs",
        rule: "a timer that runs stays on its base",
        file: BASE_ARM,
        right: "        if old.runs.is_running(timer.address()) {",
        wrong: "        if false && old.runs.is_running(timer.address()) {",
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
        right: "            if !self.runs.is_running(due.address()) {",
        wrong: "            if true {",
        killers: &[Test(Units, "base::tests::rules::a_timer_that_is_due_while_it_runs_waits_for_the_end")],
    },
    Mutant {
        name: "place-read-once",
        rule: "an arm that has the lock looks whether it is still the timer's",
        file: BASE_ARM,
        right: "        if !timer.shared().word.load().is_at(request.onto) {",
        wrong: "        if false && !timer.shared().word.load().is_at(request.onto) {",
        killers: &[Test(Units, "base::tests::races::an_arm_loses_against_a_move")],
    },
    Mutant {
        name: "usual-place-read-once",
        rule: "so does an arm in the usual case",
        file: BASE_ARM,
        right: "        if !seen.is_fast_at(self.id) {\n            // Only the winner",
        wrong: "        if false {\n            // Only the winner",
        killers: &[Test(Units, "base::tests::races::a_usual_arm_loses_against_a_move")],
    },
    Mutant {
        name: "usual-adopter-ignored",
        rule: "a base of an offline CPU takes nothing, not even what was there before",
        file: BASE_ARM,
        right: "        if self.takes != Takes::Arms {\n            return None;",
        wrong: "        if self.takes == Takes::Nothing {\n            return None;",
        killers: &[
            Test(Units, "base::tests::races::a_usual_arm_loses_against_a_move"),
            Test(Units, "base::tests::races::a_usual_first_arm_loses"),
        ],
    },
    Mutant {
        name: "usual-first-of-the-dead",
        rule: "a timer that was shut down gets no first base",
        file: BASE_ARM,
        right: "            if !seen.is_fast_new() || !word.claim_for(seen, self.id) {",
        wrong: "            if !word.claim_for(seen, self.id) {",
        killers: &[Test(Units, "base::tests::races::a_usual_first_arm_loses")],
    },
    Mutant {
        name: "usual-first-without-claim",
        rule: "of two threads that arm a new timer at once one wins",
        file: BASE_ARM,
        right: "            if !seen.is_fast_new() || !word.claim_for(seen, self.id) {",
        wrong: "            word.store(seen.at(self.id));
            if !seen.is_fast_new() {",
        killers: &[Test(Models, "base::models::two_first_arms")],
    },
    Mutant {
        name: "cancel-reads-once",
        rule: "a cancel that has the lock looks whether it is still the timer's",
        file: BASE_ARM,
        right: "            if now.is_with(seen) {",
        wrong: "            if true || now.is_with(seen) {",
        killers: &[Test(Units, "base::tests::races::a_cancel_follows_its_timer")],
    },
    Mutant {
        name: "adopter-ignored",
        rule: "a base of an offline CPU takes nothing",
        file: BASE_ARM,
        right: "        if let Some(adopter) = new.adopter() {",
        wrong: "        if let Some(adopter) = new.adopter().filter(|_| false) {",
        killers: &[Test(Units, "base::tests::races::an_arm_loses_against_an_adoption")],
    },
    Mutant {
        name: "taken-when-idle",
        rule: "what a world takes out of a timer is taken before the timer looks idle",
        file: BASE_EXPIRE,
        right: "        let taken = take(&DueTimer::of(due, word));
        // The last access to the timer: a callback may end it; of a detached one its owner, once it sees
        // this. Model: `base::models::taken_before_it_is_idle`.
        due.shared().word.store(word.without(TimerWord::PENDING).without(TimerWord::COLLECTED));",
        wrong:
            "        due.shared().word.store(word.without(TimerWord::PENDING).without(TimerWord::COLLECTED));
        let taken = take(&DueTimer::of(due, word));",
        killers: &[
            Test(Models, "base::models::taken_before_it_is_idle"),
            Test(Units, "base::tests::detached::something_is_taken_of_each_timer_while_it_is_pending"),
        ],
    },
    Mutant {
        name: "detached-recorded",
        rule: "a run of a detached timer leaves no record",
        file: BASE_EXPIRE,
        right: "        if !due.shared().word.load().has(TimerWord::DETACHED) {\n",
        wrong: "        if true {\n",
        killers: &[
            Test(Units, "base::tests::detached::a_detached_timer_runs_again_before_its_run_has_ended"),
            Test(Units, "base::tests::detached::an_adoption_does_not_wait_for_a_detached_run"),
        ],
    },
    Mutant {
        name: "detached-end-locks",
        rule: "the end of a detached run takes no lock",
        file: BASE_EXPIRE,
        right: "        if expired.is_detached {\n            return Finished",
        wrong: "        if false {\n            return Finished",
        killers: &[Test(Units, "base::tests::detached::the_end_of_a_detached_run_takes_no_lock")],
    },
    Mutant {
        name: "cancels-while-it-runs",
        rule: "a cancel that must not overlook a run does nothing while there is one",
        file: BASE_ARM,
        right: "        if base.runs.is_running(timer.address()) {\n            return Cancelled::Running;",
        wrong: "        if false {\n            return Cancelled::Running;",
        killers: &[
            Test(Units, "base::tests::rules::a_timer_changes_its_base_unless_it_runs_or_stays_in_its_bucket"),
            Test(Machine, "counters::a_cancel_that_finds_a_run"),
        ],
    },
    Mutant {
        name: "idle-without-release",
        rule: "the runner touches a timer before it makes it idle, not after",
        file: BASE_SYNC,
        right: "self.0.store(word.0, Ordering::Release);",
        wrong: "self.0.store(word.0, Ordering::Relaxed);",
        killers: DROP_AGAINST_EXPIRE,
    },
    Mutant {
        name: "idle-without-acquire",
        rule: "a thread that sees a timer idle may free it",
        file: BASE_SYNC,
        right: "TimerWord(self.0.load(Ordering::Acquire))",
        wrong: "TimerWord(self.0.load(Ordering::Relaxed))",
        killers: DROP_AGAINST_EXPIRE,
    },
];
